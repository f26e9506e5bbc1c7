"""Tests of builds: the generated files and their lines, options of programs, large banks, reactions
without a body, images for devices, the drawing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from conftest import HERE, Write, model, run

from weft_lf import cli
from weft_lf.build import Wanted, build, project
from weft_lf.conform import TIERS, Way, conform, copied, results, tier_of
from weft_lf.emit import Options, emit
from weft_lf.errors import LfError
from weft_lf.fills import Fills
from weft_lf.graph import dot, draw

HELLO = 'target C\nmain reactor { reaction(startup) {= lf_print("hello"); =} }\n'


def test_the_tutorial_as_it_stands(tmp_path: Path) -> None:
    """Puts each program of lf/README.md into a file and runs it by `weft lf run`, as a new user
    would."""
    text = (HERE.parent / "README.md").read_text()
    programs = [b for b in re.findall(r"```lf\n(.*?)```", text, re.S) if "main reactor" in b]
    last = {"Blink": "on at 2000 ms", "Pipeline": "38", "Slow": ""}
    for block in programs:
        name = re.search(r"main reactor (\w+)", block).group(1)  # type: ignore[union-attr]
        path = tmp_path / f"{name}.lf"
        path.write_text(block)
        ran = subprocess.run(
            [sys.executable, "-m", "weft_lf", "run", str(path), "-f", "true"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")},
            cwd=tmp_path,
        )
        assert ran.returncode == 0, ran.stderr
        assert (ran.stdout.splitlines() or [""])[-1] == last.pop(name)
    assert not last
    assert (tmp_path / "Slow.flight").exists()


def test_where_things_go(write: Write, tmp_path: Path) -> None:
    assert project(tmp_path / "src" / "a" / "B.lf") == (tmp_path, Path("a"))
    assert project(tmp_path / "B.lf")[0] == tmp_path
    folder = tmp_path / "src" / "deep"
    folder.mkdir(parents=True)
    path = write(HELLO, "src/deep/Main.lf")
    built = build(model(path), Wanted(quick=True))
    assert built.program == tmp_path / "bin" / "Main"
    assert built.source == tmp_path / "src-gen" / "deep" / "Main" / "Main.c"


def test_an_error_of_the_c_compiler_names_the_line_of_the_program(write: Write) -> None:
    path = write(
        "target C\nmain reactor {\n  reaction(startup) {=\n    int x = 1;\n    x = nothing;\n  =}\n}\n"
    )
    with pytest.raises(LfError) as caught:
        build(model(path), Wanted(quick=True))
    first = caught.value.problems[0]
    assert (first.span.file, first.span.line, first.span.column) == (str(path), 5, 9)
    assert "‘nothing’ undeclared" in first.message


def test_lines_of_the_generated_file_are_its_own(write: Write) -> None:
    text, _ = emit(model(write(HELLO)), Options())
    lines = text.split("\n")
    marks = [
        (n, line)
        for n, line in enumerate(lines, 1)
        if line.startswith("#line") and line.endswith('"Main.c"')
    ]
    assert marks
    for number, line in marks:
        assert line.split()[1] == str(number + 1)
    assert "@HERE@" not in text


def test_the_same_text_each_time(write: Write) -> None:
    path = write(HELLO)
    assert emit(model(path), Options()) == emit(model(path), Options())


def test_the_same_text_from_every_interpreter() -> None:
    """The text does not depend on the order of Python's sets, which PYTHONHASHSEED changes."""
    path = next((HERE / "programs").rglob("WriteTwoBanks.lf"))
    code = (
        f"import sys; sys.path.insert(0, {str(HERE.parent / 'src')!r}); from pathlib import Path\n"
    )
    code += "from weft_lf.load import load; from weft_lf.elaborate import elaborate\n"
    code += f"from weft_lf.emit import emit; print(emit(elaborate(load(Path({str(path)!r}))))[0])"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 5)
    }
    assert len(texts) == 1
    assert "writetwobanks_b_ref" in texts.pop()


def test_options_of_a_program(write: Write) -> None:
    path = write("""target C
main reactor { timer t(0, 1 msec)
  reaction(t) {= =}
  reaction(shutdown) {= =} }
""")
    _, trace = run(path, "-f", "true", "-o", "3", "msec")
    assert trace[-1] == "3000000 0 Main.2" and len(trace) == 5
    _, trace = run(path, "-f", "true", "-o", "2", "msec", "-w", "1", "-k", "false")
    assert trace[-1] == "2000000 0 Main.2"
    text, _ = run(path, "--nonsense", status=2)
    assert "--nonsense" in text


