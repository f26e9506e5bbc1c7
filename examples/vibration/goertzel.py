"""The filter in Python: it computes how strong one frequency is in each block of samples.

CPython and MicroPython run this file unchanged (`weft portable goertzel.py`). All numbers are
integers, so every place gives the same results, bit for bit. goertzel.cpp is the same filter.
"""

from weft import process


@process
async def goertzel(samples, powers, size=32, turn=23170):
    """Writes one power for each `size` samples (G. Goertzel, 1958). `turn` is 2 cos(2 pi f / rate)
    in units of 1/2**14: 23170 is 500 Hz at 4,000 samples a second.

    If each sample is below 512 in size, each number here is below 2**30 in size. So a board needs
    no long integers.
    """
    n = s1 = s2 = 0
    async for sample in samples:
        s1, s2 = sample + (turn * s1 >> 14) - s2, s1
        n += 1
        if n == size:
            await powers.write(s1 * s1 + s2 * s2 - (turn * s1 >> 14) * s2)
            n = s1 = s2 = 0
