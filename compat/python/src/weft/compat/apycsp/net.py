"""aPyCSP's net: a program uses the channels of another program by name, over TCP, with a line of
JSON for each message.

    there: register_channel(c, "results"), start_server(port)      {"op": "read", "name": …, "msgno": 7} ──► c.read()
    here:  setup_client("host:port"), get_channel_proxy("results") ◄── {"ack": 7, "ret": value, "exc": null}

This module has no keys and no encryption: any program that reaches the port may read, write and
poison the registered channels. So without a host name the server listens only on this machine.
`weft.net` has keys and encryption, and its ends may be guards of a choice.

Invariants
- Values are JSON: nothing that another program sends is executed.
- An operation that a peer requests is a task of its connection. When the connection ends, or the
  peer reports that the operation is no longer awaited, the task is cancelled, and its operation
  leaves the channel. A value that was read and not delivered by then is lost.
- Each answer resolves the future with its number; the end of the connection resolves the
  remaining futures.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable
from typing import Any

from weft.compat.apycsp import Channel, Iterated, PoisonException
from weft.errors import BadUse

__all__ = [
    "create_registered_channel",
    "get_channel_proxy",
    "register_channel",
    "setup_client",
    "start_server",
    "unregister_channel",
]

PORT = "8890"
LONGEST = 1 << 24  # the largest number of bytes of a message
POISON = "ChannelPoisonException"

_registered: dict[str, Channel] = {}
# The connections that get_channel_proxy tries, in the order in which they were made.
_connections: list[_Connection] = []


def register_channel(chan: Channel, name: str) -> None:
    """Offers the channel to other programs under the name `name`."""
    if _registered.setdefault(name, chan) is not chan:
        raise BadUse(f"register_channel: there is a channel {name!r} already: unregister it first")


def unregister_channel(name: str) -> None:
    """Undoes register_channel.

    Raises:
        BadUse: no channel is registered under this name.
    """
    if _registered.pop(name, None) is None:
        raise BadUse(f"unregister_channel: no channel {name!r} is registered")


def create_registered_channel(name: str) -> Channel:
    """Makes a channel, and registers it."""
    chan = Channel(name)
    register_channel(chan, name)
    return chan


def _host_and_port(host_port: str) -> tuple[str, int]:
    host, _, port = str(host_port).rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise BadUse(f"an address must be 'PORT' or 'HOST:PORT', not {host_port!r}")
    return host or "127.0.0.1", int(port)


class _Connection:
    """A connection with one other program, which may send requests and answers.

    Args:
        serves: this side performs the operations that the other program requests.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serves: bool
    ) -> None:
        self._reader, self._writer, self._serves = reader, writer, serves
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._asked: dict[Any, asyncio.Task[None]] = {}
        self._over = ""

    async def send_recv_cmd(self, op: str, **more: Any) -> Any:
        """Sends a request to the other program, and waits for its answer.

        Raises:
            PoisonException: the channel is poisoned. ConnectionError: the connection ended. BadUse:
            a value cannot be written as JSON; the other program refuses.
        """
        if self._over:
            raise ConnectionError(self._over)
        number = next(self._numbers)
        line = _packed({"op": op, "msgno": number, **more})
        self._answers[number] = future = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line)
            await self._writer.drain()
            answer = await future
        except asyncio.CancelledError:
            if (
                future.cancelled() or not future.done()
            ):  # the other program must not perform an operation that is no longer awaited
                self._writer.write(_packed({"op": "cancel", "msgno": number}))
            raise
        finally:
            del self._answers[number]
        if answer.get("exc") == POISON:
            raise PoisonException(f"{op} of {more.get('name')}", None, None, None, 1, True)
        if answer.get("err"):
            raise BadUse(f"the other program: {str(answer['err'])[:500]}")
        return answer.get("ret")

    async def listen(self) -> None:
        """Reads messages until the connection ends."""
        why = "the other program has closed the connection"
        try:
            while line := await self._reader.readline():
                request = json.loads(line)
                if not isinstance(request, dict):
                    raise ValueError("a message is an object")
                if "ack" in request:
                    future = self._answers.get(request["ack"])
                    if future is not None and not future.done():
                        future.set_result(request)
                    continue
                self._begin_request(request)
        # the connection was reset, or the text is not JSON of the expected form
        except (OSError, ValueError, TypeError) as error:
            why = f"the connection with the other program failed: {error}"
        finally:
            self.close(why)

    def _begin_request(self, request: dict[str, Any]) -> None:
        number = request.get("msgno")
        if not isinstance(number, int) or (number in self._asked and request.get("op") != "cancel"):
            raise ValueError(
                f"the other program sent the message number {number!r}, which must be a new whole number"
            )
        if request.get("op") == "cancel":
            if number in self._asked:
                self._asked[number].cancel()
            return
        self._asked[number] = task = asyncio.ensure_future(self._serve(request))
        task.add_done_callback(lambda _: self._asked.pop(number, None))

    async def _serve(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"ack": request.get("msgno"), "ret": None, "exc": None}
        try:
            answer["ret"] = await self._perform(request)
            line = _packed(answer)
        except PoisonException:
            line = _packed({**answer, "exc": POISON})
        except BadUse as error:
            line = _packed({**answer, "ret": None, "err": str(error)})
        with contextlib.suppress(OSError):
            self._writer.write(line)
            await self._writer.drain()

    async def _perform(self, request: dict[str, Any]) -> Any:
        """Performs a request of the other program; returns the result, or raises its exception."""
        op, name = request.get("op"), request.get("name")
        if op == "ping":
            return "ack"
        if op == "print":
            print(f"Server asked to print {request.get('args')}")
            return "ack"
        if op == "chanlist":
            return list(_registered) if self._serves else []
        chan = _registered.get(name) if self._serves and isinstance(name, str) else None
        if op not in ("read", "write", "poison"):
            raise BadUse(f"there is no command {op!r}")
        if chan is None:
            raise BadUse(f"no channel {name!r} is registered")
        if op == "read":
            return await chan.read()
        return await (chan.write(request.get("msg")) if op == "write" else chan.poison())

    def close(self, why: str = "this program has closed the connection") -> None:
        """Ends the connection: operations that wait for an answer get ConnectionError. A second
        call has no effect.
        """
        if self._over:
            return
        self._over = why
        if self in _connections:
            _connections.remove(self)
        for task in list(self._asked.values()):
            task.cancel()
        for future in self._answers.values():
            if not future.done():
                future.set_exception(ConnectionError(why))
        self._writer.close()


