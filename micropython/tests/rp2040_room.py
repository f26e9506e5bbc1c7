"""A program for test_rp2040.py: prints the bytes of heap that Weft takes when it is frozen into the
firmware."""

import gc


def used():
    gc.collect()
    return gc.mem_alloc()


at_first = used()
import weft.coroutines  # noqa: E402, F401
from weft.coroutines import Channel, process, run  # noqa: E402, F401

plain = used()
import weft.cores  # noqa: E402, F401

print(plain - at_first, used() - plain)
