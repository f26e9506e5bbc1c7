"""The C++ library as one object, compiled once for all tests that link a small program with it.

    library_object.object_file() ──► .build/tests/weft-HASH.o, by c++ -O0 -g

Compiling the library takes longer than everything else in these tests. So `tools/setup library`
compiles it, by `python3 tools/library_object.py`, before the tests of `./run test` run. A test that
needs other flags compiles the library itself.

Invariants
- Only the standard library is used: tests of several rooms import this file.
- The file's name has a hash of everything that determines its contents: the sources, the compiler,
  the flags. The file gets this name once it is complete. So a file with this name is complete and
  up to date.
- One OS process compiles the library; other OS processes wait for that one (flock).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = ROOT / "cpp"
FOLDER = ROOT / ".build" / "tests"
FLAGS = ("-std=c++20", "-O0", "-g", "-pthread", f"-I{CPP / 'include'}")


def _compiler() -> list[str]:
    # Flags in $CXX are for what a test compiles itself, not for the library.
    given = shlex.split(os.environ.get("CXX", ""))[:1]
    compiler = given[0] if given else "g++" if shutil.which("g++") else "c++"
    return [*(["ccache"] if shutil.which("ccache") else []), compiler]


def _name(compiler: list[str]) -> str:
    version = subprocess.run([*compiler, "--version"], check=True, capture_output=True).stdout
    found = hashlib.sha256(version)
    found.update(repr((compiler, FLAGS)).encode())
    for file in sorted([*CPP.glob("include/**/*"), *CPP.glob("src/**/*")]):
        if file.is_file():
            found.update(str(file.relative_to(CPP)).encode())
            found.update(file.read_bytes())
    return f"weft-{found.hexdigest()[:16]}.o"


def object_file() -> Path:
    """Returns the object file of cpp/src/weft.cpp, which is compiled if it does not exist.

    Raises:
        subprocess.CalledProcessError: the library does not compile; the compiler has printed why.
    """
    compiler = _compiler()
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / _name(compiler)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            for old in FOLDER.glob("weft-*.o"):
                old.unlink()
            new = FOLDER / "new.o"
            source = CPP / "src/weft.cpp"
            subprocess.run([*compiler, *FLAGS, "-c", source, "-o", new], check=True)
            new.rename(made)
    return made


def program(made: Path, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
    """Compiles a program of these sources with the library's compiler and flags, and `flags`. Links
    the program with the library, and returns its path, `made`.

    Raises:
        subprocess.CalledProcessError: a source or the library does not compile, or the program does
            not link; the compiler has printed why.
    """
    library = object_file()
    objects: list[Path] = []
    for source in sources:  # one by one, because ccache keeps compilations of one source each
        objects.append(made.with_name(f"{made.name}-{source.stem}.o"))
        command = [*_compiler(), *FLAGS, *flags, "-c", str(source), "-o", str(objects[-1])]
        subprocess.run(command, check=True)
    command = [_compiler()[-1], "-pthread", *map(str, objects), str(library), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:  # whether the object file exists
        sys.exit(not (FOLDER / _name(_compiler())).exists())
    object_file()
