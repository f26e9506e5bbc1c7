"""Tests the root pyproject.toml: it makes a source distribution, and from that a wheel with its
extension module.

The package in these tests is a small one, so that they test the packaging of Weft and not its
contents.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, VERSION

sys.path.insert(0, str(ROOT / "tools"))
from wheel_check import links_that_lead_nowhere

pytestmark = pytest.mark.together  # the fixtures of these tests take long
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

PAGE = "python/docs/package.md"  # the page that an index shows for the package
PURE = "python/pure.cmake"
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
    """Copies the files of this checkout that a build needs, with the small package and an empty
    library."""
    for name in (
        "pyproject.toml",
        "CMakeLists.txt",
        "README.md",
        "LICENSE",
        ".gitignore",
        PAGE,
        PURE,
    ):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, path / name)
    folders = (
        "cpp/include",
        "cpp/src",
        "cpp/cmake",
        "compat",
        "lf/src",
        "mcu",
        "micropython",
        "tools",
    )
    for name in folders:
        shutil.copytree(
            ROOT / name,
            path / name,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("node_modules", "__pycache__"),
        )
    # The library is small too, because compiling Weft's own library takes a minute of CPU time in
    # each build.
    for source in (path / "cpp/src").rglob("*.cpp"):
        source.write_text("")
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
    assert sdist.name == f"weft_csp-{VERSION}.tar.gz"
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
    assert {PURE, "micropython/weft/_plain.py", "micropython/weft/threads.py"} <= names
    assert {PAGE, "mcu/include/weft_mcu/lf.h", "mcu/src/actors.c", "mcu/program.mk"} <= names
    assert "mcu/CMakeLists.txt" in names  # Programs on the pico-sdk are built by it.
    apart = (
        "micropython/native",
        "micropython/tests",
        "tools",
        "python/tests",
        ".ci",
        "emulator",
        "theses",
        "mcu/tests",
        "mcu/csp",
        "lf/tests",
        "compat",
    )
    assert {name for name in names if name.startswith(apart)} == set()


@pytest.mark.soak
def test_the_wheel_has_the_package_the_extension_and_the_command(wheel: Path) -> None:
    assert wheel.name.startswith(f"weft_csp-{VERSION}-cp3")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"weft_csp-{VERSION}.dist-info"
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    runtime = {name for name in names if name.startswith("weft_lf/mcu/")}
    package = sorted(name for name in names if name.startswith("weft/"))
    assert next(name for name in package if name.endswith(".so")).startswith("weft/_native.")
    pure = [name for name in package if name.startswith("weft/_pure/")]
    assert {"weft/_pure/coroutines.py", "weft/_pure/threads.py", "weft/_pure/_plain.py"} <= {*pure}
    for name in pure:  # unchanged files of the package for MicroPython
        assert (ROOT / "micropython/weft" / name.removeprefix("weft/_pure/")).is_file()
    assert [name for name in package if not name.endswith(".so") and name not in pure] == [
        "weft/__init__.py",
        "weft/cli.py",
        "weft/py.typed",
    ]
    assert "weft=weft.cli:main" in entry_points.replace(" ", "")
    assert f"\nVersion: {VERSION}\n" in metadata
    assert "\nRequires-Python: >=3.10\n" in metadata
    assert {
        "include/weft_mcu/lf.h",
        "ports/posix/port.c",
        "ports/rp2040/sram.ld",
        "program.mk",
        "CMakeLists.txt",
    } <= {name.removeprefix("weft_lf/mcu/") for name in runtime}
    for name in runtime:  # unchanged files of the checkout that `weft lf` needs
        assert (ROOT / name.removeprefix("weft_lf/")).is_file()


@pytest.mark.soak
def test_the_metadata_of_the_wheel_says_what_is_needed_and_needs_no_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"weft_csp-{VERSION}.dist-info/METADATA").decode()
    wants = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    core = [want for want in wants if "extra ==" not in want]
    assert len(core) == 1 and core[0].startswith("exceptiongroup>=1.1;")
    extras = {extra for want in wants for extra in re.findall(r"extra == ['\"](\w+)", want)}
    assert extras == {
        "cli",
        "compat",
        "greenlets",
        "lf",
        "metrics",
        "net",
        "processes",
        "serial",
        "top",
    }
    assert "Processes and channels for Python" in metadata  # the page is in the metadata
    assert links_that_lead_nowhere(metadata) == []


def test_a_wheel_without_the_extension_needs_no_compiler(tmp_path: Path) -> None:
    """The package of this checkout runs in pure Python, and reports that it does."""
    environment = {**os.environ, "CXX": "false", "CC": "false"}
    asked = ["--no-deps", "--no-build-isolation", "-C", "cmake.define.WEFT_PURE=ON"]
    command = [sys.executable, "-m", "pip", "-q", "install", *asked, "--target", tmp_path, ROOT]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert not list(tmp_path.rglob("*.so"))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import weft\n"
        "@weft.process\nasync def put(w): await w.write(42)\n"
        "@weft.process\nasync def get(r): return await r.read()\n"
        "c = weft.Channel()\n"
        "print(weft.run(put(c.writer()), get(c.reader())))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.stdout == "[None, 42]\n", done.stderr
    assert done.stderr.startswith("weft: no extension module") and done.stderr.count("\n") == 1
    (tmp_path / "weft-0.9.dist-info").mkdir()  # another distribution is installed too
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.stdout == "[None, 42]\n", done.stderr
    told = done.stderr.splitlines()[0]
    assert told.startswith("weft: another package named weft is installed in ")
    assert "(weft-0.9.dist-info)" in told and str(tmp_path / "weft") in told


def test_the_old_names_are_a_wheel_for_every_python(checkout: Path, tmp_path: Path) -> None:
    pip("wheel", "--no-build-isolation", "--no-deps", "-w", tmp_path, checkout / "compat/python")
    (file,) = tmp_path.iterdir()
    assert file.name == f"weft_compat-{VERSION}-py3-none-any.whl"
    info = f"weft_compat-{VERSION}.dist-info"
    with zipfile.ZipFile(file) as archive:
        names = {name for name in archive.namelist() if not name.startswith(info)}
        metadata = archive.read(f"{info}/METADATA").decode()
    source = ROOT / "compat/python/src"
    assert names == {p.relative_to(source).as_posix() for p in source.rglob("*.py")}
    assert f"\nRequires-Dist: weft-csp=={VERSION}\n" in metadata
    assert "Programs for PyCSP run on Weft" in metadata  # the page is in the metadata
    assert links_that_lead_nowhere(metadata) == []


def test_links_that_lead_nowhere_are_found() -> None:
    text = "Name: weft\n\n[a](b/c.md) [d](https://x.org/y) ![p](p.svg) [q](#here)\n"
    assert links_that_lead_nowhere(text) == ["b/c.md", "p.svg"]


@pytest.mark.soak
def test_what_is_installed_runs(wheel: Path, tmp_path: Path) -> None:
    pip("install", "--no-deps", "--target", tmp_path, wheel)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from weft.cli import main; main()"
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == (f"weft {VERSION}\n", "")
