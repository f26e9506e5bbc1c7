"""A look from outside at C++ programs, which have the same door as Python programs (rules 14.9 to
14.12).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import library_object
import pytest
from children import until_asleep, weft
from components import needs_compiler
from looked_at import looks_until, refused, shares, weft_until
from pages import Events, get, serving
from refusals import (
    OPENS,
    all_say,
    many_who_look,
    one_that_dies,
    one_that_stops,
    weft_here,
    without_a_file,
)

from weft._commands import view_server as _server
from weft._watching import visit as _visit
from weft._watching.look_frames import ANSWER, Reader, message

pytestmark = [
    needs_compiler,
    pytest.mark.together,  # the tests use one program
    pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc"),
]

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("looked_at") / "looked_at"
    return library_object.program(made, HERE / "looked_at.cpp")


@contextlib.contextmanager
def running(program: Path, *how: str) -> Iterator[subprocess.Popen[str]]:
    """Starts the program, waits until it reports that it is ready, and kills it at the end."""
    with subprocess.Popen([program, *how], stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout is not None
            assert p.stdout.readline() == "ready\n"
            yield p
        finally:
            p.kill()


# --- the report -----------------------------------------------------------------------------------


SHARES = (
    ("main/enrich", 0.5, ("runs",)),
    ("main/source", 0.2, ("writes", "due")),
    ("main/store", 0.2, ("reads", "due")),
)


def as_written(network: Any) -> bool:
    """Returns whether the look shows what the processes of looked_at.cpp's pipe do except for short
    moments."""
    writing = {pipe.name: pipe.writing for pipe in network.pipes}
    return (
        shares(network, *SHARES)
        and "main/enrich" in network.verdict.names
        and writing.get("orders", 0) > 0.2
    )


@pytest.mark.parametrize("on", ["one", "cores", "threads"])
def test_a_program_that_was_not_prepared(home: Path, program: Path, on: str) -> None:
    """Rules 14.9 to 14.12: a look finds the processes, channels, shares and bottleneck of a plain
    program."""
    with running(program, on) as p:
        assert _visit.doors() == [p.pid]
        network = looks_until(as_written, p.pid)
    rows = {row.path: row for row in network.rows}
    assert rows.keys() == {"main/source", "main/enrich", "main/store"}
    enrich, source, store = rows["main/enrich"], rows["main/source"], rows["main/store"]
    assert shares(network, *SHARES), rows
    assert "main/enrich" in network.verdict.names, network.verdict
    assert (enrich.cpu is None) == (on != "threads")
    assert enrich.rate is not None and enrich.rate > 0
    # The look may be taken at the moment when `enrich` reads or writes.
    assert "looked_at.cpp:" in enrich.where, enrich
    assert enrich.where.startswith("running after ") == (enrich.now == "runs"), enrich
    assert source.writes_to == ["orders"] and store.reads_from == ["priced"]
    assert sorted([*enrich.reads_from, *enrich.writes_to]) == ["orders", "priced"]
    pipes = {pipe.name: pipe for pipe in network.pipes}
    assert pipes["priced"].capacity == 4 and pipes["orders"].readers == ["main/enrich"]
    assert pipes["orders"].writing > 0.2, pipes
    assert pipes["orders"].rate > 0


def test_the_commands(home: Path, program: Path) -> None:
    with running(program, "cores") as p:
        listed = json.loads(weft("ps", "--json").stdout)
        assert [row["pid"] for row in listed] == [p.pid]
        assert listed[0]["processes"] == 3 and listed[0]["program"].endswith("looked_at cores")
        verdict = "`main/enrich` is the bottleneck: busy "
        shown = weft_until(lambda text: text.startswith(verdict), "top", "looked_at", "--once")
        assert shown.startswith(verdict), shown
        told = json.loads(
            weft_until(
                lambda text: json.loads(text)["verdict"]["names"] == ["main/enrich"],
                *("top", str(p.pid), "--json", "--interval", "0.2"),
            )
        )
        assert told["verdict"]["names"] == ["main/enrich"] and told["os_processes"][0]["memory"] > 0
        assert {row["path"] for row in told["processes"]} >= {"main/enrich", "main/store"}
    assert weft("ps").stdout.startswith("no Weft program of this user runs")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("threads", {"main/source", "main/enrich", "main/store"}),
        ("cores", {"main/cores[1]"}),
        ("core", {"main/core"}),
        ("names", {"main/has cores", "fourteen bytes", " cores/cores[1]", "weft helper"}),
    ],
)
def test_threads_have_the_names_of_their_processes(
    home: Path, program: Path, how: str, expected: set[str]
) -> None:
    """Rule 14.13. A worker may start to run after the program has reported that it is ready."""
    with running(program, how) as p:
        while not expected <= (names := {name for name, _, _ in _visit.threads(p.pid)}):
            os.sched_yield()
        assert Path(f"/proc/{p.pid}/comm").read_text() == "looked_at\n"
    assert names - expected <= {"looked_at", "weft door"}


def test_every_way_of_waiting(home: Path, program: Path) -> None:
    """Rules 14.10, 18.2. From the second look on, the report contains how long each process has
    waited at its place."""
    with running(program, "waiting") as p, _visit.Looking(p.pid) as looking:
        until_asleep(p.pid)
        first = {row.path: row for row in looking.look(0.05).rows}
        again = {row.path: row for row in looking.look(0.05).rows}
    now = {path.removeprefix("main/"): row.now for path, row in again.items()}
    assert now == {
        "says": "writes",
        "waits": "reads",
        "chooses": "either",
        "sleeps": "time",
        "meets": "barrier",
        "listens": "io",
    }
    for path, row in again.items():
        assert first[path].before and row.before
        assert row.seconds > first[path].seconds + 0.04
        assert set(row.share) == {row.now}, row
    assert first["main/listens"].where.startswith("read from a descriptor at looked_at.cpp:")
    assert first["main/waits"].where.startswith("read 'silent' at looked_at.cpp:")
    assert first["main/chooses"].where.startswith("select 'silent', 'other' at looked_at.cpp:")
    assert sorted(first["main/chooses"].reads_from) == ["silent"]
    assert first["main/waits"].rate is None  # the process shares its end
    assert first["main/says"].rate == 0


def test_processes_that_can_never_go_on(home: Path, program: Path) -> None:
    """Rule 14.3: the question that `weft view` asks is answered with the processes of the knot."""
    with running(program, "knot") as p, _visit.Looking(p.pid) as looking:
        until_asleep(p.pid)
        stuck = {one.path: one.waits_for for one in looking.stuck()}
    assert stuck == {"main/left": ["main/right"], "main/right": ["main/left"]}


def test_the_drawing(home: Path, program: Path, tmp_path: Path) -> None:
    """`weft graph` draws a program that runs, and the file of a recorder."""
    edge = re.compile(r'"main/source" -> "main/enrich" \[label="orders \(\d+/s\)"\];')
    with running(program, "cores") as p:
        shown = weft_until(edge.search, "graph", str(p.pid))
        assert edge.search(shown), shown
        assert '"main/enrich" -> "main/store" [label="priced (' in shown
        mermaid = weft("graph", "--format", "mermaid", "looked_at")
        assert mermaid.returncode == 0 and "priced" in mermaid.stdout
        status, _, err = weft_here("graph", str(p.pid), "argument")
        assert status == 2 and "runs already" in err
    with running(program, "many") as p:
        until_asleep(p.pid)
        status, shown, _ = weft_here("graph", str(p.pid))
    assert status == 0 and '"main/par/worker[0..4999]"' in shown, shown
    status, _, err = weft_here("graph", str(program))
    assert status == 2 and "is a compiled program: start it" in err and err.count("\n") == 1
    recorded = tmp_path / "dumped.flight"
    with running(program, "flight", str(tmp_path / "own.flight")) as p:
        assert weft_here("dump", str(p.pid), "-o", str(recorded))[0] == 0
    status, shown, _ = weft_here("graph", str(recorded))
    # An operation that did not wait is not in the file, so the readers are missing.
    assert status == 0 and '"main/relays" -> "channel a" [label="(' in shown, shown


def test_the_page(home: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`weft view` shows a C++ program as it shows a Python program. One browser leaves, another
    connects, and the program ends.
    """
    monkeypatch.setattr(_server, "STANDS", 0.05)
    with running(program, "knot") as p, serving(p.pid) as server:
        assert get(server, "/looks")[0] == 403
        events = Events(server)
        while not (stuck := (look := events.until("look"))["stuck"]):
            pass
        events.close()
        assert {one["path"]: one["waits_for"] for one in stuck} == {
            "main/left": ["main/right"],
            "main/right": ["main/left"],
        }
        rows = {row["path"]: row for row in look["processes"]}
        names = {one["id"]: one["name"] for one in look["channels"]}
        assert rows["main/left"]["where"].startswith("read 'c' at looked_at.cpp:")
        assert [names[id] for id, _ in rows["main/left"]["waits"]] == ["c"]
        again = Events(server)
        assert again.until("look")["processes"]
        p.kill()
        assert again.until("ended")["text"] == f"OS process {p.pid} has ended"
        again.close()


