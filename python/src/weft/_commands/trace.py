"""`weft trace` summarises a trace and draws it; `weft dump` asks a running program for the file of
its flight recorder.

Invariants: those of _commands/main.py. The events of a flight recorder's file are never all in
memory at once, except for the picture, which contains few events.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from weft._commands.bad_use import BadUse
from weft._commands.main import write_text
from weft.cli import EXIT
from weft.errors import BadUse as Refused

if TYPE_CHECKING:
    from weft._watching import flight_read as _flight_read
    from weft._watching import trace as _trace

_PICTURED = 4_000  #: the maximum number of lines of a recorded trace in the picture


@contextlib.contextmanager
def _refused_is_bad_use() -> Iterator[None]:
    try:
        yield
    except Refused as error:
        raise BadUse(str(error)) from None


@contextlib.contextmanager
def _written(path: str) -> Iterator[IO[bytes]]:
    try:
        with Path(path).open("wb") as file:
            yield file
    except OSError as error:
        raise BadUse(f"cannot write {path}: {error.strerror}") from None


def _write_lines(path: str, lines: Iterable[dict[str, Any]], version: str) -> None:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    head = {"weft_trace": 1, "version": version, "clock": "steady", "unit": "ns"}
    with _written(path) as file:
        for line in itertools.chain([head], lines):
            file.write(encode(line).encode("utf-8", "backslashreplace") + b"\n")


def _recorded(
    files: Sequence[str],
    as_json: bool,
    outputs: dict[str, str | None],
) -> None:
    from weft._watching import flight_read as _flight_read

    recorded = _flight_read.Recorded(files)
    makers: dict[str, Callable[[str], None]] = {
        "--jsonl": lambda out: _write_lines(out, recorded.lines(), recorded.heads[0][3]),
        "--chrome": lambda out: _write_chrome(out, recorded),
        "--perfetto": lambda out: _write_perfetto(out, recorded),
        "--picture": lambda out: _write_picture(out, recorded),
    }
    for option, make in makers.items():
        if (out := outputs[option]) is not None:
            make(out)
    summary = recorded.summary()
    critical = recorded.critical()
    dropped = sum(head[4] for head in recorded.heads)
    if as_json:
        rows = _rows(summary)
        rows["critical"] = {
            "text": critical.text(),
            "seconds": critical.seconds,
            "steps": [vars(step) for step in critical.steps],
            "hand_overs": critical.hands,
        }
        more_rows = {"dropped": dropped, "fault": recorded.fault, "clocks": recorded.clocks()}
        click.echo(json.dumps(rows | more_rows))
        return
    more = [critical.text(), *recorded.clocks()]
    if dropped:
        more.append(f"{dropped} older events had been overwritten: a larger ring keeps more")
    if recorded.fault:
        more.append(recorded.fault)
    _print_summary(summary._replace(cut_off=False), more)


def _write_chrome(path: str, recorded: _flight_read.Recorded) -> None:
    from weft._watching import trace as _trace

    with _written(path) as file:
        file.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        for i, event in enumerate(_trace.chrome_events(recorded.lines())):
            file.write((b",\n" if i else b"\n") + json.dumps(event).encode())
        file.write(b"\n]}\n")


def _write_perfetto(path: str, recorded: _flight_read.Recorded) -> None:
    from weft._watching import perfetto as _perfetto

    with _written(path) as file:
        file.writelines(_perfetto.packets(recorded))


def _write_picture(path: str, recorded: _flight_read.Recorded) -> None:
    from weft._watching import picture as _picture

    lines = list(itertools.islice(recorded.lines(), _PICTURED))
    lines.sort(key=lambda line: int(line["t"]))
    write_text(path, _picture.svg(lines))


def _lines_of_json(file: str, as_json: bool, outputs: dict[str, str | None]) -> None:
    from weft._watching import picture as _picture
    from weft._watching import trace as _trace

    for option in ("--perfetto", "--jsonl"):
        if outputs[option] is not None:
            raise BadUse(
                f"{option} is for files of the flight recorder (weft run --flight OUT), and {file} "
                "is a trace of JSON lines: take --chrome, which Perfetto shows too"
            )
    events, cut_off = _trace.read(file)
    if (out := outputs["--chrome"]) is not None:
        write_text(out, json.dumps(_trace.chrome(events)))
    if (out := outputs["--picture"]) is not None:
        write_text(out, _picture.svg(events))
    summary = _trace.summarise(events, cut_off)
    if as_json:
        click.echo(json.dumps(_rows(summary)))
    else:
        _print_summary(summary, [])


def _rows(summary: _trace.Summary) -> dict[str, Any]:
    rows = {k: [r._asdict() for r in getattr(summary, k)] for k in ("processes", "channels")}
    return summary._asdict() | rows


_SHOWN = 200  #: the maximum number of rows of a table


def _print_summary(summary: _trace.Summary, more: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(highlight=False, width=None if terminal else 160)
    for title, rows in (("processes", summary.processes), ("channels", summary.channels)):
        table = Table(title=title)
        table.add_column(title, overflow="fold")
        headings = ("operations", "withdrawn", "ended", "waited to read", "to write", "in all")
        for heading in headings:
            table.add_column(heading, justify="right")
        for row in rows[:_SHOWN]:
            counts = (row.operations, row.withdrawn, row.ended)
            times = (row.waited_reading, row.waited_writing, row.waited)
            table.add_row(row.name, *map(str, counts), *(f"{s:.6f} s" for s in times))
        console.print(table)
        if len(rows) > _SHOWN:
            console.print(f"… and {len(rows) - _SHOWN} more {title}: --json has all")
    console.print(f"{summary.events} events in {summary.seconds:.6f} s")
    console.print(f"where the time goes: {summary.verdict}")
    for line in more:
        console.print(line)
    if summary.unfinished:
        shown = summary.unfinished[:_SHOWN]
        left = len(summary.unfinished) - len(shown)
        console.print(f"had not ended: {', '.join(shown)}{f', … {left} more' if left else ''}")
    for pid in summary.lost:
        console.print(f"OS process {pid} was lost, with what it had not yet sent")
    for where in summary.unseen:
        console.print(f"{where} ran processes: what they did there is not in this trace")
    if summary.cut_off:
        console.print("the last line is cut off: the program was killed")


@click.command("trace")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the summary, as JSON, on stdout.")
@click.option(
    "--chrome", metavar="OUT", help="Write OUT in the Trace Event Format, a picture for Perfetto."
)
@click.option("--perfetto", metavar="OUT", help="Write OUT in Perfetto's own format, with arrows.")
@click.option("--picture", metavar="OUT", help="Write OUT, a picture (SVG) of who met whom.")
@click.option("--jsonl", metavar="OUT", help="Write OUT, the events as JSON lines.")
def trace_command(
    files: tuple[str, ...],
    as_json: bool,
    chrome: str | None,
    perfetto: str | None,
    picture: str | None,
    jsonl: str | None,
) -> int:
    """Summarise the trace FILE: how much each process did, where time was lost in waiting, and
    which process is the bottleneck.

    FILE was written by weft run --trace, or by the flight recorder (weft run --flight, WEFT_FLIGHT,
    a board). Several files of the flight recorder are read as one trace.

    \b
    Examples:
      weft run hello.py --trace out.jsonl
      weft trace out.jsonl
      weft trace out.jsonl --picture out.svg    then open out.svg in a browser
      weft trace out.jsonl --chrome out.json    then open out.json in Perfetto
      weft run hello.py --flight out.flight
      weft trace out.flight --perfetto out.pftrace
    """
    from weft._watching import flight_read as _flight_read

    outputs = {
        "--chrome": chrome,
        "--perfetto": perfetto,
        "--picture": picture,
        "--jsonl": jsonl,
    }
    with _refused_is_bad_use():
        if len(files) == 1 and not _flight_read.is_binary(files[0]):
            _lines_of_json(files[0], as_json, outputs)
        else:
            _recorded(files, as_json, outputs)
    return EXIT["ok"]


@click.command("dump")
@click.argument("program", required=False)
@click.option("-o", "--output", metavar="OUT", help="The file (default: weft-PID.flight, here).")
@click.option("--keys", metavar="FOLDER", help="Of a network: its keys, as for weft net ls.")
def dump_command(program: str | None, output: str | None, keys: str | None) -> int:
    """Write the last events of a program that runs to a file. The program goes on.

    The program has a flight recorder if it was started with WEFT_FLIGHT=16M or weft run --flight.
    PROGRAM is the number of an OS process, or a word of its command line; it is not needed if only
    one program runs. PROGRAM may also be a network, nats://HOST:PORT: then the files of all its
    hosts are fetched, and their times are brought to this machine's clock; OUT is a folder.

    \b
    Examples:
      weft dump
      weft dump 4711 -o shop.flight
      weft dump nats://127.0.0.1:4222 -o recorded/
    """
    from weft._commands import see as _see
    from weft._commands import see_hosts as _see_hosts
    from weft._watching import visit as _visit

    if _see_hosts.is_network(program):
        assert program is not None
        return _dump_network(program, keys, Path(output or "."))
    pid = _see.number_of(program)
    out = str(Path.cwd() / (output or f"weft-{pid}.flight"))
    try:
        with _visit.Visit(pid) as visit:
            visit.ask("flight", path=out)
    except _visit.NoLook as error:
        raise BadUse(str(error)) from None
    click.echo(f"the last events are in {out}: weft trace {out}")
    return EXIT["ok"]


def _dump_network(server: str, keys: str | None, folder: Path) -> int:
    from weft._commands import see_hosts as _see_hosts

    made: list[Path] = []
    with _see_hosts.observers(server, keys) as found:
        for observer in found:
            for pid, data in observer.files():
                if isinstance(data, str):
                    click.echo(f"weft: host {observer.name}: {data}", err=True)
                    continue
                path = folder / f"{observer.name}-{pid}.flight"
                try:
                    folder.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                except OSError as error:
                    raise BadUse(f"cannot write {path}: {error.strerror}") from None
                made.append(path)
    if not made:
        raise BadUse(
            "no host of this network has a flight recorder: start weft host with WEFT_FLIGHT=16M"
        )
    click.echo(f"the last events are in {len(made)} files: weft trace {' '.join(map(str, made))}")
    return EXIT["ok"]


COMMANDS: dict[str, click.Command] = {"dump": dump_command, "trace": trace_command}
