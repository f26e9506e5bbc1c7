"""`weft.check` as a function, as a decorator and in pytest; the contents of a Report (rules 17.1 to
17.12).
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import checked_programs as programs
import pytest
from components import basics, collect, needs_compiler, source, tasks

import weft
from weft import coroutines, threads
from weft._checking.report import CheckFailed, Report

QUICK: dict[str, Any] = {"seconds": 60}  # an upper limit: each of these searches ends long before


# --- the public names -----------------------------------------------------------------------------


def test_weft_check_is_a_callable_with_replay() -> None:
    import weft._checking.checker

    assert callable(weft.check) and callable(weft.check.replay)
    assert "check" in dir(weft)
    assert not hasattr(sys.modules["weft"], "checking")
    report = weft.check(programs.good)
    assert isinstance(report, Report)
    assert callable(weft.check)  # no module has replaced the function


def test_nothing_is_found_and_every_schedule_was_run() -> None:
    """Rules 17.1, 17.7: the report of a complete search without a fault is true and complete."""
    report = weft.check(programs.good, **QUICK)
    assert not report.failed and report.complete and report.status == 0
    assert (report.kind, report.token, report.deviations, report.svg) == ("", "", 0, "")
    assert "Every schedule: 1 run stands for all of them" in report.text


def test_a_deadlock_is_found_and_made_short() -> None:
    """Rules 17.4, 17.5, 17.8: the deadlock is shortened to one deviation, and its token replays
    it."""
    report = weft.check(programs.hidden, **QUICK)
    assert (report.kind, report.deviations, report.least, report.status) == ("deadlock", 1, True, 3)
    assert report.found_at == 2 and not report.complete
    again = weft.check(programs.hidden, replay=report.token)
    assert again.kind == "deadlock" and again.lines == report.lines
    assert report.svg.startswith("<svg")
    assert weft.check(programs.hidden_mended, **QUICK).complete


def test_what_a_plain_run_shows_has_no_deviations() -> None:
    """Rule 17.4: the schedule of a failure in the usual order has no deviations."""
    report = weft.check(programs.deadlock, **QUICK)
    assert (report.kind, report.deviations, report.token, report.found_at) == (
        "deadlock",
        0,
        "w1",
        1,
    )


@pytest.mark.parametrize("backend", ["coroutines", "threads"])
def test_thread_processes_have_the_schedules_of_coroutines(backend: str) -> None:
    """Rule 17.2: thread processes are checked with the schedules that coroutines have."""
    report = weft.check(
        programs.with_threads if backend == "threads" else programs.who_is_first, **QUICK
    )
    assert report.complete and not report.failed
    same = weft.check(
        programs.with_threads if backend == "threads" else programs.who_is_first, same=True, **QUICK
    )
    assert same.kind == "depends on the order" and same.deviations == 1


@pytest.mark.parametrize("search", ["auto", "all", "walk", "pct", "few"])
def test_each_way_of_searching_finds_it(search: str) -> None:
    """Rules 17.5, 17.8: each search finds the failure, and shortens it to one deviation."""
    report = weft.check(programs.who_is_first_asserted, search=search, **QUICK)
    assert report.kind == "exception" and report.deviations == 1 and report.least


def test_the_result_of_a_process_is_the_result_of_the_function() -> None:
    for function in (programs.main_process, programs.main_coroutine):
        report = weft.check(function, same=True, **QUICK)
        assert report.complete and not report.failed, report.text


# --- the properties -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "options", "kind"),
    [
        (programs.loses_a_value, {}, "lost values"),
        (programs.loses_by_poison, {}, ""),
        (programs.never_ends, {}, "no end"),
        (programs.exits, {}, "exception"),
        (programs.who_is_first, {}, ""),
        (programs.who_is_first, {"same": True}, "depends on the order"),
        (programs.merged, {}, ""),
        (programs.merged, {"same": True}, "depends on the order"),
        (programs.left_in_some_order, {}, ""),
        (programs.left_in_some_order, {"strict": True}, "left behind"),
        (programs.left_in_some_order, {"same": True}, "depends on the order"),
        (programs.quiet, {"strict": True}, ""),
        # If objects are shared, the search continues at random, up to the limit.
        (programs.shares_a_list, {"schedules": 100}, ""),
        (programs.shares_a_list, {"schedules": 100, "strict": True}, "told"),
        (programs.shares_a_list, {"schedules": 100, "all": True}, "cut"),
        (programs.early, {"time": "any"}, "exception"),
        (programs.early, {"search": "all", "seconds": 5}, ""),
        (programs.hidden_mended, {"search": "walk", "schedules": 10}, ""),
        (programs.hidden_mended, {"search": "walk", "schedules": 10, "all": True}, "cut"),
    ],
)
def test_what_each_property_finds(function: Any, options: dict[str, Any], kind: str) -> None:
    """Rules 17.3, 17.5, 17.6, 17.7: with these options each program has the expected kind of
    failure, or none."""
    assert weft.check(function, **{**QUICK, **options}).kind == kind


def test_no_end_shows_the_steps_that_come_again() -> None:
    """Rule 17.5: the error of a run without an end shows the steps that are repeated."""
    report = weft.check(programs.never_ends, **QUICK)
    assert "come again and again" in report.error and "main/forwards[1]  write c" in report.error


def test_a_shared_object_is_told_and_no_proof_is_claimed() -> None:
    """Rules 17.6, 17.7: if processes share an object that one of them changes, the report says
    so."""
    report = weft.check(programs.shares_a_list, schedules=100, **QUICK)
    assert report.schedules == 100  # so the search has continued at random
    assert not report.complete and any("share a list" in message for message in report.told)
    report = weft.check(programs.changes_what_it_has_sent, schedules=100, **QUICK)
    assert not report.complete and any(
        "after it has sent it on c" in message for message in report.told
    )
    report = weft.check(programs.shares_what_nobody_changes, **QUICK)
    assert report.complete and report.told == []


def test_a_failure_that_needs_a_stop_between_operations() -> None:
    """Rule 17.2: the report says that the failure needs a stop between operations."""
    report = weft.check(programs.fails_at_one_grain, **QUICK)
    assert report.kind == "deadlock" and "coroutines of one scheduler" in report.grain.replace(
        "\n", " "
    )
    assert weft.check(programs.fails_at_one_grain, grain="park", **QUICK).complete


def test_a_process_is_left_in_some_order() -> None:
    """Rule 17.6: with strict=True a process that a channel's end leaves early is a failure."""
    report = weft.check(programs.left_in_some_order, strict=True, **QUICK)
    assert "main/writes" in report.what and "Retired" in report.what


