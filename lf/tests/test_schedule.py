"""Tests of static schedules (R23): a program whose timing is known has a table in place of its
timers and the same trace; any other program keeps its timers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from conftest import Write, model, run

from weft_lf.build import Wanted, build
from weft_lf.conform import by_reactor
from weft_lf.emit import Options, emit
from weft_lf.enclaves import enclaves
from weft_lf.oracle import Oracle
from weft_lf.schedule import MAX_SLOTS, Schedule
from weft_lf.schedule import planned as plan
from weft_lf.ticks import HOST, Tick, in_ticks, period_of

DEVICE = Tick(1000, False)


def planned(path: Path, tick: Tick = HOST) -> Schedule | None:
    made = model(path)
    return plan(made, enclaves(made, False), tick)[1]


def unrolled(table: Schedule, until: int) -> list[tuple[int, tuple[int, ...]]]:
    """Returns the slots of a table in the order in which the runtime processes them: (time,
    reactions) for each slot before `until`.
    """
    found, now, at = [], 0, 0
    while True:
        if at == len(table.slots):
            at = table.loop
        now += table.slots[at].gap
        if now >= until:
            return found
        found.append((now, table.slots[at].reactions))
        at += 1


def random_timers(seed: int, unit: int) -> list[tuple[int, int]]:
    """Returns random timers as (offset, period) in ns. A period of 0 means that the timer fires
    once; the first timer is periodic.
    """
    pick = random.Random(seed)
    found = [(pick.randrange(9) * unit, (1 + pick.randrange(6)) * unit)]
    for _ in range(pick.randrange(5)):
        found.append((pick.randrange(20) * unit, pick.randrange(5) * unit))
    return found


def text_of(timers: list[tuple[int, int]], timeout: int) -> str:
    lines = [f"target C {{ timeout: {timeout} nsec, fast: true }}", "main reactor {"]
    for at, (offset, period) in enumerate(timers):
        lines += [
            f"  timer t{at}({offset} nsec, {period} nsec)",
            f"  reaction(t{at}) {{= =}}",
        ]
    return "\n".join([*lines, "  reaction(shutdown) {= =} }"]) + "\n"


@pytest.mark.parametrize(
    "tick, unit", [(HOST, 1000), (DEVICE, 1000), (DEVICE, 1250), (DEVICE, 333)]
)
def test_the_table_is_what_the_timers_do(write: Write, tick: Tick, unit: int) -> None:
    for seed in range(120):
        timers = random_timers(seed, unit)
        table = planned(write(text_of(timers, 1000)), tick)
        if table is None:
            continue
        until = 500
        at: dict[int, set[int]] = {}
        for number, (offset, period) in enumerate(timers):
            ticks, per = period_of(period, tick) if period else (until, 1)
            k = 0
            while (time := in_ticks(offset, tick) + k * ticks // per) < until and (period or not k):
                at.setdefault(time, set()).add(number)
                k += 1
        wanted = [(time, tuple(sorted(at[time]))) for time in sorted(at)]
        assert unrolled(table, until) == wanted, (seed, timers)
        assert table.loop < len(table.slots) and all(s.reactions for s in table.slots)
        assert all(s.gap for s in table.slots[1:])


def test_most_random_sets_have_a_table(write: Write) -> None:
    found = [planned(write(text_of(random_timers(s, 1000), 1000))) for s in range(40)]
    assert sum(t is not None for t in found) >= 35


@pytest.mark.parametrize("seed", range(6))
def test_the_same_trace_compiled(write: Write, seed: int) -> None:
    """R23: the table, the timers and the interpreter give the same trace."""
    path = write(text_of(random_timers(1000 + seed, 1_000_000), 70_000_000))
    wanted = [f"{f.time} {f.microstep} {f.name}" for f in Oracle(model(path)).run()]
    for table in (True, False):
        assert ("WEFT_RX_STATIC" in emit(model(path), Options(table=table))[0]) == table
        assert run(path, table=table)[1] == wanted


def test_ports_deadlines_startup_and_a_request_to_stop(write: Write) -> None:
    path = write("""target C { fast: true }
reactor A { output out: int  timer t(1 msec, 2 msec)  state n: int = 0
  reaction(startup) {= =}
  reaction(t) -> out {= lf_set(out, ++self->n); if (self->n == 4) lf_request_stop(); =} }
