"""Boards for tests of weft.boards: MicroPython's unix port with a raw prompt, at the end of a
pseudo-terminal, and pseudo-terminals without a board.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft import boards

from . import tiers

PATIENT = 20.0  # seconds of lease: a busy machine may be slow without being dead
PROMPT = tiers.HERE / "tests" / "raw_prompt.py"


class UnixBoard:
    """A board. Its files are in `folder`, and it imports Weft from the folder `package`."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        heap: str = "",
        package: Path = tiers.HERE,
        tier: str = "native",
    ) -> None:
        board, self._kept = os.openpty()
        tty.setraw(self._kept)
        self.device = os.ttyname(self._kept)
        self.process = subprocess.Popen(
            [*tiers.command(tier, heap), str(PROMPT), *options],
            env={**os.environ, "MICROPYPATH": f"{folder / 'lib'}:{package}:.frozen"},
            cwd=folder,
            stdin=board,
            stdout=board,
            stderr=subprocess.DEVNULL,
        )
        os.close(board)

    def unplug(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._kept >= 0:
            os.close(self._kept)
            self._kept = -1

    def __enter__(self) -> UnixBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()


@contextmanager
def one_board(folder: Path, **options: Any) -> Iterator[tuple[UnixBoard, boards.Board]]:
    """Starts and connects a board that only the caller uses."""
    with UnixBoard(folder, **options) as unix, boards.connect(unix.device, lease=PATIENT) as made:
        yield unix, made


class Scripted:
    """A stand-in for a board, at a pseudo-terminal. For each pair of `answers` it waits for the
    first part, then writes the second. After the last pair it stays silent, or is unplugged.
    """

    def __init__(self, *answers: tuple[bytes, bytes], unplugged: bool) -> None:
        self._board, self._kept = os.openpty()
        tty.setraw(self._kept)
        self.device = os.ttyname(self._kept)
        self._answers, self._unplugged = answers, unplugged
        self._over, self._end = os.pipe()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        came = b""
        for awaited, answer in self._answers:
            while awaited not in came:
                if not self._ready():
                    return
                came += os.read(self._board, 4096)
            came = came.partition(awaited)[2]
            os.write(self._board, answer)
        if self._unplugged:
            os.close(self._kept)
            os.close(self._board)
            self._board = self._kept = -1

    def _ready(self) -> bool:
        ready, _, _ = select.select([self._board, self._over], [], [])
        return self._over not in ready

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._end, b"x")
        self._thread.join()
        for one in (self._board, self._kept, self._over, self._end):
            if one >= 0:
                os.close(one)
