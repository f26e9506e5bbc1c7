"""The server of `weft view` (rules 14.9, 14.10): the answers to a browser, and to other clients.

view/tests contains the tests of the page itself.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from children import child, weft
from looked_at import PIPE, running
from pages import Events, get, serving

from weft._commands import view as _view
from weft._commands import view_server as _server
from weft._watching import visit as _visit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")

KNOT = """
    from weft import Channel, Outside, process, run

    @process
    async def relay(r, w):
        await w.write(await r.read())

    @process
    async def behind(r):
        print("ready", flush=True)
        await r.read()

    @process
    async def waits(c):
        await c.read()

    c, d, e, f = Channel("c"), Channel("d"), Channel("e"), Channel("f")
    keep = f.writer()
    with Outside(due=True):
        run(relay(c.reader(), d.writer()), relay(d.reader(), c.writer()), behind(c.reader()), waits(f.reader()))
"""


def test_what_a_browser_gets(home: Path, tmp_path: Path) -> None:
    """Rule 14.10: a browser receives the page, and looks as events."""
    with running(tmp_path, PIPE) as p, serving(p.pid) as server:
        status, page, answer = get(server, f"/{server.token}/")
        assert status == 200 and "page.js" in page and "page.css" in page
        assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")
        policy = answer.getheader("Content-Security-Policy", "")
        assert "default-src 'none'" in policy and "connect-src 'self'" in policy
        assert answer.getheader("Referrer-Policy") == "no-referrer"
        for name in ("page.js", "page.css", "licenses.txt"):
            assert get(server, f"/{server.token}/{name}")[0] == 200
        assert get(server, f"/{server.token}")[0] == 308
        events = Events(server)
        look = events.until("look")
        again = events.until("look")
        events.close()
    assert {row["path"] for row in look["processes"]} >= {
        "main/source",
        "main/enrich",
        "main/store",
    }
    by_name = {one["name"]: one for one in look["channels"]}
    source = next(row for row in look["processes"] if row["path"] == "main/source")
    assert source["holds"] == [[by_name["orders"]["id"], True]]
    assert look["pid"] == p.pid and look["stuck"] == [] and look["left_out"] == 0
    assert again["at"] > look["at"]


def test_only_who_has_the_token_on_this_machine(home: Path, tmp_path: Path) -> None:
    """Rule 14.16: requests without the token, or from another origin, are refused."""
    with running(tmp_path, PIPE) as p, serving(p.pid) as server:
        here = f"127.0.0.1:{server.port}"
        token = server.token
        for path, headers, message in (
            ("/", {}, "has no token, or a wrong one"),
            ("/looks", {}, "has no token, or a wrong one"),
            (f"/{token[:-1]}/", {}, "has no token, or a wrong one"),
            (f"/{token}x/looks", {}, "has no token, or a wrong one"),
            (f"/{token}/looks", {"Host": f"evil.example:{server.port}"}, "on the same machine"),
            (f"/{token}/looks", {"Host": "127.0.0.1:1"}, "on the same machine"),
            (f"/{token}/looks", {"Origin": "http://evil.example"}, "on the same machine"),
            (f"/{token}/looks", {"Origin": "null"}, "on the same machine"),
            (f"/{token}/looks", {"Sec_Fetch_Site": "cross-site"}, "on the same machine"),
        ):
            status, text, _ = get(server, path, **{"Host": here, **headers})
            assert status == 403 and message in text and "main/" not in text, (path, headers, text)
        for path in ("no", "../view.py", "%2e%2e/view.py", "page.js/"):
            assert get(server, f"/{token}/{path}")[0] == 404
        connection = http.client.HTTPConnection(here, timeout=60)
        connection.request("POST", f"/{token}/looks")
        assert connection.getresponse().status == 501
        connection.close()
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
            s.sendall(b"\0\xff no request\r\n\r\n")
            assert (
                b"".join(iter(lambda: s.recv(1000), b"")).count(b"main/") == 0
            )  # the connection is closed too
        assert server.server_address[0] == "127.0.0.1"
        assert get(server, f"/{token}/", Host=f"localhost:{server.port}")[0] == 200


def test_browsers_that_come_and_go(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two browsers are connected at the same time, and one leaves early. Without a browser no looks
    are taken (rule 14.16).
    """
    monkeypatch.setattr(_server, "HEARTBEAT", 0.05)
    monkeypatch.setattr(_server, "BROWSERS", 2)
    asked = []
    look = _visit.Looking.look
    monkeypatch.setattr(
        _visit.Looking, "look", lambda self, *a: (asked.append(1), look(self, *a))[1]
    )
    with running(tmp_path, PIPE) as p, serving(p.pid) as server:
        assert asked == []
        one, two = Events(server), Events(server)
        # The two browsers share a look. A browser that is served late misses earlier looks.
        of_one, of_two = (browser.until("look")["at"] for browser in (one, two))
        for _ in range(1000):
            if of_one < of_two:
                of_one = one.until("look")["at"]
            elif of_two < of_one:
                of_two = two.until("look")["at"]
        assert of_one == of_two
        status, text, _ = get(server, f"/{server.token}/looks")
        assert status == 503 and "Too many pages look at this program already" in text
        one.close()
        two.until("look")
        two.close()
        while server.looks.busy:
            os.sched_yield()
        three = Events(server)
        assert three.until("look")["processes"]
        three.close()
        assert p.poll() is None


