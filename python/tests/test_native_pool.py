"""Rule 16.10: coroutines of components on the pool, a few native threads that many share, beside
processes of every other kind."""

from __future__ import annotations

import array
import asyncio
import gc
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from components import HERE, basics, needs_compiler, tasks
from os_process_targets_native import gives
from parts import co_echo, gr_echo, hows, th_echo

import weft.native
import weft.threads as th
from weft import coroutines as co
from weft.errors import BadUse, Deadlock, Poisoned
from weft.native import ComponentError

pytestmark = needs_compiler
SEEDS = range(20)
CPUS = len(os.sched_getaffinity(0))


@co.process
async def numbers(w, values):
    for x in values:
        await w.write(x)


@co.process
async def collect(r):
    return [x async for x in r]


async def all_of(b, r):
    got = []
    try:
        while True:
            got.append(await b.op(r.read()))
    except b.weft.Retired:
        return got


async def write_all(b, w, values):
    for v in values:
        await b.op(w.write(v))


def how_many_threads():
    return len(list(Path("/proc/self/task").iterdir()))


def channels(n, **how):
    return [co.Channel(f"c{i}", **how) for i in range(n)]


# --- processes of the pool are like any other -----------------------------------------------------


@pytest.mark.parametrize("on", ["pool", "thread"])
@pytest.mark.parametrize("channel", [{}, {"capacity": 3}, {"overflow": "unbounded"}])
def test_between_processes_of_every_backend(b, on, channel):  # rules 1.2, 1.4, 16.10
    a, c = b.weft.Channel("a", **channel), b.weft.Channel("c", **channel)
    got = b.run(
        b.process(write_all)(-a, range(100)), tasks().ints(+a, -c, on=on), b.process(all_of)(+c)
    )
    assert got[2] == list(range(100))


def test_it_runs_on_the_pool_unless_told():  # rule 16.10
    assert "on: 'str | Hosts | OneHost | Supervisor' = 'pool'" in str(tasks().ints.__signature__)
    assert "= 'thread'" in str(basics().ints.__signature__)


@pytest.mark.parametrize("on", ["pool", "thread"])
def test_parts_that_are_awaited(on):  # rule 16.10
    a, c = channels(2)
    got = co.run(numbers(-a, range(7)), tasks().sums(+a, -c, n=2, on=on), collect(+c))
    assert got[2] == [1, 5, 9]


def test_parts_do_not_pile_up_on_the_stack():
    """Half a million tasks are awaited, none of which waits; the stack must not grow."""
    (c,) = channels(1)
    assert co.run(tasks().deep(-c, 500_000), collect(+c))[1] == [500_000]


def test_what_a_part_throws_leaves_it():  # rule 7.2
    a, c = channels(2)
    with pytest.raises(ComponentError, match="std::domain_error: below zero"):
        co.run(numbers(-a, [1, -2]), tasks().sums(+a, -c), collect(+c))


def test_texts_and_default_of_a_parameter():  # rules 16.2, 16.4
    a, c = channels(2)
    got = co.run(numbers(-a, ["x", "größer" * 40]), tasks().texts(+a, -c, "at "), collect(+c))
    assert got[2] == ["at x", "at " + "größer" * 40]


def test_arrays_are_lent_and_come_back():  # rule 16.6
    a, c = channels(2)
    whole = array.array("d", [1, 2, 3])
    (half,) = co.run(numbers(-a, [whole]), tasks().halves(+a, -c), collect(+c))[2]
    assert half.tolist() == whole.tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize("on", ["pool", "thread"])
def test_an_array_that_was_not_written_is_there_yet(on):  # rules 3.2, 5.1
    go, out, log = channels(3)

    @co.process
    async def leaves(go, reader, log):
        reader.retire()
        await go.write(1)
        return await log.read()

    reader = out.reader()
    assert co.run(leaves(-go, reader, +log), tasks().keeps(+go, -out, -log, on=on))[0] == "3 and 3"


# --- many of them ---------------------------------------------------------------------------------


def test_a_thousand_on_a_few_threads():
    """A chain of 1,000 processes; one process in the middle of the chain counts the program's
    threads, while all the others wait."""
    n = 1000
    cs = channels(n + 1)
    go, count = channels(2)
    before = how_many_threads()

    @co.process
    async def main(first, last, go, count):
        for x in range(5):
            await first.write(x)
            assert await last.read() == x
        await go.write(1)
        return await count.read()

    stages = [tasks().ints(+a, -b) for a, b in itertools.pairwise(cs)]
    threads = co.run(main(-cs[0], +cs[-1], -go, +count), *stages, tasks().threads(+go, -count))[0]
    assert threads <= before + CPUS
    assert all(s.done for s in stages)


