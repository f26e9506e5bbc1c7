"""The runner of the C++ tests: if a file does not compile, the tests of its own program fail, and
no others.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

PROJECT = """cmake_minimum_required(VERSION 3.21)
project(small LANGUAGES CXX)
foreach(name first wrong last)
  add_executable(${name} EXCLUDE_FROM_ALL ${name}.cpp)
endforeach()
"""
RIGHT = "int main() {}\n"
WRONG = "int main() { return nowhere; }\n"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Returns cpp/tests/run as a module, whose builds go to tmp_path."""
    loader = importlib.machinery.SourceFileLoader("cpp_run", str(ROOT / "cpp/tests/run"))
    spec = importlib.util.spec_from_loader("cpp_run", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "cpp_run", module)
    loader.exec_module(module)
    monkeypatch.setattr(module, "BUILD", tmp_path / "build")
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    where = tmp_path / "project"
    where.mkdir()
    (where / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    for name in ("first", "last", "wrong"):
        (where / f"{name}.cpp").write_text(WRONG if name == "wrong" else RIGHT, encoding="utf-8")
    return where


def test_what_does_not_compile_costs_its_own_program(runner: ModuleType, project: Path) -> None:
    b = runner.Build("some", "g++", "-O0", ["wrong", "first", "last"])
    built, text = runner.build(b, project)
    assert built == {"first", "last"}
    assert "nowhere" in text

    (project / "wrong.cpp").write_text(RIGHT, encoding="utf-8")
    assert runner.build(b, project) == ({"wrong", "first", "last"}, "")

    # The program of the last build still exists, and must not be tested in place of this one.
    (project / "wrong.cpp").write_text(WRONG, encoding="utf-8")
    built, _ = runner.build(b, project)
    assert built == {"first", "last"}


def test_other_rooms_make_targets_in_a_build(
    runner: ModuleType,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lists = project / "CMakeLists.txt"
    lists.write_text(
        PROJECT + "if(MORE)\n  add_executable(more EXCLUDE_FROM_ALL first.cpp)\nendif()\n"
    )
    monkeypatch.setattr(runner, "TESTS", project)
    monkeypatch.setattr(runner, "BUILDS", [runner.Build("some", "g++", "-O0", ["first"])])
    assert runner.only_build(["some", "first"]) == 0
    assert runner.only_build(["some", "-DMORE=ON", "more", "last"]) == 0
    assert {p.name for p in (runner.BUILD / "some").iterdir()} >= {"first", "last", "more"}
    assert runner.only_build(["some", "wrong"]) == 1
    assert "nowhere" in capsys.readouterr().out
    assert runner.only_build(["another", "first"]) == 2
    assert runner.only_build([]) == 2
    assert "needs the name of a build: some\n" in capsys.readouterr().err


def test_what_was_not_built_is_a_failure_each_and_the_rest_is_tested(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = runner.Build("some", "g++", "-O0", ["core", "hosted", "stress"])
    tested = []
    monkeypatch.setattr(runner, "BUILDS", [b])
    monkeypatch.setattr(runner, "build", lambda b: ({"core"}, "an error"))
    monkeypatch.setattr(runner, "tests_of", lambda steps, b: tested.append(b.targets))
    steps = runner.Steps()
    steps.add(runner.builds, steps)
    steps.take_all()
    assert tested == [["core"]]
    assert (runner.passed, runner.failed) == (0, 2)
