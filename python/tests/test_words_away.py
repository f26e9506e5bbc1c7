"""Tests that errors about OS processes name the fault and the remedy (rules 9.1, 9.3, 11.1)."""

from __future__ import annotations

import io
import logging
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from test_processes import nobody_is_left, program  # noqa: F401

from weft._hosts import child as _child
from weft._hosts import log_records as _log_records
from weft._hosts import pickling as _pickling


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def generator() -> Any:
    yield 1


REMEDIES = {
    "generator": (generator, "write its values to a channel one by one"),
    "generator within": (lambda: [Box(generator())], "write its values to a channel one by one"),
    "lock": (threading.Lock, "would guard nothing there: .* by channels; to meet, use a Barrier"),
    "condition": (threading.Condition, "would guard nothing there"),
    "event": (lambda: {"e": threading.Event()}, "would guard nothing there"),
    "file": (lambda: io.TextIOWrapper(io.FileIO(__file__)), "send its name, and open it there"),
    "raw file": (lambda: io.FileIO(__file__), "send its name, and open it there"),
    "connection": (lambda: sqlite3.connect(":memory:"), "connect in the other OS process"),
    "module": (lambda: sys, "import it there"),
    "function": (lambda: lambda: 1, "top level of a module, or install cloudpickle"),
}


@pytest.mark.parametrize("kind", REMEDIES)
def test_what_cannot_be_pickled_comes_with_its_remedy(kind: str) -> None:  # rule 9.1
    make, remedy = REMEDIES[kind]
    value = make()
    with pytest.raises(_pickling.BadUse, match=f"cannot go to another OS process.*{remedy}"):
        raise _pickling.why_not("write on channel 'c'", value) or AssertionError
    getattr(value, "close", int)()


def test_a_log_record_that_is_cut_says_so(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[dict[str, Any]] = []

    def send(fields: dict[str, Any]) -> bool:
        if any(isinstance(v, str) and len(v) > 2 * _log_records.LONG for v in fields.values()):
            return False
        sent.append(fields)
        return True

    root, level, disabled = logging.root.handlers[:], logging.root.level, logging.root.disabled
    named = {n: (k, k.handlers[:]) for n, k in logging.root.manager.loggerDict.items()
             if isinstance(k, logging.Logger)}  # fmt: skip
    try:
        _log_records.begin(send, {"root": 30, "disable": 0, "named": {}})
        logging.getLogger("long").warning("x" * 3_000_000)
        logging.getLogger("short").warning("y")
    finally:
        logging.root.handlers[:], logging.root.disabled = root, disabled
        logging.root.setLevel(level)
        for logger, handlers in named.values():
            logger.handlers[:] = handlers
    assert sent[0]["msg"].startswith("x" * _log_records.LONG + "…")
    assert sent[0]["msg"].endswith("(3,000,000 characters: an OS process sends 30,000 of them)")
    assert sent[1]["msg"] == "y"


@pytest.mark.parametrize("refuses", [1, 2])
@pytest.mark.parametrize("failed", [False, True])
def test_how_a_call_ended_is_always_told(refuses: int, failed: bool) -> None:
    """Rule 9.3: the caller learns how a call ended even if the failure itself cannot be sent. In an
    earlier version the error said that the OS process had died.
    """
    log: list[tuple[Any, Any]] = []

    def write(value: Any, failure: Any) -> None:
        nonlocal refuses
        if refuses:
            refuses -= 1
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        log.append((value, failure))

    failure = _pickling.Failure(ValueError("its own words \ud800")) if failed else None
    left = refuses
    _child.answer(write, None if failed else "a result", failure)
    assert len(log) == 1 and log[0][0] is None
    error = log[0][1].exception()
    message = str(error)
    message.encode("ascii")
    if failed:
        assert "its own words \\ud800 (the exception itself could not be sent" in message
    else:
        assert "surrogates not allowed" in message
    assert left >= 1


def test_a_channel_of_a_module_is_one_in_each_os_process(tmp_path: Path) -> None:  # rule 10.2
    result = program(
        tmp_path,
        """
        from weft.processes import Channel, process, run
        c = Channel("c")

        @process
        def src():
            c.writer().write(1)

        @process
        def dst():
            return list(c.reader())

        if __name__ == "__main__":
            run(src(), dst())
        """,
    )
    assert "each OS process that imports a module has its own channels" in result.stderr
    assert "'c' here. Give their ends to the processes, as arguments" in result.stderr


FULL = """
import os, resource, sys
from weft.processes import *
import weft.threads as T

keep = []

def fills():
    # leaves no descriptor in this OS process
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    try:
        while True:
            keep.append(os.open("/dev/null", 0))
    except OSError:
        pass

def gives(out):
    import array
    out.write("first")
    d = Channel("d")
    end = d.writer()
    out.write(d.reader())
    end.write(1)

def takes(inp):
    inp.read()
    fills()
    inp.read().read()

if __name__ == "__main__":
    c = Channel("c")
    here, there = T.process, process
    kinds = (there, there) if sys.argv[1] == "another" else (there, here)
    try:
        run(kinds[0](gives)(c.writer()), kinds[1](takes)(c.reader()))
    except BaseException as error:
        for one in getattr(error, "exceptions", [error]):
            print(one)
"""


@pytest.mark.parametrize("where", ["another"])
def test_that_descriptors_have_run_out_is_told_with_what_to_do(where: str, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    result = program(tmp_path, FULL, str(tmp_path / "program.py"), where)
    assert "No descriptor is left in it" in result.stdout, result.stdout + result.stderr
    assert "raise the limit (`ulimit -n`" in result.stdout
