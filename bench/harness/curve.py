"""Curves of a bench whose programs are named "CURVE, N": one picture, out/bench/NAME.svg."""

from __future__ import annotations

import re
from collections.abc import Mapping


def curves(ns: Mapping[str, float | None]) -> dict[str, dict[int, float]]:
    """Returns ns by curve and N. The result is empty if a name has no N, or if there are fewer than
    three values of N, which are too few for a curve.
    """
    found: dict[str, dict[int, float]] = {}
    for name, value in ns.items():
        parts = re.fullmatch(r"(.+), (\d+)", name)
        if parts is None:
            return {}
        if value is not None and value > 0:
            found.setdefault(parts[1], {})[int(parts[2])] = value
    points = {n for curve in found.values() for n in curve}
    return found if len(points) >= 3 else {}
