"""For each mutant of the extension, the text that the mutant replaces and the test that kills it
must still exist; otherwise the mutant would test nothing (MUTANTS.md).
"""

from __future__ import annotations

import pytest
from mutants import NATIVE, DoesNotApply, mutated
from mutants_list import MUTANTS, Mutant


@pytest.mark.parametrize("name", MUTANTS)
def test_it_applies(name: str) -> None:
    m = MUTANTS[name]
    text = (NATIVE / m.file).read_text(encoding="utf-8")
    assert mutated(m.file, {name: m}, text) != text
    test, _, case = m.killer.partition("::")
    assert f"def {case}" in (NATIVE.parent / "tests" / test).read_text(encoding="utf-8")


def test_all_of_a_file_apply_together() -> None:
    for file in {m.file for m in MUTANTS.values()}:
        text = (NATIVE / file).read_text(encoding="utf-8")
        mutated(file, MUTANTS, text)


def test_one_that_no_longer_applies_is_told() -> None:
    gone = {"read-end": Mutant("", "f", "no such text", "", "")}
    with pytest.raises(DoesNotApply, match="mutant read-end: its text stands 0 times in f"):
        mutated("f", gone, "something else")


def test_what_takes_the_place() -> None:
    def changed(old: str, new: str) -> str:
        text = mutated("f", {"read-end": Mutant("", "f", old, new, "")}, "x; if (a) b(c); y;")
        return text.splitlines()[-1]

    assert changed("a", "false") == "x; if (((weft_mutant == 1) ? (false) : (a))) b(c); y;"
    assert changed("b(c);", ";") == "x; if (a) if (weft_mutant == 1) { ; } else { b(c); } y;"
    assert changed("if (a)", "if (!@ && a)") == "x; if (!(weft_mutant == 1) && a) b(c); y;"
