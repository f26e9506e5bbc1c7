"""`pycsp.greenlets`: a process is a greenlet. Needs the package greenlet: pip install greenlet."""

from __future__ import annotations

from typing import Any, NoReturn

from weft import greenlets as _backend
from weft.compat.pycsp import _names
from weft.compat.pycsp._errors import InfoException as _InfoException
from weft.compat.pycsp._names import *  # noqa: F403
from weft.compat.pycsp._processes import Implementation as _Implementation

_implementation = _Implementation("greenlets", _backend, _backend.io)

version = (0, 9, 2, "greenlets")

Process: Any = _implementation.Process
process = _implementation.process
Parallel = _implementation.Parallel
Sequence = _implementation.Sequence
Spawn = _implementation.Spawn
current_process_id = _implementation.current_process_id
shutdown = _implementation.shutdown
io = _implementation.io
Io = _implementation.Io


def multiprocess(func: Any = None, **_: Any) -> NoReturn:
    """Raises InfoException, as in pycsp: greenlets run in one interpreter."""
    raise _InfoException("multiprocess not available for greenlets. Use weft.compat.pycsp.parallel")


class MultiProcess:
    """Raises InfoException, as in pycsp: greenlets run in one interpreter."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise _InfoException(
            "MultiProcess not available for greenlets. Use weft.compat.pycsp.parallel"
        )


sshprocess = clusterprocess = multiprocess
SSHProcess = ClusterProcess = MultiProcess

__all__ = [*_names.__all__, *_names.OF_A_MODULE]

_implementation.publish(globals())