def test_the_pool_goes_with_its_processes():
    """Every run has its own pool of threads; when the processes of the run have ended, these
    threads also end."""

    def once():
        a, c = channels(2)
        assert co.run(numbers(-a, [1]), tasks().ints(+a, -c), collect(+c))[2] == [1]

    once()
    before = how_many_threads()
    for _ in range(20):
        once()
    # A thread that has left its run may still exist in the system.
    while how_many_threads() > before:
        os.sched_yield()


def test_processes_that_are_started_one_after_another():
    """The pool's threads end with their last process, in the middle of a run. The next process runs
    on a new thread."""

    @co.process
    async def main():
        got = []
        for k in range(30):
            a, c = channels(2)
            got += (await co.Parallel(numbers(-a, [k]), tasks().ints(+a, -c), collect(+c)))[2]
        return got

    assert co.run(main()) == list(range(30))


def test_in_a_group_and_in_a_block_of_ordinary_code():
    a, c = channels(2)
    w, r = a.writer(), c.reader()
    with th.Group() as group:
        group.start(tasks().ints(+a, -c))
        w.write(7)
        assert r.read() == 7
        w.retire()
        with pytest.raises(th.Retired):
            r.read()


def test_in_a_network_that_is_a_guest_of_asyncio():  # rule 16.10
    async def main():
        a, c = channels(2)
        return await co.Parallel(numbers(-a, range(50)), tasks().ints(+a, -c), collect(+c))

    assert asyncio.run(main())[2] == list(range(50))


def test_tasks_of_asyncio_at_its_channels():
    """The tasks need the interpreter's lock, so the component's operations at their channels take
    the lock (aside.hpp)."""

    async def main():
        a, c = channels(2)
        w, r = a.writer(), c.reader()

        async def feeds():
            for x in range(50):
                await w.write(x)
            w.retire()

        async def reads():
            return [x async for x in r]

        reading, feeding = asyncio.create_task(reads()), asyncio.create_task(feeds())
        await co.Parallel(tasks().ints(+a, -c))
        await feeding
        return await reading

    assert asyncio.run(main()) == list(range(50))


def test_python_goes_on_while_it_computes(tmp_path):  # rules 16.1, 16.10
    """The component computes until Python has made a file, which would be impossible if Python had
    to wait for the interpreter's lock."""
    (c,) = channels(1)
    path = tmp_path / "there"

    @co.process
    async def makes(r):
        got = [await r.read()]
        path.touch()
        return [*got, await r.read()]

    assert co.run(tasks().spins(-c, str(path)), makes(+c))[1] == [1, 2]


# --- choice, time, barriers -----------------------------------------------------------------------


@pytest.mark.parametrize("on", ["pool", "thread"])
def test_choice_is_fair(on):  # rules 5.2, 5.4
    a, b, log = channels(3)
    got = co.run(
        numbers(-a, range(20)),
        numbers(-b, range(20)),
        tasks().either(+a, +b, -log, n=40, on=on),
        collect(+log),
    )[3]
    assert [x for x in got if x[0] == "a"] == [f"a {n}" for n in range(20)]
    assert [x for x in got if x[0] == "b"] == [f"b {n}" for n in range(20)]


@pytest.mark.parametrize("on", ["pool", "thread"])
def test_outputs_preconditions_and_loud_guards(on):  # rules 5.1, 5.5, 5.6
    a, c = channels(2)
    got = co.run(numbers(-a, range(50)), tasks().place(+a, -c, on=on), collect(+c))[2]
    assert got == list(range(50))


@pytest.mark.parametrize("on", ["pool", "thread"])
def test_timers_on_a_virtual_clock(on):  # rules 5.3, 5.7, 8.5, 8.6
    a, log = channels(2)

    @co.process
    async def slow(w):
        await w.write(1)
        await co.sleep(0.030)
        await w.write(2)
        await co.sleep(10)
        w.retire()

    got = co.run(slow(-a), tasks().patient(+a, -log, 50, on=on), collect(+log), clock="virtual")[2]
    message = [
        "in time 1",
        "in time 2",
        "late at 80",
        "slept until 1080",
        "nothing there",
        "no time",
    ]
    assert got == message


