"""Tests of bad programs: each mistake gives an LfError with a message, a place and a hint, and no
other exception."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Write, model, problems

from weft_lf import cli
from weft_lf.errors import rendered

A = "reactor A { output out: int }\nreactor B { input in: int }\n"
CASES = {
    # name of the case: the program after its line `target C`, the line and column of the error
    # (line 1 is the target line), part of the message
    "no main": ("reactor A {}", 1, 1, "no main reactor"),
    "two mains": ("main reactor A {}\nmain reactor B {}", 3, 14, "a second main reactor"),
    "syntax": ("main reactor { timer (0) }", 2, 22, "'(' cannot stand here"),
    "unfinished": ("main reactor {", 2, 14, "in the middle of something"),
    "code does not end": ("main reactor { reaction(startup) {= }", 2, 34, "does not end"),
    "text does not end": ('main reactor { state s: string = "abc\n}', 2, 34, "does not end"),
    "unknown reactor": ("main reactor { a = new Foo() }", 2, 16, "no reactor 'Foo'"),
    "unknown parameter": (A + "main reactor { a = new A(x = 1) }", 4, 26, "no parameter 'x'"),
    "parameter given twice": (
        "reactor A(x: int = 0) {}\nmain reactor { a = new A(x = 1, x = 2) }",
        3,
        33,
        "given twice",
    ),
    "parameter without value": (
        "reactor A(x: int) {}\nmain reactor { a = new A() }",
        3,
        16,
        "has no value",
    ),
    "unknown name of a value": (
        A + "main reactor { a = new A(out = y) }",
        4,
        26,
        "no parameter 'out'",
    ),
    "parameter's kind: text": (
        'reactor A(x: int = 0) {}\nmain reactor { a = new A(x = "1") }',
        3,
        26,
        "is a string",
    ),
    "parameter's kind: time": (
        "reactor A(x: int = 0) {}\nmain reactor { a = new A(x = 1 sec) }",
        3,
        26,
        "is a time",
    ),
    "time without unit": (
        "reactor A(x: time = 0) {}\nmain reactor { a = new A(x = 5) }",
        3,
        26,
        "is a time, and 5 is not",
    ),
    "timer without unit": ("main reactor { timer t(0, 5) }", 2, 27, "needs a unit"),
    "unknown unit": ("main reactor { timer t(0, 5 parsecs) }", 2, 27, "not a unit of time"),
    "timer from a list": ("main reactor(l: int[] = {1}) { timer t(l) }", 2, 40, "not a time known"),
    "unknown trigger": (
        "main reactor { reaction(x) {= =} }",
        2,
        25,
        "no input, timer or action 'x'",
    ),
    "unknown effect": (
        "main reactor { reaction(startup) -> x {= =} }",
        2,
        37,
        "no output, action or mode 'x'",
    ),
    "own output as trigger": (
        "reactor A { output o: int\n reaction(o) {= =} }\nmain reactor { a = new A() }",
        3,
        11,
        "own output",
    ),
    "own input as effect": (
        "reactor A { input i: int\n reaction(startup) -> i {= =} }\nmain reactor { a = new A() }",
        3,
        23,
        "own input",
    ),
    "reading an input of a contained reactor": (
        A + "main reactor { b = new B()\n reaction(b.in) {= =} }",
        5,
        11,
        "is written here, not read",
    ),
    "writing an output of a contained reactor": (
        A + "main reactor { a = new A()\n reaction(startup) -> a.out {= =} }",
        5,
        23,
        "is read here, not written",
    ),
    "no such contained reactor": (
        A + "main reactor { a = new A()\n reaction(c.out) {= =} }",
        5,
        11,
        "contains no reactor 'c'",
    ),
    "no such port": (
        A + "main reactor { a = new A()\n reaction(a.ou) {= =} }",
        5,
        11,
        "has no port 'ou'",
    ),
    "connection the wrong way": (
        A + "main reactor { a = new A()  b = new B()\n b.in -> a.out }",
        5,
        2,
        "cannot stand on the left",
    ),
    "two sources": (
        A
        + "main reactor { a = new A()  c = new A()  b = new B()\n a.out -> b.in\n c.out -> b.in }",
        6,
        2,
        "has two sources",
    ),
    "connected and written": (
        A
        + "main reactor { a = new A()  b = new B()\n a.out -> b.in\n reaction(startup) -> b.in {= =} }",
        6,
        2,
        "a connection feeds it too",
    ),
    "types": (
        "reactor A { output out: int }\nreactor B { input in: double }\nmain reactor { a = new A()  b = new B()\n a.out -> b.in }",
        5,
        2,
        "of type int",
    ),
    "negative width": (
        "reactor A {}\nmain reactor(n: int = -1) { a = new[n] A() }",
        3,
        37,
        "negative",
    ),
    "width not known": (
        "reactor A {}\nmain reactor { a = new[{= foo() =}] A() }",
        3,
        24,
        "not known at compile time",
    ),
    "width too large": ("reactor A {}\nmain reactor { a = new[5000000] A() }", 3, 24, "too large"),
    "contains itself": (
        "reactor A { a = new A() }\nmain reactor { a = new A() }",
        2,
        13,
        "contains itself",
    ),
    "extends itself": (
        "reactor A extends B {}\nreactor B extends A {}\nmain reactor { a = new A() }",
        2,
        9,
        "extend each other",
    ),
    "type arguments": ("reactor A<T> {}\nmain reactor { a = new A() }", 3, 16, "1 type parameter"),
    "port without type": (
        "reactor A { input x }\nmain reactor { a = new A() }",
        2,
        19,
        "needs a type",
    ),
    "state without anything": ("main reactor { state x }", 2, 22, "neither type nor value"),
    "name twice": (
        "main reactor { timer t  logical action t }",
        2,
        40,
        "something else called 't'",
    ),
    "reactor twice": (
        "reactor A {}\nreactor A {}\nmain reactor {}",
        3,
        9,
        "a second reactor called 'A'",
    ),
    "spacing policy": (
        'main reactor { logical action a(0, 1 msec, "never") }',
        2,
        31,
        "no spacing policy 'never'",
    ),
    "no initial mode": ("main reactor { mode A {} }", 2, 21, "is initial"),
    "two initial modes": (
        "main reactor { initial mode A {}  initial mode B {} }",
        2,
        48,
        "a second initial mode",
    ),
    "unknown mode": (
        "main reactor { initial mode A { reaction(startup) -> reset(B) {= =} } }",
        2,
        54,
        "no mode 'B'",
    ),
    "port in a mode": (
        "main reactor { initial mode A { input x: int } }",
        2,
        39,
        "cannot stand in a mode",
    ),
    "mutable output": (
        "reactor A { mutable output o: int }\nmain reactor { a = new A() }",
        2,
        13,
        "cannot be mutable",
    ),
    "order of a reaction": (
        "main reactor { timer t\n reaction(t) {= =} -> t }",
        3,
        20,
        "wrong place",
    ),
    "mutation": ("main reactor { mutation(startup) {= =} }", 2, 16, "not supported"),
    "a watchdog's time": ("main reactor { watchdog w(5) {= =} }", 2, 27, "needs a unit"),
    "a handler sets a mode": (
        "main reactor { watchdog w(1 sec) -> reset(M) {= =} initial mode M {} }",
        2,
        37,
        "cannot set a mode",
    ),
    "a handler writes a port": (
        "reactor A { output o: int watchdog w(1 sec) -> o {= =} }\nmain reactor { a = new A() }",
        2,
        48,
        "cannot write 'o'",
    ),
    "a negative time": ("main reactor { timer t(0, -1 sec) }", 2, 27, "-1 sec is negative"),
    "a negative time after a connection": (
        A + "main reactor { a = new A()  b = new B()\n a.out -> b.in after -1 sec\n}",
        5,
        22,
        "-1 sec is negative",
    ),
    "a time with a fraction": (
        "main reactor { timer t(0, 1.5 sec) }",
        2,
        27,
        "1.5 sec is not a whole number",
    ),
    "a negative number as a time": ("main reactor { timer t(0, -5) }", 2, 27, "is negative"),
    "a time of many digits": (
        f"main reactor {{ timer t(0, {'9' * 5000} sec) }}",
        2,
        27,
        "longer than 292 years",
    ),
    "a width of many digits": (
        f"reactor A {{}}\nmain reactor {{ a = new[{'9' * 5000}] A() }}",
        3,
        24,
        "more than 64 bits",
    ),
    "a number of many digits": (f"main reactor(n: int = {'9' * 21}) {{}}", 2, 23, "64 bits"),
    "digits of another script": ("main reactor { timer t(0, ٣ sec) }", 2, 27, "cannot stand here"),
    "a circle of connections": (
        "reactor A { input i: int  output o: int\n i -> o }\n"
        "main reactor { a = new A()  b = new A()\n a.o -> b.i\n b.o -> a.i }",
        6,
        2,
        "go round in a circle: Main.a.i → Main.a.o → Main.b.i → Main.b.o → Main.a.i",
    ),
    "a reaction without a body": ("main reactor { reaction(startup) }", 2, 16, "has no body"),
    "a path with a 0": ('import A from "a\0b"\nmain reactor {}', 2, 15, "character 0"),
    "lists that grow": (
        "reactor A0(p: int[] = {}) { state x: int[] = p }\n"
        + "".join(
            f"reactor A{n}(p: int[] = {{}}) {{ a = new A{n - 1}(p = {{p, p}}) }}\n"
            for n in range(1, 40)
        )
        + "main reactor { a = new A39(p = {1, 2}) }",
        21,
        42,
        "4194304 values",
    ),
    "a word of C": ("main reactor { state int: int = 0 }", 2, 22, "word of C"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_mistake_has_its_message(write: Write, case: str) -> None:
    text, line, column, message = CASES[case]
    first = problems(write(f"target C\n{text}\n")).problems[0]
    assert message in first.message
    assert (first.span.line, first.span.column) == (line, column)
    assert first.hint or len(first.message) > 20


def test_caret_and_hint(write: Write) -> None:
    path = write("target C\nmain reactor {\n\ta = new Foo()\n}\nreactor Fooo {}\n")
    text = rendered(problems(path).problems[0])
    assert (
        text
        == f"{path}:3:2: error: there is no reactor 'Foo'\n  \ta = new Foo()\n  \t^\n  did you mean 'Fooo'?"
    )


def test_the_line_that_is_shown(write: Write) -> None:
    """Only a newline ends a line. Of a long line, only the part around the place is shown."""
    path = write(
        'target C\n// \u2028 \x0b\nmain reactor { state s: string = "\u2028\x85"\n a = new B() }'
    )
    assert "\n   a = new B() }\n   ^\n" in rendered(problems(path).problems[0])
    path = write("target C\nmain reactor { " + "timer t(0) " * 50 + "a = new B() }", "Long.lf")
    shown = rendered(problems(path).problems[0]).split("\n")
    assert max(map(len, shown[1:])) < 200
    assert shown[1][shown[2].index("^") :].startswith("t(0)")


def test_how_files_begin_and_end(write: Write, tmp_path: Path) -> None:
    path = write("")
    path.write_bytes(b"\xef\xbb\xbftarget C\r\nmain reactor { a = new B() }\r\n")
    assert problems(path).problems[0].span.line == 2
    assert problems(path).problems[0].span.column == 16
    path.write_bytes(b"\xef\xbb\xbftarget C\r\nmain reactor {}\r\n")
    model(path)
    assert "longer than" in problems(Path("/dev/zero")).problems[0].message
    assert problems(tmp_path).problems[0].message == "Is a directory"


def test_a_causality_loop_shows_its_path(write: Write) -> None:
    text = """target C
