"""The web servers of python/docs/asyncio.md, exactly as on that page, with real clients over
loopback (rules 2.3, 7.11, 13.7): within this program, and as programs that receive a SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

aiohttp = pytest.importorskip("aiohttp")

PAGE = Path(__file__).resolve().parents[1] / "docs/asyncio.md"

# Makes a clerk call here(), which may report that an order has arrived, and wait until the test
# permits the clerk to continue.
WAITS = ('total = sum(order["prices"])', 'await here(order); total = sum(order["prices"])')


def block(first: str, change: tuple[str, str] = ("", "")) -> str:
    """Returns the program of the page that begins with the line `first`."""
    section = PAGE.read_text().partition("## In a web server")[2]
    for text in re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        if text.startswith(first):
            assert change[0] in text
            return str(text.replace(*change) if change[0] else text)
    raise AssertionError(f"the page has no program that begins with {first!r}")


DESK, AIOHTTP, FASTAPI = (
    "# desk.py\n",
    "# server.py\nfrom aiohttp",
    "# server.py\nimport contextlib",
)


def recipe(monkeypatch: pytest.MonkeyPatch, change: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """Returns the names of the page's program for aiohttp; "desk" is its module."""
    desk = types.ModuleType("desk")
    monkeypatch.setitem(sys.modules, "desk", desk)
    exec(compile(block(DESK, change), str(PAGE), "exec"), desk.__dict__)
    names: dict[str, Any] = {"__name__": "recipe", "desk": desk}
    exec(compile(block(AIOHTTP), str(PAGE), "exec"), names)
    return names


class Server:
    """The server of the page at a free port of loopback, and a client."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    async def __aenter__(self) -> Server:
        web = aiohttp.web
        self.app = self.names["make_app"]()
        self.runner = web.AppRunner(self.app)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.port = self.runner.addresses[0][1]
        self.client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.runner.cleanup()

    async def post(self, order: Any) -> tuple[int, Any]:
        return await post(self.client, self.port, json=order)


async def post(client: Any, port: int, **what: Any) -> tuple[int, Any]:
    async with client.post(f"http://127.0.0.1:{port}/order", **what) as answer:
        return answer.status, (await answer.json() if answer.status == 200 else await answer.text())


def test_it_answers(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> Any:
        async with Server(recipe(monkeypatch)) as server:
            orders = [{"prices": [n, n]} for n in range(20)]
            return await asyncio.gather(*(server.post(o) for o in orders))

    assert play(main()) == [(200, {"total": 2 * n}) for n in range(20)]


FAILED = (500, "this order has failed")


def test_nobody_else_notices_a_failed_network(
    play: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules 2.3, 7.11: the order with which the clerk fails is answered with 500. The orders that
    wait for the clerk, and later orders, go to the next clerk.
    """

    async def main() -> Any:
        names = recipe(monkeypatch, WAITS)
        taken, go_on = asyncio.Event(), asyncio.Event()

        async def here(order: Any) -> None:
            if "prices" not in order:
                taken.set()
                await go_on.wait()

        names["desk"].here = here
        async with Server(names) as server:
            first = await server.post({"prices": [1, 2]})
            bad = asyncio.ensure_future(server.post({"nothing": 0}))
            await taken.wait()
            waiting = [asyncio.ensure_future(server.post({"prices": [n]})) for n in range(5)]
            channel = server.app[names["DESK"]].orders.channel
            while channel.stats().waiting_writers < 5:
                await asyncio.sleep(0)
            go_on.set()
            return [
                first,
                await bad,
                await asyncio.gather(*waiting),
                await server.post({"prices": []}),
            ]

    with caplog.at_level(logging.ERROR):
        first, bad, waiting, later = play(main())
    assert (first, bad, later) == ((200, {"total": 3}), FAILED, (200, {"total": 0}))
    assert waiting == [(200, {"total": n}) for n in range(5)]
    (record,) = [r for r in caplog.records if "started again" in r.message]
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


