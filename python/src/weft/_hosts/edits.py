"""Finds out whether a host that stays warm may have an old version of a module (rule 9.6).

    a host is about to begin: Edits() ──► the digests of what the main module imports
    a call: stale(function)
        ├─the first of its module: the digests of what the module imports are kept
        └─a file has another digest than the kept one, or is new ──► its path: a fresh host is
          needed

What a module imports is read from its source, as for calls on other machines (_hosts/sources.py).

Invariants
- Digests are kept before the host can import the files. So a host's modules are never older than
  its digests say. They may be newer: then the host is replaced although it has the newest version.
- The files are not read again for a call as long as their stamps stay the same, if their last edit
  was some seconds ago when they were read. So a second edit in one tick of the file system's clock
  is noticed too.
- Files of installed packages, and of Weft, are not examined.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from weft._hosts import sources as _sources

__all__ = ["Edits"]

Stamp = tuple[int, ...]
Digests = dict[str, str]  # path → SHA-256


class _Known(NamedTuple):
    """The files that a module imports, with the stamp that each had when it was read, and the stamp
    of the root folder, which changes when a file is added or removed.
    """

    stamps: dict[str, Stamp]
    digests: Digests


_known: dict[str, _Known] = {}  # file of a module → what it imports


def _covered(module: str, file: str) -> Digests:
    """Returns the digests of the files that the module imports, and of the module's own file."""
    known = _known.get(file)
    with contextlib.suppress(OSError):
        if known is not None and all(
            _sources.stamp_of(os.stat(path)) == stamp  # noqa: PTH116  # a Path for each file costs more
            for path, stamp in known.stamps.items()
        ):
            return known.digests
    _known.pop(file, None)
    try:
        root = _sources.root_of(module, Path(file))
        if _sources.is_installed(root):
            return {}
        found = _sources.files(module, Path(file))
        digests = {str(its.path): its.digest for its in found.values()}
        abouts = {path: Path(path).stat() for path in (str(root), *digests)}
    except OSError:  # the source is in an archive, or was deleted
        return {}
    if all(map(_sources.rests, abouts.values())):
        stamps = {path: _sources.stamp_of(about) for path, about in abouts.items()}
        _known[file] = _Known(stamps, digests)
    return digests


def _of_module(name: Any) -> Digests:
    module = sys.modules.get(name) if isinstance(name, str) else None
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return {}
    called = getattr(getattr(module, "__spec__", None), "name", None) or name
    if called == "__main__":
        called = Path(file).stem
    if called.partition(".")[0] == "weft":
        return {}
    return _covered(called, os.path.realpath(file) if name == "__main__" else file)


class Edits:
    """The files that a host might have imported, as they were before the host imported them."""

    def __init__(self) -> None:
        self._kept: Digests = dict(_of_module("__main__"))
        self._modules: dict[str, frozenset[str]] = {}  # module → the files that it imported

    def stale(self, function: Any) -> list[str]:
        """Returns the files that the function's module imports and that were edited or added since
        the host might have imported the module; if there are none, the files that were removed
        since then.
        """
        module = getattr(function, "__module__", None)
        now = _of_module(module)
        if not now:
            return []
        had = self._modules.setdefault(str(module), frozenset(now))
        kept = self._kept
        return [
            path
            for path, digest in now.items()
            if kept.setdefault(path, digest) != digest or path not in had
        ] or sorted(had - now.keys())

    def forget_compiled(self, paths: list[str]) -> None:
        _sources.forget_compiled(paths)