def test_a_step_that_does_not_end(home: Path, program: Path) -> None:
    """Rule 14.11: the scheduler cannot serve the look, but the look is answered nevertheless."""
    with running(program, "computes") as p:
        (row,) = _visit.look(p.pid, 0.1).rows
    assert row.path == "main/computes" and row.now == "runs" and row.part("runs") == 1


def test_many_processes(home: Path, program: Path) -> None:
    with running(program, "many") as p:
        until_asleep(p.pid)
        network = _visit.look(p.pid, 0.05, most=4000)
        few = _visit.look(p.pid, 0.0, most=3)
    assert len(network.rows) == 4000 and network.left_out == 1002
    assert len({row.path for row in network.rows}) == 4000
    assert all(
        row.path.startswith("main/par/worker[")
        for row in network.rows
        if row.path not in ("main/par", "main/par/says")
    )
    assert len(few.rows) == 3 and few.left_out == 4999


def test_the_flight_recorder(home: Path, program: Path, tmp_path: Path) -> None:
    """Rule 14.14: `weft dump` writes the file while the program continues."""
    file = tmp_path / "dumped.flight"
    with running(program, "flight", str(tmp_path / "own.flight")) as p:
        done = weft("dump", str(p.pid), "-o", str(file))
        assert done.returncode == 0, done.stderr
        assert p.poll() is None
        refused_ = weft("dump", str(p.pid), "-o", "/nowhere/out.flight")
        assert "cannot write /nowhere/out.flight" in refused_.stderr
    assert "main/turns" in weft("trace", str(file)).stdout
    with running(program, "ring") as p:
        done = weft("dump", str(p.pid), "-o", str(file))
    assert done.returncode != 0 and "the program has no weft::flight" in done.stderr


