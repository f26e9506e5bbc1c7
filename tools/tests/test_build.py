"""Tests `./run build` and the tasks that begin with it, on a small package in place of Weft's
own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import House
from test_package import VERSION, copy_checkout

pytestmark = pytest.mark.together  # the fixtures of these tests take long
BUILT = "weft: building Weft: done"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Makes a checkout with a .venv of its own that borrows this one's packages. Weft is built
    there once.
    """
    house = House(tmp_path_factory.mktemp("build"))
    copy_checkout(house.path)
    venv = house.path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    house.script(".venv/bin/pip", 'exec "$(dirname "$0")/python" -m pip "$@"\n')
    house.script("tools/setup", "")  # so that all packages count as installed
    house.script(
        "examples/demo.py", "import weft, sys\nprint(weft.__version__, sys.argv[1:])\n", ""
    )
    house.script("bench/run.py", "import weft, sys\nprint(weft.__file__, sys.argv[1:])\n", "")
    result = house.run("build")
    assert result.returncode == 0, result.stderr
    assert BUILT in result.stderr
    return house


def edit(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


@pytest.mark.soak
def test_a_second_build_has_nothing_to_do(built: House) -> None:
    result = built.run("build")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_demo_runs_on_what_was_built_with_its_arguments(built: House) -> None:
    result = built.run("demo", "--small", "a b")
    assert result.stdout == f"{VERSION} ['--small', 'a b']\n", result.stderr


def test_the_bench_runs_on_the_installed_package(built: House) -> None:
    result = built.run("bench", "ring", "--json")
    where, _, arguments = result.stdout.strip().partition(" ")
    assert Path(where).is_relative_to(built.path / ".venv"), "not the sources: what a user gets"
    assert arguments == "['ring', '--json']"


@pytest.mark.parametrize(
    "file",
    [
        "python/src/weft/cli.py",
        pytest.param("python/native/native.cpp", marks=pytest.mark.soak),
        # A change of this file builds everything again.
        pytest.param("cpp/include/weft/version.hpp", marks=pytest.mark.soak),
    ],
)
def test_a_change_is_built_and_installed(built: House, file: str) -> None:
    edit(built.path / file, "\n")
    assert BUILT in built.run("build").stderr
    assert built.run("build").stderr == ""


@pytest.mark.parametrize("package", ["weft", pytest.param("weft/compat", marks=pytest.mark.soak)])
def test_a_package_that_was_removed_is_installed_again(built: House, package: str) -> None:
    (installed,) = built.path.glob(f".venv/lib/python3*/site-packages/{package}/__init__.py")
    installed.unlink()
    assert BUILT in built.run("build").stderr
    assert installed.exists()


def test_an_error_in_the_sources_is_shown_and_not_forgotten(built: House) -> None:
    source = built.path / "python/native/native.cpp"
    good = source.read_text()
    edit(source, "this is no C++;\n")
    for _ in range(2):
        result = built.run("demo")
        assert result.returncode == 1
        assert result.stdout == ""
        assert "building Weft: failed" in result.stderr
        assert ".build/logs/building-Weft.log" in result.stderr.splitlines()[-1]
    assert "this is no C++" in (built.path / ".build/logs/building-Weft.log").read_text()
    source.write_text(good)
    assert BUILT in built.run("build").stderr


def test_the_demo_starts_from_a_wheel_if_nothing_was_built(house: House) -> None:
    house.script("tools/setup", 'echo "setup $*" >>log\n')
    house.script("tools/build", "echo build >>log\n")
    house.script(".venv/bin/pip", 'echo "pip ${*: -1}" >>log\n')
    house.script(".venv/bin/python", 'echo "demo $*" >>log\n')
    house.script("examples/demo.py", "", "")
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = house.path / "out/wheels"
    wheels.mkdir(parents=True)
    log = house.path / "log"
    other = f"weft_csp-{VERSION}-cp27-cp27-manylinux_2_34_{os.uname().machine}.whl"
    fits = other.replace("cp27", tag)
    for there, steps in (
        (other, ["build"]),
        (fits, ["setup python", f"pip out/wheels/{fits}"]),
    ):
        (wheels / there).touch()
        log.write_text("")
        result = house.run("demo", "--small", PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
        assert result.returncode == 0, result.stderr
        assert log.read_text().splitlines() == [*steps, "demo examples/demo.py --small"]
    (house.path / ".build/stamps").mkdir(parents=True, exist_ok=True)
    (house.path / ".build/stamps/weft").touch()  # Weft counts as built before this change
    log.write_text("")
    assert house.run("demo").returncode == 0
    assert log.read_text().startswith("build\n")
