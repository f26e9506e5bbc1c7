"""The web server of python/docs/asyncio.md, exactly as it is there, with a real client over
loopback (rules 2.3, 7.11, 13.7)."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest

aiohttp = pytest.importorskip("aiohttp")

PAGE = Path(__file__).resolve().parents[1] / "docs/asyncio.md"


def recipe(change: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """Returns the names of the page's program."""
    section = PAGE.read_text().partition("## In a web server")[2]
    block = re.search(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    text = block.group(1)
    assert change[0] in text
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(text.replace(*change) if change[0] else text, str(PAGE), "exec"), names)
    return names


class Server:
    """The recipe's server at a free port of loopback, and a client."""

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
        self.client = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.runner.cleanup()

    async def post(self, order: Any) -> tuple[int, Any]:
        async with self.client.post(f"http://127.0.0.1:{self.port}/order", json=order) as answer:
            return answer.status, (
                await answer.json() if answer.status == 200 else await answer.text()
            )


def test_it_answers(play: Any) -> None:
    async def main() -> Any:
        async with Server(recipe()) as server:
            orders = [{"prices": [n, n]} for n in range(20)]
            return await asyncio.gather(*(server.post(o) for o in orders))

    assert play(main()) == [(200, {"total": 2 * n}) for n in range(20)]


GONE = (503, "the clerk has gone")


def test_a_failed_network_leaves_no_request_hanging(
    play: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Rules 2.3, 7.11: the orders that the clerk had taken, those that wait for it, and those
    that come later are all answered."""

    async def main() -> Any:
        # The clerk's second order waits for a third one before it fails: so others wait too, when
        # it fails.
        names = recipe(
            (
                'total = sum(order["prices"])',
                'await here(order); total = sum(order["prices"])',
            )
        )
        taken, go_on = asyncio.Event(), asyncio.Event()

        async def here(order: Any) -> None:
            if "prices" not in order:
                taken.set()
                await go_on.wait()

        names["here"] = here
        async with Server(names) as server:
            first = await server.post({"prices": [1, 2]})
            bad = asyncio.ensure_future(server.post({"nothing": 0}))
            await taken.wait()
            waiting = [asyncio.ensure_future(server.post({"prices": [n]})) for n in range(5)]
            channel = server.app[names["ORDERS"]].channel
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
        assert play(main()) == [(200, {"total": 3}), GONE, [GONE] * 5, GONE]
    (record,) = [r for r in caplog.records if r.message == "the clerk has failed"]
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


def test_a_client_that_goes_takes_nobody_with_it(play: Any) -> None:
    """The handler is cancelled, its reader goes, and the clerk's answer finds nobody (rule 3.3)."""

    async def main() -> Any:
        names = recipe(
            (
                'total = sum(order["prices"])',
                'await here(order); total = sum(order["prices"])',
            )
        )
        taken, go_on = asyncio.Event(), asyncio.Event()

        async def here(order: Any) -> None:
            if order["prices"] == [0]:
                taken.set()
                await go_on.wait()

        names["here"] = here
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
