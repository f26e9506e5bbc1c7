"""Tests of processes on boards (rule 21; python/docs/boards.md). The board is MicroPython's unix
port with a raw prompt; test_boards_emulated.py has the emulated ones,
test_boards_connecting.py what happens before a process begins."""

from __future__ import annotations

import gc
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from weft import boards, coroutines, threads
from weft._boards import arguments, placing
from weft.threads import (
    BadUse,
    Channel,
    Deadlock,
    PeerDied,
    Poisoned,
    Retired,
    after,
    process,
    run,
    select,
)

from . import placed_programs as programs
from . import tiers
from .placed_boards import PATIENT, UnixBoard, one_board

FILE = programs.__file__


@pytest.fixture(scope="module")
def unix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnixBoard]:
    with UnixBoard(tmp_path_factory.mktemp("unix")) as made:
        yield made


@pytest.fixture
def board(unix: UnixBoard) -> Iterator[boards.Board]:
    with boards.connect(unix.device, lease=PATIENT) as connected:
        yield connected


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns a list that receives all further orders to boards."""
    orders: list[Any] = []
    order = placing._Running._order

    def noted(self: Any, *what: Any) -> None:
        orders.append(what)
        order(self, *what)

    monkeypatch.setattr(placing._Running, "_order", noted)
    return orders


@process
def show(source: Any) -> list[Any]:
    return list(source)


def test_processes_of_a_board_and_of_the_pc_are_one_network(board: boards.Board) -> None:
    """rules 21.1, 21.4: the results are those of the same network on the PC"""
    a, b = Channel("a"), Channel("b")
    there = run(
        programs.count.on(board)(a.writer(), 5),
        programs.smooth.on(board)(a.reader(), b.writer(), n=2),
        show(b.reader()),
    )
    assert there[0] == 5
    here = Channel("a"), Channel("b")
    same = run(
        programs.count(here[0].writer(), 5),
        programs.smooth(here[0].reader(), here[1].writer(), n=2),
        show(here[1].reader()),
    )[2]
    assert there[2] == same == [0, 1, 4, 7, 10]


def test_both_give_the_same_values(board: boards.Board) -> None:
    """rule 21.4: over the line, and from a process of the board to one here"""
    a, b = Channel("a"), Channel("b", capacity=2)
    results = run(
        programs.count(a.writer(), 5),
        programs.smooth.on(board)(a.reader(), b.writer()),
        show(b.reader()),
    )
    assert results[2] == [0, 1, 4, 7, 10]


def test_a_channel_between_two_processes_of_a_board_stays_there(board: boards.Board) -> None:
    """rule 21.4: no value of the channel comes here, and no end can be made here any more"""
    a, b = Channel("a", capacity=3), Channel("b")
    assert run(
        programs.count.on(board)(a.writer(), 4),
        programs.smooth.on(board)(a.reader(), b.writer()),
        show(b.reader()),
    )[2] == [0, 1, 4, 7]
    assert a.stats().transfers == 0
    assert b.stats().transfers == 4
    with pytest.raises(Retired):
        a.reader()
    assert board._own == {}


def test_a_channel_with_an_end_here_goes_over_the_line(board: boards.Board) -> None:
    """rule 21.4: a process here writes into it, too"""
    a, b = Channel("a"), Channel("b")
    more = a.writer()

    @process
    def give() -> None:
        more.write(1000)
        more.retire()

    got = run(
        programs.count.on(board)(a.writer(), 2),
        programs.smooth.on(board)(a.reader(), b.writer(), 1),
        show(b.reader()),
        give(),
    )[2]
    assert sorted(got) == [0, 3, 1000]


def test_a_process_that_is_dropped_lets_go_of_its_end_on_the_board(board: boards.Board) -> None:
    """rule 21.4: the reader on the board meets Retired"""
    a, told = Channel("a"), Channel("told")
    never = [programs.count.on(board)(a.writer(), 5)]
    waiting = programs.until_retired.on(board)(a.reader(), told.writer())

    @process
    def drop(source: Any) -> list[Any]:
        while not board._own:
            select(after(0.001))  # until the other process has begun
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            never.clear()
            gc.collect()
        return list(source)

    assert run(waiting, drop(told.reader()))[1] == ["retired"]


@pytest.mark.parametrize(
    "value", [None, True, -(2**70), 1.5, "€", b"\0\1", [1, [2]], {"a": {1: None}}, "x" * 1500]
)
def test_an_argument_and_a_result_are_what_a_link_carries(board: boards.Board, value: Any) -> None:
    """rule 21.5"""
    given = programs.echo.on(board)(value, (1, 2), name=value)
    if value == "x" * 1500:
        with pytest.raises(BadUse, match="its result cannot be sent to the PC: .*a value of"):
            run(given)
    else:
        assert run(given) == [value, [[1, 2]], {"name": value}, "micropython"]


def test_ends_may_be_in_lists_and_dicts(board: boards.Board) -> None:
    """rule 21.5"""
    channels = [Channel(f"c{i}") for i in range(3)]
    outs = {"all": [c.writer() for c in channels]}
    shown = [show(c.reader()) for c in channels]
    assert run(programs.spread.on(board)(outs), *shown)[1:] == [[0], [1], [2]]


def generator() -> Iterator[int]:
    yield 1


def test_what_cannot_be_an_argument_is_named_at_the_call(board: boards.Board) -> None:
    """rule 21.5"""
    numpy = pytest.importorskip("numpy")
    deep: list[Any] = []
    for _ in range(20):
        deep = [deep]
    with Path(FILE).open(encoding="utf-8") as file:
        for value, text in (
            (generator(), "is a generator, .*: write its values to a channel"),
            (numpy.zeros(3), r"is a numpy.ndarray, .*: give x.tolist\(\)"),
            (file, "is a _io.TextIOWrapper"),
            ({1, 2}, "is a set, .*: give None, bool, int"),
            (Channel(), r"give an end of it, c.reader\(\) or c.writer\(\)"),
            (threads.Barrier(1), "a barrier stays in its program"),
            (print, "a function that the process names goes along"),
            ({(1, 2): 3}, r"has the key \(1, 2\)"),
            (deep, "nests deeper"),
        ):
            with pytest.raises(BadUse, match=rf"echo.on\(board\): argument 1 .*{text}"):
                programs.echo.on(board)(value)
    with pytest.raises(BadUse, match="argument 'at'"):
        programs.echo.on(board)(1, at={1})
    with pytest.raises(TypeError, match="missing a required argument: 'n'"):
        programs.count.on(board)(Channel().writer())


def test_each_end_is_found_once() -> None:
    c = Channel()
    r, w = c.reader(), c.writer()
    taken = arguments.take("f", (r, [w, r]), {"x": {"y": w}})
    assert taken.args == [None, [None, None]]
    assert taken.keywords == {"x": {"y": None}}
    assert taken.ends == [(r, [[0, 0], [0, 1, 1]]), (w, [[0, 1, 0], [1, "x", "y"]])]
    assert arguments.ends_in((r, [w, r], {"x": w})) == [r, w]


def test_a_source_is_sent_once(tmp_path: Path, sent: list[Any]) -> None:
    """rule 21.3: neither the second process nor the next program sends it; a source that was
    spoilt on the board is sent again"""

    def puts() -> int:
        number = sum(what[0] == "put" for what in sent)
        sent.clear()
        return number

    with UnixBoard(tmp_path) as unix:
        for expected in (1, 0):
            with boards.connect(unix.device, lease=PATIENT) as board:
                for _ in range(2):
                    assert run(programs.echo.on(board)(1))[0] == 1
                assert puts() == expected
        (kept,) = (tmp_path / "weft_kept").glob("*/placed_*.py")
        kept.write_text(kept.read_text(encoding="utf-8").replace("value", "x"), encoding="utf-8")
        with boards.connect(unix.device, lease=PATIENT) as board:
            assert run(programs.echo.on(board)(2))[0] == 2
            assert puts() == 1


def test_a_board_keeps_some_sources(tmp_path: Path) -> None:
    """rule 21.3: old sources are removed, but none that this session uses"""
    old = [tmp_path / "weft_kept" / f"{i:016x}" for i in range(9)]
    for folder in old:
        folder.mkdir(parents=True)
        (folder / "x.py").write_text("")
    with one_board(tmp_path) as (_, board):
        run(programs.echo.on(board)(1))
        run(programs.says.on(board)())
    there = [d for d in (tmp_path / "weft_kept").iterdir() if d in old]
    assert len(there) == 4
    assert len(list((tmp_path / "weft_kept").iterdir())) == 6


def test_a_module_beside_the_file_goes_along(board: boards.Board) -> None:
    """rule 21.2: the process on the board imports it"""
    assert run(programs.helped.on(board)(1)) == 101


def test_an_exception_comes_back_with_the_line_of_the_file_here(board: boards.Board) -> None:
    """rule 21.6"""
    a = Channel("a")
    with pytest.raises(ValueError, match="no good") as caught:
        run(programs.fails.on(board)(a.writer()), show(a.reader()))
    trace = str(caught.value.__cause__)
    lines = Path(FILE).read_text(encoding="utf-8").splitlines()
    line = lines.index('    raise ValueError("no good")') + 1
    assert f'File "{FILE}", line {line}, in fails' in trace
    assert trace.startswith("on the board at /dev/")


def test_retirement_and_poison_end_a_process_quietly_there_and_here(board: boards.Board) -> None:
    """rules 21.6, 3.5, 4.3"""
    a = Channel("a")

    @process
    def take(source: Any) -> Any:
        return source.read()

    ended, first = run(programs.writes_for_ever.on(board)(a.writer()), take(a.reader()))
    assert first == 0
    assert not ended
    assert (ended.how, ended.process) == ("retired", "main/writes_for_ever")

    @process
    def spoil(end: Any) -> None:
        end.poison(7)

    b, c = Channel("b"), Channel("c")
    passing = programs.exchange.on(board)(b.reader(), c.writer())

    @process
    def look(source: Any) -> int:
        with pytest.raises(Poisoned) as caught:
            source.read()
        return caught.value.strength

    ended, _, strength = run(passing, spoil(b.writer()), look(c.reader()))
    assert ended.how == "poisoned"
    assert strength == 7


def test_a_cancelled_process_ends_there_before_it_ends_here(
    board: boards.Board, capsys: pytest.CaptureFixture[str]
) -> None:
    """rules 21.1, 6.1, 7.2"""
    told = Channel("told")

    @process
    def fail(source: Any) -> None:
        assert source.read() == "waits"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(programs.waits.on(board)(told.writer()), fail(told.reader()))
    assert capsys.readouterr().out == f"main/waits on {board._where}: cancelled\n"
    assert run(programs.echo.on(board)(1))[0] == 1


def test_a_timeout_ends_a_process_there(board: boards.Board) -> None:
    """rules 21.1, 7.12"""
    told = Channel("told", capacity=1)
    ours = told.reader()
    with pytest.raises(TimeoutError), threads.timeout(0.05):
        run(programs.waits.on(board)(told.writer()))
    with pytest.raises(Retired):
        while True:
            ours.read()


def test_what_it_prints_appears_here(
    board: boards.Board, capsys: pytest.CaptureFixture[str]
) -> None:
    """rule 21.7"""
    run(programs.says.on(board)())
    who = f"main/says on {board._where}: "
    lines = ["one-2", "no end" + "x" * 1500, "x" * 1500, "x" * 1500]
    assert capsys.readouterr().out.splitlines() == [who + line for line in lines]


def test_what_it_prints_too_fast_is_counted(
    board: boards.Board, capsys: pytest.CaptureFixture[str]
) -> None:
    """rule 21.7"""
    run(programs.says_too_much.on(board)())
    *lines, last = capsys.readouterr().out.splitlines()
    lost = re.search(r"\((\d+) bytes that were printed too quickly are lost\)", last)
    assert lost
    who = len(f"main/says_too_much on {board._where}: ")
    total = sum(len(f"{i} {'y' * 100}\n") for i in range(100))
    assert sum(len(line) + 1 - who for line in lines) + int(lost[1]) == total


@pytest.mark.parametrize("second", [programs.exchange, programs.exchange_within])
def test_a_knot_on_the_board_is_a_deadlock(board: boards.Board, second: Any) -> None:
    """rule 21.8: the other processes go on"""
    a, b, c, d = (Channel(x) for x in "abcd")

    @process
    def give(out: Any) -> str:
        for _ in range(2):
            out.write(1)
        return "given"

    with pytest.raises(Exception) as caught:  # noqa: B017, PT011  # one failure, or a group
        run(
            programs.exchange.on(board)(a.reader(), b.writer()),
            second.on(board)(b.reader(), a.writer()),
        )
    error: Any = caught.value
    first = error if isinstance(error, Deadlock) else error.exceptions[0]
    assert isinstance(first, Deadlock)
    assert "main/exchange" in str(first)
    assert "read of 'a'" in str(first)
    assert "read of 'b'" in str(first)
    assert run(
        programs.exchange.on(board)(c.reader(), d.writer()), give(c.writer()), show(d.reader())
    )[2] == [1]


def test_what_waits_for_the_pc_is_no_deadlock(board: boards.Board) -> None:
    """rule 21.8"""
    a, b, c = Channel("a"), Channel("b"), Channel("c")

    @process
    def give(out: Any) -> None:
        select(after(0.05))
        out.write(1)

    ends = programs.exchange.on(board)(a.reader(), b.writer())
    through = programs.exchange.on(board)(b.reader(), c.writer())
    assert run(ends, through, give(a.writer()), show(c.reader()))[3] == [1]


def test_a_module_that_the_board_lacks(board: boards.Board) -> None:
    """rule 21.6: BadUse names the line of the import and the module"""
    with pytest.raises(BadUse, match=rf"cannot import .*\({FILE}:\d+\).*nowhere_at_all"):
        run(programs.needs_what_is_not_there.on(board)())


def test_a_result_that_cannot_be_sent(board: boards.Board) -> None:
    """rule 21.5: BadUse names the process"""
    with pytest.raises(BadUse, match="gives_an_object .*its result cannot be sent to the PC"):
        run(programs.gives_an_object.on(board)())


def test_a_lack_of_memory_is_told_with_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 21.6: before a source is sent, and while the process runs"""
    with one_board(tmp_path, heap="1m") as (_, board):
        with pytest.raises(
            MemoryError, match=r"its source has \d+ bytes, and \d+ bytes of the heap"
        ):
            run(programs.needs_room.on(board)())
        a = Channel("a")
        ours = a.reader()
        monkeypatch.setattr(board, "free", 100)
        with pytest.raises(
            BadUse, match=r"no memory for it: its source has \d+ bytes, .* 100 bytes"
        ):
            run(programs.count.on(board)(a.writer(), 1))
        with pytest.raises(Retired):
            ours.read()


