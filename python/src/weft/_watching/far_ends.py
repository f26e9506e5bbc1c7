"""Finds out, from the answers of several OS processes to a look, about channels between them: which
channels are one, and which threads wait at an end whose channel is elsewhere.

A sample (python/native/rounds/look.cpp) finds the operation of such a thread in no waiting queue
here. It takes the thread for one that was woken and has not run yet ("due"). But such a thread runs
within moments, unless others keep the interpreter's lock. So a thread that was due in every sample
of an interval, and did nothing before, waits.
"""

from __future__ import annotations

import re
from typing import Any

_AT = re.compile(r"(?:extended )?(read|write) '(.*)' at ")


def in_many(answers: dict[int, dict[str, Any]]) -> set[str]:
    """Returns the names of the channels that lead from one of these OS processes to another, which
    are those of which several have an end. If each of them has both a reader and a writer of that
    name, then each has a channel of its own, for instance within a function that runs in all of
    them.
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


def count_as_waits(answer: dict[str, Any]) -> None:
    """In the answer of an OS process to a look, counts such threads as waiting, also at their
    channels. If the OS process is known to compute less than half of the time (the answers of hosts
    tell that), no woken thread waits for the interpreter's lock: then each sample in which a thread
    was due counts.
    """
    calm = (cpu := answer.get("os", {}).get("cpu")) is not None and cpu < 0.5
    held = {(key, writes) for one in answer["processes"] for key, writes in one["holds"]}
    for one in answer["processes"]:
        share = one["share"]
        if one["kind"] != "thread" or "due" not in share:
            continue
        at = _AT.match(one["does"]) if one["now"] == "due" else None
        whole = at and share["due"] == 1.0 and one["for"] > 0.9 * answer["seconds"]
        # the sides at which the process holds ends of channels whose other side no process of this
        # program holds
        far = {writes for key, writes in one["holds"] if (key, not writes) not in held}
        if not (whole or (calm and (at or len(far) == 1))):
            continue
        writing = at[1] == "write" if at else far.pop()
        state, side = ("writes", "writing") if writing else ("reads", "reading")
        share[state] = share.get(state, 0.0) + share.pop("due")
        if at is None:
            continue
        one["now"] = state
        for key, writes in one["holds"]:
            channel = answer["channels"].get(key)
            if channel is not None and channel["name"] == at[2] and writes == writing:
                one["waits"].append([key, writes])
                channel[side] = max(channel[side], share[state])
