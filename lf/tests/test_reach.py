"""Tests of the table that says what became of other people's programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Write

from weft_lf import cli, reach
from weft_lf.conform import Result, Way, results
from weft_lf.errors import Problem, Span
from weft_lf.reach import Fate, by_class, refused

MAIN = "main reactor { reaction(startup) {= =} }\n"
WITH = "target C {{ {config} }}\npreamble {{= {code} =}}\n" + MAIN.replace("{", "{{").replace(
    "}", "}}"
)
# name → the program, and its fate
PROGRAMS = {
    "Federated": ("target C\nfederated reactor { }\n", Fate("is federated")),
    "At": (
        "target C\nreactor A {}\nmain reactor { a = new A() at localhost }\n",
        Fate("is federated"),
    ),
    "Docker": (WITH.format(config="docker: true", code=""), Fate("asks for a container")),
    "Mac": (WITH.format(config="platform: Mac", code=""), Fate("is for another platform", "'Mac'")),
    "Zephyr": (
        WITH.format(config="platform: { name: Zephyr, board: x }, docker: false", code=""),
        Fate("asks for a container"),
    ),
    "Inside": (
        WITH.format(config="", code='\n#include "include/core/environment.h"\n'),
        Fate("includes headers of upstream's runtime", "include/core/environment.h"),
    ),
    "Header": (
        WITH.format(config="", code="\n#include <no/such.h>\n"),
        Fate("needs a tool or library that is not installed", "no/such.h"),
    ),
    "Library": (
        WITH.format(config='cflags: "-lnosuchlibrary -O0"', code=""),
        Fate("needs a tool or library that is not installed", "nosuchlibrary"),
    ),
    "Compiler": (
        WITH.format(config="compiler: no-such-cc", code=""),
        Fate("needs a tool or library that is not installed", "no-such-cc"),
    ),
    "File": (
        WITH.format(config='files: "none.c"', code=""),
        Fate("needs a file that is not there", "'none.c'"),
    ),
    "Package": (
        "target C\nimport A from <pack/A.lf>\n" + MAIN,
        Fate("needs a file that is not there", "the package 'pack'"),
    ),
    "Import": (
        'target C\nimport A from "A.lf"\n' + MAIN,
        Fate("needs a file that is not there", "A.lf"),
    ),
    "Wrong": (
        "target C\nmain reactor { reaction(t) {= =} }\n",
        Fate(reach.CHECK, "'Wrong' has no input, timer or action 't'"),
    ),
    "Body": (
        "target C\nmain reactor { reaction(startup) {= x = 1; =} }\n",
        Fate(reach.COMPILE, "‘x’ undeclared (first use in this function)"),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_why_a_program_was_not_built(write: Write, tmp_path: Path, name: str) -> None:
    text, fate = PROGRAMS[name]
    path = write(text, f"{name}.lf")
    (found,) = results(tmp_path, [], way=Way(build=True))
    got = Fate(found.fate.kind, found.fate.reason.replace(f"{path.parent}/", ""))
    assert (got.kind, got.reason.rpartition("/")[2] if name == "Import" else got.reason) == (
        fate.kind,
        fate.reason,
    )
    assert not found.passed and not found.built


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("the program needs the pico-sdk, which is not found: it names a board", "pico-sdk"),
        ('configuration file provided by\n  "Libwebsockets", but', "Libwebsockets"),
        ("Could not find MUJOCO_LIB using the following names: mujoco", "MUJOCO_LIB"),
        ("-- Could NOT find PahoMqttC (missing: PAHO)", "PahoMqttC"),
    ],
)
def test_what_cmake_does_not_find(output: str, reason: str) -> None:
    problem = Problem(Span(), f"CMake refuses this program:\n{output}")
    assert refused([problem], True) == Fate("needs a tool or library that is not installed", reason)
    warning = Problem(Span(), "federated programs are not supported", severity="warning")
    assert refused([warning, problem], True).reason == reason


def test_what_became_of_those_that_ran(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program whose `timeout` is below the limit has more time than the limit: it may lag behind.
    The table has each class once, and each failure with its reason."""
    suite = tmp_path / "suite"
    suite.mkdir()
    for name, config, body in (
        ("Late", "timeout: 1 msec", "lf_sleep(MSEC(600));"),
        ("On", "workers: 1", "lf_sleep(SEC(100));"),
        ("Status", "workers: 1", r'fprintf(stderr, "no such\ndevice: 7\n"); exit(3);'),
        ("Board", "platform: an521", ""),
        ("Source", "no-compile: true", ""),
    ):
        text = f"target C {{ build-type: Debug, {config} }}\nmain reactor {{ reaction(startup) {{= {body} =}} }}\n"
        write(text, f"suite/{name}.lf")
    write("target C\nmain reactor { reaction(t) {= =} }\n", "suite/Wrong.lf")
    write("target Python\n" + MAIN, "suite/Snake.lf")
    write("target C\nreactor Part { }\n", "suite/Part.lf")
    (suite / "federated").mkdir()
    write("target C\nfederated reactor { }\n", "suite/federated/Two.lf")
    write("target C { build-type: Debug }\n" + MAIN, "suite/Traced.lf")
    (suite / "Traced.trace").write_text("0 0 Traced.7\n")
    assert cli.main(["test", str(suite), "--limit", "0.5"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"{'what became of them':52} programs")
    assert [" ".join(line.split()) for line in lines[at + 1 : at + 15]] == [
        "ended well 1",
        "still ran at the limit, as it may 1",
        "built, for a device 1",
        "is C now, and asks for no compilation 1",
        "has an error that weft lf finds 1",
        "Wrong.lf: 'Wrong' has no input, timer or action 't'",
        "ended with a status 1",
        "Status.lf: exit status 3: device: 7",
        "gave another output or trace 1",
        "Traced.lf: the trace differs at entry 1: wanted 0 0 Traced.7, got 0 0 Traced.1",
        "files that are no tests files",
        "for the target Python 1",
        "in a folder federated 1",
        "without a main reactor 1",
    ]


def test_a_class_has_its_programs_in_order() -> None:
    late = Fate(reach.LATE)
    assert by_class([("b", late), ("a", Fate(reach.ENDED)), ("a/c", late)])[1:] == [
        f"{reach.ENDED:52} {1:8}",
        f"{reach.LATE:52} {2:8}",
        "    a/c",
        "    b",
    ]
    assert not Result(Path(), "", late).passed and Result(Path(), "", Fate(reach.DEVICE)).stopped
