"""The source of a program, which goes along with a call (WIRE-NETWORKS.md 17.26).

    caller: of_modules() or of_folder() ──► Parcel: its digest goes in the first message
        ──the agent has the parcel──► the call begins
        ──the agent asks for it──► packed() ──pieces──► agent: unpacked(), into an empty folder
    an OS process of the agent: enter(), before it runs anything else

Invariants
- The digest of a parcel covers the paths and the bytes of all its files, and the folder in which
  Python looks for modules. packed() returns only bytes that have this digest, and unpacked() writes
  only such bytes.
- unpacked() writes only below its folder: it checks each path first, and opens no file that exists
  already. So it never follows a symbolic link.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from weft._hosts import sources as _sources
from weft._net import foreign_json as _foreign_json
from weft.errors import BadUse

__all__ = [
    "MAX_BYTES",
    "MAX_FILES",
    "SOURCE",
    "Changed",
    "Parcel",
    "Unpacked",
    "enter",
    "intact",
    "is_digest",
    "most_packed",
    "of_folder",
    "of_modules",
    "packed",
    "unpacked",
]

SOURCE = "source"  # --allow of an agent that accepts the source of callers
MAX_BYTES = 64 << 20  # the largest number of bytes of all files of a parcel
MAX_FILES = 10_000
_HEAD = struct.Struct("<I")  # the length of the JSON before the bytes of the files
_MAX_HEAD = 4 << 20  # the largest length of that JSON, in bytes
_LONGEST = 1000  # the longest path, in characters
_LEFT_OUT = "__pycache__"
_VIRTUAL = "pyvenv.cfg"  # a folder with this file is a virtual environment
_MODULES = (".py", ".pyc", ".so")  # the ends of files that Python can import


class Changed(BadUse):
    """Raised if a file of the parcel has changed after its digest was computed."""


class Parcel(NamedTuple):
    """Files that go along with a call."""

    root: str  #: the folder from which Python imports the modules; "" is the parcel's own folder
    files: Mapping[str, _sources.Source]  #: path within the parcel → the file
    folder: bool = False  #: whether these are all files of a folder; then the call runs in its copy

    @property
    def digest(self) -> str:
        return _digest(self.root, self.folder, {p: its.digest for p, its in self.files.items()})


class Unpacked(NamedTuple):
    """A parcel that an agent has unpacked."""

    root: str
    folder: bool
    #: for each file that Python can import, the fields of its stat()
    stamps: dict[str, tuple[int, ...]]


def _digest(root: str, folder: bool, digests: Mapping[str, str]) -> str:
    lines = "".join(f"{digests[path]} {path}\n" for path in sorted(digests))
    return hashlib.sha256(
        f"{'folder' if folder else 'modules'} {root}\n{lines}".encode()
    ).hexdigest()


def is_digest(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def most_packed() -> int:
    """Returns the largest number of bytes that packed() returns."""
    return _HEAD.size + _MAX_HEAD + MAX_BYTES


# --- the caller -----------------------------------------------------------------------------------


def of_modules(module: str, file: Path, covered: Mapping[str, _sources.Source]) -> Parcel | None:
    """Returns the modules that the digest of a call covers. Returns None for a module of an
    installed package: the host needs the whole package.

    Args:
        module, file: as for _hosts/sources.py's files().
        covered: the result of files() for them.
    """
    if _sources.is_installed(_sources.root_of(module, file)):
        return None
    found = {}
    for name, source in covered.items():
        init = source.path.stem == "__init__"
        path = name.replace(".", "/") + ("/__init__" if init else "") + source.path.suffix
        found[path] = source
    return Parcel("", found)


_digests: dict[str, tuple[tuple[int, ...], str]] = {}  # file of a folder → its stamp, its SHA-256


def of_folder(folder: Any, module: str, file: Path) -> Parcel:
    """Returns the files of a folder that contains a module.

    Args:
        folder: the path of the folder.
        module, file: as for _hosts/sources.py's files().
    Raises:
        BadUse: `folder` is not a folder, does not contain the module, or has too many files or
            bytes.
        OSError: a file cannot be read.
    """
    try:
        top = Path(folder).resolve()
    except TypeError:
        raise BadUse(f"working_dir must be the path of a folder, not {folder!r}") from None
    if not top.is_dir():
        raise BadUse(f"working_dir={str(folder)!r} is not a folder")
    root = _sources.root_of(module, file).resolve()
    if not root.is_relative_to(top):
        raise BadUse(
            f"working_dir={str(folder)!r} does not contain module {module!r}, which is in {root}"
        )
    files: dict[str, Path] = {}
    total = 0
    largest = (0, "")
    above = str(top).rstrip("/") + "/"
    for path, size in _below(top):
        within = path.removeprefix(above)
        if not _is_path(within):
            raise BadUse(
                f"working_dir={str(folder)!r}: the name of {within!r} cannot go to another machine"
            )
        files[within] = Path(path)
        total += size
        largest = max(largest, (size, within))
        if len(files) > MAX_FILES or total > MAX_BYTES:
            raise BadUse(
                f"working_dir={str(folder)!r} is too large to go along with a call: at most {MAX_FILES:,} files "
                f"with {MAX_BYTES >> 20} MiB go, and it has more (the largest that was seen is {largest[1]!r}, with "
                f"{largest[0]:,} bytes). Name a folder that has the program alone"
            )
    found = {within: _sources.Source(its, _digest_of(its)) for within, its in files.items()}
    prefix = root.relative_to(top).as_posix() if root != top else ""
    its = file.resolve()
    if its.is_relative_to(top) and its.relative_to(top).as_posix() not in found:
        raise BadUse(
            f"working_dir={str(folder)!r}: module {module!r} is in a part of the folder that does not go along (hidden, "
            "or a virtual environment)"
        )
    return Parcel(prefix, found, folder=True)


def _below(top: Path) -> Iterator[tuple[str, int]]:
    """Yields the files below a folder, each with its size. Files that are hidden, that Python itself
    has made, or that are in a virtual environment are left out. A symbolic link to a file counts as
    that file; a symbolic link to a folder is left out. Sockets, devices and the like are left out
    too.
    """
    for here, folders, names in os.walk(top):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name != _LEFT_OUT
            and not os.path.islink(os.path.join(here, name))  # noqa: PTH114, PTH118
            and not os.path.exists(os.path.join(here, name, _VIRTUAL))  # noqa: PTH110, PTH118
        )
        for name in sorted(names):
            if name.startswith("."):
                continue
            path = os.path.join(here, name)  # noqa: PTH118  # a Path for each file costs more
            try:
                about = os.stat(path)  # noqa: PTH116
            except FileNotFoundError:
                # a symbolic link that leads nowhere, or a file that was deleted
                continue
            if stat.S_ISREG(about.st_mode):
                yield path, about.st_size


def _digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file, which is read only if it might have changed."""
    about = path.stat()
    stamp = _sources.stamp_of(about)
    known = _digests.get(str(path))
    if known is not None and known[0] == stamp:
        return known[1]
    keeps = _sources.rests(about)
    digest = _sources.digest_of(path)
    if keeps:
        _digests[str(path)] = stamp, digest
    else:
        _digests.pop(str(path), None)
    return digest


