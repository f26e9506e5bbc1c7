"""The agents of `weft up`: one on each node. Each agent is started through an `ssh`, and ends with
that `ssh`.

    Agents.start() ──► an `ssh` for each node ──the first line of JSON──► joined
                                              ──it ends before──► why(): its status and text
    Agents.close() ──► its input is closed ──► it has ended │ it does not answer: killed

Invariants
- The standard input of an `ssh` is a pipe, which gets a line every BEAT seconds between two lines
  to an agent. `weft host --attached` at its other end stops when the pipe ends, or is silent for
  LEASE seconds. So no agent outlives this program for long, however this program ends and whatever
  happens to the connection.
- The fields of a Started belong to its own thread until `joined` or `over` is set, which `_changed`
  announces.
- Ctrl-C at the terminal reaches no `ssh`: this program ends them.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from weft._net import foreign_json as _foreign_json
from weft._net.nodes import Node
from weft._readable import readable
from weft.errors import BadUse

__all__ = ["LEASE", "SSH", "Agents", "Started", "stop_when_left"]

BEAT = 5.0  # seconds between two signs of life that an agent receives
LEASE = 30.0  # seconds without a sign of life after which an agent ends
GRACE = 15.0  # seconds for an agent to end its calls, and itself
# the largest number of bytes of an agent's report about itself, which lists its pids
MAX_LINE_BYTES = 1 << 20
LINES = 20  # how many of an agent's last lines are kept
SSH = (
    "ssh",
    # ssh must not ask for a password, since the question would not be shown
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)


class Started:
    """An agent that was started on a node.

    Attributes:
        node: the node.
        joined: the agent's report about itself once it has joined, else None.
        over: the status of its `ssh` once that has ended, else None.
        last_lines: the last lines of its standard error, and lines on its standard output that are
            not the agent's.
    """

    def __init__(self, node: Node, command: Sequence[str], changed: Callable[[], None]) -> None:
        """Starts the agent. `changed` is called when `joined` or `over` has been set.

        Raises:
            OSError: no `ssh` is installed.
        """
        self.node = node
        self.joined: dict[str, Any] | None = None
        self.over: int | None = None
        self.last_lines = collections.deque[str](maxlen=LINES)
        self._changed = changed
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._thread = threading.Thread(
            target=self._read, name=f"weft up: {node.name}", daemon=True
        )
        self._errors.start()
        self._thread.start()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.last_lines.append(line.rstrip())

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            report = _json(line)
            if self.joined is None and isinstance(report, dict) and report.get("host"):
                self.joined = report
                self._changed()
            else:
                self.last_lines.append(line.rstrip())  # for example a line of the node's shell
        self._errors.join()
        self.over = self.process.wait()
        self._changed()

    def beat(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # ssh has ended, or is ending
            assert self.process.stdin is not None
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def why(self) -> str:
        """Returns why the agent has ended, as text."""
        output = "; ".join(line for line in self.last_lines if line) or "it said nothing"
        by = "ssh" if self.over == 255 else "the agent"  # 255 is the status of ssh's own failures
        return f"{self.node.target}: {by} ended with status {self.over}: {output}"

    def leave(self) -> None:
        """Closes the standard input of `ssh`, which makes the agent end."""
        with contextlib.suppress(OSError, ValueError):
            assert self.process.stdin is not None
            self.process.stdin.close()

    def end(self, until: float) -> bool:
        """Waits until the time `until` (time.monotonic()), and kills `ssh` if it still runs then.
        Returns whether `ssh` ended without being killed.
        """
        self._thread.join(max(0.0, until - time.monotonic()))
        well = not self._thread.is_alive()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._thread.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, number)
                self._thread.join(2.0)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            if not self._thread.is_alive():
                pipe.close()
        return well


def _json(line: str) -> Any:
    try:
        return _foreign_json.parsed(line.encode(), MAX_LINE_BYTES)
    except ValueError:
        return None


class Agents:
    """Starts an agent on each node, and ends all of them at the end of the block of this object.

    Args:
        command_of: returns the command that starts the agent of a node.
        tell: called with a line of text when something happens.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        command_of: Callable[[Node], Sequence[str]],
        tell: Callable[[str], None],
    ) -> None:
        self._nodes, self._command_of, self._tell = nodes, command_of, tell
        self._changed = threading.Condition()
        self.all: list[Started] = []
        self._announced: set[Node] = set()
        self._over = threading.Event()

    def start(self) -> None:
        """Starts the agents.

        Raises:
            OSError: no `ssh` is installed.
        """
        for node in self._nodes:
            self.all.append(Started(node, self._command_of(node), self._wake))
        threading.Thread(target=self._beat, name="weft up", daemon=True).start()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            for one in self.all:
                one.beat()

    def wait(self, patience: float) -> list[dict[str, Any]]:
        """Waits until all agents have joined. Returns the report of each agent about itself.

        Raises:
            BadUse: an agent has ended instead, or has not joined within `patience` seconds.
        """
        until = time.monotonic() + patience
        with self._changed:
            while True:
                for one in self.all:
                    if one.joined is not None and one.node not in self._announced:
                        self._announced.add(one.node)
                        processes = len(one.joined.get("pids", ()))
                        number = f"{len(self._announced)} of {len(self.all)}"
                        address = one.joined.get("address") or "by the relay"
                        self._tell(
                            f"{one.node.name} has joined: "
                            f"{processes} OS processes, {address} ({number})"
                        )
                if failed := [one.why() for one in self.all if one.over is not None]:
                    raise BadUse("\n".join(failed))
                missing = [one for one in self.all if one.joined is None]
                if not missing:
                    return [one.joined for one in self.all if one.joined is not None]
                left = until - time.monotonic()
                if left <= 0:
                    lines = [
                        f"{m.node.target} ({'; '.join(m.last_lines) or 'silent'})" for m in missing
                    ]
                    raise BadUse(
                        f"not joined within {patience:g} s: {', '.join(lines)}; "
                        "can it reach the server? --patience waits longer"
                    )
                self._changed.wait(left)

    def watch(self, goes_on: Callable[[], bool]) -> bool:
        """Reports each agent that ends, until goes_on() is false or no agent is left. Returns
        whether any agent is left.
        """
        reported: set[Node] = set()
        while goes_on():
            with self._changed:
                ended = [o for o in self.all if o.over is not None and o.node not in reported]
                if not ended and len(reported) < len(self.all):
                    self._changed.wait(0.5)
            for one in ended:
                reported.add(one.node)
                self._tell(one.why())
            if len(reported) == len(self.all):
                return False
        return True

    def close(self) -> None:
        """Ends all agents at the same time, and waits for them."""
        self._over.set()
        for one in self.all:
            one.leave()
        until = time.monotonic() + GRACE
        for one in self.all:
            if not one.end(until):
                self._tell(
                    f"{one.node.target} does not answer: "
                    f"its agent ends by itself within {LEASE:g} s"
                )

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stop_when_left(descriptor: int = 0, lease: float = LEASE) -> None:
    """Sends SIGTERM to this OS process of an agent once its standard input ends, or is silent for
    `lease` seconds. The OS process then has `lease` seconds to end.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while readable([descriptor], lease) and os.read(descriptor, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(lease)
        os._exit(143)  # the agent has not ended in time; its OS processes end with it

    threading.Thread(target=watch, name="weft: is it left?", daemon=True).start()
