"""The names of the older `pycsp.processes`. A process is a thread of this interpreter, and the
import says so."""

from __future__ import annotations

import warnings

from weft.compat.pycsp import parallel as _parallel
from weft.compat.pycsp.configuration import Configuration as _Configuration
from weft.compat.pycsp.parallel import *  # noqa: F403

warnings.warn(
    "weft.compat.pycsp.processes: its processes are threads of this interpreter",
    RuntimeWarning,
    stacklevel=2,
)

version = (0, 9, 2, "processes")

# Settings of shared memory, kept and given back.
PROCESSES_SHARED_CONDITIONS = 7
PROCESSES_SHARED_LOCKS = 8
PROCESSES_ALLOC_MSG_BUFFER = 9
PROCESSES_MSG_BLOCK_SIZE = 10

for _setting, _value in (
    (PROCESSES_SHARED_CONDITIONS, 20),
    (PROCESSES_SHARED_LOCKS, 20),
    (PROCESSES_ALLOC_MSG_BUFFER, 100 * 1024 * 1024),
    (PROCESSES_MSG_BLOCK_SIZE, 64),
):
    _Configuration().set(_setting, _value)

__all__ = [
    *_parallel.__all__,
    "PROCESSES_ALLOC_MSG_BUFFER",
    "PROCESSES_MSG_BLOCK_SIZE",
    "PROCESSES_SHARED_CONDITIONS",
    "PROCESSES_SHARED_LOCKS",
]
