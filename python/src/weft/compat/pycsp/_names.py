"""What pycsp's modules have in common: all but the names that make and run processes."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.compat.pycsp._channels import Channel, poison, retire
from weft.compat.pycsp._choice import (
    Alternation,
    AltSelect,
    FairSelect,
    InputGuard,
    OutputGuard,
    PriSelect,
    Skip,
    SkipGuard,
    Timeout,
    TimeoutGuard,
    choice,
)
from weft.compat.pycsp._errors import (
    ChannelBindException,
    ChannelConnectException,
    ChannelLostException,
    ChannelPoisonException,
    ChannelRetireException,
    ChannelSocketException,
    Deadlock,
    FatalException,
    InfoException,
)
from weft.compat.pycsp.configuration import (
    PYCSP_HOST,
    PYCSP_PORT,
    SOCKETS_BIND_RETRY_DELAY,
    SOCKETS_BIND_TIMEOUT,
    SOCKETS_CONNECT_RETRY_DELAY,
    SOCKETS_CONNECT_TIMEOUT,
    SOCKETS_STRICT_MODE,
    Configuration,
)

__all__ = [
    "PYCSP_HOST",
    "PYCSP_PORT",
    "SOCKETS_BIND_RETRY_DELAY",
    "SOCKETS_BIND_TIMEOUT",
    "SOCKETS_CONNECT_RETRY_DELAY",
    "SOCKETS_CONNECT_TIMEOUT",
    "SOCKETS_STRICT_MODE",
    "AltSelect",
    "Alternation",
    "Channel",
    "ChannelBindException",
    "ChannelConnectException",
    "ChannelLostException",
    "ChannelPoisonException",
    "ChannelRetireException",
    "ChannelSocketException",
    "ClusterProcess",
    "Configuration",
    "Deadlock",
    "FairSelect",
    "FatalException",
    "InfoException",
    "InputGuard",
    "OutputGuard",
    "PriSelect",
    "SSHProcess",
    "Skip",
    "SkipGuard",
    "Timeout",
    "TimeoutGuard",
    "choice",
    "clusterprocess",
    "poison",
    "retire",
    "sshprocess",
]

# And what each module makes for its own backend, by an Implementation.
OF_A_MODULE = [
    "Io",
    "MultiProcess",
    "Parallel",
    "Process",
    "Sequence",
    "Spawn",
    "current_process_id",
    "io",
    "multiprocess",
    "process",
    "shutdown",
    "version",
]


def _elsewhere(name: str) -> NoReturn:
    raise InfoException(
        f"{name}: processes on other hosts are not part of this layer; use @process, or @multiprocess of "
        "weft.compat.pycsp.parallel"
    )


def sshprocess(func: Any = None, **_: Any) -> NoReturn:
    """Raises InfoException: there are no processes on other hosts here."""
    _elsewhere("sshprocess")


def clusterprocess(func: Any = None, **_: Any) -> NoReturn:
    """Raises InfoException: there are no processes on other hosts here."""
    _elsewhere("clusterprocess")


class SSHProcess:
    """Raises InfoException: there are no processes on other hosts here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _elsewhere("SSHProcess")


class ClusterProcess:
    """Raises InfoException: there are no processes on other hosts here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _elsewhere("ClusterProcess")
