"""Compares the size of the repository with stored figures: `./run test` prints the result. Growth
is reported, but never fails anything.

    python3 tools/ratchet.py            prints the table
    python3 tools/ratchet.py --write    stores the present figures in tools/ratchet.json

The figures of a room are the lines of its sources, of its tests and of its generated files, and its
longest source. The figures of the C++ library are the costs of parsing a file that includes
<weft/weft.hpp>: lines after the preprocessor, and seconds of the CPU. Only the standard library is
needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "tools/ratchet.json"
SOURCES = {
    ".py",
    ".pyi",
    ".hpp",
    ".cpp",
    ".h",
    ".c",
    ".mjs",
    ".S",
    ".sh",
    ".toml",
    ".cmake",
}
# A file that a tool has written has this text at its head.
WRITTEN = re.compile(rb"Written by tools/\w+\.py: do not edit")
SLACK = 0.02  # a share of the CPU seconds and of lines; a smaller change is not reported

Figures = dict[str, dict[str, Any]]


def known(root: Path) -> list[Path]:
    """Returns the files that git knows."""
    out = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True
    ).stdout
    return [root / name for name in os.fsdecode(out).split("\0") if name]


def room_of(path: Path) -> tuple[str, str]:
    """Returns a file's room and its kind: "tests" if it is in a folder `tests`, else "lines"."""
    parts = path.parts
    room = parts[0] if len(parts) > 1 else "."
    return room, "tests" if "tests" in parts else "lines"


def count(root: Path, files: list[Path]) -> Figures:
    """Counts the lines of each room, and finds its longest source."""
    figures: Figures = {}
    for file in files:
        if file.suffix not in SOURCES or not file.is_file() or file.is_symlink():
            continue
        here = file.relative_to(root)
        room, kind = room_of(here)
        text = file.read_bytes()
        lines = len(text.splitlines())
        if WRITTEN.search(text[:400]):
            kind = "generated"
        row = figures.setdefault(
            room, {"lines": 0, "tests": 0, "generated": 0, "longest": 0, "file": ""}
        )
        row[kind] += lines
        if kind == "lines" and lines > row["longest"]:
            row["longest"], row["file"] = lines, str(here)
    return dict(sorted(figures.items()))


def compile_cost(root: Path) -> dict[str, Any]:
    """Returns the costs of parsing the library: preprocessed lines, and seconds of the CPU (the
    least of three runs). Returns an empty dictionary if there is no g++.
    """
    if shutil.which("g++") is None:
        return {}
    command = ["g++", "-std=c++20", "-x", "c++", f"-I{root / 'cpp/include'}", "-"]
    text = b"#include <weft/weft.hpp>\n"
    lines = subprocess.run(
        [*command, "-E", "-P"], input=text, capture_output=True, check=True
    ).stdout
    seconds = []
    for _ in range(3):
        before = os.times()
        subprocess.run([*command, "-fsyntax-only"], input=text, capture_output=True, check=True)
        after = os.times()
        spent = after.children_user - before.children_user
        seconds.append(round(spent + after.children_system - before.children_system, 2))
    return {"lines": lines.count(b"\n"), "seconds": min(seconds)}


def measure(root: Path = ROOT) -> dict[str, Any]:
    return {"rooms": count(root, known(root)), "weft.hpp": compile_cost(root)}


def change(now: float, before: float | None) -> str:
    """Returns the change, such as ` (+12)`; "" if there is none, or nothing to compare with."""
    if before is None or now == before:
        return ""
    return f" ({now - before:+g})" if isinstance(now, int) else f" ({now - before:+.2f})"


def table(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Returns the lines to print: a heading, the rooms, the whole, the cost of the library."""
    rows = [("room", "lines", "of tests", "generated", "longest source")]
    kinds = ("lines", "tests", "generated", "longest")
    for room, row in now["rooms"].items():
        was = before.get("rooms", {}).get(room, {})
        cells = [f"{row[k]}{change(row[k], was.get(k))}" for k in kinds]
        rows.append((room, *cells[:3], f"{cells[3]} {row['file']}"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    out = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    cost, was = now["weft.hpp"], before.get("weft.hpp", {})
    if cost:
        costs = [f"{cost[k]}{change(cost[k], was.get(k))}" for k in ("lines", "seconds")]
        out.append(f"parsing <weft/weft.hpp>: {costs[0]} lines, {costs[1]} s of CPU")
    return out


def grown(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Describes the figures that have grown by more than SLACK."""
    found = []
    for room, row in now["rooms"].items():
        was = before.get("rooms", {}).get(room)
        for kind, what in (
            ("lines", "lines of source"),
            ("longest", "lines in its longest source"),
        ):
            if was and row[kind] > was[kind] * (1 + SLACK):
                found.append(f"{room}: {row[kind]} {what}, {was[kind]} before")
    for kind in ("lines", "seconds"):
        new, old = now["weft.hpp"].get(kind), before.get("weft.hpp", {}).get(kind)
        if new and old and new > old * (1 + SLACK):
            found.append(f"parsing <weft/weft.hpp>: {new} {kind}, {old} before")
    return found


def stored(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def report() -> list[str]:
    """Returns the lines that `./run test` prints. An error is a line too."""
    try:
        before, now = stored(STORED), measure()
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return [f"ratchet: cannot measure: {error}"]
    more = [f"grown: {line}" for line in grown(now, before)]
    return [*table(now, before), *more]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--write"]):
        print("usage: ratchet.py [--write]", file=sys.stderr)
        return 2
    if arguments:
        STORED.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    print("\n".join(report()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
