"""Tells MkDocs about this checkout: its pages and pictures are in the rooms, and are added under
their own paths.

Invariants
- Every page and picture that git knows is part of the site, except those that belong to a test or
  that a build made.
- A link to a file that is not a page (a source, a folder) becomes the path of the file, as code,
  because the site has no sources.
- Code blocks lose the words for the tests (`run`, `save`, `file=…`).
"""

import posixpath
import re
import subprocess
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def known() -> list[str]:
    """Returns the pages and pictures that git knows (new ones too), as paths from the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--"]
    wanted = ["*.md", "*.svg", "*.png"]
    out = subprocess.run([*command, *wanted], cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(p for p in set(out.stdout.splitlines()) if (ROOT / p).is_file())


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and pictures of the checkout to the site."""
    for path in known():
        if path.endswith(".md"):
            files.append(File.generated(config, path, content=(ROOT / path).read_text("utf-8")))
        else:
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Removes from a page the words for the tests, and the links that lead out of the site."""
    here = posixpath.dirname(page.file.src_uri)

    def lead(match: re.Match[str]) -> str:
        _, text, target, _ = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(here, target))
        if files.get_file_from_path(path) is not None:
            return match[0]
        if (ROOT / path / "README.md").is_file():  # a link to a folder leads to the folder's README
            return match[0].replace(target, posixpath.join(target, "README.md"))
        return text if text.startswith("`") else f"{text} (`{path}`)"

    out = []
    at = 0
    for block in BLOCK.finditer(markdown):
        out.append(LINK.sub(lead, markdown[at : block.start()]))
        out.append(re.sub(r"\A```(\w+) .*", r"```\1", block[0]))
        at = block.end()
    out.append(LINK.sub(lead, markdown[at:]))
    return "".join(out)
