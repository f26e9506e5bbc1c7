"""The tiers: the MicroPythons and Pythons on which the tests run. `run` runs a script on one of
them.

A tier has a name, a program and the folders of its modules. `./run setup micropython` builds all of
them but `gil`; `./run setup micropython-soak` builds that one and installs PyPy, too. If one is
missing, its tests fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
HERE = ROOT / "micropython"
MADE = ROOT / ".build" / "micropython"
KIT = HERE / "tests" / "kit"

TIERS: dict[str, tuple[list[str], list[Path]]] = {
    "pure": ([str(MADE / "micropython")], []),  # Debian's binary, pure Python
    "natmod": ([str(MADE / "micropython")], [MADE / "natmod" / "x64"]),
    "native": ([str(MADE / "unix")], []),  # the unix port with the user C module
    "gil": ([str(MADE / "unix-gil")], []),  # the unix port with the user C module and a global lock
    "cpython": ([sys.executable, "-S"], []),  # the pure code on CPython
    "pypy": (["pypy3", "-S"], []),  # the pure code on Debian's PyPy
}
MICROPYTHONS = ("pure", "natmod", "native", "gil")
CORE = {"pure": False, "natmod": True, "native": True, "gil": True, "cpython": False, "pypy": False}
PYTHONS = ("cpython", "pypy")
# Tiers of the soak alone, which `./run setup micropython-soak` builds or installs. A global lock
# makes a difference only to threads, and threads that run at the same time, as on `native`, show
# more. PyPy runs the same code as CPython.
SOAKED = {"gil", "pypy"}


def leave_to_the_soak(items: list[pytest.Item]) -> None:
    """Marks `soak` the tests that have a tier of SOAKED as a parameter."""
    for item in items:
        if "callspec" in vars(item) and not SOAKED.isdisjoint(
            value for value in vars(item)["callspec"].params.values() if isinstance(value, str)
        ):
            item.add_marker("soak")


def installed(folder: Path, *more: Path) -> Path:
    """Puts weft into the folder, and the files of the packages `more`, as mip does."""
    for package in (HERE, *more):
        shutil.copytree(package / "weft", folder / "weft", dirs_exist_ok=True)
    return folder


def environment(tier: str, *folders: Path) -> dict[str, str]:
    paths = [*map(str, [*folders, *TIERS[tier][1], HERE, KIT])]
    if tier in PYTHONS:
        return {**os.environ, "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, "MICROPYPATH": ":".join([*paths, str(KIT / "device"), ".frozen"])}


def command(tier: str, heap: str = "") -> list[str]:
    extra = ["-X", f"heapsize={heap}"] if heap else []
    return [*TIERS[tier][0], *extra]


def run(tier: str, *args: str | Path, heap: str = "", folders: tuple[Path, ...] = ()) -> str:
    """Runs a script and returns its output. The test fails if the script fails, or if it does not
    run on the core of the tier."""
    done = subprocess.run(
        [*command(tier, heap), *map(str, args)],
        env=environment(tier, *folders),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"{tier}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def snippet(tier: str, source: str, heap: str = "") -> str:
    return run(tier, "-c", source, heap=heap)
