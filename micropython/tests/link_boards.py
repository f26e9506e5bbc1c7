"""Emulated boards at the end of a cable, which run MicroPython's firmware with a main.py. On the
Cortex-M3 the link shares the UART of the prompt, as it shares USB on a Pico; on the RP2040 it has
UART 1 for itself. Both emulators run in real time."""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

from littlefs import LittleFS

from . import board, tiers
from .cable import Cable

HERE = tiers.HERE / "tests"
QEMU = [*"qemu-system-arm -machine mps2-an385 -nographic -monitor none -semihosting".split()]
FLASH = 1024 * 1024


class Firmware:
    """A board with these files on its disk. `power_on` starts the board, or starts it again with
    the original contents of the disk."""

    def __init__(self, folder: Path, files: dict[str, bytes]) -> None:
        self.disk, self.path = folder / "disk.img", str(folder / "uart.sock")
        self.disk.write_bytes(self.image(files))
        self.cable = Cable()
        self.process: subprocess.Popen[bytes] | None = None
        self.printed = b""
        self.power_on()

    def image(self, files: dict[str, bytes]) -> bytes:
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def before(self) -> None:
        pass

    def power_on(self) -> None:
        self.power_off()
        Path(self.path).unlink(missing_ok=True)
        self.before()
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.reader = threading.Thread(target=self.collect, args=[self.process])
        self.reader.start()
        self.cable.plug_board(self.connected().detach())

    def connected(self) -> socket.socket:
        """Returns the other end of the board's serial line."""
        line = socket.socket(socket.AF_UNIX)
        while True:
            try:
                line.connect(self.path)
                return line
            except OSError:
                assert self.process and self.process.poll() is None, f"{self.printed!r}"

    def collect(self, emulator: subprocess.Popen[bytes]) -> None:
        assert emulator.stdout
        for line in emulator.stdout:
            self.printed += line

    def power_off(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            assert self.process.stdout
            self.process.stdout.close()
            self.process = None

    def close(self) -> None:
        self.power_off()
        self.cable.close()


class CortexM3(Firmware):
    KIND = "cortex-m3"
    STREAM = "sys.stdin.buffer, sys.stdout.buffer"
    BEFORE = "import micropython, sys\nmicropython.kbd_intr(-1)\n"

    def image(self, files: dict[str, bytes]) -> bytes:
        return board.image({**board.package(), **files})

    # The emulator connects to a socket of this test: the board's UART stops forever if the board
    # sends bytes while no program is connected.
    def before(self) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(1)

    def connected(self) -> socket.socket:
        with self.listening:
            return self.listening.accept()[0]

    def command(self) -> list[str]:
        return [
            *QEMU,
            *("-serial", f"unix:{self.path}"),
            *("-device", f"loader,file={self.disk},addr=0x21000000,force-raw=on"),
            *("-kernel", str(tiers.MADE / "firmware-native.elf")),
        ]


class Rp2040(Firmware):
    KIND = "rp2040"
    STREAM = "UART(1, 115200, rxbuf=1024)"
    BEFORE = "from machine import UART\n"

    def image(self, files: dict[str, bytes]) -> bytes:
        disk = LittleFS(block_size=4096, block_count=FLASH // 4096, prog_size=256)
        for path, content in files.items():
            with disk.open(path, "wb") as file:
                file.write(content)
        return bytes(disk.context.buffer)

    def command(self) -> list[str]:
        script, firmware = tiers.HERE / "rp2040" / "board.mjs", tiers.MADE / "rp2040.elf"
        return ["node", str(script), str(firmware), str(self.disk), self.path]


def program(kind: type[CortexM3] | type[Rp2040]) -> dict[str, bytes]:
    """Returns the files for the disk of a board that serves the tests."""
    return {
        "main.py": f"{kind.BEFORE}import link_firmware\nlink_firmware.main({kind.STREAM})\n".encode(),
        "link_firmware.mpy": board.compiled(HERE / "link_firmware.py"),
        "link_board.mpy": board.compiled(HERE / "link_board.py"),
    }


class Bare(Firmware):
    """The RP2040 with a program of mcu/, without MicroPython. The link uses UART 0."""

    def __init__(self, folder: Path, program: str, variety: str = "rp2040") -> None:
        self.program, self.variety = program, variety
        super().__init__(folder, {})

    def image(self, files: dict[str, bytes]) -> bytes:
        return b""

    def command(self) -> list[str]:
        emulator = str(tiers.ROOT / "emulator" / "bin" / "weft-rp2040")
        elf = str(tiers.ROOT / ".build" / "mcu" / self.variety / f"{self.program}.elf")
        return [emulator, "run", elf, "--uart-socket", self.path, "--uart-delay", "--no-uart"]
