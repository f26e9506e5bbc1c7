"""The messages of the commands about a program that is stopped, dies, or is inspected by other
visitors. The checks are the same for Python programs and C++ programs (rule 14.9).
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from looked_at import refused

from weft import cli
from weft._watching import visit as _visit


def weft_here(*arguments: str) -> tuple[int, str, str]:
    """Runs the command `weft` in this OS process. Returns its status and what it has written."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(arguments)
    return status, out.getvalue(), err.getvalue()


#: the commands that inspect a program
ASKS = (("top", "--once"), ("graph",), ("dump",))
#: the commands that refuse a program without a door; `view` is not in ASKS, because a page waits
#: for a program that does not answer
OPENS = (*ASKS, ("view", "--no-browser"))


def all_say(sentence: str, pid: int, asks: Sequence[tuple[str, ...]] = ASKS) -> None:
    """Checks that each of these commands refuses with this sentence, on one line."""
    for command, *options in asks:
        status, out, err = weft_here(command, *options, str(pid))
        assert (status, out) == (2, "") and err.count("\n") == 1, (command, out, err)
        assert sentence in err, (command, err)


def lists(pid: int) -> str:
    """Returns the line of `weft ps` for this OS process; "" if there is none."""
    status, out, _ = weft_here("ps")
    assert status == 0
    return next((line for line in out.splitlines() if line.split()[0] == str(pid)), "")


def visitors(pid: int) -> int:
    """Returns how many visitors the program serves."""
    return [name for name, _, _ in _visit.threads(pid)].count("weft look")


def one_that_stops(p: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_visit, "PATIENCE", 0.2)
    p.send_signal(signal.SIGSTOP)
    os.waitpid(p.pid, os.WUNTRACED)
    sentence = f"OS process {p.pid} is stopped (by SIGSTOP, or a debugger): kill -CONT {p.pid}"
    all_say(sentence, p.pid)
    assert sentence in lists(p.pid)
    p.send_signal(signal.SIGCONT)
    monkeypatch.setattr(_visit, "PATIENCE", 30.0)
    assert _visit.look(p.pid, 0.02).rows


def one_that_dies(p: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks what two visitors learn who inspect a program when it dies. The program's parent has
    not collected its exit status yet."""
    refusals: list[str] = []

    def looks() -> None:
        with _visit.Looking(p.pid) as looking, pytest.raises(_visit.NoLook) as error:
            looking.look(60)
        refusals.append(str(error.value))

    both = [threading.Thread(target=looks) for _ in range(2)]
    for thread in both:
        thread.start()
    while visitors(p.pid) < 2:
        os.sched_yield()
    p.kill()
    for thread in both:
        thread.join()
    assert refusals == [f"OS process {p.pid} has ended"] * 2
    with monkeypatch.context() as known:  # as if the program had been found before it died
        known.setattr(_visit, "doors", lambda: [p.pid])
        assert lists(p.pid) == ""
    assert _visit.doors() == []
    p.wait()
    all_say(f"there is no OS process {p.pid}: weft ps lists those", p.pid, OPENS)


def many_who_look(p: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the program serves AT_ONCE visitors at the same time. One more visitor is
    refused, and learns the reason."""
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(_visit.Visit(p.pid)) for _ in range(_visit.AT_ONCE)]
        for visit in all_of_them:
            visit.send("look", interval=0.05)
        assert all(visit.receive(60)["processes"] for visit in all_of_them)
        assert visitors(p.pid) == _visit.AT_ONCE
        monkeypatch.setattr(_visit, "PATIENCE", 0.2)
        assert f"OS process {p.pid} is looked at by 8 others already" in refused(p.pid)
    monkeypatch.setattr(_visit, "PATIENCE", 30.0)
    assert _visit.look(p.pid, 0.02).rows and p.poll() is None


def without_a_file(pid: int, home: Path) -> None:
    """Checks that `weft dump` explains how to switch on a recorder, if the program has a socket but
    no recorder."""
    status, _, err = weft_here("dump", str(pid), "-o", str(home / "none"))
    assert status == 2 and "nothing is recorded" in err and err.count("\n") == 1, err
    assert not (home / "none").exists()
