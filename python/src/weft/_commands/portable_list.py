"""How Weft on MicroPython differs from Weft on CPython: one list, with reasons.

`weft portable` takes the reasons and hints of its findings from this list. A test compares NAMES
and MODULES with the two packages (micropython/tests/test_portable.py). conformance/micropython.py
takes from BEHAVIOUR the reasons for which a scenario is left out.

Invariants
- NAMES has each difference of names or parameters exactly once, by its key of portable_names.py,
  and nothing else.
- `reason` is a clause that could follow "because". `instead` tells the reader what to write.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft._commands.portable_names import CPYTHON, MICROPYTHON


@dataclass(frozen=True)
class Difference:
    """Names that one of the two packages lacks.

    Attributes:
        lacks: the side that lacks the names.
        keys: the keys of the names, members and parameters (portable_names.py), or the modules.
        reason: why that side lacks them.
        instead: what to write in a program that runs on both.
    """

    lacks: str
    keys: tuple[str, ...]
    reason: str
    instead: str


NAMES: tuple[Difference, ...] = (
    Difference(
        MICROPYTHON,
        (*("Guard", "ProcessEnd", "Reader", "Timeout", "Writer", "ChannelStats", "Ended"),),
        "to save memory, weft does not export there the classes whose objects a program gets and "
        "does not make",
        "leave the annotation out, or import it from weft in `try: … except ImportError: pass`",
    ),
    Difference(
        MICROPYTHON,
        (
            *("deadlocks", "debug", "measure", "measuring", "tracing", "watchdog"),
            *("watching_deadlocks", "statistics", "WeftWarning", "BlockedProcess"),
            *("run(trace=)", "run(watchdog=)", "run(partial=)"),
        ),
        "no processes are observed from inside there",
        "observe the run from outside the file: `weft run --trace`, or weft.flight on the board",
    ),
    Difference(
        MICROPYTHON,
        ("ChannelStats.transfers",),
        "a count of the values would cost every communication",
        "count the values in a process",
    ),
    Difference(
        MICROPYTHON,
        ("Channel.__mul__", "Channel.__rmul__", "ChannelArray"),
        "arrays of channels are not there, to save memory",
        "write a list: [Channel() for _ in range(n)]",
    ),
    Difference(
        MICROPYTHON,
        ("Process.__mul__", "Process.__rmul__"),
        "copies of a process object are not made there, to save memory",
        "call the process function n times: [f(…) for _ in range(n)]",
    ),
    Difference(
        MICROPYTHON,
        ("Reader.read_many", "Reader.blocks", "Writer.write_many"),
        "operations move one value there",
        "read or write the values one by one, or send a list",
    ),
    Difference(
        MICROPYTHON,
        ("readable", "writable", "Ready"),
        "there asyncio waits for descriptors",
        "read in a function of io(…)",
    ),
    Difference(
        MICROPYTHON,
        ("Stream", "Listener", "connect", "listen"),
        "there asyncio waits for sockets",
        "use asyncio's open_connection() or start_server() in an asyncio task",
    ),
    Difference(
        MICROPYTHON,
        ("Process.on", "ProcessDied", "Process.id", "Channel(type=)", "Writer.write(move=)"),
        "there are no hosts, no OS processes and no native components",
        "start the process from another file",
    ),
    Difference(
        MICROPYTHON,
        ("Outside",),
        "a run there ends or is a deadlock when none of its processes can go on",
        "wait at weft.isr.Ring on the board",
    ),
    Difference(
        MICROPYTHON,
        ("Alternative(mode=)", "Alternative.close"),
        "an Alternative there is fair, and enrolled only in its `with` block",
        "use it in a `with` block, or select(…, mode=…)",
    ),
    Difference(
        MICROPYTHON,
        ("Timer.period", "Timer.when"),
        "a Timer is no guard there",
        "use after(…) or at(…) as the guard",
    ),
    Difference(
        MICROPYTHON,
        ("deadline(again=)", "move_on_after(again=)", "timeout(again=)"),
        "a timeout of MicroPython asks once (rule 7.12)",
        "let Cancelled pass in the block",
    ),
    Difference(
        MICROPYTHON,
        ("Reader.extended(redeliver=)",),
        "there a value that an extended read has taken is not offered to another reader",
        "send the value on a channel of its own",
    ),
    Difference(
        MICROPYTHON,
        ("run_async(clock=)",),
        "asyncio's clock is the only one in its loop there",
        "use run(…, clock=…)",
    ),
    Difference(
        MICROPYTHON,
        ("Group.start(process=)",),
        "start takes several processes there",
        "give the process by its place",
    ),
    Difference(
        CPYTHON,
        ("Group.start(…)",),
        "start takes one process on CPython",
        "call start for each process",
    ),
    Difference(
        CPYTHON,
        ("Input(…)", "Output(…)"),
        "`ended` and `make` are given by their names on CPython",
        "write ended=… and make=…",
    ),
    Difference(
        CPYTHON,
        ("Writer.__call__(v=)", "Writer.write(v=)", "io(fn=)", "process(fn=)"),
        "CPython takes it by its place alone",
        "leave the name of the argument out",
    ),
    Difference(
        CPYTHON,
        ("Failures",),
        "several failures are an exception group on CPython (rule 7.2)",
        "import it in `try: … except ImportError:`, and catch ExceptionGroup on CPython",
    ),
    Difference(
        CPYTHON,
        ("NoRoom", "TimeoutError"),
        "CPython has MemoryError and TimeoutError of its own",
        "catch MemoryError and OSError, which are their base classes on both",
    ),
    Difference(
        CPYTHON,
        ("sleep_ms",),
        "it is for ports of MicroPython whose floats are short",
        "write sleep(seconds)",
    ),
)

MODULES: tuple[Difference, ...] = (
    Difference(
        MICROPYTHON,
        (
            "weft.greenlets",
            "weft.processes",
            "weft.net",
            "weft.native",
            "weft.serial",
            "weft.boards",
        ),
        "greenlets, OS processes, other machines, boards and native components are on CPython "
        "alone",
        "start that part of the network from another file",
    ),
    Difference(
        MICROPYTHON,
        ("weft.observe", "weft.metrics"),
        "no processes are observed from inside there",
        "observe the run from outside the file",
    ),
    Difference(
        MICROPYTHON,
        ("weft.use", "weft.check", "weft.styles", "weft.cli"),
        "a program chooses backends and checks networks on CPython alone",
        "import the backend: weft.coroutines or weft.threads; `weft check` calls a function of the "
        "file",
    ),
    Difference(
        MICROPYTHON,
        ("weft.plugnplay", "weft.toolkit"),
        "ready-made processes are not there, to save memory",
        "write the process in the file",
    ),
    Difference(
        CPYTHON,
        ("weft.cores", "weft.isr", "weft.link", "weft.flight", "weft.watchdog"),
        "it is for microcontrollers",
        "import it in `try: … except ImportError:`, or in a file that starts the processes",
    ),
)

# Features other than names that MicroPython lacks, each with the reason.
BEHAVIOUR: dict[str, str] = {
    "finalisers": "no __del__ of a Python class is called: an end or a value that is merely dropped is not noticed",
    "line numbers": "a suspended coroutine does not tell where it stands, nor a channel where it was made",
    "kinds": "on(backend) is on CPython alone: a scheduler of MicroPython runs coroutines (weft.threads has threads)",
    "every operation": "of the operations that complete at once only reads, writes and selects let others run (rule 7.7)",
    "again": "a timeout of MicroPython asks once (rule 7.12)",
}
# The same for weft.threads on MicroPython.
BEHAVIOUR_OF_THREADS: dict[str, str] = {
    "a start in order": "a thread runs as soon as it is started, before the block has made the ends of the next",
}

# Hints: what to write instead of a name of Python that MicroPython lacks.
HINTS: dict[str, str] = {
    "time.perf_counter": "use now() of weft",
    "time.monotonic": "use now() of weft",
    "os.environ": "use os.getenv(name)",
    "typing": "leave the annotations out, or import it in `try: … except ImportError:`",
    "dataclasses": "write __init__",
    "enum": "write constants",
    "collections.abc": "leave the annotations out, or import it in `try: … except ImportError:`",
    "collections.Counter": "count in a dict",
    "collections.defaultdict": "use setdefault() of a dict",
    "ExceptionGroup": "catch it and weft's Failures by a name that a `try` has chosen",
    "BaseExceptionGroup": "catch it and weft's Failures by a name that a `try` has chosen",
    "vars": "use __dict__",
    "format": "use an f-string",
    "ascii": "use repr()",
    "ModuleNotFoundError": "name ImportError, from which it is derived",
    "RecursionError": "name RuntimeError, from which it is derived",
}


def difference(key: str, among: tuple[Difference, ...] = NAMES) -> Difference | None:
    """Returns the difference among `among` that has the key `key`, or None."""
    return next((d for d in among if key in d.keys), None)
