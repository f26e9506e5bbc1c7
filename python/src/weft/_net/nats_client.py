"""The client of the network's NATS server, which accepts only TLS (WIRE-NETWORKS.md 17.1).

nats-py continues without encryption if the server's first line does not ask for TLS, even if the
program has given a context for TLS. An attacker on the way could remove that word from the line,
and then read the names and answer in the server's place.
"""

from __future__ import annotations

from typing import Any

from nats import errors
from nats.aio.client import Client

__all__ = ["connect"]


class _OnlyTLS(Client):
    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        # nats-py calls this method for the first line of each connection, before it decides about
        # TLS and before it sends anything.
        if initial_connection and info.get("tls_required") is not True:
            raise errors.Error("the server does not ask for TLS, so nothing was sent to it")
        await super()._process_info(info, initial_connection)

    def drop(self) -> None:
        """Closes the connection. (close() would wait forever after a failed handshake of TLS.)"""
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]


async def connect(url: str, **options: Any) -> Client:
    """Does what nats.connect() does, but only with TLS.

    Raises:
        nats.errors.Error: the server does not ask for TLS, or cannot be used.
        OSError: the server cannot be reached.
    """
    client = _OnlyTLS()
    try:
        await client.connect(url, **options)
    except BaseException:  # nats-py would leave the connection open
        client.drop()
        raise
    return client
