"""Reads the arguments of benchmark programs. MicroPython has no argparse, so this module has the
part of argparse that these programs use.
"""

import sys


class Arguments:
    """Holds the value of each argument in an attribute that has the argument's name."""


def _name(words):
    for word in words:
        if not word.startswith("-"):
            return word
    longest = max(words, key=len)
    return longest.lstrip("-").replace("-", "_")


def parse(specs, given):
    """Returns the arguments of a program.

    Args:
        specs: for each argument, the positional and the keyword arguments of add_argument().
        given: the words of the command line.

    Raises:
        SystemExit: a word is no argument of the program, or an argument or its value is missing.
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
    """Returns the arguments of this program. `argspecs` are the `specs` of parse()."""
    return parse(argspecs or [], sys.argv[1:])


def avg(vals):
    """Returns the mean of a list of numbers."""
    return sum(vals) / len(vals)
