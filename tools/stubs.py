"""Writes python/src/weft/threads.pyi: the types of weft.coroutines with what is awaited there called.

    python3 tools/stubs.py            writes it
    python3 tools/stubs.py --check    exit status 1 if it is not what would be written

The two differ in nothing else, so one is written by hand and this one by rule; weft.greenlets takes it over whole.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TYPES = Path(__file__).resolve().parent.parent / "python/src/weft"

RULES = (
    (
        r"\A.*",
        '"""Types of weft.threads: those of weft.coroutines, by tools/stubs.py: do not edit."""',
    ),
    (
        r"import AsyncIterator, Awaitable, Callable, Coroutine, Iterable$",
        "import Callable, Coroutine, Iterable, Iterator",
    ),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAbstractAsyncContextManager\b", "AbstractContextManager"),
    (r"\basync def\b", "def"),
    (r"\b__a(iter|next|enter|exit)__", r"__\1__"),
)


def without_awaitable(text: str) -> str:
    """`Awaitable[X]` becomes X, whatever brackets are in X."""
    word = "Awaitable["
    while (start := text.find(word)) >= 0:
        depth, end = 1, start + len(word)
        while depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        text = text[:start] + text[start + len(word) : end - 1] + text[end:]
    return text


def called(text: str) -> str:
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return without_awaitable(text)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: stubs.py [--check]", file=sys.stderr)
        return 2
    text = called((TYPES / "coroutines.pyi").read_text(encoding="utf-8"))
    stub = TYPES / "threads.pyi"
    if not arguments:
        stub.write_text(text, encoding="utf-8")
    elif stub.read_text(encoding="utf-8") != text:
        print(
            "python/src/weft/threads.pyi is out of date: run python3 tools/stubs.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
