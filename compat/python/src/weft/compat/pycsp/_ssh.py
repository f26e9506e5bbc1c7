"""pycsp's processes and channels on other machines: `@sshprocess`, `@clusterprocess`, and
`Channel(name, connect=(host, port))` with another machine's port.

    SshHost.call() (_ssh_host.py) ──`ssh`──► python -m weft.compat.pycsp._node run ──► a process
    joined()                      ──`ssh`──► … join PORT ──► the socket of the remote program

Invariants
- The session's bytes are the standard input and output of an `ssh` of the user's own, which must
  need no password. Text that the remote process prints arrives on the standard error of `ssh`,
  and is forwarded to the standard error of this program.
- Values are pickled, which is safe: the user of that `ssh` may run anything there anyway.
- An `ssh` ends when its session ends, because its input ends then.
"""

from __future__ import annotations

import abc
import collections
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft._extension import native as _native
from weft._net import nodes as _net_nodes
from weft._net import ssh_agents as _net_up
from weft.compat.pycsp._errors import InfoException
from weft.compat.pycsp._processes import BaseProcess, _Apart
from weft.errors import BadUse

__all__ = ["Child", "ClusterProcess", "SSHProcess", "joined"]

LINES = 20


class Child:
    """Starts an `ssh`, and holds this end of the stream to the program on the other machine.

    Raises:
        OSError: there is no `ssh`.
    """

    def __init__(self, target: str, options: Sequence[str], *words: str) -> None:
        there = shlex.join([sys.executable, "-m", "weft.compat.pycsp._node", *words])
        line = f"cd {shlex.quote(str(Path.cwd()))} && exec {there}"
        self.stream, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*_net_up.SSH, *options, target, "--", line],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        self.last_lines = collections.deque[str](maxlen=LINES)
        self.over = threading.Thread(target=self._read, name=f"pycsp: {target}", daemon=True)
        _native._outside(True)
        self.over.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self.last_lines.append(line)
                sys.stderr.write(line)
        self.process.wait()
        _native._outside(False)


def joined(host: str, port: int) -> socket.socket:
    """Returns a stream to the program with this port on another machine."""
    if not _net_nodes.is_node(host):
        raise OSError(f"{host!r} is not the name of a machine")
    return Child(host, (), "join", str(port)).stream


class _Away(_Apart, abc.ABC):
    """The base of processes on another machine; `_where` holds the place."""

    __slots__ = ("_where",)

    _defaults: dict[str, Any] = {}  # noqa: RUF012 - never changed

    def __init__(self, fn: Any, *args: Any, **kwargs: Any) -> None:
        self._where = dict(self._defaults)
        own = {k: kwargs.pop(k) for k in list(kwargs) if k in self._defaults}
        super().__init__(fn, *args, **kwargs)
        self.update(**own)

    @classmethod
    def _check(cls, settings: dict[str, Any]) -> None:
        """Checks the settings that were given for a process of this kind.

        Raises:
            InfoException: there is no such setting, or a password is given.
        """
        if wrong := sorted(set(settings) - set(cls._defaults)):
            raise InfoException(
                f"{cls.__name__} has no setting {', '.join(wrong)}: "
                f"it has {', '.join(cls._defaults)}"
            )
        if settings.get("ssh_password") is not None:
            raise InfoException(
                f"{cls.__name__}: ssh asks for no password here: have a key on that machine"
            )

    def update(self, **settings: Any) -> Any:
        """Sets where the process runs, before it is started; returns the process.

        Raises:
            InfoException: the process has been started, or has no such setting.
        """
        self._check(settings)
        if self._running:
            raise InfoException(f"process {self.name} was started already and runs")
        self._where.update(settings)
        return self

    def _settings(self) -> dict[str, Any]:
        return {k: v for k, v in self._where.items() if k != "pycsp_port"}

    def _begin(self, spawned: bool = False) -> Any:
        if not self._running:
            self._place = self._found()
        # super()._begin() would bind the port on this machine, but the port is one of the other
        # machine.
        return BaseProcess._begin(self, spawned)

    @abc.abstractmethod
    def _found(self) -> Any:
        """Returns where the process runs, in the form that `on` accepts."""