def test_files_and_definitions(write: Write, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "two.h").write_text("enum { TWO = 2 };\n")
    (tmp_path / "one.h").write_text("enum { ONE = 1 };\n")
    path = write("""target C { files: ["one.h", "parts"], compile-definitions: { THREE: 3, FLAG: "" }, build-type: Debug }
preamble {=
  #include "one.h"
  #include "parts/two.h"
=}
main reactor { reaction(startup) {= if (ONE + TWO != THREE) lf_print_error_and_exit("sum"); =} }
""")
    run(path)
    path.write_text('target C { files: "none.h" }\nmain reactor {}\n')
    with pytest.raises(LfError, match=r"there is no file 'none\.h'"):
        build(model(path), Wanted())


def test_a_reaction_without_a_body_calls_c(write: Write, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "check.c").write_text("""#include "../include/Main/Main.h"
void check(main_self_t *self, gen_out_t **out) {
  self->sum += out[0]->value + out[1]->value;
}
""")
    (tmp_path / "check.cmake").write_text("target_sources(${LF_MAIN_TARGET} PRIVATE c/check.c)\n")
    path = write("""target C { files: ["c"], cmake-include: ["check.cmake"] }
reactor Gen(bank_index: int = 0) { output out: int
  reaction(startup) -> out {= lf_set(out, 4 + self->bank_index); =} }
main reactor { state sum: int = 0
  g = new[2] Gen()
  reaction check(g.out)
  reaction(shutdown) {= if (self->sum != 9) lf_print_error_and_exit("%d", self->sum); =} }
""")
    _, trace = run(path)
    assert "0 0 Main.check" in trace


def test_a_bank_of_five_thousand_is_a_few_lines(write: Write) -> None:
    path = write("""target C { fast: true, timeout: 1 msec }
reactor Source(bank_index: int = 0) { output out: int  timer t(0, 1 msec)
  reaction(t) -> out {= lf_set(out, self->bank_index); =} }
reactor Sink(bank_index: int = 0) { input in: int  state n: int = 0
  reaction(in) {= self->n += in->value; =}
  reaction(shutdown) {= if (self->n != 2 * self->bank_index) lf_print_error_and_exit("%d", self->n); =} }
main reactor { a = new[2500] Source()  b = new[2500] Sink()  a.out -> b.in }
""")
    text, _ = emit(model(path), Options())
    assert len(text) < 10_000
    built = build(model(path), Wanted(quick=True))
    assert subprocess.run([str(built.program)]).returncode == 0


def test_loops_say_what_the_fills_say() -> None:
    """The loops of a large program, run in Python, give the arrays the same contents as static
    initialisers."""
    fills = Fills()
    fills.array("a", "int", 40)
    rows = (
        [(i, 3 * i + 1) for i in range(10)]
        + [(i, 7) for i in range(12, 15)]
        + [(30 - i, i) for i in range(9)]
    )
    for index, value in rows:
        fills.put("a", index, "", "{}", value)
    found: dict[int, int] = {}
    for line in fills.statements():
        if line.startswith("  for"):
            count = int(line.split("i < ")[1].split(";")[0])
            target, value = line.split(") a[", 1)[1].rstrip(";").split("] = ")
            scope = range(count)
            for i in scope:
                index = eval(target.replace("(long)", ""), {"i": i})
                found[index] = eval(value.replace("(long)", ""), {"i": i})
        else:
            index_text, value = line.strip()[2:].rstrip(";").split("] = ")
            found[int(index_text)] = int(value)
    assert found == dict(rows)
    assert any(line.startswith("  for") for line in fills.statements())


def test_the_c_alone(write: Write) -> None:
    built = build(model(write(HELLO)), Wanted(compile=False))
    assert built.program is None and "lf_print" in built.source.read_text()


def test_an_image_for_the_rp2040(write: Write) -> None:
    path = write("""target C { platform: rp2040 }
main reactor { timer t(0, 500 msec)  state on: bool = false
  reaction(t) {= self->on = !self->on; =} }
""")
    built = build(model(path), Wanted(flash=True))
    assert built.program is not None
    image = built.program.with_suffix(".bin").stat().st_size
    assert 500 < image <= 3 * 1024
    assert built.program.with_suffix(".uf2").exists()


def test_the_drawing(write: Write, tmp_path: Path) -> None:
    path = write("""target C
reactor A(n: int = 2) { input[n] in: int  output out: int  logical action x(1 msec)
  reaction(in) -> out, x {= =} deadline(2 msec) {= =} }
main reactor { a = new[3] A()  timer t(0, 5 msec)
  (a.out)+ -> a.in after 10 msec
  reaction(t) {= =}
  reaction(startup) {= =} }
""")
    made = model(path)
    text = dot(made)
    for part in (
        "a [3] : A",
        "in [2]",
        "x (L)",
        "deadline 2 ms",
        "10 msec",
        "(0, 5 ms)",
        "startup",
    ):
        assert part in text, part
    assert draw(made, tmp_path / "x.dot").read_text() == text
    root = ET.parse(draw(made, tmp_path / "x.svg")).getroot()
    assert root.tag.endswith("svg")


