"""A process of weft.processes behaves in its OS process as it would in this one: options, output,
forks (rule 15.1). Each test starts an interpreter."""

from __future__ import annotations

import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
import zipapp
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest
from children import child, until_asleep
from test_processes import TIMEOUT, program

import weft
import weft.threads as th
from weft._distributed_deadlock import rounds as _rounds
from weft._hosts import child_output as _child_output
from weft.processes import Cancelled, Channel, Parallel, ProcessDied, run


@pytest.mark.parametrize(
    "options",
    [("-W", "error::UserWarning"), ("-X", "weft=1", "-X", "faulthandler"), ("-O", "-W", "ignore")],
    ids=" ".join,
)
def test_options_of_the_interpreter_go_with_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    text = """
        import sys
        from weft.processes import process, run

        @process
        def told():
            return sys.warnoptions, sys._xoptions, sys.flags.optimize, sys.argv, sys.path

        mine = sys.warnoptions, sys._xoptions, sys.flags.optimize, sys.argv, sys.path
        there = run(told())
        assert there == mine, (there, mine)
        print(mine[:3])
    """
    path = tmp_path / "program.py"
    done = program(tmp_path, text, *options, str(path), "an argument")
    assert done.returncode == 0, done.stderr
    assert done.stdout != "([], {}, 0)\n"


