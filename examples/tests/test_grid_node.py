"""Tests the grid node: its results are those that numpy computes from the inputs, on every backend;
and the effects of a part that blocks, is late or is broken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft.native
from weft.coroutines import Channel, Deadlock, process, run
from weft.native import ComponentError

FOLDER = Path(__file__).resolve().parents[1] / "grid_node"
os.environ.setdefault("WEFT_CACHE", str(FOLDER.parents[1] / ".build/components"))
sys.path.insert(0, str(FOLDER))
import inputs  # noqa: E402

SECONDS, SEED = 7.0, 3


def found(folder: Path, backend: str, *options: str) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "weft.cli",
        "run",
        str(FOLDER / "grid_node.py"),
        "--on",
        backend,
    ]
    command += ["--seconds", str(SECONDS), "--seed", str(SEED), "--folder", str(folder), "--json"]
    done = subprocess.run([*command, *options], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    result.pop("took")
    return result


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("grid")
    return folder, found(folder, "coroutines")


@pytest.fixture(scope="module")
def node() -> Any:
    return weft.native.load(FOLDER / "node.cpp")


def measured(station: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns times and voltages of the frames that are whole."""
    at = inputs.times(station, SECONDS)
    level = inputs.volts(station, at, SEED)
    whole = np.array([not inputs.is_broken(k) for k in range(len(at))])
    return at[whole], level[whole]


@pytest.mark.parametrize("station", [50, 60])
def test_averages_are_those_of_numpy(here: Any, station: int) -> None:
    rows = [r for r in here[1]["averages"] if r[0] == station]
    at, level = measured(station)
    assert [round(r[1], 6) for r in rows] == [round(0.1 * k, 6) for k in range(1, len(rows) + 1)]
    assert len(rows) >= 10 * SECONDS - 2
    for _, time, volts, hertz, _ in rows:
        # The timer is 0.5 ms late on purpose, so a frame at the period's end is included.
        period = (at <= time + 0.0005) & ((at > time - 0.1 + 0.0005) | (time < 0.15))
        assert volts == pytest.approx(level[period].mean(), rel=1e-6)
        assert hertz == pytest.approx(inputs.hertz(at[period]).mean(), rel=1e-6)


def test_bytes_that_are_no_frame_are_told(here: Any) -> None:
    # The seven seconds of this test contain no broken frame; the nine seconds of the next test do.
    refused = here[1]["refused"]
    assert [r.partition(": ")[2] for r in refused] == ["20 bytes that are no frame"] * 2


def test_a_frame_with_a_wrong_checksum_is_refused(node: Any, tmp_path: Path) -> None:
    n = inputs.write_frames(tmp_path / "pmu60.bin", 60, 9.0, SEED)  # 540: the 500th is broken
    inside, measured_, refused = Channel("inside"), Channel("measured"), Channel("refused")
    *_, got, no = run(
        node.frames(str(tmp_path / "pmu60.bin"), -inside, -refused),
        node.pmu(+inside, -measured_, -refused, inputs.NOMINAL),
        every(+measured_),
        every(+refused),
        clock="virtual",
    )
    assert len(got) == n - 1
    assert [r for r in no if "station 60 with a wrong checksum" in r] == no[1:]


def test_alarms_come_with_the_first_frame_beyond_a_threshold(here: Any) -> None:
    at, level = measured(50)
    first = at[level < 0.9][0]
    over = at[(at > first) & (level > 0.93)][0]
    alarms = [a[:3] for a in here[1]["alarms"] if a[0] in ("sag", "over")]
    assert alarms == [["sag", 50, first], ["over", 50, over]]  # station 60 sags by only 7 per cent


def test_decisions_follow_from_the_averages(here: Any) -> None:
    rows = [r for r in here[1]["averages"] if r[0] == 50]
    bad = [r[1] for r in rows if r[2] < 0.9]
    good = [r[1] for r in rows if r[2] > 0.95 and r[1] > bad[-1]]
    opened, closed = here[1]["decisions"]
    assert opened[1:] == ["open", 50]
    assert bad[2] <= opened[0] < bad[2] + 0.1
    assert closed[1:] == ["close", 50]
    assert good[9] <= closed[0] < good[9] + 0.1
    assert here[1]["moves"] == [["open", 50], ["close", 50]]


