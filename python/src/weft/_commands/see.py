"""`weft ps` and `weft top` show a running network from outside; `weft graph` draws one.

Invariants
- A look changes nothing in the program (rule 14.2). If a program cannot be looked at, one sentence
  says why, with exit status 2.
- Without `rich`, or if the output is not a terminal, the tables are plain text.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from weft._commands import graph as _graph
from weft._commands.bad_use import BadUse, did_you_mean
from weft._commands.main import write_text
from weft._commands.program import run_program
from weft._commands.see_hosts import FarLooking, is_network, joined
from weft._watching import visit as _visit
from weft._watching import visit_hosts as _visit_hosts
from weft._watching.verdict import percent
from weft.cli import EXIT
from weft.errors import BadUse as Refused

Looking = _visit.Looking | FarLooking  # looks at a program, or at the hosts of a network
#: the columns by which `--sort` and the key `s` sort
SORTS = ("path", "busy", "reads", "writes", "time", "ops", "since")


@contextlib.contextmanager
def _no_look_is_bad_use() -> Iterator[None]:
    """Turns NoLook into BadUse, which the command line shows in one line."""
    try:
        yield
    except _visit.NoLook as error:
        raise BadUse(str(error)) from None


# --- tables ---------------------------------------------------------------------------------------


def _span(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 0.0005:
        return "now"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"


def _share(share: float) -> str:
    return percent(share) if share >= 0.005 else ""


def _size(n: int) -> str:
    return f"{n / (1 << 20):.0f} MB"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Returns a table as plain text. The first and the last column are aligned left, the others
    right.
    """
    # Columns without an entry are left out.
    kept = [i for i in range(len(headings)) if i == 0 or not rows or any(row[i] for row in rows)]
    headings = [headings[i] for i in kept]
    rows = [[row[i] for i in kept] for row in rows]
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    lines = []
    for row in [headings, *rows]:
        cells = [
            cell.ljust(w) if i in (0, len(row) - 1) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        lines.append(line if width is None else line[:width])
    return "\n".join(lines)


# --- weft ps --------------------------------------------------------------------------------------


def _program(pid: int) -> dict[str, Any]:
    since = _visit.seconds_since_start(pid)
    row: dict[str, Any] = {"pid": pid, "since": since, "program": _command_line(pid)}
    try:
        with _visit.Visit(pid) as visit:
            answer = visit.ask("look", interval=0, most=10_000)
        network = _visit.together(pid, {pid: answer}, [], {})
    except _visit.NoLook as error:
        return {**row, "processes": None, "does": str(error)}
    return {
        **row,
        "program": " ".join(answer["program"]) or row["program"],
        "processes": len(answer["processes"]) + answer["left_out"],
        "does": _does(network),
    }


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()
    return "?"


def _does(network: _visit.Network) -> str:
    """Describes in a few words what the processes of a program do."""
    counts: dict[str, int] = {}
    words = {
        "runs": "run",
        "due": "run",
        "reads": "wait to read",
        "writes": "wait to write",
        "either": "wait to read or write",
        "time": "wait for time",
        "io": "wait for io",
        "barrier": "wait at a barrier",
    }
    for row in network.rows:
        if row.now in words:
            counts[words[row.now]] = counts.get(words[row.now], 0) + 1
    parts = [f"{n} {word}" for word, n in sorted(counts.items(), key=lambda c: -c[1])]
    return ", ".join(parts) or (
        "no network runs" if not network.rows else "waits for its processes"
    )


def ps(as_json: bool) -> int:
    """Prints the programs of this user that can be looked at."""
    with _no_look_is_bad_use():
        pids = _visit.doors()
    rows = [_program(pid) for pid in pids]
    # A program that has ended since the first program was asked is left out.
    rows = [r for r in rows if r["processes"] is not None or not _visit.has_ended(r["pid"])]
    hosts = {row["pid"] for row in rows if _visit.parent_of(row["pid"]) in pids}
    for row in rows:
        row["of"] = _visit.parent_of(row["pid"]) if row["pid"] in hosts else None
    if as_json:
        click.echo(json.dumps(rows))
        return EXIT["ok"]
    if not rows:
        click.echo(f"no Weft program of this user runs (sockets: {_visit.directory()})")
        return EXIT["ok"]
    headings = ("pid", "since", "processes", "program", "what it does")
    cells = [
        (
            str(row["pid"]),
            _span(row["since"]),
            "?" if row["processes"] is None else str(row["processes"]),
            row["program"][:60] if row["of"] is None else f"OS process of {row['of']}",
            row["does"],
        )
        for row in rows
    ]
    click.echo(_table(headings, cells, None))
    return EXIT["ok"]


# --- weft top -------------------------------------------------------------------------------------


def the_only_one() -> int:
    """Returns the pid of the only running program, for a command without a number.

    Raises:
        BadUse: no program runs, or several do.
    """
    with _no_look_is_bad_use():
        pids = _visit.doors()
    roots = [pid for pid in pids if _visit.parent_of(pid) not in pids and pid != os.getpid()]
    if len(roots) == 1:
        return roots[0]
    if not roots:
        raise BadUse(
            f"no Weft program of this user runs (sockets: {_visit.directory()}); start one, or give "
            "the number of its OS process"
        )
    shown = ", ".join(f"{pid} ({_command_line(pid)[:40]})" for pid in roots[:8])
    raise BadUse(f"{len(roots)} Weft programs run; give the number of one: {shown}")


def number_of(word: str | None) -> int:
    """Returns the pid of the OS process that a word on the command line names."""
    if word is None:
        return the_only_one()
    if word.isdecimal() and 0 < int(word) < 1 << 31:
        return int(word)
    with _no_look_is_bad_use():
        named = [pid for pid in _visit.doors() if word in _command_line(pid) and pid != os.getpid()]
    roots = [pid for pid in named if _visit.parent_of(pid) not in named]
    if len(roots) == 1:
        return roots[0]
    if roots:
        raise BadUse(
            f"{len(roots)} programs have '{word}' in their command line: {roots}; give one"
        )
    near = ""
    with contextlib.suppress(_visit.NoLook):
        near = did_you_mean(word, [_command_line(pid) for pid in _visit.doors()])
    raise BadUse(
        f"'{word}' is neither the number of an OS process nor a part of the command line of a Weft program{near}"
    )


_KEYS: dict[str, Callable[[_visit.Row], Any]] = {
    "path": lambda r: (r.path, r.pid),
    "busy": lambda r: -r.part("runs"),
    "reads": lambda r: -r.part("reads", "either"),
    "writes": lambda r: -r.part("writes", "either"),
    "time": lambda r: -r.part("time", "io"),
    "ops": lambda r: -(r.rate or 0),
    "since": lambda r: -r.seconds,
}


def chosen(rows: Sequence[_visit.Row], sort: str, only: str) -> list[_visit.Row]:
    """Returns the rows whose path or place contains `only`, sorted by the column `sort`."""
    found = [row for row in rows if only in row.path or only in row.where]
    return sorted(found, key=lambda row: (_KEYS[sort](row), row.path))


_HEADINGS = (
    "process",
    "busy",
    "CPU",
    "to read",
    "to write",
    "for time",
    "io",
    "ops/s",
    "since",
    "where",
)


def _names(rows: Sequence[_visit.Row], tree: bool) -> list[str]:
    """Returns the names of the rows. In a tree, a name below its parent's contains only the part
    that the row's path adds to the parent's path.
    """
    paths = {row.path for row in rows} if tree else set()
    names = []
    for row in rows:
        parents = [p for p in _parents(row.path) if p in paths]
        names.append(
            "  " * len(parents) + row.path[len(parents[-1]) + 1 :] if parents else row.path
        )
    return names


def _parents(path: str) -> Iterator[str]:
    """Yields the paths above a path: main and main/a for main/a/b."""
    for i, letter in enumerate(path):
        if letter == "/":
            yield path[:i]


def _table_of(rows: Sequence[_visit.Row], tree: bool, here: int) -> list[tuple[str, ...]]:
    return [_cells(row, name, here) for row, name in zip(rows, _names(rows, tree), strict=True)]


def _cells(row: _visit.Row, name: str, here: int) -> tuple[str, ...]:
    since = f"> {_span(row.seconds)}" if row.before else _span(row.seconds)
    return (
        name,
        _share(row.part("runs")),
        "" if row.cpu is None else _share(row.cpu),
        _share(row.part("reads") + row.part("either") / 2),
        _share(row.part("writes") + row.part("either") / 2),
        _share(row.part("time")),
        _share(row.part("io")),
        _rate(row.rate),
        since,
        row.where
        + ("" if row.pid == here else f" in OS process {_visit_hosts.shown(row.pid, row.host)}"),
    )


_CHANNELS = ("channel", "values/s", "depth", "read waits", "write waits", "writers", "readers")


def _channel_cells(pipe: _visit.Pipe) -> tuple[str, ...]:
    return (
        pipe.name,
        _rate(pipe.rate),
        f"{pipe.depth} of {pipe.capacity}" if pipe.capacity else "",
        _share(pipe.reading),
        _share(pipe.writing),
        _ends(pipe.writers),
        _ends(pipe.readers),
    )


def _ends(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:3])
    return f"{shown}, … {len(paths) - 3} more" if len(paths) > 3 else shown


