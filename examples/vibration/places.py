"""The places where the filter may run. Each place is a context manager; the place is ready within
its block.

    with PLACES["python", "process"]() as at:
        run(at.sensor(samples.writer(), 8), at.filter(samples.reader(), powers.writer()), …)

A place starts the programs that it needs (a server and an agent, or the emulator), and ends them
when the block ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cellar
from accelerometer import accelerometer
from goertzel import goertzel

import weft.native
from weft import boards, net
from weft.errors import BadUse

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SERVER = ROOT / ".build/net/bin/nats-server"  # from `./run setup net`


class Place(NamedTuple):
    filter: Callable[..., Any]  #: takes two ends; returns a process
    sensor: Callable[..., Any] = accelerometer


# --- the filter in Python -------------------------------------------------------------------------


@contextlib.contextmanager
def python_here():
    yield Place(goertzel)


@contextlib.contextmanager
def python_process():
    yield Place(goertzel.on("processes"))


@contextlib.contextmanager
def python_host():
    with loopback() as network:
        yield Place(goertzel.on(network.host("cellar")))


@contextlib.contextmanager
def python_board():
    with boards.emulated("rp2040") as board:
        yield Place(goertzel.on(board))


@contextlib.contextmanager
def python_device():
    with boards.emulated("rp2040") as board:
        yield Place(goertzel.on(board), accelerometer.on(board))


# --- the filter in C++ ----------------------------------------------------------------------------


def component():
    return weft.native.load(HERE / "goertzel.cpp").goertzel


@contextlib.contextmanager
def cpp_here():
    yield Place(component())


@contextlib.contextmanager
def cpp_process():
    yield Place(component().on("process"))


@contextlib.contextmanager
def cpp_host():
    with loopback() as network:
        yield Place(cellar.goertzel.on(network.host("cellar")))


@contextlib.contextmanager
def cpp_board():
    with boards.bare() as board:
        yield Place(component().on(board))


@contextlib.contextmanager
def cpp_device():
    sensor = weft.native.load(HERE / "accelerometer.cpp").accelerometer
    with boards.bare() as board:
        yield Place(component().on(board), sensor.on(board))


PLACES = {
    ("python", "here"): python_here,
    ("python", "process"): python_process,
    ("python", "host"): python_host,
    ("python", "board"): python_board,
    ("python", "device"): python_device,
    ("cpp", "here"): cpp_here,
    ("cpp", "process"): cpp_process,
    ("cpp", "host"): cpp_host,
    ("cpp", "board"): cpp_board,
    ("cpp", "device"): cpp_device,
}


# --- what the places need -------------------------------------------------------------------------


@contextlib.contextmanager
def loopback():
    """Starts a network on this machine alone, with the host "cellar", and joins the network. With
    two machines a user starts the two commands on those machines (python/docs/network.md), and this
    program only calls `net.join(URL)`.
    """
    with tempfile.TemporaryDirectory() as keys, contextlib.ExitStack() as stack:
        up = ["net", "up", "--address", "127.0.0.1:0"]
        url = stack.enter_context(service(keys, *up))["server"]
        host = ["host", "--join", url, "--name", "cellar", "--hosts", "1"]
        host += ["--allow", "goertzel:goertzel", "--allow", "cellar:goertzel"]
        stack.enter_context(service(keys, *host))
        yield stack.enter_context(net.join(url, keys=keys, name="monitor"))


@contextlib.contextmanager
def service(keys, *command):
    """Runs a command of `weft` until the block ends. Yields the JSON that it prints when ready."""
    weft = [sys.executable, "-m", "weft.cli", *command, "--keys", keys, "--json"]
    environment = {**({"WEFT_NATS_SERVER": str(SERVER)} if SERVER.exists() else {}), **os.environ}
    with subprocess.Popen(
        weft, cwd=HERE, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as it:
        try:
            if not (line := it.stdout.readline()):
                raise BadUse(f"weft {' '.join(command[:2])}: {it.stderr.read().strip()}")
            yield json.loads(line)
        finally:
            it.terminate()
