"""`weft build` and weft_add_component, used as the pages describe: their output, and their messages
about mistakes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from components import HERE, needs_compiler

import weft.native

pytestmark = needs_compiler
FILTER = """#include <weft/component.hpp>
using namespace weft::native;
void halve(Reader<double> in, Writer<double> out, double by) {
  for (double x : in) out.write(x / by);
}
WEFT_COMPONENT(filter, "Filters.") {
  component.process<&halve>("halve", "Halves.").argument("samples").argument("halves").argument("by", 2.0);
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_CACHE", str(HERE.parents[1] / ".build/components"))
    (tmp_path / "filter.cpp").write_text(FILTER)
    return tmp_path


def weft_build(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", "build", *arguments],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_it_says_where_the_library_is_and_what_is_in_it(folder: Path) -> None:
    done = weft_build(folder, "filter.cpp", "-o", "filter.so")
    assert (done.returncode, done.stdout) == (0, "filter.so\n"), done.stderr
    assert (
        done.stderr
        == "  filter.halve(samples: Reader[float], halves: Writer[float], by: float = 2.0)\n"
    )
    assert weft.native.load(folder / "filter.so").processes == ("halve",)


def test_as_json(folder: Path) -> None:
    done = weft_build(folder, "filter.cpp", "--debug", "--json")
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["processes"] == {
        "halve": "(samples: Reader[float], halves: Writer[float], by: float = 2.0)"
    }
    assert (report["component"], report["doc"], report["debug"]) == ("filter", "Filters.", True)
    assert Path(report["library"]).exists()


def test_the_compilers_message_is_shown_as_it_is(folder: Path) -> None:
    (folder / "filter.cpp").write_text(FILTER.replace("double x", "doubl x"))
    done = weft_build(folder, "filter.cpp")
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == "weft: filter.cpp was not built:"
    assert any(line.startswith("filter.cpp:4:") and "error:" in line for line in lines)
    at = next(i for i, line in enumerate(lines) if "for (doubl x : in)" in line)
    assert set(lines[at + 1]) <= set(" |^~")  # the mark below, on a line of its own
    assert lines[-1].startswith("(the command: ")


def test_the_compilers_warnings_are_shown(folder: Path) -> None:
    (folder / "filter.cpp").write_text(FILTER.replace("  for", "  int unused; for"))
    done = weft_build(folder, "filter.cpp", "--", "-Wall", f"-DUNIQUE={os.getpid()}")
    assert done.returncode == 0
    assert "unused variable" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["none.cpp"], {}, "there is no file none.cpp"),
        (["filter.cpp", "--debgu"], {}, "Did you mean '--debug'?"),
        (
            ["filter.cpp"],
            {"CXX": "no-such-compiler"},
            "there is no C++ compiler (no-such-compiler)",
        ),
        (["plain.cpp"], {}, "not a component of Weft: it has no weft_component_entry()"),
        (["late.cpp"], {}, "the argument 'samples' has a default"),
        (["lacking.cpp"], {}, "undefined symbol: _Z6haelft"),
        (
            ["unnamed.cpp"],
            {},
            'its function has 3 parameters, and 2 are named: .argument("name") for each',
        ),
        ([], {}, "Missing argument 'SOURCE'"),
        (
            ["filter.cpp"],
            {"CXX": "'g++"},
            "is not a command that can be run (No closing quotation)",
        ),
        (["filter.cpp"], {"WEFT_CACHE": "/proc/none"}, "set WEFT_CACHE to a folder"),
        (["filter.cpp", "-o", "none/filter.so"], {}, "cannot write none/filter.so (No such file"),
        (["filter.cpp", "-o", "."], {}, "cannot write . (Is a directory)"),
        (["filter.cpp", "--stub"], {}, "cannot write filter.pyi: Is a directory"),
    ],
)
def test_mistakes_are_one_line_that_says_what_to_do(
    folder: Path, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    (folder / "plain.cpp").write_text("int answer() { return 42; }\n")
    (folder / "late.cpp").write_text(
        FILTER.replace(
            "Reader<double> in, Writer<double> out, double by",
            "double by, Reader<double> in, Writer<double> out",
        ).replace(
            '.argument("samples").argument("halves").argument("by", 2.0)',
            '.argument("samples", 2.0).argument("halves").argument("by")',
        )
    )
    (folder / "lacking.cpp").write_text(
        FILTER.replace("void halve", "double haelft(double);\nvoid halve").replace(
            "x / by", "haelft(x)"
        )
    )
    (folder / "unnamed.cpp").write_text(FILTER.replace('.argument("by", 2.0)', ""))
    (folder / "filter.pyi").mkdir()
    done = weft_build(folder, *arguments, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "undefined" not in message or "nowhere defined; define it, or link" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_names_the_options_and_the_cache(folder: Path) -> None:
    output = weft_build(folder, "--help").stdout
    for word in ("--debug", "--json", "--output", "$CXX", "$WEFT_CACHE", "Exit status"):
        assert word in output


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_weft_add_component_with_a_debug_build(folder: Path) -> None:
    """Builds a component by the CMake function of the installed package. A Debug build reports
    where an exception was thrown.
    """
    (folder / "filter.cpp").write_text(
        FILTER.replace("out.write(x / by)", 'throw std::runtime_error("no")')
    )
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(filters CXX)\n"
        f"include({weft.native.cmake_dir()}/weft-component.cmake)\nweft_add_component(filter filter.cpp)\n"
    )
    for command in (["-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], ["--build", "build"]):
        subprocess.run(["cmake", *command], cwd=folder, check=True, capture_output=True)
    library = next((folder / "build").rglob("filter.so"))
    program = f"""
import weft.native
from weft.threads import Channel, process, run
filter = weft.native.load({str(library)!r})
@process
def source(out): out.write(1.0)
@process
def sink(inp): list(inp)
a, b = Channel("a"), Channel("b")
run(source(-a), filter.halve(+a, -b), sink(+b))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert "std::runtime_error: no" in done.stderr
    assert shutil.which("addr2line") is None or 'filter.cpp", line 4, in halve' in done.stderr


def test_a_component_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The component is found where a module of its name would be. The library is found before the
    source.
    """
    package = folder / "stages"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('it need not be imported')\n")
    (folder / "filter.cpp").rename(package / "filter.cpp")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    source = weft.native.load("stages.filter")
    assert source.processes == ("halve",)
    assert not Path(source.path).is_relative_to(folder)  # the library was built into the cache
    shutil.copy(source.path, package / "filter.so")
    assert weft.native.load("stages.filter").path == str(package / "filter.so")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(package)
    assert Path(weft.native.load("filter").path).samefile(package / "filter.so")
    assert "stages" not in sys.modules
