"""Channels, their ends and processes of Weft in gdb:  (gdb) source weft_gdb.py

    (gdb) print c                 'orders', 1 reader end, 1 writer end, 1 waits to read
    (gdb) print *process          main/reads, id 2, read at net.cpp:3
    (gdb) weft processes          a line for each process of the runs that some thread is in

These commands only read memory and call no code of the program, so they work on a core file too.
They need debug information (-g); where the compiler has removed a variable, `weft processes`
searches the frames above.

Invariant: whatever cannot be read is shown as `?`; no exception reaches gdb's own printing.
"""

import re
from pathlib import PurePath

import gdb
import gdb.printing

LAST_ID = (1 << 29) - 1  # runtime::Identity::kLast
TAG = 4  # core::Queue::kTag
WRITER, READER = 1, 2  # core/waiting_queues.hpp: tags of the word in which one party waits
LIMIT = 10_000  # the maximum number of links to follow, since memory can be in any state


def number(value):
    """Returns the number in an atomic, a Count or a Holder: the first number found inside."""
    value_type = value.type.strip_typedefs()
    while value_type.code == gdb.TYPE_CODE_STRUCT:
        value = value[next(f for f in value_type.fields() if hasattr(f, "bitpos"))]  # not a static
        value_type = value.type.strip_typedefs()
    return int(value)


def text(pointer):
    return "?" if int(pointer) == 0 else pointer.string(errors="replace")


def counted(n, what):
    return f"{n} {what}{'' if n == 1 else 's'}"


def namespace_of(value_type):
    """Returns `weft::` with the inline namespace of the configuration."""
    if value_type.code == gdb.TYPE_CODE_REF:
        value_type = value_type.target()
    return re.match(r"weft(::v\w+)?", str(value_type.unqualified().strip_typedefs())).group()


# --- channels -------------------------------------------------------------------------------------


def name_of(place):
    """Returns the name that the channel was given, or the file:line where it was made, like
    runtime::name_of().
    """
    name, line = text(place["name"]), int(place["line"])
    return f"'{name}'" if line == 0 else f"{PurePath(name).name}:{line}"


def waiting(core):
    """Returns how many parties wait to read, and how many to write. The single party at a
    rendezvous can be in the word of the readers' queue (core/waiting_queues.hpp); 0 in that word
    means that no party waits.
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
    """Returns the channel of an end. The channel's type follows from the end's type; numbers and
    pointers are stored as their bits (core/stored.hpp).
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
    """Shows a value by means of one function, and `?` where memory cannot be read."""

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
    """Returns the path of a process, with an index if it is not the first of its name, like
    runtime::path_of().
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
        line = int(process["line"]["word_"]) & 0x3FFFFF  # the bits above it are a count
        parts.append(f"{text(operation['verb'])} at {PurePath(file).name}:{line}")
    else:
        parts.append("running")
    return ", ".join(parts)


class Process(Printer):
    def shown(self):
        return process_text(self.value)


def base_of(value):
    """Returns the ProcessBase of a process: the object itself, or its base class."""
    for field in value.type.strip_typedefs().fields():
        if field.is_base_class:
            if str(field.type).endswith("runtime::ProcessBase"):
                return value.cast(field.type)
            inner = base_of(value.cast(field.type))
            if inner is not None:
                return inner
    return value if str(value.type.strip_typedefs()).endswith("runtime::ProcessBase") else None


def runs_of(frame):
    """Finds the runs that a frame and the frames above it refer to, through schedulers or
    variables."""
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
    """weft processes: prints a line for each process of the runs in which some thread is."""

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
