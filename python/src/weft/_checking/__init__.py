"""`weft.check`: runs a function that runs a network in every order, and finds one that fails (docs/checking.md).

The module is imported when `weft.check` is asked for. What it stands on, from below:

    options   what a check is asked for        tokens     a schedule as a text
    engine    the extension module's search    patches    clocks, random numbers, locks, what is refused
    faults    hosts that are simulated         properties what a schedule is looked at for
    telling   a schedule, line by line         report     what was found
    checker   all of it together               api        `weft.check`, the decorator
    plugin    for pytest
"""

from __future__ import annotations

from weft._checking.api import check
from weft._checking.report import CheckFailed, Report

__all__ = ["CheckFailed", "Report", "check"]
