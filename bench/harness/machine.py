"""Describes where the figures were measured: the machine, and the versions of all programs that
took part.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from .targets import Bench


def _first_line(argv: list[str]) -> str | None:
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).strip().split("\n")[0] or None


def _field(path: str, name: str) -> str | None:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(rf"^{name}\s*[:=]\s*\"?(.*?)\"?$", text, re.MULTILINE)
    return found.group(1) if found else None


def free_mb() -> int | None:
    """Returns the memory that a program could get now, in MB; None if it is not known."""
    text = _field("/proc/meminfo", "MemAvailable")
    return int(text.split()[0]) // 1024 if text else None


def machine() -> dict[str, object]:
    memory = _field("/proc/meminfo", "MemTotal")
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(memory.split()[0]) / 2**20, 1) if memory else None,
        "system": _field("/etc/os-release", "PRETTY_NAME") or platform.system(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
    }


def versions(bench: Bench) -> dict[str, str | None]:
    """Returns the versions of the programs and packages that this bench uses, and of no others."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for compiler in sorted({c.compiler for c in bench.candidates if c.kind == "cpp"}):
        found[compiler] = _first_line([compiler, "--version"])
    if any(c.kind == "go" for c in bench.candidates):
        found["go"] = _first_line(["go", "version"])
    if any(c.kind == "rust" for c in bench.candidates):
        found["rust"] = _first_line(["rustc", "--version"])
    if any(c.kind == "java" for c in bench.candidates):
        found["java"] = _first_line(["javac", "-version"])
    modules = {
        need.removeprefix("module:")
        for c in bench.candidates
        for need in c.needs
        if need.startswith("module:")
    }
    for module in sorted(modules | {"weft"}):
        try:
            found[module] = importlib.metadata.version(module)
        except importlib.metadata.PackageNotFoundError:
            found[module] = None
    return found


def commit(root: Path) -> str:
    """Returns the version that was measured: the commit, followed by " and changes" if tracked
    files differ from it.
    """
    found = _first_line(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"])
    if found is None or not re.fullmatch(r"[0-9a-f]+", found):
        return "unknown"
    # The pages of results do not count: they are written while benches run.
    pages = (
        "bench/RESULTS.md",
        "bench/TARGETS.md",
        "bench/plots",
        "bench/results",
        "theses/*.md",
        "theses/plots",
    )
    others = ["--", ".", *(f":!{page}" for page in pages)]
    changed = _first_line(["git", "-C", str(root), "status", "--porcelain", "-uno", *others])
    return found + (" and changes" if changed else "")
