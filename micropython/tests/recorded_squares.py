"""Code of the tests of both boards' recorders: the board squares numbers, and the PC fetches the
board's events over the link.
"""

from __future__ import annotations

import time
from pathlib import Path

from weft import serial
from weft.observe import flight
from weft.threads import Channel, process, run


def asked(pc: serial.Board, folder: Path, patience: float) -> int:
    """Has the board square five numbers while this program is recorded in here.flight. Fetches the
    board's events into board.flight, and the later events into later.flight. Returns the time
    at which board.flight was complete, in ns of time.monotonic_ns().
    """
    numbers, answers = Channel("numbers"), Channel("answers")
    pc.give("numbers", numbers.reader())
    pc.give("answers", answers.writer())
    to, back = numbers.writer(), answers.reader()

    @process
    def asks() -> None:
        for n in range(5):
            to(n)
            assert back() == n * n

    with flight(folder / "here.flight"):
        run(asks())
    pc.flight(folder / "board.flight", patience=patience)
    fetched = time.monotonic_ns()
    pc.flight(folder / "later.flight", patience=patience)
    return fetched