def packed(parcel: Parcel) -> bytes:
    """Returns the bytes of a parcel, in the form that unpacked() takes.

    Raises:
        Changed: a file was changed or deleted after the parcel was made.
        BadUse: the parcel is too large.
    """
    parts: list[bytes] = []
    listed = []
    total = 0
    for path in sorted(parcel.files):
        source = parcel.files[path]
        try:
            data = source.path.read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != source.digest:
            raise Changed(
                f"{source.path} has changed while it was sent with a call: make the call again once nothing writes to that file"
            )
        total += len(data)
        if total > MAX_BYTES:
            raise BadUse(
                f"the modules that go along with a call have more than {MAX_BYTES >> 20} MiB ({path} is the last that was read): "
                "bring them to the host, and name the function by --allow there"
            )
        parts.append(data)
        listed.append([path, len(data)])
    head = json.dumps([parcel.root, parcel.folder, listed]).encode()
    if len(head) > _MAX_HEAD:
        raise BadUse("the names of the files that go along with a call are too long")
    return b"".join([_HEAD.pack(len(head)), head, *parts])


# --- the agent ------------------------------------------------------------------------------------


def _is_path(path: Any) -> bool:
    """Returns whether this is the path of a file within a parcel: it is relative, and does not lead
    above the parcel.
    """
    if not isinstance(path, str) or not 0 < len(path) <= _LONGEST or not path.isprintable():
        return False
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    return all(part not in (b"", b".", b"..") and len(part) <= 255 for part in parts)


