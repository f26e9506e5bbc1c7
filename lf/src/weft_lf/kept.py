"""Keeps results in the user's cache: a folder for each kind of result, a file for each result.

Invariants
- A file of the cache has a checksum and a content, and is written whole or not at all. A file whose
  content does not fit its checksum counts as missing.
- The key of a result contains what decides the result. A result that also depends on files, such as
  headers, has their stamps in its content, and its reader compares them.
- Any file may be removed, and several processes may use the cache at once. If there can be no
  cache, everything takes longer, and nothing else changes.
- The folder belongs to the user, and no other user may write there, because some contents are read
  by pickle.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

FILES = 200  # how many files of one kind the cache keeps
Stamp = list[int]


def _path(kind: str, key: object) -> Path | None:
    """Returns the file of a result; None if there can be no cache. Keys with the same repr() are
    one key.
    """
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / kind
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = root.stat()
    except (OSError, RuntimeError):  # RuntimeError: the user's home folder is not known.
        return None
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        return None
    return root / hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()


def _signed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def read(kind: str, key: object) -> bytes | None:
    """Returns the content that keep() has written for this kind and key; None if there is none."""
    path = _path(kind, key)
    if path is None:
        return None
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[hashlib.sha256().digest_size :]
    return content if whole == _signed(content) else None


def keep(kind: str, key: object, content: bytes) -> None:
    """Writes a file of the cache. Of each kind, the FILES newest files are kept."""
    path = _path(kind, key)
    if path is None:
        return
    with contextlib.suppress(OSError):
        made = tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False)  # noqa: SIM115
        try:
            with made:
                made.write(_signed(content))
            Path(made.name).replace(path)
        except OSError:
            Path(made.name).unlink(missing_ok=True)
            raise
        for old in _by_age(path.parent)[:-FILES]:
            with contextlib.suppress(OSError):
                old.unlink()


def _by_age(folder: Path) -> list[Path]:
    """Returns the files of the folder, the oldest first. Another process may remove files
    meanwhile.
    """
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    """Returns the time of the last change and the size of each file. Missing files are left out."""
    found: dict[str, Stamp] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            one = Path(path).stat()
            found[path] = [one.st_mtime_ns, one.st_size]
    return found


__all__ = ["FILES", "keep", "read", "stamps"]
