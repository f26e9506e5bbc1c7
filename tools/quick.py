"""Runs the few tests that a change touches, and builds no more than they need.

    ./run quick                    the tests of the files changed since the last commit (or in it)
    ./run quick PATH…              the tests of these files or folders; a file of tests is run itself
    ./run quick CASE               every test whose name contains CASE, in any room
    ./run quick PATH… -k CASE      the tests of PATH whose names contain CASE
    ./run quick --list [PATH|CASE] lists the tests without running them

tools/quick.toml says which tests belong to which files. These are only the nearest tests: before a
change is merged, `./run test ROOM` runs the rest. The builds are made to be fast: -O0, a program
for each file of C++ tests, no library in between, the Python package as `pip install --editable`
makes it. ccache is used where it is installed.

`./run quick --measure` changes one line in each of three files, one after the other, runs the tests
of that file, restores the line, and prints the seconds that the tests took (CONTRIBUTING.md has the
goals).

Invariants
- Only the standard library (Python 3.11, for tomllib).
- Everything that is built goes to .build/quick/. The environment .venv/ is used and not changed.
- The last line on stdout is `N passed, N failed`; the exit status is 0 only if nothing failed. No
  test at all is a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build" / "quick"
VENV = BUILD / "venv"
PYTHON = VENV / "bin" / "python"
TABLE = ROOT / "tools" / "quick.toml"
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)

# The files that `--measure` changes, and the goal for each: seconds, on two quiet CPUs.
MEASURED = [
    ("cpp/include/weft/core/channel.hpp", 20),
    ("python/native/choice/choice.cpp", 40),
    ("python/src/weft/_backends/limits.py", 5),
]


class Refused(Exception):
    """Raised if the command cannot be carried out. The message gives the remedy."""


def say(text: str) -> None:
    print(f"quick: {text}", file=sys.stderr, flush=True)


# --- the choice of tests ------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One [[touch]] of quick.toml: after a change of `paths`, `tests` are run."""

    paths: tuple[str, ...]
    tests: tuple[str, ...]


def table(path: Path = TABLE) -> list[Row]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["touch"]
    return [Row(tuple(row["paths"]), tuple(row["tests"])) for row in rows]


def is_test(path: str) -> bool:
    """Returns whether the file contains tests, so that it can be run alone."""
    name = path.rsplit("/", 1)[-1]
    return (
        (fnmatch.fnmatch(name, "test_*.py") and "/tests/" in path)
        or bool(re.fullmatch(r"cpp/tests/(core|hosted|library|wire)_\w+\.cpp", path))
        or name.endswith(".test.mjs")
        or (name.endswith(".md") and "```" in (ROOT / path).read_text(encoding="utf-8"))
    )


def tests_of(path: str, rows: Iterable[Row]) -> list[str]:
    """Returns the tests of a file, by the first row that matches, as paths or `FILE::NAME`s."""
    for row in rows:
        if any(fnmatch.fnmatch(path, pattern) for pattern in row.paths):
            return [found for test in row.tests for found in expanded(test)]
    return [path] if is_test(path) else []


def expanded(test: str) -> list[str]:
    """Returns the files that a test of quick.toml stands for."""
    pattern, marks, name = test.partition("::")
    if any(c in pattern for c in "*?["):
        return sorted(str(p.relative_to(ROOT)) + marks + name for p in ROOT.glob(pattern))
    return [test]


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return done.stdout.splitlines()


def changed() -> list[str]:
    """Returns the files that differ from the last commit, including new files. If there are none,
    returns the files that the last commit has changed.
    """
    files = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    if not files:
        files = git("diff", "--name-only", "HEAD~1", "HEAD")
        say(f"nothing has changed since the last commit; its {len(files)} files are taken")
    return files


def files_below(path: str) -> list[str]:
    given = Path(path)
    full = (given if given.is_absolute() else Path.cwd() / given).resolve()
    if not full.exists():
        full = (ROOT / path).resolve()
    try:
        inside = str(full.relative_to(ROOT))
    except ValueError:
        raise Refused(f"{path} is not in this checkout") from None
    if full.is_file():
        return [inside]
    return git("ls-files", "--cached", "--others", "--exclude-standard", "--", inside)


