"""A look from outside at a program that runs: `weft ps`, `weft top`, and the names of threads
(rules 14.9, 14.10, 14.13).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from children import child, until_asleep, weft
from looked_at import PIPE, WAITS, looks_until, refused, running, shares, weft_until

from weft._commands import see as _see
from weft._watching import visit as _visit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")


# --- the report -----------------------------------------------------------------------------------


# On one scheduler a process that was woken is due while the stage sleeps.
SHARES = (
    ("main/enrich", 0.5, ("runs",)),
    ("main/source", 0.5, ("writes", "due")),
    ("main/store", 0.5, ("reads", "due")),
)


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_a_program_that_was_not_prepared(home: Path, tmp_path: Path, backend: str) -> None:
    """Rules 14.9 to 14.12."""
    with running(tmp_path, PIPE, "--on", backend) as p:
        assert _visit.doors() == [p.pid]
        network = looks_until(
            lambda network: shares(network, *SHARES) and network.verdict.names == ("main/enrich",),
            p.pid,
        )
    rows = {row.path: row for row in network.rows}
    assert rows.keys() >= {"main/source", "main/enrich", "main/store"}
    enrich, source, store = rows["main/enrich"], rows["main/source"], rows["main/store"]
    assert shares(network, *SHARES), rows
    assert network.verdict.names == ("main/enrich",), network.verdict
    assert enrich.rate is not None and enrich.rate > 0
    assert (enrich.cpu is None) == (backend != "threads")
    assert source.writes_to == ["orders"] and store.reads_from == ["priced"]
    pipes = {pipe.name: pipe for pipe in network.pipes}
    assert pipes["orders"].writing == pytest.approx(source.part("writes"), abs=0.01)
    assert pipes["priced"].reading == pytest.approx(store.part("reads"), abs=0.01)
    assert pipes["priced"].capacity == 4 and pipes["orders"].readers == ["main/enrich"]


def test_the_commands(home: Path, tmp_path: Path) -> None:
    with running(tmp_path, PIPE) as p:
        listed = json.loads(weft("ps", "--json").stdout)
        assert [row["pid"] for row in listed] == [p.pid]
        assert listed[0]["processes"] in (3, 4) and listed[0]["program"].endswith("program.py")
        assert str(p.pid) in weft("ps").stdout
        verdict, where = "`main/enrich` is the bottleneck: busy ", "write 'orders' at "
        shown = weft_until(  # the only program, so it need not be named
            lambda text: text.startswith(verdict) and where in text, "top", "--once"
        )
        assert shown.startswith(verdict), shown
        assert where in shown
        report = json.loads(
            weft_until(
                lambda text: json.loads(text)["verdict"]["names"] == ["main/enrich"],
                *("top", "program.py", "--json", "--interval", "0.2"),
            )
        )
        assert (
            report["verdict"]["names"] == ["main/enrich"]
            and report["os_processes"][0]["memory"] > 0
        )
        only = weft("top", str(p.pid), "--once", "--only", "store", "--sort", "busy").stdout
        assert "main/store" in only and "main/source " not in only.partition("channel")[0][200:]
    assert weft("ps").stdout.startswith("no Weft program of this user runs")


def test_how_long_it_has_stood_there(home: Path, tmp_path: Path) -> None:
    """Rule 14.10: from the second look on, the report contains the time for which a process has
    been at its place.
    """
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
    """Rule 14.10: the table names the processes by their paths in the whole network."""
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
        network = looks_until(lambda network: network.verdict.names == ("main/slow",), p.pid)
        family = _visit.family(p.pid)
        shown = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in family}
    rows = {row.path: row for row in network.rows}
    assert {"main/numbers", "main/slow", "main/shows"} <= rows.keys(), sorted(rows)
    assert len([row for row in network.rows if row.path.endswith("slow")]) == 1
    assert shown >= {"main/numbers", "main/slow"}, shown  # rule 14.13
    assert len(family) == len(network.os_processes) == 3
    assert len({rows[f"main/{name}"].pid for name in ("numbers", "slow", "shows")}) == 3
    assert network.verdict.names == ("main/slow",), (network.verdict, network.nodes)
    # The values of both channels are counted in this program, where the channels were made.
    assert rows["main/numbers"].rate == next(p.rate for p in network.pipes if p.name == "a")
    assert rows["main/slow"].rate


def test_what_a_supervisor_has_started_and_a_pool(home: Path, tmp_path: Path) -> None:
    """Rule 14.10: the processes of both are in the table; a life after the first has its number."""
    text = """
        import os
        import signal
        import sys
        from pathlib import Path
        from weft.processes import Channel, Executor, Parallel, Supervisor, process

        @process
        def worker(jobs, crashed):
            if not crashed.exists():
                crashed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            jobs.read()

        def waits(fifo):
            return open(fifo).read()

        @process
        def pooled(keep, fifo):
            with Executor(1) as pool:
                print("ready", flush=True)
                list(pool.map(waits, [fifo]))

        if __name__ == "__main__":
            here = Path(sys.argv[0]).parent
            os.mkfifo(here / "fifo")
            c = Channel("jobs")
            Parallel(
                worker.on(Supervisor(restarts=3, backoff=0))(c.reader(), here / "crashed"),
                pooled.on("threads")(c.writer(), here / "fifo"),
            )
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")

    def rows_of(network: Any) -> dict[str, Any]:
        return {row.path: row for row in network.rows}

    def both(network: Any) -> bool:
        rows = rows_of(network)
        worker, pool = rows.get("main/worker"), rows.get("main/executor")
        return bool(worker and pool and worker.waits and pool.now == "runs")

    with child(str(path)) as p:
        assert p.stdout is not None and p.stderr is not None
        assert p.stdout.readline() == "ready\n", p.stderr.read()
        rows = rows_of(looks_until(both, p.pid))
    assert rows["main/worker"].where.endswith("(life 2)")
    assert "running at program.py:" in rows["main/executor"].where
    assert len({row.pid for row in rows.values()}) == 3


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
    """Rule 14.2: a deadlock is declared even while a visitor looks."""
    text = """
        import sys
        from weft import Channel, io, process, run

        @process
        async def relay(r, w):
            await w.write(await r.read())

        @process
        async def first(r, w):
            print("ready", flush=True)
            await io(sys.stdin.readline)()
            await w.write(await r.read())

        c, d = Channel("c"), Channel("d")
        run(first(c.reader(), d.writer()), relay(d.reader(), c.writer()))
    """
    with running(tmp_path, text, stdin=subprocess.PIPE) as p:
        with _visit.Looking(p.pid) as looking:
            assert looking.look(0.05).rows
            assert p.stdin is not None
            p.stdin.write("go on\n")
            p.stdin.flush()
            # on a busy machine the program may take longer to end than the look waits
            with pytest.raises(_visit.NoLook, match=r"has ended|does not say anything more"):
                while True:
                    looking.look(0.05)
        assert p.wait() == 3
        assert p.stderr is not None and "main/relay" in p.stderr.read()


