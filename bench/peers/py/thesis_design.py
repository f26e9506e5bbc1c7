"""A peer, the thesis's design: a Python main thread, a C++ library that it loads by ctypes and that
starts two threads, and between them ZeroMQ PAIR sockets (ipc) and JSON. The figure is ns for a pair
of messages.

    thesis_design.py WORKLOAD MESSAGES SAMPLES [pinned]
        pinned: each worker on a CPU of its own, as in the thesis
"""

import collections
import ctypes
import hashlib
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonplus
import zmq
from thesis_work import WORKERS, figures

HERE = Path(__file__).resolve()
SOURCE = HERE.parents[1] / "cpp" / "thesis_worker.cpp"
SHARED = HERE.parents[2] / "cpp" / "thesis_work.hpp"
Message = collections.namedtuple("Message", "number")
names = itertools.count()


def library():
    """Returns the library of the workers, compiled if its source has changed."""
    digest = hashlib.sha256(SOURCE.read_bytes() + SHARED.read_bytes()).hexdigest()[:16]
    made = HERE.parents[3] / ".build" / "bench" / f"thesis-{digest}.so"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(f".{os.getpid()}")
        command = [
            "g++",
            "-std=c++20",
            "-O2",
            "-shared",
            "-fPIC",
            "-pthread",
            "-o",
            part,
            SOURCE,
            "-lzmq",
        ]
        subprocess.run(command, check=True)
        part.replace(made)
    loaded = ctypes.CDLL(str(made))
    loaded.start.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int]
    return loaded


def once(workers, folder, workload, messages, pinned):
    context = zmq.Context()
    pairs, poller = [], zmq.Poller()
    for k in range(WORKERS):
        address = f"ipc://{folder}/{next(names)}"
        pair = context.socket(zmq.PAIR)
        pair.bind(address)
        poller.register(pair, zmq.POLLIN)
        pairs.append(pair)
        workers.start(address.encode(), workload.encode(), messages, k if pinned else -1)
    sums, sent, left = [0] * WORKERS, [0] * WORKERS, WORKERS
    while left:
        for pair, _ in poller.poll():
            k = pairs.index(pair)
            sums[k] += jsonplus.loads(pair.recv_string())["value"]
            if sent[k] == messages:
                left -= 1
            else:
                sent[k] += 1
                pair.send_string(jsonplus.dumps(Message(sent[k])))
    workers.join()
    for pair in pairs:
        pair.close()
    context.term()
    return sums


if __name__ == "__main__":
    workload, messages, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    workers = library()
    with tempfile.TemporaryDirectory() as folder:
        figures(
            workload,
            messages,
            samples,
            lambda: once(workers, folder, workload, messages, "pinned" in sys.argv),
        )