# --- cases by name ------------------------------------------------------------------------------

# Where the names of cases are found: files, a pattern whose group is the name, and the test that
# runs them (None: the file itself).
NAMED = [
    ("cpp/tests/*.cpp", re.compile(r'TEST_CASE(?:_TEMPLATE)?\(\s*"((?:[^"\\]|\\.)*)"'), None),
    ("*/tests/**/test_*.py", re.compile(r"^(?:async )?def (test_\w+)", re.M), None),
    (
        "conformance/scenarios/rules_*.py",
        re.compile(r"^async def (\w+)\(\)", re.M),
        "conformance/tests/test_scenarios.py",
    ),
    ("**/tests/*.test.mjs", re.compile(r"^\s*(?:test|it)\(\s*['\"`](.+?)['\"`],", re.M), None),
    ("mcu/tests/run", re.compile(r'@job\(f?"([^"]+)"\)'), "mcu/tests/run"),
]


def named(case: str) -> list[str]:
    """Returns every test, as `FILE::NAME`, whose name contains `case`."""
    found = []
    for pattern, names, runner in NAMED:
        for path in sorted(ROOT.glob(pattern)):
            where = str(path.relative_to(ROOT))
            if "node_modules" in where:
                continue
            text = path.read_text(encoding="utf-8")
            found += [f"{runner or where}::{n}" for n in names.findall(text) if case in n]
    return list(dict.fromkeys(found))


# --- the runners of tests -----------------------------------------------------------------------

Names = dict[str, list[str]]  # file → the requested names; an empty list means the whole file
Counts = tuple[int, int]  # passed, failed


def quietly(command: list[str], **more: object) -> bool:
    """Runs a command, and shows its output only if it fails. Returns whether it has succeeded."""
    done = subprocess.run(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more
    )  # type: ignore[call-overload]
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    return bool(done.returncode == 0)


def shown(command: list[str], **more: object) -> tuple[int, str]:
    """Runs a command, shows its output as it arrives, and returns status and output."""
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more
    ) as child:  # type: ignore[call-overload]
        for line in child.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return child.returncode, "".join(lines)


def closing(status: int, output: str) -> Counts:
    """Returns the counts in the last line of one of this checkout's runners; without a line, one
    failure.
    """
    counts = SUMMARY.findall(output)
    passed, failed = map(int, counts[-1]) if counts else (0, 0)
    return passed, failed if counts and (failed or not status) else max(failed, 1)


def building() -> dict[str, str]:
    """Returns the environment of a build. ccache, if it is installed, compiles only files that it
    has not compiled before.
    """
    env = dict(os.environ)
    if shutil.which("ccache"):
        env.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    return env


def need(*parts: str) -> None:
    if not quietly(["tools/setup", *parts]):
        raise Refused(f"tools/setup {' '.join(parts)} failed; its output is above")


def by_doctest(tests: Names) -> Counts:
    """Runs C++ tests: a program for each file, compiled alone at -O0."""
    tree = BUILD / "cpp"
    if not (tree / "build.ninja").exists():
        need("cpp")
        chosen = ["-DWEFT_TESTS_EACH=ON", "-DCMAKE_CXX_FLAGS=-O0"]
        command = ["cmake", "-G", "Ninja", "-S", "cpp/tests", "-B", str(tree), *chosen]
        if not quietly(command, env=building()):
            raise Refused("cmake could not configure cpp/tests; its output is above")
    stems = {Path(path).stem: names for path, names in tests.items()}
    say(f"compiling {', '.join(stems)}")
    build = ["cmake", "--build", str(tree), "--target"]
    all_built = quietly([*build, *(f"each_{stem}" for stem in stems), "--", "-k", "0"])
    passed = failed = 0
    for stem, names in stems.items():
        if (
            not all_built
            and subprocess.run([*build, f"each_{stem}"], capture_output=True).returncode
        ):
            print(f"FAIL  {stem} does not compile; the compiler's words are above")
            failed += 1
            continue
        wanted = ",".join("*" + name.replace(",", "\\,") + "*" for name in names)
        command = [str(tree / f"each_{stem}"), *([f"--test-case={wanted}"] if wanted else [])]
        status, output = shown(command)
        counts = re.search(r"test cases: *(\d+) \| *(\d+) passed \| *(\d+) failed", output)
        passed += int(counts[2]) if counts else 0
        failed += int(counts[3]) if counts and (int(counts[3]) or not status) else int(status != 0)
    return passed, failed