def test_a_timer_on_the_clock_of_the_wall():  # rule 5.7
    a, log = channels(2)
    keeps = a.writer()

    made = tasks().patient(+a, -log, 5)

    @co.process
    async def waits(log):
        output = await log.read()
        made.cancel()
        return output.split()[0]

    assert co.run(made, waits(+log))[1] == "late"
    keeps.retire()


@pytest.mark.parametrize("seed", SEEDS)
def test_at_a_barrier_with_others(seed):  # rules 8.1, 8.2, 8.4
    choose = random.Random(seed)
    others, native, rounds = choose.randint(1, 3), choose.randint(1, 3), 4
    barrier = co.Barrier(others + native)
    log = co.Channel("log", overflow="unbounded")
    reader = +log

    @co.process
    async def meets(w):
        for k in range(rounds):
            await w.write(f"before {k}")
            await barrier.sync()
        barrier.resign()

    co.run(
        *(
            tasks().phases(barrier, -log, rounds, on=choose.choice(["pool", "pool", "thread"]))
            for _ in range(native)
        ),
        *(meets(-log) for _ in range(others)),
    )
    got = co.run(collect(reader))
    each = others + native
    want = [f"before {k}" for k in range(rounds) for _ in range(each)]
    assert got == want, f"seed {seed}"


# --- how they end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_overtaken_in_a_mixed_chain(seed):  # rules 1.2, 1.5, 3.5
    choose = random.Random(seed)
    kinds = [co_echo, gr_echo, th_echo, basics().ints, tasks().ints, tasks().ints, tasks().place]
    cs = [co.Channel(f"c{k}", capacity=choose.choice([0, 0, 1, 5])) for k in range(7)]
    made = [choose.choice(kinds) for _ in cs[1:]]
    made[choose.randrange(len(made))] = tasks().ints
    steps = [f(+a, -b) for f, a, b in zip(made, cs[:-1], cs[1:], strict=True)]
    got = co.run(numbers(-cs[0], range(100)), *steps, collect(+cs[-1]))[-1]
    assert got == list(range(100)), f"seed {seed}"


@pytest.mark.parametrize("strength", [1, 7])
def test_poison_goes_on_through_what_it_holds(strength):  # rules 4.1, 4.3
    a, c = channels(2)

    @co.process
    async def aborts(w):
        await w.write(1)
        w.poison(strength)

    @co.process
    async def meets(r):
        with pytest.raises(Poisoned) as met:
            while True:
                await r.read()
        return met.value.strength

    assert co.run(aborts(-a), tasks().ints(+a, -c), meets(+c))[2] == strength


def test_it_poisons_and_it_retires():  # rules 3.1, 4.1
    a, c = channels(2)

    @co.process
    async def writes(w, how):
        with pytest.raises(how):
            while True:
                await w.write(0)

    co.run(writes(-a, Poisoned), tasks().poisons(+a, 3))
    with pytest.raises(ComponentError, match="BadUse: read on channel 'c1': this end is closed"):
        co.run(writes(-c, co.Retired), tasks().retires(+c))


@pytest.mark.parametrize("how", ["retired", "poisoned"])
def test_it_may_catch_an_end(how):  # rules 3.3, 4.1
    a, log = channels(2)

    @co.process
    async def ends(w):
        await w.write(1)
        if how == "poisoned":
            w.poison()

    assert co.run(ends(-a), tasks().ends_as(+a, -log), collect(+log))[2] == [how]


def test_an_exception_has_its_message_and_names():  # rules 7.2, 16.1
    (a,) = channels(1)
    with pytest.raises(
        ComponentError, match="process fails of component tasks: std::runtime_error: it is 7"
    ) as failed:
        co.run(numbers(-a, range(10**6)), tasks().fails(+a, at=7))
    assert (failed.value.process, failed.value.type) == ("fails", "std::runtime_error")


@pytest.mark.parametrize("name", ["tests_what_it_reads", "awaits_what_tests"])
def test_a_coroutine_whose_frame_gxx_12_lays_out_wrongly_is_refused(name):  # rule 16.1
    a, out, is_12 = channels(3)
    wrong = co.run(tasks().gxx_12(-is_12), collect(+is_12))[1] == [1]
    network = numbers(-a, [1]), getattr(tasks(), name)(+a, -out), collect(+out)
    if not wrong:
        assert co.run(*network)[2] == [1]
        return
    why = (
        r"'(tests_what_it_reads|one_if_it_reads_one)' at .*component_tasks\.cpp:\d+ can never run, "
        r"because g\+\+ 12 .*: const auto value = co_await"
    )
    with pytest.raises(ComponentError, match=why):
        co.run(*network)


