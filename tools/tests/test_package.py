"""The root pyproject.toml: a source distribution, and from it a wheel with its extension module.

The package inside is a small one made here, so that this tests how Weft is packaged and not what is in it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, VERSION

pytestmark = pytest.mark.together  # what they share is dear
NATIVE = """\
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
python_add_library(_native MODULE WITH_SOABI native.cpp)
target_link_libraries(_native PRIVATE weft::weft)
install(TARGETS _native DESTINATION .)
"""

NATIVE_CPP = """\
#include <Python.h>
#include <weft/version.hpp>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", nullptr, -1, nullptr,
                             nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__native() {
  PyObject *self = PyModule_Create(&module);
  PyModule_AddStringConstant(self, "version", weft::version.text);
  return self;
}
"""

PACKAGE = {
    "python/src/weft/__init__.py": "from weft._native import version as __version__\n",
    "python/src/weft/cli.py": "import weft\n\ndef main() -> None:\n    print('weft', weft.__version__)\n",
    "python/src/weft/py.typed": "",
    "python/native/CMakeLists.txt": NATIVE,
    "python/native/native.cpp": NATIVE_CPP,
    "python/tests/test_x.py": "",
}


def pip(*arguments: str | Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pip", "-q", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout


def copy_checkout(path: Path) -> None:
    """What a build needs of this checkout, with the small package in it."""
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, path / name)
    for name in ("cpp/include", "cpp/src", "cpp/cmake", "tools"):
        shutil.copytree(ROOT / name, path / name, dirs_exist_ok=True)
    for name, text in PACKAGE.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkout")
    copy_checkout(path)
    return path


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(out)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=checkout, check=True, capture_output=True)
    (file,) = out.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--no-deps", "-w", out, sdist)
    (file,) = out.iterdir()
    return file


def test_the_source_distribution_has_what_a_build_needs_and_no_more(sdist: Path) -> None:
    assert sdist.name == f"weft-{VERSION}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "pyproject.toml",
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "cpp/include/weft/version.hpp",
    }
    assert needed | {"cpp/cmake/weft-config.cmake.in", "python/native/native.cpp"} <= names
    assert {name for name in names if name.startswith(("tools", "python/tests", ".ci"))} == set()


def test_the_wheel_has_the_package_the_extension_and_the_command(wheel: Path) -> None:
    assert wheel.name.startswith(f"weft-{VERSION}-cp3")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"weft-{VERSION}.dist-info"
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    package = sorted(name for name in names if not name.startswith(info))
    assert next(name for name in package if name.endswith(".so")).startswith("weft/_native.")
    assert [name for name in package if not name.endswith(".so")] == [
        "weft/__init__.py",
        "weft/cli.py",
        "weft/py.typed",
    ]
    assert "weft=weft.cli:main" in entry_points.replace(" ", "")
    assert f"\nVersion: {VERSION}\n" in metadata
    assert "\nRequires-Python: >=3.10\n" in metadata


def test_what_is_installed_runs(wheel: Path, tmp_path: Path) -> None:
    pip("install", "--no-deps", "--target", tmp_path, wheel)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from weft.cli import main; main()"
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == (f"weft {VERSION}\n", "")