def test_a_program_that_stops_goes_on_and_ends(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, PIPE) as p, serving(p.pid) as server:
        events = Events(server)
        events.until("look")
        p.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(_visit, "PATIENCE", 0.3)
        # on a busy machine the program may have counted as silent before it was stopped
        while f"kill -CONT {p.pid} lets it go on" not in events.until("silent")["text"]:
            pass
        monkeypatch.setattr(_visit, "PATIENCE", 60.0)
        p.send_signal(signal.SIGCONT)
        assert events.until("look")["processes"]
        p.kill()
        p.wait()
        assert events.until("ended")["text"] == f"OS process {p.pid} has ended"
        assert events.next()[0] == "end"
        events.close()
        assert server.looks.ended.wait(60)


def test_a_knot(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 14.3: the page receives the processes that can never continue."""
    monkeypatch.setattr(_server, "STANDS", 0.05)
    with running(tmp_path, KNOT) as p, serving(p.pid) as server:
        events = Events(server)
        for _ in range(600):  # a process of the knot may begin to wait later than the others
            if len(stuck := events.until("look")["stuck"]) >= 3:
                break
        events.close()
    assert {one["path"]: one["waits_for"] for one in stuck} == {
        "main/relay[0]": ["main/relay[1]"],
        "main/relay[1]": ["main/relay[0]"],
        "main/behind": ["main/relay[1]"],
    }
    assert all(one["pid"] == p.pid for one in stuck)


def test_the_command(home: Path, tmp_path: Path) -> None:
    """The command prints where the page is, and ends with Ctrl-C. Only the user can read the file
    through which the browser learns the address.
    """
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\ncp -p "${{1#file://}}" {opened}.new && mv {opened}.new {opened}\n'
    )
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    with running(tmp_path, PIPE) as p:
        with child("-m", "weft.cli", "view", "program.py", env=environment) as v:
            assert v.stdout is not None
            line = v.stdout.readline()
            assert line.startswith("weft view: http://127.0.0.1:"), line
            assert v.stdout.readline() == "Ctrl-C ends it\n"
            while not opened.exists():
                os.sched_yield()
            assert line.split()[-1] in opened.read_text()
            assert stat.S_IMODE(opened.stat().st_mode) == 0o600
            v.send_signal(signal.SIGINT)
            assert v.wait() == 0
        assert not list((home / "weft").glob("view-*"))
        with child("-m", "weft.cli", "view", str(p.pid), "--no-browser") as v:
            assert v.stdout is not None and v.stdout.readline()
            p.kill()
            p.wait()
            assert v.wait() == 0
            assert v.stdout.read().endswith(f"OS process {p.pid} has ended\n")


def test_what_is_asked_for_wrongly(home: Path, tmp_path: Path) -> None:
    with socket.socket() as taken, running(tmp_path, PIPE):
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, message in (
            (["99999999"], "there is no OS process 99999999"),
            (["--port", port], f"--port {port}: Address already in use; choose another"),
            (["--port", "70000"], "--port 70000: it must be from 0"),
            (["--interval", "0"], "--interval 0: it must be from 0.1 to 60 seconds"),
            (["--most", "0"], "--most 0: it must be 1 or more"),
        ):
            done = weft("view", "--no-browser", *arguments)
            assert done.returncode == 2 and message in done.stderr, done
            assert done.stderr.count("\n") == 1
    assert "no Weft program of this user runs" in weft("view").stderr


def test_the_page_is_in_the_package() -> None:
    names = {name for name, _ in _server.FILES.values()}
    assert {file.name for file in _view.PAGE.iterdir()} == names
    assert (
        subprocess.run(
            ["grep", "-c", "Copyright", _view.PAGE / "licenses.txt"], capture_output=True
        ).stdout
        != b"0\n"
    )


def test_the_looks_are_stopped_at_any_time():  # rule 14.10
    """The looks may be stopped before the first look, twice, and while a browser listens."""
    never = _server.Looks(_server.Program(os.getpid()), 0.1, 100)
    never.stop()
    never.stop()
    never.start()
    assert never.listens(lambda event: None)
    looks = _server.Looks(_server.Program(os.getpid()), 0.1, 100)
    looks.start()
    listens, over = threading.Event(), []
    browser = threading.Thread(
        target=lambda: over.append(looks.listens(lambda event: listens.set()))
    )
    browser.start()
    listens.wait()
    looks.stop()
    looks.stop()
    browser.join()
    assert over == [True]
