"""Tests programs that cannot be inspected, and data that are not a message. The visitor receives
the reason, and the program continues (rule 14.9).
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from children import child, until_asleep, weft
from looked_at import PIPE, looks_until, refused, running
from pages import Events, serving
from refusals import (
    OPENS,
    all_say,
    lists,
    many_who_look,
    one_that_dies,
    one_that_stops,
    without_a_file,
)

from weft._watching import look as _look
from weft._watching import visit as _visit
from weft._watching.look_frames import ANSWER, REQUEST, BadMessage, Reader, message

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")


def test_programs_that_are_none(home: Path, tmp_path: Path) -> None:
    with child("-c", "import time; print('ready', flush=True); time.sleep(100)") as p:
        assert p.stdout is not None and p.stdout.readline()
        all_say("is not a Weft program, has not begun its first run, or is at", p.pid, OPENS)
        assert lists(p.pid) == ""
    all_say("there is no OS process 99999999", 99999999, OPENS)
    for word, expected in (
        ("99999999", "there is no OS process 99999999"),
        (
            "noprogram",
            "'noprogram' is neither the number of an OS process nor a part of the command line",
        ),
    ):
        done = weft("top", word, "--once")
        assert done.returncode == 2 and expected in done.stderr and done.stderr.count("\n") == 1
    assert "no Weft program of this user runs" in weft("top").stderr
    assert "--sort bussy: it must be one of" in weft("top", "--sort", "bussy").stderr
    assert "--interval 0: it must be more than 0" in weft("top", "--interval", "0").stderr
    assert "--most 0: it must be 1 or more" in weft("top", "--most", "0").stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be somebody else")
def test_another_users(home: Path, tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "100"], preexec_fn=lambda: os.setuid(65534)) as p:
        try:
            all_say("is another user's (uid 65534): only that user can look at it", p.pid, OPENS)
        finally:
            p.kill()


def test_one_that_is_stopped(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, PIPE) as p:
        one_that_stops(p, monkeypatch)


def test_one_that_dies_while_it_is_looked_at(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, PIPE) as p:
        one_that_dies(p, monkeypatch)


def test_many_who_look_at_once(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, PIPE) as p:
        many_who_look(p, monkeypatch)
        without_a_file(p.pid, home)


def test_c_code_that_keeps_the_lock(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 14.9: the program does not answer, and the visitor receives the reason."""
    text = """
        import ctypes
        from weft import process, run

        @process
        def keeps():
            print("ready", flush=True)
            ctypes.PyDLL(None).sleep(30)

        run(keeps())
    """
    monkeypatch.setattr(_visit, "PATIENCE", 0.5)
    with running(tmp_path, text, "--on", "threads") as p:
        until_asleep(p.pid)  # the program is now in the C code
        output = refused(p.pid)
        monkeypatch.setattr("os.getloadavg", lambda: (1000.0, 0.0, 0.0))
        on_a_busy_machine = refused(p.pid)
    assert "code that does not let go of the interpreter's lock" in output
    assert "or the machine is too busy (load 1000," in on_a_busy_machine


class Fake:
    """A socket in the place of a program's door. It sends one message to each visitor."""

    def __init__(self, home: Path, answer: bytes) -> None:
        (home / "weft").mkdir(mode=0o700, exist_ok=True)
        self.listens = socket.socket(socket.AF_UNIX)
        self.listens.bind(str(home / "weft" / f"{os.getpid()}.sock"))
        self.listens.listen()
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listens.accept()
                s.recv(REQUEST)
                s.sendall(self.answer)
                s.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (struct.pack("!I", 10) + b'{"weft":2}', "a message of version 2 of the protocol"),
        (struct.pack("!I", 0xFFFFFFFF), "a message of 4294967295 bytes; at most"),
        (struct.pack("!I", 3) + b"abc", "a message that is not JSON"),
        (b"", "does not say anything more: ask again"),
        (message({"error": "no"}), "says: no"),
        (
            message({"error": 'the question must be "who" or "look"'}),
            "has an older version of Weft, which does not know this question",
        ),
    ],
)
def test_answers_that_are_none(home: Path, answer: bytes, expected: str) -> None:
    fake = Fake(home, answer)
    all_say(expected, os.getpid())
    assert expected in lists(os.getpid())
    fake.listens.shutdown(socket.SHUT_RDWR)
    fake.listens.close()


