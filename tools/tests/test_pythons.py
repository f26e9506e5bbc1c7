"""Tests `./run pythons`: which interpreters it selects, the steps for each of them, and the table.
The interpreters are stand-ins.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import House

# Reports the version `version`, and makes a venv that contains itself. In the venv this stand-in
# answers the requests of tools/pythons.
PYTHON = """#!/usr/bin/env bash
case "$*" in
*version_info*) echo {version} ;;
"-m venv "*) {venv} mkdir -p "${{*: -1}}/bin" && echo venv >"${{*: -1}}/pyvenv.cfg" && cp "$0" "${{*: -1}}/bin/python" &&
  cp "$HOUSE/pip" "${{*: -1}}/bin/pip" ;;
*test_native_interpreters.py) echo "$WEFT_PYTHONS" >"$HOUSE/together"; exit {together} ;;
*pytest_room.py*) echo "some test"; echo "{tests}"; exit {status} ;;
*with_weft*) echo "{ns} on" ;;
esac
"""
PIP = """
echo "$0 $*" >>"$HOUSE/pip-was"
[[ $* != *"$NO_WHEEL"* ]] || exit 1
[[ $* != *--no-build-isolation* ]] || [[ $0 != *"$NO_BUILD"* ]]
"""
HEADER = "| Python | built | tests | ns a communication | interpreter lock | left out |"


@pytest.fixture
def pythons(house: House) -> House:
    house.script("tools/setup", "")
    house.script("pip", PIP)
    (house.path / "tools/requirements/python.txt").write_text("pytest>=8 # the tests\nnumpy>=1\n")
    (house.path / "tools/requirements/net.txt").write_text("nats-py>=2\n")
    return house


def stand_in(
    house: House, where: str, version: str, tests: str = "3 passed, 0 failed", **how: str
) -> Path:
    status = "0" if tests.endswith(" 0 failed") else "1"
    values = {"status": status, "ns": "123", "venv": "", "together": "0", **how}
    return house.script(where, PYTHON.format(version=version, tests=tests, **values), shell="")


def run(house: House, *arguments: str, **more: str):
    settings = {
        "HOUSE": str(house.path),
        "NO_WHEEL": "no such thing",
        "NO_BUILD": "no such thing",
        "PYENV_ROOT": str(house.path / "pyenv"),
        "PATH": f"{house.bin}:/usr/bin:/bin",
    }
    return house.run("pythons", *arguments, **{**settings, **more})


def test_each_is_built_and_tested_and_has_a_row(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.12", "3.12")
    stand_in(pythons, "pyenv/versions/3.13.5t/bin/python3.13t", "3.13t", "7 passed, 0 failed")
    result = run(pythons, "3.13t", "3.12")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == HEADER
    assert result.stdout.splitlines()[2:] == [
        "| 3.12 | yes | 3 passed, 0 failed | 123 | on | nothing |",
        "| 3.13t | yes | 7 passed, 0 failed | 123 | on | nothing |",
    ]


def test_those_that_were_built_load_one_library_together(pythons: House) -> None:
    for version in ("3.10", "3.12", "3.13"):
        stand_in(pythons, f"fake-bin/python{version}", version)
    result = run(pythons, "3.10", "3.12", "3.13", NO_BUILD="/3.12/")
    assert "one component library in 2 Pythons at once" in result.stderr
    of = f"{pythons.path}/.build/pythons/{{}}/venv/bin/python"
    together = (pythons.path / "together").read_text().strip()
    assert together.split(":") == [of.format("3.10"), of.format("3.13")]


def test_a_library_that_does_not_run_in_all_fails_the_task(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.10", "3.10", together="1")
    stand_in(pythons, "fake-bin/python3.12", "3.12")
    result = run(pythons, "3.10", "3.12")
    assert result.returncode == 1
    assert result.stdout.count(" 0 failed ") == 2  # each of the two Pythons has its own count


def test_one_python_alone_has_nobody_to_share_with(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.12", "3.12", together="1")
    assert run(pythons, "3.12").returncode == 0
    assert not (pythons.path / "together").exists()


def test_one_that_fails_does_not_stop_the_others(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.10", "3.10", "2 passed, 1 failed")
    stand_in(pythons, "fake-bin/python3.12", "3.12", "Segmentation fault")
    stand_in(pythons, "fake-bin/python3.13", "3.13")
    stand_in(pythons, "fake-bin/python3.14", "3.14", venv="exit 1;")
    result = run(pythons, "3.10", "3.12", "3.13", "3.14", NO_BUILD="/3.13/")
    assert result.returncode == 1
    assert result.stdout.splitlines()[2:] == [
        "| 3.10 | yes | 2 passed, 1 failed | 123 | on | nothing |",
        "| 3.12 | yes | did not end | 123 | on | nothing |",
        "| 3.13 | failed | - | - | - | nothing |",
        "| 3.14 | no venv | - | - | - | - |",
    ]


def test_what_has_no_wheel_is_left_out_and_named(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.12", "3.12")
    result = run(pythons, "3.12", NO_WHEEL="numpy")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[2].endswith("| numpy |")


def test_packages_are_installed_once_and_weft_each_time(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.12", "3.12")
    for _ in range(2):
        run(pythons, "3.12")
    calls = (pythons.path / "pip-was").read_text()
    assert (calls.count("pytest>=8"), calls.count("--no-build-isolation")) == (1, 4)
    assert calls.count("compat/python") == 2
    assert calls.count("nats-py>=2") == 1


def test_without_arguments_it_takes_all_it_finds_once_each(pythons: House) -> None:
    stand_in(pythons, "fake-bin/python3.12", "3.12")
    stand_in(pythons, "pyenv/versions/3.12.1/bin/python3.12", "3.12", "9 passed, 9 failed")
    stand_in(pythons, "pyenv/versions/3.13.0/bin/python3.13", "3.13")
    stand_in(pythons, "fake-bin/python3.9", "")
    # The Pythons of this machine come later on PATH and would be selected too, so they are hidden.
    for minor in (10, 11, 14, 15, 16, 17, 18, 19):
        stand_in(pythons, f"fake-bin/python3.{minor}", "")
    stand_in(pythons, "fake-bin/python3", "3.12")
    result = run(pythons, PATH=f"{pythons.bin}:{tools_only(pythons)}")
    assert [row.split("|")[1].strip() for row in result.stdout.splitlines()[2:]] == ["3.12", "3.13"]
    assert "9 failed" not in result.stdout, "PATH comes before pyenv"


def tools_only(house: House) -> Path:
    """Returns a folder for PATH that has the system's commands but not its Pythons."""
    folder = house.path / "commands"
    folder.mkdir()
    for command in Path("/usr/bin").iterdir():
        if not command.name.startswith("python"):
            (folder / command.name).symlink_to(command)
    return folder


def test_an_interpreter_is_given_by_its_path(pythons: House) -> None:
    path = stand_in(pythons, "elsewhere/python", "3.13t")
    result = run(pythons, str(path))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[2].startswith("| 3.13t | yes |")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("three", "what is three? Give a version as 3.12 or 3.13t, or the path"),
        ("2.7", "what is 2.7?"),
        ("3.99", "no Python 3.99 on PATH or under pyenv; there are:"),
        ("./run", "./run is not a Python 3.10 or later that runs"),
        ("/nowhere/python", "/nowhere/python is not a Python"),
    ],
)
def test_what_is_no_interpreter_is_refused(pythons: House, argument: str, message: str) -> None:
    result = run(pythons, argument)
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stdout == ""
