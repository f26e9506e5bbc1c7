"""A machine that `ssh` reaches, as a place where processes can run, for `@sshprocess` and
`@clusterprocess` (_ssh.py). It needs the packages of weft.net: its calls are those that programs of
weft.net make when they trust each other (WIRE-NETWORKS.md 17.10), but over a session through `ssh`.

Invariant: each call has its own `ssh` and its own remote interpreter.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from typing import Any

from weft._hosts import host as _host
from weft._net import calls as _net_calls
from weft._net import remote_hosts as _net_hosts
from weft.compat.pycsp import _remote
from weft.compat.pycsp._ssh import Child
from weft.errors import ProcessDied

__all__ = ["SshHost"]

GRACE = 5.0  # seconds that an `ssh` has to report the reason once its session has ended
# Seconds to wait for remote text: a process that does not end can keep the stream open.
PATIENCE = 2.0


class _Session:
    """Stands for a _net_link.Session, with the parts that _Far uses."""

    trusted = True

    def __init__(self, child: Child, home: str) -> None:
        self.child = child
        self._answer_fields = {"home": home}
        self._link = _remote.linked(child.stream, f"python {os.getpid()}", True)

    def _give_up(self) -> None:
        self._link.close("the other program has given it up")


class SshHost(_net_hosts._Far):
    """A machine that `ssh` reaches: each call has an interpreter of its own on that machine.

    Args:
        target: HOST or USER@HOST.
        options: further options of ssh.
    """

    def __init__(self, target: str, *options: str) -> None:
        super().__init__(None, 0.0)
        self.target, self._options = target, options
        self._numbers = itertools.count(1)

    def _begun(self, asked: _net_calls.Asked) -> tuple[str, Any]:
        child = Child(self.target, self._options, "run", asked.run, asked.digest)
        main = _host._preparation(_host.Setting())
        request = {k: main[k] for k in ("path", "argv", "main_name", "main_path", "compiled_for")}
        with contextlib.suppress(OSError):  # the `ssh` has ended, and the call reports the reason
            child.stream.sendall(json.dumps(request).encode() + b"\n")
        return self.target, _Session(child, str(next(self._numbers)))

    def _processes(self) -> int:
        return 1

    def _hear_out(self, session: Any) -> None:
        session.child.over.join(PATIENCE)

    def _died(self, name: str, host: str, session: Any) -> ProcessDied:
        child = session.child
        child.over.join(GRACE)
        return ProcessDied(
            name, 0, child.process.poll(), stderr="".join(child.last_lines), host=self.target
        )

    def __repr__(self) -> str:
        return f"<host {self.target!r} by ssh>"
