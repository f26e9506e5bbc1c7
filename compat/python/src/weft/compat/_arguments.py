"""The functions that the module `utils` of each newer implementation offers to benchmark
programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

__all__ = ["argparser", "avg", "handle_common_args"]

argparser = argparse.ArgumentParser()
argparser.add_argument("-v", action="store_true", help="no effect: accepted for pytest")
argparser.add_argument(
    "-u",
    "--uvloop",
    action="store_true",
    help="no effect: Weft's own scheduler runs the processes",
)


def handle_common_args(argspecs: Any = None) -> argparse.Namespace:
    """Returns the program's arguments; `argspecs` is a list of (args, kwargs) for
    `ArgumentParser.add_argument`.

    Raises:
        SystemExit: the arguments are not valid.
    """
    for args, kwargs in argspecs or ():
        argparser.add_argument(*args, **kwargs)
    return argparser.parse_args()


def avg(vals: Sequence[float]) -> float:
    """Returns the mean."""
    return sum(vals) / len(vals)
