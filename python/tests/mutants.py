"""Breaks the extension on purpose, one edit at a time (mutants_list.py): a test must notice each
edit (MUTANTS.md).

    mutants.py                 runs every mutant, and names the test that kills it; exit status 1 if
    one survives mutants.py NAME…           runs the named mutants mutants.py --slice A:B     runs
    mutants A to B of the list mutants.py --check         only checks that every edit still applies

All edits are in one build at -O0, in a copy of the sources under .build/mutants/, and the
environment variable WEFT_MUTANT says which one is on. First the killers (the tests that should
notice) run without a mutant, and must pass. A mutant is killed if its killer fails, crashes or
hangs. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "cpp" / "explorer"), str(ROOT / "tools")]

import progress  # noqa: E402
from mutants_list import MUTANTS, Mutant  # noqa: E402
from mutated import pattern  # noqa: E402

NATIVE = ROOT / "python" / "native"
WORK = ROOT / ".build" / "mutants"
TREE = WORK / "tree"
BUILD = (
    TREE / ".build" / "quick" / "python"
)  # as deep as the build of tools/quick.py, so that ccache finds its objects
SWITCH = """#pragma once
#include <cstdlib>
namespace weft::py {
inline const int weft_mutant = std::getenv("WEFT_MUTANT") ? std::atoi(std::getenv("WEFT_MUTANT")) : 0;
}
"""
COPIED = ("CMakeLists.txt", "pyproject.toml", "cpp", "python/native", "python/pure.cmake")


class DoesNotApply(Exception):
    """The text of a mutant does not occur exactly once in its file."""


def number(name: str) -> int:
    return list(MUTANTS).index(name) + 1


def switched(m: Mutant, on: str, old: str) -> str:
    """Returns the text that replaces `old`, the text in the file."""
    if "@" in m.new:
        return m.new.replace("@", f"({on})")
    if m.old.rstrip().endswith(";"):
        return f"if ({on}) {{ {m.new} }} else {{ {old} }}"
    return f"(({on}) ? ({m.new}) : ({old}))"


def mutated(file: str, mutants: dict[str, Mutant], text: str) -> str:
    """Returns the file with all its mutants in it. Raises DoesNotApply."""
    places: dict[tuple[int, int], str] = {}
    for name, m in mutants.items():
        if m.file != file:
            continue
        found = [hit.span() for hit in pattern(m.old).finditer(text)]
        if len(found) != 1:
            raise DoesNotApply(
                f"mutant {name}: its text stands {len(found)} times in {file}, not once; bring it up to date"
            )
        at = found[0]
        old = places.get(at, text[slice(*at)])  # two mutants of the same text are nested
        places[at] = switched(m, f"weft_mutant == {number(name)}", old)
    for (begin, end), new in sorted(places.items(), reverse=True):
        text = text[:begin] + new + text[end:]
    return f'#include "weft_mutant.hpp"\n#line 1\n{text}' if places else text


def check() -> int:
    bad = 0
    for name, m in MUTANTS.items():
        try:
            text = (NATIVE / m.file).read_text(encoding="utf-8")
            if mutated(m.file, {name: m}, text) == text:
                raise DoesNotApply(f"mutant {name} changes nothing")
            if not (HERE / m.killer.partition("::")[0]).exists():
                raise DoesNotApply(f"mutant {name}: there is no test {m.killer}")
        except (DoesNotApply, OSError) as gone:
            print(gone)
            bad += 1
    print(f"{len(MUTANTS) - bad} passed, {bad} failed")
    return int(bad > 0)


def write(path: Path, text: str) -> None:
    """Writes a file only if its text has changed, so that no other file is compiled again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def build() -> None:
    """Builds all mutants in one package, WORK/package."""
    files = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", *COPIED],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in files.stdout.splitlines():
        if "/tests/" in name:
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        if name.startswith("python/native/"):
            text = mutated(name.removeprefix("python/native/"), MUTANTS, text)
        write(TREE / name, text)
    write(TREE / "python/native/weft_mutant.hpp", SWITCH)
    python = ROOT / ".venv" / "bin" / "python"
    options = ["-DWEFT_BUILD_TESTS=OFF", "-DWEFT_INSTALL=OFF", "-DWEFT_BUILD_PYTHON=ON"]
    options += ["-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={python}"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    for command in (
        ["cmake", "-G", "Ninja", "-S", str(TREE), "-B", str(BUILD), *options],
        ["cmake", "--build", str(BUILD), "-j", "2"],
    ):
        made = progress.run(command, name="building the mutants", still=None)
        if made.status:
            raise SystemExit(f"mutants.py: the mutants do not build:\n{made.output[-8000:]}")
    package = WORK / "package" / "weft"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "src" / "weft", package)
    for header in (ROOT / "cpp" / "include" / "weft").glob("component*.h*"):
        write(package / "include" / "weft" / header.name, header.read_text(encoding="utf-8"))
    write(
        package / "cmake" / "weft-component.cmake",
        (ROOT / "cpp/cmake/weft-component.cmake").read_text(),
    )
    for module in (ROOT / "micropython" / "weft").glob("*.py"):  # the tests run in pure Python too
        write(package / "_pure" / module.name, module.read_text(encoding="utf-8"))
    for module in (BUILD / "python" / "native").glob("_native*.so"):
        shutil.copy2(module, package)


def tested(mutant: int, tests: list[str]) -> progress.Ran:
    env = {
        **os.environ,
        "PYTHONPATH": f"{WORK / 'package'}{os.pathsep}{ROOT}",
        "WEFT_MUTANT": str(mutant),
        "WEFT_CACHE": str(ROOT / ".build" / "components"),
    }
    python = ROOT / ".venv" / "bin" / "python"
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        *tests,
    ]
    return progress.run(command, name=f"mutant {mutant}", cwd=HERE, env=env, own_group=True)


def killed_by(name: str) -> str:
    """Returns the test that notices the mutant; "" if no test does."""
    ran = tested(number(name), [MUTANTS[name].killer])
    if ran.hung:
        return f"{MUTANTS[name].killer} (hangs)"
    if ran.status < 0:
        return f"{MUTANTS[name].killer} (crashes)"
    failed = [line for line in ran.output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if failed:
        return failed[0].split(" ")[1].split("/")[-1]
    return f"{MUTANTS[name].killer} (ends)" if ran.status else ""


def main() -> int:
    say = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    say.add_argument("names", nargs="*", metavar="NAME")
    say.add_argument("--slice", default=":", metavar="A:B")
    say.add_argument("--check", action="store_true")
    given = say.parse_args()
    if given.check:
        return check()
    first, _, last = given.slice.partition(":")
    names = given.names or list(MUTANTS)[int(first or 0) : int(last) if last else None]
    build()
    killers = sorted({MUTANTS[name].killer for name in names})
    without = tested(0, killers)
    if without.status:
        print(without.output[-8000:], "The killers fail without any mutant.", sep="\n")
        print("0 passed, 1 failed")
        return 1
    print("| mutant | what is broken | killed by |\n|---|---|---|")
    alive = 0
    for name in names:
        by = killed_by(name)
        alive += not by
        print(f"| {name} | {MUTANTS[name].what} | {by or '**nothing**'} |", flush=True)
    print(f"{len(names) - alive} passed, {alive} failed")
    return int(alive > 0)


if __name__ == "__main__":
    sys.exit(main())
