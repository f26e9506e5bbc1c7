"""A Python process and a C++ one hand an integer there and back. The figure is ns for a rendezvous.
Run this file by on.py.
"""

from pathlib import Path

from sampler import Sampler, fail, numbers

import weft.native
from weft import Channel, process, run


@process
async def main(out, back, samples, per):
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for n in range(per):
            await out.write(n)
            if await back.read() != n + 1:
                fail("native_rendezvous: a wrong value came back")
        if k:
            sampler.end(2 * per)
    sampler.print()


component = weft.native.load(Path(__file__).with_name("native_component.cpp"))
a, b = Channel("a"), Channel("b")
run(main(-a, +b, *numbers("SAMPLES PER")), component.successor(+a, -b))
