"""Writes results into a page that is otherwise written by hand: only the lines between two marks
are replaced.

<!-- ring: begin -->
…
<!-- ring: end -->
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.machine import commit, machine


def filled(text: str, name: str, body: str) -> str:
    """Returns the page with `body` between the marks of this name.

    Raises:
        ValueError: the page does not have the two marks, once each and in this order; or `body`
            contains marks.
    """
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(
            f"the page needs the lines {begin.strip()!r} and {end.strip()!r}, once each"
        )
    if "<!--" in body:
        raise ValueError(f"the text for the marks of {name!r} contains marks itself")
    before, _, rest = text.partition(begin)
    return before + begin + body.rstrip("\n") + "\n" + end + rest.partition(end)[2]


def provenance(command: str) -> str:
    """Returns a line with the command, the commit and the machine by which the results were
    measured.
    """
    facts = ", ".join(f"{key} {value}" for key, value in machine().items() if value is not None)
    root = Path(__file__).resolve().parent.parent
    return f"`{command}` at commit {commit(root)}; Python {sys.version.split()[0]}; {facts}."
