"""The workloads of the thesis on compiled components: one Python process and two C++ ones on
channels. The figure is ns for a pair of messages. Run this file by on.py.

native_thesis WORKLOAD MESSAGES SAMPLES BLOCK [pinned]
"""

import sys
from pathlib import Path

from thesis_work import WORKERS, figures

import weft.native
from weft import Alternative, Channel, process, run

component = weft.native.load(Path(__file__).with_name("native_thesis.cpp"))
workload, messages, samples, block = sys.argv[1], *map(int, sys.argv[2:5])
cpus = list(range(WORKERS)) if "pinned" in sys.argv else [None] * WORKERS


@process
async def main(to, back):
    sums, sent, left = [0] * WORKERS, [0] * WORKERS, WORKERS
    alternative = Alternative(*back)
    while left:
        k, value = await alternative.select()
        sums[k] += value
        if sent[k] == messages:
            to[k].retire()
            left -= 1
        else:
            sent[k] += 1
            await to[k].write(sent[k])
    return sums


@process
async def main_in_blocks(to, back):
    sums, sent, left = [0] * WORKERS, [0] * WORKERS, WORKERS
    alternative = Alternative(*back)
    while left:
        k, values = await alternative.select()
        sums[k] += sum(values)
        if sent[k] == messages:
            to[k].retire()
            left -= 1
        else:
            first = sent[k] + 1
            sent[k] = min(messages, sent[k] + block)
            await to[k].write(list(range(first, sent[k] + 1)))
    return sums


def once():
    to = [Channel(f"to {k}", capacity=1) for k in range(WORKERS)]
    back = [Channel(f"back {k}", capacity=1) for k in range(WORKERS)]
    worker = component.worker if block == 1 else component.worker_in_blocks
    ours = main if block == 1 else main_in_blocks
    workers = [
        worker(+to[k], -back[k], workload, **({} if cpus[k] is None else {"cpu": cpus[k]}))
        for k in range(WORKERS)
    ]
    return run(ours([-c for c in to], [+c for c in back]), *workers)[0]


figures(workload, messages, samples, once)