def test_a_handler_that_misses_its_deadline_says_so_and_no_average_is_lost(here: Any) -> None:
    late = [a for a in here[1]["alarms"] if a[0] == "late"]
    assert len(late) == here[1]["asked"] // 25 > 0
    assert found(here[0], "coroutines", "--slow-every", "1000")["alarms"] == [
        a for a in here[1]["alarms"] if a[0] != "late"
    ]


def test_the_record_is_read_and_its_levels_are_those_of_numpy(here: Any) -> None:
    wave = inputs.wave(5.0, SEED)
    cycle = inputs.RATE // 50
    for time, level in here[1]["levels"][::7]:
        end = round(time * inputs.RATE)
        rms = np.sqrt((wave[end - cycle : end] ** 2).mean()) / inputs.NOMINAL
        assert level == pytest.approx(rms, abs=2e-4)  # a sample of the record has 16 bits
    assert here[1]["samples"] == len(wave)
    whats = [a[0] for a in here[1]["alarms"] if a[1] == 0]
    assert whats == ["record sag", "record over"]


@pytest.mark.parametrize("backend", ["threads", "greenlets"])
def test_it_is_the_same_on_every_backend(here: Any, backend: str, tmp_path: Path) -> None:
    other = found(tmp_path, backend)
    for result in (other, mine := dict(here[1])):
        result["refused"] = sorted(r.rpartition("/")[2] for r in result["refused"])
    assert other == mine


def test_there_is_a_picture(here: Any) -> None:
    from PIL import Image

    with Image.open(here[0] / "grid_node.png") as picture:
        assert picture.size == (1000, 800)


# --- a part that blocks ---------------------------------------------------------------------------


@process
async def every(reader: Any) -> list[Any]:
    return [x async for x in reader]


def test_a_device_that_blocks_holds_nobody_up(node: Any, tmp_path: Path) -> None:
    """`frames` waits in read(2) at a pipe. Other processes run while it waits, and a frame that
    arrives in pieces is read as a whole.
    """
    inputs.write_frames(tmp_path / "pmu.bin", 50, 1.0, SEED)
    whole = (tmp_path / "pmu.bin").read_bytes()[20:]
    r, w = os.pipe()
    inside, refused, ping, pong = (Channel(n) for n in ("inside", "refused", "ping", "pong"))

    @process
    async def device(inp: Any, ask: Any, hear: Any) -> list[bytes]:
        got = []
        for k in range(10):
            os.write(w, whole[74 * k : 74 * k + 30])
            await ask.write(k)  # another process runs while the device has sent half a frame
            assert await hear.read() == k
            os.write(w, whole[74 * k + 30 : 74 * k + 74])
            got.append(await inp.read())
        os.close(w)
        return got

    @process
    async def echo(inp: Any, out: Any) -> None:
        async for k in inp:
            await out.write(k)

    try:
        got, *_, no = run(
            device(+inside, -ping, +pong),
            echo(+ping, -pong),
            node.frames(f"/dev/fd/{r}", -inside, -refused),
            every(+refused),
        )
    finally:
        os.close(r)
    assert b"".join(got) == whole[: 74 * 10]
    assert no == []


def test_a_file_that_is_not_there(node: Any, tmp_path: Path) -> None:
    inside, refused = Channel("inside"), Channel("refused")
    with pytest.raises(
        ComponentError, match=r"process frames of component node: .*none: No such file"
    ):
        run(node.frames(str(tmp_path / "none"), -inside, -refused), every(+inside), every(+refused))


def test_a_model_that_nobody_runs_is_named(node: Any) -> None:
    """A network is put together wrongly: `node` asks, and no process reads the question."""
    names = ["pmu50", "pmu60", "settings", "answers", "ask", "averages", "alarms"]
    c = {n: Channel(n) for n in names}
    model = c["ask"].reader(), c["answers"].writer()

    @process
    async def one(out: Any) -> None:
        await out.write((50, 0.0, 1.0, 50.0))
        await Channel("never").reader().read()

    with pytest.raises(Deadlock, match=r"node: write 'ask' at node\.cpp:"):
        run(
            one(-c["pmu50"]),
            node.node(
                +c["pmu50"],
                +c["pmu60"],
                +c["settings"],
                +c["answers"],
                -c["ask"],
                -c["averages"],
                -c["alarms"],
            ),
            every(+c["averages"]),
            every(+c["alarms"]),
            clock="virtual",
        )
    del model