def test_the_channels_that_lost_values_are_named() -> None:
    """Rule 17.5: the report names each channel with the number of its lost values."""
    report = weft.check(programs.loses_a_value, **QUICK)
    assert report.what == "1 value that nobody took, in c"
    report = weft.check(programs.loses_in_two, keep_going=True, **QUICK)
    whats = [report.what, *(other.what for other in report.more)]
    assert "3 values that nobody took, in c: 2, d: 1" in whats, whats


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (programs.starves_a_guard, "guard 1 of a select of main/prefers (b) was ready"),
        (programs.starves_a_process, "main/quiet_writer could go on, and did not for 1300 steps"),
        (programs.polls_and_starves_nobody, ""),
        (programs.fair_enough, ""),
    ],
)
def test_a_process_that_starves_in_the_usual_order_is_told(function: Any, says: str) -> None:
    """Rule 17.6: starvation is reported even if only the usual order was run."""
    report = weft.check(function, schedules=1, **QUICK)
    message = [sentence for sentence in report.told if sentence.startswith("starvation: ")]
    assert bool(message) == bool(says) and says in "".join(message), report.text
    assert weft.check(function, schedules=1, strict=True, **QUICK).failed == bool(says)


def test_operations_of_ordinary_code_in_a_block_are_decided() -> None:
    """Rule 17.2: in a block ordinary code is the process main, whose operations the check
    decides."""
    for function in (programs.works_in_a_block, programs.only_starts_in_a_block):
        report = weft.check(function, **QUICK)
        assert report.complete and report.told == [], report.text
    report = weft.check(programs.dines_in_a_block, **QUICK)
    assert (report.kind, report.deviations) == ("deadlock", 1), report.text
    assert report.token == "w1:main@3=dines"
    assert "main        write left" in report.text
    assert weft.check(programs.dines_in_a_block, replay=report.token, **QUICK).kind == "deadlock"


def test_a_seat_is_sold_twice_in_one_order_alone() -> None:
    """Rules 17.5 and 17.7: the check finds the order that sells the seat twice, and proves the
    careful program."""
    report = weft.check(lambda: programs.sells_a_seat(False), **QUICK)
    assert (report.kind, report.deviations) == ("exception", 1), report.text
    assert "2 tickets for one seat" in report.text
    report = weft.check(lambda: programs.sells_a_seat(True), **QUICK)
    assert report.complete and not report.failed, report.text


def test_a_check_that_a_process_starts_is_bad_use() -> None:
    """Rule 17.9: the error names the process that calls weft.check."""

    @coroutines.process
    async def checks() -> None:
        weft.check(programs.good)

    @threads.process
    def blocks() -> None:
        weft.check(programs.good)

    with pytest.raises(weft.BadUse, match="is called by main/checks, which is a process"):
        coroutines.run(checks())
    with pytest.raises(weft.BadUse, match="is called by main/blocks, which is a process"):
        threads.run(blocks())


