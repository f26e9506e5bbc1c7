"""A member of a network that takes names which its certificate is not for (WIRE.md 17.3, 17.4). The
same attacks are tried on programs in Python and in C++.

    with Thief(url, keys) as thief:
        take, told = TAKES["overwrite"]
        take(thief, "lab/results")            now the entry is the thief's, or says what it wants
        thief.got                             the first messages that were sent to the thief

The thief joins as every member does, but its own program believes that it may hold all names.
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
    """Has what a host's entry says. No client may get as far as welcome()."""

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
        """The error that a client gets after the thief has done that. The attack is repeated if the
        home had written its entry anew before the client came."""
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
        """Removes all that the thief has left at the server."""
        for name in self._written:
            self.delete(name)
        self.network.close()


def _delete_and_take(thief: Thief, name: str) -> None:
    """Repeated if the home has written its entry anew in between."""
    while True:
        thief.delete(name)
        try:
            return thief.offer(name)
        except BadUse as error:
            if "is taken" not in str(error):
                raise


def _overwrite(thief: Thief, name: str) -> None:
    """All of the entry is the thief's, and the thief answers there."""
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
    """The home believes that the entry is its own."""
    print_ = {"fingerprint": thief.meeting._fingerprint, "address": thief.network.address}
    thief.put(name, {**thief.entry(name), **print_, "ticket": "0" * 32})


#: What the thief does, and for each a part of the error that a client gets.
TAKES: dict[str, tuple[Callable[[Thief, str], None], str]] = {
    "delete and take": (_delete_and_take, "may not offer"),
    "overwrite": (_overwrite, "may not offer"),
    "overwrite the address": (_overwrite_the_address, "not who was announced"),
    "keep the home": (_keep_the_home, "may not offer"),
}