reactor A { input in: int  output out: int
  reaction(in) -> out {= =} }
main reactor { a = new A()  b = new A()
  a.out -> b.in
  b.out -> a.in }
"""
    first = problems(write(text)).problems[0]
    assert "causality loop" in first.message
    assert "Main.a: reaction 1 (line 3) writes what 'Main.b.in' shows" in first.message
    assert "Main.b: reaction 1 (line 3) writes what 'Main.a.in' shows" in first.message
    assert "after 0" in first.hint


def test_a_loop_by_the_order_within_a_reactor(write: Write) -> None:
    text = """target C
reactor A { input in: int  output out: int
  reaction(in) {= =}
  reaction(startup) -> out {= =} }
main reactor { a = new A()  a.out -> a.in }
"""
    assert "stands before reaction 2" in problems(write(text)).problems[0].message


def test_a_delay_breaks_a_loop(write: Write) -> None:
    model(
        write("""target C
reactor A { input in: int  output out: int
  reaction(in) -> out {= =} }
main reactor { a = new A()  a.out -> a.in after 0 }
""")
    )


def test_no_loop_where_ports_are_apart(write: Write) -> None:
    """Reactors may feed each other if their reactions do not form a loop; upstream refuses this
    program."""
    model(
        write("""target C
reactor A { input i: int  output o: int  input j: int  output p: int
  reaction(i) -> o {= =}
  reaction(j) -> p {= =} }
