"""A channel that this program offers by a name, and the tickets for it (WIRE.md 17.4).

    new_ticket() ──it is in the entry──► taken, or replaced: good for MEETING ──takes()──► shown

Invariant: all of it is the loop's thread's (_net/names.py).
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

__all__ = ["MEETING", "MOST_OUT", "SIDES", "Offer"]

MEETING = 30.0  # seconds for which a ticket is good once it is out
MOST_OUT = 1024  # tickets of a name: who takes more, and shows none, makes the oldest void
SIDES = ("reader", "writer")


class Offer:
    agent: Any = None  # of a host: see _net/agent.py

    def __init__(self, name: str, channel: Any, readers: bool, writers: bool) -> None:
        self.name, self.channel = name, channel
        self.readers, self.writers = readers, writers
        self.tickets: dict[str, float | None] = {}  # until when; None: it is in the entry
        self.revision = 0  # that we wrote last
        self.writing = asyncio.Lock()
        self.due = False  # it is to be written, and that has not begun
        self.hears: Any = None  # the client's subscription by which we hear who takes a ticket
        self.is_heard = False  # the server tells by it
        self.consumer = secrets.token_hex(8)  # what the server calls who is told by that

    def end(self, side: str) -> Any:
        return self.channel.reader() if side == "reader" else self.channel.writer()

    def entry(self) -> dict[str, Any]:
        """What the entry says of it beside whose it is."""
        own = {} if self.agent is None else self.agent.entry()
        return {"readers": self.readers, "writers": self.writers, **own}

    def new_ticket(self, now: float) -> str:
        self.tickets = {
            t: now + MEETING if until is None else until
            for t, until in self.tickets.items()
            if until is None or until > now
        }
        for oldest in list(self.tickets)[:-MOST_OUT]:
            del self.tickets[oldest]
        ticket = secrets.token_hex(16)
        self.tickets[ticket] = None
        return ticket

    def takes(self, ticket: Any, now: float) -> bool:
        """Whether it is good. It is good once."""
        until = self.tickets.pop(ticket, 0.0) if isinstance(ticket, str) else 0.0
        return until is None or until > now

    def lacks(self) -> bool:
        """Whether none of them is in the entry."""
        return None not in self.tickets.values()
