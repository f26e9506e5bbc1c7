"""A look from outside at a program that runs: `weft ps`, `weft top`, and the names of threads
(rules 14.9, 14.10, 14.13); and signals on which a program prints where each process is.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import child, until_asleep

from weft._commands import see as _see
from weft._watching import look as _look
from weft._watching import visit as _visit
from weft._watching.look_frames import ANSWER, REQUEST, BadMessage, Reader, message

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")

PIPE = """
    import sys, time
    from weft import Channel, process, run

    @process
    async def source(out):
        n = 0
        while True:
            await out.write(n)
            n += 1

    @process
    async def enrich(orders, priced):
        async for n in orders:
            time.sleep(0.01)
            await priced.write(n)

    @process
    async def store(priced):
        async for n in priced:
            if n == 2:
                print("ready", flush=True)

    a, b = Channel("orders"), Channel("priced", capacity=4)
    run(source(a.writer()), enrich(a.reader(), b.writer()), store(b.reader()))
"""

WAITS = """
    from weft import Channel, process, run

    @process
    async def says(out):
        print("ready", flush=True)
        await out.write(1)

    @process
    async def waits(silent):
        await silent.read()

    c, d = Channel("given"), Channel("silent")
    keep = c.reader(), d.writer()
    import weft
    with weft.Outside(due=True):
        run(says(c.writer()), waits(d.reader()))
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory; pytest's own are too long for a socket."""
    path = Path(tempfile.mkdtemp(prefix="weft"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    monkeypatch.delenv("WEFT_INSPECT", raising=False)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def running(
    tmp_path: Path, text: str, *arguments: str, first: str = "ready", **how: Any
) -> Iterator[subprocess.Popen[str]]:
    """A program that has said its first line."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    with child("-m", "weft.cli", "run", *arguments, str(path), **how) as p:
        assert p.stdout is not None and p.stderr is not None
        said = p.stdout.readline()
        assert said.startswith(first), said + p.stderr.read()
        yield p


def weft(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )


def refused(pid: int) -> str:
    with pytest.raises(_visit.NoLook) as error:
        _visit.look(pid)
    return str(error.value)


# --- what it tells --------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_a_program_that_was_not_prepared(home: Path, tmp_path: Path, backend: str) -> None:
    """Rules 14.9 to 14.12."""
    with running(tmp_path, PIPE, "--on", backend) as p:
        assert _visit.doors() == [p.pid]
        network = _visit.look(p.pid, 0.4)
    rows = {row.path: row for row in network.rows}
    assert rows.keys() >= {"main/source", "main/enrich", "main/store"}
    enrich, source, store = rows["main/enrich"], rows["main/source"], rows["main/store"]
    # on one scheduler who was woken is due while the stage sleeps
    assert enrich.part("runs") > 0.6, enrich
    assert source.part("writes", "due") > 0.5 and source.part("writes") > 0.2, source
    assert store.part("reads", "due") > 0.5 and store.part("reads") > 0.2, store
    assert network.verdict.names == ("main/enrich",), network.verdict
    assert enrich.rate is not None and 20 < enrich.rate < 210
    assert (enrich.cpu is None) == (backend != "threads")
    assert source.writes_to == ["orders"] and store.reads_from == ["priced"]
    pipes = {pipe.name: pipe for pipe in network.pipes}
    assert pipes["orders"].writing > 0.2 and pipes["priced"].reading > 0.2
    assert pipes["priced"].capacity == 4 and pipes["orders"].readers == ["main/enrich"]


def test_the_commands(home: Path, tmp_path: Path) -> None:
    with running(tmp_path, PIPE) as p:
        listed = json.loads(weft("ps", "--json").stdout)
        assert [row["pid"] for row in listed] == [p.pid]
        assert listed[0]["processes"] in (3, 4) and listed[0]["program"].endswith("program.py")
        assert str(p.pid) in weft("ps").stdout
        shown = weft("top", "--once")  # the only one
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.startswith("`main/enrich` is the bottleneck: busy "), shown.stdout
        assert "write 'orders' at " in shown.stdout
        told = json.loads(weft("top", "program.py", "--json", "--interval", "0.2").stdout)
        assert told["verdict"]["names"] == ["main/enrich"] and told["os_processes"][0]["memory"] > 0
        only = weft("top", str(p.pid), "--once", "--only", "store", "--sort", "busy").stdout
        assert "main/store" in only and "main/source " not in only.partition("channel")[0][200:]
    assert weft("ps").stdout.startswith("no Weft program of this user runs")


def test_how_long_it_has_stood_there(home: Path, tmp_path: Path) -> None:
    """Rule 14.10: it is known from the second look on."""
    with running(tmp_path, WAITS) as p, _visit.Looking(p.pid) as looking:
        until_asleep(p.pid)
        first = {row.path: row for row in looking.look(0.05).rows}
        again = {row.path: row for row in looking.look(0.05).rows}
    for path in ("main/says", "main/waits"):
        assert first[path].before and again[path].before
        assert again[path].seconds > first[path].seconds + 0.04
    assert first["main/waits"].now == "reads" and first["main/says"].now == "writes"
    assert first["main/waits"].rate == 0
    assert first["main/waits"].where.startswith("read 'silent' at program.py:11")


def test_os_processes_are_in_one_table(home: Path, tmp_path: Path) -> None:
    """Rule 14.10: by their paths in the whole network."""
    text = """
        import time
        from weft.processes import Channel, Hosts, Parallel, process

        @process
        def numbers(out):
            n = 0
            while True:
                out.write(n)
                n += 1

        @process
        def slow(inp, out):
            for v in inp:
                time.sleep(0.01)
                out.write(v)

        @process
        def shows(inp):
            for v in inp:
                if v == 5:
                    print("ready", flush=True)

        if __name__ == "__main__":
            a, b = Channel("a"), Channel("b")
            with Hosts(2) as hosts:
                Parallel(
                    numbers.on(hosts[0])(a.writer()),
                    slow.on(hosts[1])(a.reader(), b.writer()),
                    shows.on("threads")(b.reader()),
                )
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    with child(str(path)) as p:
        assert p.stdout is not None and p.stderr is not None
        assert p.stdout.readline() == "ready\n", p.stderr.read()
        network = _visit.look(p.pid, 0.4)
        family = _visit.family(p.pid)
        shown = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in family}
    rows = {row.path: row for row in network.rows}
    assert {"main/numbers", "main/slow", "main/shows"} <= rows.keys(), sorted(rows)
    assert len([row for row in network.rows if row.path.endswith("slow")]) == 1
    assert shown >= {"main/numbers", "main/slow"}, shown  # rule 14.13
    assert len(family) == len(network.os_processes) == 3
    assert len({rows[f"main/{name}"].pid for name in ("numbers", "slow", "shows")}) == 3
    assert network.verdict.names == ("main/slow",), (network.verdict, network.nodes)


def test_threads_have_the_names_of_their_processes(home: Path, tmp_path: Path) -> None:
    """Rule 14.13."""
    with running(tmp_path, WAITS, "--on", "threads") as p:
        until_asleep(p.pid)
        names = {name for name, _, _ in _visit.threads(p.pid)}
    assert {"main/says", "main/waits"} <= names


def test_nothing_is_there_before_somebody_looks(home: Path, tmp_path: Path) -> None:
    """Rule 14.9."""
    text = """
        import _thread, sys, threading
        from weft import process, run

        @process
        async def tells():
            print(_thread._count(), threading.active_count(), "weft._watching.look" in sys.modules)

        run(tells())
    """
    with running(tmp_path, text, first="0 1 False"):
        pass


def test_looking_changes_no_outcome(home: Path, tmp_path: Path) -> None:
    """Rule 14.2: a deadlock is declared while somebody looks."""
    text = """
        import sys
        from weft import Channel, process, run

        @process
        async def relay(r, w):
            await w.write(await r.read())

        @process
        async def first(r, w):
            print("ready", flush=True)
            await loop(r)
            await w.write(await r.read())

        async def loop(r):
            from weft import sleep
            await sleep(0.3)

        c, d = Channel("c"), Channel("d")
        run(first(c.reader(), d.writer()), relay(d.reader(), c.writer()))
    """
    with running(tmp_path, text) as p:
        with pytest.raises(_visit.NoLook, match="has ended"), _visit.Looking(p.pid) as looking:
            while True:
                looking.look(0.05)
        assert p.wait() == 3
        assert p.stderr is not None and "main/relay" in p.stderr.read()


def test_two_look_at_once(home: Path, tmp_path: Path) -> None:
    with running(tmp_path, PIPE) as p:
        found: list[Any] = []
        both = [
            threading.Thread(target=lambda: found.append(_visit.look(p.pid, 0.3))) for _ in range(2)
        ]
        for one in both:
            one.start()
        for one in both:
            one.join()
    assert [n.verdict.names for n in found] == [("main/enrich",)] * 2


def test_more_processes_than_are_asked_for(home: Path, tmp_path: Path) -> None:
    text = """
        from weft import Channel, Outside, process, run

        @process
        async def waits(c):
            await c.read()

        c = Channel("c")
        keep = c.writer()

        @process
        async def tells(c):
            print("ready", flush=True)
            await c.read()

        with Outside(due=True):
            run(*(waits(c.reader()) for _ in range(900)), tells(c.reader()))
    """
    with running(tmp_path, text) as p:
        network = _visit.look(p.pid, 0.05, most=500)
        assert len(network.rows) == 500 and network.left_out in (401, 402)
        whole = _visit.look(p.pid, 0.05)
    assert len(whole.rows) in (901, 902) and whole.left_out == 0
    assert len({row.path for row in whole.rows}) == len(whole.rows)
    shown = _see.screen(whole, p.pid, _see.Keys("path", ""), 100, 30)
    assert "more" in shown and len(shown.split("\n")) <= 30


# --- the door -------------------------------------------------------------------------------------


def test_only_the_user_can_open_it(home: Path, tmp_path: Path) -> None:
    """Rule 14.9."""
    with running(tmp_path, PIPE) as p:
        at = home / "weft" / f"{p.pid}.sock"
        assert stat.S_IMODE(at.stat().st_mode) == 0o600
        assert stat.S_IMODE(at.parent.stat().st_mode) == 0o700
        if os.geteuid() == 0:
            home.chmod(0o755)
            at.parent.chmod(0o755)
            at.chmod(0o666)  # so only the kernel's word is left
            code = (
                "import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
                f"s.connect({str(at)!r}); print(s.recv(1))"
            )
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
            assert done.stdout in (b"b''\n", b""), done
            assert b"b''" in done.stdout or b"ConnectionReset" in done.stderr, done
    assert not at.exists() or p.returncode != 0  # killed


def test_a_program_that_ends_takes_its_socket_away(home: Path, tmp_path: Path) -> None:
    text = "from weft import process, run\n@process\nasync def a(): print('ready', flush=True)\nrun(a())"
    with running(tmp_path, text) as p:
        assert p.wait() == 0
    assert list((home / "weft").iterdir()) == []


def test_the_sockets_of_the_dead_are_swept(home: Path, tmp_path: Path) -> None:
    with running(tmp_path, PIPE) as p:
        p.kill()
        p.wait()
        assert (home / "weft" / f"{p.pid}.sock").exists()
        assert _visit.doors() == [] and list((home / "weft").iterdir()) == []
        assert refused(p.pid) == (
            f"there is no OS process {p.pid}: weft ps lists those that can be looked at"
        )


def test_it_is_turned_off(home: Path, tmp_path: Path) -> None:
    """Rule 14.9."""
    with running(tmp_path, PIPE, env={**os.environ, "WEFT_INSPECT": "0"}) as p:
        assert "was started with WEFT_INSPECT=0: start it without that" in refused(p.pid)
        assert _visit.doors() == []


def test_without_a_runtime_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 14.9."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    with running(tmp_path, PIPE) as p:
        assert "this user has no runtime directory" in refused(p.pid)
        done = weft("ps")
        assert done.returncode == 2 and "set XDG_RUNTIME_DIR" in done.stderr
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
        assert "has another XDG_RUNTIME_DIR" in refused(p.pid)


def test_a_directory_that_is_not_the_users_alone(home: Path, tmp_path: Path) -> None:
    (home / "weft").mkdir(mode=0o700)
    (home / "weft").chmod(0o777)
    with running(tmp_path, PIPE) as p:
        assert list((home / "weft").iterdir()) == []
        assert "is not this user's alone: chmod 700 it" in refused(p.pid)


def test_the_child_of_a_fork_has_its_own(home: Path, tmp_path: Path) -> None:
    """Rule 14.9."""
    text = """
        import os, sys
        from weft import Channel, Outside, process, run

        @process
        async def one(): pass

        @process
        async def waits(c):
            print("ready", os.getpid(), flush=True)
            await c.read()

        run(one())
        if os.fork() == 0:
            c = Channel("c")
            keep = c.writer()
            with Outside(due=True):
                run(waits(c.reader()))
        os.waitpid(-1, 0)
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    with child(str(path)) as p:
        assert p.stdout is not None
        pid = int(p.stdout.readline().split()[1])
        try:
            assert set(_visit.doors()) == {pid, p.pid}
            assert [row.path for row in _visit.look(pid).rows if row.kind != "main"] == [
                "main/waits"
            ]
            assert [row for row in _visit.look(p.pid).rows if row.pid == p.pid] == []
        finally:
            os.kill(pid, signal.SIGKILL)


# --- what is wrong --------------------------------------------------------------------------------


def test_programs_that_are_none(home: Path, tmp_path: Path) -> None:
    with child("-c", "import time; print('ready', flush=True); time.sleep(100)") as p:
        assert p.stdout is not None and p.stdout.readline()
        assert "is no Weft program, or has not begun its first run" in refused(p.pid)
    for word, said in (
        ("99999999", "there is no OS process 99999999"),
        ("noprogram", "'noprogram' is no number of an OS process, nor in the command line"),
    ):
        done = weft("top", word, "--once")
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
    assert "no Weft program of this user runs" in weft("top").stderr
    assert "--sort bussy: it is one of" in weft("top", "--sort", "bussy").stderr
    assert "--interval 0: it is more than 0" in weft("top", "--interval", "0").stderr
    assert "--most 0: it is 1 or more" in weft("top", "--most", "0").stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be somebody else")
def test_another_users(home: Path, tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "100"], preexec_fn=lambda: os.setuid(65534)) as p:
        said = refused(p.pid)
        p.kill()
        assert "is another user's (uid 65534): only that user can look at it" in said


def test_one_that_is_stopped(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_visit, "PATIENCE", 0.3)
    with running(tmp_path, PIPE) as p:
        p.send_signal(signal.SIGSTOP)
        os.waitpid(p.pid, os.WUNTRACED)
        assert f"is stopped (by SIGSTOP, or a debugger): kill -CONT {p.pid}" in refused(p.pid)
        p.send_signal(signal.SIGCONT)
        monkeypatch.setattr(_visit, "PATIENCE", 30.0)
        assert _visit.look(p.pid, 0.2).rows


def test_one_that_dies_while_it_is_looked_at(home: Path, tmp_path: Path) -> None:
    with running(tmp_path, PIPE) as p, _visit.Looking(p.pid) as looking:
        looking.look(0.05)
        threading.Timer(0.3, p.kill).start()
        with pytest.raises(_visit.NoLook, match=f"OS process {p.pid} has ended"):
            looking.look(20)


def test_c_code_that_keeps_the_lock(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 14.9: it does not answer, and who asks is told why."""
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
        time.sleep(0.2)
        said = refused(p.pid)
    assert "code that does not let go of the interpreter's lock" in said


class Fake:
    """A socket in the place of a program's, which says one thing."""

    def __init__(self, home: Path, answer: bytes) -> None:
        (home / "weft").mkdir(mode=0o700, exist_ok=True)
        self.listens = socket.socket(socket.AF_UNIX)
        self.listens.bind(str(home / "weft" / f"{os.getpid()}.sock"))
        self.listens.listen()
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            s, _ = self.listens.accept()
            s.recv(REQUEST)
            s.sendall(self.answer)
            s.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (struct.pack("!I", 10) + b'{"weft":2}', "a message of version 2 of the protocol"),
        (struct.pack("!I", 0xFFFFFFFF), "a message of 4294967295 bytes; at most"),
        (struct.pack("!I", 3) + b"abc", "a message that is no JSON"),
        (b"", "does not say anything more: ask again"),
        (message({"error": "no"}), "says: no"),
    ],
)
def test_answers_that_are_none(home: Path, answer: bytes, said: str) -> None:
    fake = Fake(home, answer)
    assert said in refused(os.getpid())
    fake.listens.close()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"ask": "what"}, 'what is asked is "who" or "look"'),
        ({"ask": "look", "interval": -1}, "the interval is from 0 to 60 s"),
        ({"ask": "look", "interval": 1e999}, "the interval is from 0 to 60 s"),
        ({"ask": "look", "interval": True}, "the interval is from 0 to 60 s"),
        ({"ask": "look", "interval": 0, "most": "x"}, "the number of processes is 0 or more"),
        ({}, 'what is asked is "who" or "look"'),
    ],
)
def test_requests_that_are_none(request_: dict[str, Any], said: str) -> None:
    assert _look._answer(_look.Look(), request_) == {"error": said}