reactor B { input in: int  timer u(0, 3 msec)
  reaction(in) {= =} deadline(0) {= =}
  reaction(u) {= =}
  reaction(shutdown) {= if (lf_time_logical_elapsed() != MSEC(7)) lf_print_error_and_exit("stop"); =} }
main reactor { a = new A()  b = new B()  a.out -> b.in }
""")
    assert "WEFT_RX_STATIC" in emit(model(path), Options())[0]
    starts = ["0 0 Main.b.2", "0 0 Main.a.1"]
    ticks = [
        "1000000 0 Main.a.2",
        "1000000 0 Main.b.1!",
        "3000000 0 Main.a.2",
        "3000000 0 Main.b.1!",
    ]
    ticks += [
        "3000000 0 Main.b.2",
        "5000000 0 Main.a.2",
        "5000000 0 Main.b.1!",
        "6000000 0 Main.b.2",
    ]
    ends = ["7000000 0 Main.a.2", "7000000 0 Main.b.1!", "7000000 1 Main.b.3"]
    for table in (True, False):
        assert by_reactor(run(path, table=table)[1]) == by_reactor([*starts, *ticks, *ends])


OTHERS = {
    "an action": "timer t(0, 1 msec)  logical action a\n reaction(t) -> a {= =}\n reaction(a) {= =}",
    "a timer that fires once alone": "timer t(1 msec)\n reaction(t) {= =}",
    "nothing": "reaction(startup) {= =}",
    "a long round": "timer t(0, 1009 usec)  timer u(0, 1013 usec)\n reaction(t) {= =}\n reaction(u) {= =}",
    "a late beginning": "timer t(0, 1 msec)  timer u(1 sec, 1 msec)\n reaction(t) {= =}\n reaction(u) {= =}",
    "modes": "initial mode M { timer t(0, 1 msec)\n reaction(t) {= =} }",
}


@pytest.mark.parametrize("name", OTHERS)
def test_programs_that_keep_the_timers(write: Write, name: str) -> None:
    path = write(f"target C\nmain reactor {{ {OTHERS[name]} }}\n")
    assert planned(path) is None
    assert "WEFT_RX_STATIC" not in emit(model(path), Options())[0]


def test_workers_keep_the_timers(write: Write) -> None:
    text = "main reactor { timer t(0, 1 msec)\n reaction(t) {= =} }\n"
    assert planned(write("target C { workers: 2 }\n" + text)) is None
    assert planned(write("target C { workers: 1 }\n" + text)) is not None


def random_delays(seed: int) -> str:
    """Returns a random program: reactors, some with a timer, joined by fixed delays in any
    direction, loops included. Whether a body sets its output depends on its state.
    """
    pick = random.Random(seed)
    count = 3 + pick.randrange(3)
    lines = ["target C { fast: true, timeout: 60 msec }"]
    wires = []
    for at in range(count):
        timed = not at or pick.randrange(3)
        offset, period = pick.randrange(6), (2, 3, 4, 6)[pick.randrange(4)]
        lines += [f"reactor R{at} {{ input[2] in: int  output out: int  state n: int = {at}"]
        lines += [f"  timer t({offset} msec, {period} msec)"] if timed else []
        begins = not pick.randrange(3)
        body = f"self->n = (self->n * 5 + {pick.randrange(9)}) % 101; if (self->n % {1 + pick.randrange(3)} == 0) lf_set(out, self->n);"
        lines += [f"  reaction(startup) -> out {{= {body} =}}"] if begins else []
        lines += [f"  reaction(t) -> out {{= {body} =}}"] if timed else []
        echoes = "  -> out" if pick.randrange(3) else ""
        lines.append(f"  reaction(in) {echoes} {{=")
        for side in (0, 1):
            lines.append(
                f'    if (in[{side}]->is_present) printf("R{at} %d {side}\\n", in[{side}]->value);'
            )
        if echoes:
            lines.append(
                f"    if (in[0]->is_present && in[0]->value % {2 + pick.randrange(3)}) lf_set(out, in[0]->value - 1);"
            )
        lines.append("  =} }")
        wires.append(f"  r{at} = new R{at}()")
    delays = ("1 msec", "2 msec", "4 msec", "5 msec", "500 usec", "9 msec")
    for at in range(count):
        for side in (0, 1):
            source, delay = pick.randrange(count), delays[pick.randrange(len(delays))]
            wires.append(f"  r{source}.out -> m{at}{side}.in after {delay}")
            lines += [f"reactor M{at}{side} {{ input in: int  output out: int"]
            lines += ["  reaction(in) -> out {= lf_set(out, in->value); =} }"]
            wires.insert(0, f"  m{at}{side} = new M{at}{side}()")
    wires += [f"  m{at}0.out, m{at}1.out -> r{at}.in" for at in range(count)]
    return "\n".join([*lines, "main reactor {", *wires, "}"]) + "\n"


def test_fixed_delays_are_in_the_table(write: Write) -> None:
    """R23, R10: the table, the queue and the interpreter give the same trace and the same
    values."""
    tables = 0
    for seed in range(40):
        path = write(random_delays(seed))
        table = planned(path)
        if table is None or tables == 2:
            continue
        tables += 1
        oracle = Oracle(model(path))
        wanted = by_reactor([f"{f.time} {f.microstep} {f.name}" for f in oracle.run()])
        messages = sorted("".join(oracle.printed).splitlines())
        for by_table in (True, False):
            printed, trace = run(path, table=by_table)
            assert by_reactor(trace) == wanted, (seed, by_table)
            assert sorted(printed.splitlines()) == messages, (seed, by_table)
    assert tables == 2


PIPE = """target C {{ fast: true, timeout: 9 msec }}
reactor A {{ output out: {0}  timer t(0, 1 msec)
  reaction(t) -> out {{= =}} }}
