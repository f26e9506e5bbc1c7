"""Draws a deep view of the Mandelbrot set with one producer-consumer and N workers.

    weft run examples/mandelbrot/mandelbrot.py
    weft run examples/mandelbrot/mandelbrot.py --on threads --workers 4 --out picture.png

The network is that of "Three unique implementations of processes for PyCSP" (Friborg, Bjørndalen, Vinter; CPA 2009), section
5.3: the producer-consumer hands out jobs and takes results by one choice that has an input and an output guard, so workers
ask for jobs and deliver results in any order they like.

                        jobs
      producer_consumer ════►  worker × N
                        ◄════
                       results
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import fractal
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from weft import Channel, Output, Parallel, process, run, select

PICTURE, JOBS, ITERATIONS = 1000, 100, 5000  # as in the paper


@process
async def worker(jobs, results, view):
    async for band in jobs:
        await results.write((band, fractal.compute(view, *band)))


@process
async def producer_consumer(jobs, results, bands, picture, progress):
    """Hands out every band and collects every result; when it returns, its ends close and the workers end."""
    waiting = list(reversed(bands))
    missing = len(bands)
    while missing:
        if waiting:
            chosen, result = await select(results, Output(jobs, waiting[-1]))
        else:
            chosen, result = 0, await results.read()
        if chosen == 0:
            (top, bottom), picture[top:bottom] = result
            missing -= 1
            progress()
        else:
            waiting.pop()
    return picture


@process
async def draw(view, bands, workers, progress):
    jobs, results = Channel("jobs"), Channel("results")
    picture = np.empty((view.height, view.width), np.float32)
    heights, *_ = await Parallel(
        producer_consumer(jobs.writer(), results.reader(), bands, picture, progress),
        [worker(jobs.reader(), results.writer(), view) for _ in range(workers)],
    )
    return heights


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mandelbrot.py",
        description="Draw a deep view of the Mandelbrot set: one producer-consumer, N workers.",
        epilog="Choose the backend with: weft run mandelbrot.py --on coroutines|threads [these options]",
    )
    parser.add_argument("--size", type=at_least_one, default=PICTURE, help="width and height in pixels (%(default)s)")
    parser.add_argument("--jobs", type=at_least_one, default=JOBS, help="pieces the work is cut into (%(default)s)")
    parser.add_argument("--workers", type=at_least_one, default=os.cpu_count() or 2, help="processes that compute (%(default)s)")
    parser.add_argument("--iterations", type=at_least_one, default=ITERATIONS, help="most iterations a pixel may take (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/mandelbrot.png"), help="the picture to write (%(default)s)")
    parser.add_argument("--json", action="store_true", help="close with one line of JSON on stdout")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    view = fractal.View(options.size, options.size, options.iterations)
    bands = fractal.bands(options.size, options.jobs)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"mandelbrot, {options.workers} workers", total=len(bands))
        began = time.perf_counter()
        heights = run(draw(view, bands, options.workers, lambda: bar.advance(task)))
        seconds = time.perf_counter() - began
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(fractal.colour(heights)).save(options.out)
    except (OSError, ValueError) as error:
        sys.exit(f"mandelbrot: cannot write {options.out}: {error}; choose another file with --out")
    if options.json:
        summary = {
            "example": "mandelbrot",
            "seconds": round(seconds, 3),
            "out": str(options.out.resolve()),
            "pixels": options.size**2,
            "jobs": len(bands),
            "inside": int(np.isnan(heights).sum()),
        }
        print(json.dumps(summary))
    else:
        print(f"{options.size} × {options.size} pixels in {len(bands)} jobs: {seconds:.2f} s")
        print(f"the picture is {options.out.resolve()}")


if __name__ == "__main__":
    main()
