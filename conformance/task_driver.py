"""Processes whose operations are done by tasks of asyncio: foreign waiters (rules 6.6, 13.7).

A task is not a process: it holds no ends (2.3), spreads no poison (4.3) and belongs to no group
(7). So each process of a network is a coroutine process, a guest of the loop, which holds the ends
and waits for its task. The task plays the statements. Only operations that compose processes (par,
seq, spawn) are done by the process, on behalf of the task.

    process:  waits ──task asks──► composes ──answer──► waits ──task is done──► ends as the task did
       │ Cancelled                    │ Cancelled
       └──► task.cancel()             └──► the answer

Invariants
- A cancellation of the process becomes a cancellation of its task, or the outcome of the
  composition that the process makes for the task; never both.
- A network is stuck when the loop would sleep and nothing known could wake it: no timer, no
  callback, no socket and, if the network has thread processes, no record for `QUIET` seconds. Weft
  cannot know this for a loop with tasks (13.6); this loop can, because every task on it waits for
  Weft. It then ends the network as a deadlock does: all processes are cancelled.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Generator
from typing import Any

UNIT = 0.004  # seconds in a unit of the network's time; tasks are on the steady clock (13.7)
QUIET = 0.4

Steps = Generator[Callable[[], Any], Any, Any]


class Composition:
    """Starts an operation that makes processes. Only a process can perform such an operation.
    `waits`: whether the operation waits, and so can be cancelled.
    """

    def __init__(self, start: Callable[[], Any], waits: bool) -> None:
        self.start, self.waits = start, waits

    def __call__(self) -> Any:
        return self.start()


class Desk:
    """Holds the requests of a task to its process."""

    def __init__(self) -> None:
        self.process: Any = None  # the process object, or None if the process has not begun
        self.task: asyncio.Task[Any] | None = None
        self.bell: asyncio.Future[None] | None = None
        self.asked: tuple[Composition, asyncio.Future[Any]] | None = None

    def ring(self, *_: Any) -> None:
        if self.bell is not None and not self.bell.done():
            self.bell.set_result(None)

    def cancel(self) -> None:
        """Cancels the task, as asyncio does, or, while the process works for the task, the
        process.
        """
        if self.task is not None and self.asked is None:
            self.task.cancel()
        elif self.process is not None:
            self.process.cancel()

    async def compose(self, start: Composition) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self.asked = start, answer
        self.ring()
        while not answer.done():
            try:
                await asyncio.wait({answer})
            except asyncio.CancelledError:
                # The cancellation is pending from the previous operation (6.3) and now applies to
                # the composition.
                self.process.cancel()
        value, error = answer.result()
        if error is not None:
            raise error
        return value


async def _play(steps: Steps, desk: Desk) -> Any:
    result: Any = None
    failure: BaseException | None = None
    while True:
        try:
            start = steps.throw(failure) if failure else steps.send(result)
        except StopIteration as end:
            return end.value
        finally:  # a kept exception would keep this frame, and the objects that the process holds
            result, failure = None, None
        try:
            if isinstance(start, Composition):
                result = await desk.compose(start)
            else:
                result = start()
                if hasattr(result, "__await__"):
                    result = await result
        except GeneratorExit:
            raise
        except BaseException as error:
            failure = error
        del start


async def _outcome(start: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        made = start()
        return (await made if hasattr(made, "__await__") else made), None
    except GeneratorExit:
        raise
    except BaseException as error:
        return None, error


def function_of(
    steps: Callable[[list[Any]], tuple[Steps, list[Any]]],
    cancelled: type[BaseException],
    current_process: Callable[[], Any],
    desk: Desk,
) -> Callable[..., Any]:
    """Makes the function of a process. `steps` makes the steps of its player and the list of its
    ends, to which received ends are added. `cancelled` is the exception that a cancellation raises
    in the function.
    """

    async def function(*given: Any) -> Any:
        loop = asyncio.get_running_loop()
        desk.process = current_process()
        playing, slots = steps(list(given))
        task = desk.task = loop.create_task(_play(playing, desk))
        task.add_done_callback(desk.ring)
        while not task.done():
            outcome: tuple[Any, BaseException | None]
            desk.bell = loop.create_future()
            try:
                await desk.bell
            except cancelled as error:
                if desk.asked is None:
                    task.cancel()
                    continue
                if desk.asked[0].waits:
                    outcome = None, error
                else:
                    outcome = await _outcome(desk.asked[0])
                    desk.process.cancel()  # The operation that follows is to be cancelled as well.
            else:
                if desk.asked is None:
                    continue
                outcome = await _outcome(desk.asked[0])
            answer, desk.asked = desk.asked[1], None
            answer.set_result(outcome)
            del answer, outcome
        try:
            return task.result()
        finally:
            for end in list(slots)[len(given) :]:  # received ends, which only this process holds
                if not end.closed:
                    end.retire()

    return function


# ---------------------------------------------------------------------------------------- the loop


def in_loop() -> bool:
    try:
        return asyncio.get_running_loop() is not None
    except RuntimeError:
        return False


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Notices when its loop would sleep forever."""

    def __init__(self, stuck: Callable[[], None], progress: Callable[[], int] | None) -> None:
        super().__init__()
        self.stuck, self.progress = stuck, progress

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None:
            return super().select(timeout)
        while True:
            before = self.progress() if self.progress else 0
            events = super().select(QUIET if self.progress else 0)
            if events:
                return events
            if not self.progress or self.progress() == before:
                self.stuck()
                return []


def run(main: Callable[[], Any], progress: Callable[[], int] | None) -> tuple[Any, bool]:
    """Runs the network that `main()` awaits on a loop of its own. Returns its results, and whether
    it was stuck.

    `progress` returns the number of records. It is None if no thread makes records.
    """
    stuck = 0

    def give_up() -> None:
        nonlocal stuck
        stuck += 1
        if stuck > 3:
            raise RuntimeError("the network is stuck and does not end when it is cancelled")
        root.cancel()

    loop = asyncio.SelectorEventLoop(_Selector(give_up, progress))
    try:
        root = loop.create_task(main())
        try:
            return loop.run_until_complete(root), False
        except asyncio.CancelledError:
            if not stuck:
                raise
        except BaseException:
            if not stuck:
                raise
        return None, True
    finally:
        loop.close()
