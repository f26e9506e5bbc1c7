"""Tests the entry point `./run`: the list, unknown tasks, exit status, stopping."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, House, is_gone, plain_signals

# Starts a child that never ends on its own, reports this on the fifo, and waits for the child.
ENDLESS = """
tail -f /dev/null & echo "$$ $!" > "$FIFO"
wait
"""


@pytest.fixture
def fifo(house: House) -> Path:
    path = house.path / "fifo"
    os.mkfifo(path)
    return path


def test_alone_it_lists_every_task_with_its_comment(house: House) -> None:
    house.script("tools/weave", "", shell="#!/usr/bin/env bash\n# make cloth\n# of two lines\n")
    (house.path / "tools/notes").write_text("# not executable, so no task\n")
    result = house.run()
    assert result.returncode == 0
    assert "  weave       make cloth\n" in result.stdout
    for hidden in ("notes", "lib.sh", "rooms.py", "of two lines"):
        assert hidden not in result.stdout
    assert result.stderr == ""


def test_every_task_of_the_checkout_has_a_line_of_its_own(house: House) -> None:
    listed = house.run().stdout.splitlines()
    tasks = [
        path.name
        for path in (ROOT / "tools").iterdir()
        if path.is_file() and os.access(path, os.X_OK) and "." not in path.name
    ]
    assert {"test", "demo", "bench", "soak", "setup", "build"} <= set(tasks)
    for task in tasks:
        (line,) = [line for line in listed if line.split()[:1] == [task]]
        assert len(line.split()) > 3, f"tools/{task} needs a first comment line"


@pytest.mark.parametrize("word", ["help", "-h", "--help"])
def test_help_is_the_list(house: House, word: str) -> None:
    assert house.run(word).stdout == house.run().stdout


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_of_a_task_is_its_comment_and_the_task_is_not_run(house: House, word: str) -> None:
    house.script(
        "tools/weave", "echo ran", shell="#!/usr/bin/env bash\n# make cloth\n#\n# of two\n"
    )
    result = house.run("weave", word)
    assert (result.returncode, result.stdout) == (0, "make cloth\n\nof two\n")
    assert house.run("weave", "cloth", word).stdout == "ran\n", "an argument as any other"


def test_a_task_that_has_a_help_of_its_own_is_given_it(house: House) -> None:
    house.script("tools/weave", "# --help\nprintf '<%s>' \"$@\"\n")
    assert house.run("weave", "--help", "x").stdout == "<--help><x>"


RUNNERS = sorted(ROOT.glob("*/tests/run"))
# The rooms whose runners pass their options to pytest.
APART = ("python", "tools", "examples", "bench", "compat", "theses")


@pytest.mark.parametrize("word", ["-h", "--help"])
@pytest.mark.parametrize("run", RUNNERS, ids=lambda run: str(run.relative_to(ROOT)))
def test_a_rooms_tests_tell_what_they_are(run: Path, word: str) -> None:
    result = subprocess.run([run, word], capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0 and result.stderr == ""
    assert len(result.stdout.split()) > 5 and " passed, 0 failed" not in result.stdout


@pytest.mark.parametrize("run", [run for run in RUNNERS if run.parts[-3] not in APART])
def test_an_option_that_a_room_does_not_have(run: Path) -> None:
    result = subprocess.run(
        [run, "--no-such-option"], capture_output=True, text=True, timeout=280, check=False
    )
    assert (result.returncode, result.stdout) == (2, "") and "--no-such-option" in result.stderr


def test_an_unknown_task_is_one_line_that_lists_those_there_are(house: House) -> None:
    result = house.run("tets")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "no task 'tets'; there are: " in result.stderr
    assert " test" in result.stderr.partition("there are:")[2]


@pytest.mark.parametrize("typed", ["rooms.py", "../run", "qqqqqqqqqqqq", "requirements", ""])
def test_what_is_no_task_is_not_run(house: House, typed: str) -> None:
    result = house.run(typed)
    assert result.returncode == 2
    assert f"there is no task '{typed}'" in result.stderr


def test_arguments_status_and_stdin_are_the_tasks_own(house: House) -> None:
    house.script("tools/echo", "# say it\nprintf '<%s>' \"$@\"; cat; exit 7\n")
    result = subprocess.run(
        ["./run", "echo", "a b", "*", ""],
        cwd=house.path,
        input="in",
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (7, "<a b><*><>in")


def test_it_runs_from_any_folder(house: House, tmp_path_factory: pytest.TempPathFactory) -> None:
    house.script("tools/echo", "# say it\necho here\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    result = subprocess.run(
        [house.path / "run", "echo"], cwd=elsewhere, capture_output=True, text=True
    )
    assert result.stdout == "here\n"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_all_that_the_task_started(
    house: House, fifo: Path, number: signal.Signals, status: int
) -> None:
    house.script("tools/endless", ENDLESS)
    process = subprocess.Popen(
        ["./run", "endless"],
        cwd=house.path,
        env=house.env(FIFO=str(fifo)),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=plain_signals,
    )
    pids = [int(word) for word in fifo.read_text().split()]
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == status
    assert "run: stopped endless" in errors
    assert [pid for pid in pids if not is_gone(pid)] == []


def test_a_task_that_ignores_signals_is_killed(house: House, fifo: Path) -> None:
    house.script("tools/deaf", "trap '' INT TERM\n" + ENDLESS)
    run = house.path / "run"
    run.write_text(run.read_text().replace("grace=10", "grace=1"))
    process = subprocess.Popen(
        ["./run", "deaf"],
        cwd=house.path,
        env=house.env(FIFO=str(fifo)),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=plain_signals,
    )
    pids = [int(word) for word in fifo.read_text().split()]
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert [pid for pid in pids if not is_gone(pid)] == []


def test_ctrl_c_at_a_terminal_stops_cleanly(house: House, fifo: Path) -> None:
    house.script("tools/endless", ENDLESS)
    pid, terminal = pty.fork()
    if pid == 0:
        plain_signals()
        os.chdir(house.path)
        os.execvpe("./run", ["./run", "endless"], house.env(FIFO=str(fifo)))
    pids = [int(word) for word in fifo.read_text().split()]
    os.write(terminal, b"\x03")
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:
        pass  # the task has closed its side; a pty reports the end of a file in this way
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert b"run: stopped endless" in shown
    assert [pid for pid in pids if not is_gone(pid)] == []


def test_at_a_terminal_a_task_may_ask_and_be_answered(house: House) -> None:
    house.script("tools/ask", 'read -r word; echo "heard $word"\n')
    pid, terminal = pty.fork()
    if pid == 0:
        plain_signals()
        os.chdir(house.path)
        os.execvpe("./run", ["./run", "ask"], house.env())
    os.write(terminal, b"weft\n")
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"heard weft" in shown


def test_continuous_integration_runs_the_tests() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert 'exec ./run test "$@"' in lines
    assert os.access(ROOT / ".ci/run", os.X_OK)
