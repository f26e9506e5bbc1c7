"""Runs networks on a Python backend of weft (`weft.coroutines`, `weft.threads`, `weft.greenlets`),
in tasks of asyncio (task_driver.py), or on several of them at once ("tasks+threads"), and
records their histories.

The driver's assumptions about the package are in python_names.py, and a run of one network in
python_play.py. The player (python_player.py) is one generator for awaiting and for blocking
processes: it yields a function that starts an operation. The coroutine backend awaits what the
function returns; the other backends take it as the result. The process itself makes a record just
before an operation starts and just after it returns. All processes append to one list, which thus
has the order of the records.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import warnings
from typing import Any

from . import native_driver
from .interp import Record
from .networks import DEFAULT, Net
from .python_names import PURE, Names, backends_of, clock_of, grain_of, names_of
from .python_play import Play

if not os.environ.get("WEFT_PURE"):  # the pure package has no OS processes
    from . import host_driver


class PythonDriver:
    """A Driver over a Python backend: "coroutines", "threads", "greenlets", "guest" (coroutines in
    an asyncio loop), "tasks" (of asyncio), or the full name of a module with the same names.
    With "greenlets+threads" the processes are dealt to both in turn; with "mixed", to
    coroutines, greenlets and threads.
    """

    def __init__(
        self, backend: str, features: frozenset[str] = DEFAULT, names: Names | None = None
    ):
        self.names = [names] if names else names_of(backend)
        self.name = backend
        self.grain = (
            grain_of(backend) if not names else "atomic" if names.one_scheduler else "cores"
        )
        self.clock, self.features = clock_of(backend), features

    def run(self, net: Net, seed: int) -> list[Record]:
        return Play(self.names, net).history()


class ApartDriver:
    """A Driver over a Python backend in an OS process of its own. If a network hangs or crashes the
    runtime, its history breaks off, but the tests continue.

    The OS process serves one network after another, each with a JSON line as question and answer,
    until `close` or until the OS process is lost.
    """

    def __init__(self, backend: str, features: frozenset[str] = DEFAULT, seconds: float = 60):
        self.name, self.features, self.seconds = backend, features, seconds
        self.grain, self.clock = grain_of(backend), clock_of(backend)
        self.server: subprocess.Popen[str] | None = None
        # How many processes of this driver's networks ran in other OS processes or in a component.
        self.away = 0

    def run(self, net: Net, seed: int) -> list[Record]:
        if self.server is None:
            if {"native", "pool"} & {*backends_of(self.name)}:
                # The component is built here, because building it takes longer than a network is
                # allowed to take.
                native_driver.component()
            self.server = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, self.name, str(self.seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "WEFT_PURE": "1"} if self.name in PURE else None,
            )
        requests, replies = self.server.stdin, self.server.stdout
        assert requests is not None and replies is not None
        line = ""
        try:
            requests.write(json.dumps(net) + "\n")
            requests.flush()
            # The server itself ends after `seconds`. If it has not answered after twice that
            # time, it is dead.
            if select.select([replies], [], [], 2 * self.seconds + 5)[0]:
                line = replies.readline()
        except BrokenPipeError:
            pass
        answer = json.loads(line) if line.endswith("\n") else {"history": [], "lost": True}
        if answer["lost"]:
            status = self.close()
            print(
                f"{self.name}: the network of seed {seed} "
                + (
                    f"did not end within {self.seconds} s"
                    if line
                    else f"ended its process: status {status}"
                ),
                file=sys.stderr,
            )
        self.away = answer.get("away", 0)
        history: list[Record] = answer["history"]
        return history

    def close(self) -> int | None:
        """Ends the OS process; returns its exit status, or None if there is no OS process."""
        if self.server is None:
            return None
        server, self.server = self.server, None
        server.kill()
        server.communicate()
        return server.returncode


def serve(backend: str, seconds: float) -> None:
    """Runs the networks that arrive as lines on the standard input. If a network takes longer than
    `seconds`, the answer contains the records made so far, and the OS process ends, because the
    network's processes cannot be stopped.
    """
    names = names_of(backend)
    machines = any(n.machines for n in names)
    away = host_driver.Away(machines) if any(n.away for n in names) else None
    native = 0
    if any(n.native for n in names):
        native_driver.component()
    out = os.fdopen(os.dup(1), "w")
    warnings.simplefilter("ignore")  # warnings about processes that a Sequence never started
    os.dup2(2, 1)  # text that the runtime prints must not be taken for an answer
    for line in sys.stdin:
        journal = away.journal() if away else None
        play = Play(names, json.loads(line), journal, away)

        # The time limit is a signal and not a thread: the runtime would have to assume that the
        # thread holds ends, and a deadlock would be hidden (10.3).
        def give_up(*_: Any, play: Play = play) -> None:
            json.dump({"history": play.so_far(), "lost": True}, out)
            out.write("\n")
            out.flush()
            os._exit(1)

        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        history = play.history()
        signal.setitimer(signal.ITIMER_REAL, 0)
        if journal is not None:
            journal.close()
        native += play.native
        went = away.went if away else native
        json.dump({"history": history, "lost": False, "away": went}, out)
        out.write("\n")
        out.flush()


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]))
