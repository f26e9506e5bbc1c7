"""Tests the model of a farm: every job is done once; the results agree with a calculation by hand,
on every backend and each time; a home serves one request at a time; bad usage, and the plot.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from weft import Channel, now, process, run, sleep

FOLDER = Path(__file__).resolve().parents[1] / "farm_scale"
PAGE = FOLDER.parents[1] / "python/docs/outgrowing.md"
sys.path.insert(0, str(FOLDER))
import farm_scale  # noqa: E402
from farm_scale import Costs, bound, simulate  # noqa: E402

FEW = ["--hosts", "3", "--hosts", "12", "--homes", "4", "--jobs", "5"]
USUAL = Costs(work=0.1, service=156e-6, delay=100e-6)
SVG = "{http://www.w3.org/2000/svg}"


def start(*options: str) -> Result:
    return CliRunner().invoke(farm_scale.main, options)


def report(*options: str) -> dict[str, Any]:
    done = start("--json", *options)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("homes", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(("hosts", "number"), [(7, 7), (7, 50), (20, 1), (20, 333)])
def test_every_job_is_done_once(hosts: int, homes: int, number: int) -> None:
    done, seconds = simulate(hosts, homes, number, USUAL)
    assert sorted(done) == list(range(number)) and seconds > USUAL.work


@pytest.mark.parametrize("delay", [0.0, 0.003])
def test_one_host_takes_what_one_counts_by_hand(delay: float) -> None:
    costs = Costs(work=0.02, service=0.001, delay=delay)
    done, seconds = simulate(1, 0, 5, costs)
    # Each job consists of a request, its service, an answer, the work, a request and its service;
    # between two jobs there are also an answer and the next request.
    assert seconds == pytest.approx(5 * (0.02 + 2 * 0.001) + 5 * 4 * delay - delay)
    assert done == [0, 1, 2, 3, 4]


def test_a_home_serves_one_at_a_time_in_order_of_arrival() -> None:
    @process
    async def asks(requests: Any, after: float) -> float:
        await sleep(after)
        await requests.write("a job?")
        return now()

    @process
    async def network() -> list[float]:
        began, requests = now(), Channel()
        parts = [asks(requests.writer(), after) for after in (3.0, 0.0, 1.0, 50.0)]
        _, *when = await farm_scale.Parallel(farm_scale.home(requests.reader(), 10.0), parts)
        return [t - began for t in when]

    assert run(network(), clock="virtual") == pytest.approx([30.0, 10.0, 20.0, 60.0])


GRID = list(itertools.product((1, 4, 30, 100, 400), (0, 2, 10), (0.002, 0.1)))


@pytest.mark.parametrize(("hosts", "homes", "work"), GRID)
def test_it_reaches_the_bound_and_no_more(hosts: int, homes: int, work: float) -> None:
    costs, homes = Costs(work, USUAL.service, USUAL.delay), min(homes, hosts)
    done, seconds = simulate(hosts, homes, 60 * hosts, costs)
    found, most = costs.work * len(done) / seconds, bound(hosts, homes, costs)
    assert found <= most * (1 + 1e-9)
    # A host waits for its requests even if no other host is ahead of it, and a home of a tree waits
    # for the requests of its hosts. At the beginning and the end of the run some hosts and homes
    # are idle.
    alone = work / (work + 2 * costs.service + 4 * costs.delay)
    assert found >= 0.95 * min(most, hosts * alone)


@pytest.mark.parametrize("homes", [2, 3, 5])
def test_all_hosts_work_where_homes_have_unlike_numbers_of_them(homes: int) -> None:
    done, seconds = simulate(7, homes, 60 * 7, USUAL)
    assert len(done) * USUAL.work / seconds > 6.5


def test_the_bound_by_hand() -> None:
    costs = Costs(work=0.1, service=0.0005, delay=0.0)  # a home serves 1,000 jobs a second
    assert bound(10, 0, costs) == 10
    assert bound(1000, 0, costs) == pytest.approx(100)
    # Ten homes of a hundred hosts: a hundred jobs take 202 requests: two for each job, and two of
    # the home itself.
    assert bound(1000, 10, costs) == pytest.approx(1000 / 1.01)
    # With one job at a time the top home is the limit.
    assert bound(1000, 1000, costs) == pytest.approx(100)
    assert bound(1000, 2, costs) == pytest.approx(200 / 1.002)


def test_past_the_limit_of_one_home_more_hosts_do_not_help_and_a_tree_does() -> None:
    costs = Costs(work=0.01, service=USUAL.service, delay=USUAL.delay)

    def speedup(hosts: int, homes: int) -> float:
        done, seconds = simulate(hosts, homes, 30 * hosts, costs)
        return len(done) * costs.work / seconds

    one = speedup(50, 0)
    assert speedup(200, 0) == pytest.approx(one, rel=0.05)
    assert speedup(200, 10) > 4 * one
    assert speedup(200, 200) < 1.1 * one  # homes that receive one job at a time do not help


def test_half_the_time_at_the_home_is_twice_the_hosts() -> None:
    half = USUAL._replace(service=USUAL.service / 2)
    assert bound(10_000, 0, half) == pytest.approx(2 * bound(10_000, 0, USUAL))


# --- the program ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return report(*FEW, "--hosts", "12")


def test_json_has_the_costs_and_each_farm_once(found: dict[str, Any]) -> None:
    assert found["example"] == "farm_scale" and [f["hosts"] for f in found["farms"]] == [3, 12]
    assert (found["work"], found["service"], found["delay"]) == pytest.approx(USUAL)
    for farm in found["farms"]:
        for kind, homes in (("one", 0), ("tree", min(4, farm["hosts"]))):
            assert farm[kind]["done"] == 5 * farm["hosts"]
            assert farm[kind]["bound"] == bound(farm["hosts"], homes, USUAL)


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
def test_the_same_comes_out_each_time_on_every_backend(found: dict[str, Any], backend: str) -> None:
    file = str(FOLDER / "farm_scale.py")
    command = [sys.executable, "-m", "weft.cli", "run", file, "--on", backend, *FEW, "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == found


def test_the_documents_show_what_it_prints() -> None:
    done = start()
    assert done.exit_code == 0, done.output
    table = done.stdout.partition("\n\n")[2]
    for page in (FOLDER / "README.md", PAGE):
        assert table in page.read_text(encoding="utf-8"), f"{page} shows other figures"


def test_the_time_at_a_home_is_about_that_of_the_bench() -> None:
    results = json.loads((FOLDER.parents[1] / "bench/results/net-int.json").read_text())
    assert results["p50"]["TLS"] / 1000 == pytest.approx(farm_scale.SERVICE_US, rel=0.25)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--hosts", "0"),
        ("--hosts", "100001"),
        ("--hosts", "many"),
        ("--homes", "0"),
        ("--jobs", "0"),
        ("--work", "0"),
        ("--work", "nan"),
        ("--service", "-1"),
        ("--delay", "-1"),
        ("--delay", "inf"),
    ],
)
def test_bad_use_is_told(option: str, value: str) -> None:
    done = start(option, value)
    assert done.exit_code == 2 and option in done.stderr and value in done.stderr
    assert done.stdout == ""


def test_options_are_in_milliseconds_and_microseconds() -> None:
    options = ["--hosts", "1", "--jobs", "3", "--work", "20", "--service", "500", "--delay", "0"]
    assert report(*options)["farms"][0]["one"]["seconds"] == pytest.approx(3 * (0.02 + 2 * 0.0005))


# --- the plot -------------------------------------------------------------------------------------


def test_the_plot_has_both_lines_and_is_the_same_each_time(tmp_path: Path) -> None:
    files = [tmp_path / "new folder" / name for name in ("a.svg", "b.svg")]
    options = ["--hosts", "1", "--hosts", "20", "--hosts", "150", "--jobs", "4", "--work", "10"]
    for file in files:
        done = start(*options, "--svg", str(file))
        assert done.exit_code == 0, done.output
    assert files[0].read_bytes() == files[1].read_bytes()
    picture = ElementTree.parse(files[0])
    lines = {
        line.get("stroke"): [
            tuple(map(float, place.split(","))) for place in line.get("points", "").split()
        ]
        for line in picture.iter(f"{SVG}polyline")
    }
    tree, one = lines.values()
    assert [x for x, _ in tree] == [x for x, _ in one] == sorted({x for x, _ in one})
    assert len(one) == 3 and all(60 <= x <= 480 and 50 <= y <= 350 for x, y in tree + one)
    assert tree[2][1] < one[2][1] - 50  # with 150 hosts the tree is well above one home
    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"one home", "a tree", "hosts"} <= set(words)


def test_a_plot_of_one_host(tmp_path: Path) -> None:
    assert start("--hosts", "1", "--svg", str(tmp_path / "p.svg")).exit_code == 0
    assert len(list(ElementTree.parse(tmp_path / "p.svg").iter(f"{SVG}polyline"))) == 2


def test_it_says_that_it_cannot_write_the_plot() -> None:
    done = start("--hosts", "1", "--svg", "/dev/null/p.svg")
    assert done.exit_code == 1 and done.stderr.startswith("Error: --svg /dev/null/p.svg: ")