def test_a_process_for_a_board_is_not_copied(board: boards.Board) -> None:
    """rule 21.1: `* n` is bad use, and so is `.on` of a process object"""
    with pytest.raises(BadUse, match=r"echo \* n: a process for a board cannot be copied"):
        run(programs.echo.on(board)(1) * 2)
    c = Channel()
    made = show(c.reader())
    c.writer().retire()
    with pytest.raises(BadUse, match="a board is given before the call"):
        made.on(board)
    assert run(made) == []


def test_a_board_that_is_unplugged_is_a_death(tmp_path: Path) -> None:
    """rule 21.9: its process and its peer fail with PeerDied, and so does the next process"""
    with one_board(tmp_path) as (unix, board):
        a = Channel("a")
        ours = a.reader()

        @process
        def pull(source: Any) -> None:
            source.read()
            unix.unplug()
            with pytest.raises(PeerDied):
                while True:
                    source.read()

        with pytest.raises(PeerDied, match=r"the board at /dev/.* was lost while writes_for_ever"):
            run(programs.writes_for_ever.on(board)(a.writer()), pull(ours))
        with pytest.raises(PeerDied, match="was lost while echo"):
            run(programs.echo.on(board)(1))


def test_a_board_that_hangs_is_a_death(tmp_path: Path) -> None:
    """rule 21.9: a process that computes for ever gives no sign of life"""
    with UnixBoard(tmp_path) as unix, boards.connect(unix.device, lease=0.5) as board:
        told = Channel("told", capacity=1)
        ours = told.reader()
        with pytest.raises(
            PeerDied, match="was lost while computes_for_ever ran there: nothing was heard"
        ):
            run(programs.computes_for_ever.on(board)(told.writer()))
        assert ours.read() == 1


