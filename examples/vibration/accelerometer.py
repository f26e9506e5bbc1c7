"""An accelerometer that computes its samples.

CPython and MicroPython run this file unchanged (`weft portable accelerometer.py`).
"""

from weft import process

SIZE = 32  # samples in a block
TONE = (0, 181, 256, 181, 0, -181, -256, -181)  # the bearing: 500 Hz at 4,000 samples a second
HUM = (0, 100, 0, -100)  # the motor: 1,000 Hz


def readings(blocks):
    """Yields the samples of so many blocks: the tone of a bearing, which is louder in some blocks,
    the hum of the motor, and noise. Each sample is below 512 in size. The samples are the same on
    every run and at every place.
    """
    noise = 1
    for i in range(blocks * SIZE):
        noise = (noise * 171 + 11213) % 53125
        worn = (i // SIZE) ** 2 % 7  # 0, 1, 2 or 4
        yield (TONE[i % 8] * worn >> 2) + HUM[i % 4] + noise % 65 - 32


@process
async def accelerometer(samples, blocks):
    """Writes samples as fast as the reader takes them."""
    for sample in readings(blocks):
        await samples.write(sample)
