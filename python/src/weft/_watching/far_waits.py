"""Finds the threads that wait at an end whose channel is in another OS process or on another machine.

A sample (python/native/rounds/look.cpp) sees of such a thread that its operation is not in the line
of any channel here, and takes it for one that was let go on and has not run yet ("due"). But such a
thread runs within moments: one that was due in every sample of an interval, and did nothing before,
waits.
"""

from __future__ import annotations

import re
from typing import Any

_AT = re.compile(r"(?:extended )?(read|write) '(.*)' at ")


def count_as_waits(answer: dict[str, Any]) -> None:
    """Counts such threads in the answer of an OS process to a look as waiting, and so at their
    channels.
    """
    for one in answer["processes"]:
        at = _AT.match(one["does"])
        whole = one["share"].get("due") == 1.0 and one["for"] > 0.9 * answer["seconds"]
        if at is None or one["kind"] != "thread" or one["now"] != "due" or not whole:
            continue
        state, side = ("writes", "writing") if at[1] == "write" else ("reads", "reading")
        one["now"], one["share"] = state, {state: 1.0}
        for key, writes in one["holds"]:
            channel = answer["channels"].get(key)
            if channel is not None and channel["name"] == at[2] and writes == (state == "writes"):
                one["waits"].append([key, writes])
                channel[side] = 1.0
