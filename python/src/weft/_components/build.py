"""Builds a component from its source, once for each version of the source.

The name of a library is made from the input of the compiler: the preprocessed source, the
compiler's version and its flags. So when a header changes, another library is built; if nothing has
changed, the library in the cache is found.

Invariant: a library in the cache is complete. It is written to another file, which is then renamed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from weft.errors import BadUse

__all__ = ["build", "cache_dir", "cmake_dir", "include_dir", "run_compiler"]

FLAGS = ("-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-DWEFT_PLACE_COMPONENT")
OPTIMISED = ("-O2", "-DNDEBUG")
# With these flags an exception records where it was thrown: weft/component_stack.hpp.
_DEBUG = ("-O0", "-g", "-DWEFT_COMPONENT_STACKS", "-Wl,--wrap=__cxa_throw")


def include_dir() -> str:
    """Returns the directory of <weft/component.hpp>, for the compiler's -I."""
    return str(Path(__file__).parents[1] / "include")


def cmake_dir() -> str:
    """Returns the directory of weft-component.cmake, which defines weft_add_component(NAME
    SOURCES…).
    """
    return str(Path(__file__).parents[1] / "cmake")


def cache_dir() -> Path:
    """Returns the cache of built components: $WEFT_CACHE, or weft in the user's cache directory."""
    chosen = os.environ.get("WEFT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft"


def compiler() -> list[str]:
    """Returns the C++ compiler and its first arguments: $CXX, else c++, g++ or clang++.

    Raises:
        BadUse: there is no compiler, or $CXX is not a command.
    """
    given = os.environ.get("CXX", "")
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise BadUse(
            f"CXX={given!r} is not a command that can be run ({error}): name a compiler, as CXX=g++"
        ) from None
    names = [words[0]] if words else ["c++", "g++", "clang++"]
    for name in names:
        if shutil.which(name):
            return [name, *words[1:]]
    raise BadUse(
        f"there is no C++ compiler ({', '.join(names)}): install one (on Debian: apt install g++), or name one, as CXX=clang++"
    )


def run_compiler(command: Sequence[str], source: Path, warns: bool = False) -> bytes:
    """Runs a command that builds `source`, and returns what the command prints.

    Raises:
        BadUse: the command fails. The message contains the compiler's message.
    """
    done = subprocess.run(command, capture_output=True, check=False)
    errors = done.stderr.decode(errors="replace").rstrip()
    if done.returncode == 0:
        if errors and warns:
            print(errors, file=sys.stderr)
        return done.stdout
    raise BadUse(f"{source} was not built:\n{errors}\n(the command: {shlex.join(command)})")


def build(
    source: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    debug: bool = False,
    flags: Sequence[str] = (),
) -> Path:
    """Builds a component from one C++ source, and returns the path of the library.

    The library is kept in `cache_dir()`, under a name made from the compiler's input, so that it is
    built only once. Warnings of the compiler go to the standard error.

    Args:
        output: a file that becomes a copy of the library.
        debug: whether to build with symbols and assertions and without optimisation (-O0 -g),
            instead of with -O2 -DNDEBUG.
        flags: further flags for the compiler, after Weft's own.
    Raises:
        BadUse: there is no such file or no compiler, the source does not compile (the message has
            the compiler's message), or the library cannot be written.
    """
    path = Path(source)
    if not path.is_file():
        raise BadUse(f"build: there is no file {path}; give the C++ source of a component")
    if isinstance(flags, str):
        raise BadUse(f"build: flags must be a list of options, as [{flags!r}]")
    kind = _DEBUG if debug else OPTIMISED
    front = [*compiler(), *FLAGS, *kind, *flags, f"-I{include_dir()}"]
    version = run_compiler([*compiler(), "--version"], path)
    seen = run_compiler([*front, "-E", str(path)], path)
    content = hashlib.sha256(b"\0".join([version, " ".join(front).encode(), seen])).hexdigest()
    kept = cache_dir() / f"{path.stem}-{content[:20]}.so"
    try:
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=kept.parent) as beside:
                made = Path(beside) / "made.so"
                run_compiler([*front, str(path), "-o", str(made)], path, warns=True)
                made.replace(kept)
    except OSError as error:
        raise BadUse(
            f"build: cannot write to {kept.parent} ({error.strerror or error}): set WEFT_CACHE to a folder that can be written to"
        ) from None
    if output is None:
        return kept
    try:
        shutil.copyfile(kept, output)
    except OSError as error:
        raise BadUse(
            f"build: cannot write {output} ({error.strerror or error}): give another output"
        ) from None
    return Path(output)