def test_two_look_at_once(home: Path, tmp_path: Path) -> None:
    with running(tmp_path, PIPE) as p:
        found: list[Any] = []

        def looks() -> None:
            names = ("main/enrich",)
            found.append(looks_until(lambda network: network.verdict.names == names, p.pid, 0.3))

        both = [threading.Thread(target=looks) for _ in range(2)]
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
            at.chmod(0o666)  # so that only the kernel decides, by the peer's identity
            code = (
                "import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
                f"s.connect({str(at)!r}); print(s.recv(1))"
            )
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
            assert done.stdout in (b"b''\n", b""), done
            assert b"b''" in done.stdout or b"ConnectionReset" in done.stderr, done
    assert not at.exists() or p.returncode != 0  # the program was killed


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
        assert "can be entered by other users: make it private" in refused(p.pid)


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
    """On a terminal the screen is redrawn, keys have their effect, and `q` ends the command."""
    import pty

    with running(tmp_path, PIPE) as p:
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(
                sys.executable,
                [sys.executable, "-m", "weft.cli", "top", str(p.pid), "--interval", "0.3"],
            )
        answer = b""
        pressed = False
        with contextlib.suppress(OSError):  # the program has ended already
            while data := os.read(terminal, 4096):
                answer += data
                screens = answer.count(b"space pauses")
                if not pressed and screens >= 2 and b"is the bottleneck" in answer:
                    pressed = True
                    os.write(terminal, b"sq")
        os.close(terminal)
        assert os.waitpid(pid, 0)[1] == 0, answer
    assert pressed and b"is the bottleneck" in answer and b"main" in answer
