"""Questions to the program where a channel lives, and their answers: over two channels, one
question at a time.

Invariants
- Each question has a number, which its answer has too: who was cancelled as it waited leaves an
  answer that nobody takes for its own.
- Who answers waits for nobody: `answers` has a buffer without a bound.
"""

from __future__ import annotations

from typing import Any

from weft import threads
from weft.errors import Cancelled

__all__ = ["Asking", "Turn", "channels"]


def channels() -> tuple[Any, Any]:
    """One for questions, (number, what, …), and one for answers, (number, answer)."""
    return threads.Channel("asked"), threads.Channel("answers", capacity=16, overflow="unbounded")


class Turn:
    """One at a time, and who waits lets the other greenlets of its thread go on: a token in a
    buffer."""

    def __init__(self) -> None:
        token: Any = threads.Channel("turn", capacity=1)
        self._take, self._give = token.reader(), token.writer()
        self._give.write(None)

    def __enter__(self) -> None:
        self._take.read()

    def __exit__(self, *_: object) -> None:
        try:
            self._give.write(None)
        except Cancelled:  # it had not given it back
            self._give.write(None)
            raise


class Asking:
    """The side that asks, by a writer end of the one channel and a reader end of the other."""

    def __init__(self, asked: Any, answers: Any) -> None:
        self._asked, self._answers = asked, answers
        self._turn, self._number = Turn(), 0

    def ask(self, what: str, *more: Any) -> Any:
        """The answer.

        Raises:
            Cancelled; PeerDied: who answers has ended.
        """
        with self._turn:
            self._number += 1
            self._asked.write((self._number, what, *more))
            while True:
                number, answer = self._answers.read()
                if number == self._number:
                    return answer
