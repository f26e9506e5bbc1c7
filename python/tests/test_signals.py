"""Signals that find the main thread about to sleep: none is left lying (SEMANTICS.md, rule 6.7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from children import child, until_asleep

BACKENDS = ["coroutines", "greenlets", "threads"]

# The moment that matters, between the main thread's last look for signals and its sleep, made to happen for certain: a handler written
# in C (so that no bytecode looks for signals after it) raises the next signal, one of a lower number, which the look that is under way
# has passed already. USR2 is seen by the sleeper; its handler raises USR1, seen in the look before the next sleep, whose handler raises
# the last one: that one comes after the look.
CHAIN = """
    import ctypes, functools, os, signal, sys
    import weft
    from weft import Channel, process, run, sleep

    kill = ctypes.CDLL(None).kill
    kill.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.py_object]
    def raises(number):
        return functools.partial(kill, os.getpid(), number)  # called with (number, frame) besides

    signal.signal(signal.SIGUSR2, raises(signal.SIGUSR1))
    signal.signal(signal.SIGUSR1, raises(getattr(signal, sys.argv[1])))
    signal.signal(signal.SIGQUIT, lambda *_: print("quit", flush=True) or os._exit(7))

    @process
    async def main():
        print("ready", flush=True)
        await sleep(1000)
    run(main())
"""


def played(tmp_path: Path, text: str, backend: str, *arguments: str) -> tuple[int, str, str]:
    """The exit status and output of the program, sent SIGUSR2 once it is asleep."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    start = ("-m", "weft.cli", "run", str(path), "--on", backend, *arguments)
    with child(
        *start,
        env={k: v for k, v in os.environ.items() if k != "WEFT_BACKEND"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        until_asleep(running.pid)
        running.send_signal(signal.SIGUSR2)
        out, err = running.communicate()
    return running.returncode, out, err


@pytest.mark.parametrize("backend", BACKENDS)
def test_ctrl_c_between_the_last_look_and_the_sleep(tmp_path: Path, backend: str) -> None:
    status, _, err = played(tmp_path, CHAIN, backend, "SIGINT")
    assert status == 130, err
    assert "weft: stopped by Ctrl-C" in err
    assert "main/main: " in err


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_signal_between_the_last_look_and_the_sleep(tmp_path: Path, backend: str) -> None:
    status, out, err = played(tmp_path, CHAIN, backend, "SIGQUIT")
    assert (status, out) == (7, "quit\n"), err


HANDLERS = """
    import signal
    from weft import process, run

    def mine(number, frame):
        pass

    def now():
        import ctypes
        class Action(ctypes.Structure):
            _fields_ = [("handler", ctypes.c_void_p), ("rest", ctypes.c_char * 256)]
        found = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            action = Action()
            assert ctypes.CDLL(None).sigaction(int(number), None, ctypes.byref(action)) == 0
            found[number] = (signal.getsignal(number), action.handler)
        return found

    signal.signal(signal.SIGTERM, mine)
    before = now()
    own_thread = False

    @process
    async def main():
        global own_thread
        during = now()
        for number in (signal.SIGINT, signal.SIGTERM):
            assert during[number][1] != before[number][1]
        for number in (signal.SIGHUP, signal.SIGUSR1):  # Python has no function for them
            assert during[number] == before[number]
        try:
            signal.signal(signal.SIGUSR1, mine)
        except ValueError:  # main has a thread of its own: weft.threads
            own_thread = True

    run(main())
    after = now()
    expected = dict(before)
    if not own_thread:  # the program's own choice stays
        assert after[signal.SIGUSR1][0] is mine
        expected[signal.SIGUSR1] = after[signal.SIGUSR1]
    assert after == expected, (after, expected)
    print("as before")
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_programs_handlers_are_as_before_when_the_run_has_ended(
    tmp_path: Path, backend: str
) -> None:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(HANDLERS), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli", "run", str(path), "--on", backend],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout) == (0, "as before\n"), done.stderr
