"""Runs C++ processes that compute. The figure is ns for each thousand rounds of each process.
WHICH: 1 one process, 2 two processes in a program, 3 two programs with one process each.

Each C++ process is on a CPU of its own, and every result is checked. Run this file by on.py; a
sample is PER thousand rounds of each worker.
"""

import subprocess
import sys
from pathlib import Path

from sampler import Sampler, fail

import weft.native
from weft import Channel, process, run

which, samples, per = map(int, sys.argv[1:4])
cpus = [int(word) for word in sys.argv[4:]] or [
    0,
    1,
]  # a program that another program has started has its own CPU
ROUNDS = 1000 * per


@process
async def main(go, done):
    sampler, results = Sampler(), set()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for w in go:
            await w.write(ROUNDS)
        for r in done:
            results.add(await r.read())
        if k:
            sampler.end(per)
    if len(results) != 1:
        fail(f"native_parallel: the workers came to {results}")
    sampler.print()


@process
async def served(go, done):
    """Runs one of two programs; each line on stdin begins that number of rounds."""
    for line in sys.stdin:
        await go.write(int(line))
        print(await done.read(), flush=True)


@process
async def apart():
    program = [
        sys.executable,
        str(Path(__file__).with_name("on.py")),
        "coroutines",
        "native_parallel",
    ]
    each = [
        subprocess.Popen(
            [*program, "0", "0", "0", str(cpu)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for cpu in cpus
    ]
    sampler, results = Sampler(), set()
    for k in range(samples + 1):
        sampler.begin()
        for p in each:
            print(ROUNDS, file=p.stdin, flush=True)
        for p in each:
            results.add(p.stdout.readline())
        if k:
            sampler.end(per)
    for p in each:
        p.stdin.close()
        p.wait()
    if len(results) != 1 or "" in results:
        fail(f"native_parallel: the programs came to {results}")
    sampler.print()


def workers(n):
    component = weft.native.load(Path(__file__).with_name("native_component.cpp"))
    go, done = [Channel("go") for _ in range(n)], [Channel("done") for _ in range(n)]
    burning = [component.burn(+go[k], -done[k], cpu=cpus[k]) for k in range(n)]
    return [-c for c in go], [+c for c in done], burning


if which == 0:
    go, done, burning = workers(1)
    run(served(go[0], done[0]), *burning)
elif which == 3:
    run(apart())
else:
    go, done, burning = workers(which)
    run(main(go, done), *burning)
