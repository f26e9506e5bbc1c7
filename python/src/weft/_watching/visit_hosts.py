"""Combines the reports of hosts about their OS processes (_commands/host_observed.py) into one
network, for `weft top nats://…` and `weft view nats://…`.

Invariant: the numbers of OS processes are unique in the network. pid_there() returns the pid that
the system of the host knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft._watching import visit as _visit

# the bits of a pid on Linux; the bits above them contain the number of the host, from 1 on
_FAR = 22


def pid_there(pid: int, host: str) -> int:
    """Returns the pid that the system of the host knows. A Network gives the OS processes of hosts
    other numbers, since two hosts can have the same pid. Without a host, returns `pid`.
    """
    return pid & ((1 << _FAR) - 1) if host else pid


def shown(pid: int, host: str) -> str:
    """Returns the pid of an OS process in a form for people, with its host if it has one."""
    return f"{pid_there(pid, host)} on {host}" if host else str(pid)


def of_hosts(
    told: dict[str, dict[str, Any]], numbers: Mapping[str, int] | None = None
) -> _visit.Network:
    """Returns the reports of the hosts of a network (_commands/host_observed.py) as one network.
    The paths of processes begin with the name of their host.

    Args:
        told: the report of each host, by the host's name.
        numbers: a number from 1 on for each host, which becomes part of the numbers of the host's
            OS processes. None: the hosts are numbered in this order.

    Raises:
        _visit.NoLook: an answer lacks what this version of Weft needs.
    """
    answers: dict[int, dict[str, Any]] = {}
    silent: list[str] = []
    names: dict[int, str] = {}
    if numbers is None:
        numbers = {name: i for i, name in enumerate(told, 1)}
    for name, of in told.items():
        i = numbers[name]
        silent += [f"host {name}: {sentence}" for sentence in of["silent"]]
        for pid, answer in of["answers"].items():
            number = i << _FAR | int(pid)
            names[number] = name
            answer["away"] = {
                key: (i << _FAR | int(there), call)
                for key, (there, call) in answer["away"].items()
                if int(there)
            }
            answers[number] = answer
    network = _visit.together(min(answers, default=0), answers, silent, {})
    own = {numbers[name] << _FAR | int(of.get("own", 0)) for name, of in told.items()}
    rows = []
    for row in network.rows:
        # this process is the one that has answered the look
        if row.pid in own and _OBSERVES in row.path:
            continue
        row.host = names[row.pid]
        row.path = f"{row.host}:{row.path}"
        rows.append(row)
    for one in network.os_processes:
        one.host = names[one.pid]
    for node in network.nodes:
        assert isinstance(node.at, int)
        node.path = f"{names[node.at]}:{node.path}"
    kept = {row.path for row in rows}
    network.nodes = [node for node in network.nodes if node.path in kept]
    network.rows = rows
    for pipe in network.pipes:
        at = names[pipe.pid]
        pipe.readers = [f"{at}:{path}" for path in pipe.readers]
        pipe.writers = [f"{at}:{path}" for path in pipe.writers]
    _forget_unknown(network)
    network.pipes = [
        p for p in network.pipes if not any(_OBSERVES in path for path in p.readers + p.writers)
    ]
    return network


def _forget_unknown(network: _visit.Network) -> None:
    """Removes the rates that no host knows. Values are counted where the channel was made, and the
    program that made it might not be a host: if so, no host has seen a value pass, and no host
    holds both sides.
    """
    unknown = set()
    held: dict[str, set[int]] = {}
    for row in network.rows:
        for at, _ in row.holds:
            held.setdefault(at, set()).add(row.pid)
    for pipe in network.pipes:
        far = len(held.get(pipe.id, ())) > 1
        if not pipe.rate and (far or not (pipe.readers and pipe.writers)):
            pipe.rate = None
            unknown.add(pipe.id)
    for row in network.rows:
        if any(at in unknown for at, _ in row.holds):
            row.rate = None


_OBSERVES = "tells_observer"
