"""An asyncio loop whose time is virtual: time does not advance while anything can run; otherwise it
jumps to the loop's earliest timer.

    select(timeout):  something is ready ──► as usual
                      a thread works for the loop ──► wait for it; the time does not advance
                      a timer is set ──► jump
                      nothing ──► Stuck

Invariants
- The time is a whole number of ns, and `time()` is that number in seconds, so that a time that was
  computed from `time()` gives the same number again. `virtual_time` informs Weft that the timers of
  this loop's tasks follow this time (rule 13.7).
- `calls` counts the calls under way in the loop's threads, `processes` the processes on threads of
  their own; while either is above 0, the time does not advance.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

NEVER = 60.0  # seconds of real time in which a thread must return


class Stuck(RuntimeError):
    """Nothing on the loop can ever run again, and its main task has not ended."""


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        # `abroad` is read first: if a thread ends after this line, its end is among the events.
        abroad = self.loop.abroad()
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        if abroad:
            events = super().select(NEVER)
            if not events:
                raise Stuck(f"a thread did not come back to the loop within {NEVER:.0f} s")
            return events
        if timeout is None:
            raise Stuck("nothing on the loop can ever run again")
        self.loop.jump()
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    virtual_time = True

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.calls, self.processes = 0, list[Any]()
        self._ns = 0
        super().__init__(selector)
        self._clock_resolution = 1e-6  # larger than the rounding of floats within a year

    def time(self) -> float:
        return self._ns * 1e-9

    def jump(self) -> None:
        """Jumps to the earliest timer that was not cancelled; the loop has already removed
        cancelled timers before it.
        """
        at = self._scheduled[0].when()  # type: ignore[attr-defined]
        self._ns = max(self._ns, round(at * 1e9))

    def abroad(self) -> bool:
        self.processes = [one for one in self.processes if not one.done]
        return self.calls > 0 or bool(self.processes)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        self.calls += 1
        called = super().run_in_executor(executor, func, *args)
        called.add_done_callback(self.came_back)
        return called

    def came_back(self, *_: Any) -> None:
        self.calls -= 1


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Runs `main` as a task of a loop of its own, and returns its result. Then closes the loop,
    with everything that is still on it.

    Raises:
        Stuck: nothing on the loop can ever run again. An exception of `main` propagates.
    """
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.calls += 1  # the shutdown uses a thread, which reduces this count at its end
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
