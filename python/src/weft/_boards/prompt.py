"""MicroPython's raw prompt, at which a PC runs code on a board.

    enter() ──Ctrl-C, Ctrl-A──► the raw prompt ──ask(code)──► the code's output ──► the raw prompt
                                               ──begin(code)──► the code has the line

The protocol: the PC sends code and Ctrl-D. The board sends "OK"; what the code prints, and Ctrl-D;
the traceback of the code, which is empty if it has not raised, and Ctrl-D; and ">".
"""

from __future__ import annotations

import os
import select
import time

from weft.errors import BadUse

__all__ = ["Prompt"]

_PROMPT = b"raw REPL; CTRL-B to exit\r\n>"
_AGAIN = 0.3  # seconds after which the board is asked again for its raw prompt


class Prompt:
    """The raw prompt of the board at the descriptor `line`."""

    def __init__(self, line: int, where: str) -> None:
        self._line, self._where = line, where
        self._came = b""

    def enter(self, patience: float) -> None:
        """Stops what the board runs, and waits for its raw prompt.

        Raises:
            BadUse: no raw prompt appears within `patience` seconds, or the line is closed.
        """
        until = time.monotonic() + patience
        while True:
            self._came = b""
            self._write(b"\r\x03\x03\r\x01", until)
            if self._until(_PROMPT, min(until, time.monotonic() + _AGAIN)) is not None:
                return
            if time.monotonic() >= until:
                last = f" (it said {self._came[-60:]!r})" if self._came else ""
                raise BadUse(
                    f"connect: what is at {self._where} does not answer as a MicroPython board does "
                    f"within {patience:g} s{last}: is MicroPython on it, is it the right port, "
                    "and does its program let Ctrl-C through?"
                )

    def run(self, code: str, patience: float) -> str:
        """Runs code on the board, and returns what it prints.

        Raises:
            BadUse: the code raises, or is not done within `patience` seconds.
        """
        printed, raised = self.ask(code, patience)
        if raised:
            raise BadUse(f"connect: the board at {self._where} said:\n{raised}")
        return printed

    def ask(self, code: str, patience: float) -> tuple[str, str]:
        """Runs code on the board. Returns what it prints, and its traceback, if it raises.

        Raises:
            BadUse: the code is not done within `patience` seconds.
        """
        until = time.monotonic() + patience
        self.begin(code, patience)
        printed = self._must(b"\x04", until)
        raised = self._must(b"\x04", until)
        self._must(b">", until)
        return _text(printed), _text(raised)

    def begin(self, code: str, patience: float) -> None:
        """Starts code on the board. From then on the code has the line."""
        until = time.monotonic() + patience
        self._came = b""
        self._write(code.encode() + b"\x04", until)
        self._must(b"OK", until, 1)  # what follows OK is for the code, so it is not read here

    def leave(self, patience: float) -> None:
        """Waits until the code that has had the line has ended, and leaves the board at its ordinary
        prompt. If the code does not end in time, does nothing.
        """
        until = time.monotonic() + patience
        while time.monotonic() < until:
            self._came = b""
            self._write(b"\x01", until)
            if self._until(_PROMPT, min(until, time.monotonic() + patience / 10)) is not None:
                self._write(b"\x02", until)
                return

    def _must(self, text: bytes, until: float, most: int = 4096) -> bytes:
        before = self._until(text, until, most)
        if before is None:
            raise BadUse(
                f"connect: the board at {self._where} does not answer: it has not sent {text!r} "
                f"(last {self._came[-60:]!r}); reset it"
            )
        return before

    def _until(self, text: bytes, until: float, most: int = 4096) -> bytes | None:
        """Returns the bytes before `text`, or None if `text` does not arrive in time. Reads at most
        `most` bytes at a time.
        """
        while text not in self._came:
            if not self._ready(select.POLLIN, until):
                return None
            try:
                came = os.read(self._line, most)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error.strerror) from error
            if not came:
                raise self._gone("its line was closed")
            self._came += came
        before, _, self._came = self._came.partition(text)
        return before

    def _write(self, data: bytes, until: float) -> None:
        while data:
            if not self._ready(select.POLLOUT, until):
                raise BadUse(f"connect: the board at {self._where} takes no bytes: reset it")
            try:
                data = data[os.write(self._line, data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error.strerror) from error

    def _ready(self, what: int, until: float) -> bool:
        poll = select.poll()
        poll.register(self._line, what)
        return bool(poll.poll(max(0, until - time.monotonic()) * 1000))

    def _gone(self, why: str | None) -> BadUse:
        return BadUse(f"connect: the board at {self._where} was unplugged: {why}")


def _text(came: bytes) -> str:
    return came.decode(errors="replace").replace("\r\n", "\n")
