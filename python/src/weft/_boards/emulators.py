"""Starts an emulated board: the RP2040 of emulator/ with MicroPython's firmware, in Node.

Invariant: the emulator ends when the program closes it, and when the program dies, since its
standard input ends then.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from weft.errors import BadUse

__all__ = ["Machine", "start"]

_SCRIPT = "micropython/rp2040/board.mjs"
_FIRMWARE = ".build/micropython/rp2040.elf"


class Machine:
    """An emulator that runs. The board's two lines are sockets in a folder of the emulator's own."""

    def __init__(self, command: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        at = Path(self._folder.name)
        self._prompt, self._link, self._log = at / "prompt", at / "link", at / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(self._link), str(self._prompt)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the program, which closes the board
            )

    def lines(self, patience: float) -> tuple[int, int]:
        """Returns two descriptors: of the line of the board's prompt, and of the line of its link.

        Raises:
            BadUse: the emulator has not made both sockets within `patience` seconds, or has ended.
        """
        until = time.monotonic() + patience
        first = self._opened(self._prompt, until)
        try:
            return first, self._opened(self._link, until)
        except BaseException:
            os.close(first)
            raise

    def _opened(self, path: Path, until: float) -> int:
        while True:
            with socket.socket(socket.AF_UNIX) as line:
                try:
                    line.connect(str(path))
                except OSError as error:
                    if self._process.poll() is None and time.monotonic() < until:
                        time.sleep(0.01)  # no event tells that the emulator has made its socket
                        continue
                    raise BadUse("emulated: the emulator has not started") from error
                line.setblocking(False)
                return line.detach()

    def printed(self) -> str:
        """Returns the last 400 characters that the emulator has printed."""
        try:
            return self._log.read_text(errors="replace").strip()[-400:]
        except OSError:
            return ""

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        self._folder.cleanup()


def start(chip: str, firmware: str | os.PathLike[str] | None) -> Machine:
    """Starts the emulator of `chip` with the firmware at the path `firmware`; None: the firmware
    that the checkout has built.

    Raises:
        BadUse: there is no such chip, no emulator, no node or no firmware.
    """
    if chip != "rp2040":
        raise BadUse(f'emulated: expected the chip "rp2040", got {chip!r}')
    checkout = _checkout()
    if checkout is None:
        raise BadUse(
            "emulated: the emulator is in a checkout of Weft: run the program in one, or set "
            "WEFT_CHECKOUT to its path"
        )
    node = shutil.which("node")
    if node is None:
        raise BadUse("emulated: the emulator needs node: apt-get install nodejs")
    if not (checkout / "emulator" / "node_modules").is_dir():
        raise BadUse(
            f"emulated: the emulator's packages are missing: npm ci in {checkout}/emulator"
        )
    path = Path(firmware) if firmware is not None else checkout / _FIRMWARE
    if not path.is_file():
        raise BadUse(
            f"emulated: there is no firmware {path}: `./run setup micropython` in {checkout} builds "
            "it, or firmware= names another"
        )
    return Machine([node, str(checkout / _SCRIPT), str(path), "-"])


def _checkout() -> Path | None:
    """Returns the checkout of Weft: $WEFT_CHECKOUT, or the one around the working directory or
    around the program's file.
    """
    named = os.environ.get("WEFT_CHECKOUT")
    if named:
        starts = [Path(named)]
    else:
        main: Any = sys.modules.get("__main__")
        file = getattr(main, "__file__", None)
        starts = [Path.cwd(), *([Path(file).resolve().parent] if file else [])]
    for at in starts:
        for folder in [at, *at.parents]:
            if (folder / _SCRIPT).is_file():
                return folder
    return None
