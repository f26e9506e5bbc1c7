"""Counts the words of text files with N workers.

    weft run examples/wordcount/wordcount.py
    weft run examples/wordcount/wordcount.py --on threads --workers 4 --check FILE…

           pieces                counts
      reader ════►  counter × N  ════►  merge

No process needs a message to stop. When the reader has sent its last piece, it returns and so
releases its end; then the counters' loops end, and after them the loop of the merger (rule 3.4).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import click
import words

from weft import Channel, Parallel, process, run

LICENCES = Path("/usr/share/common-licenses")  # text files that are on every Debian machine


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


@click.command(
    epilog="Choose the backend with: weft run wordcount.py --on coroutines|greenlets|threads|processes [these options]"
)
@click.argument(
    "files", nargs=-1, type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 2,
    show_default=True,
    help="Processes that count.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many words to print.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Compare with a plain collections.Counter; exit status 1 if they differ.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(files, workers, top, check, as_json):
    """Count the words of text FILES (default: the licence texts of this machine) with N workers."""
    if not files:
        files = sorted(
            path for path in LICENCES.glob("*") if path.is_file() and not path.is_symlink()
        )
    if not files:
        raise click.UsageError(f"there are no files in {LICENCES}; give text files")
    began = time.perf_counter()
    total = run(count_words(files, workers))
    seconds = time.perf_counter() - began
    frequent = words.most_frequent(total, top)
    same = total == words.plain(files) if check else None
    if as_json:
        summary = {
            "example": "wordcount",
            "seconds": round(seconds, 4),
            "files": len(files),
            "words": total.total(),
            "different": len(total),
            "top": frequent,
            "check": same,
        }
        print(json.dumps(summary, ensure_ascii=False))
    else:
        width = max((len(word) for word, _ in frequent), default=0)
        for word, number in frequent:
            print(f"{word:<{width}}  {number:>7}")
        print(
            f"{total.total()} words, {len(total)} different, in {len(files)} files: {seconds:.3f} s"
        )
        if same:
            print("a plain counter finds the same")
    if same is False:
        raise click.ClickException("a plain counter finds something else")


if __name__ == "__main__":
    main()
