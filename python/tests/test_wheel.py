"""The wheel that `./run build` has made, in an environment that has nothing else and in an empty
folder: the programs of the first pages run there, and print what the pages say.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import doctest_md
import wheel_check

ROOT = Path(__file__).resolve().parents[2]

# What a page needs beyond the core (its extra, or numpy) is not here, so these pages are those that
# a newcomer reads first.
PAGES = ["README.md", "python/docs/package.md", "python/docs/tutorial.md"]


pytestmark = pytest.mark.together  # all tests share one environment, which takes some seconds


@pytest.fixture(scope="module")
def wheel() -> Path:
    wheels = list((ROOT / ".build/wheel").glob("weft_csp-*.whl"))
    assert len(wheels) == 1, "`./run build` makes the wheel"
    flags = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}{flags}"
    if f"-{tag}-" not in wheels[0].name:
        pytest.skip(f"{wheels[0].name} is for another Python; `./run wheels` tries the others")
    return wheels[0]


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of an environment in which the wheel was installed, without an index."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    program = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", program, "install", "-q", "--no-compile"]
    alone = ["--no-index", "--disable-pip-version-check"]  # so the core needs no other package
    if sys.version_info < (3, 11):
        pytest.skip("on Python 3.10 the core needs a back-port from an index")
    subprocess.run([*pip, *alone, wheel], check=True)
    return program


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WEFT", "VIRTUAL"))}
    command = [python, *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page(python: Path, tmp_path: Path, page: str) -> None:
    ran = 0
    for block in doctest_md.blocks_of((ROOT / page).read_text()):
        if block.language != "python":
            continue
        (tmp_path / block.file).write_text(block.code)
        if "greenlets" in block.code or not block.run:
            continue
        done = run(python, tmp_path, block.file)
        assert done.returncode == block.exit, done.stderr
        assert block.expected is None or doctest_md.matches(block.expected, done.stdout), (
            done.stdout
        )
        assert "weft: no extension module" not in done.stderr
        ran += 1
    assert ran > 0


def test_what_is_missing_is_named(python: Path, tmp_path: Path) -> None:
    """Each extra that is not there is named with the command that brings it."""
    for code, extra in [
        ("import weft.greenlets", "greenlets"),
        ("import weft.net", "net"),
        ("import weft.serial", "serial"),
        ("import weft.compat", "compat"),
    ]:
        done = run(python, tmp_path, "-c", code)
        assert done.returncode == 1
        assert f"pip install 'weft-csp[{extra}]'" in done.stderr.splitlines()[-1], done.stderr
    command = run(python.parent / "weft", tmp_path, "--version")
    assert command.returncode == 2 and "weft-csp[cli]" in command.stderr


def test_nothing_of_the_checkout_is_in_the_wheel(wheel: Path) -> None:
    """The description has no link into the checkout, and the folder of the sources is not named."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        assert wheel_check.links_that_lead_nowhere(archive.read(metadata).decode()) == []
        texts = [n for n in names if re.search(r"\.(py|pyi|hpp|h|cmake|txt|toml)$", n)]
        assert len(texts) > 100
        assert [n for n in texts if str(ROOT).encode() in archive.read(n)] == []
    assert not [n for n in names if "/tests/" in n or n.endswith(".pyc")]
