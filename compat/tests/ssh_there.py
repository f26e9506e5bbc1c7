"""Processes that test_ssh.py runs on other machines, and a program with a channel."""

from __future__ import annotations

import os
import sys
from typing import Any

from weft.compat.pycsp.parallel import (
    PYCSP_HOST,
    Channel,
    ChannelRetireException,
    Configuration,
    Parallel,
    clusterprocess,
    process,
    retire,
    shutdown,
    sshprocess,
)


@sshprocess(ssh_host="node1")
def doubles(inp: Any, out: Any) -> str:
    while True:
        out(2 * inp())


@sshprocess(ssh_host="node1", ssh_user="me", ssh_port=2200)
def where(more: Any = None) -> tuple[str, int, Any]:
    print("this is printed")
    return os.environ["NODE"], os.getpid(), more


@clusterprocess(cluster_nodefile="$NODES")
def node() -> str:
    return os.environ["NODE"]


@sshprocess(ssh_host="node1")
def fails() -> None:
    raise ValueError("over there")


@sshprocess(ssh_host="node1")
def dies() -> None:
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)


@sshprocess(ssh_host="node1", pycsp_port=0)
def serves(name: str, n: int, done: Any) -> None:
    out = Channel(name).writer()
    for i in range(n):
        out(i)
    retire(out)
    done()


@sshprocess(ssh_host="node1", pycsp_port=0)
def serves_and_ends(name: str, n: int, buffer: int) -> None:
    out = Channel(name, buffer=buffer).writer()
    for i in range(n):
        out(i)
    retire(out)


@process
def gives(out: Any, n: int) -> None:
    for i in range(n):
        out(i)
    retire(out)


@process
def takes(inp: Any) -> list[int]:
    got = []
    try:
        while True:
            got.append(inp())
    except ChannelRetireException:
        return got


def main() -> None:
    """Runs a program whose channel other programs find, as if it were on a machine with the given
    name."""
    Configuration().set(PYCSP_HOST, sys.argv[1])
    jobs = Channel("jobs", buffer=2)
    reader = jobs.reader()
    print(jobs.address[1], flush=True)
    print(Parallel(takes(reader)), flush=True)
    sys.stdin.read()
    shutdown()


if __name__ == "__main__":
    main()
