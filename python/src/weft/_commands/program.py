"""A program in a file, run as `weft run` does.

Invariants
- If the user has made a mistake, BadUse is raised before anything runs.
- stdout belongs to the program: messages about the program go to stderr.
- The backend is chosen before the program's first line runs, so that `import weft` exports its
  names.
- A program's own `sys.exit(n)` is passed on.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

import click

from weft._commands.bad_use import BadUse, did_you_mean
from weft.cli import EXIT

BACKENDS = ("coroutines", "threads", "greenlets", "processes")


def backend_named(name: str) -> str:
    """Returns `name` if it is the name of a backend.

    Raises:
        BadUse: there is no such backend.
    """
    if name in BACKENDS:
        return name
    raise BadUse(
        f"there is no backend '{name}'{did_you_mean(name, BACKENDS)} (backends: {', '.join(BACKENDS)})"
    )


def read_program(name: str) -> bytes:
    path = Path(name)
    if path.is_dir():
        raise BadUse(f"{name} is a directory; give a Python file in it")
    if not path.exists():
        folder = path.parent
        siblings = (
            [p.name for p in folder.iterdir() if p.suffix == ".py"] if folder.is_dir() else []
        )
        near = difflib.get_close_matches(path.name, siblings, n=1)
        hint = (
            f"; did you mean '{folder / near[0]}'?" if near else "; give the path of a Python file"
        )
        raise BadUse(f"{name} does not exist{hint}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadUse(f"cannot read {name}: {error.strerror}") from None


def compile_program(name: str, backend: str) -> tuple[CodeType, bool]:
    """Returns the code of the program, and whether its `async` and `await` were left out."""
    source = read_program(name)
    from weft import styles

    try:
        if backend != "coroutines" and styles.is_for_any_backend(source):
            return styles.compile_for(backend, source, name), True
        return compile(source, name, "exec", dont_inherit=True), False
    except SyntaxError as error:
        at = f" (line {error.lineno}: {error.msg})" if error.lineno else f" ({error.msg})"
        raise BadUse(f"{name} is not Python{at}; correct it or give another file") from None
    except ValueError as error:
        raise BadUse(f"{name} is not Python ({error}); give a Python file") from None


def run_program(
    name: str,
    arguments: Sequence[str],
    backend: str | None,
    trace: str | None = None,
    verbose: bool = False,
    flight: str | None = None,
) -> int:
    """Runs the file `name` as `__main__` on `backend` and returns the exit status.

    Args:
        trace: a file to which all events are written.
        verbose: whether stderr names the processes and guards that ended quietly.
        flight: a file to which the last events are written when the program ends.
    Raises:
        BadUse: there is no such file or backend, the file is not Python, or the trace cannot be
            written.
    """
    import weft

    chosen = backend_named(backend or os.environ.get("WEFT_BACKEND") or BACKENDS[0])
    code, for_any = compile_program(name, chosen)
    if chosen == "greenlets":
        _need_greenlets()
    weft.use(chosen)
    if hasattr(signal, "SIGUSR1") and signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
        from weft._watching.on_signal import on_signal

        with contextlib.suppress(weft.BadUse):  # the pure fallback cannot record
            on_signal()
    tracing = contextlib.ExitStack()
    try:
        if flight is not None:
            tracing.enter_context(_flight_to(flight))
        if trace is not None:
            tracing.enter_context(weft.tracing(trace))
    except weft.BadUse as error:
        tracing.close()
        raise BadUse(str(error)) from None
    from weft._watching import quiet_ends as _quiet_ends

    naming = _quiet_ends.Naming(lambda text: click.echo(f"weft: {text}", err=True))
    if verbose:
        naming.begin()
    main = ModuleType("__main__")
    main.__dict__.update(__file__=name, __builtins__=__builtins__, __cached__=None, __spec__=None)
    saved = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv = [name, *arguments]
    sys.path[0:0] = [str(Path(name).resolve().parent)]
    sys.modules["__main__"] = main
    try:
        from weft import styles

        if chosen == "processes":
            from weft._hosts import host as _host

            _host.compiled_for = chosen if for_any else None
        beside = styles.Beside(Path(name).parent, chosen) if for_any else contextlib.nullcontext()
        with _InterruptWatch() as interrupts, beside:
            status = _execute(code, main, weft.Deadlock, weft.Cancelled, interrupts)
    except KeyboardInterrupt:
        # The run has printed where each process was, has cancelled all of them and waited for them.
        click.echo("weft: stopped by Ctrl-C", err=True)
        status = EXIT["interrupted"]
    finally:
        with warnings.catch_warnings(record=True) as cut_off:
            warnings.simplefilter("always")
            tracing.close()
        naming.end()
        sys.argv, sys.path[:], sys.modules["__main__"] = saved
    for warning in cut_off:
        click.echo(f"weft: {warning.message}", err=True)
    return EXIT["failed"] if cut_off and status == EXIT["ok"] else status


def _flight_to(path: str) -> contextlib.AbstractContextManager[None]:
    from weft._watching import flight as _flight

    size = os.environ.get("WEFT_FLIGHT", "0").partition(":")[0]
    return _flight.flight(path, _flight.USUAL if size in ("", "0") else _flight.size_of(size))


def _execute(
    code: CodeType,
    main: ModuleType,
    deadlock: type[BaseException],
    cancelled: type[BaseException],
    interrupts: _InterruptWatch,
) -> int:
    try:
        exec(code, main.__dict__)
    except SystemExit as end:
        status = _status_of(end)
        if status != EXIT["ok"] and interrupts.interrupted():
            raise KeyboardInterrupt from None
        return status
    except deadlock as error:
        click.echo(f"weft: {getattr(error, 'report', None) or error}", err=True)
        return EXIT["deadlock"]
    except (Exception, cancelled) as error:
        # The traceback that is shown begins with the program's own frame.
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, trace)
        return EXIT["failed"]
    return EXIT["ok"]


def _need_greenlets() -> None:
    from weft._extension import native

    try:
        native.need_greenlets()
    except ImportError:
        raise BadUse(
            "--on greenlets needs the package 'greenlet': pip install 'weft-csp[greenlets]', or take another backend"
        ) from None


class _InterruptWatch:
    """Records whether Ctrl-C was pressed, whatever the program does about it. (Click, for example,
    turns it into an exit status of its own.)

    This class replaces no handler: Python itself writes the number of each signal to a pipe.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._before: int | None = None

    def __enter__(self) -> _InterruptWatch:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.set_wakeup_fd(self._before)
        os.close(self._read)
        os.close(self._write)

    def interrupted(self) -> bool:
        try:
            return signal.SIGINT in os.read(self._read, 4096)
        except BlockingIOError:
            return False


def _status_of(end: SystemExit) -> int:
    if end.code is None:
        return EXIT["ok"]
    if isinstance(end.code, int):
        return end.code & 0xFF
    click.echo(end.code, err=True)
    return EXIT["failed"]
