"""Adds the pages and pictures of this checkout, which are in its rooms, to the site of MkDocs under
their own paths.

Invariants
- Every page and picture that git knows is part of the site, except those of tests and those that a
  build made. home.md is the first page, and README.md is the tour.
- A link to a file that is not a page (a source, a folder) leads into the repository if its address
  is known. Otherwise the link becomes the path of the file, as code: the site has no sources.
- Code blocks lose the words for the tests (`run`, `save`, `file=…`).
- The first page has no program and no figure of its own: `<!-- code: PAGE LANGUAGE -->` takes the
  first block of that language from a page whose programs are tested, and `<!-- figures: PAGE -->`
  takes the table of figures.

The repository's address is the variable WEFT_REPOSITORY, or else that of the remote `origin` if it
is one of the web. Without one the site has no link to the repository, and none to edit a page.
"""

import html
import os
import posixpath
import re
import subprocess
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
HOME, TOUR = "tools/site/home.md", "README.md"
OWN = "tools/site/theme/"  # MkDocs itself handles the theme's pictures
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
TAKEN = re.compile(r"^( *)<!-- (code|figures): (\S+) ?(\S*) -->$", re.MULTILINE)
FIGURES = re.compile(
    r"^\| a communication \| takes \| beside it \|\n\|.*\n((?:\|.*\n)+)", re.MULTILINE
)
NO_HEADS = re.compile(r"<thead>\s*<tr>(?:\s*<th[^>]*>\s*</th>)+\s*</tr>\s*</thead>\s*")


def _git(*arguments: str, text: str | None = None) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=text)
    return done.stdout.splitlines()


def known() -> list[str]:
    """Returns the pages and pictures that git knows (new ones too), as paths from the root."""
    wanted = ["*.md", "*.svg", "*.png", "*.ipynb"]
    found = _git("ls-files", "--cached", "--others", "--exclude-standard", "--", *wanted)
    return sorted(p for p in set(found) if (ROOT / p).is_file() and not p.startswith(OWN))


def version() -> str:
    text = (ROOT / "cpp/include/weft/version.hpp").read_text("utf-8")
    return ".".join(re.findall(r"#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def repository() -> str | None:
    """Returns the address of the repository on the web, without a slash at its end."""
    address = os.environ.get("WEFT_REPOSITORY") or "".join(_git("config", "remote.origin.url"))
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", address)
    return re.sub(r"(\.git)?/*$", "", address) if address.startswith("https://") else None


def written_by_tools(pages: list[str]) -> set[str]:
    """Returns those of `pages` that .gitattributes marks as written by tools."""
    lines = _git("check-attr", "linguist-generated", "--stdin", text="\n".join(pages))
    return {line.partition(": ")[0] for line in lines if line.endswith(": set")}


def on_config(config: Any) -> Any:
    """Puts the version into the name of the site, and adds the repository's address."""
    config.site_name = f"{config.site_name} {version()}"
    config.repo_url = repository()
    if config.repo_url is not None:
        config.repo_name = "/".join(config.repo_url.rsplit("/", 2)[1:])
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and pictures of the checkout to the site."""
    pages = known()
    config.extra["by_tools"] = written_by_tools([p for p in pages if p.endswith(".md")])
    for path in pages:
        if path.endswith(".md"):
            file = File.generated(config, path, content=(ROOT / path).read_text("utf-8"))
            if path == HOME:
                file.name, file.dest_uri = "index", "index.html"
            elif path == TOUR:
                file.name, file.dest_uri = "tour", "tour/index.html"
            files.append(file)
        else:
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def taken(what: str, path: str, language: str) -> str:
    """Returns a program, or the figures, of a page.

    Raises:
        LookupError: the page has no such thing.
    """
    text = (ROOT / path).read_text("utf-8")
    if what == "code":
        found = re.search(rf"^```{language}(?: [^\n]*)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if found is None:
            raise LookupError(f"{path} has no block of {language}")
        return f"```{language}\n{found[1]}```"
    table = FIGURES.search(text)
    if table is None:
        raise LookupError(f"{path} has no table of figures")
    cards = ""
    for row in table[1].splitlines():
        which, figure, beside = (html.escape(cell.strip()) for cell in row.strip("|").split("|"))
        cards += f"<div><span>{which}</span><strong>{figure}</strong><span>{beside}</span></div>"
    return f'<div class="weft-figures">{cards}</div>'


def on_page_markdown(markdown: str, page: Page, files: Files, config: Any, **_: Any) -> str:
    """Removes from a page the words for the tests, and the links that lead out of the site."""
    source = page.file.src_uri
    here = posixpath.dirname(source)
    if config.repo_url and source not in config.extra["by_tools"]:
        page.edit_url = f"{config.repo_url}/edit/main/{source}"

    def take(match: re.Match[str]) -> str:
        indent, *rest = match.groups()
        return "\n".join(indent + line if line else "" for line in taken(*rest).splitlines())

    def lead(match: re.Match[str]) -> str:
        _, text, target, _ = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(here, target))
        if files.get_file_from_path(path) is not None:
            return match[0]
        if (ROOT / path / "README.md").is_file():  # a link to a folder leads to the folder's README
            return match[0].replace(target, posixpath.join(target, "README.md"))
        if config.repo_url and (ROOT / path).exists():
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"[{text}]({config.repo_url}/{kind}/main/{path})"
        return text if text.startswith("`") else f"{text} (`{path}`)"

    if source == HOME:
        markdown = TAKEN.sub(take, markdown)
    out = []
    at = 0
    for block in BLOCK.finditer(markdown):
        out.append(LINK.sub(lead, markdown[at : block.start()]))
        out.append(re.sub(r"\A```(\w+) .*", r"```\1", block[0]))
        at = block.end()
    out.append(LINK.sub(lead, markdown[at:]))
    return "".join(out)


def on_page_content(content: str, **_: Any) -> str:
    """Removes table heads in which no cell has words."""
    return NO_HEADS.sub("", content)
