"""Tests the trace of a network of a board, C++, threads and a second host, as Perfetto's own
classes read the trace (rules M24, 14.14, 14.17)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from weft import net
from weft._net.server import Server

FOLDER = Path(__file__).resolve().parents[1] / "one_trace"
ROOT = FOLDER.parents[1]
ELF = ROOT / ".build/mcu/rp2040-flight/pc_recorded.elf"
os.environ.setdefault("WEFT_CACHE", str(ROOT / ".build/components"))
os.environ["WEFT_NATS_SERVER"] = str(ROOT / ".build/net/bin/nats-server")
SAMPLES = 6


def weft(*args: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Runs the network, and returns the folder of its files and the output of `weft trace` for
    these files."""
    folder = tmp_path_factory.mktemp("traced")
    make = ["make", "-s", "-C", ROOT / "mcu", "-f", "csp/csp.mk", "FLIGHT=256", "pc_recorded"]
    subprocess.run(make, check=True)
    keys = net.make_keys(folder / "keys")
    net.make_keys(folder / "server", by=keys, offers=["*"])
    (runtime := folder / "runtime").mkdir(mode=0o700)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "WEFT_FLIGHT": f"256K:{folder}"}
    environment.pop("WEFT_INSPECT", None)
    with Server(folder / "server", "127.0.0.1:0") as server:
        host = [sys.executable, "-m", "weft.cli", "host", "--join", server.url, "--keys", str(keys)]
        host += ["--name", "cellar", "--hosts", "1", "--allow", "judge:judge", "--json"]
        with subprocess.Popen(
            host, stdout=subprocess.PIPE, text=True, cwd=FOLDER, env=environment
        ) as agent:
            assert agent.stdout and json.loads(agent.stdout.readline())
            try:
                program = [sys.executable, FOLDER / "pump_room.py", "--emulate", ELF]
                program += ["--join", server.url, "--keys", keys, "--samples", str(SAMPLES)]
                done = subprocess.run(
                    [*program, "--folder", folder / "out"],
                    capture_output=True,
                    text=True,
                    check=False,
                    env=environment,
                )
            finally:
                agent.terminate()
        assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-SAMPLES:] == ["low", "low", "low", "low", "low", "high"]
    files = sorted((folder / "out").glob("*.flight"))
    told = weft("trace", *files, "--perfetto", folder / "out.pftrace").stdout
    return folder, told


def test_the_table_has_the_processes_of_all_four(traced: tuple[Path, str]) -> None:
    for path in ("device/filter", "device/uplink", "main/dial", "main/smooth", "main/judge"):
        assert path in traced[1]
    assert len(re.findall("are known to ±", traced[1])) >= 2  # the board's clock, and the host's


def test_perfetto_s_own_classes_read_the_trace(traced: tuple[Path, str]) -> None:
    """Each process has a track below that of its program; slices of a track are nested; each arrow
    has one beginning and one end, also from program to program.
    """
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString((traced[0] / "out.pftrace").read_bytes())
    tracks = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
    programs = {t.uuid: t.process.process_name for t in tracks if t.HasField("process")}
    of = {t.uuid: (t.name, programs[t.parent_uuid]) for t in tracks if t.parent_uuid}
    where = dict(of.values())
    assert len({where[p] for p in ("main/dial", "device/filter", "main/judge")}) == 3
    assert where["main/smooth"] == where["main/dial"] == where["main/show"]
    depth: dict[int, int] = {}
    last: dict[int, int] = {}
    begun: dict[int, str] = {}
    ended: dict[int, str] = {}
    for packet in sorted(
        (p for p in trace.packet if p.HasField("track_event")), key=lambda p: p.timestamp
    ):
        event = packet.track_event
        change = {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}.get(event.type, 0)
        depth[event.track_uuid] = depth.get(event.track_uuid, 0) + change
        assert depth[event.track_uuid] >= 0
        assert packet.timestamp >= last.get(event.track_uuid, 0)
        last[event.track_uuid] = packet.timestamp
        name = of[event.track_uuid][0]
        for flows, found in ((event.flow_ids, begun), (event.terminating_flow_ids, ended)):
            for flow in flows:
                assert flow not in found
                found[flow] = name
    assert set(depth.values()) == {0}
    assert begun.keys() == ended.keys()
    pairs = Counter((begun[flow], ended[flow]) for flow in begun)
    for pair in (
        ("main/dial", "device/filter"),  # from this program to the board
        ("device/filter", "device/uplink"),
        ("device/uplink", "main/fan"),
        ("main/fan", "main/smooth"),  # from Python to C++
        ("main/smooth", "main/pass_on"),
        ("main/pass_on", "main/judge"),  # to the host
        ("main/judge", "main/show"),
    ):
        assert pairs[pair] == SAMPLES, pair
