"""Sends integers from a C++ process to a Python one, in blocks of SIZE. The figure is ns for an
item. Run this file by on.py; a sample is PER items, rounded up to whole blocks.
"""

from pathlib import Path

from sampler import Sampler, fail, numbers

import weft.native
from weft import Channel, process, run


@process
async def main(blocks, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        n = 0
        while n < per:
            block = await blocks.read()
            if block[0] != expected or block[-1] != expected + len(block) - 1:
                fail(f"native_blocks: {block[0]} to {block[-1]} came, expected {expected}")
            expected += len(block)
            n += len(block)
        if k:
            sampler.end(n)
    sampler.print()
    blocks.retire()


component = weft.native.load(Path(__file__).with_name("native_component.cpp"))
samples, per, size = numbers("SAMPLES PER SIZE")
a = Channel("a")
run(main(+a, samples, per), component.blocks(-a, (samples + 2) * per // size + samples, size))
