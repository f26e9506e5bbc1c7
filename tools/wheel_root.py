"""Tries the wheels in fresh Debian systems, which contain no checkout: tools/wheel_root.py WHEELS
SUITE…

WHEELS is the folder with the wheels. For each suite (`bookworm`, `trixie`, …) mmdebstrap makes a
root with Python and its venv alone, which stays in .build/wheels/root-SUITE for the next time. One
command in the root installs the wheel that pip chooses, without any network, and runs a program.
The table has the time that the command took, and its CPU time. The exit status is 1 if the program
printed other text than it should. Only root can run this script, because it uses chroot.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from wheel_check import PROGRAM

HOME = Path(__file__).resolve().parent.parent / ".build/wheels"
COMMAND = (
    "python3 -m venv venv && "
    "venv/bin/pip install -q --no-index --find-links wheels --disable-pip-version-check weft-csp && "
    "venv/bin/python hello.py"
)


def root_of(suite: str) -> Path:
    """Returns the folder with the root of a suite. Makes the folder if it does not exist."""
    root = HOME / f"root-{suite}"
    if not (root / "usr/bin/python3").exists():
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(
            ["mmdebstrap", "--variant=apt", "--include=python3-venv", suite, root], check=True
        )
    return root


def within(root: Path, command: str) -> tuple[str, str, int]:
    """Runs a command in the root's folder /try. Returns its output, its errors, and its status."""
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["chroot", root, "sh", "-c", f"cd /try && {command}"],
        capture_output=True,
        text=True,
        env=clean,
        check=False,
    )
    return done.stdout, done.stderr, done.returncode


def attempt(suite: str, wheels: Path) -> tuple[list[str], bool]:
    """Returns the row of a suite, and whether the program printed the expected text."""
    root = root_of(suite)
    here = root / "try"
    shutil.rmtree(here, ignore_errors=True)
    (here / "wheels").mkdir(parents=True)
    for wheel in wheels.glob("*.whl"):
        shutil.copy(wheel, here / "wheels")
    (here / "hello.py").write_text(PROGRAM, encoding="utf-8")
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    out, errors, status = within(root, COMMAND)
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    right = status == 0 and out == "[None, 6]\n"
    if not right:
        print(f"wheel_root: {suite}: status {status}\n{out}{errors}", file=sys.stderr)
    python = within(root, "python3 -V")[0].strip()
    runs = "pure Python" if "no extension module" in errors else "the extension"
    return [suite, python, runs, f"{took:.1f}", f"{cpu:.1f}", "yes" if right else "NO"], right


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    wheels, *suites = arguments
    print(
        "| Debian | Python | runs on | seconds from wheel to result | CPU seconds | right |\n"
        "|---|---|---|---:|---:|---|"
    )
    well = True
    for suite in suites:
        row, right = attempt(suite, Path(wheels).resolve())
        print("| " + " | ".join(row) + " |", flush=True)
        well = well and right
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
