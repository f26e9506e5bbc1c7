"""Rule 11.4: components of the parent in the child of a fork."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from components import needs_compiler, parties
from test_forks import child_says

import weft.coroutines as co
import weft.threads as th

pytestmark = [needs_compiler, pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")]


def tasks_meet() -> str:
    signal.alarm(300)  # ends a child that would otherwise never end

    async def meet() -> int:
        c = co.Channel("c")
        r, w = +c, -c
        reads = asyncio.create_task(read(r))
        await asyncio.sleep(0)
        await w.write(3)
        return await reads

    return str(asyncio.run(meet()))


async def read(r: co.Reader[int]) -> int:
    return await r.read()


def test_tasks_of_the_child_do_not_wait_for_the_parents_components() -> None:
    """In one of ten forks the component is in an operation, which does not exist in the child."""
    c = th.Channel("c")
    messages = []

    @th.process
    def forks(out: th.Writer[int]) -> None:
        for _ in range(40):
            messages.append(child_says(tasks_meet))
        out.write(1)

    th.run(parties().looks(+c), forks(-c))
    assert messages == ["3"] * 40
