"""Tests the pages in python/docs: code that a reader copies from them works, and every link has a
target.
"""

import ast
import asyncio
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "python/docs"
PAGES = sorted(DOCS.glob("*.md"))
RUN = [
    page
    for page in [ROOT / "python/README.md", *PAGES]
    if re.search(r"^```(python|sh) run", page.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_and_print_what_it_says(page: Path) -> None:
    if sys.version_info < (3, 11) and "asyncio.timeout(" in page.read_text():
        pytest.skip("asyncio.timeout is of Python 3.11")
    run = subprocess.run(
        [sys.executable, ROOT / "tools/doctest_md.py", page], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^[1-9]\d* passed, 0 failed$", run.stdout, re.MULTILINE), run.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("index", ["python/docs/index.md", "tools/site/mkdocs.yml"])
def test_every_page_is_in_the_index(index: str) -> None:
    text = (ROOT / index).read_text()
    missing = [page.name for page in PAGES if page.name != "index.md" and page.name not in text]
    assert not missing, f"add to {index}: {missing}"


def test_the_notebook_prints_what_stands_below_its_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Runs the cells as a notebook does: with one loop, one namespace, and `await` at the top of a
    cell."""
    notebook = json.loads((DOCS / "notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}

    async def run_cells() -> None:
        for cell in cells:
            code = compile(
                "".join(cell["source"]), cell["id"], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            )
            result = eval(code, names)
            if inspect.iscoroutine(result):
                await result
            expected = "".join(line for output in cell["outputs"] for line in output["text"])
            assert capsys.readouterr().out == expected, cell["id"]

    assert cells
    asyncio.run(run_cells())


def test_the_reference_says_what_is_there() -> None:
    """Every public name has a docstring: otherwise python/docs/reference.md could not be
    written."""
    run = subprocess.run(
        [sys.executable, ROOT / "tools/reference.py", "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
