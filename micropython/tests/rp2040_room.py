"""For test_rp2040.py: the heap that Weft takes where it is frozen into the firmware, in bytes."""

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