# --- programs that cannot be checked --------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (programs.no_network, "refused"),
        (programs.starts_a_thread, "refused"),
        (programs.forks, "refused"),
        (programs.runs_a_loop, "refused"),
        (programs.waits_for_a_lock, "refused"),
        (programs.uses_a_channel_of_its_module, "refused"),
        (programs.not_the_same_twice, "not the same"),
    ],
)
def test_what_cannot_be_checked(function: Any, kind: str) -> None:
    """Rule 17.9: the report gives the reason in one line."""
    report = weft.check(function, **QUICK)
    assert report.kind == kind and report.what and "\n" not in report.what, report.text


@needs_compiler
@pytest.mark.parametrize(
    ("component", "name", "given", "where"),
    [
        (basics, "scale", {"factor": 2.0}, "on a thread of its own"),
        (tasks, "ints", {"on": "thread"}, "on a thread of its own"),
        (tasks, "ints", {"on": "process"}, "in another OS process"),
    ],
    ids=["function", "coroutine", "far coroutine"],
)
def test_a_thread_of_a_native_component_is_refused_by_name(
    component: Any, name: str, given: dict[str, Any], where: str
) -> None:
    """Rule 17.9. The report names the component: a check cannot stop its thread."""
    made = getattr(component(), name)

    def network() -> None:
        a, b = threads.Channel("a"), threads.Channel("b")
        native = made(a.reader(), b.writer(), **given)
        threads.run(source(a.writer(), [1.0]), native, collect(b.reader()))

    report = weft.check(network, **QUICK)
    assert report.kind == "refused", report.text
    assert f"makes {name}, a process of a native component {where}" in report.what
    assert "write it as a coroutine" in report.what
    assert "test_checking.py:" in report.what


def test_a_clock_does_not_make_it_differ() -> None:
    """Rule 17.3: a program that uses clocks and random numbers can be checked completely."""
    assert weft.check(programs.uses_the_clock, **QUICK).complete


def test_a_check_within_a_check_is_bad_use() -> None:
    """Rule 17.9: the inner check is refused, and the report of the outer check says so."""

    def nested() -> None:
        weft.check(programs.good)

    report = weft.check(nested, **QUICK)
    assert report.failed and "one function at a time" in report.text


def test_what_is_no_function_is_bad_use() -> None:
    for given in (3, "shop"):
        with pytest.raises(weft.BadUse, match="must be callable"):
            weft.check(given)
    with pytest.raises(weft.BadUse, match="no option 'secnds'"):
        weft.check(programs.good, secnds=2)
    with pytest.raises(weft.BadUse, match="no option 'secnds'"):
        weft.check(secnds=2)
    with pytest.raises(weft.BadUse, match="is not a function"):
        weft.check()(3)
    with pytest.raises(weft.BadUse, match="is not a token"):
        weft.check(programs.good, replay="hello")


def test_after_a_check_nothing_is_left() -> None:
    """Rule 17.12: after a check, the replaced functions are restored, and programs run as
    before."""
    before = time.time, threading.Lock, sys.stdout
    weft.check(programs.hidden, **QUICK)
    weft.check(programs.forks, **QUICK)
    assert (time.time, threading.Lock, sys.stdout) == before
    assert programs.good() == [None, [1, 2, 3]][1]
    with pytest.raises(weft.Deadlock):
        programs.deadlock()


# --- the decorator --------------------------------------------------------------------------------


def test_a_checked_function_raises_with_the_text_of_the_report() -> None:
    checked = weft.check(**QUICK)(programs.who_is_first_asserted)
    with pytest.raises(CheckFailed, match="a comes first") as error:
        checked()
    assert error.value.report.kind == "exception" and isinstance(error.value, AssertionError)
    assert checked.__name__ == "who_is_first_asserted"
    assert weft.check(**QUICK)(programs.good)() is None


def test_arguments_go_to_the_function() -> None:
    @weft.check(**QUICK)
    def finds(mended: bool) -> None:
        programs.hidden(mended)

    finds(True)
    with pytest.raises(CheckFailed):
        finds(mended=False)


def test_a_method_is_checked_too() -> None:
    class Shop:
        @weft.check(**QUICK)
        def test(self) -> None:
            assert isinstance(self, Shop)
            programs.who_is_first_asserted()

    with pytest.raises(CheckFailed):
        Shop().test()


def test_tokens_are_run_first_and_kept() -> None:
    """Rule 17.8: the decorators may be in any order; the token may remain after the fault has been
    mended."""
    token = weft.check(programs.hidden, **QUICK).token
    for checked in (
        weft.check.replay(token)(programs.hidden),
        weft.check(**QUICK)(weft.check.replay(token)(programs.hidden)),
        weft.check.replay(token)(weft.check(**QUICK)(programs.hidden)),
    ):
        with pytest.raises(CheckFailed) as error:
            checked()
        assert error.value.report.token == token and error.value.report.schedules == 0
    weft.check.replay(token)(weft.check(**QUICK)(programs.hidden_mended))()


