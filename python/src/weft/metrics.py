"""Exports the figures of a network to Prometheus and OpenTelemetry, by their own client libraries
(the extra `weft-csp[metrics]`; docs/observing.md lists the names).

    a helper thread ──ten samples a second──► the Look of native code
    a scrape ──► Figures.read() ──► one Reading ──► the client library

Invariants
- Nothing is imported, sampled or started before prometheus() or opentelemetry() is called (rule
  14.2).
- The number of time series is bounded: numbers in names are folded (`worker[*]`), and names beyond
  the first MAX_NAMES share the series OTHER. A name keeps its series.
- A counter never falls.
"""

from __future__ import annotations

import contextlib
import copy
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from weft import _helper_threads
from weft._watching import deaths as _deaths
from weft._watching import look as _look
from weft.errors import BadUse

__all__ = ["Metrics", "opentelemetry", "prometheus"]

MAX_NAMES = 100
OTHER = "(other)"
EVERY = 0.1  # seconds between two samples
ADDS = 1.0  # seconds within which a new channel becomes known
SAME = 0.2  # seconds for which a reading is reused, since a client asks for each metric separately
# the largest number of processes that a sample examines; if there are more, the sample examines a
# part of them
MAX_PROCESSES = 20_000


@dataclass
class _Channels:
    """The channels of one name."""

    values: int = 0
    dropped: int = 0
    blocked: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "write": 0.0})
    buffered: int = 0
    capacity: int = 0
    channels: int = 0


@dataclass
class Reading:
    """All figures at one moment."""

    states: dict[str, int]
    channels: dict[str, _Channels]
    os_processes: int
    deaths: int
    restarts: int


