"""Draws the picture: voltages and frequency as the node measured them, the decisions, and the
recorded disturbance.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(path: Path, found: dict[str, Any], low: float) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (above, middle, below) = plt.subplots(3, 1, figsize=(10, 8), layout="constrained")
    for station, colour in ((50, "tab:blue"), (60, "tab:orange")):
        rows = [r for r in found["averages"] if r[0] == station]
        above.plot(
            [r[1] for r in rows], [r[2] for r in rows], color=colour, label=f"{station} frames/s"
        )
        middle.plot([r[1] for r in rows], [r[3] for r in rows], color=colour)
    above.axhline(low, color="grey", lw=0.8, ls="--")
    for what, _, time, _ in found["alarms"]:
        if what == "late":
            above.axvline(time, color="grey", lw=0.5, alpha=0.6)
    for time, order, station in found["decisions"]:
        above.axvline(time, color="tab:red" if order == "open" else "tab:green", lw=1)
        above.annotate(f"{order} {station}", (time, 0.7), rotation=90, fontsize=8, ha="right")
    above.set(
        ylabel="voltage (1: nominal)", title="Averages of 100 ms; grey: the model's answer was late"
    )
    above.legend(loc="lower right")
    middle.set(ylabel="frequency (Hz)", xlabel="seconds")
    below.plot([t for t, _ in found["levels"]], [v for _, v in found["levels"]], color="tab:purple")
    below.axhline(low, color="grey", lw=0.8, ls="--")
    below.set(ylabel="RMS of phase A", xlabel="seconds of the COMTRADE record")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
