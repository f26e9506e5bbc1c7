"""Tests of processes on emulated boards (rule 21; python/docs/boards.md). MicroPython's firmware
for the RP2040 contains Weft, that for a Cortex-M3 does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft import boards
from weft._boards import emulators
from weft.threads import BadUse, Channel, PeerDied, process, run

from . import board as cortex
from . import placed_programs as programs
from . import tiers
from .test_boards import show

PAGE = tiers.ROOT / "python" / "docs" / "boards.md"


def test_the_page_s_program_runs_as_it_stands(tmp_path: Path) -> None:
    """rules 21.1, 21.4, 21.9"""
    (text,) = re.findall(
        r"```python save file=monitor.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S
    )
    program = tmp_path / "monitor.py"
    program.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program], cwd=tiers.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "18", "55", "42", "29"]


def test_the_rp2040_and_its_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """rules 21.6, 21.9: an exception, a lack of memory, and the emulator that is killed"""
    machines: list[emulators.Machine] = []
    start = emulators.start

    def noted(*what: Any) -> emulators.Machine:
        machines.append(start(*what))
        return machines[-1]

    monkeypatch.setattr(emulators, "start", noted)
    with boards.emulated() as board:
        a = Channel("a")
        with pytest.raises(ValueError, match="no good") as caught:
            run(programs.fails.on(board)(a.writer()), show(a.reader()))
        assert f'File "{programs.__file__}", line ' in str(caught.value.__cause__)
        with pytest.raises(MemoryError, match="the emulated rp2040 has no memory for it"):
            run(programs.needs_room.on(board)())
        assert run(programs.echo.on(board)(1))[3] == "micropython"
        b = Channel("b")
        ours = b.reader()

        @process
        def kill() -> None:
            ours.read()
            machines[0]._process.kill()

        with pytest.raises(PeerDied, match="the board at the emulated rp2040 was lost"):
            run(programs.writes_for_ever.on(board)(b.writer()), kill())


@pytest.mark.soak
def test_a_board_without_weft_gets_it_over_its_serial_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """rule 21.9: QEMU's Cortex-M3, whose prompt and link share one line"""
    monkeypatch.setenv("PATH", f"{tiers.MADE}", prepend=":")
    with cortex.console("board-native") as device:
        for _ in range(2):
            with boards.connect(device, lease=90, patience=90) as board:
                a, b = Channel("a"), Channel("b")
                assert run(
                    programs.count.on(board)(a.writer(), 3),
                    programs.smooth.on(board)(a.reader(), b.writer()),
                    show(b.reader()),
                ) == [3, None, [0, 1, 4]]


def test_what_is_not_there_for_the_emulator_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rule 21.9"""
    with pytest.raises(BadUse, match="expected the chip \"rp2040\", got 'esp32'"):
        boards.emulated("esp32")
    with pytest.raises(
        BadUse, match=r"there is no firmware .*nothing.elf: `./run setup micropython`"
    ):
        boards.emulated(firmware=tmp_path / "nothing.elf")
    with pytest.raises(BadUse, match="patience must be between"):
        boards.emulated(patience=-1)
    monkeypatch.setenv("WEFT_CHECKOUT", str(tmp_path))
    with pytest.raises(BadUse, match="set WEFT_CHECKOUT to its path"):
        boards.emulated()
    script = tmp_path / emulators._SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text("console.error('no such firmware'); process.exit(1);\n", encoding="utf-8")
    with pytest.raises(BadUse, match=r"packages are missing: npm ci in "):
        boards.emulated()
    (tmp_path / "emulator" / "node_modules").mkdir(parents=True)
    with pytest.raises(BadUse, match="the emulator has not started; .*said: no such firmware"):
        boards.emulated(firmware=script)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BadUse, match="needs node: apt-get install nodejs"):
        boards.emulated()