@pytest.mark.parametrize("kind", ["ints", "either", "patient", "phases"])
def test_it_is_cancelled_where_it_waits(kind):  # rules 6.1, 6.2
    a, b, log = channels(3)
    keeps = [a.writer(), b.writer(), log.reader()]
    f = tasks()
    barrier = co.Barrier(2)
    made = {
        "ints": lambda: f.ints(+a, -log),
        "either": lambda: f.either(+a, +b, -log, 3),
        "patient": lambda: f.patient(+a, -log, 10**7),
        "phases": lambda: f.phases(barrier, -co.Channel("unread", overflow="unbounded"), 3),
    }[kind]()

    @co.process
    async def cancels(process):
        await co.sleep(0)
        process.cancel()

    co.run(made, cancels(made))
    assert made.done
    assert hows([made.result]) == ["<cancelled>"]
    del keeps


def test_a_failure_cancels_hundreds_of_them():  # rules 6.2, 7.3
    cs = channels(301)
    keeps = cs[0].writer()

    @co.process
    async def fails():
        await co.sleep(0)
        raise ValueError("as asked")

    steps = [tasks().ints(+a, -b) for a, b in itertools.pairwise(cs)]
    with pytest.raises(ValueError, match="as asked"):
        co.run(*steps, collect(+cs[-1]), fails())
    assert all(s.done for s in steps)
    keeps.retire()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failure_or_a_limit_in_the_middle_of_it_all(seed):  # rules 6.2, 7.3, 8.5
    """Chains at work, on threads of every backend, are cancelled at a random moment: by a failure,
    by poison, by a limit."""
    choose = random.Random(seed)
    kinds = [co_echo, th_echo, basics().ints, *[tasks().ints] * 4]
    how = choose.choice(["fail", "poison", "limit"])

    @co.process
    async def endless(w):
        k = 0
        while True:
            await w.write(k)
            k += 1

    @co.process
    async def stops(r):
        for _ in range(choose.randint(0, 200)):
            await r.read()
        if how == "fail":
            raise ValueError("as asked")
        r.poison()

    def network():
        cs = [co.Channel(capacity=choose.choice([0, 0, 2])) for _ in range(choose.randint(2, 20))]
        steps = [choose.choice(kinds)(+a, -b) for a, b in itertools.pairwise(cs)]
        return [endless(-cs[0]), *steps, collect(+cs[-1]) if how == "limit" else stops(+cs[-1])]

    @co.process
    async def main():
        async with co.move_on_after(choose.random() / 100):
            await co.Parallel(*network(), *network())
        return "over"

    if how == "limit":
        assert co.run(main()) == "over", f"seed {seed}"
    elif how == "fail":
        with pytest.raises(ValueError, match="as asked"):
            co.run(*network())
    else:
        co.run(*network())


def test_a_time_limit_around_it():  # rules 6.1, 8.5
    a, c = channels(2)
    keeps = a.writer(), c.reader()

    @co.process
    async def main():
        async with co.move_on_after(0.01) as limit:
            await co.Parallel(tasks().ints(+a, -c))
        return limit.expired

    assert co.run(main())
    del keeps


@pytest.mark.parametrize("n", [1, 2, 50])
def test_a_ring_is_a_deadlock_with_its_lines(n):  # rules 10.1, 10.2
    cs = channels(n)
    ring = [tasks().ints(+a, -b) for a, b in zip(cs, [*cs[1:], cs[0]], strict=True)]

    @co.process
    async def other():
        await co.sleep(0)

    with pytest.raises(Deadlock) as found:
        co.run(*ring, other())
    text = str(found.value)
    assert "/ints" in text
    assert "component_tasks.cpp:" in text
    line = next(
        i
        for i, x in enumerate((HERE / "component_tasks.cpp").read_text().splitlines(), 1)
        if "co_await in.next()" in x
    )
    assert f"component_tasks.cpp:{line}" in text
    assert "'c0'" in text


def test_a_deadlock_with_a_python_process():  # rule 10.2
    a, c = channels(2)

    @co.process
    async def waits(r, w):
        await r.read()

    with pytest.raises(Deadlock) as found:
        co.run(tasks().ints(+a, -c), waits(+c, -a))
    assert "/ints" in str(found.value)
    assert "/waits" in str(found.value)


