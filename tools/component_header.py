"""<weft/component.hpp>, parsed once for the tests that build components.

    component_header.compiler() ──► "g++ -I.build/tests/component-HASH", for $CXX

g++ spends more than two thirds of the time for a small component on parsing this header. g++ takes
the precompiled header of a folder that -I names, if its flags are the same; for other flags it
ignores the precompiled header, and parses the header itself.

Invariants
- Only the standard library is used, so that the tests of any room can import this file.
- The folder's name has a hash of everything that determines its contents: Weft's headers, the
  compiler, the flags. The folder gets this name once the precompiled header is complete.
- One OS process compiles the header; other OS processes wait for that one (flock).
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".build" / "tests"


def compiler(include: Path, flags: Sequence[str]) -> str | None:
    """Returns g++ and the flag that lets it find the precompiled header, as a value for $CXX.

    Args:
        include: the folder of Weft's headers.
        flags: the flags with which the components are compiled.

    Returns None if there is no g++, or it does not compile the header.
    """
    if not shutil.which("g++"):
        return None
    found = hashlib.sha256(subprocess.run(["g++", "--version"], capture_output=True).stdout)
    found.update(repr((include, flags)).encode())
    for file in sorted(include.glob("**/*.h*")):
        found.update(str(file.relative_to(include)).encode())
        found.update(file.read_bytes())
    made = FOLDER / f"component-{found.hexdigest()[:16]}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "component.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            for old in FOLDER.glob("component-*"):
                shutil.rmtree(old)
            new = FOLDER / "component.new"
            shutil.rmtree(new, ignore_errors=True)
            (new / "weft").mkdir(parents=True)
            # -xc++-header: without it, -shared makes g++ link
            command = ["g++", "-x", "c++-header", *flags, f"-I{include}"]
            header, parsed = include / "weft/component.hpp", new / "weft/component.hpp.gch"
            if subprocess.run([*command, header, "-o", parsed], capture_output=True).returncode:
                return None
            new.rename(made)
    return f"g++ -I{made}"
