"""What MkDocs needs to know of these pages: the contract is a page too, and code blocks carry words for the tests."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

SEMANTICS = Path(__file__).resolve().parent.parent / "SEMANTICS.md"


def on_files(files: Files, config: Any) -> Files:
    """Adds SEMANTICS.md, which lives at the root of the checkout."""
    files.append(File.generated(config, "semantics.md", content=SEMANTICS.read_text()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Takes the words `run`, `save`, `file=…` from the fences and points links at the added page."""
    markdown = markdown.replace("(../../SEMANTICS.md", "(semantics.md")
    return re.sub(r"^```(\w+) .*$", r"```\1", markdown, flags=re.MULTILINE)
