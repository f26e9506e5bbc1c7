"""Channels, their ends and processes of Weft in gdb:  (gdb) source weft_gdb.py

    (gdb) print c                 'orders', 1 reader end, 1 writer end, 1 waits to read
    (gdb) print *process          main/reads, id 2, read at net.cpp:3
    (gdb) weft processes          a line for each process of the runs that some thread is in

What is read is memory alone: no code of the program is called, so it works on a core file too. It
needs debug information (-g); where the compiler has removed a variable, `weft processes` looks in
the frames above.

Invariant: what cannot be read is shown as `?`; nothing here raises into gdb's own printing.
"""

import re
from pathlib import PurePath

import gdb
import gdb.printing

LAST_ID = (1 << 29) - 1  # runtime::Identity::kLast
TAG = 4  # core::Queue::kTag
WRITER, READER = 1, 2  # core::Lines: kWriter, kReader: tags of the word in which one party waits
LIMIT = 10_000  # how many links are followed at most, since memory may be in any state


def number(value):
    """Returns the number in an atomic, a Count or a Holder: the first that is found inside."""
    value_type = value.type.strip_typedefs()
    while value_type.code == gdb.TYPE_CODE_STRUCT:
        value = value[next(f for f in value_type.fields() if hasattr(f, "bitpos"))]  # no static one
        value_type = value.type.strip_typedefs()
    return int(value)


def text(pointer):
    return "?" if int(pointer) == 0 else pointer.string(errors="replace")


def counted(n, what):
    return f"{n} {what}{'' if n == 1 else 's'}"


def namespace_of(value_type):
    """`weft`, with the inline namespace of the configuration."""
    if value_type.code == gdb.TYPE_CODE_REF:
        value_type = value_type.target()
    return re.match(r"weft(::v\w+)?", str(value_type.unqualified().strip_typedefs())).group()


# --- channels -------------------------------------------------------------------------------------


def name_of(place):
    """Returns what runtime::name_of returns: the name that was given, or the file:line where the
    channel was made.
    """
    name, line = text(place["name"]), int(place["line"])
    return f"'{name}'" if line == 0 else f"{PurePath(name).name}:{line}"


def waiting(core):
    """Returns how many wait to read, and to write. The one party that waits at a rendezvous may
    stand in the word of the readers' queue (core/waiting_queues.hpp); nobody at all is 0 there.
    """
    word = int(core["reader_queue_"]["word_"])
    if word == 0 or word & 7 != TAG:
        return (int(word & 3 == READER), int(word & 3 == WRITER)) if word else (0, 0)
    return tuple(sum(1 for _ in links(core[queue])) for queue in ("reader_queue_", "writer_queue_"))


def links(queue):
    word = int(queue["word_"])
    link_type = gdb.lookup_type(f"{namespace_of(queue.type)}::core::Link").pointer()
    link = gdb.Value(word - TAG).cast(link_type)
    for _ in range(LIMIT):
        if int(link) == 0:
            return
        yield link
        link = link["next"]


def core_text(core):
    parts = [
        name_of(core),
        counted(number(core["readers_"]), "reader end"),
        counted(number(core["writers_"]), "writer end"),
    ]
    for n, doing in zip(waiting(core), ("read", "write"), strict=True):
        if n:
            parts.append(f"{n} wait{'s' if n == 1 else ''} to {doing}")
    if int(core["poison_"]):
        parts.append(f"poisoned ({int(core['poison_'])})")
    ring = core["ring"]
    if int(ring):
        parts.append(f"{int(ring['size'])} of {int(ring['capacity'])} buffered")
    return ", ".join(parts)


def core_of_end(end):
    """Returns the channel of an end: its type is known by the end's. A number's or a pointer's is
    that of its bits (core/stored.hpp).
    """
    end_type = end.type.unqualified().strip_typedefs()
    value, policy = (end_type.template_argument(n) for n in (0, 1))
    core = f"{namespace_of(end_type)}::core::"
    place = end["place_"]
    for stored in (str(value), f"{core}Bits<{value.sizeof}ul>", f"{core}Bits<{value.sizeof}>"):
        for kind in ("ChannelEngine", "OneToOneEngine"):
            try:
                engine = gdb.lookup_type(f"{core}{kind}<{stored}, {policy}>")
            except gdb.error:
                continue
            return place.cast(engine.pointer()).dereference()
    return place.dereference()


class Printer:
    """Shows a value by one function, and `?` where memory cannot be read."""

    def __init__(self, value):
        self.value = value.referenced_value() if value.type.code == gdb.TYPE_CODE_REF else value

    def to_string(self):
        try:
            return self.shown()
        except (gdb.error, AttributeError, RuntimeError) as error:
            return f"? ({error})"


