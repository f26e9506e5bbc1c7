"""`weft check`, run as a user runs it: its output, where the output goes, and its exit status (rule
17.11).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from children import child

from weft import cli
from weft._checking import checker as _checker
from weft._checking import parallel as _parallel

HERE = Path(__file__).parent
PROGRAMS = str(HERE / "checked_programs.py")


def check(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", "check", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**{k: v for k, v in os.environ.items() if k != "WEFT_BACKEND"}, **more},
        timeout=280,
        check=False,
    )


def of(name: str) -> str:
    return f"{PROGRAMS}::{name}"


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the only line on stderr of a command that was bad use."""
    assert done.returncode == cli.EXIT["bad use"], done.stdout + done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("weft: ")
    return done.stderr


# --- findings -------------------------------------------------------------------------------------


def test_a_deadlock_that_a_plain_run_never_shows() -> None:
    """Rules 17.1, 17.8, 17.11: the output has the deadlock, its knot and the command that replays
    it."""
    done = check(of("hidden"))
    assert done.returncode == 3, done.stdout + done.stderr
    first = done.stdout.splitlines()[0]
    assert re.search(
        r"hidden: deadlock, in schedule 2; made short: 1 deviation; no schedule with fewer fails",
        first,
    )
    assert "waits for ever" in done.stdout and "knot:" in done.stdout
    assert done.stderr == ""
    replay = re.search(r"^replay: weft check \S+ --replay (\S+)$", done.stdout, re.MULTILINE)
    assert replay
    again = check(of("hidden"), "--replay", replay[1])
    assert again.returncode == 3 and "waits for ever" in again.stdout


