"""Tests every example at a small size, on every backend, as a user runs it; and the parts of
examples that are not processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[1]
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / f"{path.name}.py").exists())
BACKENDS = ("coroutines", "greenlets", "threads")
# Only some tests use this list, because starting an interpreter for each process takes a while.
ALL = (*BACKENDS, "processes")

sys.path[:0] = [str(EXAMPLES / "mandelbrot"), str(EXAMPLES / "wordcount")]
import fractal  # noqa: E402
import words  # noqa: E402

each_backend = pytest.mark.parametrize("backend", BACKENDS)
# Greenlets run the same text as threads, with `await` left out, so one of the two backends is
# enough to test the results of an example.
each_style = pytest.mark.parametrize("backend", ("coroutines", "threads"))
each_example = pytest.mark.parametrize("name", NAMES)


def start(name: str, backend: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "weft.cli",
        "run",
        str(EXAMPLES / name / f"{name}.py"),
        "--on",
        backend,
        *arguments,
    ]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, timeout=280, check=False
    )


def report(name: str, backend: str, *arguments: str) -> dict[str, Any]:
    done = start(name, backend, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["example"] == name
    return found


# --- every example --------------------------------------------------------------------------------

SMALL = {
    "commstime": ["--rounds", "20"],
    "dining_philosophers": ["--meals", "3"],
    "farm_scale": ["--hosts", "3", "--jobs", "2"],
    "grid_node": ["--seconds", "2"],
    "mandelbrot": ["--size", "20", "--jobs", "4", "--iterations", "600"],
    "santa_claus": ["--years", "2", "--problems", "2"],
    "sieve": ["--primes", "10"],
    "sleeping_barber": ["--customers", "8"],
    "token_ring": ["--size", "10", "--rounds", "2"],
    "wordcount": ["--top", "3"],
}


def test_the_examples_are_those_we_know() -> None:
    assert sorted(SMALL) == NAMES


@each_example
def test_help_and_readme(name: str) -> None:
    done = start(name, "coroutines", "--help")
    assert done.returncode == 0 and "--json" in done.stdout and "weft run" in done.stdout
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert f"weft run examples/{name}/{name}.py" in readme


@each_example
@each_backend
def test_it_says_what_it_found(name: str, backend: str, tmp_path: Path) -> None:
    arguments = [
        *SMALL[name],
        *(["--out", str(tmp_path / "p.png")] if name == "mandelbrot" else []),
        *(["--folder", str(tmp_path)] if name == "grid_node" else []),
    ]
    done = start(name, backend, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@each_example
def test_an_option_it_does_not_have_is_bad_use(name: str) -> None:
    done = start(name, "coroutines", "--no-such-option")
    assert done.returncode == 2 and "--no-such-option" in done.stderr


# --- mandelbrot -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "workers"),
    [(b, n) for b in ("coroutines", "threads") for n in (1, 3)] + [("processes", 2)],
)
def test_mandelbrot_draws_the_same_picture_as_a_plain_loop(
    backend: str, workers: int, tmp_path: Path
) -> None:
    out = tmp_path / "new folder" / "picture.png"
    found = report(
        "mandelbrot",
        backend,
        "--size",
        "24",
        "--jobs",
        "5",
        "--iterations",
        "700",
        "--workers",
        str(workers),
        "--out",
        str(out),
    )
    view = fractal.View(24, 24, 700)
    plain = fractal.compute(view, 0, 24)
    assert found["jobs"] == 5 and found["inside"] == int(np.isnan(plain).sum())
    with Image.open(out) as picture:
        assert np.array_equal(np.asarray(picture), fractal.colour(plain))


def test_mandelbrot_with_more_jobs_than_rows(tmp_path: Path) -> None:
    found = report(
        "mandelbrot",
        "threads",
        "--size",
        "6",
        "--jobs",
        "100",
        "--iterations",
        "50",
        "--out",
        str(tmp_path / "p.png"),
    )
    assert found["jobs"] == 6


@pytest.mark.parametrize("out", ["picture.nonsense", "/dev/null/picture.png"])
def test_mandelbrot_says_that_it_cannot_write(out: str, tmp_path: Path) -> None:
    done = start(
        "mandelbrot", "coroutines", "--size", "4", "--iterations", "4", "--out", str(tmp_path / out)
    )
    assert done.returncode == 1 and "--out" in done.stderr.splitlines()[-1]


def escape_time(c: complex, iterations: int) -> float:
    """Returns the escape time by its definition, one point at a time."""
    z = 0j
    for n in range(1, iterations + 1):
        z = z * z + c
        if abs(z) > fractal.BAILOUT:
            return float(n + 1 - np.log2(np.log(abs(z)) / np.log(fractal.BAILOUT)))
    return float("nan")


@pytest.mark.parametrize("iterations", [1, 19, 20, 21, 500])
def test_heights_are_those_of_the_definition(iterations: int) -> None:
    points = np.array(
        [0, 1, 2, 400, -1.75 + 0.01j, 0.26, 0.3 + 0.5j, -0.75 + 0.05j, -2, 1e200], np.complex128
    )
    expected = [escape_time(complex(c), iterations) for c in points[:-1]]
    got = fractal.heights(points, iterations)
    assert np.allclose(got[:-1], expected, rtol=1e-6, equal_nan=True)


def test_heights_leave_their_argument_alone() -> None:
    points = np.array([1, 2, 3], np.complex128)
    fractal.heights(points, 40)
    assert points.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("rows", "jobs"), [(1, 1), (10, 3), (1000, 100), (7, 7), (3, 9)])
def test_bands_cover_every_row_once(rows: int, jobs: int) -> None:
    bands = fractal.bands(rows, jobs)
    assert [row for top, bottom in bands for row in range(top, bottom)] == list(range(rows))
    sizes = {bottom - top for top, bottom in bands}
    assert len(bands) == min(rows, jobs) and max(sizes) - min(sizes) <= 1


def test_colour_is_black_inside_and_only_there() -> None:
    height = np.array([[np.nan, 1.0], [2.0, 500.0]], np.float32)
    picture = fractal.colour(height)
    assert picture.shape == (2, 2, 3) and picture.dtype == np.uint8
    assert (
        not picture[0, 0].any()
        and picture[0, 1].any()
        and picture[1, 0].any()
        and picture[1, 1].any()
    )
    assert not fractal.colour(np.full((2, 2), np.nan, np.float32)).any()


# --- wordcount ------------------------------------------------------------------------------------


@each_style
@pytest.mark.parametrize("workers", [1, 4])
def test_wordcount_equals_a_plain_counter(backend: str, workers: int, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text(
        "the cat and the dog\nDon't stop, don’t! naïve Ωmega\n" * 3000, encoding="utf-8"
    )
    second.write_bytes(b"latin \xe9 bytes and the end")
    found = report(
        "wordcount",
        backend,
        "--check",
        "--workers",
        str(workers),
        "--top",
        "3",
        str(first),
        str(second),
    )
    assert found["check"] is True and found["files"] == 2
    assert found["top"] == [["the", 6001], ["and", 3001], ["cat", 3000]]


@each_style
def test_wordcount_of_the_licences_and_of_nothing(backend: str, tmp_path: Path) -> None:
    assert report("wordcount", backend, "--check")["check"] is True
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    assert report("wordcount", backend, "--check", str(empty))["words"] == 0


def test_wordcount_names_a_file_that_is_not_there() -> None:
    done = start("wordcount", "threads", "no-such-file.txt")
    assert done.returncode == 2 and "no-such-file.txt" in done.stderr


def test_words() -> None:
    assert words.count("A a, b_c d1 e'f 'g' 12") == Counter(
        {"a": 2, "b": 1, "c": 1, "d": 1, "e'f": 1, "g": 1}
    )
    assert words.most_frequent(Counter(b=2, a=2, c=3), 2) == [("c", 3), ("a", 2)]


def test_pieces_are_the_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(
        "".join(f"line {i} of some text\n" for i in range(9000)) + "no end of line",
        encoding="utf-8",
    )
    pieces = list(words.pieces(path))
    assert len(pieces) > 3 and "".join(pieces) == path.read_text(encoding="utf-8")
    assert all(piece.endswith("\n") for piece in pieces[:-1])


# --- the others -----------------------------------------------------------------------------------


@each_style
@pytest.mark.parametrize("more", [[], ["--parallel-delta"]], ids=["plain", "parallel"])
def test_commstime_counts_up(backend: str, more: list[str]) -> None:
    found = report("commstime", backend, "--rounds", "50", *more)
    assert found["last"] == 50 and found["us"] > 0


@each_style
@pytest.mark.parametrize("table", ["butler", "ordered"])
@pytest.mark.parametrize("guests", [2, 5])
def test_philosophers_all_eat(backend: str, table: str, guests: int) -> None:
    found = report(
        "dining_philosophers", backend, "--table", table, "--meals", "7", "--guests", str(guests)
    )
    assert found["eaten"] == [7] * guests


@each_style
def test_greedy_philosophers_are_the_knot(backend: str) -> None:
    done = start("dining_philosophers", backend, "--table", "greedy")
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    knot = done.stderr.partition("knot:")[2]
    for guest in range(5):
        assert f"philosopher[{guest}]" in knot
        assert f"take {guest}" in done.stderr


@each_style
def test_sieve_finds_primes(backend: str) -> None:
    found = report("sieve", backend, "--primes", "30")
    plain = [n for n in range(2, 120) if all(n % d for d in range(2, n))]
    assert found["primes"] == plain[:30]


@each_style
def test_token_counts_its_hops(backend: str) -> None:
    found = report("token_ring", backend, "--size", "12", "--rounds", "5")
    assert found["token"] == 12 * (5 + 1)


# --- the demo -------------------------------------------------------------------------------------


def test_demo_runs_both_jobs_on_every_backend_and_writes_the_picture(tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    command = [
        sys.executable,
        str(EXAMPLES / "demo.py"),
        "--json",
        "--size",
        "30",
        "--out",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["same"] is True and found["picture"] == str(out)
    assert {job: set(times) for job, times in found["demo"].items()} == {
        job: set(ALL) for job in ("wordcount", "mandelbrot")
    }
    with Image.open(out) as picture:
        assert picture.size == (30, 30)
    assert str(out) in done.stderr and "coroutines" in done.stderr
    # A picture this small is drawn in less time than an OS process needs to start.
    assert "./run demo --size 90" in done.stderr


def test_demo_says_which_job_failed(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(EXAMPLES / "demo.py"),
        "--size",
        "5",
        "--out",
        str(tmp_path / "x.nonsense"),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=280, check=False)
    assert done.returncode == 1 and "mandelbrot on coroutines failed" in done.stderr
