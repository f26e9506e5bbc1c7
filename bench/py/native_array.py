"""Sends an array of 8 MB to a C++ process, which sums it in place, and back. The figure is ns for a
thousand items. WHICH: 1 there and back, 2 the sum alone.

The sum alone is the same loop of the same library, over an array that the component itself has
made. Run this file by on.py.
"""

import array
from pathlib import Path

from sampler import Sampler, fail, numbers

import weft.native
from weft import Channel, process, run

ITEMS = 1_000_000


@process
async def there_and_back(out, sums, back, samples):
    sampler = Sampler()
    lent = memoryview(array.array("d", range(ITEMS)))
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        await out.write(lent)
        total = await sums.read()
        view = await back.read()
        if k:
            sampler.end(ITEMS // 1000)
        if total != ITEMS * (ITEMS - 1) / 2 or len(view) != ITEMS:
            fail(f"native_array: the sum was {total}")
        lent = view
    sampler.print()


@process
async def figures(out, samples):
    print("ns", *[f"{await out.read() / ITEMS * 1000:.1f}" for _ in range(samples)], flush=True)


component = weft.native.load(Path(__file__).with_name("native_component.cpp"))
which, samples = numbers("WHICH SAMPLES")
a, b, c = Channel("a"), Channel("b"), Channel("c")
if which == 1:
    run(there_and_back(-a, +b, +c, samples), component.summing(+a, -b, -c))
else:
    run(component.sums_alone(-a, samples, ITEMS), figures(+a, samples))
