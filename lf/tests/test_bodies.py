"""Tests that build and check report the messages of the C compiler about bodies once, at the lines
of the program.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Write, model, run

from weft_lf import cli
from weft_lf.build import Wanted, build, check_bodies
from weft_lf.errors import LfError, Problem

WARNED = """target C
reactor A<T>(n: int = 0) {
  output out: T
  state count: int = 0
  reaction(startup) -> out {= lf_set(out, "text"); =}
  reaction(startup) -> out {=
    int unused;
    lf_set(out, 1);
  =}
}
main reactor {
  a = new A<int>()
  b = new A<long>()
  reaction(a.out) {= =}
}
"""


def places(problems: list[Problem]) -> list[tuple[int, int, int, str]]:
    return [(p.span.line, p.span.column, p.span.length, p.severity) for p in problems]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_value_of_another_type_is_told(write: Write, tmp_path: Path) -> None:
    """The warning is at the line of the program, without the macros in between, from build and
    check alike. Warnings that only -Wall enables are left out.
    """
    path = write(WARNED)
    built = build(model(path), Wanted(quick=True)).warnings
    assert [p for p in built if "‘int’ from ‘char *’" in p.message]
    assert set(places(built)) == {(5, 31, 6, "warning")}
    # There is one problem for each type that T stands for.
    assert len(built) == len(set(built)) == 2
    checked = check_bodies(model(path), "")
    assert checked == built
    assert len(list((tmp_path / "cache" / "weft" / "lf-bodies").iterdir())) == 1
    assert check_bodies(model(path), "") == built  # The result comes from the cache.


def test_the_flags_of_the_program_ask_for_more(write: Write) -> None:
    path = write(WARNED.replace("target C", 'target C { cflags: "-Wunused-variable" }'))
    problems = check_bodies(model(path), "")
    assert problems is not None and (7, 9, 6, "warning") in places(problems)


@pytest.mark.parametrize(
    ("body", "name", "hint"),
    [
        ("lf_set(out, 1);", "out", "-> out"),
        ('lf_print("%d", in->value);', "in", "reaction(in)"),
        ("lf_schedule(act, 0);", "act", "it is an action"),
        ("count = 1;", "count", "self->count"),
        ("count = n;", "n", "self->n"),
        ("lf_set(inner.in, 1);", "inner", "inner.in"),
        ("lf_set_mode(Other);", "Other", "reset(Other)"),
        ("foo = 1;", "foo", ""),
    ],
)
def test_a_name_that_the_reactor_has(write: Write, body: str, name: str, hint: str) -> None:
    path = write(f"""target C
reactor Inner {{ input in: int }}
reactor A(n: int = 0) {{
  input in: int
  output out: int
  logical action act
  state count: int = 0
  inner = new Inner()
  reaction(startup) {{= {body} =}}
  initial mode One {{ }}
  mode Other {{ }}
}}
main reactor {{ a = new A() }}
""")
    problems = check_bodies(model(path), "")
    assert problems is not None
    found = [p for p in problems if f"‘{name}’ undeclared" in p.message]
    assert len(found) == 1 and found[0].span.line == 9
    assert hint in found[0].hint and bool(hint) == bool(found[0].hint)
    assert all("undeclared" in p.message for p in problems if p.span.line == 9)


def test_the_command(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(WARNED)
    assert cli.main(["check", "--json", str(path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {(p["line"], p["column"], p["severity"]) for p in report} == {(5, 31, "warning")}
    assert cli.main(["check", "--no-bodies", str(path)]) == 0
    assert capsys.readouterr().err == ""
    path.write_text("target C\nmain reactor { reaction(startup) {= x = 1; =} }\n")
    assert cli.main(["check", str(path)]) == 1
    assert "‘x’ undeclared" in capsys.readouterr().err
    assert not (path.parent / "src-gen").exists()


def test_a_body_that_fails_is_told_with_its_warnings(write: Write) -> None:
    path = write(WARNED.replace("int unused;", "int x = nothing;"))
    with pytest.raises(LfError) as caught:
        build(model(path), Wanted(quick=True))
    assert [(p.span.line, p.severity) for p in caught.value.problems][:1] == [(5, "warning")]
    assert (7, "error") in [(p.span.line, p.severity) for p in caught.value.problems]


def test_the_interface_works(write: Write) -> None:
    """Tests those parts of upstream's C interface that have a result which a program can see."""
    path = write("""target C { logging: info }
preamble {=
  #include "util.h"
  #include <stdarg.h>
  #include <string.h>
  static char heard[100];
  static void hears(const char *format, va_list list) { vsnprintf(heard, sizeof heard, format, list); }
=}
main reactor {
  state seen: tag_t = {= NEVER_TAG_INITIALIZER =}
  reaction(startup) {=
    char text[LF_TIME_BUFFER_LENGTH];
    #define SAME(is, wanted) if (strcmp((is), (wanted))) lf_print_error_and_exit("%s, not %s", (is), (wanted))
    LF_TEST(lf_tag_compare(self->seen, NEVER_TAG) == 0, "never");
    LF_TEST(lf_comma_separated_time(text, 1234567) == 9, "length");
    SAME(text, "1,234,567");
    lf_readable_time(text, DAYS(2) + HOURS(1) + MSEC(1500));
    SAME(text, "2 d, 1 h, 1 s, 500 ms");
    LF_TEST(lf_readable_time(text, 0) == 1 && lf_readable_time(text, FOREVER) < 64, "length");
    lf_readable_time(text, WEEKS(1));
    SAME(text, "7 d");
    tag_t a = {5, 1}, b = {6, 0};
    LF_TEST(lf_tag_max(a, b).time == 6 && lf_tag_min(a, b).time == 5, "max");
    LF_TEST(lf_tag_latest_earlier(b).time == 5 && lf_tag_latest_earlier(a).microstep == 0, "earlier");
    LF_TEST(lf_delay_strict(b, 10).time == 15, "strict");
    interval_t ns;
    LF_TEST(!lf_time_parse("3", "msec", &ns) && ns == MSEC(3), "parse");
    LF_TEST(lf_time_parse("x", "msec", &ns) == -1 && lf_time_parse("3", "x", &ns) == -2, "parse");
    lf_mutex_t m;
    lf_cond_t c;
    LF_MUTEX_INIT(&m);
    LF_COND_INIT(&c, &m);
    LF_MUTEX_LOCK(&m);
    LF_COND_BROADCAST(&c);
    LF_MUTEX_UNLOCK(&m);
    LF_TEST(lf_thread_id() == lf_thread_id() && LF_MAX(2, 3) == 3, "max");
    LF_TEST(lf_nanosleep(1000) == 0, "sleep");
    lf_register_print_function(hears, LOG_LEVEL_LOG);
    lf_print_log("%d", 42);
    SAME(heard, "LOG: 42\\n");
    lf_print_debug("not heard");
    SAME(heard, "LOG: 42\\n");
    lf_register_print_function(0, 0);
    tracepoint_user_value(self, "x", register_user_trace_event(self, "x"));
    lf_print_info("end");
  =}
}
""")
    assert run(path)[0] == "end\n"


