"""The names that pycsp's modules have in common: all names except those that make and run
processes."""

from __future__ import annotations

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
    "Configuration",
    "Deadlock",
    "FairSelect",
    "FatalException",
    "InfoException",
    "InputGuard",
    "OutputGuard",
    "PriSelect",
    "Skip",
    "SkipGuard",
    "Timeout",
    "TimeoutGuard",
    "choice",
    "poison",
    "retire",
]

# The names that each module makes for its own backend, by an Implementation.
OF_A_MODULE = [
    "ClusterProcess",
    "Io",
    "MultiProcess",
    "Parallel",
    "Process",
    "SSHProcess",
    "Sequence",
    "Spawn",
    "clusterprocess",
    "current_process_id",
    "io",
    "multiprocess",
    "process",
    "shutdown",
    "sshprocess",
    "version",
]