def test_a_client_that_goes_takes_nobody_with_it(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler is cancelled and its reader released, so the clerk's answer has no reader (rule
    3.3).
    """

    async def main() -> Any:
        names = recipe(monkeypatch, WAITS)
        taken, go_on = asyncio.Event(), asyncio.Event()

        async def here(order: Any) -> None:
            if order["prices"] == [0]:
                taken.set()
                await go_on.wait()

        names["desk"].here = here
        order = names["order"]
        handlers = []

        async def noted(request: Any) -> Any:
            handlers.append(asyncio.current_task())
            return await order(request)

        names["order"] = noted
        async with Server(names) as server:
            asked = asyncio.ensure_future(server.post({"prices": [0]}))
            await taken.wait()
            handlers[0].cancel()
            with pytest.raises(aiohttp.ClientError):
                await asked
            go_on.set()
            return await server.post({"prices": [4]})

    assert play(main()) == (200, {"total": 4})


def test_what_is_no_json_is_no_failure_of_the_network(
    play: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> Any:
        async with Server(recipe(monkeypatch)) as server:
            return await post(server.client, server.port, data=b"{")

    assert play(main()) == (400, "this is no JSON")
    assert "the clerk has failed" not in caplog.text


async def crowd(port: int, bad: int) -> None:
    """500 clients send orders, 100 at a time, which is below the usual backlog. `bad` of them send
    bad orders. Every tenth client is slow: it sends its order byte by byte, and meanwhile other
    clients are served.
    """

    async def slowly(order: Any) -> Any:
        for byte in json.dumps(order).encode():
            yield bytes([byte])
            await asyncio.sleep(0)

    async def one(client: Any, n: int) -> None:
        wrong = n < bad
        order: Any = {"nothing": n} if wrong else {"prices": [n, 1]}
        what: Any = {"json": order}
        if n % 10 == 0:
            what = {"data": slowly(order), "headers": {"Content-Type": "application/json"}}
        status, output = await post(client, port, **what)
        if wrong:
            assert status == 500 and "this order has failed" in output
        else:
            assert (status, output) == (200, {"total": n + 1})

    patient = aiohttp.ClientTimeout(total=None)
    line = aiohttp.TCPConnector(limit=100)
    async with aiohttp.ClientSession(connector=line, timeout=patient) as client:
        await asyncio.gather(*(one(client, n) for n in range(500)))


def test_500_clients(
    play: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with Server(recipe(monkeypatch)) as server:
            await crowd(server.port, bad=3)

    play(main())
    assert sum("started again" in r.message for r in caplog.records) == 3


# --- as programs ----------------------------------------------------------------------------------

HERE = """

async def here(order):
    if "mark" in order:
        from pathlib import Path
        Path(order["mark"] + ".taken").touch()
        while not Path(order["mark"]).exists():
            await asyncio.sleep(0.001)
"""

AIOHTTP_RUNS = """
    import socket
    listens = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listens.getsockname()[1]}", flush=True)
    web.run_app(make_app(), sock=listens, print=None)
"""


@contextlib.contextmanager
def program(folder: Path, command: list[str], ready: tuple[str, int]) -> Iterator[Any]:
    """Runs a program that prints its port. Yields the program, the port, and what the program has
    printed until the text ready[0] has been printed ready[1] times.
    """
    running = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert running.stdout is not None
        output = ""
        while output.count(ready[0]) < ready[1]:
            line = running.stdout.readline()
            assert line, output
            output += line
        port = re.search(r"http://127\.0\.0\.1:(\d+)", output)
        assert port is not None, output
        yield running, int(port.group(1)), output
    finally:
        running.kill()
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


async def stopped_in_the_middle(running: Any, port: int, folder: Path) -> None:
    """Sends SIGTERM while the clerk has an order, which must still be answered."""
    mark = folder / "mark"
    async with aiohttp.ClientSession() as client:
        order = {"prices": [6, 7], "mark": str(mark)}
        asked = asyncio.ensure_future(post(client, port, json=order))
        while not mark.with_suffix(".taken").exists():
            await asyncio.sleep(0.001)
        running.send_signal(signal.SIGTERM)
        mark.touch()
        assert await asked == (200, {"total": 13})


def serves_and_stops(folder: Path, command: list[str], ready: tuple[str, int]) -> str:
    (folder / "desk.py").write_text(block(DESK, WAITS) + HERE)
    with program(folder, command, ready) as (running, port, before):

        async def main() -> None:
            await crowd(port, bad=3)
            await stopped_in_the_middle(running, port, folder)

        asyncio.run(main())
        output, _ = running.communicate()
        assert running.returncode in (0, -signal.SIGTERM), output
    return str(before + output)


def test_aiohttp_as_a_program(tmp_path: Path) -> None:
    text = block(AIOHTTP, ("    web.run_app(make_app())\n", AIOHTTP_RUNS))
    (tmp_path / "server.py").write_text(text)
    output = serves_and_stops(tmp_path, ["server.py"], ("http://", 1))
    assert output.count("the clerk has failed, and is started again") == 3
    assert output.count("Traceback") == output.count("KeyError: 'prices'") == 3


def test_fastapi_under_uvicorn_with_workers(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    (tmp_path / "server.py").write_text(block(FASTAPI))
    command = "-m uvicorn server:app --workers 2 --port 0 --no-access-log"
    output = serves_and_stops(tmp_path, command.split(), ("Application startup complete", 2))
    assert output.count("the clerk has failed, and is started again") == 3
    assert output.count("Application startup complete") == 2
    assert output.count("Application shutdown complete") == 2


def test_aiohttp_under_gunicorn(tmp_path: Path) -> None:
    """Each worker that gunicorn has forked has a network of its own. --preload: the workers are
    copies of a program that has imported Weft.
    """
    pytest.importorskip("gunicorn")
    (tmp_path / "server.py").write_text(block(AIOHTTP))
    command = "-m gunicorn -w 2 --preload -k aiohttp.GunicornWebWorker -b 127.0.0.1:0"
    ready = ("Booting worker", 2)
    output = serves_and_stops(tmp_path, [*command.split(), "server:make_app()"], ready)
    assert output.count("the clerk has failed, and is started again") == 3
    assert output.count("Booting worker") == 2
    assert "Shutting down: Master" in output