def make_editable() -> None:
    """Makes an environment whose package is the files of this checkout. The extension module is
    compiled at -O0, as far as it has changed.
    """
    packages = next((ROOT / ".venv" / "lib").glob("python3*/site-packages"))
    tree = BUILD / "python"
    inside = VENV / packages.relative_to(ROOT / ".venv")
    files = "\n".join(git("ls-files", "python/src", "lf/src", "*CMakeLists.txt", "pyproject.toml"))
    stamp = BUILD / "python.files"
    if not PYTHON.exists():
        quietly([sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)])
    # The folder of weft.compat (see weft/_not_installed/compat.py), and the packages of .venv.
    (inside / "venv.pth").write_text(f"{ROOT / 'compat/python/src'}\n{packages}\n")
    if not stamp.exists() or stamp.read_text() != files:
        say("installing the package as --editable; the first time its extension module is compiled")
        command = [str(ROOT / ".venv/bin/pip"), "--python", str(PYTHON), "install", "-q", "-e", "."]
        options = ["--no-build-isolation", "--no-deps", f"-Cbuild-dir={tree}"]
        if not quietly([*command, *options, "-Ccmake.build-type=Debug"], env=building()):
            raise Refused("the package could not be installed; the output of pip is above")
        stamp.write_text(files)
    if not quietly(["cmake", "--build", str(tree)]):
        raise Refused("the extension module does not compile")
    quietly(["cmake", "--install", str(tree), "--prefix", str(inside / "weft")])


def by_pytest(tests: Names) -> Counts:
    rooms = tomllib.loads((ROOT / "tools" / "rooms.toml").read_text(encoding="utf-8"))["rooms"]
    # The tests also need the parts that their rooms need, except the package, which is installed
    # below, and the library, which the few tests that use it compile themselves.
    parts = {"python"}
    for path in tests:
        parts |= set(rooms[path.split("/tests/")[0]]["setup"]) - {"library", "weft"}
    need(*sorted(parts))
    make_editable()
    calls: dict[tuple[str, bool], list[str]] = {}  # (room, whether names are requested) → calls
    for path, names in tests.items():
        calls.setdefault((path.split("/tests/")[0], bool(names)), []).append(path)
    passed = failed = 0
    for (_, some), paths in calls.items():
        asked = " or ".join(name for path in paths for name in tests[path])
        command = [
            str(PYTHON),
            "tools/pytest_room.py",
            *paths,
            "-q",
            *(["-k", asked] if some else []),
        ]
        lanes = os.environ.get("WEFT_LANES", "1" if some or len(paths) < 4 else "2")
        counts = closing(*shown(command, env={**os.environ, "WEFT_LANES": lanes}))
        passed, failed = passed + counts[0], failed + counts[1]
    return passed, failed


def by_node(tests: Names) -> Counts:
    need("mcu")
    passed = failed = 0
    for path, names in tests.items():
        chosen = [f"--test-name-pattern={re.escape(name)}" for name in names]
        status, output = shown(["node", "--test", "--test-reporter=tap", *chosen, path])
        counts = [int(n) for n in re.findall(r"^# (?:pass|fail) (\d+)", output, re.M)][-2:]
        good, bad = counts if len(counts) == 2 else (0, 0)
        passed, failed = passed + good, failed + (bad or int(status != 0))
    return passed, failed


def by_itself(tests: Names) -> Counts:
    """Runs a room's own runner, which accepts parts of the names of its tests."""
    passed = failed = 0
    for path, names in tests.items():
        counts = closing(*shown([path, *names]))
        passed, failed = passed + counts[0], failed + counts[1]
    return passed, failed


def by_document(tests: Names) -> Counts:
    make_editable()
    passed = failed = 0
    for path in tests:
        counts = closing(*shown([str(PYTHON), "tools/doctest_md.py", path]))
        passed, failed = passed + counts[0], failed + counts[1]
    return passed, failed