def test_ends_are_let_go_when_it_was_never_run():  # rules 2.3, 6.5
    a, c = channels(2)
    reader = c.reader()
    with pytest.warns(RuntimeWarning, match="process ints was made and never started"):
        made = tasks().ints(+a, -c)
        del made
        gc.collect()

    @co.process
    async def reads(r):
        with pytest.raises(co.Retired):
            await r.read()
        return True

    assert co.run(reads(reader))


# --- where they run -------------------------------------------------------------------------------


def test_it_runs_in_another_os_process_too():  # rules 16.8, 16.10
    """In another OS process the component runs on a thread: its operations block the thread, and
    the coroutine is never suspended."""
    c = co.Channel("c")

    @th.process
    def reads(r):
        return list(r)

    assert th.run(tasks().pid(-c, on="process"), reads(+c))[1][0] != os.getpid()


def test_a_function_is_not_for_the_pool():  # rule 16.10
    a, c = channels(2)
    with pytest.raises(BadUse, match=r"ints\(on='pool'\): it is a function.*component_tasks\.hpp"):
        basics().ints(+a, -c, on="pool")


def test_no_cpu_and_no_other_place():  # rule 16.10
    a, c = channels(2)
    r, w = +a, -c
    with pytest.raises(BadUse, match=r"cpu=0\): on the pool it shares its thread"):
        tasks().ints(r, w, cpu=0)
    with pytest.raises(BadUse, match=r"on='cloud'.*on='thread', on='pool'"):
        tasks().ints(r, w, on="cloud")
    made = tasks().ints(r, w)
    with pytest.raises(BadUse, match="made for the pool: say where it runs when it is made"):
        made.on("processes")
    keep, feed = c.reader(), a.writer()
    feed.retire()
    th.run(made)
    del keep


def test_a_channel_with_ends_in_other_os_processes_is_refused():  # rules 16.7, 16.10
    a, c = co.Channel("a"), co.Channel("c")
    with pytest.raises(ComponentError, match=r"'a'.*other OS processes.*on='thread'"):
        th.run(gives(-a, [1]).on("processes"), tasks().ints(+a, -c), _takes(+c))


@th.process
def _takes(r):
    return list(r)


def test_a_component_of_the_first_edition_has_no_coroutines(tmp_path):  # rules 16.5, 16.10
    out = tmp_path / "first.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", str(HERE / "component_first.c"), "-o", str(out)], check=True
    )
    first = weft.native.load(out)
    a, c = channels(2)
    r, w = +a, -c
    with pytest.raises(BadUse, match=r"doubles\(on='pool'\): it is a function"):
        first.doubles(r, w, on="pool")
    got = co.run(numbers(-a, range(3)), first.doubles(r, w), collect(+c))[2]
    assert got == [0, 2, 4]


REFUSED = {
    "Task<> f(weft::native::Reader<int> in) { co_await sleep(1ns); (void)in; }": "hold up all that share",
    "Task<> f(Reader<int> in) { co_await std::suspend_always{}; (void)in; }": "nothing would resume",
}


@pytest.mark.parametrize("source", REFUSED)
def test_what_would_hold_up_the_pool_does_not_compile(tmp_path, source):  # rule 16.10
    path = tmp_path / "wrong.cpp"
    path.write_text(
        f"""#include <weft/component_tasks.hpp>
using namespace weft::native::tasks;
using namespace std::chrono_literals;
{source}
WEFT_COMPONENT(wrong, "") {{ component.process<&f>("f").argument("in"); }}
"""
    )
    with pytest.raises(BadUse, match=REFUSED[source]):
        weft.native.load(path)


def test_a_finaliser_that_needs_the_pool_while_the_interpreter_ends():  # rule 11.2
    """A thread of the pool would never get the interpreter's lock, and code that waits for that
    thread would never continue.
    """
    program = f"""
import sys
import weft.native
from weft import threads
a, c = threads.Channel(), threads.Channel()
made = weft.native.load({tasks().path!r}).ints(+a, -c)
class Dies:
    def __del__(self, run=threads.run, made=made, out=sys.stdout):
        try:
            run(made)
        except Exception as error:
            out.write(f"{{type(error).__name__}} {{error}}")
        out.flush()
kept = Dies()  # until the interpreter clears its modules
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("BadUse main: process ints: the interpreter is ending ")
