"""Looks at the hosts of a network, for `weft top nats://…` and `weft dump nats://…`: joins the
network, and asks each of its hosts (_commands/host_observer.py).

Invariant: a host that does not answer hides no other; a sentence says why it does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any

from weft._commands.bad_use import BadUse
from weft._watching import visit as _visit
from weft._watching import visit_hosts as _visit_hosts
from weft.errors import BadUse as Refused

if TYPE_CHECKING:
    from weft._commands.host_observer import Observer


def is_network(word: str | None) -> bool:
    return word is not None and word.startswith(("nats://", "tls://"))


@contextlib.contextmanager
def observers(server: str, keys: str | None) -> Iterator[list[Observer]]:
    """Joins the network of that server. Yields an observer for each host of the network."""
    try:
        from weft import net
        from weft._commands.host_observer import Observer

        with contextlib.ExitStack() as opened:
            network = opened.enter_context(net.join(server, keys=keys, name="weft"))
            hosts = network._call(network._meeting.hosts())
            if not hosts:
                raise BadUse(f"no host is in the network of {server}: `weft host` starts one")
            yield [opened.enter_context(Observer(network, host.name)) for host in hosts]
    except ImportError as error:
        raise BadUse(f"{error}: pip install 'weft-csp[net]'") from None
    except (Refused, OSError) as error:
        raise BadUse(str(error)) from None


class FarLooking:
    """Looks at all hosts of a network, as _visit.Looking looks at one program."""

    pid = 0

    def __init__(self, found: Sequence[Observer]) -> None:
        self._found = found

    def look(self, interval: float = 0.1, most: int = 2_000) -> _visit.Network:
        answers: dict[str, dict[str, Any]] = {}
        with futures.ThreadPoolExecutor(len(self._found)) as pool:
            asked = [pool.submit(one.look, interval, most) for one in self._found]
            for one, answer in zip(self._found, asked, strict=True):
                try:
                    answers[one.name] = answer.result()
                except Refused as error:
                    answers[one.name] = {"answers": {}, "silent": [str(error)]}
        return _visit_hosts.of_hosts(answers)
