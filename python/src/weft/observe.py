"""Tools that show what a network does (docs/observing.md). They cost nothing while they are off."""

from __future__ import annotations

from weft._watching.deadlocks import PartialDeadlock, Stuck, deadlocks, watching_deadlocks
from weft._watching.debug import Changed, Debug, debug
from weft._watching.flight import flight
from weft._watching.measure import ChannelMeasure, Measurement, measure, measuring
from weft._watching.on_signal import on_signal
from weft._watching.supervision import Supervised, supervision
from weft._watching.trace import tracing
from weft._watching.watchdog import Hog, Watchdog, watchdog
from weft.errors import WeftWarning

__all__ = [
    "Changed",
    "ChannelMeasure",
    "Debug",
    "Hog",
    "Measurement",
    "PartialDeadlock",
    "Stuck",
    "Supervised",
    "Watchdog",
    "WeftWarning",
    "deadlocks",
    "debug",
    "flight",
    "measure",
    "measuring",
    "on_signal",
    "supervision",
    "tracing",
    "watchdog",
    "watching_deadlocks",
]
