"""Measures how long g++ takes for a small program: the user time of each compilation, and the
memory that it needs.

    compiling.py weft|fiber [FLAGS…] SAMPLES        FLAGS: by default only -O2

With the flag `object`, the figure for bytes is the size of the object file's code and data, not the
compiler's memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import sampler

BENCH = Path(__file__).resolve().parent.parent
FORMS = {
    "weft": "compile/weft.cpp",
    "fiber": "compile/fiber.cpp",
}


def sections(path: Path) -> int:
    """Returns the bytes of code and data in an object file."""
    text, data, bss = (
        subprocess.run(["size", path], check=True, capture_output=True, text=True)
        .stdout.splitlines()[1]
        .split()[:3]
    )
    return int(text) + int(data) + int(bss)


def main() -> None:
    *words, samples = sys.argv[1:]
    if not words or words[0] not in FORMS or not samples.isdigit() or int(samples) < 1:
        sampler.fail(f"usage: {Path(sys.argv[0]).name} {'|'.join(FORMS)} [FLAGS…] SAMPLES")
    form, *flags = words
    measure_object = "object" in flags
    flags = [flag for flag in flags if flag != "object"] or ["-O2"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.o"
        command = [
            "g++",
            "-std=c++20",
            *flags,
            "-I../cpp/include",
            FORMS[form],
            "-c",
            "-o",
            str(out),
        ]
        ns, most = [], 0
        for _ in range(int(samples)):
            compiler = subprocess.Popen(
                command, cwd=BENCH, env={**os.environ, "CCACHE_DISABLE": "1"}
            )
            _, status, used = os.wait4(compiler.pid, 0)
            if status:
                sampler.fail(f"{' '.join(command)}: status {status}")
            ns.append(used.ru_utime * 1e9)
            most = max(most, used.ru_maxrss * 1024)
        print("ns", *(f"{value:.0f}" for value in ns))
        print("bytes", sections(out) if measure_object else most, flush=True)


if __name__ == "__main__":
    main()