def head(network: _visit.Network, pid: int) -> list[str]:
    """Returns the lines above the tables. The first is the verdict."""
    n = len(network.rows) + network.left_out
    lines = [network.verdict.text]
    for one in network.os_processes:
        cpu = "" if one.cpu is None else f", {percent_of_many(one.cpu)} CPU"
        of = "" if one.pid == pid or one.host else f" of {pid}"
        which = _visit_hosts.shown(one.pid, one.host)
        lines.append(f"OS process {which}{of}: {one.program[:60]}{cpu}, {_size(one.memory)}")
    lines.append(
        f"{n} process{'' if n == 1 else 'es'}, {len(network.pipes)} channel"
        f"{'' if len(network.pipes) == 1 else 's'}, over {network.seconds * 1000:.0f} ms"
    )
    if network.left_out:
        lines.append(f"{network.left_out} of them are not shown: --most shows more")
    return lines + network.silent


def percent_of_many(share: float) -> str:
    return f"{share * 100:.0f} %"


def as_text(
    network: _visit.Network, pid: int, sort: str = "path", only: str = "", width: int | None = None
) -> str:
    rows = chosen(network.rows, sort, only)
    tree = sort == "path" and not only
    parts = ["\n".join(head(network, pid))]
    parts.append(_table(_HEADINGS, _table_of(rows, tree, pid), width))
    pipes = [pipe for pipe in network.pipes if only in pipe.name or not only]
    if pipes:
        parts.append(_table(_CHANNELS, [_channel_cells(pipe) for pipe in pipes], width))
    return "\n\n".join(parts)