SQUARES = """
from weft.processes import Channel, Parallel, process

@process
def numbers(out):
    for i in range(4):
        out.write(i)

@process
def total(inp):
    return sum(inp)

def main():
    c = Channel()
    print(Parallel(numbers(c.writer()), total(c.reader()))[1])

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("option", ["-I", "-E"])
def test_it_finds_weft_as_the_program_did(tmp_path: Path, option: str) -> None:
    """The process finds Weft where the program does; an isolated Python does not read
    PYTHONPATH."""
    site = str(Path(weft.__file__).parent.parent)
    finds = f"import sys\nsys.path.append({site!r})\n"
    path = tmp_path / "program.py"
    base = sys._base_executable  # type: ignore[attr-defined]  # this Python has no weft
    path.write_text(finds + SQUARES, encoding="utf-8")
    done = subprocess.run(
        [base, option, "-s", str(path)], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.parametrize("alone", [True, False])
def test_a_program_in_an_archive(tmp_path: Path, alone: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    main = SQUARES if alone else 'import squares\nif __name__ == "__main__":\n    squares.main()\n'
    (folder / "__main__.py").write_text(main, encoding="utf-8")
    (folder / "squares.py").write_text(SQUARES, encoding="utf-8")
    zipapp.create_archive(folder, tmp_path / "program.pyz")
    done = program(tmp_path, "", str(tmp_path / "program.pyz"))
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="a file needs a folder here")
def test_it_needs_no_folder_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "there is none"))
    assert run(targets.who()) != os.getpid()


def test_what_it_says_comes_out_here(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.warns(UserWarning, match="warned"):
        run(targets.says())
    out, err = capfd.readouterr()
    assert out == "printed\nwritten\n"
    assert "complained" in err and "logged" in caplog.text


@th.process
def drops(inp: Any) -> None:
    for _ in inp:
        pass


def test_logging_and_warnings_are_the_parents(caplog: pytest.LogCaptureFixture) -> None:
    """Records follow the parent's levels and handlers; a record is sent even if it contains an
    object that cannot be pickled, or is very long.
    """
    c = Channel("c")
    with (
        caplog.at_level(logging.INFO, "of.the"),
        pytest.warns(targets.Wrong, match="of its own") as w,
    ):
        Parallel(targets.logs_and_warns(c.writer()), drops(c.reader()))
    assert len(w) == 1 and w[0].filename == targets.__file__
    records = [r for r in caplog.records if r.name == "of.the.child"]
    assert [r.levelname for r in records] == ["INFO", "ERROR", "WARNING"]
    assert records[0].getMessage() == "count 3 of five" and records[0].process != os.getpid()
    assert "ValueError: on purpose" in (records[1].exc_text or "")
    assert 1000 < len(records[2].getMessage()) <= 1_000_000


def test_a_warning_that_is_an_error_in_the_parent_alone_is_shown() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        run(targets.says())
    assert [str(w.message) for w in seen] == ["warned"]


@pytest.mark.parametrize("how", ["abort", "kill"])
def test_the_last_that_one_said_which_died(how: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProcessDied) as caught:
        run(targets.complains_then_dies(how))
    error = caught.value
    assert "complaint 29\nfrom C: not a text: \ufffd" in error.stderr
    assert len(error.stderr.splitlines()) == 12 and error.stderr in str(error)
    assert ("in complains_then_dies" in error.stack) == (how == "abort")
    assert pickle.loads(pickle.dumps(error)).stderr == error.stderr
    assert "complaint 0\n" in capfd.readouterr().err


def test_a_program_that_it_leaves_behind_is_heard(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    go = tmp_path / "go"
    run(targets.leaves_a_program(str(go)))
    assert "still here" not in capfd.readouterr().err
    go.touch()
    err = ""
    while "still here" not in err:
        err += capfd.readouterr().err


def test_a_fork_in_the_middle() -> None:
    """The child of the fork takes no part in the network. The process continues, and its ends
    belong only to it."""
    c = Channel("c")
    (status, pid), got = Parallel(targets.forks(c.writer()), targets.total(c.reader()))
    assert os.waitstatus_to_exitcode(status) == 7
    assert pid != os.getpid() and got == 3


def test_a_fork_that_is_killed_in_the_middle_ends_nobody_elses_channels() -> None:
    c = Channel("c")
    (status, _), got = Parallel(targets.forks(c.writer(), kill=True), targets.total(c.reader()))
    assert os.waitstatus_to_exitcode(status) == -9
    assert got == 3


@pytest.mark.parametrize("code", [0, 4, "a text", None])
def test_sys_exit_arrives_with_its_code(code: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        run(targets.leaves(code))
    assert caught.value.code == code


# --- breakpoint() ---------------------------------------------------------------------------------

STOPS = """
    from weft.processes import process, run

    @process
    def there(n):
        breakpoint()
        return n

    if __name__ == "__main__":
        print("result", run(there(5)))
    """


def test_breakpoint_asks_at_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(STOPS), encoding="utf-8")
    at_a_terminal = "import pty, sys; sys.exit(pty.spawn([sys.executable, 'program.py']))"
    done = subprocess.run(
        [sys.executable, "-c", at_a_terminal],
        input="p 'it is', n + 37\nn = 6\ncontinue\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=tmp_path,
        check=False,
    )
    assert "('it is', 42)" in done.stdout, done.stdout + done.stderr
    assert "result" in done.stdout and done.returncode == 0, done.stdout


LETS_GO = """
    from weft.processes import Hosts, Parallel, process

    @process
    def there(n):
        return n

    if __name__ == "__main__":
        with Hosts(1) as hosts:
            print("result", Parallel(there.on(hosts)(5), there(6)))
    """


def test_a_program_ends_without_a_warning(tmp_path: Path) -> None:
    """Checks that no warning about an unclosed socket is given, as `-X dev` would give it."""
    done = program(tmp_path, LETS_GO, env={**os.environ, "PYTHONDEVMODE": "1"})
    assert "result [5, 6]" in done.stdout
    assert "ResourceWarning" not in done.stderr, done.stderr
    assert done.returncode == 0


def test_breakpoint_without_a_terminal_says_so(tmp_path: Path) -> None:
    done = program(tmp_path, STOPS, start_new_session=True)
    assert done.returncode == 1
    assert "BadUse: breakpoint() in an OS process needs a terminal" in done.stderr


def test_breakpoint_obeys_its_variable(tmp_path: Path) -> None:
    done = program(
        tmp_path, STOPS, start_new_session=True, env={**os.environ, "PYTHONBREAKPOINT": "0"}
    )
    assert (done.returncode, done.stdout) == (0, "result 5\n"), done.stderr


# --- Ctrl-C (rule 6.7) ----------------------------------------------------------------------------

WAITS = """
    import os, signal, sys
    from weft._distributed_deadlock import rounds
    from weft.processes import Channel, Parallel, process
    import weft.threads as th

    if "stop" not in sys.argv:  # here and there: a slow machine may take long over an answer
        rounds.PATIENCE = 280.0

    @process
    def waits(ready, inp):
        ready.write(os.getpid())
        if "stop" in sys.argv:
            os.kill(os.getpid(), signal.SIGSTOP)
        inp.read()

    @process
    def deeper(ready, inp):
        Parallel(waits(ready, inp))

    @th.process
    def tells(inp):
        for pid in inp:
            print(pid, flush=True)

    if __name__ == "__main__":
        ready, silent = Channel("ready"), Channel("silent")
        kept = silent.writer()
        first = deeper if "deep" in sys.argv else waits
        those = [first(ready.writer(), silent.reader()) for _ in range(1 + ("two" in sys.argv))]
        Parallel(those, tells(ready.reader()))
    """


@pytest.mark.parametrize("how", ["one", "two", "deep", "stop"])
def test_ctrl_c_says_where_everybody_is(tmp_path: Path, how: str) -> None:
    """The report also names the processes in other OS processes, at any depth, each once and by its
    path in the whole network. The report says whether an OS process is stopped, and names no file
    of Weft's."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(WAITS), encoding="utf-8")
    with child(
        str(path),
        how,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as p:
        assert p.stdout is not None and p.stderr is not None
        pids = [int(p.stdout.readline()) for _ in range(1 + (how == "two"))]
        pid = pids[0]
        if how == "stop":
            until_stopped(pid)
        else:
            for one in pids:
                until_asleep(one)
        p.send_signal(signal.SIGINT)
        err = ""
        if how == "stop":
            while "does not say" not in err:
                err += p.stderr.readline()
            os.kill(pid, signal.SIGCONT)
        err += p.communicate()[1]
    assert "KeyboardInterrupt" in err and p.returncode != 0
    lines = err.partition("the processes were:\n")[2].partition("Traceback")[0].splitlines()
    found = dict(line.strip().split(": ", 1) for line in lines)
    assert len(found) == len(lines), err
    tells = found.pop("main/tells")
    # The process has reported, but may not have reached its next read yet.
    assert tells.startswith(("read 'ready' at program.py:", "running at program.py:")), err
    there = [f"read 'silent' at program.py:15 in OS process {one}" for one in pids]
    if how == "stop":
        assert found == {"main/waits": f"OS process {pid} does not say where it is"}, err
    elif how == "two":
        assert found.keys() == {"main/waits[0]", "main/waits[1]"}, err
        assert sorted(found.values()) == sorted(there), err
    elif how == "deep":
        assert found.pop("main/deeper/waits") == there[0], err
        assert found["main/deeper"].startswith("waits for its processes at "), err
    else:
        assert found == {"main/waits": there[0]}, err


def until_stopped(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "Tt":
        os.sched_yield()


# --- handlers (rule 12.1) -------------------------------------------------------------------------


class Handles(logging.Handler):
    """Calls a function for each record of "told", in place of the thread that handles the other
    records.
    """

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def emit(self, record: logging.LogRecord) -> None:
        self.function(record.getMessage())

    def __enter__(self) -> Handles:
        logging.getLogger("told").addHandler(self)
        logging.getLogger("told").propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("told").removeHandler(self)
        logging.getLogger("told").propagate = True


def told(child_output: _child_output.ChildOutput, *texts: str) -> None:
    for text in texts:
        record = {"name": "told", "msg": text, "levelno": 40, "levelname": "ERROR"}
        child_output._records_of_child.send(pickle.dumps(("record", record, "")))


@pytest.fixture
def child_output() -> Iterator[_child_output.ChildOutput]:
    child_output = _child_output.ChildOutput()
    child_output.open()
    yield child_output
    child_output.close_childs()
    child_output.close()


def test_a_handler_runs_under_no_lock(child_output: _child_output.ChildOutput) -> None:
    """Rule 12.1: while the handler waits for another thread, that thread asks for the last record,
    and takes the records that arrive.
    """
    got: list[Any] = []

    def asks(text: str) -> None:
        got.append(text)
        if text == "first":
            told(child_output, "third")
            other = threading.Thread(target=lambda: got.append(child_output.descriptors()))
            other.start()
            other.join()
            child_output.take()  # the test runs take(); the listening thread does not

    told(child_output, "first", "second")
    with Handles(asks):
        child_output.take()
    assert got == ["first", child_output.descriptors(), "second", "third"]


def test_a_handlers_own_lock_is_no_deadlock(
    child_output: _child_output.ChildOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test holds the handler's lock; the thread that passes records on waits for that lock."""
    monkeypatch.setattr(_child_output, "PATIENCE", 0.01)
    got: list[str] = []
    with Handles(got.append) as handler:
        passer = threading.Thread(target=child_output.take)
        with handler.lock:  # type: ignore[union-attr]
            told(child_output, "first")
            passer.start()
            while child_output._passer is None:
                pass
            told(child_output, "second")
            child_output.take()
        passer.join()
    assert got == ["first", "second"]


def test_what_a_handler_raises_loses_nothing_else(child_output: _child_output.ChildOutput) -> None:
    got: list[str] = []

    def leaves(text: str) -> None:
        got.append(text)
        if text == "first":
            raise SystemExit

    told(child_output, "first", "second")
    with Handles(leaves):
        with pytest.raises(SystemExit):
            child_output.take()
        child_output.take()
    assert got == ["first", "second"]


def test_a_handler_that_leaves_does_not_end_who_listens(
    child_output: _child_output.ChildOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", hooked.put)
    got: queue.SimpleQueue[str] = queue.SimpleQueue()

    def leaves(text: str) -> None:
        got.put(text)
        raise SystemExit

    with Handles(leaves):
        child_output.begin()
        for text in ("first", "second"):
            told(child_output, text)
            assert got.get(timeout=TIMEOUT) == text
            assert hooked.get(timeout=TIMEOUT).exc_type is SystemExit


def test_a_thread_that_does_not_start_is_tried_again(
    child_output: _child_output.ChildOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_child_output, "_bell", None)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", Refused)
        with pytest.raises(RuntimeError):
            child_output.begin()
    assert _child_output._bell is None and child_output not in _child_output._all


def test_a_thread_ends_if_who_started_it_did_not_come_to_keep_its_bell(
    child_output: _child_output.ChildOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception arrives during the wait for records, like that of a Ctrl-C (rule 6.7).
    Otherwise the thread would loop forever.
    """
    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            started.append(self)
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(_child_output, "_bell", None)
    monkeypatch.setattr(_rounds, "_bell", None)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", Interrupted)
        for begin in (child_output.begin, _rounds._begin):
            with pytest.raises(KeyboardInterrupt):
                begin()
    for thread in started:
        thread.join()
    assert len(started) == 2 and _child_output._bell is None and _rounds._bell is None


def test_a_handler_that_is_cancelled_leaves_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules 6.1, 7.2: if a handler of this program raises Cancelled, the call still returns its
    result."""
    # No thread listens in addition to the test.
    monkeypatch.setattr(_child_output, "_add", lambda child_output: None)

    def cancelled(text: str) -> None:
        raise Cancelled

    with Handles(cancelled):
        assert run(targets.tells("told", "a", "b")) == "told"


def test_a_warning_that_is_too_long_is_cut() -> None:
    with pytest.warns(targets.Wrong) as seen:
        run(targets.warns_at_length())
    texts = [str(w.message) for w in seen]
    assert [len(t) for t in texts] == [30_000] and set(texts[0]) == {"x"}


FORK_LOGS = """
    import logging, sys
    from weft.processes import Hosts, process, run

    for name in (None, "apart"):
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter(f"{name} had %(name)s: %(message)s"))
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("apart").propagate = False

    @process
    def logs():
        logging.getLogger("of.mine").error("once")
        logging.getLogger("apart").error("alone")

    with Hosts(1, start="fork") as hosts:
        run(logs.on(hosts)())
    """


def test_a_copy_has_no_handlers_of_its_original(tmp_path: Path) -> None:
    done = program(tmp_path, FORK_LOGS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["None had of.mine: once", "apart had apart: alone"]
