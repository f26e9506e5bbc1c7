"""Rules 3.5, 5.6, 14.5, 14.6: reports name the process that left by the end of a channel, and
the guards that fell silent."""

from __future__ import annotations

import inspect
import logging
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from children import weft
from parts import receive, send

from weft._watching import trace as _trace
from weft.coroutines import debug

pytestmark = pytest.mark.usefixtures("nobody_observes")
EVERYWHERE = pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])


async def reads(b, r):
    await b.op(r.read())  # here it is left


# This process has another name, so its path has no index, whichever process started first.
async def reads_too(b, r):
    await b.op(r.read())  # here it is left


async def writes(b, w):
    await b.op(w.write(1))  # here it is left


async def selects(b, r, other):
    await b.op(b.weft.select(r, other))  # here it is left


def line_of(function: Any) -> str:
    """Returns the place of the operation by which `function` is left."""
    lines, first = inspect.getsourcelines(function)
    at = next(i for i, line in enumerate(lines) if "here it is left" in line)
    return f"{__file__}:{first + at}"


def ended(b, poisoned=False):
    c = b.weft.Channel("c")
    r, w = c.reader(), c.writer()
    if poisoned:
        w.poison()
    else:
        w.retire()
    return r


def ends_in(file: Path) -> dict[str, dict[str, Any]]:
    events, _ = _trace.read(file)
    return {e["p"]: e for e in events if e["e"] == "end"}


def shown(path: str, how: str, channel: str, function: Any) -> str:
    return f"process {path} was left by {how}: channel {channel}, at {line_of(function)}"


def test_a_trace_names_who_left(b, tmp_path):  # rule 14.6
    file = tmp_path / "t.jsonl"
    d = b.weft.Channel("d")
    w = d.writer()
    d.reader().retire()
    b.run(
        b.process(reads)(ended(b)),
        b.process(writes)(w),
        b.process(reads_too)(ended(b, poisoned=True)),
        b.process(selects)(ended(b), ended(b)),
        b.process(receive)(ended(b)),
        trace=file,
    )
    ends = ends_in(file)
    found = {p: (e["how"], e.get("c"), e.get("at")) for p, e in ends.items()}
    assert found == {
        "main/reads": ("Retired", "c", line_of(reads)),
        "main/writes": ("Retired", "d", line_of(writes)),
        "main/reads_too": ("Poisoned", "c", line_of(reads_too)),
        "main/selects": ("Retired", "c", line_of(selects)),
        "main/receive": ("returned", None, None),  # a loop that ends with its channel (rule 3.4)
    }


def test_a_trace_says_that_what_was_not_met_is_a_failure(b, tmp_path):  # rules 3.5, 14.6
    async def raises(b):
        raise b.weft.Retired("mine")

    file = tmp_path / "t.jsonl"
    with pytest.raises(b.weft.Retired):
        b.run(b.process(raises)(), b.process(receive)(ended(b)), trace=file)
    end = ends_in(file)["main/raises"]
    assert (end["how"], end["error"]) == ("failed", "Retired: mine")
    assert "at" not in end


def test_a_trace_names_the_guards_that_fell_silent(b, tmp_path):  # rules 5.6, 14.6
    async def merges(b, r, other):
        got = []
        while True:
            try:
                got.append((await b.op(b.weft.select(r, other)))[1])
            except b.weft.Retired:
                return got

    x, y = b.weft.Channel("x"), b.weft.Channel("y")
    file = tmp_path / "t.jsonl"
    merged = b.process(merges)(x.reader(), y.reader())
    b.run(
        merged,
        b.process(send)(x.writer(), 1),
        b.process(late)(y.writer()),
        trace=file,
        clock="virtual",
    )
    assert sorted(merged.result) == [1, 2]
    events, _ = _trace.read(file)
    outcomes = [
        (e["e"], e.get("c"), e.get("silent"))
        for e in events
        if e["p"] == "main/merges" and e["e"] in ("commit", "ended")
    ]
    assert outcomes[1:] == [("commit", "y", [0]), ("ended", outcomes[-1][1], [0, 1])]


async def late(b, w):
    await b.op(b.weft.sleep(1))
    await b.op(w.write(2))
    await b.op(b.weft.sleep(1))


def test_the_debug_mode_names_who_left(b, caplog):  # rules 3.5, 14.5
    debug(True)
    try:
        with caplog.at_level(logging.WARNING, "weft"):
            b.run(
                b.process(reads)(ended(b)),
                b.process(receive)(ended(b)),
                b.process(selects)(ended(b), ended(b)),
            )
    finally:
        debug(False)
    message = sorted(r.getMessage() for r in caplog.records if r.name == "weft")
    assert message == [
        shown("main/reads", "Retired", "c", reads),
        shown("main/selects", "Retired", "c", selects),
    ]


def test_a_guest_is_named_too(play, caplog):  # rule 14.5
    from weft import coroutines as co

    @co.process
    async def reads(r):
        await r.read()

    async def main():
        c = co.Channel("c")
        r = c.reader()
        c.writer().retire()
        await co.Parallel(reads(r))

    debug(True)
    try:
        with caplog.at_level(logging.WARNING, "weft"):
            play(main())
    finally:
        debug(False)
    (message,) = [r.getMessage() for r in caplog.records if r.name == "weft"]
    assert re.fullmatch(
        rf"process main/reads was left by Retired: channel c, at {re.escape(__file__)}:\d+", message
    )


PROGRAM = """\
from weft import Channel, Parallel, Retired, process, run, select


@process
async def source(out):
    await out.write(1)
    await out.write(2)  # nobody takes it


@process
async def takes_one(source):
    value = await source.read()
    source.retire()  # else that is told (rule 3.6)
    return value


@process
async def merge(a, b):
    while True:
        await select(a, b)


@process
async def listens(source):
    return [v async for v in source]


a, b, c, d = (Channel(n) for n in "abcd")
run(source(a.writer()), takes_one(a.reader()), merge(b.reader(), c.reader()), listens(d.reader()),
    source(b.writer()), source(c.writer()), source(d.writer()))
"""


@EVERYWHERE
def test_weft_run_verbose_names_both(tmp_path, backend):  # rules 3.5, 5.6
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = weft("run", "--verbose", "--on", backend, str(program))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = sorted(done.stderr.splitlines())
    at = {text.strip(): f"{program}:{n}" for n, text in enumerate(PROGRAM.splitlines(), 1) if text}
    select, write = at["await select(a, b)"], at["await out.write(2)  # nobody takes it"]
    silent = [
        f"weft: process main/merge: guard {i} (input {c}) of its select fell silent: the channel has "
        f"retired, at {select}"
        for i, c in enumerate("bc")
    ]
    assert [x for x in lines if "fell silent" in x] == silent
    left = [x for x in lines if "was left by" in x]
    assert left[-1] == f"weft: process main/source[0] was left by Retired: channel a, at {write}"
    assert re.fullmatch(
        rf"weft: process main/merge was left by Retired: channel [bc], at {re.escape(select)}",
        left[0],
    )
    assert len(lines) == 4


def test_weft_run_says_nothing_by_itself(tmp_path):  # rule 3.5
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = weft("run", str(program), "--verbose")  # options after FILE belong to the program
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_leaves_the_one_process_of_a_run_is_a_failure_of_the_program(tmp_path):  # rule 7.1
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""\
            from weft import Channel, current_process, process, run, sleep

            @process
            async def cancels_itself():
                current_process().cancel()
                await sleep(1)

            run(cancels_itself())
        """)
    )
    done = weft("run", str(program))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.rstrip().endswith("weft.Cancelled: cancelled")
