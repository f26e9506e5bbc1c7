"""What the child of a fork keeps of its parent's threads and links: nothing (rules 10.3, 11.2)."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

import weft.threads as th
from weft import _own_threads
from weft._extension import native
from weft.processes import Channel, Deadlock, Parallel

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def child_says(what: Callable[[], str]) -> str:
    there, here = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(here, what().encode())
        except BaseException as error:
            os.write(here, repr(error).encode())
        finally:
            os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said


def wait_for_each_other() -> str:
    a, b = Channel("a"), Channel("b")

    @th.process
    def reads(inp: Any, out: Any) -> None:
        out.write(inp.read())

    try:
        Parallel(reads(a.reader(), b.writer()), reads(b.reader(), a.writer()))
    except Deadlock:
        return "Deadlock"
    return "no deadlock"


def test_a_thread_that_helped_the_parent_helps_nobody() -> None:
    """Its thread state is gone: a stranger may get the same memory."""
    began, stop = threading.Event(), threading.Event()

    def helps() -> None:
        _own_threads.helps()
        began.set()
        stop.wait()

    thread = threading.Thread(target=helps)
    thread.start()
    began.wait()
    try:
        assert native._helpers() > 0
        assert child_says(lambda: str(native._helpers())) == "0"
    finally:
        stop.set()
        thread.join()


def test_what_may_wake_the_parent_from_outside_does_not_wake_the_child() -> None:
    """So there a deadlock is told: of a name that is offered, and of a session (WIRE.md 17.16)."""
    ours, theirs = socket.socketpair()
    native._outside(True)
    link = native._Link(ours.detach(), "python")
    try:
        assert child_says(wait_for_each_other) == "Deadlock"
    finally:
        link.close()
        theirs.close()
        native._outside(False)
    assert child_says(wait_for_each_other) == "Deadlock"
