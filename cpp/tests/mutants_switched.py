"""Mutants that are all in one copy of the library, so that their tests are compiled only once. The
environment variable WEFT_MUTANT switches one of them on, by the number in its name.

A table of mutants makes each of them by unless(), either() or switched(), and calls run().
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import sys

from mutants import CPP, Text, each_dies, mutated, place, progress, what_failed

TESTS = CPP / "tests"
STILL = 60  # seconds without a sign of life; the tests of one mutant take a few seconds

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
    """Returns the number in a mutant's name: 7 for io7."""
    return re.sub(r"\D", "", name)


def switched(name: str, what: str, file: str, old: str, new: str) -> Text:
    """Makes a mutant of the part of `old` between « and », or of all of `old`. In `new`, {part}
    stands for this part, and {mutant} for the test whether the mutant is switched on."""
    before, mark, rest = old.partition("«")
    part, _, after = rest.partition("»") if mark else (old, "", "")
    before = before if mark else ""
    text = new.replace("{mutant}", f"weft_mutant() == {number(name)}").replace("{part}", part)
    return Text(name, what, file, before + part + after, before + text + after, "")


def unless(name: str, what: str, file: str, old: str, instead: str = "") -> Text:
    """Makes a mutant that removes a statement, or replaces it by `instead`."""
    return switched(name, what, file, old, f"if ({{mutant}}) {{ {instead} }} else {{ {{part}} }}")


def either(name: str, what: str, file: str, old: str, instead: str) -> Text:
    """Makes a mutant that puts another expression in the place of an expression."""
    return switched(name, what, file, old, f"({{mutant}} ? ({instead}) : ({{part}}))")


def copied(work: pathlib.Path, mutants: list[Text]) -> pathlib.Path:
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
    work: pathlib.Path, mutants: list[Text], sources: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    """Compiles the tests with the copy, as the program `tests`."""
    copy = copied(work, mutants)
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
        name=f"building {sources[0]} with all mutants",
        still=None,
    )
    if made.status:
        raise SystemExit(f"{sys.argv[0]}: the tests do not build:\n{made.output}")


def killed_by(m: Text, work: pathlib.Path) -> str:
    """Returns what detected the mutant, or "" if nothing did."""
    run = progress.run(
        [str(work / "tests")],
        name=f"tests of mutant {m.name}",
        still=STILL,
        env={**os.environ, "WEFT_MUTANT": number(m.name)},
    )
    return what_failed(run)


def run(
    usage: str | None, mutants: list[Text], sources: tuple[str, ...], flags: tuple[str, ...] = ()
) -> int:
    """Builds and tries the mutants as the command line says (each_dies()). Returns the status."""
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        work = pathlib.Path(sys.argv[1]).resolve()
        work.mkdir(parents=True, exist_ok=True)
        build(work, mutants, sources, flags)
        if killed := killed_by(dataclasses.replace(mutants[0], name="0"), work):
            raise SystemExit(f"{sys.argv[0]}: without a mutant the tests fail: {killed}")
    return each_dies(usage, mutants, killed_by)
