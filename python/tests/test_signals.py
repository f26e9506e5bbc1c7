"""Tests signals that arrive when the main thread is about to sleep: each is noticed
(SEMANTICS.md, rule 6.7).
"""

from __future__ import annotations

import genericpath
import inspect
import os
import queue
import re
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import types
from pathlib import Path

import pytest
from children import child, until_asleep

import weft.threads as th
from weft._extension import native as _native

BACKENDS = ["coroutines", "greenlets", "threads"]

# The critical moment is between the main thread's last check for signals and its sleep. To hit it
# for certain, a handler written in C (so that no bytecode checks for signals after it) raises the
# next signal, which has a lower number, so that the check under way has already passed it. The
# sleeper notices USR2; the handler of USR2 raises USR1, which is noticed in the check before the
# next sleep; the handler of USR1 raises the last signal, which arrives after that check.
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


def stirred(*start: str, **environment: str) -> tuple[int, str, str]:
    """Runs Python with the arguments `start`, and sends SIGUSR2 once the program is asleep. Returns
    its exit status and output."""
    with child(
        *start,
        env={k: v for k, v in os.environ.items() if k != "WEFT_BACKEND"} | environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        until_asleep(running.pid)
        running.send_signal(signal.SIGUSR2)
        out, err = running.communicate()
    return running.returncode, out, err


def played(tmp_path: Path, text: str, backend: str, *arguments: str) -> tuple[int, str, str]:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return stirred("-m", "weft.cli", "run", str(path), "--on", backend, *arguments)


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


OUTSIDE = """
    import threading, time
    from weft.threads import Channel

    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()  # who may yet write
    channel = Channel()
    reader, writer = channel.reader(), channel.writer()
    print("ready", flush=True)
    try:
        reader.read()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("last", "ends"), [("SIGINT", (0, "interrupted\n")), ("SIGQUIT", (7, "quit\n"))]
)
def test_so_it_is_in_ordinary_code_outside_any_run(
    tmp_path: Path, last: str, ends: tuple[int, str]
) -> None:
    path = tmp_path / "program.py"
    head, _, _ = CHAIN.partition("    @process")
    path.write_text(textwrap.dedent(head) + textwrap.dedent(OUTSIDE), encoding="utf-8")
    # WEFT_STANDSTILL is set because otherwise the program would wake after 2 s for another reason,
    # and check for signals.
    status, out, err = stirred(str(path), last, WEFT_STANDSTILL="0")
    assert (status, out) == ends, err


AGAIN = """
    import ctypes, os, signal, threading, time
    from weft.threads import Channel, process, run

    def handler():
        ctypes.pythonapi.PyOS_getsig.restype = ctypes.c_void_p
        return ctypes.pythonapi.PyOS_getsig(signal.SIGINT)

    def writes(writer):  # once the main thread waits, by which its handler has changed
        until = time.monotonic() + 280
        while handler() == pythons and time.monotonic() < until:
            os.sched_yield()
        writer.write(1)

    def wait():  # until a value comes
        channel = Channel()
        reader, writer = channel.reader(), channel.writer()
        threading.Thread(target=writes, args=(writer,)).start()
        reader.read()

    @process
    def nothing():
        pass

    signal.signal(signal.SIGINT, signal.default_int_handler)
    pythons = handler()
    wait()
    assert handler() != pythons
    signal.signal(signal.SIGINT, lambda *_: None)
    assert handler() == pythons
    wait()
    assert handler() != pythons, "the program had set another one"
    run(nothing())
    wait()
    assert handler() != pythons, "a network had run"
    print("seen")
"""


def test_in_ordinary_code_a_new_handler_is_seen_too(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(AGAIN), encoding="utf-8")
    with child(str(path)) as running:
        out, err = running.communicate()
    assert (running.returncode, out) == (0, "seen\n"), err


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
        timeout=280,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout) == (0, "as before\n"), done.stderr


# The signal arrives when the last bytecode before a run has been executed but the run has not
# begun. Only C code makes these calls, one after the other, and the first of them raises the
# signal. The next bytecode, on whichever thread it runs, checks for the signal.
MOMENTS = """
    import ctypes, functools, operator, os, signal, sys, weakref
    import weft.coroutines as co, weft.greenlets as gr, weft.threads as th
    from weft import _native
    from weft.coroutines import Channel

    raised = ctypes.PyDLL(None)["raise"]  # keeps the GIL
    raised.argtypes = [ctypes.c_int]
    raised_for = ctypes.PyDLL(None)["raise"]
    raised_for.argtypes = [ctypes.c_int, ctypes.py_object]
    def at_once(*calls):
        return list(map(functools.partial.__call__, calls))[-1]

    class Usr(Exception): pass
    class Term(Exception): pass
    def on_usr(*_): raise Usr
    def on_term(*_): raise Term
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGUSR1, on_usr)
    signal.signal(signal.SIGTERM, on_term)

    @co.process
    async def co_naps():
        while True:
            await co.sleep(0.001)
    def naps(m):
        @m.process
        def naps():
            while True:
                m.sleep(0.001)
        return naps
    napping = {"coroutines": co_naps, "greenlets": naps(gr), "threads": naps(th)}
    def left_as_it_was():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGINT)