def test_the_runner_copies_a_project(tmp_path: Path) -> None:
    """The runner copies the folder above `src`. Files beside that folder can be imported, as in the
    original place."""
    root, place = tmp_path / "root", tmp_path / "place"
    for name in ("lib/Lib.lf", "deep/C/src/x/Main.lf", "deep/Other/Near.lf"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("target C\n")
    place.mkdir()
    copy = copied(root / "deep" / "C", root, place)
    assert copy == place / "root" / "deep" / "C" and not (copy / "src").is_symlink()
    for name in ("../../../../lib/Lib.lf", "../../../Other/Near.lf"):
        assert (copy / "src" / "x" / name).read_text() == "target C\n"


def test_the_runner(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    write(HELLO, "suite/Good.lf")
    write(HELLO, "suite/Other.lf").with_suffix(".out").write_text("something else\n")
    write(HELLO + "\n//= 0 0 Wrong.2\n", "suite/Wrong.lf")
    write("target C\nmain reactor { reaction(startup) {= exit(3); =} }\n", "suite/Exit.lf")
    write("target C\nmain reactor {", "suite/Syntax.lf")
    write("target C\nreactor Lib {}\n", "suite/Lib.lf")
    write("target Python\nmain reactor { }\n", "suite/Other_target.lf")
    write("target C\nmain reactor { timer t(0, 1 msec) reaction(t) {= =} }\n", "suite/Endless.lf")
    (endless,) = results(folder, ["Endless"], way=Way(limit=0.2, bounded=True))
    assert endless.stopped and endless.passed
    write(
        "target C { timeout: 1 hour }\nmain reactor { timer t(0, 1 msec) reaction(t) {= =} }\n",
        "suite/Endless.lf",
    )
    (long,) = results(folder, ["Endless"], way=Way(limit=0.2, bounded=True))
    assert long.stopped and long.passed
    (folder / "Endless.lf").unlink()
    found = {r.path.stem: r for r in results(folder)}
    assert {name for name, r in found.items() if r.passed} == {"Good"}
    assert "exit status 3" in found["Exit"].text and "trace differs" in found["Wrong"].text
    assert "Lib" not in found and "Other_target" not in found
    assert conform([folder], ["Good"], None) == 0
    out = capsys.readouterr().out
    assert f"passed  {folder}/Good.lf" in out and f"1 passed, 0 failed in {folder}" in out
    other = tmp_path / "other"
    other.mkdir()
    write(HELLO, "other/Good.lf")
    assert cli.main(["test", str(folder), str(other), "Good", "--build"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [str(folder), "1", "1", "0", "1"] in rows and [str(other), "1", "1", "0", "1"] in rows
    assert not (folder / "src-gen").exists()


def test_tiers() -> None:
    for text, tier in (
        ("timer t", "T0"),
        ("a.b -> c.d after 1 sec", "T1"),
        ("a = new[4] A()", "T2"),
        ("mutable input x: int[]", "T3"),
        ("reactor A extends B {", "T4"),
        ("initial mode A {", "T5"),
        ("@enclave\na = new A()", "T6"),
        ("// mode A {", "T0"),
    ):
        assert tier_of(text).startswith(tier), text
    assert len(TIERS) == 6


def test_the_command_runs_a_program(write: Write) -> None:
    path = write(
        'target C\nmain reactor { reaction(startup) {= printf("%d\\n", 6 * 7); exit(4); =} }\n'
    )
    ran = subprocess.run(
        [sys.executable, "-m", "weft_lf", "run", str(path)],
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": str(HERE.parent / "src"),
            "PATH": "/usr/bin:/bin",
            "HOME": str(path.parent),
        },
    )
    assert (ran.returncode, ran.stdout) == (4, "42\n"), ran.stderr
    assert cli.main(["build", "--no-compile", str(path)]) == 0


def test_weft_itself_is_not_heavier() -> None:
    """`import weft` and its command line load neither lark nor the compiler."""
    code = "import sys, weft.cli; sys.exit(any(m.split('.')[0] in ('lark', 'weft_lf') for m in sys.modules))"
    path = HERE.parents[1] / "python" / "src"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, capture_output=True
    )
    if b"ModuleNotFoundError" in ran.stderr or b"ImportError" in ran.stderr:
        ran = subprocess.run(
            [sys.executable, "-c", code]
        )  # The sources have no extension module, so the installed package is tried.
    assert ran.returncode == 0
