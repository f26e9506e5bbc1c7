"""A channel that this program offers under a name, and the tickets for the channel
(WIRE-NETWORKS.md 17.4).

    new_ticket() ──it is in the entry──► taken, or replaced: good for MEETING ──takes()──► shown

Invariant: all of this belongs to the loop's thread (_net/names.py).
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

__all__ = ["MAX_OUT", "MEETING", "SIDES", "Offer"]

MEETING = 30.0  # seconds for which a ticket is valid after it has been taken or replaced
# the largest number of tickets of a name that are out; any further ticket makes the oldest void
MAX_OUT = 1024
SIDES = ("reader", "writer")


class Offer:
    agent: Any = None  # the agent, if the name is that of a host: see _net/agent.py

    def __init__(self, name: str, channel: Any, readers: bool, writers: bool) -> None:
        self.name, self.channel = name, channel
        self.readers, self.writers = readers, writers
        # For each ticket the time until which it is valid, or None while it is in the entry.
        self.tickets: dict[str, float | None] = {}
        self.revision = 0  # the revision that this program wrote last
        self.writing = asyncio.Lock()
        self.due = False  # whether the entry must be written and the writing has not begun yet
        # The client's subscription, which informs this program that a ticket was taken.
        self.hears: Any = None
        self.is_heard = False  # whether the server sends to the subscription
        self.consumer = secrets.token_hex(8)  # the consumer's name at the server

    def end(self, side: str) -> Any:
        return self.channel.reader() if side == "reader" else self.channel.writer()

    def entry(self) -> dict[str, Any]:
        """Returns the fields of the entry that concern the offer, without its home."""
        own = {} if self.agent is None else self.agent.entry()
        return {"readers": self.readers, "writers": self.writers, **own}

    def new_ticket(self, now: float) -> str:
        self.tickets = {
            t: now + MEETING if until is None else until
            for t, until in self.tickets.items()
            if until is None or until > now
        }
        for oldest in list(self.tickets)[:-MAX_OUT]:
            del self.tickets[oldest]
        ticket = secrets.token_hex(16)
        self.tickets[ticket] = None
        return ticket

    def takes(self, ticket: Any, now: float) -> bool:
        """Returns whether the ticket is valid, and makes it void, since a ticket is valid only
        once."""
        until = self.tickets.pop(ticket, 0.0) if isinstance(ticket, str) else 0.0
        return until is None or until > now

    def lacks(self) -> bool:
        """Returns whether no ticket is in the entry."""
        return None not in self.tickets.values()
