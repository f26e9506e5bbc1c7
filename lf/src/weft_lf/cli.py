"""`weft lf`: build, run, check and draw Lingua Franca programs.

Invariants
- An error in a program goes to stderr, with its line and a caret, or to stdout as JSON with
  `--json`; the exit status is 1. A file that cannot be read or written gives one line on stderr and
  status 1.
- Bad use of the command gives exit status 2.
- The program that `run` has built takes the place of this process: the program receives the
  signals, and the exit status is the program's.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_lf import lfc
from weft_lf.errors import LfError, Problem, Span, as_json, fail, rendered
from weft_lf.model import Model


def model_of(path: Path, given: argparse.Namespace | None = None) -> Model:
    """Returns the model of a program. Options of the command line override properties of its target
    block.
    """
    from weft_lf.elaborate import elaborate
    from weft_lf.load import load
    from weft_lf.parser import parse_kept

    program = load(path, parse=parse_kept)
    program.warnings += lfc.configure(program.config, given)
    return elaborate(program)


def _print_problems(problems: Sequence[Problem]) -> None:
    for problem in problems:
        print(rendered(problem), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weft lf", description="Lingua Franca programs (target C) on weft_mcu's reactors."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="compile: C in src-gen/, the program in bin/")
    run = commands.add_parser(
        "run", help="compile for the host and run; arguments after FILE go to the program"
    )
    check = commands.add_parser("check", help="report errors and warnings, compile nothing")
    graph = commands.add_parser("graph", help="draw the reactors, as an SVG (graphviz) or a page")
    oracle = commands.add_parser("oracle", help="run in the tests' interpreter, print the trace")
    test = commands.add_parser(
        "test", help="build and run every .lf of a folder, print a table by tier"
    )
    commands.add_parser("serve", help="serve an editor, by the Language Server Protocol")
    lfc.add_sources(build)
    _add_format(commands.add_parser("format", help="lay .lf files out: indentation and spaces"))
    for command in (run, check, graph, oracle):
        command.add_argument("file", type=Path, metavar="FILE.lf")
    for command in (build, run):
        command.add_argument(
            "--no-table",
            dest="table",
            action="store_false",
            help="use a queue of timers even where a table of all times is possible",
        )
        command.add_argument(
            "--trace",
            action="store_true",
            help="let the program write its trace to the file that WEFT_RX_TRACE names",
        )
        lfc.add_options(command)
    for command in (build, check):
        command.add_argument(
            "--target",
            choices=("host", "rp2040", "an521"),
            default="",
            help="default: the program's platform, else host",
        )
    build.add_argument(
        "--flash", action="store_true", help="rp2040: build an image for flash, not for SRAM"
    )
    build.add_argument("-n", "--no-compile", action="store_true", help="write only the C")
    build.add_argument(
        "-o",
        "--output-path",
        type=Path,
        metavar="FOLDER",
        help="where src-gen/ and bin/ go (default: the project)",
    )
    run.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="-o 5 sec, -f true, -k true, -w 2, …"
    )
    _add_check(check)
    _add_graph(graph)
    _add_test(test)
    return parser


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument(
        "--json", action="store_true", help="problems as JSON on stdout, for editors"
    )
    check.add_argument(
        "--no-bodies",
        dest="bodies",
        action="store_false",
        help="do not check the C of the bodies (quicker)",
    )


def _add_graph(graph: argparse.ArgumentParser) -> None:
    graph.add_argument(
        "-o", "--output", type=Path, help="the file to write, .svg or .dot (default: FILE.svg)"
    )
    graph.add_argument(
        "--html",
        action="store_true",
        help="a page for a browser (default: FILE.html): reactors fold, a click shows the source",
    )


def _add_format(layout: argparse.ArgumentParser) -> None:
    layout.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE.lf",
        help="files, or folders with .lf files; - reads stdin and writes stdout",
    )
    layout.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if a file would change"
    )


def _add_test(test: argparse.ArgumentParser) -> None:
    test.add_argument("folder", type=Path)
    test.add_argument(
        "words",
        nargs="*",
        help="more folders; or words: run only files whose path contains one of these",
    )
    test.add_argument("--build", action="store_true", help="only build, each for its own platform")
    test.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="stop a program after this time, when one without a timeout may still run"
        " (default: 300 s for all)",
    )
    test.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time (default: 2)")
    test.add_argument("--list", type=Path, help="a file that lists the tests to run")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        if given.command == "build":
            line = sys.argv[1:] if arguments is None else arguments
            given = lfc.completed(parser, given, line)
            status = max(
                _run_command(argparse.Namespace(**{**vars(given), "file": f})) for f in given.files
            )
        else:
            status = _run_command(given)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except OSError as error:
        # EPIPE means that the reader of the output has closed the pipe.
        if error.errno != errno.EPIPE:
            what = error.filename or "the output could not be written"
            with contextlib.suppress(OSError):
                print(f"weft lf: {what}: {error.strerror}", file=sys.stderr)
        _drop_output()
        return 1
    except KeyboardInterrupt:
        return 130


def _run_command(given: argparse.Namespace) -> int:
    """Executes one command and prints errors in a program. Returns the exit status."""
    try:
        return _do(given)
    except LfError as error:
        if getattr(given, "json", False):
            print(as_json(error.problems))
        else:
            _print_problems(error.problems)
        return 1


def _drop_output() -> None:
    """Discards output that cannot be written: otherwise the interpreter would try to write the
    output again as it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, stream.fileno())
                os.close(nothing)