# --- the door -------------------------------------------------------------------------------------


def test_which_users_may_look(home: Path, program: Path) -> None:
    with running(program, "ring") as p:
        at = home / "weft" / f"{p.pid}.sock"
        assert stat.S_IMODE(at.stat().st_mode) == 0o600
        assert stat.S_IMODE(at.parent.stat().st_mode) == 0o700
        if os.geteuid() == 0:
            at.chmod(0o777)  # the kernel reports whose program connects
            at.parent.chmod(0o711)
            if not (child := os.fork()):
                code = 1
                try:
                    os.chdir(at.parent)
                    os.setuid(65534)
                    with socket.socket(socket.AF_UNIX) as s:
                        s.connect(at.name)
                        s.sendall(message({"ask": "who"}))
                        code = 2 if s.recv(1) else 0
                except ConnectionError:  # the program has closed the connection immediately
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_it_can_be_turned_off(home: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_INSPECT", "0")
    with running(program, "ring") as p:
        assert "was started with WEFT_INSPECT=0" in refused(p.pid)
        assert len(list(Path(f"/proc/{p.pid}/task").iterdir())) == 1


def test_a_thread_that_sleeps_and_nothing_more(home: Path, program: Path) -> None:
    with running(program, "ring") as p:
        assert _visit.look(p.pid, 0).rows  # the door is open
        names = [name for name, _, _ in _visit.threads(p.pid)]
    assert sorted({*names} - {"weft look"}) == ["looked_at", "weft door"]


def test_one_that_is_stopped(home: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(program, "ring") as p:
        one_that_stops(p, monkeypatch)


def test_one_that_dies_while_it_is_looked_at(
    home: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(program, "ring") as p:
        one_that_dies(p, monkeypatch)
    assert not (home / "weft" / f"{p.pid}.sock").exists()


def test_many_who_look_at_once(home: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(program, "ring") as p:
        many_who_look(p, monkeypatch)
        without_a_file(p.pid, home)


def test_one_that_is_at_its_end(home: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look during the destructor of a static object, which does not return, receives a reason."""
    with subprocess.Popen(
        [program, "ends"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as p:
        try:
            assert p.stdin is not None and p.stdout is not None
            assert p.stdout.readline() == "ready\n"
            with _visit.Looking(p.pid) as looking:
                assert looking.look(0).rows == []
                p.stdin.close()
                assert p.stdout.readline() == "ending\n"
                all_say("or is at its end", p.pid, OPENS)
                monkeypatch.setattr(_visit, "PATIENCE", 0.3)
                with pytest.raises(_visit.NoLook, match="the program is at its end"):
                    looking.look(0.01)
        finally:
            p.kill()


def test_a_child_of_a_fork(home: Path, program: Path) -> None:
    """Rule 14.9: the child of a fork has a socket of its own."""
    with subprocess.Popen([program, "forked"], stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None
        child = int(p.stdout.readline())
        try:
            assert p.stdout.readline() == "ready\n"
            assert {p.pid, child} == set(_visit.doors())
            assert {row.path for row in _visit.look(child, 0.05).rows} == {
                "main/turns",
                "main/relays",
            }
        finally:
            os.kill(child, signal.SIGKILL)


def test_anything_that_is_sent_is_answered_or_refused(home: Path, program: Path) -> None:
    """Rule 14.9: the program continues, whatever is sent to its socket."""
    rng = random.Random(4141)
    whole = message({"ask": "who"})
    with running(program, "ring") as p:
        at = str(home / "weft" / f"{p.pid}.sock")
        for n in range(300):
            data = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            if n % 3 == 0:
                body = bytes(rng.choice(b'{}[]",:\\u0wehalk1.e-') for _ in range(rng.randrange(60)))
                data = bytearray(struct.pack("!I", len(body)) + body)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(at)
                s.sendall(data[: rng.randrange(1, len(data) + 1)] if n % 5 == 0 else data)
                s.shutdown(socket.SHUT_WR)
                reader = Reader(ANSWER)
                answers = []
                while got := s.recv(1 << 16):
                    answers += reader.feed(got)
                assert all("error" in a or "pid" in a for a in answers), (n, bytes(data))
        assert p.poll() is None
        assert _visit.look(p.pid, 0.02).rows
        with _visit.Visit(p.pid) as visit:
            for request, answer in (
                ({"ask": "what"}, 'the question must be "who", "look", "stuck" or "flight"'),
                ({"ask": "look", "interval": -1}, "the interval must be from 0 to 60 s"),
                ({"ask": "look", "interval": True}, "the interval must be from 0 to 60 s"),
                ({"ask": "look", "interval": 0, "most": "x"}, "the number of processes must be"),
                ({"ask": "flight", "path": "relative"}, "the path of the file must be absolute"),
            ):
                with pytest.raises(_visit.NoLook) as error:
                    visit.ask(**request)
                assert answer in str(error.value)
