"""Checks the types of Weft by mypy and pyright, in networks of several kinds of processes and in
every program of the documents.

pyright is the npm package `pyright`, pinned in python/types/package.json: it is installed from
the registry, and downloads nothing when it runs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed (./run setup lint)")

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "python/src"
PYRIGHT = ROOT / "python/types/node_modules/pyright/index.js"
NETWORKS = Path(__file__).with_name("typed")  # checked strictly
# Checked strictly too; it also contains uses that the checkers must refuse.
EXAMPLE = Path(__file__).with_name("typed_example.py")
# test_native_stubs.py uses the same cache and options: checking the standard library takes mypy
# longer than everything else, so the results are kept in the cache.
CACHE = ROOT / ".build/mypy"
PAGES = [ROOT / "README.md", *sorted((ROOT / "python/docs").glob("*.md"))]

# Reports of type checkers about the documents' programs that are not caused by Weft's types.
KNOWN = (
    # `current_process()` is None in ordinary code, and no checker knows that this code runs in a
    # process.
    r"stopping_\d+\.py.*\"(path|None)\"",
    # This list is empty at first, and receives values of different types.
    r"from_trio_\d+\.py.*\"append\" of \"list\"",
    # This loop always has at least one value.
    r"stopping_\d+\.py.*\"value\" is possibly unbound",
    # The program catches the ImportError of a name that only MicroPython has.
    r"portable_\w+\.py.*\"?ticks_ms\"?",
)


def programs(folder: Path) -> None:
    """Writes the Python programs of the pages into the folder, each in a file of its own."""
    for page in PAGES:
        prefix = page.stem.replace("-", "_")
        blocks = re.findall(
            r"^```python (?:run|save)(.*)\n((?s:.*?))^```", page.read_text("utf-8"), re.MULTILINE
        )
        files = [found[1] for info, _ in blocks if (found := re.search(r"file=(\w+)\.py", info))]
        for number, (info, text) in enumerate(blocks):
            named = re.search(r"file=(\w+)\.py", info)
            for file in files:  # pages have files of the same name
                text = re.sub(rf"^(from|import) {file}\b", rf"\1 {prefix}_{file}", text, flags=re.M)
            name = named[1] if named else str(number)
            (folder / f"{prefix}_{name}.py").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    programs(folder)
    assert len(list(folder.iterdir())) > 50
    shutil.copytree(NETWORKS, folder / "typed")
    return folder


def unknown(lines: list[str]) -> list[str]:
    return [line for line in lines if not any(re.search(known, line) for known in KNOWN)]


def test_mypy_passes_mixed_networks_and_every_documented_program(documented: Path) -> None:
    """mypy checks the networks with --strict. The documents' programs have no annotations: mypy
    checks their functions nevertheless, and demands no annotations.
    """
    config = documented / "mypy.ini"
    config.write_text(
        f"""[mypy]
mypy_path = {SOURCES}
strict = True
follow_imports = silent
[mypy-{",".join(p.stem for p in documented.glob("*.py"))}]
disallow_untyped_defs = False
disallow_untyped_calls = False
disallow_any_generics = False
disallow_untyped_decorators = False
warn_return_any = False
disable_error_code = var-annotated, import-untyped, import-not-found
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", CACHE,
         "--no-error-summary", ".", EXAMPLE],
        capture_output=True, text=True, cwd=documented, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    assert unknown([line for line in done.stdout.splitlines() if ": error: " in line]) == []


@pytest.mark.soak  # mypy checks the same programs
@pytest.mark.skipif(
    not PYRIGHT.exists() or shutil.which("node") is None,
    reason="pyright is not installed (./run setup types)",
)
def test_pyright_passes_them_too(documented: Path) -> None:
    config = {"extraPaths": [str(SOURCES)], "typeCheckingMode": "standard",
              "reportMissingImports": False, "strict": ["typed"]}  # fmt: skip
    (documented / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        ["node", PYRIGHT, "--outputjson", "--pythonpath", sys.executable],
        capture_output=True, text=True, cwd=documented, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > 50
    wrong = [
        f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in report["generalDiagnostics"]
        if one["severity"] == "error"
    ]
    assert unknown(wrong) == []