reactor B {{ input in: {0}
  reaction(in) {{= =}} }}
main reactor {{ a = new A()  b = new B()  a.out {1} }}
"""


def test_how_much_is_on_its_way(write: Write) -> None:
    """A ring has room for exactly the values that are sent within its delay: a value that is due
    leaves the ring before another value enters the ring at the same tag."""
    for delay, most in (("500 usec", 1), ("1 msec", 1), ("2500 usec", 3), ("4 msec", 4)):
        table = planned(write(PIPE.format("int", f"-> b.in after {delay}")))
        assert table is not None and list(table.rings.values()) == [most], delay
        assert len(table.slots) < 20


@pytest.mark.parametrize(
    "kind, connection",
    [("int*", "-> b.in after 1 msec"), ("int", "~> b.in"), ("int", "-> b.in after 0")],
)
def test_which_delays_keep_the_queue(write: Write, kind: str, connection: str) -> None:
    path = write(PIPE.format(kind, connection))
    assert planned(path) is None
    assert "WEFT_RX_STATIC" not in emit(model(path), Options())[0]


def test_a_loop_that_never_repeats_in_the_table_keeps_the_queue(write: Write) -> None:
    """A value goes round in 7.001 ms beside a timer of 1 ms: the state of the ring repeats only
    after more tags than a table may have."""
    path = write("""target C
reactor A { input in: int  output out: int  timer t(0, 1 msec)
  reaction(startup) -> out {= lf_set(out, 1); =}
  reaction(t) {= =}
  reaction(in) -> out {= lf_set(out, 1); =} }
main reactor { a = new A()  a.out -> a.in after 7001 usec }
""")
    assert planned(path) is None
    path.write_text(path.read_text().replace("7001", "7000"))
    table = planned(path)
    assert table is not None and len(table.slots) <= 32


def test_a_table_has_an_end(write: Write) -> None:
    """A round of at most MAX_SLOTS slots gives a table; a longer round gives none."""
    for count, good in ((MAX_SLOTS, True), (MAX_SLOTS + 1, False)):
        path = write(text_of([(0, 1000), (0, 1000 * count)], 1000))
        assert (planned(path) is not None) == (good and count < MAX_SLOTS), count


def test_far_times_keep_the_timers_of_a_device(write: Write) -> None:
    path = write("target C\nmain reactor { timer t(0, 20 min)\n reaction(t) {= =} }\n")
    assert planned(path) is not None and planned(path, DEVICE) is None


@pytest.mark.soak
def test_large_programs_fill_the_table_in_loops(write: Write) -> None:
    path = write("""target C { fast: true, timeout: 2 msec }
reactor A(bank_index: int = 0) { state n: int = 0  timer t(0, 1 msec)
  reaction(t) {= self->n++; =}
  reaction(shutdown) {= if (self->n != 3) lf_print_error_and_exit("%d", self->n); =} }
main reactor { a = new[2000] A() }
""")
    text, _ = emit(model(path), Options())
    assert "WEFT_RX_STATIC" in text and len(text) < 8000
    assert build(model(path), Wanted(quick=True)).program is not None
    run(path)
