"""Tests of enclaves (R20): which parts of a program are enclaves, and that a program has the same
trace with any number of enclaves and threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Write, model, run
from test_random import agree

from weft_lf.build import Wanted, build
from weft_lf.conform import by_reactor
from weft_lf.elaborate import elaborate
from weft_lf.emit import Options, emit
from weft_lf.enclaves import enclaves, has_objects, shared
from weft_lf.load import load
from weft_lf.oracle import Oracle

A = """reactor A { input in: int  output out: int  timer t(0, 1 msec)  state n: int = 0
  reaction(t) -> out {= lf_set(out, ++self->n); =}
  reaction(in) {= self->n = (3 * self->n + in->value) % 1000; =}
  reaction(shutdown) {= =} }
"""
TWO = "main reactor { a = new A()  b = new A() }\n"


def parts(path: Path, device: bool = False) -> list[list[str]]:
    """Returns the reactors of each enclave, except reactors without reactions."""
    made = model(path)
    found = enclaves(made, device)
    names: list[list[str]] = [[] for _ in range(found.count)]
    for instance in made.instances:
        if instance.reactions:
            names[found.of[instance]].append(instance.path.partition(".")[2] or "main")
    return names


CASES = {
    # The name of the case: target properties, the main reactor's text, the enclaves.
    "nothing joins them": ("workers: 2", "a = new A()  b = new A()", [["a"], ["b"]]),
    "a delay joins them": (
        "workers: 2",
        "a = new A()  b = new A()\na.out -> b.in after 1 msec",
        [["a"], ["b"]],
    ),
    "a loop of delays": (
        "workers: 2",
        "a = new A()  b = new A()\na.out -> b.in after 1 msec\nb.out -> a.in after 2 msec",
        [["a"], ["b"]],
    ),
    "a connection": ("workers: 2", "a = new A()  b = new A()\na.out -> b.in", [["a", "b"]]),
    "a microstep": ("workers: 2", "a = new A()  b = new A()\na.out -> b.in after 0", [["a", "b"]]),
    "a physical connection": (
        "workers: 2",
        "a = new A()  b = new A()\na.out ~> b.in",
        [["a"], ["b"]],
    ),
    "a reaction between": (
        "workers: 2",
        "a = new A()  b = new A()\nreaction(a.out) -> b.in {= =}",
        [["main", "a", "b"]],
    ),
    "as many as workers": (
        "workers: 2",
        "a = new[5] A()",
        [["a[0]", "a[2]", "a[4]"], ["a[1]", "a[3]"]],
    ),
    "more workers": ("workers: 4", "a = new[3] A()", [["a[0]"], ["a[1]"], ["a[2]"]]),
    "one worker": ("workers: 1", "a = new A()  b = new A()", [["a", "b"]]),
    "single-threaded": ("single-threaded: true", "a = new A()  b = new A()", [["a", "b"]]),
    "nobody asked": ("fast: true", "a = new A()  b = new A()", [["a", "b"]]),
    "asked for": (
        "fast: true",
        "@enclave\na = new A()  b = new A()  c = new A()",
        [["a"], ["b", "c"]],
    ),
    "asked for both": (
        "fast: true",
        "@enclave\na = new A()\n@enclave\nb = new A()  c = new A()",
        [["a"], ["b"], ["c"]],
    ),
    "asked for a bank": (
        "fast: true",
        "@enclave\na = new[2] A()  b = new A()",
        [["a[0]", "a[1]"], ["b"]],
    ),
    "asked for each of a bank": (
        "fast: true",
        "@enclave(each = true)\na = new[2] A()  b = new A()",
        [["a[0]"], ["a[1]"], ["b"]],
    ),
    "asked for, of one worker": ("workers: 1", "@enclave\na = new A()  b = new A()", [["a", "b"]]),
    "a broadcast with a delay": (
        "workers: 3",
        "a = new A()  b = new[2] A()\n(a.out)+ -> b.in after 1 msec",
        [["a"], ["b[0]"], ["b[1]"]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_parts(write: Write, name: str) -> None:
    target, main, wanted = CASES[name]
    path = write(f"target C {{ {target} }}\n{A}main reactor {{ {main} }}\n")
    assert parts(path) == wanted


def test_a_device_has_two_and_finds_them_unasked(write: Write) -> None:
    path = write(f"target C\n{A}main reactor {{ a = new[4] A() }}\n")
    assert parts(path, device=True) == [["a[0]", "a[2]"], ["a[1]", "a[3]"]]
    path = write(f"target C {{ workers: 1 }}\n{A}main reactor {{ a = new[4] A() }}\n")
    assert len(parts(path, device=True)) == 1
    text = "@enclave\na = new A()\n@enclave\nb = new A()\n c = new A()"
    assert len(parts(write(f"target C\n{A}main reactor {{ {text} }}\n"), device=True)) == 2


SHARED = {
    "objects of a preamble": "preamble {= int count; =}",
    "C files of the program's own": "",
    "'static' in a reaction": "reactor B { reaction(startup) {= static int n; n++; =} }",
    "'lf_request_stop' in a reaction": "reactor B { reaction(startup) {= lf_request_stop(); =} }",
    "a physical action": "reactor B { physical action p\n reaction(p) {= =} }",
    "a pointer among the parameters": "reactor B(p: {= int * =} = {= 0 =}) { reaction(startup) {= =} }",
    "C functions of the program's own": "reactor B { timer t\n reaction b(t) }",
}


@pytest.mark.parametrize("what", SHARED)
def test_what_reactors_share_keeps_them_together(write: Write, what: str) -> None:
    files = ', files: "Main.lf"' if what.startswith("C files") else ""
    b = "c = new B()" if "reactor B" in SHARED[what] else ""
    path = write(
        f"target C {{ workers: 2{files} }}\n{SHARED[what]}\n{A}main reactor {{ a = new A()  b = new A() {b} }}\n"
    )
    assert shared(model(path)) == what
    assert len(parts(path)) == 1


@pytest.mark.parametrize(
    "text, objects",
    [
        ("", False),
        ("#include <stdio.h>\n#define X 1 \\\n  + 2\n// int x;\n/* int y; */", False),
        ('#include "hardware/gpio.h"\n#include "board.h"', False),
        ('#include "mine.h"', True),
        ("typedef struct { int a; } pair;\nenum { A = 1 };\nstruct s { int x; };", False),
        ("int square(int x) { int y = x * x; return y; }\nstatic int f(void);", False),
        ("static int f(void) { static int n; return n++; }", True),
        ("int f(void) { if (1) { static int n; return n++; } return 0; }", True),
        ("int x;", True),
        ("static const int x = 3;", True),
        ("struct s { int x; } one;", True),
        ("int (*hook)(int);", True),
        ("int list[3] = { 1, 2, 3 };", True),
        ('const char *name = "int f(void)";', True),
    ],
)
def test_objects_of_a_preamble(text: str, objects: bool) -> None:
    assert has_objects(text) == objects


def test_what_cannot_be_had_is_told(write: Write) -> None:
    for main in (
        "@enclave\na = new A()  b = new A()\na.out -> b.in",
        "@enclave\na = new A()\ninitial mode M { timer t\n reaction(t) {= =} }",
    ):
        made = elaborate(load(write(f"target C\n{A}main reactor {{ {main} }}\n")))
        assert enclaves(made, False).count == 1
        assert "'@enclave'" in made.program.warnings[-1].message
        assert made.program.warnings[-1].span.line == 6


def test_each_way_of_writing_it_down(write: Write) -> None:
    path = write(
        f"target C {{ workers: 2 }}\n{A}main reactor {{ a = new A()  b = new A()\na.out -> b.in after 2 msec }}\n"
    )
    text, _ = emit(model(path), Options())
    assert "#define WEFT_RX_ENCLAVES 2" in text and "WEFT_RX_WORKERS" not in text
    assert "weft_rx_links[] = {{0, 1, 2000000LL}}" in text
    text, _ = emit(
        model(write(f"target C {{ workers: 2 }}\n{A}main reactor {{ a = new A() }}\n")), Options()
    )
    assert "ENCLAVES" not in text and "#define WEFT_RX_WORKERS 2" in text


PROGRAMS: dict[str, Callable[[], str]] = {
    "loop": lambda: (
        A
        + "main reactor { a = new A()  b = new A()\na.out -> b.in after 2 msec\nb.out -> a.in after 3 msec }"
    ),
    "bank": lambda: (
        A + "main reactor { a = new[6] A()  b = new[6] A()\na.out -> b.in after 500 usec }"
    ),
    "broadcast": lambda: (
        A + "main reactor { a = new A()  b = new[4] A()\n(a.out)+ -> b.in after 1 msec }"
    ),
    "dry at different times": lambda: (
        "reactor B(first: time = 1 msec) { timer t(first)\n reaction(t) {= =}\n reaction(shutdown) {= =} }\n"
        "main reactor { a = new B()  b = new B(first = 3 msec)  c = new B(first = 2 msec) }"
    ),
    "once": lambda: (
        "reactor B(bank_index: int = 0) { timer t(3 msec)  timer u(1 msec, 2500 usec)\n reaction(t, u) {= =}\n reaction(startup) {= =} }\n"
        "main reactor { b = new[3] B() }"
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.soak if name in ("once", "bank") else ())
        for name in PROGRAMS
    ],
)
def test_the_same_as_one(write: Write, name: str) -> None:
    """R19: one, two and four enclaves give the interpreter's trace. Programs with threads run five
    times, because their timing differs from run to run."""
    for workers in (1, 2, 4):
        text = (
            f"target C {{ timeout: 40 msec, fast: true, workers: {workers} }}\n{PROGRAMS[name]()}\n"
        )
        path = write(text)
        assert ("WEFT_RX_ENCLAVES" in emit(model(path), Options())[0]) == (workers > 1)
        wanted = by_reactor([f"{f.time} {f.microstep} {f.name}" for f in Oracle(model(path)).run()])
        for _ in range(1 if workers == 1 else 5):
            assert by_reactor(run(path)[1]) == wanted


def test_tokens_between_enclaves(write: Write) -> None:
    path = write("""target C { timeout: 20 msec, fast: true, workers: 2 }