def test_a_closed_board(unix: UnixBoard) -> None:
    """rule 21.9: the processes on the board are cancelled, and the board is at its prompt"""
    board = boards.connect(unix.device, lease=PATIENT)
    told = Channel("told")

    @process
    def close(source: Any) -> None:
        source.read()
        board.close()

    with pytest.raises(PeerDied, match="was lost while waits"):
        run(programs.waits.on(board)(told.writer()), close(told.reader()))
    board.close()
    with pytest.raises(BadUse, match="closed"):
        run(programs.echo.on(board)(1))
    with boards.connect(unix.device, lease=PATIENT) as again:
        assert run(programs.echo.on(again)(1))[0] == 1


def test_one_program_at_a_time(unix: UnixBoard, board: boards.Board) -> None:
    """rule 21.9: a second connect is bad use, and the first still works"""
    with pytest.raises(BadUse, match=f"uses {unix.device}: close it there first"):
        boards.connect(unix.device)
    assert run(programs.echo.on(board)(1))[0] == 1


def test_it_is_cancelled_at_any_step_and_its_ends_are_let_go(board: boards.Board) -> None:
    """rules 21.1, 6.1: whichever step of the start is cancelled, nothing hangs or is left over"""
    for step in range(20):
        told = Channel("told", capacity=1)
        ours = told.reader()
        with suppress(TimeoutError), threads.timeout(step / 2000):
            run(programs.waits.on(board)(told.writer()))
        with pytest.raises(Retired):
            while True:
                ours.read()
    assert run(programs.echo.on(board)(1))[0] == 1


