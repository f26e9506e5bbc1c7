"""The names of the older `pycsp.processes`. A process is a thread of this interpreter, and a
warning at the import reports this.
"""

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

# pycsp 0.7.1's settings of shared memory: stored and returned, without effect. The numbers are this
# layer's own, since later versions use those of 0.7.1 for other settings.
PROCESSES_SHARED_LOCKS = 7
PROCESSES_SHARED_CONDITIONS = 8
PROCESSES_ALLOC_MSG_BUFFER = 9
PROCESSES_MSG_BUFFER_BLOCKSIZE = 10
PROCESSES_ALLOC_QUEUE_PER_CHANNEL = 11
PROCESSES_ALLOC_CHANNELS = 12
PROCESSES_ALLOC_CHANNELENDS = 13

for _setting, _value in (
    (PROCESSES_SHARED_LOCKS, 20),
    (PROCESSES_SHARED_CONDITIONS, 20),
    (PROCESSES_ALLOC_MSG_BUFFER, 100 * 1024 * 1024),
    (PROCESSES_MSG_BUFFER_BLOCKSIZE, 10000),
    (PROCESSES_ALLOC_QUEUE_PER_CHANNEL, 1000),
    (PROCESSES_ALLOC_CHANNELS, 5000),
    (PROCESSES_ALLOC_CHANNELENDS, 10000),
):
    _Configuration().set(_setting, _value)

__all__ = [
    *_parallel.__all__,
    "PROCESSES_ALLOC_CHANNELENDS",
    "PROCESSES_ALLOC_CHANNELS",
    "PROCESSES_ALLOC_MSG_BUFFER",
    "PROCESSES_ALLOC_QUEUE_PER_CHANNEL",
    "PROCESSES_MSG_BUFFER_BLOCKSIZE",
    "PROCESSES_SHARED_CONDITIONS",
    "PROCESSES_SHARED_LOCKS",
]
