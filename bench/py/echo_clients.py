"""Starts the clients of an echo server in Python: the program BENCH_ECHO_CLIENTS
(bench/cpp/echo_clients.cpp), which measures the CPU time of this OS process.
"""

from __future__ import annotations

import os
import subprocess

from sampler import fail

USAGE = "KIND SAMPLES PER CONNECTIONS"


def start(port: int, samples: int, per: int, connections: int) -> subprocess.Popen[bytes]:
    """Starts the clients, which connect to this port and print the samples."""
    numbers = (samples, per, connections, os.getpid(), port)
    return subprocess.Popen([os.environ["BENCH_ECHO_CLIENTS"], *map(str, numbers)])


def finish(clients: subprocess.Popen[bytes]) -> None:
    """Waits until the clients have ended. Ends the program if they failed."""
    if clients.wait():
        fail("echo: the clients failed")
