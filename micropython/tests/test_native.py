"""Tests of the native core, as a user C module and as a natmod, on the unix port and on the
emulated Cortex-M3. The core in Python passes the same tests. The emulator counts instructions, so
their number is the same in every run."""

from __future__ import annotations

import atexit
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from . import board, tiers

PLAIN = "from weft._plain import *\n"
NATIVE = "from weft_native import *\n"
CORES = {
    "pure": PLAIN,
    "natmod": NATIVE,
    "native": NATIVE,
    "gil": NATIVE,
    "board-pure": PLAIN,
    "board-natmod": NATIVE,
    "board-native": NATIVE,
    "wasm": PLAIN,
}
HERE = Path(__file__).parent

pytestmark = pytest.mark.together  # one lane runs these tests, and keeps the output of programs


def wasm(program: Path, folder: Path) -> str:
    """Runs a program on MicroPython's WebAssembly port, in node; returns its output."""
    shutil.copytree(tiers.HERE / "weft", folder / "weft")
    done = subprocess.run(
        ["node", tiers.HERE / "wasm" / "run.mjs", program, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@functools.cache
def ran(where: str, name: str) -> str:
    """Runs a program of this folder with the core of the tier or board `where` as its module
    `core`; returns its output."""
    # Only this OS process uses the folder: another OS process might run the same program at the
    # same time.
    (tiers.MADE / "native").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{where}-{name}.", dir=tiers.MADE / "native"))
    atexit.register(shutil.rmtree, folder, True)
    core = folder / "core.py"
    core.write_text(CORES[where])
    if where in board.FIRMWARE:
        return board.run(where, HERE / f"{name}.py", folder, core)
    if where == "wasm":
        return wasm(HERE / f"{name}.py", folder)
    return tiers.run(where, HERE / f"{name}.py", heap="1m", folders=(folder,))


def figures(where: str, program: str) -> dict[str, float]:
    return board.figures(ran(where, program))


NATIVES = ["native", "gil", "natmod", "board-native", "board-natmod"]
# The first program uses the bare core, the second the whole package.
PROGRAMS = ["native_commstime", "native_package"]


@pytest.mark.parametrize("where", CORES)
def test_the_core_does_what_its_page_says(where: str) -> None:
    last = ran(where, "native_core").splitlines()[-1]
    found = re.fullmatch(r"(\d+) checks", last)
    assert found and int(found[1]) >= 80, last


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("where", NATIVES)
def test_a_communication_allocates_nothing(where: str, program: str) -> None:
    """A program of a million communications on the unix port, with collection off, allocates
    nothing."""
    cost = figures(where, program)
    assert cost["await, bytes"] == 0
    assert cost["yield, bytes"] == 0


@pytest.mark.parametrize(
    ("where", "form", "most"),
    [
        ("board-native", "await", 1500),
        ("board-native", "yield", 1500),
        ("board-natmod", "await", 1500),
        ("board-natmod", "yield", 1500),
        ("board-pure", "await", 16000),
        ("board-pure", "yield", 7000),
    ],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_instructions_of_a_communication(where: str, form: str, most: int, program: str) -> None:
    assert 0 < figures(where, program)[f"{form}, cost"] <= most


@pytest.mark.parametrize("where", ["board-native", "board-natmod"])
def test_bytes_of_a_process_that_waits_with_its_channel(where: str) -> None:
    """The test counts the bytes of the core's objects; README.md gives those of the package's
    objects."""
    assert 0 < figures(where, "native_commstime")["parked"] <= 160


@pytest.mark.parametrize(
    ("where", "most"), [("board-native", 284), ("board-natmod", 284), ("board-pure", 434)]
)
def test_bytes_of_one_with_all_that_the_package_keeps(where: str, most: int) -> None:
    assert 0 < figures(where, "native_package")["parked"] <= most


@pytest.mark.parametrize("arch", ["armv6m", "armv7m", "armv7emsp"])
def test_size_of_the_natmods(arch: str) -> None:
    size = (tiers.MADE / "natmod" / arch / "weft_native.mpy").stat().st_size
    assert 0 < size <= 4096


# The soak also builds two architectures that need compilers of their own. No test runs these two.
@pytest.mark.parametrize(
    "arch",
    [
        *("x64", "armv6m", "armv7m", "armv7emsp"),
        *(pytest.param(arch, marks=pytest.mark.soak) for arch in ("rv32imc", "xtensa")),
    ],
)
def test_natmods_are_of_the_sub_version_they_are_loaded_by(arch: str) -> None:
    head = (tiers.MADE / "natmod" / arch / "weft_native.mpy").read_bytes()[:4]
    assert head[:2] == b"M\x06"
    assert head[2] & 3 == 3


def test_two_runs_count_the_same_instructions(tmp_path: Path) -> None:
    core = tmp_path / "core.py"
    core.write_text(NATIVE)
    again = board.run("board-native", HERE / "native_commstime.py", tmp_path, core)
    assert again == ran("board-native", "native_commstime")


def test_a_natmod_for_another_processor_is_left_alone() -> None:
    text = tiers.run(
        "pure",
        "-c",
        "from weft import _core; print(_core.NATIVE)",
        folders=(tiers.MADE / "natmod" / "armv7m",),
    )
    output, native = text.splitlines()
    assert "for another processor" in output
    assert native == "False"


def test_a_native_core_of_another_edition_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "weft_native.py").write_text("ABI = 1\n")
    text = tiers.run(
        "pure", "-c", "from weft import _core; print(_core.NATIVE)", folders=(tmp_path,)
    )
    output, native = text.splitlines()
    assert "for another processor or version; going on in pure Python" in output
    assert native == "False"
