"""`weft check FILE[::FUNCTION]`: finds an order in which the network of a function fails
(docs/checking.md).

Invariants
- A mistake on the command line is reported in one sentence, with status 2, before anything runs.
- The report goes to stdout; progress and everything else go to stderr. The program's output is
  kept, and shown for the schedule that is reported.
- pytest runs a function with fixtures, or a method of a class of tests, in this OS process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from weft._commands.bad_use import BadUse, did_you_mean
from weft._commands.program import backend_named, compile_program, read_program

EXIT_HELP = """\b
Exit status:
  0    nothing was found (the report says whether every schedule was run)
  1    a schedule fails: an exception, a lost value, no end, …
  2    bad use: stderr says what to do
  3    a schedule ends in a deadlock
  4    the program is not the same twice: nothing can be said of it
  130  stopped by Ctrl-C; the report says how far the search came
"""


@click.command("check", epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", metavar="FILE[::FUNCTION]")
@click.option("--seconds", type=float, default=10.0, help="How long to search (10).")
@click.option("--schedules", type=int, metavar="N", help="How many schedules to run at most.")
@click.option("--search", default="auto", help="auto, all, walk, pct or few (auto).")
@click.option(
    "--time",
    "times",
    default="quiet",
    help="quiet: a time comes when no process can run; any: also earlier.",
)
@click.option(
    "--faults",
    default="",
    metavar="LIST",
    help="kill:N, delay, partition, slow: for processes on hosts.",
)
@click.option(
    "--same", is_flag=True, help="It is a failure if results or ends of processes differ."
)
@click.option("--strict", is_flag=True, help="Findings that are only reported count as failures.")
@click.option(
    "--grain", default="operation", help="operation, or park: stop processes only where they wait."
)
@click.option("--replay", metavar="TOKEN", help="Run one schedule, and show it line by line.")
@click.option("--seed", type=int, default=1, help="The seed of all random choices (1).")
@click.option("--keep-going", is_flag=True, help="Look for other failures after the first.")
@click.option("-j", "--jobs", type=int, default=1, metavar="N", help="Search in N OS processes.")
@click.option(
    "--stub", multiple=True, metavar="NAME", help="Do not call module.function. May be repeated."
)
@click.option("--all", "every", is_flag=True, help="It is a failure if not every schedule was run.")
@click.option("--svg", metavar="OUT", help="Write the failing schedule as a picture (SVG).")
@click.option(
    "--trace", metavar="OUT", help="Write the failing schedule as a trace (see: weft trace)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def check_command(
    target: str,
    seconds: float,
    schedules: int | None,
    search: str,
    times: str,
    faults: str,
    same: bool,
    strict: bool,
    grain: str,
    replay: str | None,
    seed: int,
    keep_going: bool,
    jobs: int,
    stub: tuple[str, ...],
    every: bool,
    svg: str | None,
    trace: str | None,
    as_json: bool,
) -> int:
    """Run a network in one order after the other, until an order fails.

    \b
    Examples:
      weft check shop.py::shop
      weft check shop.py::shop --seconds 60 -j 2
      weft check test_shop.py::test_shop --same
      weft check shop.py::shop --replay w1:clerk@3=van
      weft check shop.py                     the file as a script

    FUNCTION is ordinary code that runs a network, a process function without arguments, or a test
    of pytest.
    """
    import weft

    if weft._pure:
        from weft._fallback import HOW

        raise BadUse(f"weft check is not there in pure Python. {HOW}")
    from weft._checking import options as _options
    from weft._checking import tokens as _tokens

    given: dict[str, Any] = {
        "seconds": seconds, "schedules": schedules, "search": search, "time": times, "faults": faults,
        "same": same, "strict": strict, "grain": grain, "seed": seed, "keep_going": keep_going,
        "jobs": jobs, "all": every,
    }  # fmt: skip
    file, _, function = target.partition("::")
    try:
        _options.options(**given)
        if replay is not None:
            _tokens.parse(replay)
    except weft.BadUse as error:
        raise BadUse(_as_options(str(error))) from None
    weft.use(backend_named(_backend()))
    _writable(svg)
    _writable(trace)
    read_program(file)
    sys.path[0:0] = [str(Path(file).resolve().parent)]
    try:
        chosen = _options.options(**given, stub=stub)
    except weft.BadUse as error:
        raise BadUse(_as_options(str(error))) from None
    from weft._checking import checker as _checker

    progress = Progress()
    with _checker.world_for(chosen) as world:
        called = find(file, function) if function else script(file)
        if called is None:
            return _by_pytest(
                target, {**given, "stub": stub, "replay": replay}, svg, trace, as_json
            )
        report = _checker.check_function(
            called,
            chosen,
            () if replay is None else (replay,),
            search=replay is None,
            name=target,
            command=f"weft check {target}{_again(chosen)}",
            progress=progress,
            world=world,
        )
        progress.clear()
        return show(report, svg, trace, as_json)


def _backend() -> str:
    return os.environ.get("WEFT_BACKEND") or "coroutines"


def _as_options(text: str) -> str:
    """Returns the sentence with the options of `weft.check` replaced by the options of the
    command."""
    return text.replace("keep_going=", "--keep-going ").replace(
        "weft.check has no option", "no option"
    )


def _again(chosen: Any) -> str:
    """Returns the command-line options that a replay needs besides its token."""
    arguments = ""
    if chosen.grain != "operation":
        arguments += f" --grain {chosen.grain}"
    if chosen.time != "quiet":
        arguments += f" --time {chosen.time}"
    if chosen.faults:
        arguments += f" --faults {chosen.faults}"
    if chosen.seed != 1:
        arguments += f" --seed {chosen.seed}"
    for flag in ("same", "strict"):
        arguments += f" --{flag}" if getattr(chosen, flag) else ""
    return arguments + "".join(f" --stub {name}" for name in chosen.stub)


def _writable(name: str | None) -> None:
    if name is None:
        return
    try:
        with Path(name).open("a"):
            pass
    except OSError as error:
        raise BadUse(f"cannot write {name}: {error.strerror}") from None


def show(report: Any, svg: str | None, trace: str | None, as_json: bool) -> int:
    """Prints the report, and writes the picture and the trace. Returns the exit status."""
    for name, what in ((svg, report.picture), (trace, report.trace)):
        if name is not None and what is None:
            click.echo(f"weft: there is no schedule to show, so {name} stays empty", err=True)
    if svg is not None and report.picture is not None:
        Path(svg).write_text(report.svg, encoding="utf-8")
    if trace is not None and report.trace is not None:
        report.trace(trace)
    if report.kind == "refused" and not as_json:
        click.echo(f"weft: {report.text}", err=True)
    else:
        click.echo(json.dumps(report.as_dict(), ensure_ascii=False) if as_json else report.text)
    return int(report.status)


# --- what is checked ------------------------------------------------------------------------------


def find(file: str, name: str) -> Callable[[], Any] | None:
    """Returns the function `name` of a file; None if pytest has to call it.

    Raises:
        BadUse: there is no such function, it is not a function, it needs arguments, or its module
            cannot be imported.
    """
    module = _module(file)
    holder: Any = module
    before: Any = None
    for part in name.split("::"):
        if not hasattr(holder, part):
            names = [n for n, v in vars(holder).items() if callable(v) and not n.startswith("_")]
            hint = did_you_mean(part, names) or (
                f"; it has {', '.join(names[:8])}" if names else "; it has no functions"
            )
            raise BadUse(f"{file} has no function '{part}'{hint}")
        before, holder = holder, getattr(holder, part)
    if isinstance(before, type):
        return None
    if not callable(holder) or isinstance(holder, type):
        raise BadUse(f"{file}::{name} is not a function; give one that builds and runs a network")
    try:
        needed = [
            p.name
            for p in inspect.signature(holder).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):
        needed = []
    if not needed:
        from weft._checking.api import Checked

        called: Callable[[], Any] = holder.__wrapped__ if isinstance(holder, Checked) else holder
        return called
    if name.startswith("test"):
        return None
    raise BadUse(
        f"{file}::{name} needs arguments ({', '.join(needed)}); write a function without any that calls it"
    )


def _module(file: str) -> ModuleType:
    name = Path(file).stem
    loaded = sys.modules.get(name)
    if (
        loaded is not None
        and Path(getattr(loaded, "__file__", None) or "").resolve() == Path(file).resolve()
    ):
        return loaded  # the option --stub has imported the module
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise BadUse(f"{file} is not Python; give a file whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise BadUse(
            f"{file} is not Python (line {error.lineno}: {error.msg}); correct it"
        ) from None
    except Exception as error:
        at = error.__traceback__
        while at is not None and at.tb_frame.f_code.co_filename != str(Path(file)):
            at = at.tb_next
        where = f"{file}:{at.tb_lineno}" if at else file
        raise BadUse(
            f"{file} cannot be imported: {type(error).__name__}: {error} (at {where}); "
            "what is to be checked must be in a function"
        ) from None
    finally:
        if before is not None and sys.modules.get(name) is not module:
            sys.modules[name] = before
    return module


def script(file: str) -> Callable[[], Any]:
    """Returns a function each call of which runs the file as a new `__main__`."""
    code, _ = compile_program(file, _backend())
    argv = [file]

    def run() -> None:
        main = ModuleType("__main__")
        main.__dict__.update(
            __file__=file, __builtins__=__builtins__, __cached__=None, __spec__=None
        )
        saved = sys.argv, sys.modules["__main__"]
        sys.argv, sys.modules["__main__"] = argv, main
        try:
            exec(code, main.__dict__)
        finally:
            sys.argv, sys.modules["__main__"] = saved

    run.__name__ = run.__qualname__ = Path(file).stem
    return run


_PYTEST = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:weft"),
    # weft is already imported, so pytest would warn
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    # If Hypothesis is imported after a check, it warns about the generators of other libraries
    # (trio's).
    *("-W", "ignore:It looks like `register_random` was passed an object that could"),
)


def _by_pytest(
    target: str, given: dict[str, Any], svg: str | None, trace: str | None, as_json: bool
) -> int:
    if importlib.util.find_spec("pytest") is None:
        raise BadUse(f"{target} takes fixtures, so pytest has to call it: pip install pytest")
    import pytest

    from weft._checking import plugin as _plugin

    kept = _plugin.Kept(given, target)
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*_PYTEST, target], plugins=[kept])
    if not kept.reports:
        raise BadUse(
            f"{target}: pytest ran no such test (its status was {int(status)}): pytest {target} says why"
        )
    return show(kept.reports[-1], svg, trace, as_json)


# --- progress -------------------------------------------------------------------------------------


class Progress:
    """Shows one line on stderr, which is overwritten each time. If stderr is not a terminal,
    nothing is written.
    """

    def __init__(self) -> None:
        self._shown = False
        self._terminal = sys.stderr.isatty()
        self._stream = sys.stderr

    def __call__(self, text: str) -> None:
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text[:100]}")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