@pytest.mark.parametrize(
    "answer",
    [
        {"version": "0.0.1", "processes": []},
        {"version": "0.0.1", "processes": [{"id": 1}], "calls": {}, "away": {}, "channels": {}},
        {"version": "0.0.1", "processes": 7, "calls": [], "away": {}, "channels": {}},
    ],
)
def test_an_answer_of_another_version(home: Path, answer: dict[str, Any]) -> None:
    """The answer follows the protocol, but lacks fields that this version shows."""
    fake = Fake(home, message({"weft": 1, "program": ["x"], "seconds": 1.0, **answer}))
    expected = f"OS process {os.getpid()} answers in a form that this weft does not know (its Weft is 0.0.1)"
    assert expected in refused(os.getpid()) and expected in lists(os.getpid())
    with _visit.Looking(os.getpid()) as looking, pytest.raises(_visit.NoLook, match=r"0\.0\.1"):
        looking.stuck()
    with serving(os.getpid()) as server:
        events = Events(server)
        assert expected in events.until("silent")["text"]
        events.close()
    fake.listens.shutdown(socket.SHUT_RDWR)
    fake.listens.close()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"ask": "what"}, 'the question must be "who", "look", "stuck" or "flight"'),
        ({"ask": "look", "interval": -1}, "the interval must be from 0 to 60 s"),
        ({"ask": "look", "interval": 1e999}, "the interval must be from 0 to 60 s"),
        ({"ask": "look", "interval": True}, "the interval must be from 0 to 60 s"),
        ({"ask": "look", "interval": 0, "most": "x"}, "the number of processes must be 0 or more"),
        ({}, 'the question must be "who", "look", "stuck" or "flight"'),
    ],
)
def test_requests_that_are_none(request_: dict[str, Any], message: str) -> None:
    assert _look._answer(_look.Look(), request_) == {"error": message}


def test_the_parser_takes_anything() -> None:
    """Rule 14.9: all data are accepted as a message, or refused with a sentence."""
    rng = random.Random(41)
    whole = message({"ask": "look", "interval": 0.1}) * 3
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            data = bytearray(rng.randbytes(rng.randrange(200)))
        reader, found = Reader(REQUEST), []
        try:
            while data:
                n = rng.randrange(1, 40)
                found += reader.feed(bytes(data[:n]))
                del data[:n]
        except BadMessage as error:
            assert len(str(error)) < 200
        assert all(type(m) is dict and m["weft"] == 1 for m in found)
        assert len(reader._data) <= REQUEST + 40
    deep = b'{"weft":1,"x":' + b"[" * 4000
    with pytest.raises(BadMessage):
        Reader(REQUEST).feed(struct.pack("!I", len(deep)) + deep)
    assert Reader(ANSWER).feed(message({"a": 1})) == [{"weft": 1, "a": 1}]


def test_a_program_goes_on_whatever_comes(home: Path, tmp_path: Path) -> None:
    """Rule 14.9: the program continues, whatever a visitor sends."""
    rng = random.Random(4)
    with running(tmp_path, PIPE) as p:
        at = str(home / "weft" / f"{p.pid}.sock")
        for n in range(30):
            with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
                s.settimeout(5)
                s.connect(at)
                s.sendall(rng.randbytes(rng.randrange(1, 2000)) if n % 3 else message({"ask": n}))
                if n % 2:
                    s.shutdown(socket.SHUT_WR)
                    s.recv(4096)
        names = ("main/enrich",)
        network = looks_until(lambda network: network.verdict.names == names, p.pid, 0.2)
        assert p.poll() is None and network.verdict.names == names
