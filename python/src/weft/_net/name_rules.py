"""Rules for the names of a network: which members may hold them, and the items of its lists
(WIRE-NETWORKS.md 17.3, 17.9). The client of the server (_net/names.py) is not imported here,
because its import takes longer than that of the rest of the package.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.errors import BadUse

__all__ = [
    "ALL",
    "HOST",
    "SOON",
    "Host",
    "Member",
    "Named",
    "NotYet",
    "checked",
    "checked_grant",
    "grants",
    "member_of",
    "simple",
]

SOON = 3.0  # seconds to wait for a host's ticket before another host is asked
HOST = "host="  # the name of every host begins with this, but no name of a channel does
ALL = "*"  # the grant of all names
SCHEME = "weft:"  # a URI of a certificate that begins with this is a grant

_NAME = "[A-Za-z0-9_-]+(?:[/.][A-Za-z0-9_-]+)*"
_GRANT = re.compile(rf"(?:{HOST})?(?:{_NAME}|(?:{_NAME}[/.])?[*])")
LONGEST = 60  # the largest number of characters of a name
TOLD = 300  # the largest number of characters of a list of grants in a message


class NotYet(BadUse):
    """Raised if a host, its ticket or the server is missing now, but might appear soon."""


class Named(NamedTuple):
    """A name, as `Network.names` lists it."""

    name: str  #: the name that Channel.at(name) takes
    host: str  #: the name of the program that is the channel's home, which that program has chosen
    address: str  #: where that program listens; "" if only the relay reaches it
    readers: bool  #: whether that program gives reader ends
    writers: bool  #: whether that program gives writer ends
    relayed: int = 0  #: how many sessions of that program used the relay, some seconds ago


class Host(NamedTuple):
    """A host of the network (WIRE-NETWORKS.md 17.9)."""

    name: str
    address: str  #: the address of its agent
    allow: list[str]  #: the functions that it runs
    hosts: int  #: how many OS processes it has
    trust: bool
    home: str  #: the agent's identifier; an agent that is started again has a new one
    relayed: int  #: how many of the agent's sessions use the relay


def checked(name: Any) -> str:
    """Returns the name unchanged.

    Raises:
        BadUse: `name` is not a name.
    """
    good = isinstance(name, str) and len(name) <= LONGEST
    if not good or not re.fullmatch(_NAME, name):
        raise BadUse(
            f"a name must be 1 to {LONGEST} letters, digits, - and _, in parts with / or . between, as 'lab/results'; not {name!r}"
        )
    return str(name)


def simple(text: str) -> str:
    """Turns a part of a machine's name into a valid name: any character but letters, digits, - and
    _ becomes a -.
    """
    return re.sub("[^A-Za-z0-9_-]", "-", text)[:LONGEST]


# --- who may hold a name --------------------------------------------------------------------------


def checked_grant(grant: Any) -> str:
    """Returns the grant unchanged.

    Raises:
        BadUse: `grant` is not a grant.
    """
    good = isinstance(grant, str) and len(grant.removeprefix(HOST).removesuffix("/*")) <= LONGEST
    if not good or not _GRANT.fullmatch(grant):
        raise BadUse(
            f"keys are for names as 'lab/results', 'lab/*' (all that begin with lab/) or '*' (all), and for hosts as "
            f"'host=gpu1' or 'host=*'; not for {grant!r}"
        )
    return str(grant)


def grants(grant: str, name: str) -> bool:
    """Returns whether the grant covers this name (WIRE-NETWORKS.md 17.3). The name is that of a
    channel, or HOST followed by that of a host. In C++ net/grants.hpp does the same.
    """
    beginning = grant[:-1]
    if grant[-1:] != "*":
        return grant == name
    return name.startswith(beginning) and beginning[-1:] in ("", "/", ".", "=")


class Member(NamedTuple):
    """The owner of a certificate, and the names that programs with this certificate are allowed to
    hold."""

    name: str
    grants: tuple[str, ...]

    def may_hold(self, name: str) -> bool:
        return any(grants(grant, name) for grant in self.grants)

    def __str__(self) -> str:
        """Returns a text that describes the member, for messages."""
        of = ", ".join(self.grants) or "no name, as those that an older Weft made"
        return (
            f"the certificate of {self.name!r} is for {of[:TOLD]}{' …' if len(of) > TOLD else ''}"
        )

    def with_name(self, name: str) -> str:
        """Returns the command that makes keys which are allowed to hold this name too."""
        of = [shlex.quote(grant) for grant in (*self.grants, name)]
        if sum(map(len, of)) > TOLD:
            of = ["…", of[-1]]
        offers = " ".join(f"--offers {each}" for each in of)
        return f"`weft net keys FOLDER --name {shlex.quote(self.name)} {offers}`"


def member_of(certificate: dict[str, Any]) -> Member:
    """Returns the Member that a certificate describes. The certificate is given as the dictionary
    of ssl's getpeercert().
    """
    subject = [value for part in certificate.get("subject", ()) for value in part]
    name = next((str(value) for key, value in subject if key == "commonName"), "?")
    uris: Sequence[str] = [v for k, v in certificate.get("subjectAltName", ()) if k == "URI"]
    found = tuple(u.removeprefix(SCHEME) for u in uris if u.startswith(SCHEME))
    return Member(name, found)
