"""Tests of connecting to boards (rule 21.9; python/docs/boards.md): which are found, and which
receive Weft."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft import boards
from weft.threads import BadUse, run

from . import placed_programs as programs
from . import tiers
from .placed_boards import Scripted, UnixBoard, one_board

RAW = b"raw REPL; CTRL-B to exit\r\n>"


@pytest.fixture(scope="module")
def unix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnixBoard]:
    with UnixBoard(tmp_path_factory.mktemp("unix")) as made:
        yield made


def test_another_version_of_weft_is_refused(tmp_path: Path) -> None:
    """rule 21.9: so is a package without _placed.py"""
    package = tiers.installed(tmp_path / "other")
    for file, old, new, why in (
        ("__init__.py", '"0.1.0"', '"0.0.7"', "expected Weft 0.1.0 .*, got Weft 0.0.7"),
        ("_placed.py", "VERSION = 1", "VERSION = 99", "got Weft 0.1.0 .version 99"),
    ):
        path = package / "weft" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with UnixBoard(tmp_path, package=package) as unix, pytest.raises(BadUse, match=why):
            boards.connect(unix.device)
        path.write_text(text, encoding="utf-8")
    (package / "weft" / "_placed.py").unlink()
    with (
        UnixBoard(tmp_path, package=package) as unix,
        pytest.raises(BadUse, match="remove /lib/weft"),
    ):
        boards.connect(unix.device)


def test_a_board_without_weft_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """rule 21.9: if its folder cannot be made, BadUse says so"""
    monkeypatch.setenv("PATH", f"{tiers.MADE}", prepend=":")
    with one_board(tmp_path, package=tmp_path) as (_, board):
        assert run(programs.echo.on(board)(1))[0] == 1
    assert (tmp_path / "lib" / "weft" / "_twin" / "__init__.mpy").is_file()
    shutil.rmtree(tmp_path / "lib")
    (tmp_path / "lib").write_text("no folder can be here")
    with (
        UnixBoard(tmp_path, package=tmp_path) as unix,
        pytest.raises(BadUse, match="Weft is missing on the board at .*, and cannot be put there"),
    ):
        boards.connect(unix.device)


def test_a_board_with_little_memory_needs_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 21.9: without mpy-cross, BadUse names the bytes that are free"""
    monkeypatch.setenv("PATH", "")
    with (
        UnixBoard(tmp_path, package=tmp_path, heap="100k") as unix,
        pytest.raises(BadUse, match=r"whose \d+ bytes of free heap are too few to .*mpy-cross"),
    ):
        boards.connect(unix.device)


def test_there_is_no_such_port(tmp_path: Path) -> None:
    """rule 21.9: BadUse for a missing port, a file, and bad addresses"""
    nothing = tmp_path / "ttyACM9"
    with pytest.raises(BadUse, match=f"there is no port {nothing}: "):
        boards.connect(nothing)
    nothing.write_text("")
    with pytest.raises(BadUse, match="expected a serial port or socket://HOST:PORT, got "):
        boards.connect(nothing)
    for text in ("socket://", "socket://lab", "socket://lab:x"):
        with pytest.raises(BadUse, match="expected socket://HOST:PORT with a port number"):
            boards.connect(text)
    with pytest.raises(BadUse, match="nothing answers at socket://127.0.0.1:1"):
        boards.connect("socket://127.0.0.1:1")


def test_arguments_out_of_range(unix: UnixBoard) -> None:
    for wrong in (-1, 4000, float("nan"), True, "3"):
        with pytest.raises(BadUse, match="lease must be between"):
            boards.connect(unix.device, lease=wrong)
        with pytest.raises(BadUse, match="patience must be between"):
            boards.connect(unix.device, patience=wrong)
    with pytest.raises(
        BadUse, match="expected a speed that serial ports support, such as 115200, got 7"
    ):
        boards.connect(unix.device, baud=7)


def test_what_is_no_board_is_told_after_the_patience(tmp_path: Path) -> None:
    """rule 21.9: a silent device and a strange answer are refused"""
    with (
        UnixBoard(tmp_path, "silent") as silent,
        pytest.raises(BadUse, match="does not answer as a MicroPython board does within 0.2 s"),
    ):
        boards.connect(silent.device, patience=0.2)
    answer = b"OKpython\x04\x04>"
    with (
        Scripted((b"\x01", RAW), (b"\x04", answer), unplugged=False) as strange,
        pytest.raises(BadUse, match="is no MicroPython board: it said 'python'"),
    ):
        boards.connect(strange.device, patience=60)


LOOK = b"OK('micropython','rp2',6,None,None,9,['/lib'],[])\x04\x04>"
STEPS = {
    "before the raw prompt": [(b"\x01", b"...")],
    "before it takes a word": [(b"\x01", RAW)],
    "before a word is done": [(b"\x01", RAW), (b"\x04", b"OK")],
    "before its end": [(b"\x01", RAW), (b"\x04", b"OK\x04")],
    "as it gets Weft": [(b"\x01", RAW), (b"\x04", LOOK)],
}


@pytest.mark.parametrize("step", list(STEPS))
def test_it_is_unplugged_at_each_step_of_connecting(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 21.9: connect() raises BadUse"""
    monkeypatch.setenv("PATH", f"{tiers.MADE}", prepend=":")
    with (
        Scripted(*STEPS[step], unplugged=True) as board,
        pytest.raises(BadUse, match=f"the board at {board.device} was unplugged|Weft is missing"),
    ):
        boards.connect(board.device, patience=60)


@pytest.mark.parametrize("step", list(STEPS)[1:4])
def test_it_hangs_at_each_step_of_connecting(step: str) -> None:
    """rule 21.9: connect() raises BadUse"""
    with (
        Scripted(*STEPS[step], unplugged=False) as board,
        pytest.raises(BadUse, match=f"the board at {board.device} does not answer: it has not"),
    ):
        boards.connect(board.device, patience=0.3)
