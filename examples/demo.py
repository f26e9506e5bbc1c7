"""The main job, `./run demo`: word count and Mandelbrot on each backend, one table of times, and
one picture.

Each job is an example, run as a user would run it (`weft run --on BACKEND …`) in a process of its
own; its last line of output is its report, as JSON.

Invariants
- Every backend must give the same results: the same words as a plain counter, and the same picture
  to the last bit. Otherwise the exit status is 1.
- stdout belongs to `--json`, if it is given: all text for people then goes to stderr.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "out" / "mandelbrot.png"
BACKENDS = ("coroutines", "greenlets", "threads", "processes")


class JobFailed(click.ClickException):
    pass


def run_example(name: str, backend: str, *arguments: str) -> dict[str, Any]:
    """Runs an example and returns its report, with the seconds that its whole OS process took.

    Raises:
        JobFailed: the exit status is not 0.
    """
    file = HERE / name / f"{name}.py"
    command = [
        sys.executable,
        "-m",
        "weft.cli",
        "run",
        "--on",
        backend,
        str(file),
        "--json",
        *arguments,
    ]
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        raise JobFailed(
            f"{name} on {backend} failed with exit status {done.returncode}: {' '.join(command)}"
        )
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    report["process_seconds"] = round(time.perf_counter() - began, 3)
    return report


def all_same(reports: dict[str, dict[str, Any]], key: str) -> bool:
    return len({json.dumps(report[key]) for report in reports.values()}) == 1


def run_everywhere(
    console: Console, title: str, name: str, *arguments: str
) -> dict[str, dict[str, Any]]:
    reports = {}
    for backend in BACKENDS:
        console.print(f"[bold]{title}[/bold] on {backend} …")
        reports[backend] = run_example(name, backend, *arguments)
    return reports


def table_of(
    words: dict[str, dict[str, Any]], pictures: dict[str, dict[str, Any]], size: int
) -> Table:
    table = Table(
        title="Seconds a job took, on each backend (in brackets: with starting Python; ×: how many times as fast as coroutines)"
    )
    table.add_column("job")
    for backend in BACKENDS:
        table.add_column(backend, justify="right")
    table.add_column("every backend found")
    first = words[BACKENDS[0]]
    frequent = ", ".join(f"{word} {number}" for word, number in first["top"][:3])
    picture = pictures[BACKENDS[0]]
    for job, reports, found in (
        (
            f"word count, {first['files']} files",
            words,
            f"{first['words']} words, most often: {frequent}",
        ),
        (f"Mandelbrot, {size} × {size}", pictures, f"one picture, {picture['jobs']} pieces"),
    ):
        times = [
            f"{reports[b]['seconds']:.3f} ({reports[b]['process_seconds']:.1f})" for b in BACKENDS
        ]
        times[-1] += f" ×{reports[BACKENDS[0]]['seconds'] / reports[BACKENDS[-1]]['seconds']:.2f}"
        table.add_row(job, *times, found)
    return table


@click.command()
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Width and height of the picture.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=PICTURE,
    help="The picture to write.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(size: int, out: Path, as_json: bool, files: tuple[Path, ...]) -> None:
    """Count the words of FILES (default: the licence texts here) and draw a Mandelbrot picture on
    each backend."""
    console = Console(stderr=as_json)
    began = time.perf_counter()
    words = run_everywhere(console, "Word count", "wordcount", "--check", *map(str, files))
    pictures = run_everywhere(
        console, "Mandelbrot", "mandelbrot", "--size", str(size), "--out", str(out)
    )
    seconds = time.perf_counter() - began
    same = (
        all_same(words, "top")
        and all_same(words, "words")
        and all(report["check"] for report in words.values())
        and all_same(pictures, "digest")
    )
    console.print(table_of(words, pictures, size))
    if pictures["processes"]["seconds"] > pictures["coroutines"]["seconds"] / 1.2:
        console.print(
            "OS processes take some tenths of a second to start, here about as long as a second CPU "
            f"saves. Longer jobs gain by them: ./run demo --size {3 * size}",
            soft_wrap=True,
            highlight=False,
        )
    console.print(
        f"{os.cpu_count()} cores, Python {platform.python_version()}; all of it took {seconds:.1f} s"
    )
    console.print("the picture is", style="bold", end=" ")
    console.print(str(out.resolve()), soft_wrap=True, highlight=False)
    if as_json:
        times = {
            name: {backend: report["seconds"] for backend, report in reports.items()}
            for name, reports in (("wordcount", words), ("mandelbrot", pictures))
        }
        summary = {
            "demo": times,
            "seconds": round(seconds, 2),
            "size": size,
            "picture": str(out.resolve()),
            "same": same,
        }
        print(json.dumps(summary))
    if not same:
        raise JobFailed("the backends gave different results")


if __name__ == "__main__":
    main()
