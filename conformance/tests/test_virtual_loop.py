"""Tests the loop with virtual time on which scenarios run as tasks: when it jumps, when it waits,
and when it raises Stuck.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from conformance import task_names as names
from conformance.virtual_loop import Stuck, run


def test_time_jumps_to_the_earliest_timer_and_is_exact() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        for seconds in (0.1, 0.2, 86400 * 365):
            await asyncio.sleep(seconds)
            seen.append(loop.time())
        return seen

    assert run(main()) == pytest.approx([0, 0.1, 0.3, 0.3 + 86400 * 365], abs=1e-6)


def test_time_stands_still_while_a_task_can_run() -> None:
    async def main() -> float:
        for _ in range(100):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run(main()) == 0


def test_a_cancelled_timer_is_not_jumped_to() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        for seconds in range(1, 6):
            loop.call_later(seconds, pytest.fail).cancel()
        await asyncio.sleep(7)
        return loop.time()

    assert run(main()) == 7


def test_time_stands_still_while_a_thread_works_for_the_loop() -> None:
    gate = threading.Event()

    async def main() -> tuple[float, bool]:
        late = asyncio.create_task(asyncio.sleep(5))
        called = asyncio.create_task(asyncio.to_thread(gate.wait))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(gate.set)
        await called
        return asyncio.get_running_loop().time(), late.done()

    assert run(main()) == (0, False)


def test_a_task_that_waits_for_nobody_is_stuck() -> None:
    c = names.Channel("c")
    kept = c.writer()

    async def main() -> None:
        await c.reader().read()

    with pytest.raises(Stuck):
        run(main())
    assert not kept.closed


def test_what_the_loop_leaves_behind_is_cancelled() -> None:
    log = []

    async def lingers() -> None:
        try:
            await asyncio.sleep(1e9)
        finally:
            log.append("cancelled")

    async def main() -> list[str]:
        asyncio.get_running_loop().keep = asyncio.create_task(lingers())  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        return list(log)

    assert run(main()) == [] and log == ["cancelled"]


def test_each_process_is_a_task_of_its_own_and_its_operations_are_the_tasks() -> None:
    seen = []

    @names.process
    async def worker(out: object) -> None:
        seen.append((names.current_process(), asyncio.current_task()))

    c = names.Channel("c")
    one, two = worker(c.writer()), worker(c.writer())
    names.run(one, two)
    assert [process for process, _ in seen] == [None, None], "a task is no process"
    assert len({task for _, task in seen}) == 2
    assert one.done and two.done and c.stats().writers == 0, "the process held its end"


def test_the_timers_of_a_task_are_on_the_clock_of_a_loop_with_virtual_time() -> None:  # rule 13.7
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        began = names.now()
        assert began == loop.time() == 0
        await names.sleep(3600)
        timer = names.Timer(60.0)
        assert await timer.tick() == 1
        assert await names.select(names.after(10)) == (0, None)
        assert await names.select(names.at(5000.5)) == (0, None)
        return [names.now(), loop.time()]

    assert run(main()) == [5000.5, 5000.5]


def test_the_first_that_a_loop_sees_of_weft_may_be_a_look_at_the_time() -> None:  # rule 13.7
    """The test runs in a program of its own, so that no other loop has used Weft before."""
    program = """if True:
        from conformance import task_names as names
        from conformance.virtual_loop import run

        async def looks():
            return names.now()

        async def waits():
            began = names.now()
            await names.sleep(86400)
            return names.now() - began

        print(run(looks()), run(waits()))
    """
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("0.0 86400.0\n", "")


def test_other_loops_and_ordinary_code_keep_the_steady_clock() -> None:  # rule 13.7
    async def virtual() -> float:
        return names.now()

    assert run(virtual()) == 0
    steady = names.now()
    assert steady > 0

    async def plain() -> float:
        return names.now()

    assert asyncio.run(plain()) >= steady