class Figures:
    """Collects the figures from its creation on, until it is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._look = _look.Look()
        self._channels: dict[str, _Channels] = {}
        self._last: Reading | None = None
        self._at = 0.0  # the time of the last reading
        self._began = time.perf_counter()  # the beginning of the Look's interval
        self._closed = threading.Event()
        self._look.begin()
        threading.Thread(target=self._sample, name="weft metrics", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _sample(self) -> None:
        _helper_threads.add_until_end()
        while not self._closed.wait(EVERY):
            with self._lock:
                self._look.sample()
                if time.perf_counter() - self._began > ADDS:
                    self._add()

    def _add(self) -> None:
        """Adds the values that have passed since the last call. New channels count from now on."""
        channels, _, seconds = self._look.channels(self._began)
        self._began = time.perf_counter()
        self._look.begin(anew=False)
        for one in self._channels.values():
            one.buffered = one.capacity = one.channels = 0
        for channel in channels.values():
            one = self._of(channel["name"])
            one.values += channel["passed"]
            one.dropped += channel["dropped"]
            one.buffered += channel["depth"]
            one.capacity += channel["capacity"]
            one.channels += 1
            one.blocked["read"] += channel["reading"] * seconds
            one.blocked["write"] += channel["writing"] * seconds

    def read(self) -> Reading:
        with self._lock:
            if self._last is None or time.perf_counter() - self._at > SAME:
                self._last = self._new()
                self._at = time.perf_counter()
            return self._last

    def _new(self) -> Reading:
        states = dict.fromkeys(_look.STATES, 0)
        self._look.sample()  # a process is known from its first sample on
        for state in self._look.now(MAX_PROCESSES):
            states[state] += 1
        self._add()
        rounds = sys.modules.get("weft._distributed_deadlock.rounds")
        return Reading(
            states,
            copy.deepcopy(self._channels),
            len(list(rounds.members())) if rounds is not None else 0,
            _deaths.counts["deaths"],
            _deaths.counts["restarts"],
        )

    def _of(self, name: str) -> _Channels:
        name = re.sub(r"\d+", "*", name)
        if name not in self._channels and len(self._channels) >= MAX_NAMES:
            name = OTHER
        return self._channels.setdefault(name, _Channels())


Labels = dict[str, str]
Row = tuple[Labels, float]


def _channel_rows(of: Callable[[_Channels], float]) -> Callable[[Reading], Iterator[Row]]:
    return lambda r: (({"channel": name}, of(one)) for name, one in r.channels.items())


def _blocked(r: Reading) -> Iterator[Row]:
    for name, one in r.channels.items():
        for side, seconds in one.blocked.items():
            yield {"channel": name, "side": side}, seconds


def _states(r: Reading) -> Iterator[Row]:
    return (({"state": state}, n) for state, n in r.states.items())


@dataclass
class _Metric:
    name: str  #: the name for OpenTelemetry; for Prometheus each dot is a _
    counts: bool  #: whether the value never falls
    unit: str
    text: str
    labels: tuple[str, ...]
    rows: Callable[[Reading], Iterable[Row]]


METRICS = [
    _Metric("weft.processes", False, "", "Processes by what they do.", ("state",), _states),
    _Metric(
        "weft.channels",
        False,
        "",
        "Channels of this name.",
        ("channel",),
        _channel_rows(lambda c: c.channels),
    ),
    _Metric(
        "weft.channel.values",
        True,
        "",
        "Values that have passed.",
        ("channel",),
        _channel_rows(lambda c: c.values),
    ),
    _Metric(
        "weft.channel.dropped",
        True,
        "",
        "Values that were dropped.",
        ("channel",),
        _channel_rows(lambda c: c.dropped),
    ),
    _Metric(
        "weft.channel.buffered",
        False,
        "",
        "Values in buffers.",
        ("channel",),
        _channel_rows(lambda c: c.buffered),
    ),
    _Metric(
        "weft.channel.capacity",
        False,
        "",
        "Capacity of the buffers.",
        ("channel",),
        _channel_rows(lambda c: c.capacity),
    ),
    _Metric(
        "weft.channel.blocked",
        True,
        "seconds",
        "Seconds in which somebody waited at this side, by samples.",
        ("channel", "side"),
        _blocked,
    ),
    _Metric(
        "weft.os_processes",
        False,
        "",
        "OS processes that run processes of this program.",
        (),
        lambda r: [({}, r.os_processes)],
    ),
    _Metric(
        "weft.process.deaths",
        True,
        "",
        "Processes that were lost with their OS process.",
        (),
        lambda r: [({}, r.deaths)],
    ),
    _Metric(
        "weft.process.restarts",
        True,
        "",
        "Processes that a supervisor has started again.",
        (),
        lambda r: [({}, r.restarts)],
    ),
]


class Metrics:
    """The export of this program's figures to a client library. close() ends the export; a `with`
    block calls close() at its end.
    """

    def __init__(self, figures: Figures, closes: Callable[[], None]) -> None:
        self._figures = figures
        self._closes = closes

    def close(self) -> None:
        """Ends the export of figures. A second call does nothing."""
        closes, self._closes = self._closes, lambda: None
        closes()
        self._figures.close()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def prometheus(registry: Any = None) -> Metrics:
    """Adds the figures of this program to a registry of `prometheus_client`. They are collected at
    each scrape.

    Args:
        registry: a CollectorRegistry; None: prometheus_client.REGISTRY.
    Raises:
        BadUse: prometheus_client is not installed; or the registry contains Weft's figures already.
    """
    try:
        import prometheus_client
        from prometheus_client import metrics_core as core
    except ImportError:
        raise BadUse(
            "weft.metrics.prometheus: 'prometheus_client' is not installed: pip install 'weft-csp[metrics]'"
        ) from None
    to = prometheus_client.REGISTRY if registry is None else registry
    figures = Figures()

    class Collector:
        def describe(self) -> Iterator[Any]:
            return self._families()

        def collect(self) -> Iterator[Any]:
            reading = figures.read()
            for metric, family in zip(METRICS, self._families(), strict=True):
                for labels, value in metric.rows(reading):
                    family.add_metric([labels[name] for name in metric.labels], value)
                yield family

        def _families(self) -> Iterator[Any]:
            for m in METRICS:
                kind = core.CounterMetricFamily if m.counts else core.GaugeMetricFamily
                name = "_".join([m.name.replace(".", "_"), *([m.unit] if m.unit else [])])
                yield kind(name, m.text, labels=m.labels)

    collector = Collector()
    try:
        to.register(collector)
    except ValueError:
        figures.close()
        raise BadUse(
            "weft.metrics.prometheus: this registry has Weft's figures already: close() those first"
        ) from None

    def closes() -> None:
        with contextlib.suppress(KeyError):
            to.unregister(collector)

    return Metrics(figures, closes)


def opentelemetry(meter: Any = None) -> Metrics:
    """Makes observable instruments of OpenTelemetry for the figures of this program.

    Args:
        meter: the Meter to use. None: the Meter `weft` of the global MeterProvider.
    Raises:
        BadUse: opentelemetry-api is not installed.
    """
    try:
        from opentelemetry import metrics as api
    except ImportError:
        raise BadUse(
            "weft.metrics.opentelemetry: 'opentelemetry' is not installed: pip install 'weft-csp[metrics]'"
        ) from None
    to = api.get_meter("weft") if meter is None else meter
    figures = Figures()
    # an instrument cannot be removed; this event makes it report nothing
    closed = threading.Event()

    def observes(metric: _Metric) -> Callable[[Any], Iterator[Any]]:
        def callback(options: Any) -> Iterator[Any]:
            if not closed.is_set():
                for labels, value in metric.rows(figures.read()):
                    yield api.Observation(value, labels)

        return callback

    for m in METRICS:
        make = to.create_observable_counter if m.counts else to.create_observable_gauge
        make(
            m.name,
            callbacks=[observes(m)],
            unit={"seconds": "s"}.get(m.unit, "1"),
            description=m.text,
        )
    return Metrics(figures, closed.set)