def _replace_process(program: Path, arguments: Sequence[str]) -> int:
    """Replaces this process with the program."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    # Python ignores these signals; the program must not.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(program, [str(program), *arguments])


def _test(given: argparse.Namespace) -> int:
    from weft_lf.conform import LIMIT, Way, conform

    folders = [given.folder, *(Path(w) for w in given.words if Path(w).is_dir())]
    words = [w for w in given.words if not Path(w).is_dir()]
    way = Way(given.limit or LIMIT, given.limit is not None, given.build, given.jobs)
    return conform(folders, words, given.list, way)


def _check(model: Model, given: argparse.Namespace) -> int:
    from weft_lf.build import check_bodies, target_of
    from weft_lf.ticks import check, tick_of

    tick = tick_of(model.program.config, target_of(model, given.target))
    model.program.config.check_for(target_of(model, given.target))
    warnings = [*model.program.warnings, *check(model, tick)]
    bodies = check_bodies(model, given.target) if given.bodies else []
    if bodies is None and not given.json:
        text = "the bodies were not looked at: that takes a build"
        print(f"weft lf: {given.file}: {text}", file=sys.stderr)
    warnings += bodies or []
    if any(p.severity == "error" for p in warnings):
        raise LfError(warnings)
    if given.json:
        print(as_json(warnings))
    else:
        _print_problems(warnings)
    return 0


def _do(given: argparse.Namespace) -> int:
    if given.command == "test":
        return _test(given)
    if given.command == "serve":
        from weft_lf.server import serve

        return serve(sys.stdin.buffer, sys.stdout.buffer)
    if given.command == "format":
        return _format(given.files, given.check)
    if given.command == "graph" and given.html:
        return _page(given.file, given.output)
    model = model_of(given.file, given)
    if given.command == "check":
        return _check(model, given)
    _print_problems(model.program.warnings)
    if given.command == "graph":
        from weft_lf.graph import draw

        print(draw(model, given.output or given.file.with_suffix(".svg")))
        return 0
    if given.command == "oracle":
        return _oracle(model)
    from weft_lf.build import Wanted, build
    from weft_lf.device import refuse_to_run

    if given.command == "build":
        wanted = Wanted(
            given.target,
            given.trace,
            given.flash,
            not given.no_compile,
            table=given.table,
            output=given.output_path,
            clean=given.clean,
            hierarchical=given.hierarchical_bin,
            quiet=given.quiet,
        )
        built = build(model, wanted)
        _print_problems(built.warnings)
        print(built.program or built.source)
        return 0
    refuse_to_run(model)
    wanted = Wanted("host", given.trace, table=given.table, clean=given.clean, quiet=given.quiet)
    built = build(model, wanted)
    _print_problems(built.warnings)
    assert built.program is not None
    return _replace_process(built.program, given.arguments)


def _page(path: Path, output: Path | None) -> int:
    """Writes the page that shows a program. A causality loop is shown too, and then raised."""
    from weft_lf.drawing import draw_page
    from weft_lf.order import Loop

    made: Model | Loop
    try:
        made = model_of(path)
        _print_problems(made.program.warnings)
    except Loop as loop:
        made = loop
    print(draw_page(made, output or path.with_suffix(".html")))
    if isinstance(made, Loop):
        raise made
    return 0


def _format(paths: Sequence[Path], check: bool) -> int:
    """Lays files out. A file with an error stays as it is, and the others are laid out."""
    from weft_lf.layouter import laid_out

    status = 0
    files = [f for p in paths for f in (sorted(p.rglob("*.lf")) if p.is_dir() else [p])]
    for path in files:
        piped = str(path) == "-"
        data = sys.stdin.buffer.read() if piped else path.read_bytes()
        mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        name = "stdin" if piped else str(path)
        try:
            try:
                text = data[len(mark) :].decode()
            except UnicodeDecodeError:
                raise fail(Span(name), "this is not text in UTF-8") from None
            lines = "\r\n" if "\r\n" in text else "\n"
            found = laid_out(text.replace("\r\n", "\n"), name).replace("\n", lines)
        except LfError as error:
            _print_problems(error.problems)
            status = 1
            continue
        made = mark + found.encode()
        if check:
            if made != data:
                print(name)
                status = 1
        elif piped:
            sys.stdout.buffer.write(made)
        elif made != data:
            path.write_bytes(made)
    return status


def _oracle(model: Model) -> int:
    from weft_lf.minic import Unsupported
    from weft_lf.oracle import Oracle

    try:
        trace = Oracle(model).run()
    except (Unsupported, ZeroDivisionError, IndexError, RecursionError) as error:
        text = f"the interpreter of the tests cannot run this: {error}"
        hint = "it knows a small part of C; 'weft lf run' compiles the program"
        raise fail(Span(str(model.program.path)), text, hint) from None
    for fired in trace:
        print(fired.time, fired.microstep, fired.name + "!" * fired.missed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