def test_it_runs_in_a_network_of_coroutines(board: boards.Board) -> None:
    """rules 21.1, 15.1: beside coroutines of the PC"""
    a = Channel("a")

    @coroutines.process
    async def take(source: Any) -> list[Any]:
        return [value async for value in source]

    @coroutines.process
    async def both() -> list[Any]:
        return await coroutines.Parallel(
            programs.count.on(board)(a.writer(), 3), take(a.reader()), programs.count(-Channel(), 0)
        )

    assert run(both()) == [3, [0, 3, 6], 0]


def test_an_end_that_is_dropped_before_its_channel_is_made(
    board: boards.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 21.4: the first process fails before it begins there, and its reader is dropped"""
    a = Channel("a")
    run(programs.echo.on(board)(1))
    fails_first = programs.until_retired.on(board)(a.reader(), Channel("t").writer())
    counting = programs.writes_for_ever.on(board)(a.writer())
    send = placing._Running._send_source

    def no_room(self: Any, source: Any) -> None:
        if source.function == "until_retired":
            raise BadUse("no room")
        send(self, source)

    monkeypatch.setattr(placing._Running, "_send_source", no_room)

    @process
    def alone() -> Any:
        with pytest.raises(BadUse, match="no room"):
            threads.Parallel(fails_first)
        return threads.Parallel(counting)

    (ended,) = run(alone())
    assert ended.how == "retired"


KILLED = """
import os, signal
from weft import boards
from weft.threads import Channel, process, run
from micropython.tests import placed_programs as programs

@process
def die(source):
    source.read()
    os.kill(os.getpid(), signal.SIGKILL)

board = boards.connect({device!r}, lease=0.5)
told = Channel("told")
run(programs.waits.on(board)(told.writer()), die(told.reader()))
"""


def test_a_program_that_is_killed_leaves_a_board_for_the_next(unix: UnixBoard) -> None:
    """rule 21.9: its processes are cancelled after the lease, and the board is at its prompt"""
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(device=unix.device)],
        cwd=tiers.ROOT,
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with boards.connect(unix.device, lease=PATIENT, patience=60) as board:
        assert run(programs.echo.on(board)(1))[0] == 1


@pytest.mark.parametrize("step", ["put", "start"])
def test_a_request_to_end_before_the_board_has_an_order(
    board: boards.Board, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """rules 21.1, 6.1: the board still receives the ends, and retires them"""
    told = Channel("told", capacity=1)
    board.kept.clear()
    order = placing._Running._order

    def cancelled(self: Any, *what: Any) -> None:
        if what[0] == step:
            threads.current_process().cancel()
        order(self, *what)

    monkeypatch.setattr(placing._Running, "_order", cancelled)
    ended, values = run(programs.waits.on(board)(told.writer()), show(told.reader()))
    assert ended.how == "cancelled"
    assert values in ([], ["waits"])


def test_a_process_that_has_not_begun_may_still_untie_a_knot(board: boards.Board) -> None:
    """rule 21.8: its end is on the board already, but no process holds it"""
    a, b = Channel("a"), Channel("b")
    last = programs.count.on(board)(a.writer(), 1)

    @process
    def later() -> Any:
        for _ in range(3):
            threads.Parallel(programs.echo.on(board)(1))
        return threads.Parallel(last)

    results = run(
        programs.exchange.on(board)(a.reader(), b.writer()),
        programs.exchange.on(board)(b.reader(), a.writer()),
        later(),
    )
    assert results[2] == [1]


@pytest.mark.soak
def test_a_session_has_any_number_of_calls(board: boards.Board) -> None:
    """rule 21.1: the board frees all objects of a call after the call; a link takes 1,000 ends at
    a time"""
    echo = programs.exchange.on(board)

    @process
    def give(out: Any, n: int) -> None:
        out.write(n)

    @process
    def take(source: Any) -> Any:
        return source.read()

    for n in range(500):
        a, b = Channel("a"), Channel("b")
        assert run(echo(a.reader(), b.writer()), give(a.writer(), n), take(b.reader()))[2] == n
    assert (board._calls, board._own) == ([], {})
