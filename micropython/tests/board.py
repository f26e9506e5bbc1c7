"""Runs a program on the emulated Cortex-M3 (QEMU's mps2-an385), which counts instructions exactly.

The program is compiled and put on the board's disk as main.py, with the modules that it imports. It
runs without arguments, and the emulator ends when the program ends. Two runs of one program execute
the same number of instructions.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from littlefs import LittleFS

from . import tiers

FIRMWARE = {
    "board-pure": ("firmware.elf", None),
    "board-natmod": ("firmware.elf", "armv7m"),
    "board-native": ("firmware-native.elf", None),
}
DISK = 384 * 1024
BLOCK = 512
MACHINE = [
    *("qemu-system-arm", "-machine", "mps2-an385", "-icount", "shift=0,sleep=off"),
    *("-nographic", "-monitor", "none", "-semihosting"),
]
MAIN = b"""\
import sys, machine
try:
    import program
    print("board: ended")
except BaseException as e:
    sys.print_exception(e)
machine.reset()
"""


def compiled(source: Path) -> bytes:
    done = subprocess.run(
        [tiers.MADE / "mpy-cross", "-o", "-", "-s", source.name, source],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"{source} does not compile:\n{done.stderr.decode()}")
    return done.stdout


def image(files: dict[str, bytes]) -> bytes:
    """Returns the image of a file system with these files (path → contents)."""
    disk = LittleFS(block_size=BLOCK, block_count=DISK // BLOCK)
    for path, content in files.items():
        folder = path.rpartition("/")[0]
        if folder:
            disk.makedirs(folder, exist_ok=True)
        with disk.open(path, "wb") as file:
            file.write(content)
    return bytes(disk.context.buffer)


def package(*more: Path) -> dict[str, bytes]:
    """Returns the files of the compiled package weft, and of packages that add to it, as mip puts
    them on a board.
    """
    return {
        f"lib/{path.relative_to(folder).with_suffix('.mpy')}": compiled(path)
        for folder in (tiers.HERE, *more)
        for path in sorted((folder / "weft").rglob("*.py"))
    }


def run(
    board: str,
    program: Path,
    folder: Path,
    *more: Path,
    heap: int = 0,
    packages: tuple[Path, ...] = (),
) -> str:
    """Runs a program and returns its output. A program that does not reach its end fails the test.

    more: modules that the program imports.
    packages: folders of packages that add to weft.
    heap: the bytes of the heap; 0 means the firmware's 140 KB (firmware/port/main.c).
    """
    firmware, natmod = FIRMWARE[board]
    files = package(*packages)
    files["program.mpy"] = compiled(program)
    files["main.py"] = MAIN
    for path in more:
        files[f"lib/{path.stem}.mpy"] = compiled(path)
    if natmod:
        files["lib/weft_native.mpy"] = (
            tiers.MADE / "natmod" / natmod / "weft_native.mpy"
        ).read_bytes()
    disk = folder / "disk.img"
    disk.write_bytes(image(files))
    done = subprocess.run(
        [
            *MACHINE,
            *("-serial", "stdio"),
            *("-device", f"loader,file={disk},addr=0x21000000,force-raw=on"),
            *("-device", f"loader,addr=0x21fffffc,data={heap},data-len=4"),
            *("-kernel", tiers.MADE / firmware),
        ],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    output = done.stdout.decode(errors="replace").replace("\r\n", "\n")
    before, ended, _ = output.partition("board: ended\n")
    if not ended:
        raise AssertionError(
            f"{board}: {program.name} did not come to its end:\n{output}{done.stderr.decode()}"
        )
    return before


@contextmanager
def console(board: str) -> Iterator[str]:
    """Starts a board with an empty disk, which is at its prompt. Yields the path of the
    pseudo-terminal that is its serial port."""
    firmware, _ = FIRMWARE[board]
    with subprocess.Popen(
        [*MACHINE, "-serial", "pty", "-kernel", tiers.MADE / firmware],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as emulator:
        try:
            assert emulator.stdout
            line = emulator.stdout.readline()
            device = re.search(r"/dev/\S+", line)
            assert device, f"{board}: the emulator names no serial line: {line!r}"
            yield device[0]
        finally:
            emulator.kill()


def figures(output: str) -> dict[str, float]:
    """Returns the figures of a measuring program, from its lines `name: value`."""
    return {
        name: float(value) for name, value in re.findall(r"^([\w ,-]+?): ([\d.]+)$", output, re.M)
    }
