"""Tests that ARCHITECTURE.md and the page about guards are correct: each path exists, and each name
is in the file that it follows.

A path is from the root. In a table, and in a paragraph that names a folder, it may be from that
folder. A name with () follows its file: `path`: `f()`, `g()` and `h()`. Other names may also follow
a file, and are checked in the same way.
"""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

# The pages, and how many paths and lists of names each has at least.
PAGES = {"ARCHITECTURE.md": (150, 50), "cpp/docs/add-a-guard.md": (30, 9)}
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(
    r"\.?[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|pyi|cpp|hpp|c|h|md|toml|mjs))|[\w.-]+(?:/[\w.-]+)+"
)
# `path`: `name`, `name` and `name`
LIST = re.compile(r"`([^`\n]+)`:((?:(?:,?(?: and| or)?) `[^`/\n]+`)+)")
MADE = {".build/", ".venv/", "out/", "node_modules/"}  # folders that builds make
PATTERNS = {"tools/TASK", "ROOM/tests/run", "ROOM/tests/soak"}


def blocks(text: str) -> list[str]:
    """Returns the paragraphs, list items and rows of a page, each as one line. A row has the head of
    its table before it.
    """
    found: list[str] = []
    head = ""
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n"):
        line, begins = line.strip(), re.match(r"\s*(?:- |\d+\. |\||#|$)", line)
        if line.startswith("|"):
            head = head or line
            found.append(line if line == head else f"{head} {line}")
            continue
        head = ""
        if begins or not found or found[-1].startswith(("|", "#")):
            found.append(line)
        else:
            found[-1] += " " + line if found[-1] else line
    return [block for block in found if block]


def paths_missing(block: str) -> list[str]:
    paths = [code for code in CODE.findall(block) if PATH.fullmatch(code) and code not in MADE]
    named = [path for path in paths if path.endswith("/")]
    folders = [ROOT, *(ROOT / a for a in named), *(ROOT / a / b for a in named for b in named)]
    return [
        path
        for path in paths
        if path not in PATTERNS and not any((folder / path).exists() for folder in folders)
    ]


def has(suffix: str, text: str, name: str) -> bool:
    """Returns whether a file defines or, in C and C++, declares or calls this name."""
    *outer, last = re.split(r"::|\.", name.removesuffix("()"))
    if not all(re.search(rf"\b{word}\b", text) for word in outer):
        return False
    if not name.endswith("()"):
        return bool(re.search(rf"\b{last}\b", text))
    if suffix == ".py":
        return bool(re.search(rf"\bdef {last}\(", text))
    of = "::".join([*outer, ""]) if suffix == ".cpp" else r"\b"
    return bool(re.search(rf"{of}{last}\(", text))


def names_missing(block: str) -> list[str]:
    missing, named = [], set()
    for path, listed in LIST.findall(block):
        file = ROOT / path
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        names = CODE.findall(listed)
        named |= set(names)
        missing += [f"{path}: {name}" for name in names if not has(file.suffix, text, name)]
    alone = {name for name in CODE.findall(block) if re.fullmatch(r"[\w.:]+\(\)", name)}
    return missing + [f"{name} stands after no file" for name in sorted(alone - named)]


@pytest.mark.parametrize("page", PAGES)
def test_each_path_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert sum(bool(PATH.fullmatch(code)) for code in CODE.findall(text)) > PAGES[page][0]
    assert [path for block in blocks(text) for path in paths_missing(block)] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_name_is_in_its_file(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert sum(len(LIST.findall(block)) for block in blocks(text)) > PAGES[page][1]
    # The programs of the page about guards also define names.
    own = [f"{name}() stands after no file" for name in ("fill", "flag.raised")]
    missing = [name for block in blocks(text) for name in names_missing(block)]
    assert [name for name in missing if page == "ARCHITECTURE.md" or name not in own] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("By `tools/tests/test_architecture.py`: `blocks()` and `has()`.", []),
        ("| folder of `tools/` | |\n|---|---|\n| `tests/` | `names.py` |", []),
        ("By `blocks()`.", ["blocks() stands after no file"]),
        ("By `tools/names.py`: `blocks()`.", ["tools/names.py: blocks()"]),
        ("By `names.py`.", ["names.py"]),
        ("`tools/` has\n`names.py`.\n\nThen `names.py`.", ["names.py"]),
        (
            "By `cpp/src/wire/home.cpp`: `Home::asked()`, `Far::asked()`.",
            ["cpp/src/wire/home.cpp: Far::asked()"],
        ),
    ],
)
def test_what_is_wrong_is_told(text: str, wrong: list[str]) -> None:
    assert [w for b in blocks(text) for w in paths_missing(b) + names_missing(b)] == wrong
