"""Tests that each property of the target block is obeyed, or refused by name, for each target."""

from __future__ import annotations

import contextlib
import os
import subprocess
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
        ("protobufs: x.proto", "an521"),
        ("protobufs: x.proto", "rp2040"),
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


@pytest.mark.parametrize(
    ("board", "usb", "uart"), [("pico_w", 1, 1), ("pico_w:uart", 0, 1), ("pico_w:usb", 1, 0)]
)
def test_a_board_of_the_pico_sdk(
    write: Write,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    board: str,
    usb: int,
    uart: int,
) -> None:
    """A board for which no kind of stdio is named has both kinds, as upstream: some boards have no
    UART."""
    sdk = tmp_path / "sdk"
    (sdk / "lib" / "tinyusb" / "src").mkdir(parents=True)
    for file in (sdk / "pico_sdk_init.cmake", sdk / "lib" / "tinyusb" / "src" / "tusb.h"):
        file.write_text("")
    monkeypatch.setenv("PICO_SDK_PATH", str(sdk))
    path = program(write, f'platform: {{ name: rp2040, board: "{board}" }}, build-type: Debug')
    text = built(path, "")
    assert "set(PICO_BOARD pico_w)" in text and "pico_add_hex_output(Main)" in text
    assert f"pico_enable_stdio_usb(Main {usb})" in text
    assert f"pico_enable_stdio_uart(Main {uart})" in text
    assert "-DCMAKE_BUILD_TYPE=Debug" in commands[0]
    (sdk / "lib" / "tinyusb" / "src" / "tusb.h").unlink()
    if usb and not uart:
        with pytest.raises(LfError, match=r"needs TinyUSB, which .* does not have"):
            built(path, "")
    else:
        built(path, "")


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


PROTOC = """#!/bin/sh
# Stands in for protoc-c: NAME.proto has the fields of a struct, and gives its header and C file.
out=${1#--c_out=} root=${2#-I} file=$3
grep -q bad "$file" && { echo "x.proto:1:1: Expected a message" >&2; exit 1; }
base=${file#"$root"/} base=${base%.proto}
mkdir -p "$(dirname "$out/$base")"
name=$(basename "$base")
echo "typedef struct { $(cat "$file") } $name; int ${name}_size(void);" >"$out/$base.pb-c.h"
echo "#include \\"$name.pb-c.h\\"
int ${name}_size(void) { return sizeof($name); }" >"$out/$base.pb-c.c"
"""
SENDS = """target C {{ protobufs: {names} }}
import Source from "lib/Source.lf"
reactor Sink {{
  input in: pair
  reaction(in) {{= printf("%d %d %d\\n", in->value.a, in->value.b, pair_size()); =}}
}}
main reactor {{ source = new Source() sink = new Sink() source.out -> sink.in }}
"""
SOURCE = """target C { protobufs: ["deep/one.proto", "../pair.proto"] }
reactor Source {
  output out: pair
  reaction(startup) -> out {=
    one all = {3};
    out->value.a = all.a, out->value.b = one_size();
    lf_set_present(out);
  =}
}
"""


@pytest.fixture
def protoc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a compiler in the place of protoc-c, and an empty library in that of protobuf-c."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "protoc-c").write_text(PROTOC)
    (tools / "protoc-c").chmod(0o755)
    (tools / "libprotobuf-c.a").write_bytes(b"!<arch>\n")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("LIBRARY_PATH", str(tools))
    (tmp_path / "pair.proto").write_text("int a, b;")
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "deep" / "one.proto").write_text("int a;")
    (tmp_path / "lib" / "Source.lf").write_text(SOURCE)
    return tmp_path


def test_protocol_buffers(write: Write, protoc: Path) -> None:
    """Each file is compiled once, also if an imported file names it too, and keeps its path below
    the file that names it. The types are those of ports."""
    path = write(SENDS.format(names="pair.proto"))
    made = build(model(path), Wanted(quick=True))
    place = made.source.parent
    assert (place / "deep" / "one.pb-c.h").exists() and (place / "pair.pb-c.c").exists()
    assert made.program is not None and made.warnings == []
    assert subprocess.check_output([made.program], text=True) == "3 4 8\n"


def test_protocol_buffers_by_cmake(write: Write, protoc: Path, commands: list[list[str]]) -> None:
    text = built(program(write, "protobufs: pair.proto, cmake-args: { A: 1 }"), "host")
    assert "src-gen/Main/pair.pb-c.c" in text and "Threads::Threads m protobuf-c)" in text
    assert [c[:2] for c in commands] == [["cmake", "-S"], ["cmake", "--build"]]


def test_protocol_buffers_that_do_not_compile(
    write: Write, protoc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (protoc / "x.proto").write_text("bad")
    (protoc / "lib" / "pair.proto").write_text("int c;")
    for names, message in (
        ("x.proto", "protoc-c refuses this file:\nx.proto:1:1: Expected a message"),
        ("none.proto", "there is no file 'none.proto'"),
        ('["pair.proto", "lib/deep/../../lib/pair.proto", "lib/pair.proto"]', ""),
    ):
        path = write(OWN.format(config=f"protobufs: {names}", preamble="", body=""))
        if not message:  # Two files of one name are two files; one file that is named twice is one.
            build(model(path), Wanted(compile=False))
            continue
        with pytest.raises(LfError, match=message):
            build(model(path), Wanted(compile=False))
    (protoc / "tools" / "protoc-c").unlink()
    monkeypatch.setenv("PATH", str(protoc / "tools"))
    with pytest.raises(
        LfError, match="'protobufs' needs protoc-c, which is not installed"
    ) as caught:
        build(model(path), Wanted(compile=False))
    assert "protobuf-c-compiler" in caught.value.problems[0].hint
    assert cli.main(["check", str(path)]) == 0
    assert "the bodies were not looked at" in capsys.readouterr().err


def test_two_files_that_would_make_one_header(write: Write, protoc: Path) -> None:
    (protoc / "src" / "a").mkdir(parents=True)
    (protoc / "other").mkdir()
    (protoc / "other" / "pair.proto").write_text("int c;")
    path = write(
        OWN.format(
            config='protobufs: ["../../pair.proto", "../../other/pair.proto"]', preamble="", body=""
        ),
        "src/a/Main.lf",
    )
    with pytest.raises(LfError, match=r"a second pair\.proto"):
        build(model(path), Wanted(compile=False))


@pytest.mark.parametrize("config", ["cmake: false", "files: [x.c, true]", "protobufs: TRUE"])
def test_what_is_no_name_of_a_file(write: Write, config: str) -> None:
    with pytest.raises(LfError, match="expected the name of a file"):
        model(program(write, config))


def test_a_property_that_is_called_otherwise_today(write: Write) -> None:
    path = program(write, 'compiler-flags: "-lm"')
    with pytest.raises(LfError, match="no target property 'compiler-flags'") as caught:
        model(path)
    assert caught.value.problems[0].hint == "did you mean 'cflags'?"


def test_cmake_code_that_cmake_refuses(tmp_path: Path) -> None:
    """The message has CMake's errors alone, not the many lines of what it has found."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(None NONE)\n"
        'message(STATUS "looked at")\nfind_package(NoSuchPackage REQUIRED)\n'
    )
    command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build")]
    with pytest.raises(LfError, match="CMake refuses this program:\nCMake Error") as caught:
        building.run_tool(command, tmp_path)
    problem = caught.value.problems[0]
    assert "NoSuchPackage" in problem.message and "looked at" not in problem.message
    assert problem.hint == "mend its CMake code, or install what it needs"
