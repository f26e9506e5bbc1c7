"""A cable between a board and a PC: a thread carries its bytes. A test can unplug the cable, cut
it, or let it corrupt bytes.

Invariants
- The PC's end is a pseudo-terminal, `device`. It exists until `plug_out_pc`, even while no program
  has it open.
- Only the cable's thread reads, writes and closes the descriptors of the two ends. Another thread
  replaces them under the lock, leaves the old ones in `gone`, and wakes the cable's thread. The
  other thread must not close a descriptor itself: the cable's thread may be about to wait at it,
  and its number may already belong to another file.
- The cable's thread never waits for the PC while it holds the lock. If no program reads the device
  and it is full, further bytes are lost.
"""

from __future__ import annotations

import os
import random
import select
import threading
import tty


class Spoiler:
    """Drops, changes and inserts bytes at random, at the given rates per thousand bytes. The seed
    decides which bytes."""

    def __init__(self, seed: int, per_mille: float) -> None:
        self.dice, self.chance, self.spoilt = random.Random(seed), per_mille / 1000, 0

    def spoil(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            if self.dice.random() >= self.chance:
                out.append(byte)
                continue
            self.spoilt += 1
            how = self.dice.randrange(3)
            if how == 1:
                out.append(byte ^ 1 << self.dice.randrange(8))
            elif how == 2:
                out += bytes([byte]) + self.dice.randbytes(self.dice.randrange(40))
        return bytes(out)


class Cable:
    """A cable to the board whose descriptor is `board`. The cable owns the descriptor."""

    def __init__(self, board: int | None = None) -> None:
        self.lock = threading.Lock()
        self.woken, self.wake = os.pipe()
        self.board = board
        self.pc, self.kept = -1, -1
        self.gone: list[int] = []  # descriptors for the thread to close
        self.cut = False  # whether the cable carries no bytes
        self.faults: Spoiler | None = None
        self.carried = 0  # the number of bytes from the PC to the board
        self.closed = False
        self.thread = threading.Thread(target=self.carry)
        self.plug_in_pc()
        self.thread.start()

    def changed(self) -> None:
        os.write(self.wake, b"x")

    def plug_in_pc(self) -> None:
        pc, kept = os.openpty()
        tty.setraw(kept)
        os.set_blocking(pc, False)
        with self.lock:
            self.pc, self.kept, self.device = pc, kept, os.ttyname(kept)
        self.changed()

    def plug_out_pc(self) -> None:
        """Removes the device, as when a USB cable is pulled out."""
        with self.lock:
            self.gone += [self.kept, self.pc]
            self.pc = self.kept = -1
        self.changed()

    def plug_board(self, board: int) -> None:
        """Connects another board, or the same board after a reset."""
        with self.lock:
            if self.board is not None:
                self.gone.append(self.board)
            self.board = board
        self.changed()

    def carry(self) -> None:
        while True:
            with self.lock:
                while self.gone:
                    os.close(self.gone.pop())
                if self.closed:
                    return
                ends = [fd for fd in (self.pc, self.board) if fd is not None and fd >= 0]
            ready, _, _ = select.select([self.woken, *ends], [], [])
            if self.woken in ready:
                os.read(self.woken, 100)
                continue
            with self.lock:
                for fd in ready:
                    if fd in (self.pc, self.board):
                        self.pass_on(fd)

    def pass_on(self, fd: int) -> None:
        try:
            data = os.read(fd, 512)
        except OSError:
            data = b""
        if not data and fd == self.board:  # the board was reset, and another one will be connected
            os.close(fd)
            self.board = None
        to = self.board if fd == self.pc else self.pc
        if fd == self.pc:
            self.carried += len(data)
        if self.cut or to is None or to < 0:
            return
        if self.faults:
            data = self.faults.spoil(data)
        try:
            while data:
                data = data[os.write(to, data) :]
        except OSError:
            pass

    def close(self) -> None:
        with self.lock:
            self.closed = True
        self.changed()
        self.thread.join()
        for fd in (self.pc, self.kept, self.board, self.woken, self.wake):
            if fd is not None and fd >= 0:
                os.close(fd)

    def __enter__(self) -> Cable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
