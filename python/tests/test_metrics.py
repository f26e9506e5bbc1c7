"""`weft.metrics`: the figures of a network, scraped by the real clients of Prometheus and
OpenTelemetry (rules 14.2, 14.10).
"""

from __future__ import annotations

import sys
import time
import urllib.request
from typing import Any

import os_process_targets_supervised as targets
import prometheus_client
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from weft import metrics
from weft.processes import ProcessDied, Supervisor
from weft.threads import BadUse, Channel, Parallel, process

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@process
def writes(out: Any, n: int) -> None:
    for i in range(n):
        out.write(i)


@process
def looks(inp: Any, n: int, does: Any) -> Any:
    """Reads n values, then calls `does`, then reads the other values."""
    for _ in range(n):
        inp.read()
    found = does()
    for _ in inp:
        pass
    return found


def scraped(port: int) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=100) as answer:
        text = answer.read().decode()
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


BLOCKED = "weft_channel_blocked_seconds_total"
WRITERS = {"channel": "c[*]", "side": "write"}


def test_prometheus_scrapes_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 14.10: a scrape shows the rates, the waits and the buffer of a running network."""
    monkeypatch.setattr(metrics, "SAME", 0.0)
    registry = prometheus_client.CollectorRegistry()
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    c = Channel("c[7]", capacity=4)

    def twice() -> tuple[Samples, Samples, float]:
        before = scraped(server.server_port)
        for _ in range(100):
            inner.read()
        while True:  # until samples have found the writer waiting
            after = scraped(server.server_port)
            waits = of(after, "weft_processes", state="writes") == 1
            if waits and of(after, BLOCKED, **WRITERS) > of(before, BLOCKED, **WRITERS):
                return before, after, inner.read()

    inner = c.reader()
    with metrics.prometheus(registry):
        results = Parallel(writes(c.writer(), 200), looks(c.reader(), 10, twice))
    before, after, _ = results[1]
    names = {"channel": "c[*]"}
    assert of(after, "weft_channel_values_total", **names) - of(
        before, "weft_channel_values_total", **names
    ) in range(96, 105)  # values in the buffer may count as passed or not
    assert of(after, "weft_channel_capacity", **names) == 4
    assert of(after, "weft_channel_buffered", **names) == 4
    assert of(after, "weft_channels", **names) == 1
    assert of(after, BLOCKED, **WRITERS) > of(before, BLOCKED, **WRITERS)
    assert of(after, "weft_processes", state="writes") == 1
    assert of(after, "weft_processes", state="runs") >= 1
    assert not [name for name, _ in scraped(server.server_port) if name.startswith("weft_")]
    server.shutdown()
    server.server_close()
    thread.join()


def test_opentelemetry_collects_the_same() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    c = Channel("c", capacity=2)

    def collected() -> dict[str, list[Any]]:
        data = reader.get_metrics_data()
        return {
            m.name: [(dict(p.attributes), p.value) for p in m.data.data_points]
            for r in (data.resource_metrics if data else [])
            for scope in r.scope_metrics
            for m in scope.metrics
        }

    with metrics.opentelemetry(meter):
        results = Parallel(writes(c.writer(), 20), looks(c.reader(), 1, collected))
    found = results[1]
    assert found.keys() == {m.name for m in metrics.METRICS}
    assert found["weft.channel.capacity"] == [({"channel": "c"}, 2)]
    assert sum(n for _, n in found["weft.processes"]) >= 2
    assert {tuple(labels.items()) for labels, _ in found["weft.channel.blocked"]} == {
        (("channel", "c"), ("side", "read")),
        (("channel", "c"), ("side", "write")),
    }
    assert not any(collected().values())  # the provider is closed


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_NAMES", 3)
    figures = metrics.Figures()
    kept = [figures._of(f"{name}[{i}]") for name in "abcdef" for i in range(50)]
    assert len({id(one) for one in kept}) == 4
    assert list(figures._channels) == ["a[*]", "b[*]", "c[*]", metrics.OTHER]
    figures.close()


def test_deaths_and_restarts() -> None:
    registry = prometheus_client.CollectorRegistry()

    def counted() -> tuple[float | None, float | None]:
        return (
            registry.get_sample_value("weft_process_deaths_total"),
            registry.get_sample_value("weft_process_restarts_total"),
        )

    with metrics.prometheus(registry):
        deaths, restarts = counted()
        with pytest.raises(ProcessDied):
            Parallel(targets.dies.on(Supervisor(restarts=1, backoff=0))(Channel("c").writer()))
        time.sleep(metrics.SAME)
        assert deaths is not None and restarts is not None
        assert counted() == (deaths + 2, restarts + 1)


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = prometheus_client.CollectorRegistry()
    first = metrics.prometheus(registry)
    with pytest.raises(BadUse, match="has Weft's figures already: close"):
        metrics.prometheus(registry)
    first.close()
    first.close()
    metrics.prometheus(registry).close()
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(BadUse, match=r"pip install 'weft-csp\[metrics\]'"):
        metrics.prometheus()
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(BadUse, match=r"pip install 'weft-csp\[metrics\]'"):
        metrics.opentelemetry()
