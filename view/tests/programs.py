"""Programs at which the page is opened: pipeline, farm, knot, many, hosts. Each prints "ready"."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

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


def hosts():
    """Runs a network with a channel between two of its hosts, and a third host that runs nothing.
    Prints where the server and the keys are. "leave" on stdin ends the second host; the end of
    stdin ends all.
    """
    here = Path(__file__).resolve().parent
    os.environ["WEFT_NATS_SERVER"] = str(here.parent.parent / ".build/net/bin/nats-server")
    import programs  # the hosts find the functions in the module of this name

    from weft import net
    from weft._net.server import Server

    agents = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        keys = net.make_keys(Path(folder, "keys"))
        net.make_keys(Path(folder, "server"), by=keys)
        server = opened.enter_context(Server(Path(folder, "server"), "127.0.0.1:0"))
        words = ["host", "--join", server.url, "--keys", str(keys), "--hosts", "2", "--json"]
        for function in ("stage", "enrich"):
            words += ["--allow", f"programs:{function}"]
        for name in ("gpu1", "gpu2", "idle"):
            agents[name] = subprocess.Popen(
                [sys.executable, "-m", "weft.cli", *words, "--name", name],
                cwd=here,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
            opened.callback(agents[name].wait)
            opened.callback(agents[name].terminate)
            agents[name].stdout.readline()
        network = opened.enter_context(net.join(server.url, keys=keys, name="program"))
        lines, checked, priced = (
            Channel("orders"),
            Channel("checked", capacity=8),
            Channel("priced"),
        )

        def runs():
            with contextlib.suppress(BaseException):  # the second host leaves the network
                Parallel(
                    source.on("threads")(lines.writer()),
                    programs.stage.on(network.host("gpu1"))(lines.reader(), checked.writer()),
                    programs.enrich.on(network.host("gpu2"))(checked.reader(), priced.writer()),
                    counts.on("threads")(priced.reader()),
                )

        threading.Thread(target=runs, daemon=True).start()
        print(f"ready {server.url} {keys}", flush=True)
        for line in sys.stdin:
            if line.strip() == "leave":
                agents["gpu2"].terminate()


if __name__ == "__main__":
    kinds = {"pipeline": pipeline, "farm": farm, "knot": knot, "many": many, "hosts": hosts}
    kinds[sys.argv[1]]()
