"""Tests of the command `weft lf` in difficult circumstances: output that it cannot write, signals,
bad folders, odd file names, unmatched brackets in bodies."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, Write, run

from weft_lf import cli

COMMAND = [sys.executable, "-m", "weft_lf"]
ENV = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
BAD = "target C\nmain reactor { a = new B() }\n"
ENDLESS = """target C
main reactor { timer t(0, 1 sec) reaction(t) {= printf("tick %d\\n", getpid()); fflush(stdout); =} }
preamble {=
#include <unistd.h>
=}
"""


def command(*arguments: object, stdout: Any) -> subprocess.CompletedProcess[str]:
    line = [*COMMAND, *map(str, arguments)]
    return subprocess.run(line, env=ENV, stdout=stdout, stderr=subprocess.PIPE, text=True)


def test_output_that_cannot_be_written(write: Write) -> None:
    path = write(BAD)
    with Path("/dev/full").open("w") as full:
        done = command("check", "--json", path, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "weft lf: the output could not be written: No space left on device\n"


def test_a_reader_that_has_seen_enough(write: Write) -> None:
    path = write(
        "target C { timeout: 30 sec }\nmain reactor { timer t(0, 1 msec) reaction(t) {= =} }\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = command("oracle", path, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_too(write: Write, how: signal.Signals) -> None:
    """The program takes the place of the command: no process is left over, and the exit status is
    the program's."""
    path = write(ENDLESS)
    line = [*COMMAND, "run", str(path)]
    with subprocess.Popen(
        line,
        env=ENV,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == f"tick {running.pid}\n"
        running.send_signal(how)
        assert running.stdout.read().replace(f"tick {running.pid}\n", "") == ""
        assert running.wait() == -how


def test_the_program_ends_with_a_closed_pipe(write: Write) -> None:
    """The program ends by SIGPIPE, as other C programs do. Python ignores SIGPIPE; a program that
    `run` starts must not."""
    path = write(ENDLESS)
    line = [*COMMAND, "run", str(path), "-f", "true"]
    with subprocess.Popen(line, env=ENV, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.wait() == -signal.SIGPIPE


def test_what_the_interpreter_does_not_know(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    for body in ("fflush(stdout);", "int x = 1 / 0;"):
        path = write(f"target C\nmain reactor {{ reaction(startup) {{= {body} =}} }}\n")
        assert cli.main(["oracle", str(path)]) == 1
        assert "cannot run this" in capsys.readouterr().err


def test_folders_of_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Library.lf").write_text("target C\n// a main reactor imports this\nreactor A {}\n")
    for folder, words, message in (
        (tmp_path / "none", [], "there is no such folder"),
        (Path("/dev/null"), [], "is not a folder"),
        (tmp_path, [], "there are no tests"),
        (tmp_path, ["x"], "no test there has any of these words"),
    ):
        assert cli.main(["test", str(folder), *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "line", "column", "message"),
    [
        ("if (1) {", 2, 44, "this '{' is not closed"),
        ("}", 2, 37, "this '}' closes nothing"),
        ("\n  printf((1);", 3, 9, "this '(' is not closed"),
        ('char *s = "{{"; /* } */ // (\n {', 3, 2, "this '{' is not closed"),
        ("{ ( }", 2, 39, "'(' is not closed before this '}'"),
    ],
)
def test_brackets(
    write: Write,
    body: str,
    line: int,
    column: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The C compiler reports an unmatched bracket in the runtime's headers; the error of `weft lf`
    names its place in the body."""
    path = write(f"target C\nmain reactor {{ reaction(startup) {{= {body} \n=}} }}\n")
    assert cli.main(["build", str(path)]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(f"{path}:{line}:{column}: error: {message}"), errors
    assert len(errors.splitlines()) < 30


def test_brackets_in_macros_are_the_compilers_business(write: Write) -> None:
    output, _ = run(
        write("""target C
preamble {=
#include <stdio.h>
#define BEGIN {
=}
main reactor { reaction(startup) {= if (1) BEGIN printf("here\\n"); } =} }
""")
    )
    assert output == "here\n"


def test_names_of_files(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """The main reactor has its file's name, whatever characters are in it."""
    hello = 'target C\nmain reactor { reaction(startup) {= printf("hello\\n"); =} }\n'
    for name in ("1st.lf", "my prog.lf", "a#b.lf", "ünï.lf", "$(x).lf"):
        assert run(write(hello, name))[0] == "hello\n", name
    assert cli.main(["build", str(write(hello, 'a"b.lf'))]) == 1
    assert "rename it" in capsys.readouterr().err
    assert cli.main(["build", "--target", "rp2040", str(write(hello, "my prog.lf"))]) == 1
    assert "rename it" in capsys.readouterr().err


def test_the_compiler_may_have_options(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -DX=7")
    path = write('target C\nmain reactor { reaction(startup) {= printf("%d\\n", X); =} }\n')
    assert run(path)[0] == "7\n"


def test_widths_of_nothing(write: Write) -> None:
    """A port of width 0 has no channels, and triggers no reaction."""
    path = write("""target C
reactor A { output[0] o: int }
reactor B { input[0] i: int
  reaction(startup, i) {= printf("%d\\n", i_width); =} }
main reactor { a = new A()  b = new B()  a.o -> b.i }
""")
    assert run(path)[0] == "0\n"


def test_the_options_of_upstreams_compiler(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The options of upstream's compiler stand for properties of the target block."""
    path = write('target C\nmain reactor { reaction(startup) {= lf_print_log("told"); =} }\n')
    out = tmp_path / "out"
    options = ["--workers", "2", "--build-type", "Debug", "--logging", "LOG", "--lint"]
    assert cli.main(["build", "-o", str(out), *options, str(path)]) == 0
    program = out / "bin" / "Main"
    assert capsys.readouterr().out.split() == [str(program)]
    assert subprocess.run([program], capture_output=True, text=True).stdout == "LOG: told\n"
    text = (out / "src-gen" / "Main" / "Main.c").read_text()
    assert "#define NUMBER_OF_WORKERS 2" in text and not (path.parent / "bin").exists()
    old = out / "src-gen" / "Main" / "old"
    old.touch()
    assert cli.main(["build", "-n", "--clean", "-o", str(out), str(path)]) == 0
    assert not old.exists()
    assert cli.main(["build", "--compiler", "no-such-cc", str(path)]) == 1
    assert "no-such-cc is not installed" in capsys.readouterr().err
    for wrong in (["--workers", "-1"], ["--build-type", "fast"], ["--logging", "loud"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(["build", *wrong, str(path)])
        assert caught.value.code == 2


TOLD = 'target C\nmain reactor {{ reaction(startup) {{= lf_print_log("{}"); =}} }}\n'


def test_several_programs_and_json(
    write: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As upstream's compiler, `build` takes several programs, also by JSON or the standard input.
    A program that has an error does not keep the others from being built."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    one = write(TOLD.format("one"), "src/One.lf")
    two = write(TOLD.format("two"), "src/deep/Two.lf")
    bad = write(BAD, "src/Bad.lf")
    made = lambda: capsys.readouterr().out.split()  # noqa: E731
    assert cli.main(["build", "-n", "-q", str(one), str(bad), str(two)]) == 1
    assert [Path(p).name for p in made()] == ["One.c", "Two.c"]
    assert cli.main(["build", "--hierarchical-bin", str(two)]) == 0
    assert made() == [str(tmp_path / "bin" / "deep" / "Two")]
    properties = {"logging": "log", "workers": "2", "clean": False, "target-compiler": "cc"}
    given = {"src": [str(one)], "out": str(tmp_path / "out"), "properties": properties}
    file = tmp_path / "given.json"
    file.write_text(json.dumps(given))
    for option in (["--json", json.dumps(given)], ["--json-file", str(file)]):
        assert cli.main(["build", *option]) == 0
        (program,) = made()
        assert program == str(tmp_path / "out" / "bin" / "One")
        assert subprocess.run([program], capture_output=True, text=True).stdout == "LOG: one\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{one}\n\n{two}\n"))
    assert cli.main(["build", "-n", "--stdin"]) == 0
    assert [Path(p).name for p in made()] == ["One.c", "Two.c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--federated", "Main.lf"], "--federated is not supported: federated programs"),
        (["-r", "x", "Main.lf"], "--rti is not supported"),
        (["--runtime-version=1", "Main.lf"], "--runtime-version is not supported"),
        (["--workers", "2", "--single-threaded", "Main.lf"], "not allowed with argument"),
        ([], "which program?"),
        (["Main.lf", "--json", "{}"], "name the programs in one way"),
        (["--json", "{"], "--json: Expecting property name"),
        (["--json", "[]"], "expected an object"),
        (["--json", "{}"], "'src' is to be a file"),
        (["--json", '{"src": "a.lf", "sources": 1}'], "there is no 'sources'"),
        (["--json", '{"src": "a.lf", "out": 1}'], "'out' is to be a folder"),
        (["--json", '{"src": "a.lf", "properties": {"workers": []}}'], "the value of 'workers'"),
        (["--json", '{"src": "a.lf", "properties": {"rti": "x"}}'], "--rti is not supported"),
        (["--json", '{"src": "a.lf", "properties": {"odd": 1}}'], "--odd"),
    ],
)
def test_options_that_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["build", *options])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_options_without_effect_are_warnings(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("target C\nmain reactor { reaction(startup) {= char *c = 1; (void)c; =} }\n")
    options = ["-s", "GEDF_NP", "--print-statistics", "--single-threaded"]
    assert cli.main(["build", *options, str(path)]) == 0
    told = capsys.readouterr().err
    assert (
        "'--scheduler' has no effect here" in told and "'--print-statistics' has no effect" in told
    )
    assert "makes pointer from integer" in told
    assert cli.main(["build", "--quiet", str(path)]) == 0
    assert capsys.readouterr().err == ""
