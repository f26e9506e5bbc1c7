"""Runs every scenario on every backend, and checks that every rule has a scenario."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.scenarios import BACKENDS, LACKS, collect

ROOT = Path(__file__).parents[2]
SCENARIOS = {backend: collect(backend) for backend in BACKENDS}
BLOCKS = {f"a block of {b}": collect(b, block=True) for b in ("greenlets", "threads")}
LACKED = {name: LACKS.get("a block" if name in BLOCKS else name, {}) for name in SCENARIOS | BLOCKS}
CASES = [
    (backend, name)
    for backend, all_of_it in (SCENARIOS | BLOCKS).items()
    for name, run in all_of_it.items()
    if not set(run.needs) & set(LACKED[backend])  # type: ignore[attr-defined]
]
# scenarios that are not run, because of LACKS
LACKING = {"tasks": 26, "a block of greenlets": 3, "a block of threads": 3}

# Files of scenarios that exist in C++ too, by their names, in cpp/tests/hosted_scenarios.cpp; and
# the scenarios that C++ lacks, with the reasons.
IN_CPP = ("rules_07_11_the_end_of_a_process", "rules_07_12_limits")
NOT_IN_CPP = {
    "rules_07_12_limits.it_is_entered_once": "a weft::Timeout is entered where it is made, and can be neither copied nor moved",
}

# The rules of Part I without a scenario here, and the reasons.
NO_SCENARIO = {
    "1.8": "restricted channels are C++; cpp/tests/hosted_one2one.cpp and library_blocks.cpp have them",
    "1.9": "conversions to a type are C++; cpp/tests/does_not_compile.py has them",
    "6.6": "foreign waiters; the scenarios run on them (tasks), test_networks.py and python/tests/test_asyncio_tasks.py have the rest",
    "7.13": "supervision is of OS processes; python/tests/test_supervisor.py has it",
    "7.14": "a thread that is ended from outside; cpp/tests/hosted_ended_threads.cpp has it",
    "7.15": "async generators are Python's; python/tests/test_async_generators.py has it",
    "7.16": "supervisors are Python's; python/tests/test_supervised_lives.py has it",
    "7.17": "supervisors are Python's; python/tests/test_supervised_lives.py has it",
    "13.8": "tasks of asyncio; python/tests/test_unawaited.py has it",
    "6.7": "signals come from outside; python/tests/test_signals.py and cpp/tests/hosted_parking.cpp have them",
    "7.10": "par_read and par_write are C++; cpp/tests/library_blocks.cpp and explore_together.hpp have them",
    "8.7": "of several OS processes; python/tests/test_processes_barriers.py and cpp/tests/wire_barrier.cpp have it",
    "9.2": "what a debug mode detects is its runtime's; python/tests/test_debug.py has it",
    "9.3": "a lack of memory; python/tests/test_processes_memory.py has it",
    "9.4": "arguments of an Executor; python/tests/test_processes_executor_large.py has it",
    "9.5": "calls of an Executor; python/tests/test_processes_executor_map.py has it",
    "9.7": "arrays in shared memory; python/tests/test_processes_given_away.py has it",
    "9.6": "files that are edited; python/tests/test_processes_edits.py has it",
    "10.4": "of guests; python/tests/test_asyncio_loop.py has it",
    "10.5": "a report on demand; python/tests/test_observe.py and cpp/tests/hosted_observing.cpp have it",
    "3.6": "a message, not an outcome; python/tests/test_stopped_early.py has it",
    "10.6": "a message, not an outcome; python/tests/test_standstill.py and cpp/tests/hosted_standstill.cpp have it",
    "11.3": "of the freestanding layer only; cpp/tests has it",
    "11.4": "forks: python/tests/test_forks.py has it",
    **{
        f"13.{n}": "guests of a loop; python/tests/test_asyncio_*.py have them" for n in range(1, 8)
    },
    **{f"14.{n}": "observation; python/tests/test_observe.py has it" for n in range(1, 9)},
    **{
        f"14.{n}": "a look from outside; python/tests/test_look*.py, test_on_signal.py, test_verdict.py have it"
        for n in range(9, 14)
    },
    "14.14": "observation; python/tests/test_flight.py and cpp/tests/hosted_flight.cpp have it",
    "14.15": "observation; python/tests/test_flight.py has it",
    "14.16": "a page in the browser; python/tests/test_view.py has it",
    "14.17": "traces; python/tests/test_flight_boards.py has it",
    "14.18": "hosts of a network; net/tests/test_observed.py has it",
    "14.19": "the recorder of MicroPython; micropython/tests/test_flight.py has it",
    "14.20": "boards in looks; python/tests/test_look_boards.py has it",
    **{f"15.{n}": "executors of C++; cpp/tests/hosted_cores.cpp has them" for n in range(5, 10)},
    "15.10": "main modules without a guard; python/tests/test_processes_unguarded.py has it",
    "15.12": "main modules; python/tests/test_processes_main_globals.py has it",
    "15.11": "of the system; python/tests/test_refused_calls.py has it",
    **{
        f"16.{n}": "components are compiled libraries; python/tests/test_native_*.py have them, in random networks too"
        for n in range(1, 12)
    },
    **{
        f"18.{n}": "descriptors: cpp/tests/hosted_io.cpp, python/tests/test_io_guards.py"
        for n in range(1, 9)
    },
    "18.9": "a bridge to another library; cpp/tests/asio_bridge.cpp has it",
    "18.11": "streams are Python's; python/tests/test_streams.py has it",
    "18.10": "a bridge to another library; cpp/tests/tls.cpp has it",
    **{
        f"19.{n}": "of C++; cpp/tests/hosted_anywhere*.cpp, python/tests/test_native_anywhere*.py"
        for n in range(1, 6)
    },
    "19.6": "of boards; mcu/csp/tests/run.mjs has it",
    "19.7": "a command; python/tests/test_portable.py and micropython/tests/test_portable.py have it",
    **{
        f"20.{n}": "processes over the rules; python/tests/test_plugnplay_services.py has them"
        for n in range(1, 5)
    },
    **{f"21.{n}": "of boards; micropython/tests/test_boards.py has it" for n in range(1, 10)},
    **{f"21.{n}": "of boards; micropython/tests/test_boards_bare.py has it" for n in range(10, 14)},
    **{f"17.{n}": "checking; python/tests/test_checking*.py have it" for n in range(1, 14)},
}


@pytest.mark.parametrize(
    ("backend", "name"), CASES, ids=[f"{backend}-{name}" for backend, name in CASES]
)
def test_scenario(backend: str, name: str) -> None:
    (SCENARIOS | BLOCKS)[backend][name]()


def test_a_limit_may_be_the_first_that_a_loop_hears_of_weft() -> None:
    """Rules 7.12, 8.6: a limit can be the first part of Weft that a loop uses. The test runs in a
    new OS process, in which Weft does not yet know that the loop's time is virtual.
    """
    name = "rules_07_12_limits.to_move_on_raises_nothing"
    code = f"from conformance.scenarios import collect; collect('tasks')[{name!r}]()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def rules_of_part_one() -> list[str]:
    text = (ROOT / "SEMANTICS.md").read_text(encoding="utf-8")
    part = re.split(r"(?m)^# Part ", text)[1]
    return re.findall(r"(?m)^(\d+\.\d+) ", part)


def test_every_rule_has_a_scenario_or_a_reason() -> None:
    rules = rules_of_part_one()
    assert len(rules) == len(set(rules)) >= 66
    covered = {rule for run in SCENARIOS["coroutines"].values() for rule in run.rules}  # type: ignore[attr-defined]
    assert [rule for rule in rules if rule not in covered | set(NO_SCENARIO)] == []
    assert covered <= set(rules), "a scenario cites a rule that does not exist"
    assert covered.isdisjoint(NO_SCENARIO), "a rule has both a scenario and a reason to have none"


def test_what_a_backend_lacks_is_named_and_counted() -> None:
    for backend, all_of_it in (SCENARIOS | BLOCKS).items():
        left_out = len(all_of_it) - sum(b == backend for b, _ in CASES)
        assert left_out == LACKING.get(backend, 0), f"{left_out} scenarios not on {backend}"
    needed = {need for run in SCENARIOS["tasks"].values() for need in run.needs}  # type: ignore[attr-defined]
    assert needed == {need for lacks in LACKS.values() for need in lacks}


def test_the_cpp_twin_has_each_of_them_or_a_reason() -> None:
    source = (ROOT / "cpp/tests/hosted_scenarios.cpp").read_text(encoding="utf-8")
    there = re.findall(r'(?m)^TEST_CASE(?:_TEMPLATE)?\("scenario (\w+)"', source)
    names = [n for n in SCENARIOS["coroutines"] if n.split(".")[0] in IN_CPP]
    assert len(there) == len(set(there))
    assert [n for n in names if (n.split(".")[1] in there) == (n in NOT_IN_CPP)] == []
    assert set(there) <= {n.split(".")[1] for n in names}, "a twin of no scenario"
    assert set(NOT_IN_CPP) <= set(names)
    assert (len(names), len(there)) == (26, 25)


def test_a_scenario_that_an_end_leaves_has_not_passed() -> None:
    from conformance.scenarios import _runner, scenario
    from weft import coroutines as co

    @scenario("3.5")
    async def stops_early() -> None:
        c = co.Channel("c")
        reader = c.reader()
        c.writer().retire()
        await reader.read()

    for backend in ("coroutines", "tasks"):
        with pytest.raises(co.Retired):
            _runner(stops_early, backend)()


def test_every_backend_has_the_same_scenarios() -> None:
    assert all(list(SCENARIOS[b]) == list(SCENARIOS["coroutines"]) for b in BACKENDS)
