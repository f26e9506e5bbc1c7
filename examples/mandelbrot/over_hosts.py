"""Draws the Mandelbrot set on the hosts of a network, and a second picture, which shows the host
that drew each row.

    weft net up                                        in one terminal
    weft host --name gpu1 --allow over_hosts:worker    in other terminals, each in this directory
    weft host --name gpu2 --allow over_hosts:worker
    python over_hosts.py --hosts 2                     without --hosts: in processes on this machine

                        jobs                        results
           hand_out     ════►   worker × N, there   ════►   collect

A worker holds its job until the result has been sent (an extended read), so the job of a host that
dies is done elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

import click
import fractal
import numpy as np
from PIL import Image

from weft import net
from weft.processes import Channel, Supervisor, process, run
from weft.threads import process as thread

COLOURS = [(230, 97, 1), (94, 60, 153), (26, 150, 65), (43, 131, 186), (215, 48, 39), (90, 90, 90)]


@process
def worker(jobs, results, view):
    view = fractal.View(*view)
    while True:
        with jobs.extended() as band:
            heights = fractal.compute(view, *band)
            results.write([os.environ.get("WEFT_HOST", "here"), band, heights.tobytes()])


@thread
def hand_out(jobs, bands):
    for band in bands:
        jobs.write(band)


@thread
def collect(results, view, missing):
    """Returns the picture, and the host that drew each row."""
    picture, drawn = np.empty((view.height, view.width), np.float32), [""] * view.height
    while "" in drawn:
        host, (top, bottom), heights = results.read()
        if drawn[top]:
            continue  # the row was done twice: a host died after its result had arrived
        missing -= 1
        click.echo(f"{host} drew {top} to {bottom}, {missing} left", err=True)
        picture[top:bottom] = np.frombuffer(heights, np.float32).reshape(bottom - top, -1)
        drawn[top:bottom] = [host] * (bottom - top)
    return picture, drawn


def draw(view, bands, workers, where):
    jobs, results = Channel("jobs", capacity=len(bands)), Channel("results")
    size = (view.width, view.height, view.iterations)
    _, drawn, *_ = run(
        hand_out(jobs.writer(), bands),
        collect(results.reader(), view, len(bands)),
        [worker.on(where)(jobs.reader(), results.writer(), size) for _ in range(workers)],
    )
    return drawn


def who(picture, drawn):
    """Returns the picture in the colour of the host that drew each row."""
    hosts = sorted(set(drawn))
    tint = np.array([COLOURS[hosts.index(host) % len(COLOURS)] for host in drawn], np.float32)
    light = fractal.colour(picture).mean(axis=2, keepdims=True) / 255
    return (tint[:, np.newaxis, :] * (0.25 + 0.75 * light)).astype(np.uint8)


@click.command()
@click.option(
    "--hosts", type=click.IntRange(min=1), help="Wait for this many hosts, and draw there."
)
@click.option("--join", "server", metavar="URL", help="Default: the server noted by weft net up.")
@click.option("--workers", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--size", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--iterations", type=click.IntRange(min=1), default=5000, show_default=True)
@click.option("--out", default="out/mandelbrot.png", show_default=True, help="The picture.")
@click.option(
    "--who",
    "by",
    default="out/who.png",
    show_default=True,
    help="The picture of which host drew what.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(hosts, server, workers, size, jobs, iterations, out, by, as_json):
    """Draw the Mandelbrot set on other machines; a host may die meanwhile."""
    view = fractal.View(size, size, iterations)
    with contextlib.ExitStack() as left:
        where = None
        if hosts:
            where = left.enter_context(net.join(server)).hosts(hosts)
        picture, drawn = draw(view, fractal.bands(size, jobs), workers, Supervisor(where))
    for path, pixels in ((out, fractal.colour(picture)), (by, who(picture, drawn))):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    report = {
        "digest": hashlib.sha256(picture.tobytes()).hexdigest()[:16],
        "rows": {host: drawn.count(host) for host in sorted(set(drawn))},
    }
    print(json.dumps(report) if as_json else f"{out}, and {by}: {report['rows']}")


if __name__ == "__main__":
    main()
