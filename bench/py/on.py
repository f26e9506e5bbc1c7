"""Runs a program of this folder on a backend: on.py BACKEND PROGRAM ARGS…

The programs are written with `await`; for threads and greenlets the word is removed before they are
compiled (weft.styles), so that one text is measured on all backends.
"""

import sys
from pathlib import Path

from weft import styles

if len(sys.argv) < 3:
    sys.exit("usage: on.py coroutines|greenlets|threads PROGRAM ARGS…")
backend, program = sys.argv[1:3]
path = Path(__file__).with_name(f"{program}.py")
sys.argv[:3] = [str(path)]
exec(
    styles.compile_for(backend, path.read_bytes(), str(path)),
    {"__name__": "__main__", "__file__": str(path)},
)
