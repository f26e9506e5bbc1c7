"""Programs at which the page is opened: pipeline, farm, knot, many. Each says "ready"."""

from __future__ import annotations

import sys
import time

from weft.processes import Channel, Hosts, Parallel, process
from weft.threads import Channel as ThreadChannel
from weft.threads import Parallel as ThreadParallel


@process
def source(out):
    n = 0
    while True:
        out.write(n)
        n += 1


@process
def check(inp, out):
    for v in inp:
        time.sleep(0.002)
        out.write(v)


@process
def enrich(inp, out):
    for v in inp:
        time.sleep(0.02)
        out.write(v)


@process
def worker(inp, out, log):
    for v in inp:
        time.sleep(0.04 + v % 7 * 0.002)
        out.write(v)
        if v % 10 == 0:
            log.write(v)


@process
def parse(inp, out):
    for v in inp:
        out.write(v)


@process
def stage(inp, out):
    inner = ThreadChannel("lines")
    ThreadParallel(
        parse.on("threads")(inp, inner.writer()),
        check.on("threads")(inner.reader(), out),
    )


@process
def keeps(inp):
    for n, _ in enumerate(inp):
        if n == 3:
            print("ready", flush=True)


@process
def counts(inp):
    for _ in inp:
        pass


@process
def relay(r, w):
    w.write(r.read())


def pipeline():
    orders, checked, priced = Channel("orders"), Channel("checked", capacity=8), Channel("priced")
    Parallel(
        source.on("threads")(orders.writer()),
        check.on("threads")(orders.reader(), checked.writer()),
        enrich.on("threads")(checked.reader(), priced.writer()),
        keeps.on("threads")(priced.reader()),
    )


def farm(*more):
    jobs, parsed, done, log = (
        Channel("jobs"),
        Channel("parsed", capacity=16),
        Channel("done"),
        Channel("log"),
    )
    with Hosts(2) as hosts:
        Parallel(
            source.on("threads")(jobs.writer()),
            stage.on("threads")(jobs.reader(), parsed.writer()),
            *(
                worker.on("threads")(parsed.reader(), done.writer(), log.writer())
                for _ in range(12)
            ),
            *(
                worker.on(hosts[i % 2])(parsed.reader(), done.writer(), log.writer())
                for i in range(4)
            ),
            counts.on(hosts[1])(log.reader()),
            keeps.on("threads")(done.reader()),
            *more,
        )


def knot():
    ask, answer = Channel("ask"), Channel("answer")
    farm(
        relay.on("threads")(ask.reader(), answer.writer()),
        relay.on("threads")(answer.reader(), ask.writer()),
    )


def many():
    from weft import Channel, process, run, sleep

    @process
    async def spread(outs):
        n = 0
        while True:
            await outs[n % len(outs)].write(n)
            n += 1

    @process
    async def worker(inp, out):
        async for v in inp:
            await sleep(0.5)
            await out.write(v)

    @process
    async def gather(inp):
        n = 0
        async for _ in inp:
            n += 1
            if n == 3:
                print("ready", flush=True)

    ins = [Channel(f"in[{i}]") for i in range(10_000)]
    out = Channel("out")
    run(
        spread([c.writer() for c in ins]),
        *(worker(c.reader(), out.writer()) for c in ins),
        gather(out.reader()),
    )


if __name__ == "__main__":
    {"pipeline": pipeline, "farm": farm, "knot": knot, "many": many}[sys.argv[1]]()
