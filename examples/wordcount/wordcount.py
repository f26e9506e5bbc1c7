"""Counts the words of text files with N workers.

    weft run examples/wordcount/wordcount.py
    weft run examples/wordcount/wordcount.py --on threads --workers 4 --check FILE…

           pieces                counts
      reader ════►  counter × N  ════►  merge

Nobody is told when to stop: when the reader has sent its last piece it returns and lets go of its end, so the counters'
loops end, so the merger's does (rule 3.4).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import words
from weft import Channel, Parallel, process, run

LICENCES = Path("/usr/share/common-licenses")  # text files that every Debian machine has


@process
async def reader(pieces, paths):
    for path in paths:
        for piece in words.pieces(path):
            await pieces.write(piece)


@process
async def counter(pieces, counts):
    mine = Counter()
    async for piece in pieces:
        mine.update(words.count(piece))
    await counts.write(mine)


@process
async def merge(counts):
    total = Counter()
    async for part in counts:
        total.update(part)
    return total


@process
async def count_words(paths, workers):
    pieces, counts = Channel("pieces"), Channel("counts")
    *_, total = await Parallel(
        reader(pieces.writer(), paths),
        [counter(pieces.reader(), counts.writer()) for _ in range(workers)],
        merge(counts.reader()),
    )
    return total


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def text_file(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{name} is not a file; give text files, or none for the licence texts in {LICENCES}")
    if not os.access(path, os.R_OK):
        raise argparse.ArgumentTypeError(f"{name} may not be read by this user")
    return path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="wordcount.py",
        description="Count the words of text files with N workers.",
        epilog="Choose the backend with: weft run wordcount.py --on coroutines|threads [these options]",
    )
    parser.add_argument("files", nargs="*", type=text_file, help=f"text files (default: those in {LICENCES})")
    parser.add_argument("--workers", type=at_least_one, default=os.cpu_count() or 2, help="processes that count (%(default)s)")
    parser.add_argument("--top", type=at_least_one, default=10, help="how many words to print (%(default)s)")
    parser.add_argument("--check", action="store_true", help="compare with a plain collections.Counter; exit status 1 if they differ")
    parser.add_argument("--json", action="store_true", help="close with one line of JSON on stdout")
    options = parser.parse_args()
    if not options.files:
        options.files = sorted(path for path in LICENCES.glob("*") if path.is_file() and not path.is_symlink())
        if not options.files:
            parser.error(f"there are no files in {LICENCES}; give text files")
    return options


def main() -> None:
    options = arguments()
    began = time.perf_counter()
    total = run(count_words(options.files, options.workers))
    seconds = time.perf_counter() - began
    top = words.most_frequent(total, options.top)
    same = total == words.plain(options.files) if options.check else None
    if options.json:
        summary = {
            "example": "wordcount",
            "seconds": round(seconds, 4),
            "files": len(options.files),
            "words": total.total(),
            "different": len(total),
            "top": top,
            "check": same,
        }
        print(json.dumps(summary, ensure_ascii=False))
    else:
        width = max((len(word) for word, _ in top), default=0)
        for word, number in top:
            print(f"{word:<{width}}  {number:>7}")
        print(f"{total.total()} words, {len(total)} different, in {len(options.files)} files: {seconds:.3f} s")
        if same:
            print("a plain counter finds the same")
    if same is False:
        sys.exit("wordcount: a plain counter finds something else")


if __name__ == "__main__":
    main()
