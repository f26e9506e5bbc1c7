"""Tests that the documents belong together: every link has a target, and a reader who begins at
README.md finds every page.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import FOLDERS, ROOT

# Folders whose pages belong to something else, through which readers find them.
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
