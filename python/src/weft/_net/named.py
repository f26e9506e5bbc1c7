"""Names of a network, and what its lists have (WIRE.md 17.3, 17.9). Without the client of the server
(_net/names.py), which takes longer to import than all the rest.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from weft.errors import BadUse

__all__ = ["HOST", "SOON", "Host", "Named", "NotYet", "checked"]

SOON = 3.0  # seconds for a host of a pool to have a ticket: then another one is asked
HOST = "host="  # so begin the names of hosts, and of no channel


class NotYet(BadUse):
    """What may be there in a moment: a host, its ticket, the server."""


class Named(NamedTuple):
    """A name, as `Network.names` lists it."""

    name: str  #: as in Channel.at(name)
    host: str  #: what its home's program calls itself
    address: str  #: where that listens; "": it is reached by the relay only
    readers: bool  #: whether it gives reader ends
    writers: bool  #: whether it gives writer ends
    relayed: int = 0  #: how many of its home's sessions go by the relay, as of some seconds ago


class Host(NamedTuple):
    """A host that is there (WIRE.md 17.9)."""

    name: str
    address: str  #: of its agent
    allow: list[str]  #: what it runs
    hosts: int  #: how many OS processes it has
    trust: bool
    home: str  #: of the agent: another one has another
    relayed: int  #: how many of its sessions go by the relay


def checked(name: Any) -> str:
    """
    Raises:
        BadUse: that is no name.
    """
    good = isinstance(name, str) and len(name) <= 60
    if not good or not re.fullmatch(r"[A-Za-z0-9_-]+([/.][A-Za-z0-9_-]+)*", name):
        raise BadUse(
            f"a name is 1 to 60 letters, digits, - and _, in parts with / or . between, as 'lab/results'; not {name!r}"
        )
    return str(name)