def unpacked(data: bytes | bytearray, digest: str, folder: Path) -> Unpacked:
    """Writes the files of a parcel into an empty folder.

    Raises:
        ValueError: the bytes are not a parcel, or are a parcel with another digest. Nothing was
            written.
        OSError: a file cannot be written.
    """
    view = memoryview(data)
    (size,) = _HEAD.unpack_from(view) if len(view) >= _HEAD.size else (0,)
    at = _HEAD.size + size
    fields = _foreign_json.parsed(bytes(view[_HEAD.size : at]), _MAX_HEAD)
    if not isinstance(fields, list) or len(fields) != 3:
        raise ValueError("it does not begin with the list of its files")
    root, whole, listed = fields
    if not isinstance(whole, bool) or not isinstance(listed, list) or len(listed) > MAX_FILES:
        raise ValueError("the list of its files is not valid")
    if root != "" and not _is_path(root):
        raise ValueError(f"{root!r:.100} is not a folder of it")
    files: dict[str, memoryview] = {}
    for one in listed:
        path: Any
        path, length = one if isinstance(one, list) and len(one) == 2 else (None, None)
        if not _is_path(path) or path in files:
            raise ValueError(f"{path!r:.100} is not the path of a file below its folder")
        if type(length) is not int or not 0 <= length <= len(view) - at:
            raise ValueError(f"its bytes do not suffice for {path!r:.100}")
        files[path] = view[at : at + length]
        at += length
    if at != len(view):
        raise ValueError("it has bytes of no file")
    digests = {path: hashlib.sha256(its).hexdigest() for path, its in files.items()}
    if _digest(root, whole, digests) != digest:
        raise ValueError("its digest is not the one that was announced")
    stamps = {}
    for path, its in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as out:
            out.write(its)
        if path.endswith(_MODULES):
            stamps[path] = _sources.stamp_of(file.stat())
    (folder / root).mkdir(parents=True, exist_ok=True)
    return Unpacked(root, whole, stamps)


def intact(folder: Path, of: Unpacked) -> bool:
    """Returns whether the files that Python can import are those that unpacked() has written."""
    try:
        return all(
            _sources.stamp_of((folder / path).lstat()) == stamp for path, stamp in of.stamps.items()
        )
    except OSError:
        return False


# --- an OS process of the agent -------------------------------------------------------------------


def enter(folder: str, root: str, whole: bool, without: str) -> None:
    """Makes this OS process import the modules of an unpacked parcel. The agent's own folder,
    `without`, is removed from the import path: a module there might be an old version of a module
    that the caller has. If the parcel is a whole folder, it becomes the working folder.
    """
    left_out = os.path.realpath(without)
    sys.path[:] = [
        os.path.join(folder, root),  # noqa: PTH118
        *(path for path in sys.path if path and os.path.realpath(path) != left_out),
    ]
    if whole:
        os.chdir(folder)
