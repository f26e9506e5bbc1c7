"""Tests of processes in C++ on a bare board (rules 21.10 to 21.13): the emulated RP2040, without
MicroPython. Most tests share one board, on which each test must leave nothing over."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft.native
from weft import boards
from weft._boards import emulators, firmware
from weft.threads import (
    BadUse,
    Barrier,
    Channel,
    Deadlock,
    PeerDied,
    Poisoned,
    process,
    run,
)

from . import placed_programs as programs
from . import tiers

SOURCE = tiers.HERE / "tests" / "placed_parts.cpp"
PAGE = tiers.ROOT / "python" / "docs" / "boards.md"
os.environ.setdefault("WEFT_CACHE", str(tiers.ROOT / ".build" / "components"))


@pytest.fixture(scope="module")
def parts() -> Any:
    return weft.native.load(SOURCE)


@pytest.fixture(scope="module")
def machines() -> Iterator[list[emulators.Machine]]:
    """Yields the emulators that were started, the latest last."""
    with pytest.MonkeyPatch.context() as patch:
        started: list[emulators.Machine] = []
        start = emulators.start_bare

        def noted(*what: Any) -> emulators.Machine:
            started.append(start(*what))
            return started[-1]

        patch.setattr(emulators, "start_bare", noted)
        yield started


@pytest.fixture(scope="module")
def shared(machines: list[emulators.Machine]) -> Iterator[boards.BareBoard]:
    with boards.bare() as made:
        yield made


@pytest.fixture
def board(shared: boards.BareBoard) -> Iterator[boards.BareBoard]:
    yield shared
    assert not shared._running
    assert {kind: len(slots) for kind, slots in shared.slots.items()} in (
        {},
        {"news": 16, "r": 32, "w": 32},
    )


def line(mark: str) -> int:
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    (found,) = [n for n, text in enumerate(lines, 1) if f"// [{mark}]" in text]
    return found


@process
def show(source: Any, most: int = 1000) -> list[Any]:
    got: list[Any] = []
    for value in source:
        got.append(value)
        if len(got) == most:
            break
    return got


@process
def give(out: Any, *values: Any) -> None:
    for value in values:
        out.write(value)


def test_the_page_s_program_runs_as_it_stands(tmp_path: Path) -> None:
    """rule 21.10: it prints what the page says"""
    text = PAGE.read_text(encoding="utf-8")
    for kind, name in [("cpp", "parts.cpp"), ("python", "bare.py")]:
        (code,) = re.findall(rf"```{kind} save file={name}\n(.*?)```", text, re.S)
        (tmp_path / name).write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "bare.py"],
        cwd=tmp_path,
        env={**os.environ, "WEFT_CHECKOUT": str(tiers.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "2", "4"]


def test_a_channel_between_two_processes_of_the_board_stays_there(board: Any, parts: Any) -> None:
    """rules 21.4, 21.10; many times, so that the board must use its slots and lines again"""
    for n in range(12):
        a, b = Channel("a"), Channel("b")
        assert run(
            parts.counts.on(board)(a.writer(), n),
            parts.doubles.on(board)(a.reader(), b.writer()),
            show(b.reader()),
        )[2] == [2 * i for i in range(n)]
        assert (a.stats().transfers, b.stats().transfers) == (0, n)


def test_values_go_over_the_line_both_ways(board: Any, parts: Any) -> None:
    """rules 21.11, 19.5: one argument is given by its name, one by default"""
    a, b = Channel("a"), Channel("b")
    assert run(
        give(a.writer(), 1, 2.5, -3),
        parts.scales.on(board)(a.reader(), out=b.writer(), negated=True),
        show(b.reader()),
    )[2] == [-2.0, -5.0, 6.0]


def test_a_write_waits_until_a_process_here_reads(board: Any, parts: Any) -> None:
    """rule 21.11: the board has written as many values as were read"""
    a, b = Channel("a"), Channel("b")
    left = a.writer()

    @process
    def reads_two(source: Any, out: Any) -> list[Any]:
        got = [source.read(), source.read()]
        return [*got, out.stats().transfers]

    got = run(
        give(left, 1, 2, 3),
        parts.copies.on(board)(a.reader(), b.writer()),
        reads_two(b.reader(), a),
    )[2]
    assert got[:2] == [1, 2]
    assert got[2] in (2, 3)  # the third may be on the board, in the write that waits; no fourth


def test_a_buffer_on_the_board(board: Any, parts: Any) -> None:
    """rules 1.4, 21.4: the channel keeps its capacity and overflow"""
    a, b = Channel("a", capacity=4), Channel("b")
    assert run(
        parts.counts.on(board)(a.writer(), 20),
        parts.doubles.on(board)(a.reader(), b.writer()),
        show(b.reader()),
    )[2] == [2 * i for i in range(20)]
    a, b = Channel("a", capacity=2, overflow="drop_newest"), Channel("b")
    some = run(
        parts.counts.on(board)(a.writer(), 20),
        parts.doubles.on(board)(a.reader(), b.writer()),
        show(b.reader()),
    )[2]
    assert some[:2] == [0, 2]
    assert len(some) < 20
    a, b = Channel("a", overflow="unbounded"), Channel("b")
    assert run(
        parts.counts.on(board)(a.writer(), 3),
        parts.doubles.on(board)(a.reader(), b.writer()),
        show(b.reader()),
    )[2] == [0, 2, 4]
    assert a.stats().transfers == 3  # a has its home here
    a, b = Channel("a", capacity=10_000), Channel("b")
    with pytest.raises(ExceptionGroup) as caught:
        run(
            parts.counts.on(board)(a.writer(), 20),
            parts.doubles.on(board)(a.reader(), b.writer()),
            show(b.reader()),
        )
    for error in caught.value.exceptions:
        assert isinstance(error, MemoryError)
        assert "its buffer needs 40000 bytes, and the board has 24576" in str(error)


def test_a_select_of_the_line_and_of_a_channel_of_the_board(board: Any, parts: Any) -> None:
    """rules 5.1, 21.11"""
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    got = run(
        give(a.writer(), 100, 200, 300),
        parts.counts.on(board)(b.writer(), 4),
        parts.merges.on(board)(a.reader(), b.reader(), out.writer()),
        show(out.reader()),
    )[3]
    assert [x for x in got if x >= 100] == [100, 200, 300]
    assert [x for x in got if x < 100] == [0, 1, 2, 3]
    a, b = Channel("a"), Channel("b")
    _, ups, downs = run(
        parts.offers.on(board)(a.writer(), b.writer(), 8), show(a.reader()), show(b.reader())
    )
    assert sorted([*ups, *(-x for x in downs)]) == list(range(8))


def test_ends_and_poison_go_through_with_the_line(board: Any, parts: Any) -> None:
    """rules 3.5, 4.3, 21.12: a NoResult has the line of the operation"""
    a, b = Channel("a"), Channel("b")
    _, gone, got = run(
        give(a.writer(), *range(9)),
        parts.copies.on(board)(a.reader(), b.writer()),
        show(b.reader(), 2),
    )
    assert got == [0, 1]
    assert f"{SOURCE}:{line('copies writes')}" in repr(gone)
    a, b = Channel("a"), Channel("b")
    _, gone, got = run(
        give(a.writer(), 7), parts.copies.on(board)(a.reader(), b.writer()), show(b.reader())
    )
    assert got == [7]
    assert f"{SOURCE}:{line('copies reads')}" in repr(gone)
    a, b = Channel("a"), Channel("b")
    ours = a.writer()
    seen: list[Any] = []

    @process
    def watches(source: Any) -> None:
        try:
            source.read()
            source.read()
        except Poisoned as error:
            seen.append(error.strength)

    @process
    def kills(out: Any) -> None:
        out.write(1)
        out.poison(strength=5)

    run(parts.copies.on(board)(a.reader(), b.writer()), kills(ours), watches(b.reader()))
    a = Channel("a")
    run(parts.poisons.on(board)(a.writer(), 3), watches(a.reader()))
    assert seen == [5, 3]


def test_a_deadlock_on_the_board_has_paths_and_lines(board: Any, parts: Any) -> None:
    """rules 21.8, 21.13: in plain operations, and with a select"""
    a, b = Channel("left"), Channel("right")
    with pytest.raises(ExceptionGroup) as caught:
        run(
            parts.copies.on(board)(a.reader(), b.writer()),
            parts.copies.on(board)(b.reader(), a.writer()),
        )
    for error in caught.value.exceptions:
        assert isinstance(error, Deadlock)
        place = f"{SOURCE}:{line('copies reads')}"
        assert f"main/copies[0]: read 'left' at {place}" in str(error)
        assert f"main/copies[1]: read 'right' at {place}" in str(error)
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    with pytest.raises(ExceptionGroup) as caught:
        run(
            parts.merges.on(board)(a.reader(), b.reader(), c.writer()),
            parts.copies.on(board)(c.reader(), a.writer()),
            parts.copies.on(board)(c.reader(), b.writer()),
        )
    for error in caught.value.exceptions:
        assert f"main/merges: read 'b' at {SOURCE}:{line('merges')}" in str(error)


def test_processes_that_the_pc_may_still_wake_are_no_deadlock(board: Any, parts: Any) -> None:
    """rule 21.13: the PC writes late, and every process ends"""
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    ours = a.writer()
    begun = Channel("begun")

    @process
    def late(out: Any, source: Any) -> int:
        for _ in range(3):
            out.write(5)
            assert source.read() == 10
        return 3

    assert (
        run(
            parts.merges.on(board)(a.reader(), b.reader(), c.writer()),
            parts.doubles.on(board)(c.reader(), begun.writer()),
            late(ours, begun.reader()),
            parts.counts.on(board)(b.writer(), 0),
        )[2]
        == 3
    )


@pytest.mark.parametrize("waits", ["sleeps", "copies", "merges", "counts"])
def test_a_cancellation_ends_the_process_on_the_board(board: Any, parts: Any, waits: str) -> None:
    """rules 6.1, 21.12: a sleep, a read, a select, and a write that the PC does not take"""
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    kept = b.writer(), b.reader(), c.writer()  # so nothing here retires
    there = {
        "sleeps": lambda: parts.sleeps.on(board)(a.writer()),
        "copies": lambda: parts.copies.on(board)(c.reader(), a.writer()),
        "merges": lambda: parts.merges.on(board)(b.reader(), c.reader(), a.writer()),
        "counts": lambda: parts.counts.on(board)(a.writer(), 9),
    }[waits]()

    @process
    def fails(source: Any) -> None:
        if waits in ("sleeps", "counts"):
            source.read()
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run(there, fails(a.reader()))
    for end in kept:
        end.retire()


def test_a_lack_of_memory_is_told_with_the_bytes(board: Any, parts: Any) -> None:
    """rules 21.6, 21.12: two frames of 60,000 bytes"""
    a, b = Channel("a"), Channel("b")
    with pytest.raises(
        MemoryError, match=r"its frame needs 60\d\d\d bytes, and the board has 98304"
    ):
        run(
            parts.large.on(board)(a.writer()),
            parts.large.on(board)(b.writer()),
            show(a.reader()),
            show(b.reader()),
        )


@pytest.mark.parametrize("value", [1 << 40, "text", 0.5, None])
def test_a_value_of_another_type_is_bad_use(board: Any, parts: Any, value: Any) -> None:
    """rule 21.11"""
    a, b = Channel("a"), Channel("b")
    with pytest.raises(BadUse, match="is not of the type that the process reads"):
        run(
            give(a.writer(), value),
            parts.copies.on(board)(a.reader(), b.writer()),
            show(b.reader()),
        )


def test_arguments_and_channels_that_do_not_fit(board: Any, parts: Any) -> None:
    """rules 21.5, 21.10: each is bad use, with the reason"""
    a, b = Channel("a"), Channel("b")
    with pytest.raises(BadUse, match="the argument 'n' is str: a process in C\\+\\+ on a board"):
        parts.counts.on(board)(a.writer(), "7")
    a = Channel("a")
    with pytest.raises(TypeError, match="missing a required argument: 'n'"):
        parts.counts.on(board)(a.writer())
    with pytest.raises(BadUse, match="the parameter 'b' is a barrier, which stays in its program"):
        parts.meets.on(board)(Barrier(1))
    a = Channel("a")
    with pytest.raises(BadUse, match="an argument is not of its parameter's type"):
        run(parts.counts.on(board)(a.writer(), 1 << 40), show(a.reader()))
    a = Channel("a")
    with pytest.raises((BadUse, ExceptionGroup)) as caught:
        run(
            parts.floats.on(board)(a.writer()),
            parts.copies.on(board)(a.reader(), b.writer()),
            show(b.reader()),
        )
    shown = repr([caught.value, *getattr(caught.value, "exceptions", [])])
    assert "a channel's reader and its writer are of different types" in shown
    with pytest.raises(BadUse, match="has no MicroPython, and runs processes in C\\+\\+ alone"):
        programs.count.on(board)
    many = [Channel() for _ in range(17)]
    with pytest.raises(BadUse, match="it has at most 16 processes at a time"):
        run(*(parts.sleeps.on(board)(c.writer()) for c in many), *(show(c.reader()) for c in many))


def test_a_mistake_ends_the_board_and_the_next_process_starts_it_again(
    board: Any, parts: Any, machines: list[emulators.Machine]
) -> None:
    """rules 21.9, 21.12, M15: after a write to a retired end, and after the emulator is killed"""
    a = Channel("a")
    with pytest.raises((PeerDied, ExceptionGroup)) as caught:
        run(parts.writes_late.on(board)(a.writer()), show(a.reader()))
    raised = [caught.value, *getattr(caught.value, "exceptions", [])]
    assert any("an operation at an end that was retired" in str(error) for error in raised)
    b = Channel("b")

    @process
    def kills(source: Any) -> None:
        source.read()
        machines[-1]._process.kill()

    with pytest.raises(PeerDied, match="the board at the emulated rp2040 was lost while sleeps"):
        run(parts.sleeps.on(board)(b.writer()), kills(b.reader()))
    c = Channel("c")
    assert run(parts.counts.on(board)(c.writer(), 2), show(c.reader()))[1] == [0, 1]


def test_a_new_source_needs_a_board_on_which_nothing_runs(tmp_path: Path, parts: Any) -> None:
    """rule 21.10; a closed board refuses, too"""
    more = tmp_path / "more.cpp"
    more.write_text(
        "#include <cstdint>\n#include <weft/anywhere.hpp>\n"
        "weft::Process more(weft::Writer<std::int32_t> out) { co_await out.write(42); }\n"
        "WEFT_PLACEABLE(more, out)\n",
        encoding="utf-8",
    )
    with boards.bare() as board:
        a, b = Channel("a"), Channel("b")
        added = weft.native.load(more)

        @process
        def adds(source: Any) -> None:
            source.read()
            run(added.more.on(board)(b.writer()), show(b.reader()))

        with pytest.raises(BadUse, match="runs a firmware without it: name each process"):
            run(parts.sleeps.on(board)(a.writer()), adds(a.reader()))
        c = Channel("c")
        assert run(added.more.on(board)(c.writer()), show(c.reader()))[1] == [42]
    e = Channel("e")
    with pytest.raises(BadUse, match="is closed"):
        run(added.more.on(board)(e.writer()), show(e.reader()))


def test_sources_that_a_board_cannot_have(
    tmp_path: Path, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 21.10: each error names the remedy"""

    def compiled(name: str, text: str) -> firmware.Compiled:
        file = tmp_path / name
        file.write_text(f"#include <weft/anywhere.hpp>\n{text}", encoding="utf-8")
        return firmware.compiled(file, (), ("f",))

    board = boards.bare()
    with pytest.raises(BadUse, match=r"strings.cpp was not built:\n(.|\n)*trivially copyable"):
        compiled(
            "strings.cpp",
            "#include <string>\nweft::Process f(weft::Reader<std::string> r) { co_await r.read(); }\n"
            "WEFT_PLACEABLE(f, r)\n",
        )
    with pytest.raises(BadUse, match="declared by WEFT_PLACEABLE, and this source declares none"):
        compiled("none.cpp", "weft::Process f() { co_return; }\n")
    big = compiled(
        "big.cpp",
        "static volatile char room[300000];\n"
        "weft::Process f(weft::Writer<int> w) { co_await w.write(room[7]); }\nWEFT_PLACEABLE(f, w)\n",
    )
    with pytest.raises(BadUse, match=r"no room in the SRAM of the rp2040: \d+ bytes too many"):
        firmware.linked([big])
    with pytest.raises(BadUse, match="two sources for one board have a process 'f', one of them"):
        firmware.linked([big, big])
    library = weft.native.load(parts.path)
    with pytest.raises(BadUse, match="was loaded from a library: give weft.native.load the .cpp"):
        library.counts.on(board)
    monkeypatch.setenv("WEFT_CHECKOUT", str(tmp_path))
    with pytest.raises(BadUse, match="set WEFT_CHECKOUT to its path"):
        parts.counts.on(board)
    monkeypatch.delenv("WEFT_CHECKOUT")
    monkeypatch.chdir(tiers.ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadUse, match="there is no arm-none-eabi-g.., which compiles for the board"):
        parts.counts.on(board)


def test_a_board_at_a_port_needs_picotool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """rule 21.10: errors without it, without a board, without a port"""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadUse, match="a board is programmed by picotool, and there is none"):
        boards.bare("/dev/ttyUSB9")
    with pytest.raises(BadUse, match="lease must be between 0 and 3600 seconds"):
        boards.bare(lease=-1)
    monkeypatch.undo()
    tool = tmp_path / "picotool"
    tool.write_text("#!/bin/sh\necho No accessible RP2040 devices in BOOTSEL mode >&2; exit 249\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    a = Channel("a")
    parts = weft.native.load(SOURCE)
    with pytest.raises(BadUse, match="hold BOOTSEL while you plug(.|\n)*No accessible RP2040"):
        run(parts.counts.on(boards.bare("/dev/ttyUSB9"))(a.writer(), 1), show(a.reader()))
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\n')
    b = Channel("b")
    with pytest.raises(BadUse, match="there is no port /dev/ttyUSB9"):
        run(parts.counts.on(boards.bare("/dev/ttyUSB9"))(b.writer(), 1), show(b.reader()))
    assert re.fullmatch(
        r"load -v -x \S+/firmware-\w+\.uf2\n", (tmp_path / "called").read_text(encoding="utf-8")
    )
