"""Tests of cable.py: an end is unplugged or plugged in while the cable's thread is about to
wait."""

from __future__ import annotations

import os
import select
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from . import cable


class Stops:
    """Takes the place of the module `select`. On request it stops the cable's thread just before
    the thread waits."""

    def __init__(self) -> None:
        self.asked, self.there, self.go = threading.Event(), threading.Event(), threading.Event()
        self.woken = threading.Event()

    def select(self, *args: Any) -> Any:
        if self.asked.is_set() and not self.go.is_set():
            self.there.set()
            self.go.wait()
        try:
            return select.select(*args)
        finally:
            if self.go.is_set():
                self.woken.set()

    def hold_up(self, line: cable.Cable) -> None:
        self.asked.set()
        line.changed()
        self.there.wait()

    def let_go(self) -> None:
        """Resumes the thread, and returns when the thread's wait has ended."""
        self.go.set()
        self.woken.wait()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Stops:
    stops = Stops()
    monkeypatch.setattr(cable, "select", SimpleNamespace(select=stops.select))
    return stops


def carries(line: cable.Cable, board: socket.socket) -> None:
    """Checks that the cable carries bytes in both directions now."""
    pc = os.open(line.device, os.O_RDWR | os.O_NOCTTY)
    try:
        os.write(pc, b"down")
        assert board.recv(4, socket.MSG_WAITALL) == b"down"
        got = b""
        # A device that is full loses the bytes; then the test must first read earlier bytes.
        while b"up" not in got:
            board.sendall(b"up")
            got += os.read(pc, 1000)
    finally:
        os.close(pc)


def test_a_device_that_is_plugged_out_as_the_thread_begins_to_wait(held: Stops) -> None:
    """The thread is about to wait at the device's descriptor when the device is unplugged. If the
    test's thread closed the descriptor, the cable's thread would end, and the cable would carry
    nothing more."""
    ends, board = socket.socketpair()
    with board, cable.Cable(ends.detach()) as line:
        carries(line, board)
        held.hold_up(line)
        line.plug_out_pc()
        held.let_go()
        line.plug_in_pc()
        carries(line, board)


def test_a_board_that_is_changed_as_the_thread_begins_to_wait(held: Stops) -> None:
    first, old = socket.socketpair()
    second, board = socket.socketpair()
    with old, board, cable.Cable(first.detach()) as line:
        carries(line, old)
        held.hold_up(line)
        line.plug_board(second.detach())
        held.let_go()
        assert old.recv(1) == b""  # the cable has closed the first board's descriptor
        carries(line, board)


def test_what_was_plugged_out_is_let_go_of() -> None:
    ends, board = socket.socketpair()
    with board, cable.Cable(ends.detach()) as line:
        pc = os.open(line.device, os.O_RDWR | os.O_NOCTTY)
        line.plug_out_pc()
        try:
            assert os.read(pc, 1) == b""
        except OSError:
            pass
        os.close(pc)
        line.plug_in_pc()
        carries(line, board)


def test_a_board_that_talks_while_nobody_is_at_the_pc() -> None:
    """The board writes more bytes than the device and its own line have room for. The excess is
    lost, and the board does not wait.
    """
    ends, board = socket.socketpair()
    with board, cable.Cable(ends.detach()) as line:
        board.sendall(b"x" * 1_000_000)
        line.plug_out_pc()
        line.plug_in_pc()
        carries(line, board)
