"""The commands `weft run`, `weft ps`, `weft top`, `weft view`, `weft graph`, `weft trace`, `weft
dump`, `weft bench`, `weft build`, `weft check`, `weft portable`, `weft lf`, `weft net`, and `weft
--version`.

Invariants
- If the user has made a mistake, one line on stderr says what to do, with exit status 2, before
  anything runs.
- The exit status says how the command ended: see EXIT.
The invariants of _commands/program.py hold too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import click

from weft._commands.bad_use import BadUse, did_you_mean
from weft._commands.program import BACKENDS, run_program
from weft.cli import EXIT

EXIT_HELP = """\b
Exit status:
  0    the program ended well
  1    the program failed (an exception; its traceback is shown)
  2    bad use: the one line on stderr says what to do
  3    deadlock: the report names every process and the knot
  130  stopped by Ctrl-C; stderr says where each process was
A program that calls sys.exit(n) ends with n.
"""


# --- the commands ---------------------------------------------------------------------------------


class _Commands(click.Group):
    """A group of commands that suggests the nearest command when the user gives a wrong name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            if not hint and args[0].endswith(".py"):
                hint = f"; did you mean 'weft run {args[0]}'?"
            where = f"; {ctx.command_path} --help lists them"
            raise BadUse(f"there is no command '{args[0]}'{hint or where}")
        return super().resolve_command(ctx, args)