RUNNERS: list[tuple[str, Callable[[Names], Counts]]] = [  # the first pattern that matches is used
    ("cpp/tests/*.cpp", by_doctest),
    ("*.py", by_pytest),
    ("*.mjs", by_node),
    ("*.md", by_document),
    ("*/run", by_itself),
    ("conformance/models/check.py", by_itself),
]


def run(tests: list[str]) -> Counts:
    """Runs tests, given as `FILE` or `FILE::NAME`, each by the runner of its file."""
    names: Names = {}
    for test in tests:
        path, _, name = test.partition("::")
        names.setdefault(path, []).extend([name] if name else [])
    for test in tests:
        if "::" not in test:
            names[test] = []
    passed = failed = 0
    for pattern, runner in RUNNERS:
        own = {path: names.pop(path) for path in list(names) if fnmatch.fnmatch(path, pattern)}
        if own:
            counts = runner(own)
            passed, failed = passed + counts[0], failed + counts[1]
    if names:
        raise Refused(f"no runner knows how to run {', '.join(names)}")
    return passed, failed


# --- the command --------------------------------------------------------------------------------


def asked(words: list[str], only: str) -> list[str]:
    """Returns the tests that the command line names."""
    rows = table()
    tests: list[str] = []
    for word in words:
        if (ROOT / word).exists() or Path(word).exists():
            files = files_below(word)
        else:
            tests += named(word)
            if not tests:
                raise Refused(f"'{word}' is not a file, and no test has it in its name")
            continue
        tests += [test for file in files for test in tests_of(file, rows)]
    if not words:
        tests += [test for file in changed() for test in tests_of(file, rows)]
    tests = list(dict.fromkeys(tests))
    if only:
        tests = [t if "::" in t else f"{t}::{only}" for t in tests]
    return tests


@contextlib.contextmanager
def touched(path: Path) -> Iterator[None]:
    """Adds a line to the file, as an edit would, and removes it afterwards. The line is not a
    comment, because ccache would see no change.
    """
    before = path.read_bytes()
    line = "assert {} > 0\n" if path.suffix == ".py" else "static_assert({}ull > 0);\n"
    path.write_bytes(before + line.format(time.time_ns()).encode())
    try:
        yield
    finally:
        path.write_bytes(before)


def measure(as_json: bool) -> int:
    figures = []
    for path, hope in MEASURED:
        tests = asked([path], "")
        run(tests)  # builds everything that the following edit does not touch
        with touched(ROOT / path):
            began = time.monotonic()
            passed, failed = run(tests)
            took = time.monotonic() - began
        figures.append(
            {
                "line in": path,
                "seconds": round(took, 1),
                "hope": hope,
                "passed": passed,
                "failed": failed,
            }
        )
    if as_json:
        print(json.dumps(figures))
    else:
        for f in figures:
            print(
                "{line in:45} {seconds:6} s of {hope:3}   {passed} passed, {failed} failed".format(
                    **f
                )
            )
    return int(any(f["failed"] for f in figures))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./run quick",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "words", nargs="*", metavar="PATH|CASE", help="files, folders, or a part of a test's name"
    )
    parser.add_argument(
        "-k", dest="only", default="", metavar="CASE", help="only tests whose name contains CASE"
    )
    parser.add_argument("--list", action="store_true", help="list the tests without running them")
    parser.add_argument("--measure", action="store_true", help="time three edits (above)")
    parser.add_argument("--json", action="store_true", help="--list and --measure: as JSON")
    options = parser.parse_args()
    if options.measure:
        return measure(options.json)
    tests = asked(options.words, options.only)
    if options.list:
        print(json.dumps(tests) if options.json else "\n".join(tests))
        return 0
    if not tests:
        raise Refused("no test belongs to these files: tools/quick.toml has no row for them")
    began = time.monotonic()
    passed, failed = run(tests)
    say(f"{time.monotonic() - began:.1f} s")
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or passed == 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as refused:
        sys.exit(f"quick: {refused}")
    except KeyboardInterrupt:
        sys.exit(130)
