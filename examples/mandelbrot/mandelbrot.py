"""Draws a deep view of the Mandelbrot set with one producer-consumer and N workers.

    weft run examples/mandelbrot/mandelbrot.py
    weft run examples/mandelbrot/mandelbrot.py --on threads --workers 4 --out picture.png

The network is that of "Three unique implementations of processes for PyCSP" (Friborg, Bjørndalen,
Vinter; CPA 2009), section 5.3: the producer-consumer hands out jobs and takes results by one choice
that has an input and an output guard, so workers may ask for jobs and deliver results in any order.

                        jobs
      producer_consumer ════►  worker × N
                        ◄════
                       results
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import click
import fractal
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from weft import Channel, Output, Parallel, process, run, select

PICTURE, JOBS, ITERATIONS = 1000, 100, 5000  # the values of the paper


@process
async def worker(jobs, results, view):
    async for band in jobs:
        await results.write((band, fractal.compute(view, *band)))


@process
async def producer_consumer(jobs, results, view, bands, progress):
    """Hands out every band and collects every result; when it returns, its ends are closed and the
    workers end.
    """
    picture = np.empty((view.height, view.width), np.float32)
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
            await progress.write(None)
        else:
            waiting.pop()
    return picture


@process
async def draw(view, bands, workers, progress):
    jobs, results = Channel("jobs"), Channel("results")
    heights, *_ = await Parallel(
        producer_consumer(jobs.writer(), results.reader(), view, bands, progress),
        [worker(jobs.reader(), results.writer(), view) for _ in range(workers)],
    )
    return heights


@process
async def show(progress, bar, task):
    async for _ in progress:
        bar.advance(task)


@click.command(
    epilog="Choose the backend with: weft run mandelbrot.py --on coroutines|greenlets|threads|processes [these options]"
)
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=PICTURE,
    show_default=True,
    help="Width and height in pixels.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=JOBS,
    show_default=True,
    help="Pieces into which the work is cut.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 2,
    show_default=True,
    help="Processes that compute.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=ITERATIONS,
    show_default=True,
    help="Most iterations a pixel may take.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="out/mandelbrot.png",
    show_default=True,
    help="The picture to write.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(size, jobs, workers, iterations, out, as_json):
    """Draw a deep view of the Mandelbrot set: one producer-consumer, N workers."""
    view = fractal.View(size, size, iterations)
    bands = fractal.bands(size, jobs)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"mandelbrot, {workers} workers", total=len(bands))
        began = time.perf_counter()
        # With this capacity, drawing never waits for the progress bar.
        done = Channel("done", capacity=len(bands))
        heights, _ = run(
            draw(view, bands, workers, done.writer()),
            show.on("threads")(done.reader(), bar, task),  # the progress bar is in this OS process
        )
        seconds = time.perf_counter() - began
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(fractal.colour(heights)).save(out)
    except (OSError, ValueError) as error:
        raise click.ClickException(
            f"cannot write {out}: {error}; choose another file with --out"
        ) from None
    if as_json:
        summary = {
            "example": "mandelbrot",
            "seconds": round(seconds, 3),
            "out": str(out.resolve()),
            "pixels": size**2,
            "jobs": len(bands),
            "inside": int(np.isnan(heights).sum()),
            "digest": hashlib.sha256(heights.tobytes()).hexdigest()[:16],
        }
        print(json.dumps(summary))
    else:
        print(f"{size} × {size} pixels in {len(bands)} jobs: {seconds:.2f} s")
        print(f"the picture is {out.resolve()}")


if __name__ == "__main__":
    main()
