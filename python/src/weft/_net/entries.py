"""The entries in the bucket, one for each name (WIRE-NETWORKS.md 17.3, 17.9). Every member can
write into the bucket, so bytes that are not an entry of Weft are refused, or left out of a list.
"""

from __future__ import annotations

import contextlib
from typing import Any

from weft._net import foreign_json as _foreign_json
from weft._net import name_rules as _net_named
from weft.errors import BadUse

__all__ = ["BUCKET", "MAX_BYTES", "MAX_HOSTS", "host_of", "named_of", "of", "where"]

BUCKET = "weft_names"
MAX_BYTES = 65_536  # the largest number of bytes of an entry
# the largest number of characters that are shown of an address, and of a program's name
SHOWN = 260
MAX_HOSTS = 10_000  # the largest number of OS processes that the agent of one machine may offer

Entry = dict[str, Any]


def of(packed: bytes, name: str) -> Entry:
    """Returns the entry that the bytes contain.

    Raises:
        BadUse: the bytes are not an entry of Weft.
    """
    with contextlib.suppress(ValueError):
        entry = _foreign_json.parsed(packed, MAX_BYTES)
        texts = ("address", "fingerprint", "home", "host")
        if (
            isinstance(entry, dict)
            and all(isinstance(entry.get(t), str) for t in texts)
            and all(isinstance(entry.get(b), bool) for b in ("readers", "writers"))
            and isinstance(entry.get("ticket"), (str, type(None)))
            and "ticket" in entry
        ):
            shown = {t: _foreign_json.shown(entry[t], SHOWN) for t in ("address", "host")}
            return {**entry, **shown}
    raise BadUse(
        f"the value under {name!r} in the bucket {BUCKET} is not an entry of Weft: another program writes to the bucket"
    )


def where(entry: Entry) -> str:
    return f"at {entry['address']}" if entry["address"] else "by the relay"


def _relayed(entry: Entry) -> int:
    place = entry.get("relayed")
    return place if isinstance(place, int) and 0 <= place < 1 << 32 else 0


def named_of(name: str, e: Entry) -> _net_named.Named:
    """Returns the entry as Network.names lists it."""
    return _net_named.Named(name, e["host"], e["address"], e["readers"], e["writers"], _relayed(e))


def host_of(name: str, e: Entry) -> _net_named.Host | None:
    """Returns the host of this entry, or None if it is not the entry of a host."""
    allow, hosts = e.get("allow"), e.get("hosts")
    if not isinstance(allow, list) or not isinstance(hosts, int) or not 0 < hosts <= MAX_HOSTS:
        return None
    runs = [_foreign_json.shown(str(run), SHOWN) for run in allow]
    trust, called = e.get("trust") is True, name.removeprefix(_net_named.HOST)
    return _net_named.Host(called, e["address"], runs, hosts, trust, e["home"], _relayed(e))
