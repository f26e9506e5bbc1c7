"""Compiles and runs asio_bridge.cpp with stand-alone Asio and with Boost.Asio (rule 18.9), if they
are installed, and says which of them is not. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent.parent / "tools"))

import library_object  # noqa: E402
import progress  # noqa: E402

COMPILER = os.environ.get("CXX") or ("g++" if shutil.which("g++") else "c++")
# The name, the value of WEFT_BOOST_ASIO, and a text that the preprocessor refuses if this Asio is
# missing or too old.
KINDS = (
    ("stand-alone Asio", 0, "#include <asio/version.hpp>\n#if ASIO_VERSION < 101900\n#error\n#endif"),
    ("Boost.Asio", 1, "#include <boost/version.hpp>\n#include <boost/asio/version.hpp>\n"
     "#if BOOST_VERSION < 107700\n#error\n#endif"),
)  # fmt: skip


def is_there(probe: str) -> bool:
    command = [COMPILER, "-std=c++20", "-E", "-x", "c++", "-"]
    return subprocess.run(command, input=probe.encode(), capture_output=True).returncode == 0


def tried(name: str, boost: int, folder: pathlib.Path) -> tuple[int, int]:
    """Returns how many cases have passed and failed."""
    exe = folder / f"asio_bridge_{boost}"
    sources = [str(TESTS / "asio_bridge.cpp"), str(TESTS / "doctest_main.cpp")]
    built = progress.run(
        [COMPILER, *library_object.FLAGS, "-Wall", "-Wextra", f"-DWEFT_BOOST_ASIO={boost}",
         *sources, str(library_object.object_file()), "-o", str(exe)],
        name=f"building with {name}", still=None,
    )  # fmt: skip
    if built.status:
        print(built.output)
        return 0, 1
    ran = progress.run([str(exe)], name=f"the bridge to {name}")
    print(ran.output)
    passed, failed = ran.told.passed, ran.told.failed
    return passed, failed or int(ran.status != 0)


def main() -> int:
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, boost, probe in KINDS:
            if not is_there(probe):
                print(f"skipped: {name} is not installed, or is too old")
                continue
            good, bad = tried(name, boost, pathlib.Path(folder))
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
