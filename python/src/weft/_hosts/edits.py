"""Whether a host that stays warm may have an old version of a module (rule 9.6).

    a host is about to begin: Edits() ──► the stamps of what the main module imports
    a call: stale(function)
        ├─the first of its module: the stamps of what the module imports are kept
        └─a file has another stamp than the kept one, or is new ──► its path: a fresh host is needed

A stamp is what the system reports of a file (_hosts/sources.py). What a module imports is read from
its source, as for calls on other machines.

Invariants
- Stamps are kept before the host can import the files. So a host is never newer than its stamps
  say; it may be replaced although it has the newest version.
- Files of installed packages, and of Weft, are not looked at.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from weft._hosts import sources as _sources

__all__ = ["Edits"]

Stamp = tuple[int, ...]
Stamps = dict[str, Stamp]  # path → its stamp


class _Known(NamedTuple):
    folder: str  # the root of the module, whose stamp changes when a file comes or goes
    stamp: Stamp
    files: Stamps


_known: dict[str, _Known] = {}  # file of a module → what it imports


def _stamp(path: str) -> Stamp:
    return _sources.stamp_of(os.stat(path))  # noqa: PTH116  # a Path for each file costs more


def _covered(module: str, file: str) -> Stamps:
    """Returns the stamps of the files that the module imports, and of its own."""
    known = _known.get(file)
    if known is not None:
        with contextlib.suppress(OSError):
            same = _stamp(known.folder) == known.stamp
            if same and all(_stamp(path) == stamp for path, stamp in known.files.items()):
                return known.files
    try:
        root = _sources.root_of(module, Path(file))
        if _sources.is_installed(root):
            return {}
        folder = str(root)
        stamp = _stamp(folder)
        found = _sources.files(module, Path(file))
        files = {str(its.path): _stamp(str(its.path)) for its in found.values()}
    except OSError:  # the source is in an archive, or has vanished
        return {}
    _known[file] = _Known(folder, stamp, files)
    return files


def _of_module(name: Any) -> Stamps:
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
    """The files that a host may have imported, as they were before it did so."""

    def __init__(self) -> None:
        self._kept: Stamps = dict(_of_module("__main__"))
        self._modules: dict[str, frozenset[str]] = {}  # module → the files that it imported

    def stale(self, function: Any) -> list[str]:
        """Returns the files that the function's module imports and that were edited after the host
        may have imported them.
        """
        module = getattr(function, "__module__", None)
        now = _of_module(module)
        if not now:
            return []
        had = self._modules.setdefault(str(module), frozenset(now))
        kept = self._kept
        return [
            path
            for path, stamp in now.items()
            if kept.setdefault(path, stamp) != stamp or path not in had
        ] or sorted(had - now.keys())

    def forget_compiled(self, paths: list[str]) -> None:
        """Removes the compiled files of these sources. Python would take such a file for a source
        that was edited within a second and kept its size.
        """
        for path in paths:
            with contextlib.suppress(OSError, NotImplementedError):
                Path(importlib.util.cache_from_source(path)).unlink()
