"""Tests that the names that interface.toml promises exist."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import Write, model, run
from interface import public, table

from weft_lf.build import Wanted, build, check_bodies, includes

UTILITIES = (
    "audio_loop",
    "deque",
    "initialize_from_file",
    "sensor_simulator",
    "vector",
    "wave_file_reader",
)


def test_each_name_is_there(write: Write) -> None:
    """Each name is a macro, or something that has a type. A name that is neither is reported with
    its line.
    """
    there, _ = table()
    uses = [f"#ifndef {n}\n{{ __typeof__({n}) *p = 0; (void)p; }}\n#endif" for n in there]
    text = "\n".join(uses)
    headers = [f"{n}.h" for n in UTILITIES]
    files = ", ".join(f'"/lib/c/reactor-c/util/{h}"' for h in headers)
    included = "\n".join(f'#include "{h}"' for h in [*headers, "hashset/hashset_itr.h"])
    path = write(f"""target C {{
  files: [{files}], compile-definitions: {{ LOG_LEVEL: 4 }} }}
preamble {{=
{included}
=}}
main reactor {{ reaction(startup) {{=
{text}
=}} }}
""")
    assert check_bodies(model(path), "") == []


def test_what_differs_has_a_reason() -> None:
    there, differs = table()
    assert len(there) == len(set(there)) > 150
    for pattern, reason in differs:
        assert reason.endswith(".") and not any(pattern.fullmatch(n) for n in there)


def test_what_a_header_defines() -> None:
    text = """
#define A_H
#define LIMIT 3
/* void not_this(int); */
typedef struct thing_t { int x; } thing_t;
typedef int other_t;
size_t makes(thing_t *t,
             int n);
static inline int does(void) { if (1) return 2; }
void _hidden(void);
"""
    assert public(text) == {"LIMIT", "thing_t", "other_t", "makes", "does"}


def test_a_header_for_each_reactor(write: Write) -> None:
    """A C file of the program includes the header of the reactor whose reaction it has."""
    path = write(
        "target C\nreactor Sender { reaction send(startup) }\nmain reactor { s = new Sender() }\n"
    )
    made = build(model(path), Wanted(compile=False))
    header = made.source.parent / "include" / "Main" / "Sender.h"
    assert header.read_text() == '#include "Main.h"\n'
    text = '#include "../../src-gen/Main/include/Main/Main.h"\n'
    assert (path.parent / "include" / "Main" / "Sender.h").read_text() == text
    assert (path.parent / "include" / "Main" / "Main.h").read_text() == text


def test_a_header_for_c_files_that_have_no_reaction(write: Write, tmp_path: Path) -> None:
    """The header has the types, and the preambles of files. A preamble of a reactor is left out,
    since it may define objects that must exist only once."""
    path = write("""target C { files: "own.c" }
preamble {= typedef struct { int x; } pair_t; =}
reactor Sender {
  preamble {= const int numbers[] = {1, 2}; =}
  output out: pair_t
  state count: int = 0
  reaction(startup) -> out {= out->value.x = numbers[0]; lf_set_present(out); =}
}
main reactor { s = new Sender() }
""")
    own = """#include "include/Main/Sender.h"
#include "../include/api/reaction_macros.h"
#include "../include/api/reaction_macros_undef.h"
#include "api/schedule.h"
int counted(sender_self_t *self, sender_out_t *out) { return self->count + out->value.x; }
const int numbers[] = {3};
"""
    (tmp_path / "own.c").write_text(own)
    place = build(model(path), Wanted(compile=False)).source.parent
    command = ["cc", "-fsyntax-only", str(place / "own.c"), *includes(place)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_plain_action_has_a_token_where_bodies_ask(write: Write) -> None:
    """The token holds a copy of the value, may be scheduled again, and is released after the body,
    however the body ends."""
    path = write("""target C
main reactor {
  logical action a(1 msec): int
  logical action b: double
  state seen: int = 0
  reaction(startup) -> a, b {=
    lf_schedule_int(a, 0, 42);
    double *value = malloc(sizeof *value);
    *value = 2.5;
    lf_schedule_token(b, MSEC(4), lf_new_token(b, value, 1));
  =}
  reaction(a) -> a {=
    LF_TEST(*(int *)a->token->value == 42 && a->value == 42 && a->token->length == 1, "value");
    if (self->seen++ == 2) return;
    lf_schedule_token(a, 0, a->token);
  =}
  reaction(b) a {=
    LF_TEST(*(double *)b->token->value == 2.5 && !a->is_present && !a->token, "absent");
    lf_print("%d", self->seen);
  =}
}
""")
    assert run(path)[0] == "3\n"
