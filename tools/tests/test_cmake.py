"""Tests the three ways in which a CMake project can use Weft, each with the same small program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, VERSION, numbers_of_version

pytestmark = pytest.mark.together  # the fixtures of these tests take long
CONSUMERS = ROOT / "tools/tests/consumers"


def cmake(*arguments: str | Path, ok: bool = True) -> str:
    result = subprocess.run(
        ["cmake", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (result.returncode == 0) == ok, result.stdout
    return result.stdout


# As one source file the library compiles in two fifths of the CPU time, and without optimisation in
# less than half of that.
ONE_FILE = (
    "-DCMAKE_UNITY_BUILD=ON",
    "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
    "-DCMAKE_BUILD_TYPE=Debug",
    "-DCMAKE_CXX_FLAGS_DEBUG=",
)


def configure(
    way: str, build: Path, *options: str, ok: bool = True, generator: str = "Ninja"
) -> str:
    return cmake(
        "-G",
        generator,
        "-S",
        CONSUMERS / way,
        "-B",
        build,
        "-Werror=dev",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror",
        *options,
        ok=ok,
    )


def build_and_run(build: Path) -> str:
    cmake("--build", build)
    return subprocess.run([build / "consumer"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs Weft for find_package, and returns the folder."""
    build = tmp_path_factory.mktemp("build")
    prefix = tmp_path_factory.mktemp("prefix")
    cmake("-G", "Ninja", "-S", ROOT, "-B", build, "-DWEFT_BUILD_TESTS=OFF", *ONE_FILE)
    cmake("--build", build)
    cmake("--install", build, "--prefix", prefix)
    return prefix


@pytest.mark.parametrize(
    "way",
    [
        # The builds of cpp/tests and of net/tests also use the sources in this way.
        pytest.param("add_subdirectory", marks=pytest.mark.soak),
        pytest.param("fetch_content", marks=pytest.mark.soak),
        pytest.param("add_subdirectory compiled shared", marks=pytest.mark.soak),
    ],
)
def test_a_consumer_of_the_sources(way: str, tmp_path: Path) -> None:
    way, *compiled = way.split()
    form = ["-DWEFT_FORM=compiled", "-DBUILD_SHARED_LIBS=ON"] if compiled else []
    configure(way, tmp_path, f"-DWEFT_CHECKOUT={ROOT}", *form, *ONE_FILE)
    assert build_and_run(tmp_path) == f"{VERSION}\n"
    cache = (tmp_path / "CMakeCache.txt").read_text()
    for option in ("WEFT_BUILD_TESTS", "WEFT_BUILD_PYTHON", "WEFT_INSTALL"):
        assert f"{option}:BOOL=OFF" in cache, "a consumer builds and installs nothing of ours"


@pytest.mark.parametrize(
    ("generator", "form"),
    [
        ("Ninja", "weft"),
        pytest.param("Unix Makefiles", "weft", marks=pytest.mark.soak),
        pytest.param("Ninja", "compiled", marks=pytest.mark.soak),
    ],
)
def test_a_consumer_of_the_installed_package(
    generator: str, form: str, prefix: Path, tmp_path: Path
) -> None:
    where = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DWEFT_FORM={form}"]
    configure("find_package", tmp_path, *where, generator=generator)
    assert build_and_run(tmp_path) == f"{VERSION}\n"


OLD_NAMES = """cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES CXX)
find_package(weft CONFIG REQUIRED COMPONENTS compat)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE weft::compat)
"""
OLD_PROGRAM = """#include <cstdio>
#include "csp/csp.h"
int main() {
  csp::one2one_chan<int> c;
  csp::par{[=] { c(42); }, [=] { std::printf("%d\\n", c()); }}();
}
"""


