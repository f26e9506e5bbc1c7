"""Counts words, without processes: defines how text becomes words, and how a file is cut into
pieces.

Invariant: a piece ends where a line ends, so no word is cut in two; joined, the pieces of a file
are the file.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# Letters of any script, with apostrophes inside a word.
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
PIECE = 32 * 1024  # characters, about


def count(text: str) -> Counter[str]:
    return Counter(word.group() for word in WORD.finditer(text.lower()))


def pieces(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        while lines := file.readlines(PIECE):
            yield "".join(lines)


def plain(paths: Iterable[Path]) -> Counter[str]:
    """Returns the counts that the network must find, computed by one counter in one loop."""
    total: Counter[str] = Counter()
    for path in paths:
        total.update(count(path.read_text(encoding="utf-8", errors="replace")))
    return total


def most_frequent(total: Counter[str], top: int) -> list[tuple[str, int]]:
    """Returns the most frequent words by count, then by word, so that the order does not depend on
    which worker finished first.
    """
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))[:top]
