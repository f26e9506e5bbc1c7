"""Tests looks at hosts, and the fetching of their flight recorders (WIRE-NETWORKS.md 17.9; rule
14.17)."""

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
from weft._commands import see as _see
from weft._commands import view as _view
from weft._commands import view_server as _view_server
from weft._commands.bad_use import BadUse
from weft._watching import flight_read as _flight_read
from weft.observe import flight

sys.path.append(str(Path(__file__).resolve().parents[2] / "python/tests"))
from pages import Events, serving


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Lets the programs of a test have a runtime directory and a flight recorder."""
    (runtime := tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("WEFT_FLIGHT", f"256K:{tmp_path}")
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
        # The host's process waits for the next value. On a busy machine the first looks may miss
        # that process.
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
    # Each read on the host ends after its write has begun on this machine, and begins before the
    # next write ends.
    for one, other in zip(mine, its, strict=True):
        assert other["t"] + within >= one["t"] - one["waited"]
    for one, other in zip(mine[1:], its, strict=False):
        assert other["t"] - other["waited"] - within <= one["t"]
    assert any("are known to ±" in line for line in recorded.clocks())


def test_hosts_on_the_page(host, agent, network, keys, server):
    """rules 14.10, 14.18: the data for `weft view nats://…` contain the processes of a host, with
    the places where they wait; hosts that join; and a host that has left, while the other hosts are
    shown
    """
    values, back = th.Channel("values"), th.Channel("back")
    with serving(_view_server.Hosts(network, server.url)) as page:
        events = Events(page)

        def until(sees: Any) -> dict[str, Any]:
            while not sees(look := events.until("look")):
                pass
            return look

        @th.process
        def drives(to: Any, inp: Any) -> None:
            to.write(1)
            assert inp.read() == 2
            look = until(lambda look: [r for r in look["processes"] if r["now"] == "reads"])
            (row,) = look["processes"]  # the look contains no process of Weft's own
            assert (row["path"], row["host"]) == ("seen:main/doubles", "seen")
            assert "read 'values' at far_parts.py" in row["where"]
            (at,) = row["waits"]
            assert {c["id"]: c["name"] for c in look["channels"]}[at[0]] == "values"
            os_processes = {one["pid"]: one for one in look["os_processes"]}
            assert os_processes[row["pid"]]["number"] in host.report["pids"]
            # The program that made the channel is not a host, so the number of values that pass is
            # unknown.
            assert {c["rate"] for c in look["channels"]} == {row["rate"]} == {None}
            assert look["network"] == server.url and look["stuck"] == []
            later = until(lambda look: look["processes"][0]["seconds"] > row["seconds"])
            assert later["processes"][0]["pid"] == row["pid"]

        th.run(
            drives(values.writer(), back.reader()),
            parts.doubles.on(network.host("seen"))(values.reader(), back.writer()),
        )
        agent("comes")
        look = until(lambda look: len([h for h in look["hosts"] if h["state"] == "answers"]) == 2)
        numbers = {one["host"]: one["pid"] for one in look["os_processes"]}
        host.process.terminate()
        look = until(lambda look: {h["state"] for h in look["hosts"]} == {"answers", "gone"})
        assert [(h["name"], h["state"]) for h in look["hosts"]] == [
            ("comes", "answers"),
            ("seen", "gone"),
        ]
        assert "host seen has left the network" in look["silent"]
        assert {one["pid"] for one in look["os_processes"]} >= {numbers["comes"]}
        events.close()


def test_a_network_without_hosts(keys, server, refusing):
    for command in ("top", "dump"):
        told = weft(command, server.url, "--keys", keys)
        assert told.returncode == 2
        assert "no host is in the network" in told.stderr
    # `weft view` shows the same sentences as `weft top`.
    for where, sentence in (
        (server.url, "no host is in the network"),
        (f"nats://{refusing}", "nothing listens at"),
    ):
        with pytest.raises(BadUse, match=sentence) as of_top:
            _see.top(where, True, False, 0.1, "path", "", 100, str(keys))
        with pytest.raises(BadUse) as of_view:
            _view.view(where, 0, False, 1.0, 100, str(keys))
        assert str(of_view.value) == str(of_top.value)


def test_a_host_that_is_not_looked_at(recording, agent, network, keys, server, monkeypatch):
    """With WEFT_INSPECT=0 a host reports nothing but its clock."""
    monkeypatch.setenv("WEFT_INSPECT", "0")
    agent("unseen")
    assert th.run(parts.add.on(network.host("unseen"))(1, 2)) == 3
    monkeypatch.delenv("WEFT_INSPECT")
    told = weft("dump", server.url, "--keys", keys)
    assert told.returncode == 2
    assert "no host of this network has a flight recorder" in told.stderr
