"""Keeps results in the user's cache: messages of the C compiler, and the syntax trees of files.

Invariants
- A file of the cache is written whole or not at all. A damaged syntax tree counts as not there.
- The key of a result contains the text, and what Weft and the program bring: sources, headers,
  flags. The versions of lark and of the C compiler, and the system's headers, are not in it.
- Any file may be removed. If there can be no cache, everything takes longer, and nothing else
  changes.
- The folder belongs to the user, and nobody else may write there: trees are read by pickle.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
from pathlib import Path

from weft_lf import parser, tree

FILES = 200  # how many files of one kind the cache keeps
# The modules and the grammar that decide what a syntax tree looks like.
SOURCES = ("parser.py", "tree.py", "errors.py", "grammar.lark", "kept.py")


def cache(kind: str, key: str) -> Path | None:
    """Returns a file of the user's cache; None if there can be none. Of each kind, the FILES newest
    files stay.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / kind
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = root.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            return None
    except OSError:
        return None
    return root / key


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the cache, and removes the oldest files beyond FILES."""
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
        kept = sorted(path.parent.iterdir(), key=lambda p: p.stat().st_mtime_ns)
        for old in kept[:-FILES]:
            old.unlink()


def parse(text: str, file: str) -> tree.File:
    """Returns the syntax tree of `text`, the contents of `file`, as parser.parse() does.

    Raises:
        LfError: the text is not Lingua Franca.
    """
    here = Path(__file__).parent
    stamps = [((here / name).stat().st_mtime_ns, (here / name).stat().st_size) for name in SOURCES]
    key = repr((text, file, stamps, sys.version)).encode("utf-8", "surrogatepass")
    kept = cache("lf-trees", hashlib.sha256(key).hexdigest())
    if kept is not None and kept.exists():
        with contextlib.suppress(Exception):  # A damaged file may raise anything.
            found = pickle.loads(kept.read_bytes())
            if isinstance(found, tree.File):
                return found
    made = parser.parse(text, file)
    if kept is not None:
        with contextlib.suppress(RecursionError):
            keep(kept, pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
    return made


__all__ = ["FILES", "cache", "keep", "parse"]
