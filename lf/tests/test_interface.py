"""Tests that the names that interface.toml promises are there."""

from __future__ import annotations

from conftest import Write, model
from interface import public, table

from weft_lf.build import Wanted, build, check_bodies

UTILITIES = ("audio_loop", "deque", "initialize_from_file", "sensor_simulator", "vector", "wave_file_reader")


def test_each_name_is_there(write: Write) -> None:
    """As a macro, or as what has a type. One that is not is told with its line."""
    there, _ = table()
    uses = [f"#ifndef {n}\n{{ __typeof__({n}) *p = 0; (void)p; }}\n#endif" for n in there]
    text = "\n".join(uses)
    headers = [f"{n}.h" for n in UTILITIES]
    files = ", ".join(f'"/lib/c/reactor-c/util/{h}"' for h in headers)
    included = "\n".join(f'#include "{h}"' for h in headers)
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