main reactor { a = new A()  b = new A()
  a.o -> b.j
  b.o -> a.j }
""")
    )


def test_imports(write: Write, tmp_path: Path) -> None:
    first = problems(write('target C\nimport A from "Missing.lf"\nmain reactor {}\n')).problems[0]
    assert "there is no such file" in first.message and first.span.line == 2
    path = write(
        'target C\nimport A from "Other.lf"\nmain reactor {}\n', Other="target C\nreactor Aa {}\n"
    )
    assert "has no reactor 'A'" in problems(path).problems[0].message
    path = write(
        'target C\nimport A from "Other.lf"\nmain reactor {}\n',
        Other='target C\nimport B from "Main.lf"\n',
    )
    assert "import each other" in problems(path).problems[0].message
    path = write(
        'target C\nimport A from "Other.lf"\nmain reactor {}\n',
        Other="target C\nreactor A { timer }\n",
    )
    assert problems(path).problems[0].span.file.endswith("Other.lf")
    path = write("target C\nmain reactor {}\n")
    path.write_bytes(b"target C \xff\xfe")
    assert "not text" in problems(path).problems[0].message
    assert "no such file" in problems(tmp_path / "Nothing.lf").problems[0].message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("target Python", "target Python is not supported"),
        ("target CCpp", "CCpp is not supported"),
        ("target C { docker: true }", "'docker' is not supported"),
        ("target C { timeuot: 1 sec }", "no target property 'timeuot'"),
        ("target C { timeout: 5 }", "expected a time"),
        ("target C { fast: maybe }", "true or false"),
        ("target C { workers: many }", "a whole number"),
        ("target C { workers: -1 }", "negative"),
        ("target C { workers: 1000000 }", "too many"),
        (f"target C {{ workers: {'9' * 5000} }}", "64 bits"),
        ("target C { logging: loud }", "no level of logging"),
        ("target C { build-type: Fast }", "no build type"),
        ("target C { platform: Toaster }", "platform 'Toaster'"),
        ("target C { fast: true, fast: true }", "stands here twice"),
        ("target C { compile-definitions: x }", "expected definitions"),
        ("", "has no target"),
    ],
)
def test_target_properties(write: Write, config: str, message: str) -> None:
    assert message in problems(write(f"{config}\nmain reactor {{}}\n")).problems[0].message


def test_federated_is_refused(write: Write) -> None:
    assert "federated" in problems(write("target C\nfederated reactor {}\n")).problems[0].message


def test_suggestions(write: Write) -> None:
    assert (
        problems(write("target C { timeuot: 1 sec }\nmain reactor {}\n")).problems[0].hint
        == "did you mean 'timeout'?"
    )


def test_warnings(write: Write) -> None:
    path = write("""target C { scheduler: NP }
reactor A { output[2] out: int }
reactor B { input[3] in: int
  reaction(in) {= =} }
main reactor { a = new A()  b = new B()  c = new B()
  a.out -> b.in }
""")
    texts = [w.message for w in model(path).program.warnings]
    assert any("no effect" in t for t in texts)
    assert any("2 channels on the left, 3 on the right" in t for t in texts)
    assert any("nothing is connected to the input 'in' of 'c'" in t for t in texts)


def test_every_mistake_of_a_kind_is_told_once(write: Write) -> None:
    path = write(
        A
        + "target C\nmain reactor { a = new[9] A()  b = new[9] B()  a.out -> b.in; a.out -> b.in }\n"
    )
    assert len(problems(path).problems) == 1


def test_the_command(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("target C\nmain reactor { a = new Foo() }\n")
    assert cli.main(["check", "--json", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(p["line"], p["column"], p["severity"]) for p in found] == [(2, 16, "error")]
    assert cli.main(["check", str(path)]) == 1
    assert "^" in capsys.readouterr().err
    path.write_text("target C\nmain reactor {}\n")
    assert cli.main(["check", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert cli.main(["check", str(path.with_name("None.lf"))]) == 1
    with pytest.raises(SystemExit):
        cli.main(["bild", str(path)])