def test_the_deque(write: Write, tmp_path: Path) -> None:
    path = write("""target C { files: ["/lib/c/reactor-c/util/deque.h", "/lib/c/reactor-c/util/deque.c"] }
preamble {=
  #include "deque.h"
  #include "deque.c"
=}
main reactor {
  state d: deque_t
  reaction(startup) {=
    static int n[100];
    for (int i = 0; i < 100; i++) {
      n[i] = i;
      if (i % 2) deque_push_front(&self->d, &n[i]);
      else deque_push_back(&self->d, &n[i]);
      if (i % 10 == 9) deque_push_back(&self->d, deque_pop_front(&self->d));
    }
    LF_TEST(deque_size(&self->d) == 100, "size");
    LF_TEST(deque_peek_front(&self->d) == &n[97] && deque_peek_back(&self->d) == &n[99], "ends");
    int sum = 0;
    while (!deque_is_empty(&self->d)) {
      sum += *(int *)deque_pop_back(&self->d);
      if (deque_size(&self->d)) sum += *(int *)deque_pop_front(&self->d);
    }
    LF_TEST(sum == 4950 && !deque_pop_back(&self->d) && !deque_peek_front(&self->d), "sum");
  =}
}
""")
    run(path)


def test_a_type_that_c_does_not_know(write: Write) -> None:
    """The error is at each place in the program that names the type, once for each type; types that
    a preamble defines, and those that are made for the program's ports, are known."""
    path = write("""target C
preamble {= typedef struct { int x; } known_t; =}
reactor A<T> {
  input in: T
  output out: image_t
  output known: known_t[2]
  state s: other_t*
  state more: other_t
  logical action a: third_t
  reaction(startup) in -> out, known {= =}
}
reactor Own { output out: int state port: own_out_t* state me: own_self_t* }
main reactor(p: fourth_t = 0) {
  a = new A<fifth_t>()
  b = new A<int>()
  own = new Own()
  reaction(startup) {= (void)self->p; =}
}
""")
    found = check_bodies(model(path), "")
    assert found is not None and {p.message for p in found} == {
        f"unknown type name ‘{name}_t’" for name in ("image", "other", "third", "fourth", "fifth")
    }
    assert all(p.hint == "define it in a preamble, or include its header" for p in found)
    assert sorted(places(found)) == [
        (5, 15, 7, "error"),
        (7, 12, 7, "error"),
        (9, 21, 7, "error"),
        (13, 17, 8, "error"),
        (14, 13, 7, "error"),
    ]
    with pytest.raises(LfError) as caught:
        build(model(path), Wanted(quick=True))
    assert caught.value.problems == found


def test_a_function_that_is_nowhere(write: Write) -> None:
    """The linker's error is reported once, at the line of the body, in place of the warning."""
    path = write("""target C { cflags: "-O0 -g" }
preamble {= int elsewhere(int x); =}
reactor A {
  output out: int
  reaction(startup) -> out {=
    lf_sett(out, elsewhere(1));
    lf_sett(out, 2);
  =}
}
main reactor { a = new A() }
""")
    with pytest.raises(LfError) as caught:
        build(model(path), Wanted())
    found = caught.value.problems
    assert [(p.message.split(";")[0], p.severity) for p in found] == [
        ("'elsewhere' is not linked", "error"),
        ("there is no function 'lf_sett'", "error"),
    ]
    assert places(found) == [(6, 18, 9, "error"), (6, 5, 7, "error")]
    assert all("define it in a preamble" in p.hint for p in found)