def _host_at(target: str, *options: str) -> Any:
    """Returns the host that runs processes on the machine `target`.

    Raises:
        InfoException: `target` is not the name of a machine, or a package is missing.
    """
    if not _net_nodes.is_node(target):
        raise InfoException(f"{target!r} is not the name of a machine: HOST, or USER@HOST")
    try:
        from weft.compat.pycsp import _ssh_host
    except ImportError as error:
        raise InfoException(
            f"processes on other machines need {error.name}: pip install 'weft-csp[net]'"
        ) from None
    return _ssh_host.SshHost(target, *options)


def _port(port: Any) -> tuple[str, ...]:
    """Returns the options of ssh for the port; none for 22, which is left to the user's own
    settings.
    """
    return () if int(port) == 22 else ("-p", str(int(port)))


class SSHProcess(_Away):
    """A process on another machine, which `ssh` reaches without a password: an interpreter of its
    own, started there in the same directory. Its function is at the top level of a module that
    exists there too; ends of channels among the arguments are passed as ends, all other arguments
    by pickle.

    Args:
        ssh_host, ssh_port, ssh_user: the address for ssh.
        ssh_password: refused.
        pycsp_host, pycsp_port: the address of its channels.
    """

    __slots__ = ()

    _defaults = {  # noqa: RUF012 - never changed
        "pycsp_host": "",
        "pycsp_port": 0,
        "ssh_host": "localhost",
        "ssh_port": 22,
        "ssh_user": None,
        "ssh_password": None,
    }

    def _found(self) -> Any:
        w = self._where
        host, port = w["pycsp_host"] or w["ssh_host"], w["pycsp_port"]
        self._address = (host, port) if port else None
        user = f"{w['ssh_user']}@" if w["ssh_user"] else ""
        return _host_at(f"{user}{w['ssh_host']}", *_port(w["ssh_port"]))


class ClusterProcess(_Away):
    """A process on a node of a node file, which `ssh` reaches as for an SSHProcess.

    Args:
        cluster_nodefile: a file with a node on each line, and several lines for several CPUs;
            "$NAME" means the file that the environment variable names.
        cluster_pin: the number of a line; None means that the hint chooses.
        cluster_hint: "blocked": line after line; "strided": the next node each time; "local": this
            machine.
        cluster_ssh_port: the port for ssh.
    """

    __slots__ = ()

    _defaults = {  # noqa: RUF012 - never changed
        "cluster_nodefile": "$PBS_NODEFILE",
        "cluster_pin": None,
        "cluster_hint": "blocked",
        "cluster_ssh_port": 22,
    }

    def _found(self) -> Any:
        w = self._where
        group = _group(str(w["cluster_nodefile"]))
        pin = w["cluster_pin"]
        node = group.by_hint(w["cluster_hint"]) if pin is None else group.by_number(int(pin))
        return _host_at(node, *_port(w["cluster_ssh_port"]))


class _Group:
    """The lines of a node file, and the next line to use."""

    def __init__(self, nodes: list[str]) -> None:
        self.nodes = nodes
        self._next = 0
        self._lock = threading.Lock()

    def by_number(self, number: int) -> str:
        return self.nodes[number % len(self.nodes)]

    def by_hint(self, hint: Any) -> str:
        """Returns the node that the hint chooses.

        Raises:
            InfoException: there is no such hint.
        """
        if hint == "local":
            return "localhost"
        if hint not in ("blocked", "strided"):
            raise InfoException(f"cluster_hint is 'blocked', 'strided' or 'local', not {hint!r}")
        with self._lock:
            n = len(self.nodes)
            at = self._next
            if hint == "strided":  # takes the next line that names another node than the last
                last = self.nodes[at - 1]
                at = next((i % n for i in range(at, at + n) if self.nodes[i % n] != last), at)
            self._next = (at + 1) % n
            return self.nodes[at]


_groups: dict[str, _Group] = {}
_grouping = threading.Lock()


def _group(nodefile: str) -> _Group:
    """Returns the group of this node file, which all processes with that file share.

    Raises:
        InfoException: there is no such file, or no node in it.
    """
    path: str | None = nodefile
    if nodefile.startswith("$") and (path := os.environ.get(nodefile[1:])) is None:
        raise InfoException(f"cluster_nodefile: {nodefile} is not set, which names the node file")
    with _grouping:
        if path not in _groups:
            try:
                lines = _net_nodes.lines_of(str(path))
            except BadUse as error:
                raise InfoException(str(error)) from None
            _groups[str(path)] = _Group(
                [node.target for node in lines for _ in range(node.slots or 1)]
            )
        return _groups[str(path)]
