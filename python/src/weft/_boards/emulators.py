"""Starts an emulated board: the RP2040 of emulator/ in Node, with MicroPython's firmware or with
firmware of one program.

Invariant: the emulator ends when the program closes it, and when the program dies, since its
standard input ends then.
"""

from __future__ import annotations

import contextlib
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

__all__ = ["Machine", "checkout", "start", "start_bare"]

_SCRIPT = "micropython/rp2040/board.mjs"
_FIRMWARE = ".build/micropython/rp2040.elf"


class Machine:
    """An emulator that runs. The board's lines are sockets in a folder of the emulator's own: the
    link, and the prompt if the board has one. In the command LINK and PROMPT stand for their paths.
    """

    def __init__(self, command: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        at = Path(self._folder.name)
        self._prompt, self._link, self._log = at / "prompt", at / "link", at / "log"
        lines = {"LINK": str(self._link), "PROMPT": str(self._prompt)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [lines.get(word, word) for word in command],
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

    def link(self, patience: float) -> int:
        """Returns a descriptor of the line of a board that has no prompt.

        Raises:
            BadUse: as lines() does.
        """
        return self._opened(self._link, time.monotonic() + patience)

    def _opened(self, path: Path, until: float) -> int:
        while True:
            with socket.socket(socket.AF_UNIX) as line:
                try:
                    line.connect(str(path))
                except OSError as error:
                    if self._process.poll() is None and time.monotonic() < until:
                        time.sleep(0.01)  # no event reports that the emulator has made its socket
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

    def ended(self) -> str:
        """Waits for the emulator to end. Returns what it has printed; "" if it still runs after a
        second."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
            return self.printed()
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
    root, node = _found("emulated")
    path = Path(firmware) if firmware is not None else root / _FIRMWARE
    if not path.is_file():
        raise BadUse(
            f"emulated: there is no firmware {path}: `./run setup micropython` in {root} builds "
            "it, or firmware= names another"
        )
    return Machine([node, str(root / _SCRIPT), str(path), "-", "LINK", "PROMPT"])


def start_bare(firmware: Path) -> Machine:
    """Starts the emulator of the RP2040 with the firmware of one program, whose link is on UART 0.

    Raises:
        BadUse: there is no emulator or no node.
    """
    root, node = _found("bare")
    command = [node, str(root / "emulator/bin/weft-rp2040"), "run", str(firmware)]
    options = ["--uart-socket", "LINK", "--uart-delay", "--no-uart", "--quiet", "--until-stdin"]
    return Machine([*command, *options])


def _found(what: str) -> tuple[Path, str]:
    """Returns the checkout and the path of node. `what` is the function's name for messages."""
    root = checkout()
    if root is None:
        raise BadUse(
            f"{what}: the emulator is in a checkout of Weft: run the program in one, or set "
            "WEFT_CHECKOUT to its path"
        )
    node = shutil.which("node")
    if node is None:
        raise BadUse(f"{what}: the emulator needs node: apt-get install nodejs")
    if not (root / "emulator" / "node_modules").is_dir():
        raise BadUse(f"{what}: the emulator's packages are missing: npm ci in {root}/emulator")
    return root, node


def checkout() -> Path | None:
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
