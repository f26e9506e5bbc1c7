"""`pycsp.parallel` and the older `pycsp.threads`: a process is a thread."""

from __future__ import annotations

from typing import Any

from weft import threads as _backend
from weft.compat.pycsp import _names, _ssh
from weft.compat.pycsp._names import *  # noqa: F403
from weft.compat.pycsp._processes import Implementation as _Implementation

_implementation = _Implementation("parallel", _backend)

version = (0, 9, 2, "parallel")

Process: Any = _implementation.Process
process = _implementation.process
Parallel = _implementation.Parallel
Sequence = _implementation.Sequence
Spawn = _implementation.Spawn
current_process_id = _implementation.current_process_id
shutdown = _implementation.shutdown
io = _implementation.io
Io = _implementation.Io
multiprocess = _implementation.multiprocess
MultiProcess: Any = _implementation.MultiProcess
sshprocess, SSHProcess = _implementation.away(_ssh.SSHProcess, "SSHProcess")
clusterprocess, ClusterProcess = _implementation.away(_ssh.ClusterProcess, "ClusterProcess")


__all__ = [*_names.__all__, *_names.OF_A_MODULE]

_implementation.publish(globals())
