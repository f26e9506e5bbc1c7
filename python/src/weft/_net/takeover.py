"""Decides whether the home of an entry is gone, so that its member may take the name at once
(WIRE-NETWORKS.md 17.3).

Invariant: a home counts as gone only if each way to it is known to lead nowhere. If a machine, a
port or the server does not answer, the home may still exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from typing import Any

from weft._net import link as _net_link
from weft._net import relay as _net_relay
from weft.errors import BadUse

__all__ = ["is_gone"]

PATIENCE = 2.0  # seconds for a connection with the home's address


async def is_gone(entry: dict[str, Any], fingerprint: str, relay: _net_relay.Relay | None) -> bool:
    """Returns whether the entry is this member's, and its home is certainly gone.

    Args:
        entry: the fields of the entry; {} if it is not an entry of Weft.
        fingerprint: the fingerprint of this program's certificate.
        relay: this program's relay, or None if it uses none.
    """
    if entry.get("fingerprint") != fingerprint:
        return False
    address = entry["address"]
    if address and not await _refuses(address):
        return False
    if entry.get("relay") is True:
        return relay is not None and await relay.leads_nowhere(f"{fingerprint}.{entry['home']}")
    # A loopback address can be that of another machine.
    return bool(address) and not _is_loopback(address)


async def _refuses(address: str) -> bool:
    """Returns whether the machine reports that no program listens at the address."""
    try:
        host, port = _net_link.parted(address)
        connects = asyncio.open_connection(host, port)
        _, writer = await asyncio.wait_for(connects, PATIENCE)
    except ConnectionRefusedError:
        return True
    except (OSError, asyncio.TimeoutError, BadUse, ValueError):
        return False
    writer.transport.abort()
    return False


def _is_loopback(address: str) -> bool:
    host, _ = _net_link.parted(address)
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    return host == "localhost"
