"""C++CSP's names: the cases of cpp/*.cpp under sanitizers, the warning for a value that does not
fit, and the page about the names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).with_name("cpp")
BUILD = ROOT / ".build/cpp"
CASES = [
    (source.stem, case)
    for source in sorted(SOURCES.glob("*.cpp"))
    for case in re.findall(r'^TEST_CASE\(\s*"(.*)"', source.read_text(encoding="utf-8"), re.M)
]

pytestmark = pytest.mark.together  # the tests share builds, which take long


@pytest.fixture(scope="module")
def programs() -> Path:
    """Makes the programs in the sanitized build of the C++ tests, whose library they link."""
    return made("asan-clang", "-DWEFT_TESTS_COMPAT=ON", *sorted({program for program, _ in CASES}))


def made(build: str, *arguments: str) -> Path:
    """Makes targets in a build of the C++ tests, and returns the folder of the build."""
    command = [sys.executable, ROOT / "cpp/tests/run", "--build", build, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / build


@pytest.mark.parametrize(("program", "case"), CASES)
def test_case(programs: Path, program: str, case: str) -> None:
    # The pattern is the whole name: in doctest a comma separates patterns, and * matches any text.
    pattern = re.sub(r"[\\,]", lambda m: "\\" + m[0], case)
    done = subprocess.run(
        [programs / program, f"--test-case={pattern}"],
        env={**os.environ, "ASAN_OPTIONS": "handle_sigill=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"test cases: +1 \| +1 passed", done.stdout), done.stdout


# A value that does not fit (rule 1.9): the warning names the line of the program.
NARROWED = {
    "csp_out(3.7);": True,
    "(void)csp::plugnplay::prefix<int>(3.7, csp_in, csp_out);": True,
    "csp_out(1);": False,
}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_value_that_does_not_fit_is_warned_of(compiler: str, tmp_path: Path) -> None:
    """The warning names the line of the program. Both compilers also accept the headers."""
    head = "#include <weft/compat/csp_plugnplay.hpp>\n#include <csp/csp.h>\n"
    functions = [
        f"void given_{i}(csp::chan_in<int> csp_in, csp::chan_out<int> csp_out) "
        f"{{ (void)csp_in; (void)csp_out; {code} }}"
        for i, code in enumerate(NARROWED)
    ]
    file = tmp_path / "given.cpp"
    file.write_text(head + "\n".join(functions) + "\n")
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wfloat-conversion"]
    folders = ["cpp/include", "compat/cpp/include", "compat/cpp/include/weft/compat/csp"]
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", *warnings, *(f"-I{ROOT / f}" for f in folders), file],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for line, (code, wrong) in enumerate(NARROWED.items(), head.count("\n") + 1):
        expected = re.search(rf"given\.cpp:{line}:\d+: warning: .*conver", done.stderr)
        assert bool(expected) == wrong, (code, done.stderr)


def test_the_page_runs(tmp_path: Path) -> None:
    page = ROOT / "compat/docs/cppcsp.md"
    library = made("clang", "weft") / "weft/libweft.a"
    options = ["--language", "cpp", "--made", library]
    command = [sys.executable, ROOT / "tools/doctest_md.py", *options, page]
    env = {
        **os.environ,
        "CXX": "clang++ -DWEFT_CHECKS=1",
    }  # the compiler and the flags of the library
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