def as_dict(network: _visit.Network) -> dict[str, Any]:
    """Returns a look as a dictionary, for `--json` and the page of `weft view`."""
    verdict = network.verdict
    return {
        "verdict": {"kind": verdict.kind, "names": verdict.names, "text": verdict.text},
        "seconds": network.seconds,
        "processes": [vars(row) for row in network.rows],
        "channels": [vars(pipe) for pipe in network.pipes],
        "os_processes": [vars(one) for one in network.os_processes],
        "silent": network.silent,
        "left_out": network.left_out,
    }


def top(
    word: str | None,
    once: bool,
    json_wanted: bool,
    interval: float,
    sort: str,
    only: str,
    most: int,
    keys: str | None = None,
) -> int:
    """Shows what a program or a network's hosts do; on a terminal until the end or a key `q`."""
    with contextlib.ExitStack() as opened, _no_look_is_bad_use():
        looking: Looking
        if is_network(word):
            assert word is not None
            network = opened.enter_context(joined(word, keys))
            looking = opened.enter_context(FarLooking(network))
        else:
            looking = opened.enter_context(_visit.Looking(number_of(word)))
        pid = looking.pid
        if json_wanted:
            click.echo(json.dumps(as_dict(looking.look(interval, most))))
        elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            click.echo(as_text(looking.look(interval, most), pid, sort, only))
        else:
            _live(looking, max(interval, 0.25), sort, only, most)
    return EXIT["ok"]


class Keys:
    """The choices that the user has made with keys. HELP lists the keys."""

    HELP = "q quits · space pauses · s sorts · / filters · c channels"

    def __init__(self, sort: str, only: str) -> None:
        self.sort = sort
        self.only = only
        self.paused = False
        self.channels = True
        self.typing = False
        self.quits = False

    def press(self, key: str) -> None:
        if self.typing:
            if key in "\r\n\x1b":
                self.typing = False
                self.only = "" if key == "\x1b" else self.only
            elif key in "\x7f\b":
                self.only = self.only[:-1]
            elif key.isprintable():
                self.only += key
            return
        match key:
            case "q" | "\x03":
                self.quits = True
            case " " | "p":
                self.paused = not self.paused
            case "s":
                self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
            case "c":
                self.channels = not self.channels
            case "/":
                self.typing, self.only = True, ""
            case "\x1b":
                self.only = ""

    def line(self) -> str:
        parts = [f"by {self.sort}"]
        if self.typing or self.only:
            parts.append(f"only: {self.only}{'_' if self.typing else ''}")
        if self.paused:
            parts.append("PAUSED")
        return f"{self.HELP}    {' · '.join(parts)}"


