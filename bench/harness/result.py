"""Computes figures from samples: minima, percentiles, ratios, and whether the reach is met.

The p99 is the median of the p99 of each run, so that one bad moment of the machine affects only one
run.

The result of a bench is one JSON object, which always has the keys of SCHEMA. `null` stands for a
figure that could not be measured; `reasons` contains the reason, by candidate or target. A bench
that lacks a figure that the milestone requires has not met the milestone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .runner import Samples
from .targets import Bench, Headline, Target, reach_at

Result = dict[str, Any]

SCHEMA: dict[str, type | tuple[type, ...]] = {
    "bench": str,
    "command": str,
    "commit": str,
    "machine": dict,
    "versions": dict,
    "milestone": str,
    "ns": dict,
    "p50": dict,
    "p99": dict,
    "bytes": dict,
    "create": dict,
    "ratio": dict,
    "reach": dict,
    "met": bool,
    "reasons": dict,
    "failed": list,
    "rounds": int,
    "quick": bool,
}


def percentile(values: Iterable[float], percent: float) -> float:
    """Returns the nearest-rank percentile: the smallest value that at least `percent` of the values
    do not exceed.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def evaluate(
    bench: Bench,
    samples: Mapping[str, Samples],
    skipped: Mapping[str, str],
    broken: Mapping[str, str],
    milestone: str,
    frame: Mapping[str, Any],
) -> Result:
    """Returns the result object. `skipped` and `broken` map candidates to the reasons why they did
    not run; a broken one counts as failed. `frame` has the keys `command`, `machine`, `versions`
    and `quick`.
    """
    result: Result = {"bench": bench.name, **frame, "milestone": milestone, "rounds": bench.rounds}
    for key in ("ns", "p50", "p99", "bytes", "create", "ratio", "reach"):
        result[key] = {}
    reasons: dict[str, str] = {**skipped, **broken}
    failed = list(broken)
    for candidate in bench.candidates:
        mine = samples.get(candidate.name, Samples())
        if mine.error is not None:
            reasons[candidate.name] = mine.error
            failed.append(candidate.name)
        ns = mine.values.get("ns")
        result["ns"][candidate.name] = _round(min(ns)) if ns else None
        result["p50"][candidate.name] = _round(percentile(ns, 50)) if ns else None
        worst = [percentile(run, 99) for run in mine.runs]
        result["p99"][candidate.name] = _round(percentile(worst, 50)) if worst else None
        if "bytes" in mine.values:
            # The greatest of the rounds: memory figures are less noisy than times, so the worst run
            # is the fairest figure.
            result["bytes"][candidate.name] = _round(max(mine.values["bytes"]))
        if "create" in mine.values:
            result["create"][candidate.name] = _round(min(mine.values["create"]))
    met = True
    for target in bench.targets:
        figure = figure_of(result, target)
        result["ratio"][target.name] = figure
        reach = reach_at(target.reach, milestone)
        if reach is None:
            continue
        result["reach"][target.name] = reach
        if figure is None:
            without = [
                name
                for name in (target.top, target.bottom)
                if name and measured(result, target).get(name) is None
            ]
            reasons[target.name] = f"not measured: no {target.of} of {' and '.join(without)}"
            met = False
        elif figure > reach:
            reasons[target.name] = f"{figure:g} is above {reach:g}"
            met = False
    result["met"] = met
    result["reasons"] = reasons
    result["failed"] = failed
    return result


def measured(result: Mapping[str, Any], figure: Target | Headline) -> Mapping[str, float | None]:
    """Returns the values of all candidates, by the measure and statistic of the figure."""
    kept: Mapping[str, float | None] = result[
        figure.by if figure.by in ("p50", "p99") else figure.of
    ]
    return kept


def figure_of(result: Mapping[str, Any], figure: Target | Headline) -> float | None:
    """Returns `top` ÷ `bottom`, or `top` alone, in the statistic that the figure names; None if the
    figure was not measured.
    """
    values = measured(result, figure)
    above = values.get(figure.top)
    if figure.bottom is None:
        return above
    below = values.get(figure.bottom)
    return None if above is None or below is None else _round(above / below)


def _round(value: float) -> float:
    """Rounds to four significant digits, or to a whole number if that has more: the rest is
    noise.
    """
    return float(f"{value:.4g}") if abs(value) < 1000 else float(round(value))


def check_schema(result: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each fault of a result object."""
    wrong: Sequence[str] = [
        f"{key} should be {kind}, is {type(result.get(key)).__name__}"
        for key, kind in SCHEMA.items()
        if not isinstance(result.get(key), kind)
    ]
    unknown = [f"unknown key {key}" for key in result if key not in SCHEMA]
    return [*wrong, *unknown]
