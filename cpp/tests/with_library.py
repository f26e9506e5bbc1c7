"""Compiles and runs the tests of the headers that need another library: asio_bridge.cpp with
stand-alone Asio and with Boost.Asio (rule 18.9), and tls.cpp with OpenSSL (rule 18.10). tls.cpp is
also run against Python's ssl (tls_peers.py). hosted_frames.cpp tests what g++ compiles wrongly,
and needs no other library.

    with_library.py          g++, Boost.Asio and OpenSSL
    with_library.py --all    stand-alone Asio too, for the soak: it is the same code with other names

If a library is not installed, or is too old, a line says so, and its tests are skipped. The last
line is `N passed, N failed`.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent.parent / "tools"))

import library_object  # noqa: E402
import progress  # noqa: E402

COMPILER = os.environ.get("CXX") or ("g++" if shutil.which("g++") else "c++")


class Library(NamedTuple):
    name: str
    probe: str  # C++ that the preprocessor refuses if the library is missing or too old
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    often: bool = True  # whether `./run test` tries it
    beside: str = ""  # a second script of tests, which gets the path of the compiled program


BRIDGE = ("asio_bridge.cpp", "doctest_main.cpp")
LIBRARIES = (
    Library(
        "g++",
        "#if !defined(__GNUC__) || defined(__clang__)\n#error\n#endif",
        ("hosted_frames.cpp", "doctest_main.cpp"),
    ),
    Library(
        "stand-alone Asio",
        "#include <asio/version.hpp>\n#if ASIO_VERSION < 101900\n#error\n#endif",
        BRIDGE,
        ("-DWEFT_BOOST_ASIO=0",),
        often=False,
    ),
    Library(
        "Boost.Asio",
        "#include <boost/version.hpp>\n#include <boost/asio/version.hpp>\n"
        "#if BOOST_VERSION < 107700\n#error\n#endif",
        BRIDGE,
        ("-DWEFT_BOOST_ASIO=1",),
    ),
    Library(
        "OpenSSL",
        "#include <openssl/opensslv.h>\n#if OPENSSL_VERSION_MAJOR < 3\n#error\n#endif",
        ("tls.cpp", "doctest_main.cpp"),
        ("-DWEFT_WITHOUT_MAIN",),
        ("-lssl", "-lcrypto"),
        beside="tls_peers.py",
    ),
)


def is_there(probe: str) -> bool:
    command = [COMPILER, "-std=c++20", "-E", "-x", "c++", "-"]
    return subprocess.run(command, input=probe.encode(), capture_output=True).returncode == 0


def tried(library: Library, folder: pathlib.Path) -> tuple[int, int]:
    """Returns how many cases have passed and failed."""
    exe = folder / library.name.replace(" ", "_")
    sources = [str(TESTS / source) for source in library.sources]
    built = progress.run(
        [COMPILER, *library_object.FLAGS, "-Wall", "-Wextra", *library.flags, *sources,
         str(library_object.object_file()), "-o", str(exe), *library.libraries],
        name=f"building with {library.name}", still=None,
    )  # fmt: skip
    if built.status:
        print(built.output)
        return 0, 1
    ran = progress.run([str(exe)], name=f"the cases with {library.name}")
    print(ran.output)
    passed = ran.told.passed
    failed = ran.told.failed or int(ran.status != 0 or passed == 0)  # no report is a failure
    if library.beside:
        script = TESTS / library.beside
        ran = progress.run([sys.executable, str(script), str(exe)], name=script.name)
        print(ran.output)
        counts = re.search(r"(\d+) passed, (\d+) failed\s*$", ran.output)
        good, bad = (int(counts[1]), int(counts[2])) if counts else (0, 0)
        passed += good
        failed += bad or int(ran.status != 0 or good == 0)
    return passed, failed


def main() -> int:
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            if not library.often and "--all" not in sys.argv[1:]:
                continue
            if not is_there(library.probe):
                print(f"skipped: {library.name} is not installed, or is too old")
                continue
            good, bad = tried(library, pathlib.Path(folder))
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
