"""Processes as threads (draft)."""
from weft._native import *  # noqa
from weft import _native
from weft._shared import *  # noqa
from weft._shared import make_process as process, poison, retire, stats as statistics, check_clock
from weft.errors import *  # noqa
from weft._native import Channel, parallel as Parallel, Group, spawn as Spawn, yield_, current_process
def run(first, *others, clock="steady"):
    results = _native.run((first, *others), check_clock(clock))
    return results if others or not isinstance(first, _native.Process) else results[0]
