"""The progress bar of Executor.map(progress=True), which rich draws on standard error.

A call that has ended only adds an item to a deque; a thread draws the bar ten times a second. The
thread ends when all calls have ended, or the results are no longer read.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import Any

from weft import _helper_threads
from weft.errors import BadUse

__all__ = ["Bar", "begun"]

_EVERY = 0.1  # seconds between two drawings of the bar
# how many seconds end() waits for the last drawing; a stopped terminal never draws it
_LAST = 2.0


def begun(what: str, progress: bool | str) -> Bar | None:
    """Begins a bar with the title `what`. Returns None if no bar is asked for, or if `progress` is
    not "always", and standard error is no terminal and the program no notebook.

    Raises:
        BadUse: rich is not installed.
        ValueError: `progress` is neither a bool nor "always".
    """
    if progress not in (True, False, "always"):
        raise ValueError(f'map: progress must be True, False or "always", not {progress!r}')
    if not progress:
        return None
    try:
        from rich.console import Console
    except ImportError:
        raise BadUse("map(progress=True) needs rich: pip install 'weft-csp[cli]'") from None

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            # rich's own method would redirect standard output to os.devnull, and end the thread by
            # SystemExit.
            raise BrokenPipeError

    console = Quiet(stderr=True)
    shown = progress == "always" or console.is_terminal or console.is_jupyter
    return Bar(what, console) if shown else None


class Bar:
    def __init__(self, what: str, console: Any) -> None:
        self._what, self._console = what, console
        self._done: deque[None] = deque()
        self._total: int | None = None
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._draw, name="weft: draws progress")
        self._thread.start()

    def one_over(self, _: Any) -> None:
        """Counts one more finished call."""
        self._done.append(None)

    def total(self, calls: int) -> None:
        """Sets the number of calls."""
        self._total = calls

    def end(self) -> None:
        """Draws the bar for the last time."""
        self._ends.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_LAST)

    def _draw(self) -> None:
        _helper_threads.add_until_end()
        from rich import progress as parts

        columns = (
            parts.TextColumn("{task.description}"),
            parts.BarColumn(),
            parts.MofNCompleteColumn(),
            parts.TimeElapsedColumn(),
            parts.TimeRemainingColumn(),
        )
        try:
            bar = parts.Progress(
                *columns,
                console=self._console,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            with bar:
                task = bar.add_task(self._what, total=None)
                goes_on = True
                while goes_on:
                    try:
                        self._ends.get(timeout=_EVERY)
                        goes_on = False
                    except queue.Empty:
                        goes_on = len(self._done) != self._total
                    bar.update(task, completed=len(self._done), total=self._total, refresh=True)
        except Exception:  # standard error was closed, but the calls go on
            return
