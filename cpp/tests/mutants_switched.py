"""Mutants that share one copy of the library, so that the tests are compiled only once (g++ -O0).
The environment variable WEFT_MUTANT switches one mutant on.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import sys

from mutants import CPP, Text, each_dies, mutated, place, progress, what_failed

TESTS = CPP / "tests"
STILL = 60  # seconds without a sign of life; the tests of one mutant take some seconds

# The header that every file of the copy includes first.
SWITCH = """#pragma once
#include <cstdlib>
inline int weft_mutant() {
  static const int n = [] {
    const char* const s = std::getenv("WEFT_MUTANT");
    return s ? std::atoi(s) : 0;
  }();
  return n;
}
"""


def number(name: str) -> str:
    """Returns the number of a mutant, as the text after the letters of its name."""
    return name.lstrip("abcdefghijklmnopqrstuvwxyz")


def switched(name: str, what: str, file: str, old: str, new: str) -> Text:
    """Makes a mutant of the part of `old` between « and », or of all of `old`. In `new`, {part}
    stands for this part, and {mutant} for the test whether the mutant is switched on."""
    before, mark, rest = old.partition("«")
    part, _, after = rest.partition("»") if mark else (old, "", "")
    before = before if mark else ""
    text = new.replace("{mutant}", f"weft_mutant() == {number(name)}").replace("{part}", part)
    return Text(name, what, file, before + part + after, before + text + after, "")


def unless(name: str, what: str, file: str, old: str, instead: str = "") -> Text:
    """Makes a mutant that takes out a statement, or puts another one in its place."""
    return switched(name, what, file, old, f"if ({{mutant}}) {{ {instead} }} else {{ {{part}} }}")


def either(name: str, what: str, file: str, old: str, instead: str) -> Text:
    """Makes a mutant that puts another expression in the place of an expression."""
    return switched(name, what, file, old, f"({{mutant}} ? ({instead}) : ({{part}}))")


def copied(mutants: list[Text], work: pathlib.Path) -> pathlib.Path:
    """Writes a copy of the library with all mutants, and returns its folder."""
    copy = work / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    for part in ("include", "src"):
        shutil.copytree(CPP / part, copy / part)
    for m in mutants:
        path = place(m, copy)
        path.write_text(mutated(m, path.read_text()))
    (copy / "switch.hpp").write_text(SWITCH)
    return copy


def build(
    mutants: list[Text], sources: tuple[str, ...], flags: tuple[str, ...], work: pathlib.Path
) -> None:
    """Compiles the tests with the copy: the program `tests` in the folder."""
    copy = copied(mutants, work)
    made = progress.run(
        [
            "g++",
            "-std=c++20",
            "-O0",
            *flags,
            "-include",
            str(copy / "switch.hpp"),
            f"-I{copy}/include",
            f"-I{TESTS}",
            *(str(TESTS / source) for source in sources),
            str(copy / "src/weft.cpp"),
            "-o",
            str(work / "tests"),
            "-pthread",
        ],
        name="building the tests with all mutants",
        still=None,
    )
    if made.status:
        raise SystemExit(f"mutants_switched.py: the tests do not build:\n{made.output}")


def killed_by(m: Text, work: pathlib.Path) -> str:
    """Returns what detected the mutant, or "" if nothing did."""
    run = progress.run(
        [str(work / "tests")],
        name=f"tests of mutant {m.name}",
        still=STILL,
        env={**os.environ, "WEFT_MUTANT": number(m.name)},
    )
    return what_failed(run)


def try_all(
    usage: str | None, mutants: list[Text], sources: tuple[str, ...], flags: tuple[str, ...] = ()
) -> int:
    """Tries the mutants that the command line names, in the folder that it names. Returns the exit
    status."""
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        folder = pathlib.Path(sys.argv[1]).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        build(mutants, sources, flags, folder)
        if killed := killed_by(dataclasses.replace(mutants[0], name="0"), folder):
            raise SystemExit(f"mutants_switched.py: without a mutant the tests fail: {killed}")
    return each_dies(usage, mutants, killed_by)
