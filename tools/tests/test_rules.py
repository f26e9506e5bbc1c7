"""Tests that every numbered rule of SEMANTICS.md is cited by a test, and that every rule that is
cited exists.

A citation is `rule 5.3` or `rules 3.1, 3.2` (or just M5 or R5, in mcu/ and lf/) in the name, the
docstring or a comment of one test, or the argument of `@scenario` and `@outermost`. A citation in
the head of a file does not count for its tests, because it would remain when the test is removed.
The author of a test must make sure that the test fails when the rule is broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FOLDERS, ROOT

# Rules that no test cites, and why. A rule that is not implemented yet needs a line here.
UNTESTED: dict[str, str] = {}

TEXTS = {".py", ".pyi", ".cpp", ".hpp", ".c", ".h", ".mjs", ".md", ".pml", ".ipynb", ".lf", ""}
NUMBER = r"(?:\d+\.\d+|[MR]\d+)"
CITED = re.compile(
    rf"\brules?\s+({NUMBER}(?:(?:,|,? and|,? or| to| [^\W\d]+,)\s+{NUMBER})*)", re.IGNORECASE
)
MARKED = re.compile(r"^@(?:scenario|outermost)\(([^)]*)\)", re.MULTILINE)
ALONE = re.compile(r"(?<![-\w])([MR]\d+)(?!\s*[+\w])")  # matches M5, but not Cortex-M0 or M0+
BY_LETTER = ("mcu", "lf")  # the rooms in which a citation may be just the letter and number
# The head of a file: all text before its first line of code.
PYTHON_HEAD = re.compile(r'\A(?:#[^\n]*\n)*\s*""".*?"""', re.DOTALL)
HEAD = re.compile(r"\A(?:\s+|//[^\n]*\n|#![^\n]*\n|/\*.*?\*/)*", re.DOTALL)


def rules_of(text: str) -> list[str]:
    return [a or b for a, b in re.findall(r"(?m)^(?:(\d+\.\d+) |\*\*([MR]\d+)\. )", text)]


def citations(text: str, marks: bool = False, alone: bool = False) -> set[str]:
    """Returns the numbers that a text cites. `marks` includes the rules of scenarios; `alone`
    includes M5 without a `rule` before it.
    """
    found = [match[1] for match in CITED.finditer(text)]
    found += MARKED.findall(text) if marks else []
    found += ALONE.findall(text) if alone else []
    return {number for part in found for number in re.findall(NUMBER, part)}


def without_head(path: Path, text: str) -> str:
    if path.suffix == ".lf":  # a program is one test
        return text
    return (PYTHON_HEAD if path.suffix == ".py" else HEAD).sub("", text, count=1)


def files() -> Iterator[tuple[Path, str]]:
    """Yields every text file that was written for this repository."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            place = path.relative_to(ROOT)
            if (
                path.suffix in TEXTS
                and path.is_file()
                and not {"node_modules", "__pycache__"} & set(place.parts)
            ):
                yield place, path.read_text(encoding="utf-8", errors="ignore")
    for path in sorted(ROOT.glob("*.md")):
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def is_test(place: Path) -> bool:
    return place.parts[0] != "tools" and bool({"tests", "scenarios"} & set(place.parts))


RULES = rules_of((ROOT / "SEMANTICS.md").read_text(encoding="utf-8"))


def test_every_rule_is_cited_by_a_test() -> None:
    assert len(RULES) == len(set(RULES)) > 100
    cited: set[str] = set()
    for place, text in files():
        if is_test(place):
            alone = place.parts[0] in BY_LETTER
            cited |= citations(without_head(place, text), marks=True, alone=alone)
    missing = [rule for rule in RULES if rule not in cited and rule not in UNTESTED]
    assert not missing, (
        f"no test cites {', '.join(missing)}: write one, or say in UNTESTED why there is none"
    )
    assert cited.isdisjoint(UNTESTED), "a rule in UNTESTED has a test"
    assert set(UNTESTED) <= set(RULES), "UNTESTED names a rule that does not exist"


def test_every_cited_rule_exists() -> None:
    wrong = []
    for place, text in files():
        if place.name == Path(__file__).name:
            continue
        alone = place.parts[0] in BY_LETTER and place.parts[1] == "tests"
        found = citations(text, marks=is_test(place), alone=alone)
        wrong += [f"{place}: rule {number}" for number in sorted(found - set(RULES))]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Rule 5.3: as it is", {"5.3"}),
        ('TEST_CASE("rules 3.1, 3.2 and 4.1: ends")', {"3.1", "3.2", "4.1"}),
        ("(rules 4.1 poison, 3.1 retire)", {"4.1", "3.1"}),
        ("version 3.11, 2.5 times, rule 8", set()),
        ("rule M5", {"M5"}),
        ("/* M7: again */ on a Cortex-M33, an M0+", set()),
    ],
)
def test_what_a_citation_is(text: str, found: set[str]) -> None:
    assert citations(text) == found


def test_marks_numbers_alone_and_heads() -> None:
    assert citations('@scenario("1.2", "3.4")\nasync def f(): ...', marks=True) == {"1.2", "3.4"}
    assert citations("/* M7: again */ on a Cortex-M33, an M0+", alone=True) == {"M7"}
    assert citations(without_head(Path("a.py"), '"""Rule 1.1."""\n# rule 1.2')) == {"1.2"}
    assert citations(
        without_head(Path("a.c"), "/* rule 1.1 */\n// rule 1.3\nint a; // rule 1.2")
    ) == {"1.2"}
    assert rules_of("1.2 A rule.\n**M3. Another.** 4.5 is none\n") == ["1.2", "M3"]