def _packed(message: dict[str, Any]) -> bytes:
    try:
        line = json.dumps(message).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise BadUse(f"a value for another program must be JSON: {error}") from None
    if len(line) >= LONGEST:
        raise BadUse(f"a message has at most {LONGEST} bytes, not {len(line)}")
    return line


async def start_server(host_port: str = PORT) -> asyncio.Server:
    """Serves the registered channels. Once the server is closed, no program can connect any more.

    Args:
        host_port: "HOST:PORT", or a port of this machine; port 0 means a free port.
    Raises:
        OSError: the port is in use. BadUse: `host_port` is not an address.
    """
    host, port = _host_and_port(host_port)

    async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer, serves=True)
        _connections.append(connection)
        await connection.listen()

    return await asyncio.start_server(came, host, port, limit=LONGEST)


_listening: set[asyncio.Task[None]] = set()


async def setup_client(
    host_port: str = f"127.0.0.1:{PORT}", can_serve: bool = False
) -> _Connection:
    """Connects to a server, whose channels get_channel_proxy then finds.

    Args:
        can_serve: the other program can also use the channels that are registered here.
    Raises:
        OSError: no program listens at that address. BadUse: `host_port` is not an address.
    """
    host, port = _host_and_port(host_port)
    reader, writer = await asyncio.open_connection(host, port, limit=LONGEST)
    connection = _Connection(reader, writer, can_serve)
    _connections.append(connection)
    task = asyncio.ensure_future(connection.listen())
    _listening.add(task)
    task.add_done_callback(_listening.discard)
    return connection


class _End(Iterated):
    """An end of a channel of another program; it is used by `await end(…)`."""

    def __init__(self, chan: RemoteChannel, ask: Callable[..., Any]) -> None:
        self._chan, self.__ask = chan, ask

    def __call__(self, *value: Any) -> Any:
        return self.__ask(*value)

    def channel(self) -> RemoteChannel:
        return self._chan

    async def poison(self) -> None:
        await self._chan.poison()

    def alt_pending_write(self, obj: Any) -> Any:
        """Refuses the guard: as in aPyCSP, a choice cannot contain a channel of another program.

        Raises:
            BadUse: always.
        """
        raise BadUse(
            f"{self._chan.name} is in another program, and not for an Alternative: "
            "weft.net has ends that are"
        )


class RemoteChannel:
    """A channel of another program; get_channel_proxy makes it.

    Attributes:
        name: the name under which the other program has registered it. read, write: its ends:
        `await c.read()`, `await c.write(value)`, which returns 0.
    """

    def __init__(self, name: str, connection: _Connection) -> None:
        self.name, self._connection = name, connection
        self.read = _End(self, self._read)
        self.write = _End(self, self._write)

    async def _read(self) -> Any:
        return await self._connection.send_recv_cmd("read", name=self.name)

    async def _write(self, value: Any) -> Any:
        return await self._connection.send_recv_cmd("write", name=self.name, msg=value)

    async def poison(self) -> None:
        """Poisons the channel, for all programs."""
        await self._connection.send_recv_cmd("poison", name=self.name)

    def __aiter__(self) -> _End:
        return self.read

    def __repr__(self) -> str:
        return f"<RemoteChannel {self.name}>"


async def get_channel_proxy(name: str) -> RemoteChannel:
    """Returns the channel with this name, of the first connected program that has such a channel.

    Raises:
        BadUse: no program has such a channel.
    """
    for connection in list(_connections):
        with contextlib.suppress(ConnectionError):
            if name in await connection.send_recv_cmd("chanlist"):
                return RemoteChannel(name, connection)
    raise BadUse(
        f"no channel {name!r} is registered with the {len(_connections)} programs connected"
    )
