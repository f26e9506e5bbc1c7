"""Tests the placeable processes of cpp/tests/anywhere_small.cpp as a component under Python (rules
19.1 to 19.4). A C++ program and a board print the same (cpp/tests/hosted_anywhere_small.cpp,
mcu/csp/tests/placed.cpp).
"""

from __future__ import annotations

import inspect

import pytest
from components import HERE, needs_compiler

import weft.native
from weft import coroutines as co

pytestmark = needs_compiler
TESTS = HERE.parents[1] / "cpp/tests"


@co.process
async def collect(r):
    return [x async for x in r]


class Networks:
    """Runs each network, and keeps what its last channel carries."""

    def __init__(self, placed, on):
        self.placed, self.on, self.lines = placed, on, []

    def start(self, name, *arguments):
        return getattr(self.placed, name)(*arguments, on=self.on)

    def run(self, name, log, *processes):
        got = co.run(*processes, collect(+log))[-1]
        self.lines.append(" ".join([name, *map(str, map(int, got))]))

    def recall(self, name):
        log = co.Channel("log")
        self.run(name, log, self.start("recalls", -log))

    def vibration(self):
        samples, powers = co.Channel("samples", capacity=8), co.Channel("powers")
        self.run(
            "vibration", powers, self.start("shakes", -samples, 256),
            self.start("watches", +samples, -powers, 64),
        )  # fmt: skip

    def retired(self):
        a, b = co.Channel("a"), co.Channel("b")
        self.run(
            "retired", b, self.start("counts", -a, 0, 3), self.start("noted_copies", +a, -b)
        )  # fmt: skip
        self.recall("notes")

    def reader_gone(self):
        a, b = co.Channel("a"), co.Channel("b")
        co.run(
            self.start("counts", -a, 0, 9), self.start("noted_copies", +a, -b),
            self.start("stops", +b, 2, 0),
        )  # fmt: skip
        self.recall("reader_gone")

    def poisoned(self):
        a, b, log = co.Channel("a"), co.Channel("b"), co.Channel("log")
        self.run(
            "poisoned", log, self.start("tells", -a, -log, True),
            self.start("noted_copies", +a, -b), self.start("stops", +b, 2, 3),
        )  # fmt: skip
        self.recall("notes")

    def temporary(self):
        a, b = co.Channel("a"), co.Channel("b")
        self.run(
            "temporary", b, self.start("counts", -a, 0, 2), self.start("noted_sums", +a, -b)
        )  # fmt: skip
        self.recall("notes")

    def buffered(self):
        a, log = co.Channel("a", capacity=4), co.Channel("log")
        self.run("buffered", log, self.start("counts", -a, 0, 5), self.start("adds", +a, -log))

    def merged(self):
        a, b, c, log = (co.Channel(name) for name in ("a", "b", "c", "log"))
        self.run(
            "merged", log, self.start("counts", -a, 0, 3), self.start("counts", -b, 10, 13),
            self.start("merges", +a, +b, -c), self.start("adds", +c, -log),
        )  # fmt: skip
        self.recall("notes")

    def merge_poisoned(self):
        a, b, c, log = (co.Channel(name) for name in ("a", "b", "c", "log"))
        self.run(
            "merge_poisoned", log, self.start("poisons", -a, 2),
            self.start("merges", +a, +b, -c), self.start("tells", -b, -log, False),
            self.start("stops", +c, 99, 0),
        )  # fmt: skip
        self.forget()

    def chosen(self):
        numbers, flags, log = (co.Channel(name) for name in ("numbers", "flags", "log"))
        still_open = numbers.writer()  # so that the time limit decides (rule 5.6)
        self.run(
            "chosen", log, self.start("feeds", -numbers, -flags),
            self.start("chooses", +numbers, +flags, -log),
        )  # fmt: skip
        still_open.retire()

    def phases(self):
        barrier = co.Barrier(2)
        a, b, c, sums = (co.Channel(name) for name in ("a", "b", "c", "sums"))
        self.run(
            "phases", sums, self.start("phases", barrier, -a, 2),
            self.start("phases", barrier, -b, 2), self.start("merges", +a, +b, -c),
            self.start("adds", +c, -sums),
        )  # fmt: skip
        self.forget()

    def withdrawn(self):
        barrier = co.Barrier(2)
        a, b, log = co.Channel("a"), co.Channel("b"), co.Channel("log")
        co.run(
            self.start("poisons", -a, 1), self.start("awaits_both", barrier, +a, -b),
            self.start("stops", +b, 1, 0),
        )  # fmt: skip
        self.recall("withdrawn")
        self.run(
            "left", log, self.start("phases", barrier, -log, 1), self.start("leaves", barrier)
        )  # fmt: skip

    def slept(self):
        log = co.Channel("log")
        self.run("slept", log, self.start("waits", -log))

    def forget(self):
        self.recall("forgotten")
        self.lines.pop()


@pytest.mark.parametrize("on", ["pool", "thread"])
def test_a_source_without_a_heap_gives_the_same_under_python(on):
    """Rules 19.1, 19.2, 19.3, 19.4: the networks have the results that they have in a C++
    program."""
    placed = weft.native.load(TESTS / "anywhere_small.cpp")
    # `from` is a keyword of Python (rule 19.5).
    assert list(inspect.signature(placed.counts).parameters)[:3] == ["out", "from_", "to"]
    n = Networks(placed, on)
    for network in (
        n.vibration, n.retired, n.reader_gone, n.poisoned, n.temporary, n.buffered, n.merged,
        n.merge_poisoned, n.chosen, n.phases, n.withdrawn, n.slept,
    ):  # fmt: skip
        network()
    expected = (TESTS / "anywhere_small.expected").read_text(encoding="utf-8")
    assert "\n".join(n.lines) == expected.removeprefix('R"(').removesuffix('\n)"\n')
