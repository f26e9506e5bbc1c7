"""Tests that tools/pytest_room.py runs and counts each test, in one lane and in several."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def pytest_room(path: Path, lanes: str = "1", *options: str) -> tuple[str, int]:
    output = pytest_room_output(path, lanes, *options)
    return last_line(output), 0 if last_line(output).endswith(" 0 failed") else 1


def pytest_room_output(path: Path, lanes: str = "1", *options: str, **more: str) -> str:
    """Returns the output of pytest_room.py. Checks that its exit status agrees with its last
    line."""
    result = subprocess.run(
        [
            sys.executable,
            ROOT / "tools/pytest_room.py",
            "--rootdir",
            path.parent,
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
            *options,
            path,
        ],
        env={**os.environ, "WEFT_LANES": lanes, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (result.returncode == 0) == last_line(result.stdout).endswith(" 0 failed")
    return result.stdout


def test_it_counts_tests_not_phases(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.fixture\n"
        "def broken():\n    yield\n    raise RuntimeError\n"
        "def test_bad_at_its_end(broken): pass\n"
        "@pytest.mark.skip\ndef test_skipped(): pass\n"
        "@pytest.mark.xfail\ndef test_expected(): assert False\n"
    )
    assert pytest_room(tmp_path) == ("1 passed, 2 failed", 1)
    (tmp_path / "test_it.py").write_text("def test_good(): pass\n")
    assert pytest_room(tmp_path) == ("1 passed, 0 failed", 0)
    (tmp_path / "test_that.py").write_text("import does_not_exist\n")
    assert pytest_room(tmp_path) == ("0 passed, 1 failed", 1)
    (tmp_path / "test_that.py").unlink()
    (tmp_path / "test_it.py").write_text("")
    assert pytest_room(tmp_path) == ("0 passed, 1 failed", 1)
    assert pytest_room(tmp_path / "missing") == ("0 passed, 1 failed", 1)


@pytest.mark.parametrize("lanes", ["1", "2"])
def test_it_leaves_out_what_is_for_the_soak(
    tmp_path: Path, lanes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "long = pytest.mark.soak\n"
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=long), pytest.param(3, marks=long)])\n"
        "def test_some(n): pass\n"
        "@long\n"
        "def test_long(): pass\n"
    )
    monkeypatch.delenv("WEFT_SOAK", raising=False)
    assert pytest_room(tmp_path, lanes) == ("1 passed, 0 failed", 0)
    monkeypatch.setenv("WEFT_SOAK", "1")
    assert pytest_room(tmp_path, lanes) == ("4 passed, 0 failed", 0)


@pytest.mark.parametrize("lanes", ["1", "2"])
def test_it_runs_each_value_of_what_is_spread(
    tmp_path: Path, lanes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven values of three parameters need three cases; the soak has all twelve."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  soak\n  spread\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.spread\n"
        "def test_plain(): pass\n"
        "@pytest.mark.parametrize('a', 'xyz')\n"
        "@pytest.mark.parametrize(('b', 'c'), [(1, 2), (3, 4)])\n"
        "@pytest.mark.parametrize('d', [5, 6])\n"
        "def test_it(a, b, c, d):\n"
        f"    with open({str(tmp_path / 'ran')!r}, 'a') as f: f.write(f'{{a}} {{b}}{{c}} {{d}}\\n')\n"
    )
    monkeypatch.delenv("WEFT_SOAK", raising=False)
    assert pytest_room(tmp_path, lanes) == ("4 passed, 0 failed", 0)
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert [sorted(set(of)) for of in zip(*ran, strict=True)] == [
        ["x", "y", "z"], ["12", "34"], ["5", "6"]
    ]  # fmt: skip
    monkeypatch.setenv("WEFT_SOAK", "1")
    assert pytest_room(tmp_path, lanes) == ("13 passed, 0 failed", 0)


def test_lanes_run_each_test_once(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"test_{name}.py").write_text(
            "import pathlib, pytest\n"
            "@pytest.mark.parametrize('n', range(30))\n"
            "def test_it(n):\n"
            f"    with open({str(tmp_path / 'ran')!r}, 'a') as f: f.write(f'{name}{{n}}\\n')\n"
            "    assert n != 7\n"
        )
    assert pytest_room(tmp_path, "3") == ("58 passed, 2 failed", 1)
    ran = (tmp_path / "ran").read_text().split()
    again = ["a7", "b7"]  # the tests that failed are run once more
    assert sorted(ran) == sorted([f"{name}{n}" for name in "ab" for n in range(30)] + again)
    (tmp_path / "test_b.py").write_text("import does_not_exist\n")
    assert pytest_room(tmp_path, "2") == ("0 passed, 1 failed", 1)


def test_a_few_failed_tests_are_run_once_more(tmp_path: Path) -> None:
    """A test that passes in its second run is named. If more than a few tests have failed, the
    cause is not chance, and no test is run again.
    """
    (tmp_path / "test_it.py").write_text(
        "import pathlib, pytest\n"
        f"BEGUN = pathlib.Path({str(tmp_path)!r})\n"
        "@pytest.mark.parametrize('n', [*range(20), 'a::b, [c]'])\n"
        "def test_it(n):\n"
        "    with (BEGUN / f'ran {n}').open('a') as f: f.write('.')\n"
        "    ran = len((BEGUN / f'ran {n}').read_text())\n"
        "    assert n not in (3, 'a::b, [c]') or ran > 1\n"
        "    assert n != 4 and not (n != 5 and (BEGUN / 'many').exists())\n"
    )
    output = pytest_room_output(tmp_path, "2")
    assert last_line(output) == "20 passed, 1 failed"
    only = re.findall(r"^passed only when it was run once more: .*test_it(\[.*\])$", output, re.M)
    assert only == ["[3]", "[a::b, [c]]"]
    assert {n: (tmp_path / f"ran {n}").read_text() for n in (2, 3, 4)} == {2: ".", 3: "..", 4: ".."}
    (tmp_path / "many").touch()
    output = pytest_room_output(tmp_path, "2")
    assert last_line(output) == "1 passed, 20 failed"
    assert "once more" not in output


@pytest.mark.parametrize("lanes", [1, 2])
def test_in_the_background_of_a_shell(tmp_path: Path, lanes: int) -> None:
    """Programs that a test starts react to Ctrl-C, even if the shell has set Ctrl-C to be
    ignored."""
    (tmp_path / "test_it.py").write_text(
        "import signal, subprocess\n"
        "def test_a_child():\n"
        "    child = subprocess.Popen(['tail', '-f', '/dev/null'])\n"
        "    child.send_signal(signal.SIGINT)\n"
        "    try: assert child.wait(60) == -signal.SIGINT\n"
        "    finally: child.kill()\n"
    )
    room = [sys.executable, str(ROOT / "tools/pytest_room.py"), "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*room, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "WEFT_LANES": str(lanes)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert last_line(result.stdout) == "1 passed, 0 failed"


def test_the_files_of_lanes_are_kept_apart(tmp_path: Path) -> None:
    """If two runs of pytest remove old folders in one place, they end with an error, even if all
    tests have passed.
    """
    (tmp_path / "inner.py").write_text(
        "def test_inner(tmp_path): (tmp_path.parents[1] / 'kept').touch()\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest, subprocess, sys\n"
        "@pytest.mark.parametrize('n', range(40))\n"
        "def test_it(n, tmp_path):\n"
        f"    with open({str(tmp_path / 'places')!r}, 'a') as f: f.write(f'{{tmp_path}}\\n')\n"
        "    if n % 10 == 0:\n"
        "        run = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider']\n"
        f"        subprocess.run([*run, {str(tmp_path / 'inner.py')!r}], check=True)\n"
        "        assert list(tmp_path.parents[1].glob('pytest-of-*/kept'))\n"
    )
    assert pytest_room(tmp_path, "2") == ("40 passed, 0 failed", 0)
    places = {Path(line).parent for line in (tmp_path / "places").read_text().splitlines()}
    assert {place.name for place in places} == {"own"}
    assert not any(place.parents[1].exists() for place in places)  # none of the folders is left


def test_when_a_lane_dies(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("import os\ndef test_it(): os._exit(0)\n")
    (tmp_path / "test_b.py").write_text("def test_it(): pass\n")
    line, status = pytest_room(tmp_path, "2")
    assert (line.partition(", ")[2], status) == ("1 failed", 1)


def test_what_had_passed_counts_where_a_test_hangs(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import threading\n"
        "def test_1(): pass\n"
        "def test_2(): pass\n"
        "def test_it(): threading.Event().wait()\n"
        "def test_never(): pass\n"  # this test is claimed with the hanging test, and lost
    )
    (tmp_path / "test_b.py").write_text("def test_it(): pass\n")
    for seconds in (1, 30):  # on a busy machine any test can take longer than 1 s
        output = pytest_room_output(tmp_path, "2", "-o", f"faulthandler_timeout={seconds}")
        if last_line(output) == "3 passed, 1 failed":
            break
    assert last_line(output) == "3 passed, 1 failed"
    assert re.search(r"^lane \d died \(status 1\) in .*test_a.py::test_it$", output, re.MULTILINE)
    assert "Timeout" in output  # the report has the place of each thread


def test_a_test_that_hung_is_told_as_over_while_other_lanes_go_on(tmp_path: Path) -> None:
    """If the hung test were not reported as ended, the whole room would seem to hang."""
    told = tmp_path / "told"
    told.touch()
    (tmp_path / "test_a.py").write_text(
        "import threading\n"
        "def test_it(): threading.Event().wait()\n"
        "def test_never(): pass\n"  # the lane that hangs claims this test, not test_goes_on
    )
    (tmp_path / "test_b.py").write_text(
        "import faulthandler, pathlib, time\n"
        "def test_goes_on():\n"
        "    faulthandler.cancel_dump_traceback_later()\n"
        "    end = time.monotonic() + 200\n"
        f"    while 'end 0 0' not in (text := pathlib.Path({str(told)!r}).read_text()):\n"
        "        assert time.monotonic() < end, text\n"
        "        time.sleep(0.01)\n"
    )
    output = pytest_room_output(
        tmp_path, "2", "-o", "faulthandler_timeout=3", WEFT_PROGRESS=str(told)
    )
    assert last_line(output) == "1 passed, 1 failed"


@pytest.mark.parametrize("lanes", ["1", "2"])
def test_each_test_is_told_as_it_begins_and_ends(tmp_path: Path, lanes: str) -> None:
    (tmp_path / "test_a.py").write_text(
        "import os, pytest\n"
        "def test_good(): assert 'WEFT_PROGRESS' not in os.environ\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip\ndef test_skipped(): pass\n"
    )
    (tmp_path / "test_b.py").write_text("def test_it(): pass\n")
    message = tmp_path / "told"
    message.touch()
    pytest_room_output(tmp_path, lanes, WEFT_PROGRESS=str(message))
    lines = [
        [*line.split("::")[0].split(" ")[:-1], line.split("::")[1]]
        for line in message.read_text().splitlines()
    ]
    for name, counts in (
        ("test_good", "1 0"),
        ("test_bad", "0 1"),
        ("test_skipped", "0 0"),
        ("test_it", "1 0"),
    ):
        mine = [" ".join(words[:-1]) for words in lines if words[-1] == name]
        runs = 2 if name == "test_bad" and lanes == "2" else 1  # in lanes the test is run once more
        assert mine == runs * ["begin", f"end {counts}"], name