def test_the_parser_takes_anything() -> None:
    """Rule 14.9: whatever comes is refused with a sentence, or is a message."""
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
    """Rule 14.9."""
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
        network = _visit.look(p.pid, 0.2)
        assert p.poll() is None and network.verdict.names == ("main/enrich",)


# --- the screen -----------------------------------------------------------------------------------


def test_keys() -> None:
    keys = _see.Keys("path", "")
    for key in "s /ab\x7fc\r":
        keys.press(key)
    assert keys.sort == "busy" and keys.paused and keys.only == "ac" and not keys.typing
    assert "by busy" in keys.line() and "PAUSED" in keys.line() and "only: ac" in keys.line()
    keys.press("\x1b")
    keys.press("c")
    assert keys.only == "" and not keys.channels
    keys.press("q")
    assert keys.quits


def test_the_live_screen(home: Path, tmp_path: Path) -> None:
    """On a terminal: it is drawn anew, keys are heard, and `q` ends it."""
    import pty

    with running(tmp_path, PIPE) as p:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(
                sys.executable,
                [sys.executable, "-m", "weft.cli", "top", str(p.pid), "--interval", "0.3"],
            )
        said = b""
        pressed = False
        with contextlib.suppress(OSError):  # it has ended
            while data := os.read(terminal, 4096):
                said += data
                if not pressed and said.count(b"space pauses") >= 2:
                    pressed = True
                    os.write(terminal, b"sq")
        os.close(terminal)
        assert os.waitpid(pid, 0)[1] == 0, said
    assert pressed and b"is the bottleneck" in said and b"main" in said


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_sigusr1_says_where_everybody_is(home: Path, tmp_path: Path, backend: str) -> None:
    """Rule 14.10: in the words of `weft top --once`, and the program goes on."""
    with running(tmp_path, WAITS, "--on", backend) as p:
        assert p.stderr is not None
        until_asleep(p.pid)
        lines = []
        for _ in range(2):
            p.send_signal(signal.SIGUSR1)
            assert p.stderr.readline() == "weft: the processes are:\n"
            lines.append(sorted(p.stderr.readline().strip() for _ in range(2)))
        rows = [row for row in _visit.look(p.pid, 0.05).rows if row.kind != "main"]
        p.send_signal(signal.SIGINT)
        err = p.communicate()[1]
    assert lines[0] == lines[1] == sorted(_visit.where_lines(rows, p.pid)), lines
    assert all(line in err for line in lines[0]), err


