"""Sends questions to the program that is the home of a channel, and receives the answers: over two
channels, one question at a time.

Invariants
- A question and its answer have the same number. So if a process is cancelled while it waits, no
  other process takes the late answer for an answer of its own.
- The side that answers never waits: `answers` has a buffer without a bound.
"""

from __future__ import annotations

from typing import Any

from weft import threads
from weft.errors import Cancelled

__all__ = ["Asking", "Turn", "channels"]


def channels() -> tuple[Any, Any]:
    """Returns a channel for questions, (number, what, …), and one for answers, (number, answer)."""
    return threads.Channel("asked"), threads.Channel("answers", capacity=16, overflow="unbounded")


class Turn:
    """The permission to ask a question, represented by a token in a buffer. One process asks at a
    time, and a process that waits for its turn lets the other greenlets of its thread run.
    """

    def __init__(self) -> None:
        token: Any = threads.Channel("turn", capacity=1)
        self._take, self._give = token.reader(), token.writer()
        self._give.write(None)

    def __enter__(self) -> None:
        self._take.read()

    def __exit__(self, *_: object) -> None:
        try:
            self._give.write(None)
        except Cancelled:  # the cancelled write has not returned the token
            self._give.write(None)
            raise


class Asking:
    """The side that asks, with a writer end of one channel and a reader end of the other."""

    def __init__(self, asked: Any, answers: Any) -> None:
        self._asked, self._answers = asked, answers
        self._turn, self._number = Turn(), 0

    def ask(self, what: str, *more: Any) -> Any:
        """Asks a question and returns the answer.

        Raises:
            Cancelled; PeerDied: the side that answers has ended.
        """
        with self._turn:
            self._number += 1
            self._asked.write((self._number, what, *more))
            while True:
                number, answer = self._answers.read()
                if number == self._number:
                    return answer
