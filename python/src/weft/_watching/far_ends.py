"""Finds, from the answers of several OS processes to a look, the channels between these OS
processes, and how many operations each process does there.
"""

from __future__ import annotations

from typing import Any


def in_many(answers: dict[int, dict[str, Any]]) -> set[str]:
    """Returns the names of the channels that lead from one of these OS processes to another:
    several OS processes have an end of such a channel. If each OS process has both a reader and a
    writer of a name, each has its own channel of that name, made for instance by a function that
    runs in all of them.
    """
    sides: dict[str, dict[int, set[bool]]] = {}
    for pid, answer in answers.items():
        names = {key: channel["name"] for key, channel in answer["channels"].items()}
        for name in names.values():
            sides.setdefault(name, {}).setdefault(pid, set())
        for one in answer["processes"]:
            for key, writes in one["holds"]:
                if key in names:
                    sides[names[key]][pid].add(bool(writes))
    return {
        name
        for name, held in sides.items()
        if len(held) > 1 and any(len(each) < 2 for each in held.values())
    }


def add_rates(rows: list[Any], pipes: dict[str, Any], many: set[str]) -> None:
    """Sets the rate of operations of each row that holds an end of one of the channels `many`. The
    values are counted where the channel was made, so the row's own OS process may not know the
    rate. The rate is None if another process holds the same end.
    """
    for row in rows:
        if any(at in many for at, _ in row.holds):
            holders = (
                pipes[at].writers if writes else pipes[at].readers for at, writes in row.holds
            )
            alone = all(len(each) == 1 for each in holders)
            row.rate = sum(pipes[at].rate for at, _ in row.holds) if alone else None