reactor Source { output out: int[]  timer t(0, 1 msec)  state n: int = 0
  reaction(t) -> out {= int *a = malloc(3 * sizeof(int)); for (int i = 0; i < 3; i++) a[i] = self->n++; lf_set_array(out, a, 3); =} }
reactor Sink { input in: int[]  state sum: int = 0
  reaction(in) {= for (size_t i = 0; i < in->length; i++) self->sum += in->value[i]; =}
  reaction(shutdown) {= if (self->sum == 0) lf_print_error_and_exit("nothing"); =} }
main reactor { a = new Source()  b = new Sink()
  a.out -> b.in after 2 msec }
""")
    assert len(parts(path)) == 2
    assert [line for line in run(path)[1] if "b.1" in line][-1] == "20000000 0 Main.b.1"


def test_in_real_time_both_run(write: Write) -> None:
    """A reaction of one enclave waits until a reaction of the other enclave, at a later tag, has
    set `come`. With only one thread the program would hang.

    The order of the two in the trace is open: the waiting reaction may see `come` and end before
    the other reaction has written its entry."""
    path = write("""target C { timeout: 60 msec }
preamble {= #include <stdatomic.h>
static _Atomic int come; =}
reactor Waiter { timer t(10 msec)
  reaction(t) {= while (!come) {} =} }
