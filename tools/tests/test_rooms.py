"""Tests that every room listed is accounted for when the counts are added up, whatever the room
does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest
import tomllib
from conftest import ROOT, House, is_gone, plain_signals

# A room's child that never ends on its own. The test reads the child's pid from the file.
ENDLESS_CHILD = 'tail -f /dev/null >/dev/null 2>&1 & echo $! > "$PIDS"\n'


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def results(house: House, kind: str = "test") -> dict[str, dict[str, object]]:
    summary = json.loads((house.path / f"out/{kind}.json").read_text())
    return {room["room"]: room for room in summary["rooms"]}


def test_the_counts_of_all_rooms_are_added(house: House) -> None:
    house.rooms(a="budget = 20", b="budget = 20")
    house.room("a", "echo working; echo '3 passed, 0 failed'")
    house.room("b", "echo; printf '4 passed, 0 failed'")  # the output has no newline at its end
    result = house.run("test")
    assert result.returncode == 0
    assert last_line(result.stdout) == "7 passed, 0 failed"
    assert "=== a (1 of 2" in result.stdout
    assert "working" in result.stdout
    summary = json.loads((house.path / "out/test.json").read_text())
    assert (summary["passed"], summary["failed"]) == (7, 0)
    assert [room["room"] for room in summary["rooms"]] == ["a", "b"]
    assert (house.path / ".build/logs/test-a.log").read_text() == "working\n3 passed, 0 failed\n"


@pytest.mark.parametrize(
    ("text", "passed", "failed", "note"),
    [
        ("echo '3 passed, 2 failed'; exit 1", 3, 2, None),
        ("echo '3 passed, 2 failed'", 3, 2, None),  # the room's own count is enough
        ("echo '3 passed, 0 failed'; exit 1", 3, 1, "exit status is 1"),
        ("echo '3 passed, 0 failed'; kill -SEGV $$", 3, 1, "SIGSEGV"),
        ("echo hello", 0, 1, "last line"),
        ("true", 0, 1, "last line"),
        ("exit 3", 0, 1, "last line"),
        ("echo '3 passed, 0 failed'; echo bye", 0, 1, "last line"),
        ("echo 'all 3 passed, 0 failed'", 0, 1, "last line"),
        ("echo '0 passed, 0 failed'", 0, 1, "no tests"),
        ("printf '\\033[32m3 passed, 0 failed\\033[0m\\n\\n'", 3, 0, None),
        ("printf '\\xff\\xfe\\n3 passed, 0 failed\\n'", 3, 0, None),  # the output is not UTF-8
    ],
)
def test_a_room_counts_what_it_reports_and_what_goes_wrong(
    house: House, text: str, passed: int, failed: int, note: str | None
) -> None:
    house.rooms(good="budget = 20", odd="budget = 20")
    house.room("good", "echo '10 passed, 0 failed'")
    house.room("odd", text)
    result = house.run("test")
    assert last_line(result.stdout) == f"{10 + passed} passed, {failed} failed"
    assert result.returncode == (1 if failed else 0)
    notes = "; ".join(results(house)["odd"]["notes"])
    assert (note in notes) if note else notes == ""


def test_a_budget_is_reported_and_never_enforced(house: House) -> None:
    house.rooms(slow="budget = 0.001", good="budget = 20")
    text = (house.path / "tools/rooms.toml").read_text()
    (house.path / "tools/rooms.toml").write_text(text.replace("total = 100", "total = 0.001"))
    house.room("slow", "echo '9 passed, 0 failed'")
    house.room("good", "echo '1 passed, 0 failed'")
    result = house.run("test")
    assert (result.returncode, last_line(result.stdout)) == (0, "10 passed, 0 failed")
    assert results(house)["slow"]["notes"] == ["over its budget"]
    assert results(house)["good"]["notes"] == []
    assert re.search(r"^all .* over its budget$", result.stdout, re.MULTILINE)
    # The budget of the whole does not concern single rooms.
    assert not re.search(r"^all .* over", house.run("test", "good").stdout, re.MULTILINE)


@pytest.mark.soak
def test_a_room_that_gets_on_is_never_ended(house: House) -> None:
    # The room is over its budget, and runs far longer than the time after which silence is a hang,
    # but is never silent: it prints, and its tests report. By its own count, it ends when it has
    # run for more than twice that time.
    house.rooms(talks="budget = 0.001", tells="budget = 0.001")
    house.hangs_after(2)
    house.room(
        "talks",
        "for i in {1..50}; do echo $i; read -rt 0.1 <> <(:) || true; done; echo '1 passed, 0 failed'",
    )
    house.room(
        "tells",
        'for i in {1..50}; do echo "begin it" >> "$WEFT_PROGRESS"; read -rt 0.1 <> <(:) || true; done\n'
        'echo "end 1 0 it" >> "$WEFT_PROGRESS"; echo "1 passed, 0 failed"',
    )
    result = house.run("test")
    assert (result.returncode, last_line(result.stdout)) == (0, "2 passed, 0 failed")


HANGS = {
    "silent from its start": ("", 0, 1, "from its start"),
    "what it said last": ("echo building; echo linking it", 0, 1, 'after "linking it"'),
    "a closing line": ("echo '9 passed, 2 failed'", 9, 3, 'after "9 passed, 2 failed"'),
    "a test under way": (
        'printf "begin a\\nend 1 0 a\\nbegin b\\nend 0 1 b\\nbegin c d\\n" >> "$WEFT_PROGRESS"',
        1,
        2,
        "c d: no sign of life",
    ),
    "counts told and a closing line of a part": (
        'printf "begin a\\nend 5 0 a\\n" >> "$WEFT_PROGRESS"; echo "5 passed, 0 failed"',
        5,
        1,
        "5 passed",
    ),
    "half a line told": ('printf "begin a\\nend 1 0" >> "$WEFT_PROGRESS"', 0, 1, "a: no sign"),
}


@pytest.mark.parametrize("case", HANGS)
def test_a_hang_is_ended_named_and_what_had_passed_counts(house: House, case: str) -> None:
    text, passed, failed, named = HANGS[case]
    house.rooms(stuck="budget = 50", good="budget = 20")
    house.hangs_after(2)
    house.room("stuck", f"{text}\n{ENDLESS_CHILD}wait")
    house.room("good", "echo '1 passed, 0 failed'")
    pids = house.path / "pids"
    result = house.run("test", PIDS=str(pids))
    assert last_line(result.stdout) == f"{passed + 1} passed, {failed} failed"
    assert result.returncode == 1
    (note,) = results(house)["stuck"]["notes"]
    assert "it hung and was ended" in note
    assert named in note
    assert is_gone(int(pids.read_text()))


def test_a_test_hangs_though_others_get_on(house: House) -> None:
    house.rooms(stuck="budget = 50")
    house.hangs_after(2)
    house.room(
        "stuck",
        'echo "begin deaf" >> "$WEFT_PROGRESS"\n'
        'while true; do printf "begin x\\nend 1 0 x\\n" >> "$WEFT_PROGRESS"; echo x; read -rt 0.05 <> <(:) || true; done',
    )
    result = house.run("test")
    passed, failed = re.findall(r"\d+", last_line(result.stdout))
    assert int(passed) > 0
    assert failed == "1"
    assert "deaf: no sign of life" in results(house)["stuck"]["notes"][0]


def test_a_room_that_will_not_go_is_killed_by_force(house: House) -> None:
    house.rooms(deaf="budget = 50")
    house.hangs_after(2)
    house.room("deaf", "trap '' TERM\n" + ENDLESS_CHILD + "wait")
    pids = house.path / "pids"
    result = house.run("test", PIDS=str(pids))
    assert last_line(result.stdout) == "0 passed, 1 failed"
    assert is_gone(int(pids.read_text()))


def test_a_room_that_leaves_processes_behind_fails(house: House) -> None:
    house.rooms(leaky="budget = 20")
    house.room("leaky", ENDLESS_CHILD + "echo '3 passed, 0 failed'")
    pids = house.path / "pids"
    result = house.run("test", PIDS=str(pids))
    assert last_line(result.stdout) == "3 passed, 1 failed"
    assert "left processes behind" in results(house)["leaky"]["notes"][0]
    assert is_gone(int(pids.read_text()))


def test_what_failed_is_told_again_at_the_end(house: House) -> None:
    """The name of a failed test is shown again, with the lines above the first `FAIL …`, and no
    output of a room that passed.
    """
    house.rooms(good="budget = 20", bad="budget = 20")
    house.room("good", "echo 'FAIL no'; echo '1 passed, 0 failed'")
    house.room(
        "bad",
        'printf "begin x\\nend 1 0 x\\nbegin y z\\nend 0 1 y z\\n" >> "$WEFT_PROGRESS"\n'
        "seq 100; echo 'FAIL y z'; echo after; echo '1 passed, 1 failed'",
    )
    result = house.run("test")
    output = result.stdout.partition("bad, what failed")[2]
    assert output.splitlines()[1:] == [
        "  y z",
        *(f"  {n}" for n in range(81, 101)),
        "  FAIL y z",
        "",
        "More seeds, builds, compilers and mutants: ./run soak, ./run portability",
        "",
        "2 passed, 1 failed",
    ]
    assert "good, what failed" not in result.stdout
    assert results(house)["bad"]["failures"] == ["y z"]


def test_what_passed_only_when_it_was_run_once_more_is_told(house: House) -> None:
    house.rooms(odd="budget = 20")
    house.room(
        "odd",
        'printf "end 0 1 x\\nend 0 1 y\\nbegin x\\nend 1 0 x\\nend 0 1 y\\n" >> "$WEFT_PROGRESS"\n'
        "echo '1 passed, 1 failed'",
    )
    result = house.run("test")
    assert "odd, passed only when it was run once more: x\n" in result.stdout
    assert "once more: y" not in result.stdout
    odd = results(house)["odd"]
    assert (odd["second"], odd["failures"], odd["failed"]) == (["x"], ["y"], 1)


def test_how_long_each_part_took_is_written_down_slowest_first(house: House) -> None:
    """The list contains test files by the sum of their tests, and then every part. Each part is
    listed once, however often it reports progress.
    """
    house.rooms(room="budget = 20")
    house.room(
        "room",
        'for line in "begin a.py::x" "begin b" "begin a.py::x"; do echo "$line" >> "$WEFT_PROGRESS"; done\n'
        "read -rt 0.5 <> <(:) || true\n"
        'for line in "end 1 0 a.py::x" "begin a.py::y" "end 1 0 a.py::y"; do echo "$line" >> "$WEFT_PROGRESS"; done\n'
        "read -rt 0.5 <> <(:) || true\n"
        'echo "end 1 0 b" >> "$WEFT_PROGRESS"; echo "3 passed, 0 failed"',
    )
    house.run("test")
    message = (house.path / ".build/logs/test-room.slowest").read_text().splitlines()
    assert [line.split()[1] for line in message] == ["a.py", "b", "a.py::x", "a.py::y"]


def test_only_the_rooms_named_run_in_the_order_of_the_file(house: House) -> None:
    house.rooms(a="budget = 20", b="budget = 20", c="budget = 20")
    for name in "abc":
        house.room(name, f"echo room {name}; echo '1 passed, 0 failed'")
    result = house.run("test", "c", "a/", "c")
    assert last_line(result.stdout) == "2 passed, 0 failed"
    assert re.findall(r"^room (.)$", result.stdout, re.MULTILINE) == ["a", "c"]


def test_a_room_without_tests_is_a_failure(house: House) -> None:
    house.rooms(empty="budget = 20")
    result = house.run("test")
    assert result.returncode == 1
    assert "empty/tests/run is missing or not executable" in result.stdout
    assert last_line(result.stdout) == "0 passed, 1 failed"


def test_set_up_runs_once_per_part_and_its_failure_is_the_rooms(house: House) -> None:
    house.rooms(
        a='budget = 20, setup = ["good", "bad"]',
        b='budget = 20, setup = ["good"]',
        c="budget = 20",
    )
    house.script("tools/setup", 'echo "$@" >> asked; [[ $1 != bad ]]')
    for name in "abc":
        house.room(name, "echo '1 passed, 0 failed'")
    result = house.run("test")
    assert (house.path / "asked").read_text().split() == ["good", "bad"]
    assert last_line(result.stdout) == "2 passed, 1 failed"
    assert results(house)["a"]["notes"] == ["its set-up failed: bad"]


def test_an_early_room_runs_beside_the_set_up_of_others_parts(house: House) -> None:
    """The part `late` ends only once the early room has run, so `b` must have waited for that
    part."""
    house.rooms(
        a='budget = 20, early = true, setup = ["soon"]',
        b='budget = 20, setup = ["late"]',
        c="budget = 20",
    )
    house.script("tools/setup", 'echo "$1" >> asked; [[ $1 != late ]] || read -r <fifo')
    os.mkfifo(house.path / "fifo")
    house.room("a", "echo a >> asked; echo >fifo; echo '1 passed, 0 failed'")
    for name in "bc":
        house.room(
            name, f"[[ $(wc -l <asked) == 3 ]]; echo {name} >> ran; echo '1 passed, 0 failed'"
        )
    result = house.run("test")
    assert last_line(result.stdout) == "3 passed, 0 failed"
    asked = (house.path / "asked").read_text().split()
    assert asked[0] == "soon" and sorted(asked) == ["a", "late", "soon"]
    assert (house.path / "ran").read_text().split() == ["b", "c"]
    summary = json.loads((house.path / "out/test.json").read_text())
    assert summary["setup_waited"] >= 0


def test_a_stop_ends_the_set_up_beside_an_early_room(house: House) -> None:
    house.rooms(
        a='budget = 20, early = true, setup = ["soon"]',
        b='budget = 20, setup = ["late", "later"]',
    )
    house.script(
        "tools/setup",
        '[[ $1 == soon ]] || { echo "$1" >> asked; tail -f /dev/null & echo $! > pid; wait; }',
    )
    house.room("a", "echo '1 passed, 0 failed'; echo over >fifo")
    fifo = house.path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        ["./run", "test"],
        cwd=house.path,
        env=house.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=plain_signals,
    )
    assert fifo.read_text() == "over\n"
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert (process.returncode, last_line(output).endswith(" failed")) == (143, True)
    asked = house.path / "asked"
    assert not asked.exists() or asked.read_text().split() == ["late"]
    pid = house.path / "pid"  # the process that the part has started must have ended too
    assert not pid.exists() or not (text := pid.read_text()) or is_gone(int(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("total = 1\nsetup = 1\n", "`spare`"),
        ("total = 1\nsetup = 1\nspare = 1\nextra = 1\n", "unknown extra"),
        ("total = 1\nsetup = 1\nspare = 1\n[rooms]\na = {}\n", "room a needs `budget`"),
        ("total = 1\nsetup = 1\nspare = 1\n[rooms]\na = { budget = -1 }\n", "positive"),
        ("total = 1\nsetup = 1\nspare = 1\n[rooms]\na = { budget = true }\n", "positive"),
        ("total = 1\nsetup = 1\nspare = 1\n[rooms]\na = { budget = 1, x = 1 }\n", "unknown x"),
        ("total = 1\nsetup = 1\nspare = 1\n[rooms]\na = { budget = 1, early = 1 }\n", "`early`"),
        ("total = 1\nsetup = 1\nspare = 1\n[rooms]\na = { budget = 1, beside = 1 }\n", "`beside`"),
        ("total = ", "cannot read rooms.toml"),
    ],
)
def test_a_bad_rooms_file_is_one_clear_line(house: House, text: str, message: str) -> None:
    (house.path / "tools/rooms.toml").write_text(text)
    result = house.run("test")
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_unknown_room_is_one_clear_line(house: House) -> None:
    house.rooms(a="budget = 20", b="budget = 20")
    result = house.run("test", "c")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "rooms: there is no room 'c'; rooms: a, b\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_ends_the_room_and_accounts_for_the_rest(
    house: House, number: signal.Signals, status: int
) -> None:
    house.rooms(a="budget = 50", b="budget = 50", c="budget = 50")
    house.room("a", "echo '5 passed, 0 failed'")
    house.room("b", 'tail -f /dev/null & echo $! > "$FIFO"; wait')
    house.room("c", "echo '1 passed, 0 failed'")
    fifo = house.path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        ["./run", "test"],
        cwd=house.path,
        env=house.env(FIFO=str(fifo)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=plain_signals,
    )
    pid = int(fifo.read_text())
    process.send_signal(number)
    output, _ = process.communicate()
    assert process.returncode == status
    assert last_line(output) == "5 passed, 2 failed"
    assert is_gone(pid)


def test_rooms_marked_beside_run_beside_the_others_at_a_lower_priority(house: House) -> None:
    house.rooms(
        a="budget = 20",
        b="budget = 20, beside = true",
        c="budget = 20, beside = true",
        d="budget = 20",
    )
    # Room a ends only once c has begun; c, which follows b, ends only once d has begun.
    house.room("a", 'cat "$ONE"; echo "the nice value is $(nice)"; echo "1 passed, 0 failed"')
    house.room("b", 'echo "the nice value is $(nice)"; echo "2 passed, 0 failed"')
    house.room(
        "c", 'echo > "$ONE"; read -r _ < "$TWO"; printf "begins\n4 passed, 1 failed"; exit 1'
    )
    house.room("d", 'echo > "$TWO"; echo "8 passed, 0 failed"')
    pipes = {name: str(house.path / name) for name in ("ONE", "TWO")}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    result = house.run("test", **pipes)
    assert (result.returncode, last_line(result.stdout)) == (1, "15 passed, 1 failed")
    assert list(results(house)) == ["a", "b", "c", "d"]
    nice = os.nice(0)
    niced = [min(nice + by, 19) for by in (0, 5)]
    assert f"\nthe nice value is {niced[0]}\n1 passed" in result.stdout
    assert (
        f"=== b, which ran beside other rooms\nthe nice value is {niced[1]}\n2 passed"
        in result.stdout
    )
    assert "=== c, which ran beside other rooms\nbegins\n4 passed, 1 failed\n" in result.stdout
    # If only rooms marked `beside` are named, they run like other rooms.
    assert f"\nthe nice value is {niced[0]}\n2 passed" in house.run("test", "b").stdout


def test_the_cpu_seconds_of_a_room_are_those_of_its_programs_too(house: House) -> None:
    house.rooms(works="budget = 20", waits="budget = 20")
    house.room(
        "works", "bash -c 'for ((i = 0; i < 200000; ++i)); do :; done'; echo '1 passed, 0 failed'"
    )
    house.room("waits", "echo '1 passed, 0 failed'")
    table = house.run("test").stdout
    assert re.search(r"^room .* seconds  CPU secs  budget$", table, re.MULTILINE)
    works, waits = (results(house)[name]["cpu"] for name in ("works", "waits"))
    assert works > waits
    assert re.search(rf"^works .* {works:.1f} ", table, re.MULTILINE)


def test_stopping_ends_the_room_beside_too(house: House) -> None:
    house.rooms(a="budget = 50", b="budget = 50, beside = true", c="budget = 50, beside = true")
    house.room("a", 'cat "$TWO"; echo "$BASHPID" > "$ONE"; exec tail -f /dev/null')
    house.room("b", 'echo "$BASHPID" > "$TWO"; exec tail -f /dev/null')
    house.room("c", "echo '1 passed, 0 failed'")
    pipes = {name: str(house.path / name) for name in ("ONE", "TWO")}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    process = subprocess.Popen(
        ["./run", "test"],
        cwd=house.path,
        env=house.env(**pipes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=plain_signals,
    )
    pid = int((house.path / "ONE").read_text())
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    assert process.returncode == 143
    assert last_line(output) == "0 passed, 3 failed"
    assert [room["notes"] for room in results(house).values()] == [["stopped"]] * 3
    assert is_gone(pid)


def test_a_stop_that_comes_while_a_room_is_made_is_heeded_once_the_room_can_be_ended() -> None:
    program = (
        "import os, signal, rooms\n"
        "rooms.stops.take_over()\n"
        "rooms.stops.hold()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "print('held', flush=True)\n"
        "try: rooms.stops.heed()\n"
        "except rooms.Stopped as stop: print(stop)\n"
        "try: os.kill(os.getpid(), signal.SIGTERM)\n"
        "except rooms.Stopped as stop: print(stop)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
    )
    assert (result.stdout, result.stderr) == ("held\n143\n143\n", "")


def test_soak_runs_the_rooms_that_have_one(house: House) -> None:
    house.rooms(a="budget = 20", b="budget = 20, soak = 40")
    house.room("a", "echo '1 passed, 0 failed'")
    house.room("b", "echo '100 passed, 0 failed'", kind="soak")
    result = house.run("soak")
    assert (result.returncode, last_line(result.stdout)) == (0, "100 passed, 0 failed")
    assert results(house, "soak")["b"]["budget"] == 40
    result = house.run("soak", "a")  # a soak that is requested by name must exist
    assert "a/tests/soak is missing" in result.stdout
    assert last_line(result.stdout) == "0 passed, 1 failed"


def test_a_soak_over_its_budget_says_so_and_a_hang_ends_it(house: House) -> None:
    house.rooms(a="budget = 20, soak = 0.001")
    house.hangs_after(0.5)
    house.room("a", "echo '1 passed, 0 failed'", kind="soak")
    assert last_line(house.run("soak").stdout) == "1 passed, 0 failed"
    assert results(house, "soak")["a"]["notes"] == ["over its budget"]
    house.room("a", "exec tail -f /dev/null", kind="soak")
    assert last_line(house.run("soak").stdout) == "0 passed, 1 failed"


def test_a_soak_without_rooms_says_so(house: House) -> None:
    house.rooms(a="budget = 20")
    result = house.run("soak")
    assert (result.returncode, result.stderr) == (2, "rooms: no room has a tests/soak\n")


# --- the rooms of this checkout -----------------------------------------------------------------


def real_house() -> dict[str, object]:
    return tomllib.loads((ROOT / "tools/rooms.toml").read_text())


def test_the_budgets_leave_what_they_must() -> None:
    house = real_house()
    assert house["total"] == 22 * 60
    assert "still" not in house  # the default, five minutes, applies
    for beside in (False, True):  # the two sequences of rooms
        rooms = house["rooms"].values()
        budgets = sum(room["budget"] for room in rooms if room.get("beside", False) == beside)
        assert house["setup"] + budgets + house["spare"] <= house["total"]


def test_so_do_they_with_the_rooms_that_are_prepared() -> None:
    house = real_house()
    text = (ROOT / "tools/rooms.toml").read_text()
    prepared = [
        tomllib.loads(line) for line in re.findall(r"^# (\w+ = \{ budget.*)$", text, re.MULTILINE)
    ]
    budgets = sum(room["budget"] for line in prepared for room in line.values())
    budgets += sum(r["budget"] for r in house["rooms"].values() if not r.get("beside", False))
    assert house["setup"] + budgets + house["spare"] <= house["total"]


def test_every_room_is_there_and_asks_for_parts_that_exist() -> None:
    setup = (ROOT / "tools/setup").read_text()
    parts = re.findall(r"^part_(\w+)\(\)", setup, re.MULTILINE)
    for name, room in real_house()["rooms"].items():
        assert os.access(ROOT / name / "tests/run", os.X_OK), name
        assert set(room.get("setup", [])) <= set(parts), name


def test_every_folder_with_tests_is_a_room() -> None:
    rooms = set(real_house()["rooms"])
    existing = {path.parent.parent.name for path in ROOT.glob("*/tests/run")}
    assert existing == {room for room in rooms if "/" not in room}, (
        "add the room to tools/rooms.toml"
    )
    # A room inside another room is listed, or its parent's tests run it.
    for inner in rooms - existing:
        assert (ROOT / inner / "tests/run").exists(), inner