def test_every_schedule_is_a_proof() -> None:
    """Rule 17.7: if all schedules are run without a failure, the output says so."""
    done = check(of("hidden_mended"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every schedule: 2 runs stand for all of them" in done.stdout


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("good", 0, "Every schedule: 1 run stands for all of them"),
        ("deadlock", 3, "deadlock, in schedule 1; in the usual order"),
        ("who_is_first_asserted", 1, "exception: AssertionError: a comes first"),
        ("loses_a_value", 1, "lost values: 1 value that nobody took"),
        ("loses_by_poison", 0, "Every schedule"),
        ("never_ends", 1, "no end: not over after 20,"),
        ("exits", 1, r"exception: the program calls sys.exit\(7\)"),
        ("main_process", 0, "Every schedule"),
        ("main_coroutine", 0, "Every schedule"),
        ("uses_the_clock", 0, "Every schedule"),
        ("shares_a_list", 0, "told: main/appends.* share a list that changes"),
        ("shares_what_nobody_changes", 0, "Every schedule"),
        ("with_threads", 0, "Every schedule"),
        ("TestMethods::test_method", 1, "AssertionError"),
        ("test_with_a_fixture", 1, "AssertionError"),
    ],
)
def test_what_comes_of_a_program(name: str, status: int, says: str) -> None:
    """Rules 17.5, 17.6, 17.11: each program gives its exit status and a sentence on stdout."""
    done = check(of(name), "--seconds", "5")
    assert done.returncode == status, done.stdout + done.stderr
    assert re.search(says, done.stdout), done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_network", "runs no network"),
        ("starts_a_thread", "starts a thread that is no process of Weft: make it a process"),
        ("forks", "calls os.fork"),
        ("runs_a_loop", "uses the event loop.*no event loop"),
        ("waits_for_a_lock", "waits for a lock .*use a channel"),
        ("uses_a_channel_of_its_module", "made outside of the function"),
        ("needs_arguments", r"needs arguments \(n\)"),
        ("nothing_there", "has no function 'nothing_there'"),
        ("no_netwrk", "did you mean 'no_network'"),
        ("_calls", "is not a function"),
        ("TestMethods", "is not a function"),
        ("test_with_fixture", "did you mean 'test_with_a_fixture'"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(name: str, says: str) -> None:
    """Rule 17.9, 17.11: the reason is one line on stderr."""
    assert re.search(says, one_line(check(of(name), "--seconds", "5")))


def test_a_function_that_computes_for_ever_is_named() -> None:
    """Rule 17.9. The message names the line. In this test the command waits for half a second
    instead of ten."""
    sooner = (
        "import sys, weft.cli, weft._checking.patches as patches; patches.NOTHING_FOR = 0.5; "
        "sys.exit(weft.cli.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", sooner, "check", of("computes_for_ever")],
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert re.search(
        r"checked_programs.py:\d+: the function has not come to an operation", one_line(done)
    )


def test_a_process_that_waits_for_its_children_does_not_compute_for_ever() -> None:
    """Rule 17.9: a search by several OS processes may take longer than the alarm waits."""
    read, write = os.pipe()
    os.close(write)  # the only child has ended
    parent: Any = SimpleNamespace(_runs=0, looks=0, seconds=lambda: 0.0, progress=lambda text: None)
    before = _checker._Check._steps(parent)
    assert _parallel._wait(parent, {read: 0}, {}) is None
    os.close(read)
    assert _checker._Check._steps(parent) != before


def test_a_program_that_is_not_the_same_twice() -> None:
    """Rules 17.9, 17.11: the status is 4, and the output has the first step that differs."""
    done = check(of("not_the_same_twice"))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "not the same twice" in done.stdout


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seconds", "0"], "seconds=0"),
        (["--seconds", "soon"], "is not a valid float"),
        (["--schedules", "0"], "schedules=0"),
        (["--search", "wlk"], "did you mean 'walk'"),
        (["--time", "never"], "no such time"),
        (["--grain", "sand"], "no such grain"),
        (["--faults", "kil"], "did you mean 'kill'"),
        (["--replay", "w1:cle"], "not a whole token"),
        (["--replay", "w7:a@1=b"], "another version"),
        (["--replay", "hello"], "is not a token"),
        (["-j", "0"], "jobs=0"),
        (["--stub", "nothing"], "module.function"),
        (["--svg", "/nonexistent/x.svg"], "cannot write /nonexistent/x.svg"),
        (["--trace", "/nonexistent/x"], "cannot write /nonexistent/x"),
        (["--nonsense"], "No such option"),
    ],
)
def test_options_that_cannot_be(
    arguments: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule 17.11: wrong options are bad use, and the reason is one line on stderr."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert cli.main(["check", of("good"), *arguments]) == cli.EXIT["bad use"]
    captured = capsys.readouterr()
    assert (
        captured.out == "" and captured.err.startswith("weft: ") and captured.err.count("\n") == 1
    )
    assert says in captured.err


def test_files_that_cannot_be(tmp_path: Path) -> None:
    assert "does not exist" in one_line(check(str(tmp_path / "none.py")))
    assert "is a directory" in one_line(check(str(tmp_path)))
    bad = tmp_path / "bad.py"
    bad.write_text("def f(:\n")
    assert "is not Python (line 1" in one_line(check(f"{bad}::f"))
    bad.write_text("1 / 0\ndef f(): pass\n")
    assert "cannot be imported: ZeroDivisionError" in one_line(check(f"{bad}::f"))
    text = tmp_path / "program.txt"
    text.write_text("def f(): pass\n")
    assert "is not Python; give a file whose name ends in .py" in one_line(check(f"{text}::f"))


def test_the_file_as_a_script(tmp_path: Path) -> None:
    program = tmp_path / "script.py"
    program.write_text(
        "from weft import Channel, process, run\n"
        "@process\nasync def w(o):\n    await o.write(1)\n"
        "@process\nasync def r(i):\n    return await i.read()\n"
        "if __name__ == '__main__':\n"
        "    c = Channel('c')\n    print(run(w(c.writer()), r(c.reader())))\n"
    )
    done = check(str(program))
    assert done.returncode == 0 and "Every schedule" in done.stdout, done.stdout + done.stderr
    assert "[" not in done.stdout  # the program's own output is not shown


def test_same_finds_a_result_that_depends_on_the_order() -> None:
    """Rule 17.6: only with --same is a result that depends on the order a failure."""
    assert check(of("who_is_first")).returncode == 0
    done = check(of("who_is_first"), "--same")
    assert done.returncode == 1, done.stdout
    assert (
        "depends on the order: the result is ['b', 'a'], and ['a', 'b'] in the usual order"
        in done.stdout
    )


def test_left_behind_is_told_and_fails_if_strict() -> None:
    """Rule 17.6: with --strict a process that is left behind is a failure."""
    done = check(of("left_in_some_order"), "--strict")
    assert done.returncode == 1 and "left behind: main/writes" in done.stdout, done.stdout


def test_a_time_that_comes_early_is_another_search() -> None:
    """Rule 17.3: the failure is found only with --time any."""
    quiet = check(of("early"), "--search", "reduced" if False else "all", "--time", "quiet")
    assert quiet.returncode == 0, quiet.stdout
    any_time = check(of("early"), "--time", "any")
    assert any_time.returncode == 1 and "the answer was late" in any_time.stdout, any_time.stdout


def test_a_failure_that_needs_a_stop_between_two_operations_says_so() -> None:
    """Rule 17.2: the output says that coroutines of one scheduler cannot fail in this way."""
    done = check(of("fails_at_one_grain"))
    assert done.returncode == 3 and "cannot happen while all of these are coroutines" in done.stdout
    assert check(of("fails_at_one_grain"), "--grain", "park").returncode == 0


def test_what_was_written_outside_is_told_and_can_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "out"
    done = check(of("saves"), CHECKED_FILE=str(file))
    assert done.returncode == 0 and re.search(
        r"told: checked_programs.py:\d+ writes to a file", done.stdout
    )
    size = file.stat().st_size
    done = check(of("saves"), "--stub", "checked_programs.save", CHECKED_FILE=str(file))
    assert done.returncode == 0 and "told" not in done.stdout, done.stdout + done.stderr
    assert file.stat().st_size == size


def test_json_says_the_same() -> None:
    done = check(of("deadlock"), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == report["status"] == 3
    assert report["weft_check"] == 1 and report["failed"] and report["kind"] == "deadlock"
    assert report["token"] == "w1" and report["deviations"] == 0 and report["lines"]


def test_keep_going_says_each_kind_of_failure() -> None:
    done = check(of("who_is_first"), "--same", "--keep-going", "--json")
    report = json.loads(done.stdout)
    assert report["kind"] == "depends on the order"


def test_the_picture_and_the_trace(tmp_path: Path) -> None:
    svg, trace = tmp_path / "out.svg", tmp_path / "out.jsonl"
    done = check(of("hidden"), "--svg", str(svg), "--trace", str(trace))
    assert done.returncode == 3, done.stderr
    assert svg.read_text().startswith("<svg") and "main/takes_both[1]" in svg.read_text()
    assert json.loads(trace.read_text().splitlines()[0])["weft_trace"] == 1
    done = check(of("good"), "--svg", str(svg))
    assert done.returncode == 0 and "there is no schedule to show" in done.stderr


def test_what_the_program_printed_is_shown_once() -> None:
    done = check(of("prints"))
    assert done.returncode == 1 and done.stdout.count("hello from [1, 2, 3]") == 1
    assert done.stderr == ""


def test_a_token_that_does_not_fit_is_told() -> None:
    """Rule 17.8: a token that does not fit is not a failure of the program."""
    done = check(of("good"), "--replay", "w1:nobody@3=reads")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not fit this program any more" in done.stdout


def test_a_token_that_does_not_fail_shows_its_schedule() -> None:
    done = check(of("good"), "--replay", "w1")
    assert done.returncode == 0 and "this schedule does not fail" in done.stdout
    assert re.search(r"main/writes +write c 1", done.stdout)


def test_several_os_processes() -> None:
    """Rule 17.7: with two OS processes, the deadlock is found and the mended program is proven."""
    done = check(of("hidden"), "-j", "2")
    assert done.returncode == 3 and "waits for ever" in done.stdout, done.stdout + done.stderr
    done = check(of("hidden_mended"), "-j", "2")
    assert done.returncode == 0 and "Every schedule" in done.stdout, done.stdout + done.stderr


def test_a_budget_of_schedules() -> None:
    """Rule 17.7: the output says that not all schedules were run."""
    done = check(of("hidden_mended"), "--search", "walk", "--schedules", "20")
    assert done.returncode == 0 and "not every schedule was run. 20 schedules" in done.stdout
    done = check(of("hidden_mended"), "--search", "walk", "--schedules", "20", "--all")
    assert done.returncode == 1 and "every schedule was asked for" in done.stdout


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_tells_how_far_it_came(jobs: str) -> None:
    """Rule 17.11: Ctrl-C ends the search, and the output says how many schedules were run."""
    arguments = [
        "check",
        of("says_when_it_runs"),
        "--search",
        "walk",
        "--seconds",
        "100000",
        "-j",
        jobs,
    ]
    read, write = os.pipe()
    how = {
        "pass_fds": (write,),
        "env": {**os.environ, "CHECKED_FD": str(write)},
        "start_new_session": True,
    }
    with child("-m", "weft.cli", *arguments, **how) as it:
        os.close(write)
        assert os.read(read, 1) == b"x"
        os.killpg(it.pid, signal.SIGINT)
        out, err = it.communicate()
    os.close(read)
    assert it.returncode == 130, out + err
    assert re.search(r"stopped by Ctrl-C; nothing was found so far. [\d,]+ schedules? in", out), out


def test_ctrl_c_while_a_child_is_forked_is_not_lost() -> None:
    """Rule 17.11. An exception in a function that os.fork() calls is lost, and the search would
    never end."""
    interrupted = (
        "import os, signal, sys, weft.cli; "
        "os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGINT)); "
        "sys.exit(weft.cli.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", interrupted, "check", of("hidden_mended"),
         "--search", "walk", "--seconds", "100000", "-j", "2"],
        capture_output=True, encoding="utf-8", timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stdout + done.stderr


def test_without_the_extension_module_it_says_what_it_needs() -> None:
    done = check(of("good"), WEFT_PURE="1")
    assert "weft check is not there in pure Python" in one_line(done)
