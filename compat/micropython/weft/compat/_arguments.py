"""The arguments of benchmark programs: as much of argparse as they use, which MicroPython lacks."""

import sys


class Arguments:
    """The arguments by name."""


def _name(words):
    for word in words:
        if not word.startswith("-"):
            return word
    longest = max(words, key=len)
    return longest.lstrip("-").replace("-", "_")


def parse(specs, given):
    """Returns the arguments `given` by the lists of add_argument(). What no list names is an
    error, as an argument that lacks its value is.
    """
    found, options, places = Arguments(), {}, []
    for words, more in specs:
        name = more.get("dest") or _name(words)
        setattr(found, name, more.get("default"))
        if words[0].startswith("-"):
            for word in words:
                options[word] = (name, more)
        else:
            places.append((name, more))
    given = list(given)
    while given:
        word = given.pop(0)
        if word in options:
            name, more = options[word]
            action = more.get("action", "store")
            if action == "store_true" or action == "store_const":
                setattr(found, name, more.get("const", True))
                continue
            if not given:
                raise SystemExit("%s needs a value" % word)
            value = more.get("type", str)(given.pop(0))
            if action == "append":
                value = (getattr(found, name) or []) + [value]
        elif places and not word.startswith("-"):
            name, more = places.pop(0)
            value = more.get("type", str)(word)
        else:
            raise SystemExit("there is no argument %s" % word)
        setattr(found, name, value)
    for name, more in places:
        if more.get("nargs") != "?":
            raise SystemExit("the argument %s is missing" % name)
    return found


def handle_common_args(argspecs=None):
    """Returns the program's arguments. Each of `argspecs` is the arguments of add_argument()."""
    return parse(argspecs or [], sys.argv[1:])


def avg(vals):
    """Returns the mean."""
    return sum(vals) / len(vals)
