"""Compares the C interface with upstream's, whose headers are read from a folder.

    .venv/bin/python lf/tests/interface.py FOLDER

FOLDER is a copy of lf-lang/reactor-c. For each of its public headers the program prints a line with
the number of names that are there and the number of names that differ. After these lines it prints
the names that lf/interface.toml does not contain. The exit status is 1 if there are such names.

A name is public if a header under an `api`, `core` or `util` folder defines it as a macro, a type
or a function, and it does not begin with an underscore.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import tomllib

TABLE = Path(__file__).resolve().parents[1] / "interface.toml"
HEADERS = (
    "*/api/*.h",
    "include/*/*.h",
    "include/core/utils/*.h",
    "include/core/utils/hashset/*.h",
    "util/*.h",
)
LEFT_OUT = ("federated", "network", "modal_models", "threaded", "/platform/", "hashmap")
WORDS = {"if", "while", "for", "int", "void", "size_t", "error", "defined", "NULL"}


def table() -> tuple[list[str], list[tuple[re.Pattern[str], str]]]:
    """Returns the names that weft_mcu/lf.h has, and patterns of the names that it lacks, each with
    the reason.
    """
    read = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return read["there"].split(), [(re.compile(d["names"]), d["reason"]) for d in read["differs"]]


def public(text: str) -> set[str]:
    """Returns the names that a header defines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    found = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    found |= set(re.findall(r"^(?!#)[\w \t*]+?[ *](\w+)\s*\([^;{]*\)\s*[;{]", text, re.M))
    types = re.findall(r"\}\s*(\w+)\s*;|typedef[^;{]*?(\w+)\s*;", text)
    found |= {inner or outer for inner, outer in types}
    guards = re.compile(r"_|\w*_H_?$")
    return {n for n in found if not guards.match(n) and n not in WORDS}


def main(folder: Path) -> int:
    there, differs = table()
    unknown: list[str] = []
    headers = sorted({p for pattern in HEADERS for p in folder.glob(pattern)})
    for path in (p for p in headers if not any(w in str(p.relative_to(folder)) for w in LEFT_OUT)):
        names = public(path.read_text(encoding="utf-8", errors="replace"))
        here = {n for n in names if n in there}
        other = {n for n in names - here if any(p.fullmatch(n) for p, _ in differs)}
        unknown += [f"{path.relative_to(folder)}: {n}" for n in sorted(names - here - other)]
        print(f"{path.relative_to(folder)!s:48} {len(here):3} there, {len(other):3} differ")
    print("\n".join(unknown))
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
