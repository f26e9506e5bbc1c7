"""Tests that each property of the target block is obeyed, or refused by name, for each target."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from conftest import Write, model

from weft_lf import build as building
from weft_lf import cli
from weft_lf.build import Wanted, build
from weft_lf.device import sdk_folder, why_sdk
from weft_lf.errors import LfError

OWN = """target C {{ {config} }}
preamble {{=
  {preamble}
=}}
main reactor {{ reaction(startup) {{= {body} =}} }}
"""


def program(write: Write, config: str, preamble: str = "", body: str = "") -> Path:
    return write(OWN.format(config=config, preamble=preamble, body=body))


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Collects the commands of a build instead of running them, and pretends that there is a
    pico-sdk.
    """
    found: list[list[str]] = []

    def run(command: list[str], cwd: Path) -> str:
        found.append(command)
        return ""

    monkeypatch.setattr(building, "run_tool", run)
    sdk = tmp_path / "sdk"
    sdk.mkdir()
    (sdk / "pico_sdk_init.cmake").touch()
    monkeypatch.setenv("PICO_SDK_PATH", str(sdk))
    return found


def built(path: Path, target: str) -> str:
    """Builds as far as the commands; returns the text of the makefile or CMake file, if any."""
    with contextlib.suppress(FileNotFoundError):  # No image is made.
        build(model(path), Wanted(target))
    place = path.parent / "src-gen" / "Main"
    made = [place / n for n in ("CMakeLists.txt", "Makefile") if (place / n).exists()]
    return made[0].read_text() if made else ""


@pytest.mark.parametrize(
    ("config", "target"),
    [
        ('cmake-include: "x.cmake"', "an521"),
        ('cmake-init-include: "x.cmake"', "an521"),
        ("cmake-args: { A: 1 }", "an521"),
        ("compiler: clang", "an521"),
        ("compiler: clang", "rp2040"),
        ("platform: { name: Linux, board: pico }", "host"),
        ("platform: { name: an521, board: pico }", "an521"),
    ],
)
def test_what_a_target_cannot_honour(
    write: Write, config: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(write, config)
    name = "board" if "board" in config else config.split(":")[0]
    with pytest.raises(LfError, match=f"'{name}' is not supported for the target {target}"):
        build(model(path), Wanted(target))
    assert cli.main(["check", "--target", target, str(path)]) == 1
    assert "is not supported" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["rp2040", "an521", "host"])
def test_options_for_the_compiler(write: Write, commands: list[list[str]], target: str) -> None:
    path = program(
        write, 'cflags: "-fwrapv", Build-Type: MinSizeRel, compile-definitions: { A: 3 }'
    )
    text = built(path, target) + " ".join(commands[0])
    for option in ("-fwrapv", "-Os", "-DA=3"):
        assert option in text


def test_no_build_type_leaves_a_device_its_own(write: Write, commands: list[list[str]]) -> None:
    assert "-O2" not in built(program(write, "fast: false"), "rp2040")


@pytest.mark.parametrize("target", ["rp2040", "host"])
def test_cmake_code(write: Write, commands: list[list[str]], target: str) -> None:
    """CMake code is included once, before and after the target is declared, though two files name
    it.
    """
    path = program(
        write,
        'cmake-include: ["own.cmake"], cmake-init-include: "first.cmake", cmake-args: { KEY: val }',
    )
    text = path.read_text().replace("main reactor", 'import L from "L.lf"\nmain reactor')
    path.write_text(
        text.replace('\npreamble {=\n  \n=}\nimport L from "L.lf"', '\nimport L from "L.lf"')
    )
    (path.parent / "L.lf").write_text('target C { cmake-include: "own.cmake" }\nreactor L { }\n')
    for name in ("own.cmake", "first.cmake"):
        (path.parent / name).write_text("")
    text = built(path, target)
    first, declared, own = (text.index(w) for w in ("first.cmake", "add_executable", "own.cmake"))
    assert first < text.index("project(") < declared < own
    assert text.count("own.cmake") == 1 and "set(LF_MAIN_TARGET Main)" in text
    assert "-DKEY=val" in commands[0]


def test_a_board_of_the_pico_sdk(write: Write, commands: list[list[str]]) -> None:
    text = built(
        program(write, 'platform: { name: rp2040, board: "pico_w:usb" }, build-type: Debug'), ""
    )
    assert "set(PICO_BOARD pico_w)" in text and "pico_enable_stdio_usb(Main 1)" in text
    assert "-DCMAKE_BUILD_TYPE=Debug" in commands[0]


@pytest.mark.parametrize(
    ("config", "preamble", "body", "why"),
    [
        ("", "", "", ""),
        ("", "#include <stdio.h>", "", "printf"),
        ("", "", 'printf("x");', "printf"),
        ("", '#include "board.h"', "snprintf(0, 0, 0);", ""),
        ("", '#include "board.h"\n#include <stdio.h>', "", ""),
        ("", "#include <hardware/gpio.h>", "", "hardware_gpio"),
        ('cmake-include: "x"', "", "", "CMake"),
        ("platform: { name: rp2040, board: pico }", "", "", "board"),
    ],
)
def test_when_the_sdk_is_needed(
    write: Write, config: str, preamble: str, body: str, why: str
) -> None:
    found = why_sdk(model(program(write, config, preamble, body)))
    assert why in found and bool(why) == bool(found)


def test_the_compiler_and_no_compilation(write: Write, commands: list[list[str]]) -> None:
    built(program(write, 'compiler: "my-cc -m32"'), "host")
    assert commands[0][:2] == ["my-cc", "-m32"]
    assert build(model(program(write, "no-compile: true")), Wanted()).program is None
    assert len(commands) == 1


def test_what_only_federations_have(write: Write) -> None:
    warnings = model(program(write, "clock-sync: on, coordination: centralized")).program.warnings
    assert [p.message for p in warnings] == [
        "'clock-sync' has no effect here",
        "'coordination' has no effect here",
    ]


def test_what_needs_a_board_does_not_run_here(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(write, 'platform: { name: rp2040, board: "pico" }')
    assert cli.main(["run", str(path)]) == 1
    told = capsys.readouterr().err
    assert "runs on a board, not on this machine: it names a board" in told
    assert f"weft lf build {path.name} --target rp2040" in told


def test_the_sdk_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submodule of the project comes before the SDK of a checkout, and after $PICO_SDK_PATH."""
    other, own = tmp_path / "other", tmp_path / "project" / "pico-sdk"
    for place in (other, own):
        place.mkdir(parents=True)
        (place / "pico_sdk_init.cmake").write_text("")
    monkeypatch.delenv("PICO_SDK_PATH", raising=False)
    assert sdk_folder("", own.parent) == own
    monkeypatch.setenv("PICO_SDK_PATH", str(other))
    assert sdk_folder("", own.parent) == other