@contextlib.contextmanager
def _single_keys() -> Iterator[None]:
    """Makes the terminal deliver keys one by one, without an echo, while the block runs."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _live(looking: Looking, interval: float, sort: str, only: str, most: int) -> None:
    keys = Keys(sort, only)
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        _plain_live(looking, interval, keys, most)
        return
    with _single_keys(), Live(screen=True, auto_refresh=False) as live:
        _drive(looking, interval, keys, most, lambda s: live.update(Text(s), refresh=True))


def _plain_live(looking: Looking, interval: float, keys: Keys, most: int) -> None:
    """Shows looks without `rich`: for each look the screen is cleared and written anew."""
    with _single_keys():
        _drive(looking, interval, keys, most, lambda s: click.echo(f"\x1b[2J\x1b[H{s}"))


def screen(network: _visit.Network, pid: int, keys: Keys, width: int, height: int) -> str:
    """Returns as much of the tables as fits on a screen of this size."""
    above = [line[:width] for line in head(network, pid)]
    rows = chosen(network.rows, keys.sort, keys.only)
    pipes = [p for p in network.pipes if not keys.only or keys.only in p.name]
    tree = keys.sort == "path" and not keys.only
    room = max(height - len(above) - 5, 4)
    for_pipes = min(len(pipes), max(room // 3, 3)) if keys.channels and pipes else 0
    for_rows = room - (for_pipes + 2 if for_pipes else 0)
    parts = [*above, ""]
    parts += _cut(_HEADINGS, _table_of(rows, tree, pid), for_rows, width)
    if for_pipes:
        parts += ["", *_cut(_CHANNELS, [_channel_cells(p) for p in pipes], for_pipes, width)]
    return "\n".join([*parts, "", keys.line()[:width]])


def _cut(
    headings: Sequence[str], rows: Sequence[Sequence[str]], room: int, width: int
) -> list[str]:
    shown = rows if len(rows) <= room else rows[: max(room - 1, 0)]
    lines = _table(headings, shown, width).split("\n")
    if len(shown) < len(rows):
        lines.append(f"… and {len(rows) - len(shown)} more")
    return lines


def _drive(looking: Looking, interval: float, keys: Keys, most: int, show: Any) -> None:
    network = None
    while not keys.quits:
        if network is None or not keys.paused:
            network = looking.look(interval if network is not None else 0.1, most)
        size = shutil.get_terminal_size()
        show(screen(network, looking.pid, keys, size.columns, size.lines - 1))
        wait = 0.2 if keys.paused or keys.typing else 0.0
        while select.select([sys.stdin], [], [], wait)[0]:
            key = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
            if not key:
                return
            keys.press(key)
            wait = 0.0
            if keys.quits:
                return
            show(screen(network, looking.pid, keys, size.columns, size.lines - 1))


# --- weft graph -----------------------------------------------------------------------------------


def graph(
    backend: str | None, kind: str | None, output: str | None, file: str, args: Sequence[str]
) -> int:
    """Draws the network of a trace, of a program that is already running, or of a program that is
    run for the drawing.
    """
    by_name = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid"}
    kind = kind or by_name.get(Path(output or "").suffix, "dot")
    if kind not in _graph.FORMATS:
        raise BadUse(
            f"--format {kind}: it must be one of {', '.join(_graph.FORMATS)}{did_you_mean(kind, _graph.FORMATS)}"
        )
    status: int = EXIT["ok"]
    if _is_trace(file):
        text = _drawn(file, kind)
    elif (pid := _running(file)) is not None:
        if args or backend:
            raise BadUse(f"{file} runs already: --on and arguments are for a program in a file")
        with _no_look_is_bad_use(), _visit.Looking(pid) as looking:
            # a look knows the channel at which a thread waits only if another look preceded it
            looking.look(0.05)
            text = _graph.as_text(kind, _graph.looked(looking.look(0.5, _DRAWN)))
    else:
        with tempfile.TemporaryDirectory(prefix="weft") as folder:
            trace = str(Path(folder, "trace.jsonl"))
            # Without OUT, stdout is for the drawing, so the program's output goes to stderr.
            with contextlib.nullcontext() if output else contextlib.redirect_stdout(sys.stderr):
                status = run_program(file, args, backend, trace)
            text = _drawn(trace, kind)
    if output:
        write_text(output, text)
    else:
        click.echo(text, nl=False)
    return status


def _is_trace(file: str) -> bool:
    with contextlib.suppress(OSError), Path(file).open("rb") as f:
        return f.read(16).startswith((b'{"weft_trace":', b"\x89"))
    return False


#: the largest number of processes to ask for; it is large, since a drawing folds processes
_DRAWN = 10_000


def _running(word: str) -> int | None:
    """Returns the running program that `word` names, by its pid or by a word of its command line.
    Returns None if there is none, or if `word` is the name of a file.
    """
    if not Path(word).exists():
        if word.isdecimal():
            return number_of(word)
        with contextlib.suppress(_visit.NoLook):
            if any(word in _command_line(pid) for pid in _visit.doors() if pid != os.getpid()):
                return number_of(word)
    with contextlib.suppress(OSError), Path(word).open("rb") as f:
        if f.read(4) == b"\x7fELF":
            raise BadUse(
                f"{word} is a compiled program: start it, and draw it while it runs (weft graph PID)"
            )
    return None


def _drawn(trace: str, kind: str) -> str:
    try:
        text, fault = _graph.of_trace(trace, kind)
    except Refused as error:
        raise BadUse(str(error)) from None
    if fault:
        click.echo(f"weft: {fault}", err=True)
    return text


# --- as commands ----------------------------------------------------------------------------------


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="Print the list, as JSON, on stdout.")
def ps_command(as_json: bool) -> int:
    """List the Weft programs that run, and what their processes do.

    A program needs nothing to be listed. It is not listed if it was started with WEFT_INSPECT=0, or
    has no runtime directory.
    """
    return ps(as_json)


@click.command("top")
@click.argument("program", required=False)
@click.option("--once", is_flag=True, help="Look once, print it and exit.")
@click.option("--json", "as_json", is_flag=True, help="Look once, print it as JSON and exit.")
@click.option(
    "--interval",
    type=float,
    help="How many seconds a look takes (default: 0.1 if it looks once, else 1).",
)
@click.option(
    "--sort", default="path", help="Sort by path, busy, reads, writes, time, ops or since."
)
@click.option(
    "--only", default="", metavar="TEXT", help="Show only processes and channels with TEXT."
)
@click.option("--most", default=2_000, help="The most processes to ask for.")
@click.option("--keys", metavar="FOLDER", help="Of a network: its keys, as for weft net ls.")
def top_command(
    program: str | None,
    once: bool,
    as_json: bool,
    interval: float | None,
    sort: str,
    only: str,
    most: int,
    keys: str | None,
) -> int:
    """Show the network of a program that runs: which processes are busy, which wait for which, and
    the bottleneck.

    PROGRAM is the number of an OS process, or a word of its command line. It is not needed if only
    one program runs. It may be a network, nats://HOST:PORT: then what its hosts run is shown.

    \b
    Examples:
      weft top
      weft top shop.py --sort busy
      weft top 4711 --once
      weft top 4711 --json --interval 1
      weft top nats://127.0.0.1:4222
    """
    if sort not in SORTS:
        raise BadUse(
            f"--sort {sort}: it must be one of {', '.join(SORTS)}{did_you_mean(sort, SORTS)}"
        )
    longest = 60
    interval = interval if interval is not None else 0.1 if once or as_json else 1.0
    if not 0 < interval <= longest:
        raise BadUse(
            f"--interval {interval:g}: it must be more than 0 and at most {longest} seconds"
        )
    if most < 1:
        raise BadUse(f"--most {most}: it must be 1 or more")
    return top(program, once, as_json, interval, sort, only, most, keys)


@click.command(
    "graph",
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
    },
)
@click.option("--on", "backend", metavar="BACKEND", help="As for weft run.")
@click.option("--format", "kind", help="svg, dot or mermaid (default: by the name of OUT, or dot).")
@click.option("-o", "--output", metavar="OUT", help="The file to write (default: stdout).")
@click.argument("file")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def graph_command(
    backend: str | None, kind: str | None, output: str | None, file: str, args: tuple[str, ...]
) -> int:
    """Run the program FILE, and draw its network: which process passes values to which, by which
    channel.

    FILE may be a trace (OUT of weft run --trace or --flight). It may also name a program that runs,
    by its number or a word, as for weft top. In both cases nothing is run.

    \b
    Examples:
      weft graph -o hello.svg hello.py
      weft graph --format mermaid hello.py
      weft graph -o hello.dot out.jsonl
      weft graph -o shop.svg 4711
    """
    return graph(backend, kind, output, file, args)


COMMANDS: dict[str, click.Command] = {
    "graph": graph_command,
    "ps": ps_command,
    "top": top_command,
}
