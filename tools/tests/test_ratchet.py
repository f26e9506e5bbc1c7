"""Tests the comparison of the repository's size with stored figures: what is counted, what is
reported, and that nothing is enforced.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import ratchet as tool

ratchet: Any = tool


def house(path: Path, **files: int) -> Path:
    """Makes a repository of files with these numbers of lines. A `_` in a name stands for `/`."""
    subprocess.run(["git", "init", "-q", path], check=True)
    for name, lines in files.items():
        file = path / name.replace("__", ".").replace("_", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n" * lines)
    subprocess.run(["git", "add", "."], cwd=path, check=True)
    return path


def test_sources_tests_and_what_a_tool_has_written_are_counted_apart(tmp_path: Path) -> None:
    root = house(
        tmp_path,
        cpp_a__hpp=10,
        cpp_b__hpp=30,
        cpp_tests_c__cpp=50,
        py_d__py=7,
        py_e__md=99,
        py_f__py=8,
    )
    (root / "py/f.py").write_text('"""Names.\n\nWritten by tools/names.py: do not edit."""\n' * 30)
    (root / "cpp/unknown.hpp").write_text("x\n" * 1000)  # git does not track this file
    assert ratchet.count(root, ratchet.known(root)) == {
        "cpp": {"lines": 40, "tests": 50, "generated": 0, "longest": 30, "file": "cpp/b.hpp"},
        "py": {"lines": 7, "tests": 0, "generated": 90, "longest": 7, "file": "py/d.py"},
    }


def figures(lines: int, longest: int, seconds: float) -> dict[str, Any]:
    row = {"lines": lines, "tests": 5, "generated": 6, "longest": longest, "file": "cpp/a.hpp"}
    return {"rooms": {"cpp": row}, "weft.hpp": {"lines": 100, "seconds": seconds}}


def test_growth_is_told() -> None:
    now, before = figures(1100, 700, 2.0), figures(1000, 700, 1.0)
    assert ratchet.grown(now, before) == [
        "cpp: 1100 lines of source, 1000 before",
        "parsing <weft/weft.hpp>: 2.0 seconds, 1.0 before",
    ]
    answer = ratchet.table(now, before)
    assert answer[1].split() == ["cpp", "1100", "(+100)", "5", "6", "700", "cpp/a.hpp"]
    assert answer[2] == "parsing <weft/weft.hpp>: 100 lines, 2.0 (+1.00) s of CPU"


@pytest.mark.parametrize("before", [figures(1000, 700, 1.0), figures(1200, 900, 2.0), {}])
def test_what_has_not_grown_is_not_told(before: dict[str, Any]) -> None:
    assert ratchet.grown(figures(1010, 700, 1.01), before) == []


def test_it_enforces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ratchet, "STORED", tmp_path / "ratchet.json")
    monkeypatch.setattr(ratchet, "measure", lambda: figures(9999, 999, 9.0))
    (tmp_path / "ratchet.json").write_text(json.dumps(figures(1, 1, 0.1)))
    assert ratchet.main([]) == 0
    assert "grown: cpp: 9999 lines of source, 1 before" in capsys.readouterr().out
    assert ratchet.main(["--write"]) == 0
    assert "grown" not in capsys.readouterr().out
    (tmp_path / "ratchet.json").write_text("{")
    assert ratchet.report()[0].startswith("ratchet: cannot measure")
    assert ratchet.main(["--wriet"]) == 2


def test_there_are_stored_figures_of_every_room() -> None:
    rooms = set(ratchet.stored(ROOT / "tools/ratchet.json")["rooms"])
    assert {"cpp", "python", "mcu", "micropython", "lf", "conformance", "bench", "tools"} <= rooms


def test_git_knows_what_a_tool_has_written() -> None:
    """Viewers of repositories fold the files that a tool has written, and leave them out of their
    statistics."""
    written = sorted(
        str(file.relative_to(ROOT))
        for file in ratchet.known(ROOT)
        if file.suffix in (".py", ".pyi") and ratchet.WRITTEN.search(file.read_bytes()[:400])
    )
    marked = subprocess.run(
        ["git", "ls-files", ":(attr:linguist-generated)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert written == [name for name in marked if name.endswith((".py", ".pyi"))]
    assert "python/src/weft/threads.py" in written
