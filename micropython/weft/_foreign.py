"""asyncio's awaitables in a plain run, where no loop of asyncio is there to serve them. They use
asyncio's `cur_task` without checking it, and the C code of asyncio's queues would write through
None. So while a plain run lasts, `cur_task` is a Task of Weft's (`_chan.ours`), which ends at once
if a loop ever runs it. The core's hook `strange` raises an error in the process that awaits.

Invariant: a Task that may be in one of asyncio's queues is not `cur_task` any more (`renew`).
"""

from asyncio import core as aio

from . import _chan

_before = None  # asyncio's own `cur_task`: the run can be in a task


async def _nothing():
    pass


def renew():
    _chan.ours = aio.cur_task = aio.Task(_nothing(), aio.__dict__)


def enter():
    global _before
    _before = aio.cur_task
    renew()


def leave():
    global _before
    aio.cur_task, _before, _chan.ours = _before, None, None