class Channel(Printer):
    def shown(self):
        return core_text(self.value["core_"].dereference())


class Core(Printer):
    def shown(self):
        return core_text(self.value)


class End(Printer):
    def shown(self):
        kind = "reader" if "Reader<" in str(self.value.type.strip_typedefs()) else "writer"
        if int(self.value["place_"]) == int(closed_place(self.value)):
            return f"{kind}, closed"
        return f"{kind} of {core_text(core_of_end(self.value))}"


def closed_place(end):
    symbol = f"{namespace_of(end.type)}::detail::closed_place"
    return gdb.parse_and_eval(f"&'{symbol}'")


# --- processes ------------------------------------------------------------------------------------


def path_of(process):
    """Returns what runtime::path_of returns: the path, with an index if the process is not the
    first of its name.
    """
    steps = []
    while int(process.address) and len(steps) < 64:
        function = process["function"]
        step = text(function) if int(function) else "process"
        index = int(process["index"])
        step += f"[{index}]" if index else ""
        group = process["group"]
        if int(group) and int(group["name"]):
            step = f"{text(group['name'])}/{step}"
        steps.insert(0, step)
        if not int(group) or not int(group["parent"]):
            break
        process = group["parent"].dereference()
    return "/".join(steps)


def process_text(process):
    parts = [path_of(process), f"id {number(process['id']) & LAST_ID}"]
    operation = process["op"]
    if int(operation):
        about = process["about"]
        file = text(about["file"]) if int(about) and int(about["file"]) else "?"
        line = int(process["line"]["word_"]) & 0x3FFFFF  # Standing, which counts above it
        parts.append(f"{text(operation['verb'])} at {PurePath(file).name}:{line}")
    else:
        parts.append("running")
    return ", ".join(parts)


class Process(Printer):
    def shown(self):
        return process_text(self.value)


def base_of(value):
    """Returns the runtime's part of whatever is a process: itself, or a base of it."""
    for field in value.type.strip_typedefs().fields():
        if field.is_base_class:
            if str(field.type).endswith("runtime::ProcessBase"):
                return value.cast(field.type)
            inner = base_of(value.cast(field.type))
            if inner is not None:
                return inner
    return value if str(value.type.strip_typedefs()).endswith("runtime::ProcessBase") else None


def runs_of(frame):
    """The runs that a frame and those above it know of: by their schedulers, or by a variable."""
    while frame is not None:
        for name in ("this", "run"):
            try:
                value = frame.read_var(name)
            except (ValueError, gdb.error):
                continue
            try:
                if value.type.strip_typedefs().code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF):
                    value = value.referenced_value()
                kind = str(value.type.unqualified().strip_typedefs())
                if kind.endswith("runtime::Run"):
                    yield value
                elif kind.endswith("runtime::Scheduler"):
                    run = value["run"]
                    yield run.referenced_value() if run.type.code == gdb.TYPE_CODE_REF else run
            except gdb.error:
                continue
        frame = frame.older()


def processes_of(run):
    group = run["groups_"]
    for _ in range(LIMIT):
        if not int(group):
            return
        process = group["children_"]
        for _ in range(LIMIT):
            if not int(process):
                break
            yield process.dereference()
            process = process["sibling_next"]
        group = group["next_"]


class Weft(gdb.Command):
    """weft processes: a line for each process of the runs that some thread is in."""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK, gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        if argument.strip() != "processes":
            raise gdb.GdbError("weft: give `weft processes`")
        before = gdb.selected_thread()
        seen = set()
        lines = []
        try:
            for thread in gdb.selected_inferior().threads():
                thread.switch()
                for run in runs_of(gdb.newest_frame()):
                    if int(run.address) in seen:
                        continue
                    seen.add(int(run.address))
                    lines += [process_text(process) for process in processes_of(run)]
        finally:
            if before is not None:
                before.switch()
        if not seen:
            raise gdb.GdbError("weft: no thread is in a run (or there is no debug information: -g)")
        for line in sorted(lines):
            print(line)


# --- known to gdb ---------------------------------------------------------------------------------


def printers():
    known = gdb.printing.RegexpCollectionPrettyPrinter("weft")
    within = r"^weft(::v\w+)?::"
    known.add_printer("channel", within + r"Channel<.*>$", Channel)
    known.add_printer("end", within + r"(Reader|Writer)<.*>$", End)
    known.add_printer("core", within + r"(core::ChannelEngine|detail::PooledEngine)<.*>$", Core)
    known.add_printer("process", within + r"runtime::ProcessBase$", Process)
    return known


gdb.printing.register_pretty_printer(None, printers(), replace=True)
Weft()