@pytest.mark.soak
def test_a_program_for_cppcsp_is_a_consumer_of_the_installed_package(
    prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(OLD_NAMES)
    (tmp_path / "consumer.cpp").write_text(OLD_PROGRAM)
    build = tmp_path / "b"
    cmake("-G", "Ninja", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert build_and_run(build) == "42\n"


CHECKED = """cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES CXX)
find_package(weft CONFIG REQUIRED COMPONENTS checked)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE weft::checked)
"""
CHECKED_PROGRAM = """#include <iostream>
#include <weft/check.hpp>
#include <weft/weft.hpp>
weft::Process writes(weft::Writer<int> first, weft::Writer<int> second) {
  co_await first.write(1);
  co_await second.write(2);
}
weft::Process reads(weft::Reader<int> first, weft::Reader<int> second) {
  co_await second.read();
  co_await first.read();
}
int main() {
  const weft::CheckReport r = weft::check([] {
    weft::Channel<int> a, b;
    weft::run(writes(a.writer(), b.writer()), reads(a.reader(), b.reader()));
  });
  std::cout << r.failures.at(0).kind << "\\n";
}
"""


@pytest.mark.parametrize("builds", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_test_that_checks_is_a_consumer_of_the_installed_package(
    builds: bool, prefix: Path, tmp_path: Path
) -> None:
    """weft::checked is compiled in the consumer's build, with the consumer's options."""
    (tmp_path / "CMakeLists.txt").write_text(CHECKED)
    (tmp_path / "consumer.cpp").write_text(CHECKED_PROGRAM)
    build = tmp_path / "b"
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"]
    cmake("-G", "Ninja", "-S", tmp_path, "-B", build, *options)
    if builds:
        assert build_and_run(build) == "deadlock\n"
    sources = ROOT / "cpp/src"
    needed = {p.relative_to(sources) for p in sources.rglob("*.cpp")}
    needed = {p for p in needed if p.parts[0] not in ("net", "wire")}
    installed = prefix / "share/weft/src"
    assert needed == {p.relative_to(installed) for p in installed.rglob("*.cpp")}


NET = """cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES CXX)
find_package(weft CONFIG REQUIRED COMPONENTS net)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE weft::net)
"""


def test_a_package_without_the_network_says_so(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(NET)
    found = f"-DCMAKE_PREFIX_PATH={prefix}"
    output = cmake("-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "b", found, ok=False)
    assert "this Weft was built without weft::net" in output
    assert "-DWEFT_NET=ON" in output


@pytest.mark.soak
def test_a_consumer_of_the_installed_network(tmp_path: Path) -> None:
    """Both libraries are shared. The program runs until it needs its keys, which do not exist
    here."""
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    how = ["-DWEFT_BUILD_TESTS=OFF", "-DWEFT_NET=ON", "-DBUILD_SHARED_LIBS=ON"]
    cmake("-G", "Ninja", "-S", ROOT, "-B", build, *how)
    cmake("--build", build)
    cmake("--install", build, "--prefix", prefix)
    (tmp_path / "CMakeLists.txt").write_text(NET)
    (tmp_path / "consumer.cpp").write_text(
        "#include <cstdio>\n#include <weft/net.hpp>\n"
        'int main() {\n  try {\n    weft::join("nats://127.0.0.1:1", {.keys = "/nowhere"});\n'
        "  } catch (const weft::BadUse& e) {\n    std::puts(e.what());\n  }\n}\n"
    )
    cmake("-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert build_and_run(tmp_path / "b").startswith("no keys in /nowhere")


# Compiler options, and the text that each adds to the names of a file's types.
FORMS = {
    "checks": ["-DWEFT_CHECKS=1"],
    "no_futex": ["-DWEFT_NO_FUTEX"],
    "asan": ["-fsanitize=address"],
}


def test_a_mixture_does_not_link_and_says_why(tmp_path: Path) -> None:
    major, minor, _ = numbers_of_version()
    giver, taker = tmp_path / "giver.cpp", tmp_path / "taker.cpp"
    giver.write_text(
        "#include <weft/channel.hpp>\nvoid take(weft::Writer<int>&);\n"
        "int main() { weft::Writer<int>* w = nullptr; take(*w); }\n"
    )
    taker.write_text("#include <weft/channel.hpp>\nvoid take(weft::Writer<int>&) {}\n")

    def compiled(source: Path, *flags: str) -> Path:
        out = source.with_suffix(".o")
        subprocess.run(
            ["g++", "-std=c++20", f"-I{ROOT}/cpp/include", *flags, "-c", source, "-o", out],
            check=True,
        )
        return out

    def linked(*objects: Path) -> subprocess.CompletedProcess[str]:
        command = ["g++", *objects, "-pthread", "-o", tmp_path / "program"]
        return subprocess.run(command, capture_output=True, text=True)

    plain = compiled(giver)
    same = linked(plain, compiled(taker))
    assert same.returncode == 0, same.stderr
    for name, flags in FORMS.items():
        mixture = linked(plain, compiled(taker, *flags))
        assert mixture.returncode != 0, name
        assert f"take(weft::v{major}_{minor}::Writer<int" in mixture.stderr
        defined = subprocess.run(
            ["nm", "-C", taker.with_suffix(".o")], check=True, capture_output=True, text=True
        ).stdout
        assert f"take(weft::v{major}_{minor}_{name}::Writer<int" in defined


def test_the_installed_package_stands_alone(prefix: Path) -> None:
    for file in prefix.rglob("*.cmake"):
        assert str(ROOT) not in file.read_text(), f"{file.name} points into the checkout"
    sources = (ROOT / "cpp/include/weft", ROOT / "compat/cpp/include/weft")
    headers = {path.name for source in sources for path in source.rglob("*.hpp")}
    assert headers == {path.name for path in (prefix / "include/weft").rglob("*.hpp")}


def test_a_version_it_cannot_be_is_refused(prefix: Path, tmp_path: Path) -> None:
    major, minor, _ = numbers_of_version()
    found = f"-DCMAKE_PREFIX_PATH={prefix}"
    configure("find_package", tmp_path / "a", found, f"-DWEFT_WANTED={major}.{minor}")
    for wanted in (f"{major}.{minor + 1}", f"{major + 1}.0"):
        output = configure(
            "find_package", tmp_path / wanted, found, f"-DWEFT_WANTED={wanted}", ok=False
        )
        assert "weft" in output
        assert VERSION in output


def test_the_extension_without_its_sources_is_a_clear_error(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "cpp").mkdir(parents=True)
    for name in ("CMakeLists.txt", "cpp/include", "cpp/src", "cpp/cmake"):
        (checkout / name).symlink_to(ROOT / name)
    output = cmake(
        "-G", "Ninja", "-S", checkout, "-B", tmp_path / "b", "-DWEFT_BUILD_PYTHON=ON", ok=False
    )
    assert "python/native is not here" in output


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.soak)])
def test_the_version_in_the_preprocessor_and_in_constexpr(compiler: str, tmp_path: Path) -> None:
    if subprocess.run(["which", compiler], capture_output=True).returncode:
        pytest.skip(f"{compiler} is not installed")
    major, minor, patch = numbers_of_version()
    source = tmp_path / "version.cpp"
    source.write_text(
        "#include <string_view>\n"
        "#include <weft/version.hpp>\n"
        f"#if WEFT_VERSION_NUMBER != {major * 10000 + minor * 100 + patch}\n#error number\n#endif\n"
        f"static_assert(weft::version.major == {major} && weft::version.minor == {minor});\n"
        f"static_assert(weft::version.patch == {patch});\n"
        f'static_assert(std::string_view(weft::version.text) == "{VERSION}");\n'
        "int main() {}\n"
    )
    subprocess.run(
        [
            compiler,
            "-std=c++20",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            f"-I{ROOT}/cpp/include",
            source,
        ],
        check=True,
    )
