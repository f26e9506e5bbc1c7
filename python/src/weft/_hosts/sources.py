"""Finds the source of a function: its module, the modules that this module imports from the same
folder, the modules that these import, and so on (WIRE-NETWORKS.md 17.9). Both sides of a call find
the source by reading files, and import nothing.

    files(module, file) ──the module's imports──► files of its root ──their imports──► …
        ──► module → its Source ──found()──► Sources: module → SHA-256
        ──digest()──► one digest, which caller and agent compare

The *root* of a module is the folder that has its topmost package, or the module itself. Modules
that lie elsewhere (Python's own, installed packages) are not covered. If the module's own package
is installed, only the modules of that package are covered.

Invariants
- Imports are read from the syntax of the source, also those in functions and branches. So the
  result does not depend on what has been imported already, nor on the machine.
- The result of reading a file is kept only if the last edit of the file was more than SETTLED
  seconds ago. It is used only while the system reports the same file with the same size and times.
  So a second edit in one tick of the file system's clock is noticed too.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "Source",
    "Sources",
    "difference",
    "digest",
    "digest_of",
    "files",
    "forget_compiled",
    "found",
    "is_installed",
    "rests",
    "root_of",
    "stamp_of",
    "told",
]

Sources = dict[str, str]  # module → SHA-256 of its source, in hexadecimal

SETTLED = 2.0  # seconds after an edit; any later edit is sure to change the times of the file
SHOWN = 16  # how many digits of a module's digest are sent and shown
# the largest size, in bytes of JSON, of the digests of single modules in a first message
TOLD = 2000
_INSTALLED = ("site-packages", "dist-packages")
_BY_NAME = ("import_module", "__import__")


class Source(NamedTuple):
    """A module that the digest of a call covers."""

    path: Path  #: its file
    digest: str  #: SHA-256 of the file, in hexadecimal


class _Read(NamedTuple):
    """The digest and the imports of a file, which are valid while the file has this stamp."""

    stamp: tuple[int, ...]
    digest: str
    # its imports: for each the level of a relative import, and the name
    names: tuple[tuple[int, str], ...]


_read: dict[Path, _Read] = {}


def stamp_of(about: os.stat_result) -> tuple[int, ...]:
    """Returns the stamp of a file. As long as the stamp stays the same, the file was not edited,
    with the exception that rests() describes.
    """
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def rests(about: os.stat_result) -> bool:
    """Returns whether any edit of the file from now on changes the stamp of the file."""
    return max(about.st_mtime, about.st_ctime) < time.time() - SETTLED


def digest_of(source: Path) -> str:
    """Returns the SHA-256 of a file.

    Raises:
        OSError: the file cannot be read.
    """
    return hashlib.sha256(source.read_bytes()).hexdigest()


def root_of(module: str, file: Path) -> Path:
    """Returns the root of a module, whose source is `file`."""
    levels = module.count(".") + (file.name == "__init__.py")
    # If the main module is a symbolic link, Python looks for its neighbours in the folder of the
    # real file.
    root = file.parent if levels else file.resolve().parent
    for _ in range(levels):
        root = root.parent
    return root


def is_installed(root: Path) -> bool:
    """Returns whether the root contains installed packages."""
    return bool(set(_INSTALLED) & set(root.parts))


def forget_compiled(paths: Iterable[str | Path]) -> None:
    """Removes the compiled files of these sources. If a source was edited within a second and kept
    its size, Python would use the compiled file of the old version.
    """
    for path in paths:
        # There might be no compiled file, or this Python might write none.
        with contextlib.suppress(OSError, NotImplementedError):
            Path(importlib.util.cache_from_source(path)).unlink()


def found(module: str, file: Path) -> Sources:
    """Returns the digests of the modules that files() returns. Raises what files() raises."""
    return {name: source.digest for name, source in files(module, file).items()}


def files(module: str, file: Path) -> dict[str, Source]:
    """Returns a module, the modules of its root that it imports, those that these import, and so
    on.

    Args:
        module: the name by which another machine imports the module.
        file: the file with the module's source.
    Raises:
        OSError: `file` cannot be read.
    """
    root = root_of(module, file)
    within = module.partition(".")[0] if is_installed(root) else None
    # Most imports name Python's own modules. The folder has no entry of such a name, so the search
    # for a file is skipped.
    tops = {entry.partition(".")[0] for entry in os.listdir(root)}  # noqa: PTH208  # a Path for each entry costs more
    sources: dict[str, Source] = {}
    waiting = [(module, file)]
    for parent in _parents(module):
        if (its := _file_of(root, parent)) is not None:
            waiting.append((parent, its))
    seen = {name for name, _ in waiting}
    while waiting:
        name, path = waiting.pop()
        try:
            read = _look(path)
        except OSError:
            if name == module:
                raise
            continue  # the file was deleted after _file_of() had found it
        sources[name] = Source(path, read.digest)
        inside = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for level, imported in read.names:
            for one in _candidates(inside, level, imported):
                top = one.partition(".")[0]
                if one in seen or top not in tops or within not in (None, top):
                    continue
                seen.add(one)
                if (its := _file_of(root, one)) is not None:
                    waiting.append((one, its))
    return sources


def digest(sources: Sources) -> str:
    """Returns one digest of all these modules. For one module it is the SHA-256 of its source."""
    if len(sources) == 1:
        return next(iter(sources.values()))
    lines = "".join(f"{name} {sources[name]}\n" for name in sorted(sources))
    return hashlib.sha256(lines.encode()).hexdigest()


def told(sources: Sources) -> Sources:
    """Returns the first digits of each module's digest, for a message. Returns an empty dict if
    they would be too long for the message.
    """
    short = {name: its[:SHOWN] for name, its in sources.items()}
    return short if len(json.dumps(short)) <= TOLD else {}


def difference(here: Sources, theirs: object) -> tuple[str, str, str] | None:
    """Returns the first module whose digest here differs from that in `theirs`, which the caller's
    told() made: its name, and the first digits of its digest here and at the caller; "" at a side
    that has no such module. Returns None if no module is known to differ.
    """
    if not isinstance(theirs, dict) or not theirs:
        return None
    mine = {name: its[:SHOWN] for name, its in here.items()}
    for name in sorted({*mine, *(str(one) for one in theirs)}):
        one, other = mine.get(name, ""), theirs.get(name, "")
        if one != other:
            return name, one, str(other)[:SHOWN]
    return None


# --- files ----------------------------------------------------------------------------------------


def _parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    for i in range(1, len(parts)):
        yield ".".join(parts[:i])


def _file_of(root: Path, module: str) -> Path | None:
    """Returns the file of a module of this root. Returns None if there is no such module, if it has
    no file of its own (a namespace package), or if it is not written in Python.
    """
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    base = os.path.join(root, *parts)  # noqa: PTH118  # a Path for each guess costs more
    # Python tries these files in this order. It uses a .pyc only if there is no source beside it.
    for end in ("/__init__.py", "/__init__.pyc", ".py", ".pyc"):
        if os.path.isfile(base + end):  # noqa: PTH113
            return Path(base + end)
    return None


def _candidates(inside: str, level: int, imported: str) -> Iterator[str]:
    """Yields the name of each module that Python can load when a module of the package `inside`
    imports `imported`.
    """
    name = imported
    if level:
        parts = inside.split(".") if inside else []
        if level > len(parts):  # Python would refuse this import too
            return
        name = ".".join([*parts[: len(parts) - level + 1], *filter(None, [imported])])
    if name:
        yield from _parents(name)
        yield name


def _look(path: Path) -> _Read:
    """Returns the digest of a file and the names that it imports.

    Raises:
        OSError: the file cannot be read.
    """
    about = path.stat()
    stamp = stamp_of(about)
    known = _read.get(path)
    if known is not None and known.stamp == stamp:
        return known
    keeps = rests(about)
    source = path.read_bytes()
    names = () if path.suffix == ".pyc" else tuple(sorted(set(_imports(source))))
    read = _Read(stamp, hashlib.sha256(source).hexdigest(), names)
    if keeps:
        _read[path] = read
    else:
        _read.pop(path, None)
    return read


def _parsed(source: bytes) -> ast.AST:
    """Returns the syntax of the source. Raises what ast.parse() raises."""
    while True:
        try:
            return ast.parse(source)
        except SystemError as error:
            # CPython 3.11 raises this by mistake if a garbage collection during the parse runs a
            # finaliser that switches to other code.
            if "recursion depth mismatch" not in str(error):
                raise


def _imports(source: bytes) -> Iterator[tuple[int, str]]:
    """Yields the imports of the source. For a source with a syntax error it yields nothing: the
    error is reported when Python imports that source.
    """
    try:
        tree = _parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""
            for alias in node.names:  # an imported name can be a module of the package
                yield node.level, ".".join(filter(None, [node.module, alias.name]))
        elif isinstance(node, ast.Call) and node.args:
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            text = node.args[0]
            if (
                name in _BY_NAME
                and isinstance(text, ast.Constant)
                and isinstance(text.value, str)
                and not text.value.startswith(".")
            ):
                yield 0, text.value
