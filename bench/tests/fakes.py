"""Fakes for the tests of the harness: definitions and programs that a test makes itself."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import run as command
from harness import targets


def bench_text(name: str, candidates: list[str], target: str = "", **entries: object) -> str:
    """Returns a [bench.NAME] for targets.toml; `candidates` contains the lines of each
    candidate."""
    values = {"cpus": 1, "rounds": 2, "samples": 3, "per": 5, "timeout": 20, **entries}
    lines = [f"[bench.{name}]", 'title = "t"', 'counts = "c"', 'features = "f"']
    lines += [f"{key} = {value}" for key, value in values.items()]
    for candidate in candidates:
        lines += [f"[[bench.{name}.candidate]]", candidate]
    lines += [
        f"[[bench.{name}.target]]",
        target or 'name = "r"\ntop = "a"\nby = "min"\nreach = { first = 1.0 }',
    ]
    return "\n".join(lines) + "\n"


def candidate(name: str, source: str | None = None, more: str = "") -> str:
    """Returns a peer written in Python, which the tests' own Python runs."""
    return (
        f'name = "{name}"\nkind = "py"\nsource = "{source or name + ".py"}"\n'
        f'args = ["{{samples}}", "{{per}}"]\npeer = true\n{more}'
    )


class Folder(unittest.TestCase):
    """A test with a checkout of its own: the test writes bench/targets.toml and the programs."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.bench = self.root / "bench"
        self.bench.mkdir()

    def program(self, name: str, text: str) -> None:
        (self.bench / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")

    def define(self, *benches: str, milestone: str = "first") -> Path:
        path = self.bench / "targets.toml"
        path.write_text(f'milestone = "{milestone}"\n' + "\n".join(benches), encoding="utf-8")
        return path

    def load(self, *benches: str) -> targets.Targets:
        return targets.load(self.define(*benches))

    def run_bench(self, *args: str) -> tuple[int, str, str]:
        """Runs `./run bench ARGS` in this checkout; returns exit status, stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        argv = ["--targets", str(self.bench / "targets.toml"), "--root", str(self.root), *args]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = command.main(argv)
            except SystemExit as stop:
                status = int(stop.code or 0)
        return status, out.getvalue(), err.getvalue()

    def last_json(self, out: str) -> dict:
        return json.loads(out.rstrip("\n").split("\n")[-1])


PYTHON = sys.executable