reactor Comer { timer t(20 msec)
  reaction(t) {= come = 1; =} }
main reactor { @enclave
  w = new Waiter()
  c = new Comer() }
""")
    _, trace = run(path)
    assert sorted(trace) == ["10000000 0 Main.w.1", "20000000 0 Main.c.1"]


def test_a_request_stops_all_at_one_tag(write: Write) -> None:
    path = write("""target C { fast: true }
reactor A(stops: bool = false) { timer t(0, 1 msec)  state n: int = 0
  reaction(t) {= if (++self->n == 50 && self->stops) lf_request_stop(); =}
  reaction(shutdown) {= =} }
main reactor { @enclave
  a = new A(stops = true)
  b = new A() }
""")
    _, trace = run(path)
    ends = {line.rsplit(" ", 1)[0] for line in trace if line.endswith(".2")}
    assert len(ends) == 1 and len([line for line in trace if line.endswith(".2")]) == 2


def test_a_physical_action_of_an_enclave(write: Write) -> None:
    path = write("""target C { timeout: 100 msec }
preamble {= static void *later(void *a) { lf_sleep(MSEC(5)); lf_schedule(a, 0); return 0; } =}
reactor P { physical action p  state n: int = 0
  reaction(startup) -> p {= lf_thread_t id; lf_thread_create(&id, later, p); =}
  reaction(p) {= self->n++; =}
  reaction(shutdown) {= if (self->n != 1) lf_print_error_and_exit("%d", self->n); =} }
main reactor { @enclave
  a = new P()
  @enclave
  b = new P()
  timer t(0, 10 msec)
  reaction(t) {= =} }
""")
    assert len(parts(path)) == 3
    _, trace = run(path)
    assert (
        sum(line.endswith("a.2") for line in trace)
        == sum(line.endswith("b.2") for line in trace)
        == 1
    )


def test_large_programs(write: Write) -> None:
    """Loops fill the tables, and an enclave has more reactions than a word has bits."""
    path = write(
        f"target C {{ timeout: 5 msec, fast: true, workers: 2 }}\n{A}main reactor {{ a = new[900] A()\n}}\n"
    )
    text, _ = emit(model(path), Options())
    assert "#define WEFT_RX_TABLE\n" in text and "#define WEFT_RX_REACTIONS 1350" in text
    assert build(model(path), Wanted(quick=True)).program is not None
    assert len(run(path)[1]) == 900 * 7


CHAIN = """target C { timeout: 6 msec, fast: true, workers: 2 }
reactor Leaf(id: int = 0) {
  input i: int
  output o: int
  timer t(0, 2 msec)
  state s: int = 1
  reaction(i, t) -> o {=
    self->s = self->s * 3 + (i->is_present ? i->value + 1 : 7);
    lf_set(o, self->s);
    printf("%d %d\\n", self->id, self->s);
  =}
}
reactor Box(id: int = 0) {
  input i: int
  output o: int
  in = new Leaf(id = id)
  i -> in.i after 1 msec
  in.o -> o
}
main reactor {
  x = new Box(id = 1)
  y = new Box(id = 2)
  x.o -> x.i after 1 msec
  y.o -> y.i after 1 msec
}
"""


def test_a_delay_that_leads_to_a_delay(write: Write) -> None:
    """R20: a channel between two delays, which no reaction reads, belongs to the enclave of the
    delay before it."""
    path = write(CHAIN)
    made = model(path)
    found = enclaves(made, False)
    assert found.count == 2
    assert all(found.sends[delay] == found.arrives[delay] for delay in made.delays)
    assert agree(path) == 8
