"""Tests Weft as a Conan package and as a vcpkg port: a consumer builds and runs against each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, VERSION

CONSUMERS = ROOT / "tools/tests/consumers"


def call(*command: str | Path, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def conan_command() -> str | None:
    beside = Path(sys.executable).parent / "conan"
    return str(beside) if beside.exists() else shutil.which("conan")


@pytest.mark.soak
@pytest.mark.skipif(
    conan_command() is None, reason="conan is not installed (./run setup packaging)"
)
def test_conan_creates_the_package_and_a_consumer_runs(tmp_path: Path) -> None:
    conan = conan_command()
    assert conan is not None
    env = {**os.environ, "CONAN_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    call(conan, "profile", "detect", env=env)
    call(conan, "remote", "disable", "*", env=env)  # all dependencies must be installed already
    # The test runs in a copy: its build folder must not be in the checkout.
    test = tmp_path / "packaging/conan/test_package"
    shutil.copytree(ROOT / "packaging/conan/test_package", test)
    consumers = tmp_path / "tools/tests/consumers"
    consumers.mkdir(parents=True)
    shutil.copy(CONSUMERS / "main.cpp", consumers)
    settings = ["-s", "compiler.cppstd=20", "-s", "build_type=Release"]
    output = call(conan, "create", ROOT, "-tf", test, *settings, env=env)
    assert output.count(f"\n{VERSION}\n") == 2, "by both names"
    assert f"weft/{VERSION}" in call(conan, "list", "weft/*", env=env)
    refused = subprocess.run(
        [conan, "create", ROOT, "-tf", "", "-s", "compiler.cppstd=17"],
        env=env,
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0
    assert "20" in refused.stderr


def test_the_vcpkg_port_says_the_version_of_the_headers() -> None:
    port = json.loads((ROOT / "packaging/vcpkg/ports/weft/vcpkg.json").read_text())
    assert port["version-semver"] == VERSION


@pytest.mark.soak
def test_a_consumer_of_the_vcpkg_port(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    call(
        "cmake",
        f"-DPORT={ROOT / 'packaging/vcpkg/ports/weft/portfile.cmake'}",
        f"-DCURRENT_PACKAGES_DIR={packages}",
        f"-DWORK={tmp_path / 'work'}",
        "-P",
        ROOT / "tools/tests/vcpkg_stand_in.cmake",
    )
    assert sorted(p.name for p in packages.iterdir()) == ["include", "lib", "share"]
    assert (packages / "share/weft/LICENSE").exists()
    source = CONSUMERS / "find_package"
    found = f"-DCMAKE_PREFIX_PATH={packages}"
    for form in ("weft", "compiled"):
        build = tmp_path / form
        call("cmake", "-G", "Ninja", "-S", source, "-B", build, found, f"-DWEFT_FORM={form}")
        call("cmake", "--build", build)
        assert call(build / "consumer") == f"{VERSION}\n"
