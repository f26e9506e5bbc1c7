#!/usr/bin/env python3
"""Writes package.json, what `mip install` copies, from the files of weft/; --check says whether it is up to date."""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent


def text() -> str:
    files = sorted(p.relative_to(HERE).as_posix() for p in (HERE / "weft").rglob("*.py"))
    version = re.search(r'__version__ = "(.*)"', (HERE / "weft/__init__.py").read_text())
    assert version
    package = {"urls": [[f, f] for f in files], "deps": [], "version": version[1]}
    return json.dumps(package, indent=2) + "\n"


if __name__ == "__main__":
    path = HERE / "package.json"
    if "--check" in sys.argv:
        sys.exit(path.read_text() != text())
    path.write_text(text())
