"""Finds out why a NATS server cannot be used, by a connection to its port after the client has
failed (WIRE-NETWORKS.md 17.3).

sentence()
    ├─there is no connection──► no such name, a closed port, a firewall
    ├─the first line is not that of a NATS server──► another port, another server
    ├─the fields of that line lack something──► no TLS, no JetStream
    └─otherwise, by the client's error──► other keys, or the client's own words
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from weft._net import foreign_json as _foreign_json
from weft._net import keys as _net_keys

__all__ = ["sentence"]

CONNECTS, SPEAKS = 3.0, 2.0  # seconds for a connection, and for the first line
_INFO = b"INFO "
_LINE = 1 << 16  # the largest number of bytes of the first line
_UP = "`weft net up` starts a server for a developer, and prints where it is"


async def sentence(url: str, error: BaseException, why: str) -> str:
    """Returns why the server cannot be used.

    Args:
        url: the server's URL, with host and port.
        error: the exception that the client has raised.
        why: the client's own description of the error.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 4222
    except ValueError as wrong:
        return f"{url!r} is not nats://HOST:PORT ({wrong})"
    where = f"{host}:{port}"
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(host, port, limit=_LINE), CONNECTS
        )
    except socket.gaierror as wrong:
        return f"no machine has the name {host!r} here ({wrong.strerror}). Is the name right?"
    except ConnectionRefusedError:
        return f"nothing listens at {where}: is it up ({_UP}), and is the port right?"
    except asyncio.TimeoutError:
        return (
            f"nothing answers at {where} within {CONNECTS:g} seconds: a firewall lets nothing through to that port, "
            "or the machine is off"
        )
    except OSError as wrong:
        return (
            f"no way leads to {where} ({wrong.strerror or wrong}): a firewall refuses it, or the machine is off, or in "
            "another network"
        )
    try:
        first = await _first_line(reader)
    finally:
        writer.transport.abort()
    if first is None or not first.startswith(_INFO):
        begins = "says nothing" if not first else f"begins with {first[:30]!r}"
        return (
            f"what listens at {where} is no NATS server: it {begins}. Is the port right? "
            f"A program of the network has another address than the server; {_UP}"
        )
    return _by_fields(where, _fields(first), error, why)


async def _first_line(reader: asyncio.StreamReader) -> bytes | None:
    """Returns the first line that the other side sends, or None if it sends nothing."""
    with contextlib.suppress(OSError, asyncio.TimeoutError, ValueError):
        return await asyncio.wait_for(reader.readline(), SPEAKS)
    return None


def _fields(first: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        fields = _foreign_json.parsed(first.removeprefix(_INFO), _LINE)
        if isinstance(fields, dict):
            return fields
    return {}


def _by_fields(where: str, fields: dict[str, Any], error: BaseException, why: str) -> str:
    """Returns why a NATS server with these fields cannot be used."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _net_keys.OUT_OF_TIME:
            return (
                f"the certificate of the server at {where} is not good now ({error.verify_message}): "
                "look at the clocks of both machines"
            )
        return (
            f"the server at {where} has no TLS by the authority of these keys: it is the server of another network, "
            "or the keys are those of another (`weft net keys` makes keys where the authority's key is)"
        )
    if isinstance(error, ssl.SSLError):
        return (
            f"the server at {where} refuses the certificate of these keys, or TLS 1.3 ({error.reason or error}): keys and "
            "server need one authority (`weft net keys` makes keys where the authority's key is)"
        )
    if not fields.get("tls_required"):
        return f"the NATS server at {where} has no TLS by the authority of these keys: it speaks in the clear. {_UP}"
    if not fields.get("jetstream"):
        return f"the NATS server at {where} has no JetStream, which keeps the names: switch it on (`jetstream {{}}`)"
    return (
        f"the server at {where} was reached, and the client failed ({why}): does it let in the certificate of these keys, "
        "and may that use JetStream?"
    )
