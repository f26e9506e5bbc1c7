"""Makes C from the files that `protobufs` names, by protoc-c, the compiler of protobuf-c.

Invariants
- For each file NAME.proto, protoc-c makes NAME.pb-c.h and NAME.pb-c.c in the program's folder of
  src-gen/. They have the same path there as NAME.proto has below the folder of the `.lf` file that
  names it. If NAME.proto is not below that folder, they are in the program's folder itself.
- The program includes these headers before its preambles, and is linked with LIBRARY.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from weft_lf.errors import Span, fail
from weft_lf.target import Config

LIBRARY = "protobuf-c"
COMPILER = "protoc-c"
Find = Callable[[str, Span], Path]


def _base(source: Path, span: Span) -> Path:
    """Returns the path, without its ending, of the files that are made from `source`."""
    beside = Path(span.file).resolve().parent
    inside = source.is_relative_to(beside)
    return (source.relative_to(beside) if inside else Path(source.name)).with_suffix("")


def bases(config: Config, find: Find) -> dict[Path, tuple[Path, Span]]:
    """Returns, for each file that the program names, the path (without its ending) of the files
    that are made from it, and with it the file itself and the place that names the file.

    Raises:
        LfError: a file is missing, or two files make the same names.
    """
    found: dict[Path, tuple[Path, Span]] = {}
    for name, span in config.protobufs:
        source = find(name, span)
        base = _base(source, span)
        if found.setdefault(base, (source, span))[0] != source:
            raise fail(span, f"a second {base}.proto", "both would make one header; rename one")
    return found


def headers(config: Config, find: Find) -> list[str]:
    """Returns the lines that include the headers."""
    return [f'#include "{base.as_posix()}.pb-c.h"' for base in bases(config, find)]


def make(config: Config, find: Find, place: Path) -> list[Path]:
    """Writes the headers and C files below `place`. Returns the C files.

    Raises:
        LfError: protoc-c is not installed, or refuses a file.
    """
    made: list[Path] = []
    for base, (source, span) in bases(config, find).items():
        root = source.parents[len(base.parts) - 1]
        command = [COMPILER, f"--c_out={place}", f"-I{root}", str(source)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
        except FileNotFoundError:
            hint = "install it (Debian: protobuf-c-compiler and libprotobuf-c-dev)"
            raise fail(
                span, f"'protobufs' needs {COMPILER}, which is not installed", hint
            ) from None
        if ran.returncode:
            text = f"{COMPILER} refuses this file:\n{(ran.stderr + ran.stdout).strip()}"
            raise fail(span, text, "correct the file")
        made.append(place / f"{base}.pb-c.c")
    return made
