"""Finds the nodes for `weft up`: those of a node file in the form of PBS and MPI, those of SLURM's
list, or those named on the command line.

Invariants
- Each node is returned once, with the sum of its slots. A line of a node file is one slot.
- A node's name never begins with `-`: the name is passed to `ssh` as an argument.
- The error for a bad list names its file and line, and is raised before anything is started.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft._net import name_rules as _net_named
from weft.errors import BadUse

__all__ = ["Node", "from_environment", "is_node", "lines_of", "named", "of_file", "of_slurm"]

_NODE = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._-]*")
_LINE = re.compile(r"(\S+?)(?::(\d+)|\s+slots=(\d+))?")
_SLURM = re.compile(r"(\d+)(?:\(x(\d+)\))?")


@dataclass(frozen=True)
class Node:
    """A machine for an agent.

    Attributes:
        target: the argument for `ssh`, like "gpu1" or "me@gpu1".
        slots: how many OS processes the agent has on the machine; None: one for each CPU.
    """

    target: str
    slots: int | None

    @property
    def address(self) -> str:
        """The address of the machine: the target without the user."""
        return self.target.rpartition("@")[2]

    @property
    def name(self) -> str:
        """The name by which programs find the agent. It has no dots, since dots separate the parts
        of a name.
        """
        return _net_named.simple(self.address)


def is_node(target: str) -> bool:
    """Returns whether the text has the form NODE or USER@NODE."""
    return len(target) <= 50 and bool(_NODE.fullmatch(target))


def _node(target: str, slots: str | None, where: str) -> Node:
    if not is_node(target):
        raise BadUse(
            f"{where}: {target[:60]!r} is not a node: give NODE, USER@NODE or NODE:SLOTS, a line each"
        )
    if slots is not None and not (len(slots) <= 5 and 1 <= int(slots) <= 10_000):
        raise BadUse(f"{where}: a node must have 1 to 10000 slots, not {slots[:20]}")
    return Node(target, None if slots is None else int(slots))


def _distinct(nodes: Iterable[Node], where: str) -> list[Node]:
    """Returns the same nodes. Raises BadUse if two agents would have the same name."""
    by_name: dict[str, Node] = {}
    for node in nodes:
        other = by_name.setdefault(node.name, node)
        if other is not node:
            raise BadUse(
                f"{where}: {other.target} and {node.target} would both be host {node.name}: "
                "name each machine once"
            )
    return list(by_name.values())


def named(names: Iterable[str]) -> list[Node]:
    """Returns the nodes of the command line, each given as NODE, USER@NODE or NODE:SLOTS.

    Raises:
        BadUse: a text is not a node, or two nodes have the same name.
    """
    nodes = []
    for name in names:
        target, colon, slots = name.partition(":")
        if colon and not re.fullmatch("[0-9]+", slots):
            raise BadUse(f"--ssh: {name!r} is not a node: give NODE, USER@NODE or NODE:SLOTS")
        nodes.append(_node(target, slots or None, "--ssh"))
    return _distinct(nodes, "--ssh")


def lines_of(path: str) -> list[Node]:
    """Returns the nodes of a node file, line by line. A line is `NODE`, `NODE:SLOTS` or `NODE
    slots=SLOTS`; `#` begins a comment.

    Raises:
        BadUse: there is no such file, it contains no node, or it contains a line of another form.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not a text"
        raise BadUse(
            f"--nodefile: cannot read {path!r}: {why}; give a file with a node on each line"
        ) from None
    nodes = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        where = f"{path}, line {number}"
        match = _LINE.fullmatch(content)
        slots = (match and (match[2] or match[3])) or "1"
        nodes.append(_node(match[1] if match else content, slots, where))
    if not nodes:
        raise BadUse(f"--nodefile: {path} names no node: put one on each line")
    return nodes


def of_file(path: str) -> list[Node]:
    """Returns the nodes of a node file. The slots of a node that is listed several times are added
    up.

    Raises:
        BadUse: for the reasons of lines_of(), or because two nodes would have the same name.
    """
    slots: dict[str, int] = {}
    for node in lines_of(path):
        slots[node.target] = slots.get(node.target, 0) + (node.slots or 0)
    return _distinct([Node(target, n) for target, n in slots.items()], path)


def of_slurm(environment: Mapping[str, str]) -> list[Node]:
    """Returns the nodes of the job in which SLURM runs this program. A compressed list, such as
    `gpu[1-3]`, is expanded by `scontrol`.

    Raises:
        BadUse: the list needs `scontrol`, which is not there or fails; or the text is not a list of
            nodes.
    """
    given = environment["SLURM_JOB_NODELIST"]
    where = f"$SLURM_JOB_NODELIST ({given})"
    if "[" not in given:
        names = given.split(",")
    elif shutil.which("scontrol") is None:
        raise BadUse(
            f"{where} is a compressed list, which only `scontrol` can expand, and `scontrol` is not on the "
            "PATH: give --nodefile or --ssh"
        )
    else:
        command = ["scontrol", "show", "hostnames", given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = done.stderr.strip()
            raise BadUse(f"{where}: scontrol ended with status {done.returncode}: {errors}")
        names = done.stdout.split()
    cpus: list[str | None] = []
    for part in filter(None, environment.get("SLURM_JOB_CPUS_PER_NODE", "").split(",")):
        if (match := _SLURM.fullmatch(part)) and int(match[2] or 1) <= len(names):
            cpus += [match[1]] * int(match[2] or 1)
    if len(cpus) != len(names):
        cpus = [None] * len(names)  # each agent finds out the number of CPUs of its machine
    nodes = [_node(n, c, where) for n, c in zip(names, cpus, strict=True)]
    return _distinct(nodes, where)


def from_environment() -> list[Node]:
    """Returns the nodes of the job of PBS or SLURM in which this program runs.

    Raises:
        BadUse: this program runs in no such job.
    """
    if path := os.environ.get("PBS_NODEFILE"):
        return of_file(path)
    if os.environ.get("SLURM_JOB_NODELIST"):
        return of_slurm(os.environ)
    raise BadUse(
        "which nodes? give --nodefile FILE or --ssh NODE; a job of PBS or SLURM needs neither"
    )