def test_a_signal_is_answered_while_the_main_thread_computes(home: Path) -> None:
    text = """
        import os, signal, sys
        from weft.coroutines import process, run
        from weft.observe import on_signal

        on_signal(signal.SIGUSR2)

        @process
        async def computes():
            print("ready", flush=True)
            while True:
                pass

        run(computes())
    """
    with child("-c", textwrap.dedent(text)) as p:
        assert p.stdout is not None and p.stderr is not None and p.stdout.readline()
        p.send_signal(signal.SIGUSR2)
        assert p.stderr.readline() == "weft: the processes are:\n"
        assert "main/computes: running at <string>:" in p.stderr.readline()


def test_a_deadlock_is_declared_beside_on_signal() -> None:
    """Rule 10.3: it is no handler that may act."""
    text = """
        import signal
        from weft.coroutines import Channel, Deadlock, process, run
        from weft.observe import on_signal

        on_signal()

        @process
        async def reads(c):
            await c.read()

        c = Channel("c")
        keep = c.writer()
        try:
            run(reads(c.reader()))
        except Deadlock:
            print("deadlock")
    """
    with child("-c", textwrap.dedent(text)) as p:
        assert p.communicate()[0] == "deadlock\n"


def test_signals_that_have_another_meaning() -> None:
    from weft.errors import BadUse
    from weft.observe import on_signal

    for number in (signal.SIGKILL, signal.SIGINT, 0, 12345):
        with pytest.raises(BadUse, match=r"take signal\.SIGUSR1"):
            on_signal(number)