"""


def moments(text: str) -> str:
    """Returns the output of the program, which must end without help."""
    program = textwrap.dedent(MOMENTS) + textwrap.dedent(text)
    with child("-W", "error", "-c", program) as running:
        out, err = running.communicate()
    assert running.returncode == 0, (running.returncode, out, err)
    return out


def test_a_signal_as_the_run_begins_ends_it() -> None:
    """Rule 6.7: an exception that the handler raises as a run begins is noticed, and the network,
    which would run forever, is cancelled."""
    out = moments("""
        for name, process in napping.items():
            for number in (signal.SIGINT, signal.SIGTERM):
                run = functools.partial(_native.run, (process(), process()), False)
                try:
                    at_once(functools.partial(raised, number), run)
                except (KeyboardInterrupt, Term) as error:
                    print(name, type(error).__name__)
                left_as_it_was()
    """)
    assert out.splitlines() == [f"{b} {e}" for b in BACKENDS for e in ("KeyboardInterrupt", "Term")]


def test_a_signal_as_the_block_of_a_group_begins_ends_it() -> None:
    """Rule 6.7: the exception of the handler is raised on entry, and the block does not begin."""
    out = moments("""
        for number in (signal.SIGINT, signal.SIGTERM):
            group = th.Group()
            try:
                at_once(functools.partial(raised, number), functools.partial(th.Group.__enter__, group))
            except (KeyboardInterrupt, Term) as error:
                print(type(error).__name__)
            try:
                group.start(napping["threads"]())
            except th.BadUse as error:
                assert "not open" in str(error), error
            left_as_it_was()
    """)
    assert out.split() == ["KeyboardInterrupt", "Term"]


@pytest.mark.parametrize("backend", ["coroutines", "greenlets"])
def test_several_signals_as_the_run_ends_leave_the_programs_handler(backend: str) -> None:
    """The signals arrive when the last process has executed its last bytecode: its objects are
    freed, and a callback of their weak references raises the signals."""
    out = moments(f"""
        m = {{"coroutines": co, "greenlets": gr}}["{backend}"]
        class Thing: pass
        def watched():
            thing = Thing()
            return thing, [weakref.ref(thing, functools.partial(raised_for, n)) for n in (signal.SIGUSR1, signal.SIGTERM)]
        if m is co:
            @co.process
            async def last():
                thing, keep[:] = watched()
                del globals()["watched"]
        else:
            @gr.process
            def last():
                thing, keep[:] = watched()
                del globals()["watched"]
        keep = []
        try:
            m.run(last())
        except (Usr, Term) as error:
            print(type(error).__name__)
        left_as_it_was()
    """)
    assert out.split() in (["Usr"], ["Term"])


def test_no_bytecode_runs_while_a_run_begins_and_ends() -> None:
    """A bytecode may run a handler, which may raise where no code would notice the exception."""
    out = moments("""
        @co.process
        async def a(): pass
        @gr.process
        def b(): pass
        @th.process
        def c(): pass
        for process in (a, b, c):
            processes = (process(), process())
            seen = []
            sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None)
            _native.run(processes, False)
            sys.setprofile(None)
            print(*seen)
    """)
    assert out == "a a\nb b\n\n"  # threads have profiles of their own


def test_which_module_imports_threading_first_does_not_matter() -> None:
    """Before Python 3.13 the thread that first imports threading counts as the main thread. If that
    is another thread, Weft leaves signals alone.
    """
    program = """
        import _thread, signal
        lock = _thread.allocate_lock()
        lock.acquire()
        def other():
            try:
                import weft
            finally:
                lock.release()
        _thread.start_new_thread(other, ())
        lock.acquire()
        import weft.coroutines as co
        signal.signal(signal.SIGINT, signal.default_int_handler)
        @co.process
        async def seven():
            await co.sleep(0.001)
            return 7
        print(co.run(seven()))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """
    with child("-c", textwrap.dedent(program)) as running:
        out, err = running.communicate()
    assert (running.returncode, out) == (0, "7\n"), err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_thread_that_forked_is_the_main_one_in_the_child() -> None:
    out = moments("""
        import threading
        @co.process
        async def main():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            signal.raise_signal(signal.SIGINT)
            await co.sleep(1000)
        def forks():
            pid = os.fork()
            if pid:
                print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                return
            status = 1
            try:
                co.run(main())
            except KeyboardInterrupt:
                status = 7
            finally:
                os._exit(status)
        t = threading.Thread(target=forks)
        t.start()
        t.join()
    """)
    assert out == "7\n"


# --- the second Ctrl-C ----------------------------------------------------------------------------

COMPUTES = """
    import os, signal, sys, time
    from weft.{kind} import Channel, Parallel, process

    @process
    def computes(out, way):
        out.write(1)
        print("ready", flush=True)  # it is in no operation any more
        while not os.path.exists(way):  # it computes, as far as Weft can see
            time.sleep(0.001)

    @process
    def reads(inp):
        inp.read()
        inp.read()

    if __name__ == "__main__":
        c = Channel("c")
        try:
            Parallel(reads(c.reader()), computes(c.writer(), sys.argv[1]))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def again(tmp_path: Path, kind: str, way: Path, waits: bool) -> tuple[int, str, str]:
    """Runs a program that receives Ctrl-C, and a second Ctrl-C once it has reported where its
    processes are. If the program then waits for a process that computes, that process is released.
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(COMPUTES.format(kind=kind)), encoding="utf-8")
    with child(
        str(path),
        str(way),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline() == "ready\n"
        messages: list[str] = []

        def hear(what: str, times: int) -> None:
            while sum(what in line for line in messages) < times:
                messages.append(running.stderr.readline())
                assert messages[-1], messages

        running.send_signal(signal.SIGINT)
        hear("main/computes", 1)
        running.send_signal(signal.SIGINT)
        if waits:
            hear("main/computes", 2)
            way.touch()
        out, err = running.stdout.read(), "".join(messages) + running.stderr.read()
        running.wait()
    return running.returncode, out, err


def test_a_second_ctrl_c_kills_the_os_processes(tmp_path: Path) -> None:
    """Rule 6.7: a process that computes forever reaches no operation at which it could be
    cancelled."""
    code, out, err = again(tmp_path, "processes", tmp_path / "never", waits=False)
    assert (code, out) == (0, "interrupted\n"), err


def test_a_second_ctrl_c_names_the_threads_that_are_waited_for(tmp_path: Path) -> None:
    """Rule 6.7: a thread cannot be ended. The report names a line of the program's own function."""
    code, out, err = again(tmp_path, "threads", tmp_path / "now", waits=True)
    assert (code, out) == (0, "interrupted\n"), err
    named = err.partition("(Ctrl-\\ ends the program):\n")[2].splitlines()
    computes = re.compile(r"  main/computes: running at program\.py:\d+")
    # A reader that is being cancelled may be named too.
    assert any(map(computes.fullmatch, named)), err


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="a thread that runs has no frames there that another could look at",
)
def test_a_running_process_is_where_the_program_called_a_function_of_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule 6.7: a function may be frozen into the interpreter, as the functions of os.path are, and
    name no file.
    """
    called: queue.SimpleQueue[None] = queue.SimpleQueue()
    threads: list[int] = []
    lines: list[str] = []

    @th.process
    def asks() -> None:
        threads.append(threading.get_ident())
        genericpath.exists("a path")

    @th.process
    def looks() -> None:
        while not threads or sys._current_frames()[threads[0]].f_code.co_name != "exists":
            os.sched_yield()
        lines.extend(f"{path}: {does}" for _, path, does in _native._where())
        called.put(None)

    with monkeypatch.context() as patched:
        patched.setattr(genericpath, "os", types.SimpleNamespace(stat=called.get))
        th.run(asks(), looks())
    line = inspect.getsourcelines(asks.__wrapped__)[1] + 3
    assert f"main/asks: running at test_signals.py:{line}" in lines