def test_a_token_that_does_not_fit_is_told_and_no_failure() -> None:
    """Rule 17.8: the report says that the token does not fit the program any more."""
    report = weft.check(programs.good, replay="w1:nobody@3=reads")
    assert not report.failed and "does not fit this program any more" in report.text
    weft.check.replay("w1:nobody@3=reads")(weft.check(**QUICK)(programs.good))()


@pytest.mark.parametrize("token", ["", "w1:", "w9:a@1=b", 3])
def test_a_token_that_is_none_is_refused_where_it_stands(token: Any) -> None:
    """Rule 17.8: replay() refuses the token when the decorator is applied."""
    with pytest.raises(weft.BadUse):
        weft.check.replay(token)
    with pytest.raises(weft.BadUse):
        weft.check.replay()


def test_a_token_by_numbers_is_accepted() -> None:
    """Rule 17.8: a token may name decisions and choices by numbers."""
    from weft._checking import engine as _engine

    found = next(o for o in _engine.Search(programs.hidden) if o.failed)
    numbers = "-".join(f"{decision}.{choice}" for decision, choice in found.numbers)
    assert weft.check(programs.hidden, replay=f"w1-{numbers}").kind == "deadlock"


# --- pytest ---------------------------------------------------------------------------------------

TESTS = """
    import pytest
    import weft
    import checked_programs as programs

    @pytest.fixture
    def expected():
        return ["a", "b"]

    @weft.check(seconds=5)
    def test_right(expected):
        assert sorted(programs.who_is_first()) == expected

    @weft.check(seconds=5)
    def test_wrong(expected):
        assert programs.who_is_first() == expected

    @pytest.mark.parametrize("mended", [True, False])
    @weft.check(seconds=5)
    def test_hidden(mended):
        programs.hidden(mended)

    @weft.check(seconds=5)
    async def test_coroutine():
        assert await programs.main_coroutine()

    def test_plain():
        pass
"""


@pytest.fixture
def tests(tmp_path: Path) -> Any:
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TESTS), encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs pytest without installed plugins of other packages, which take seconds to
        load.
        """
        plugin = () if "no:weft" in arguments else ("-p", "weft._checking.plugin")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *plugin,
            *arguments,
        ]
        path = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
        (tmp_path / "conftest.py").write_text(path)
        return subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            timeout=280,
        )

    return run


def test_pytest_finds_the_plugin() -> None:
    (found,) = (entry for entry in entry_points(group="pytest11") if entry.name == "weft")
    assert found.value == "weft._checking.plugin"


def test_pytest_runs_checked_tests_with_fixtures(tests: Any) -> None:
    done = tests()
    assert "2 failed, 4 passed" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_wrong" in done.stdout and "test_hidden[False]" in done.stdout
    assert "waits for ever" in done.stdout and "made short: 1 deviation" in done.stdout


def test_pytest_works_without_the_plugin(tests: Any) -> None:
    done = tests("-p", "no:weft")
    assert "2 failed, 4 passed" in done.stdout, done.stdout


def test_pytest_can_leave_the_checks_out(tests: Any) -> None:
    done = tests("--weft-check=off")
    assert "6 passed" in done.stdout, done.stdout


def test_pytest_can_ask_for_every_schedule(tests: Any) -> None:
    done = tests("--weft-check=all", "-k", "right or True")
    assert "2 passed" in done.stdout, done.stdout


def test_pytest_replays_one_test(tests: Any) -> None:
    token = weft.check(programs.hidden, **QUICK).token
    done = tests("--weft-replay", token, "test_it.py::test_hidden[False]")
    assert "1 failed" in done.stdout and "waits for ever" in done.stdout, done.stdout
    done = tests("--weft-replay", token)
    assert (
        done.returncode == 4
        and "is for one test under @weft.check, and 5 are selected" in done.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--weft-check=soon"], "write a number of seconds, all or off"),
        (["--weft-check=-1"], "write a number of seconds, all or off"),
        (["--weft-replay=w1:"], "not a whole token"),
        (["--weft-replay=w1", "--weft-check=off"], "only one of"),
    ],
)
def test_pytest_says_what_cannot_be(tests: Any, arguments: list[str], says: str) -> None:
    done = tests(*arguments)
    assert done.returncode == 4 and says in done.stderr, done.stdout + done.stderr


def test_the_plugin_imports_nothing_of_weft_where_nothing_is_checked() -> None:
    code = (
        "import sys, weft._checking.plugin; print([m for m in sys.modules if m.startswith('weft')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    names = "['weft._name_clash', 'weft', 'weft._checking', 'weft._checking.plugin']"
    assert done.stdout.strip() == names
