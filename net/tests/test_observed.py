"""Hosts that are looked at, and whose flight recorders are fetched (WIRE.md 17.9; rule 14.17)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest

from weft import threads as th
from weft._watching import flight_read as _flight_read
from weft.observe import flight


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Lets the programs of a test have a runtime directory and a flight recorder."""
    (runtime := tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("WEFT_FLIGHT", "256K")
    monkeypatch.delenv("WEFT_INSPECT", raising=False)
    return tmp_path


@pytest.fixture
def host(recording: Path, agent: Any) -> Iterator[Any]:
    started = agent("seen")
    yield started


def weft(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_host_in_a_trace_and_in_a_look(host, network, keys, server, recording, tmp_path):
    """rules 14.9, 14.17: the processes of a host are in `weft top nats://…`, and in one trace with
    those of the caller, on one clock
    """
    values, back = th.Channel("values"), th.Channel("back")
    looks: list[Any] = []
    out = tmp_path / "recorded"

    @th.process
    def drives(to: Any, inp: Any) -> None:
        for i in range(5):
            to.write(i)
            assert inp.read() == 2 * i
        # The host's process waits for the next value. On a busy machine it may miss a look.
        while not looks or "doubles" not in looks[-1].stdout:
            looks.append(weft("top", server.url, "--keys", keys, "--json"))
            assert looks[-1].returncode == 0, looks[-1].stderr
        looks.append(weft("top", server.url, "--keys", keys, "--once"))
        looks.append(weft("dump", server.url, "--keys", keys, "-o", out))

    with flight(tmp_path / "here.flight"):
        th.run(
            drives(values.writer(), back.reader()),
            parts.doubles.on(network.host("seen"))(values.reader(), back.writer()),
        )
    for look in looks:
        assert look.returncode == 0, look.stderr
    found = json.loads(looks[-3].stdout)
    (row,) = [r for r in found["processes"] if "doubles" in r["path"]]
    assert row["path"].startswith("seen:") and row["host"] == "seen" and "read" in row["where"], row
    assert not [r for r in found["processes"] if "tells_observer" in r["path"]]
    assert " on seen: " in looks[-2].stdout
    files = sorted(out.glob("seen-*.flight"))
    assert files
    recorded = _flight_read.Recorded([tmp_path / "here.flight", *files])
    lines = list(recorded.lines())
    mine = [
        x
        for x in lines
        if x["p"] == "main/drives" and x["e"] == "commit" and x.get("c") == "values"
    ]
    its = [
        x
        for x in lines
        if "doubles" in x["p"]
        and x["pid"] != os.getpid()
        and x.get("op") == "read"
        and x["e"] == "commit"
    ]
    assert len(mine) == len(its) == 5
    within = max(head[5] for head in recorded.heads)
    assert 0 < within < 5e9
    # Each read over there ends after its write has begun here, and begins before the next write ends.
    for one, other in zip(mine, its, strict=True):
        assert other["t"] + within >= one["t"] - one["waited"]
    for one, other in zip(mine[1:], its, strict=False):
        assert other["t"] - other["waited"] - within <= one["t"]
    assert any("are known to ±" in line for line in recorded.clocks())


def test_a_network_without_hosts(keys, server):
    for command in ("top", "dump"):
        told = weft(command, server.url, "--keys", keys)
        assert told.returncode == 2
        assert "no host is in the network" in told.stderr


def test_a_host_that_is_not_looked_at(recording, agent, network, keys, server, monkeypatch):
    """With WEFT_INSPECT=0 a host tells nothing but its clock."""
    monkeypatch.setenv("WEFT_INSPECT", "0")
    agent("unseen")
    assert th.run(parts.add.on(network.host("unseen"))(1, 2)) == 3
    monkeypatch.delenv("WEFT_INSPECT")
    told = weft("dump", server.url, "--keys", keys)
    assert told.returncode == 2
    assert "no host of this network has a flight recorder" in told.stderr