class _Main(_Commands):
    """The command `weft`. `weft host` is short for `weft net host`. `weft host` and `weft up` need
    the packages that `weft net` needs; `weft --help` lists both without these packages.
    """

    OF_NET: ClassVar = {
        "host": "Be a host: run processes here for programs elsewhere.",
        "up": "Start hosts on many machines, and run a program there.",
    }
    ELSEWHERE: ClassVar = {
        "check": "Run a network in one order after the other, and find one that fails.",
        "dump": "Write the last events of a program that runs to a file.",
        "graph": "Run a program, and draw its network.",
        "portable": "Say whether a file runs on CPython and on MicroPython, and why not.",
        "ps": "List the Weft programs that run, and what their processes do.",
        "top": "Show the network of a program that runs, and its bottleneck.",
        "trace": "Say what a trace says: who did how much, and where time was lost in waiting.",
        "view": "Show it as a page in the browser.",
        **OF_NET,
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.ELSEWHERE])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = {
            name: command.get_short_help_str(formatter.width - 10)
            for name, command in self.commands.items()
        }
        with formatter.section("Commands"):
            formatter.write_dl(sorted({**own, **self.ELSEWHERE}.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "host":
            return net_group.get_command(ctx, cmd_name)
        if cmd_name == "up":
            net_group.list_commands(ctx)  # raises an error that says what is missing
            from weft._commands import up as _commands_up

            return _commands_up.up
        if cmd_name == "check":
            from weft._commands import check as _commands_check

            return _commands_check.check_command
        if cmd_name == "portable":
            from weft._commands import portable as _commands_portable

            return _commands_portable.portable_command
        if cmd_name in ("dump", "trace"):
            from weft._commands import trace as _commands_trace

            return _commands_trace.COMMANDS[cmd_name]
        if cmd_name == "view":
            from weft._commands import view as _commands_view

            return _commands_view.view_command
        if cmd_name in self.ELSEWHERE:
            from weft._commands import see as _see

            return _see.COMMANDS[cmd_name]
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=_Main,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with:  weft run FILE    or, without a file at hand:  weft bench",
)
@click.option("--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def weft_command(ctx: click.Context, version: bool) -> None:
    """Weft: processes and channels that run everywhere.

    A program is written once, with `import weft`; the backend that runs it (coroutines, threads,
    greenlets or processes) is chosen here.
    """
    if version:
        import weft

        click.echo(f"weft {weft.__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@weft_command.command(
    "run",
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
    },
    epilog=EXIT_HELP,
)
@click.option(
    "--on",
    "backend",
    metavar="BACKEND",
    help="coroutines, threads, greenlets or processes (default: $WEFT_BACKEND, or else coroutines).",
)
@click.option(
    "--trace", metavar="OUT", help="Write what happens to the file OUT (see: weft trace)."
)
@click.option(
    "--flight",
    metavar="OUT",
    help="Keep the last events, and write them to OUT when the program ends (WEFT_FLIGHT: how much).",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Name on stderr each process that the end of a channel left, and each guard that fell silent.",
)
@click.argument("file")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run_command(
    backend: str | None,
    trace: str | None,
    flight: str | None,
    verbose: bool,
    file: str,
    args: tuple[str, ...],
) -> int:
    """Run the Python program FILE on a backend.

    \b
    Examples:
      weft run hello.py
      weft run hello.py --on threads
      weft run --on threads wordcount.py --top 5 text.txt
      weft run hello.py --trace out.jsonl
      weft run hello.py --flight out.flight
      weft run hello.py --verbose

    FILE runs as `python FILE ARGS…` would, with the backend chosen before its first line. --on,
    --trace and --flight may stand before FILE or among ARGS, --verbose before FILE; everything else
    after FILE, also --help, is passed to FILE. After a lone -- everything is passed to FILE.

    A program written with `await` that imports `weft` and no event loop (asyncio, trio, …) runs on the others too: its
    `async` and `await` are left out when it is read. Write `from weft.coroutines import …` to keep them.

    Ctrl-C cancels every process, lets it clean up, and says where each one was.
    """
    given = {"--on": backend, "--trace": trace, "--flight": flight}
    args = _take_options(given, args)
    return run_program(file, args, given["--on"], given["--trace"], verbose, given["--flight"])


_NEEDS = {
    "--on": f"a backend after it: {', '.join(BACKENDS)}",
    "--trace": "a file after it",
    "--flight": "a file after it",
}


def _take_options(given: dict[str, str | None], args: Sequence[str]) -> tuple[str, ...]:
    """Moves Weft's own options, `--on BACKEND` and `--on=BACKEND` (also `--trace`, `--flight`), from the
    arguments after FILE into `given`. Returns the arguments that are left.
    """
    rest: list[str] = []
    left = iter(args)
    for word in left:
        option, equals, value = word.partition("=")
        if word == "--":
            rest.extend(left)
        elif option not in given:
            rest.append(word)
        elif equals:
            given[option] = value
        else:
            given[option] = next(left, None)
            if given[option] is None:
                raise BadUse(f"{option} needs {_NEEDS[option]}")
    return tuple(rest)


def write_text(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadUse(f"cannot write {path}: {error.strerror}") from None


@weft_command.command(
    "bench",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)
@click.argument("name", required=False)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def bench_command(name: str | None, as_json: bool) -> int:
    """Measure Weft against its peers.

    \b
    Examples:
      weft bench                 all benches of this checkout; elsewhere CommsTime against asyncio.Queue
      weft bench py-commstime    one of them (in a checkout)
      weft bench commstime       the built-in one, anywhere

    In a checkout of Weft (or below it) this is `./run bench`; its definitions and
    targets are in bench/targets.
    """
    from weft._commands import bench as _bench

    checkout = find_checkout(Path.cwd())
    if checkout and name != _bench.NAME:
        command = [str(checkout / "run"), "bench"]
        command += [name] if name else []
        return _bench.pass_on(command + (["--json"] if as_json else []))
    if name not in (None, _bench.NAME):
        hint = did_you_mean(str(name), [_bench.NAME]) or f"; there is '{_bench.NAME}'"
        raise BadUse(f"there is no bench '{name}' outside a checkout of Weft{hint}")
    _bench.main(as_json)
    return EXIT["ok"]


@weft_command.command(
    "lf",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def lf_command(args: tuple[str, ...]) -> int:
    """Build, run, check and draw Lingua Franca programs (target C).

    \b
    Examples:
      weft lf run Blink.lf                       compile for this machine and run
      weft lf build Blink.lf --target rp2040     an image for the RP2040
      weft lf check Blink.lf                     what is wrong, with line and column
    """
    try:
        import lark  # noqa: F401

        from weft_lf.cli import main as lf_main
    except ImportError as error:
        raise BadUse(f"weft lf needs '{error.name}': pip install 'weft-csp[lf]'") from None
    try:
        return lf_main(args)
    except SystemExit as bad:  # argparse has already printed what is wrong
        return int(bad.code or 0)


BUILD_HELP = """\b
Exit status:
  0  it was built, or found; stdout has the path of the library
  2  bad use: no such file or compiler, what the compiler refused, or no component
"""


@weft_command.command("build", epilog=BUILD_HELP)
@click.argument("source")
@click.option("-o", "--output", help="Write the library here too, besides the cache.")
@click.option(
    "--debug",
    is_flag=True,
    help="Build with symbols and assertions, not optimised; failures then show the frames of C++.",
)
@click.option(
    "--stub",
    is_flag=True,
    help="Write NAME.pyi too, for type checkers: beside the library of -o, or here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was built, as JSON, on stdout.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def build_command(
    source: str,
    output: str | None,
    debug: bool,
    stub: bool,
    as_json: bool,
    flags: tuple[str, ...],
) -> int:
    """Build a native component from its C++ SOURCE, and list what it contains.

    FLAGS, after `--`, are for the compiler ($CXX, else c++). A library that was already built is
    found in the cache ($WEFT_CACHE, else ~/.cache/weft).

    \b
    Examples:
      weft build filter.cpp
      weft build --debug filter.cpp
      weft build filter.cpp -o filter.so -- -O3 -march=native -Wall
    """
    import inspect

    from weft import native
    from weft.errors import BadUse as Refused

    try:
        library = native.build(source, output=output, debug=debug, flags=flags)
        component = native.load(library)
        written = native.write_stub(component, Path(output or ".").parent) if stub else None
    except Refused as error:
        if "\n" not in str(error):
            raise BadUse(str(error)) from None
        click.echo(f"weft: {error}", err=True)  # the compiler's own message, unchanged
        return EXIT["bad use"]

    def shown(process: Any) -> str:
        parameters = [
            f"{p.name}: {p.annotation}" + ("" if p.default is p.empty else f" = {p.default!r}")
            for p in inspect.signature(process).parameters.values()
            # the keywords `on` and `cpu`, which every process has, are left out
            if p.kind is not p.KEYWORD_ONLY
        ]
        return f"({', '.join(parameters)})"

    processes = {name: shown(getattr(component, name)) for name in component.processes}
    if as_json:
        report = {
            "library": str(library),
            "component": component.__name__,
            "doc": component.__doc__,
            "compiler": component.compiler,
            "debug": debug,
            "stub": str(written) if written else None,
            "processes": processes,
        }
        click.echo(json.dumps(report))
        return 0
    click.echo(str(library))
    if written:
        click.echo(str(written))
    for name, parameters in processes.items():
        click.echo(f"  {component.__name__}.{name}{parameters}", err=True)
    return 0


class _Net(_Commands):
    """The command `weft net`. Its commands are in _commands/net.py, because they need more packages
    than the other commands.
    """

    def _load(self) -> None:
        if not self.commands:
            try:
                from weft._commands import net as _commands_net
            except ImportError as error:
                raise BadUse(f"weft net: {error}") from None
            _commands_net.add_to(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)


@weft_command.group(
    "net",
    cls=_Net,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.pass_context
def net_group(ctx: click.Context) -> None:
    """Programs on several machines: a server where they meet, their keys, and their hosts.

    \b
    Examples:
      weft net up                   a server for a developer, with keys made on the spot
      weft net ls                   the names of channels, with their programs; the hosts
      weft host --name gpu1 --allow mandelbrot:worker
                                    run processes here for programs elsewhere
      weft up --ssh gpu1 --ssh gpu2 --allow mandelbrot:worker
                                    the same on many machines at once
      weft net keys ~/for-gpu1 --name gpu1
                                    keys for another machine
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def find_checkout(start: Path) -> Path | None:
    """Returns the checkout of Weft that contains `start`, or None."""
    for folder in (start, *start.parents):
        if all((folder / part).exists() for part in ("run", "bench/run.py", "cpp/include/weft")):
            return folder
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments` (None means the program's own arguments), and returns the
    exit status (see EXIT).
    """
    try:
        status = weft_command.main(
            args=None if arguments is None else list(arguments),
            prog_name="weft",
            standalone_mode=False,
        )
    except click.ClickException as error:
        click.echo(f"weft: {' '.join(error.format_message().split())}{_see_help(error)}", err=True)
        return error.exit_code
    except click.Abort:
        click.echo("weft: stopped by Ctrl-C", err=True)
        return EXIT["interrupted"]
    return status if isinstance(status, int) else EXIT["ok"]


def _see_help(error: click.ClickException) -> str:
    """Returns a text to append to Click's message about a mistake, which says where to read about
    the command; "" if the mistake is not one of usage.
    """
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "weft"
        return f" See: {command} --help"
    return ""
