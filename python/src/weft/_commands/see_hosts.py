"""Looks at the hosts of a network, for `weft top nats://…`, `weft view nats://…` and `weft dump
nats://…`: joins the network, and asks each of its hosts (host_observer.py).

    FarLooking ──one _Asked for each host──► Observer, on a thread for each question ──► the host

Invariants
- A host that does not answer hides no other; a sentence says why it does not.
- A host is asked one question at a time.
- A look waits for a host once: if the host has not answered then, a later look uses its answer once
  the answer has arrived.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import TYPE_CHECKING, Any

from weft._commands.bad_use import BadUse
from weft._watching import visit as _visit
from weft._watching import visit_hosts as _visit_hosts
from weft.errors import BadUse as Refused

if TYPE_CHECKING:
    from weft._commands.host_observer import Observer

GONE = 600.0  #: seconds for which a look names a host that has left the network


def is_network(word: str | None) -> bool:
    return word is not None and word.startswith(("nats://", "tls://"))


@contextlib.contextmanager
def joined(server: str, keys: str | None) -> Iterator[Any]:
    """Joins the network of that server, which must have a host."""
    try:
        from weft import net

        with net.join(server, keys=keys, name="weft") as network:
            if not _names(network):
                raise BadUse(f"no host is in the network of {server}: `weft host` starts one")
            yield network
    except ImportError as error:
        raise BadUse(f"{error}: pip install 'weft-csp[net]'") from None
    except (Refused, OSError) as error:
        raise BadUse(str(error)) from None


def _names(network: Any) -> list[str]:
    return [host.name for host in network._call(network._meeting.hosts())]


@contextlib.contextmanager
def observers(server: str, keys: str | None) -> Iterator[list[Observer]]:
    """Joins the network of that server. Yields an observer for each host of the network."""
    with joined(server, keys) as network, contextlib.ExitStack() as opened:
        from weft._commands.host_observer import Observer

        yield [opened.enter_context(Observer(network, name)) for name in _names(network)]


class _Asked:
    """Asks one host for the answers that looks need."""

    def __init__(self, network: Any, name: str) -> None:
        self.name = name
        self.prompt = True  # whether a look should wait for the host; only looks use this field
        self._network = network
        self._lock = threading.Lock()  # protects the fields that follow
        self._observer: Observer | None = None
        self._answer: futures.Future[dict[str, Any]] | None = None
        self._over = False

    def ask(self, interval: float, most: int) -> futures.Future[dict[str, Any]]:
        """Returns the answer that is awaited: that of an earlier question if no look has received
        that answer yet, otherwise that of a new question.
        """
        with self._lock:
            if self._answer is None:
                self._answer = futures.Future()
                threading.Thread(
                    target=self._ask,
                    args=(self._answer, interval, most),
                    name="weft: asks a host",
                    daemon=True,
                ).start()
            return self._answer

    def take(self) -> dict[str, Any] | str:
        """Returns the answer, or a sentence that says why there is none."""
        answer = self._answer
        if answer is None or not answer.done():
            self.prompt = False
            return f"host {self.name} has not answered yet"
        with self._lock:
            self._answer = None
        error = answer.exception()
        self.prompt = error is None
        return answer.result() if error is None else str(error) or type(error).__name__

    def _ask(self, answer: futures.Future[dict[str, Any]], interval: float, most: int) -> None:
        from weft._commands.host_observer import Observer

        observer = self._observer
        try:
            if observer is None:
                self._observer = observer = Observer(self._network, self.name)
            found = observer.look(interval, most)
        except BaseException as error:
            with self._lock:
                self._observer = None  # the next question begins with a new observer
                answer.set_exception(error)
            if observer is not None:
                observer.__exit__()
            return
        with self._lock:
            answer.set_result(found)
            over = self._over
        if over:
            observer.__exit__()

    def end(self) -> None:
        """Asks no more questions. A question that is under way is not interrupted."""
        with self._lock:
            self._over = True
            busy = self._answer is not None and not self._answer.done()
            observer = None if busy else self._observer
        if observer is not None:
            observer.__exit__()


class FarLooking:
    """Looks at all hosts of a network, as _visit.Looking looks at one program. Hosts may join and
    leave between two looks.

    Args:
        patience: how many seconds after the interval a look waits for a host. None: as long as an
            Observer waits.
    """

    pid = 0

    def __init__(self, network: Any, patience: float | None = None) -> None:
        self._network = network
        self._patience = patience
        self._asked: dict[str, _Asked] = {}
        self._gone: dict[str, float] = {}  # hosts that have left, and when this was noticed
        self._numbers: dict[str, int] = {}

    def __enter__(self) -> FarLooking:
        return self

    def __exit__(self, *_: object) -> None:
        for asked in self._asked.values():
            asked.end()
        self._asked.clear()

    def look(self, interval: float = 0.1, most: int = 2_000) -> _visit.Network:
        """Looks once.

        Raises:
            _visit.NoLook: the server does not answer, and no host is known; or a host answers in a
                form that this version of Weft does not know.
        """
        silent = self._meet_all()
        until = time.monotonic() + interval
        limit = None if self._patience is None else interval + self._patience
        answers = [(asked.ask(interval, most), asked.prompt) for asked in self._asked.values()]
        futures.wait([one for one, prompt in answers if prompt or limit is None], limit)
        if (left := until - time.monotonic()) > 0:  # the wait ended before the interval had passed
            time.sleep(left)
        told: dict[str, dict[str, Any]] = {}
        hosts = []
        for name, asked in self._asked.items():
            answer = asked.take()
            if isinstance(answer, str):
                hosts.append(_visit.Host(name, "silent", answer))
            else:
                told[name] = answer
                hosts.append(_visit.Host(name, "answers"))
        for name in self._gone:
            hosts.append(_visit.Host(name, "gone", f"host {name} has left the network"))
        network = _visit_hosts.of_hosts(told, self._numbers)
        network.silent += [host.text for host in hosts if host.text] + silent
        network.hosts = sorted(hosts, key=lambda host: host.name)
        return network

    def _meet_all(self) -> list[str]:
        """Records which hosts have joined and which have left. Returns a sentence if the server
        does not answer; then the look covers the hosts that are already known.
        """
        try:
            here = _names(self._network)
        except (Refused, OSError) as error:
            if not self._asked:
                raise _visit.NoLook(str(error)) from None
            return [str(error)]
        now = time.monotonic()
        for name in self._asked.keys() - here:
            # The end of an observer might have to wait for the end of its call.
            threading.Thread(target=self._asked.pop(name).end, daemon=True).start()
            self._gone[name] = now
        for name in here:
            self._gone.pop(name, None)
            self._numbers.setdefault(name, len(self._numbers) + 1)
            if name not in self._asked:
                self._asked[name] = _Asked(self._network, name)
        self._gone = {name: at for name, at in self._gone.items() if now - at < GONE}
        return []
