"""The distribution weft-compat beside weft: where weft.compat is found, the error without the
distribution, and its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import weft
import weft.compat

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(weft.__file__).parent
OLD_NAMES = Path(weft.compat.__path__[0])


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A folder with weft but without weft-compat."""
    for file in INSTALLED.iterdir():
        if file.name != "compat":
            (tmp_path / "weft").mkdir(exist_ok=True)
            (tmp_path / "weft" / file.name).symlink_to(file)
    return tmp_path


def output_of(code: str, *folders: Path) -> str:
    """Returns the output of the program, which finds weft in these folders."""
    path = os.pathsep.join(map(str, folders))
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(
        command, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("module", ["compat", "compat.pycsp", "compat.apycsp.plugNplay"])
def test_without_it_the_import_says_how_to_get_it(module: str, alone: Path) -> None:
    code = f"try: import weft.{module}\nexcept ModuleNotFoundError as e: print(e.name, '|', e)\nelse: raise 1"
    name, _, why = output_of(code, alone).partition(" | ")
    assert name == "weft.compat"
    assert why == (
        "the names of PyCSP and aPyCSP are a package of their own: pip install 'weft-csp[compat]'\n"
    )


PROGRAM = """
import weft.compat.pycsp_locks
print(weft.compat.__path__[0])
print(weft.compat.pycsp_locks.__file__)
"""


def test_beside_weft_it_is_found_as_a_package_of_weft(alone: Path) -> None:
    (alone / "weft/compat").symlink_to(OLD_NAMES)
    there = f"{alone}/weft/compat"
    assert output_of(PROGRAM, alone).split() == [there, f"{there}/pycsp_locks/__init__.py"]


def test_in_another_folder_of_the_path_it_is_found_too(alone: Path) -> None:
    """The old names are found too if weft is installed for the system, and weft-compat for the
    user."""
    other = alone / "other"
    (other / "weft").mkdir(parents=True)
    (other / "weft/compat").symlink_to(OLD_NAMES)
    there = f"{other}/weft/compat"
    for folders in ((alone, other), (other, alone)):
        assert output_of(PROGRAM, *folders).split() == [there, f"{there}/pycsp_locks/__init__.py"]


def test_it_is_for_one_version_of_weft() -> None:
    version = weft.__version__
    assert metadata.version("weft-compat") == version
    assert metadata.requires("weft-compat") == [f"weft-csp=={version}"]
    wanted = [
        w for w in metadata.requires("weft-csp") or () if 'extra == "compat"' in w.replace("'", '"')
    ]
    assert len(wanted) == 1 and wanted[0].startswith("weft-compat;")


def test_the_blocks_of_its_page_run_and_print_what_it_says() -> None:
    page = ROOT / "compat/docs/pycsp.md"
    command = [sys.executable, ROOT / "tools/doctest_md.py", page]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^[1-9]\d* passed, 0 failed$", run.stdout, re.MULTILINE), run.stdout
