"""A member of a network who takes names that his certificate is not for (WIRE.md 17.3, 17.4): what
programs in Python and in C++ are tried with alike.

    with Thief(url, keys) as thief:
        take, told = TAKES["overwrite"]
        take(thief, "lab/results")            now the entry is his, or says what he wants
        thief.got                             the first messages that were said to him

He joins as everybody does, but believes that he may hold all names, so nothing stops him here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft import net
from weft import threads as th
from weft._net import link as _net_link
from weft._net import named as _net_named
from weft._net import names as _net_names
from weft.errors import BadUse, PeerDied

ALL = _net_named.Member("thief", ("*",))


class FalseAgent:
    """What a host's entry says of itself. Nobody is to come as far as welcome()."""

    def __init__(self, allow: list[str], hosts: int, trust: bool) -> None:
        self.said = {"allow": allow, "hosts": hosts, "trust": trust}

    def entry(self) -> dict[str, Any]:
        return self.said

    def knows(self, _: Any) -> bool:
        return True

    async def welcome(self, _: Any) -> Any:
        raise _net_link.Refused("the thief has what he wanted")


class Thief:
    def __init__(self, url: str, keys: Path, **how: Any) -> None:
        self.got: list[Any] = []
        self._written: set[str] = set()
        answer = _net_names.Meeting._answer

        async def noted(meeting: Any, said: Any) -> Any:
            self.got.append(said)
            return await answer(meeting, said)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_net_names.Meeting, "_answer", noted)
            self.network = net.join(url, keys=keys, name="thief", **how)
        self.meeting = self.network._meeting
        self.meeting.member = ALL
        self.channel = th.Channel("stolen")
        self.reader = self.channel.reader()

    def offer(self, name: str, agent: FalseAgent | None = None) -> None:
        channel = None if agent else self.channel
        self.network._call(self.meeting.offer(name, channel, not agent, not agent, agent))

    def entry(self, name: str) -> dict[str, Any]:
        async def read() -> Any:
            return json.loads((await (await self.meeting._names()).get(name)).value or b"")

        found: dict[str, Any] = self.network._call(read())
        return found

    def put(self, name: str, entry: dict[str, Any]) -> None:
        self._written.add(name)

        async def write() -> None:
            await (await self.meeting._names()).put(name, json.dumps(entry).encode())

        self.network._call(write())

    def delete(self, name: str) -> None:
        async def away() -> None:
            await (await self.meeting._names()).delete(name)

        self.network._call(away())

    def refused(self, client: Any, name: str, takes: Callable[[Thief, str], None]) -> str:
        """What a client is told that comes once the thief has done that; again, where the home had
        written its entry anew before it came."""
        while True:
            takes(self, name)
            try:
                client.writer(name).retire()
            except BadUse as error:
                return str(error)
            except PeerDied:  # a session with itself: it was let in
                pass

    def puts(self, entry: dict[str, Any]) -> Callable[[Thief, str], None]:
        return lambda thief, name: thief.put(name, entry)

    def ticket(self, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = self.network._call(self.meeting._ticket_for(name, "writer", 60))
        return entry

    def __enter__(self) -> Thief:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing of his is left at the server."""
        for name in self._written:
            self.delete(name)
        self.network.close()


def _delete_and_take(thief: Thief, name: str) -> None:
    """Again, where the home had written its entry anew in between."""
    while True:
        thief.delete(name)
        try:
            return thief.offer(name)
        except BadUse as error:
            if "is taken" not in str(error):
                raise


def _overwrite(thief: Thief, name: str) -> None:
    """Everything in it is his, and he answers for it."""
    thief.offer("own")
    there = thief.entry(name)
    own = thief.entry("own")
    thief.meeting._offers[name] = thief.meeting._offers["own"]
    thief.put(name, {**there, **own})


def _overwrite_the_address(thief: Thief, name: str) -> None:
    """The entry still has the fingerprint of the home."""
    own = {"address": thief.network.address, "ticket": "0" * 32}
    thief.put(name, {**thief.entry(name), **own})


def _keep_the_home(thief: Thief, name: str) -> None:
    """The home takes the entry for its own."""
    print_ = {"fingerprint": thief.meeting._fingerprint, "address": thief.network.address}
    thief.put(name, {**thief.entry(name), **print_, "ticket": "0" * 32})


#: What the thief does; of each the one who comes is told something like that.
TAKES: dict[str, tuple[Callable[[Thief, str], None], str]] = {
    "delete and take": (_delete_and_take, "may not offer"),
    "overwrite": (_overwrite, "may not offer"),
    "overwrite the address": (_overwrite_the_address, "not who was announced"),
    "keep the home": (_keep_the_home, "may not offer"),
}
