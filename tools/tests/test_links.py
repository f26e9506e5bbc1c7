"""Tests that the documents belong together: every link has a target, and a reader who begins at
README.md finds every page.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import types
from pathlib import Path
from types import ModuleType

import pytest
from conftest import FOLDERS, ROOT

# Folders whose pages belong to another project or a build, and need no link from a page.
INSIDE = {"tests", "models", "node_modules", ".venv", ".build", "out"}
PAGES = sorted(
    path.relative_to(ROOT)
    for folder in ("", *FOLDERS)
    for path in (ROOT / folder).glob("**/*.md" if folder else "*.md")
    if not INSIDE & set(path.relative_to(ROOT).parts)
)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")


def slug(heading: str) -> str:
    """Returns the anchor of a heading, as the forges and MkDocs make it for headings without
    markup.
    """
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def links(page: Path) -> list[tuple[Path, str]]:
    """Returns where a page's links lead in the checkout: path from its root, anchor."""
    text = CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    found = []
    for target, anchor in LINK.findall(text):
        if "://" not in target:
            path = (ROOT / page.parent / target).resolve() if target else ROOT / page
            found.append((path.relative_to(ROOT), anchor))
    return found


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for path, anchor in links(page):
        assert (ROOT / path).exists(), f"{page} links to {path}"
        if anchor:
            assert anchor in anchors(ROOT / path), f"{page} links to {path}{anchor}"


def test_every_page_is_two_clicks_from_the_readme() -> None:
    reached = {Path("README.md")}
    for _ in range(2):
        reached |= {path for page in reached if page.suffix == ".md" for path, _ in links(page)}
    missing = [str(page) for page in PAGES if page not in reached]
    assert missing == [], "link to them from a page that README.md links to"


def test_every_page_stands_in_the_navigation_of_the_site() -> None:
    """The navigation contains no other pages. The soak builds and checks the site itself
    (test_site.py).
    """
    navigation = (ROOT / "tools/site/mkdocs.yml").read_text(encoding="utf-8")
    existing = set(re.findall(r"(\S+\.md)$", navigation, re.MULTILINE))
    pages = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert existing == set(pages)


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """Returns the site's hook, without MkDocs, which only the soak installs."""
    spec = importlib.util.spec_from_file_location("hook", ROOT / "tools/site/hook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    names = ("mkdocs.structure.files", "mkdocs.structure.pages")
    stands_in = {n: types.SimpleNamespace(File=object, Files=object, Page=object) for n in names}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("mkdocs", "mkdocs.structure"):
            patch.setitem(sys.modules, name, ModuleType(name))
        for name, module_ in stands_in.items():
            patch.setitem(sys.modules, name, module_)
        spec.loader.exec_module(module)
    return module


def test_the_first_page_of_the_site_takes_programs_and_figures(hook: ModuleType) -> None:
    home = (ROOT / hook.HOME).read_text(encoding="utf-8")
    taken = [hook.taken(*match.groups()[1:]) for match in hook.TAKEN.finditer(home)]
    python, cpp, micropython, board, figures = taken
    assert python.startswith("```python\n") and "weft.run(main())" in python
    assert cpp.startswith("```cpp\n") and "weft::run(" in cpp
    assert "from weft.coroutines import" in micropython and "weft_work(" in board
    assert figures.count("<strong>") == 3
    assert "pip install weft-csp" in home
    with pytest.raises(LookupError, match="no block of rust"):
        hook.taken("code", "README.md", "rust")


def test_the_site_has_a_part_for_each_purpose() -> None:
    navigation = (ROOT / "tools/site/mkdocs.yml").read_text(encoding="utf-8")
    parts = re.findall(r"^  - (\w[^:]*):", navigation.partition("\nnav:\n")[2], re.MULTILINE)
    assert parts == [
        "Weft",
        "Tutorials",
        "How to",
        "Reference",
        "Explanation",
        "Performance",
        "Contributing",
    ]
    for feature in ("content.action.edit", "content.code.copy", "search.suggest"):
        assert f"- {feature}\n" in navigation
    theme = ROOT / "tools/site/theme"
    for name in re.findall(r"assets/[\w.]+", navigation):
        assert (theme / name).is_file()


def test_the_repository_of_the_site(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, address in (
        ("https://forge.example/weft/weft.git", "https://forge.example/weft/weft"),
        ("git@forge.example:weft/weft.git", "https://forge.example/weft/weft"),
        ("/a/folder", None),
    ):
        monkeypatch.setenv("WEFT_REPOSITORY", given)
        assert hook.repository() == address


def test_heads_of_tables_without_words_are_removed(hook: ModuleType) -> None:
    empty = '<thead>\n<tr>\n<th></th>\n<th style="text-align: right;"></th>\n</tr>\n</thead>\n'
    assert hook.on_page_content(f"<table>{empty}<tbody>") == "<table><tbody>"
    named = empty.replace("<th></th>", "<th>a</th>")
    assert hook.on_page_content(named) == named


def test_no_table_has_a_row_without_words() -> None:
    """A head without words is followed by the line of dashes. The site leaves such a head out."""
    bare = re.compile(r"^\|[\s|]*\|$(?!\n\|[-:| ]+\|$)", re.MULTILINE)
    for page in PAGES:
        assert bare.findall((ROOT / page).read_text(encoding="utf-8")) == [], page


def test_tables_stand_on_lines_of_their_own() -> None:
    """A table that was reflowed with the text around it would no longer be a table."""
    dashes = re.compile(r"^ *(> )?\|[-:| ]+\|$")
    for page in PAGES:
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        lines = [line for line in text.splitlines() if "|---" in line]
        assert [line for line in lines if not dashes.match(line)] == [], page
