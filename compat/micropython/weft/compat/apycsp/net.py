"""aPyCSP's net: a program uses the channels of another program by name, over TCP. Each message is a
line of JSON. The other program may run on CPython, where `weft.compat.apycsp.net` has the same
protocol.

There are no keys and no encryption: any program that reaches the port may read, write and poison
the registered channels. So without a host name the server listens only on this machine.

Invariants
- Values are JSON: nothing that another program sends is executed.
- One task of a connection writes to its stream, because two tasks at one `drain` would send bytes
  twice. Nothing cancels this task before the connection ends.
- An operation that a peer requests is a task. The task is cancelled, and its operation leaves the
  channel, when the connection ends or when the peer reports that it no longer waits for the answer.
- Each answer wakes the request with its number. The end of the connection wakes all other requests.
"""

import asyncio
import json

from ...errors import BadUse
from . import Channel, PoisonException

PORT = "8890"
LONGEST = 1 << 16  # a message has fewer bytes than this
POISON = "ChannelPoisonException"
TCP, NODELAY = 6, 1  # IPPROTO_TCP and TCP_NODELAY, which MicroPython does not name

_registered = {}
_connections = []  # the connections that get_channel_proxy asks, in the order of creation


def register_channel(chan, name):
    """Offers the channel to other programs under the name `name`."""
    if _registered.setdefault(name, chan) is not chan:
        raise BadUse("a channel %r is registered already: call unregister_channel first" % name)


def unregister_channel(name):
    """Stops offering the channel with this name."""
    if _registered.pop(name, None) is None:
        raise BadUse("unregister_channel: no channel %r is registered" % name)


def create_registered_channel(name):
    """Makes a channel, registers it under this name, and returns it."""
    chan = Channel(name)
    register_channel(chan, name)
    return chan


def _host_and_port(host_port):
    host, _, port = str(host_port).rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise BadUse("an address must be 'PORT' or 'HOST:PORT', not %r" % (host_port,))
    return host or "127.0.0.1", int(port)


def _check(v):
    """Refuses a value that JSON cannot represent. (MicroPython's json would write the text of any
    object.)"""
    if isinstance(v, (list, tuple)):
        for x in v:
            _check(x)
    elif isinstance(v, dict):
        for k, x in v.items():
            if not isinstance(k, str):
                raise BadUse("a key of a value for another program must be a str, not %r" % (k,))
            _check(x)
    elif isinstance(v, float):
        if v - v != 0:
            raise BadUse("a number for another program must be finite, not %r" % v)
    elif v is not None and not isinstance(v, (str, int)):
        raise BadUse("a value for another program must be JSON, not %r" % (v,))


def _packed(message):
    try:
        _check(message)
    except RuntimeError:
        raise BadUse("a value for another program is too deep, or contains itself")
    line = json.dumps(message).encode() + b"\n"
    if len(line) >= LONGEST:
        raise BadUse("a message must have fewer than %d bytes, not %d" % (LONGEST, len(line)))
    return line


class _Request:
    """A request that waits for its answer."""

    def __init__(self):
        self.told = asyncio.Event()
        self.answer = None


class _Connection:
    """A connection with one other program, which may send requests and answers. `serves`: this side
    performs the operations that the other program requests.
    """

    def __init__(self, stream, serves):
        self.stream, self.serves = stream, serves
        self.number = 0
        self.waiting = {}  # requests by their number
        self.asked = {}  # tasks by the number of the peer's request
        self.lines = []
        self.more = asyncio.Event()
        self.over = ""
        self.listener = None  # the task that reads
        try:  # otherwise a line waits until the peer has confirmed the line before it
            stream.s.setsockopt(TCP, NODELAY, 1)
        except (AttributeError, OSError):
            pass  # this port has no such option
        asyncio.create_task(self._writes())

    def _send(self, message):
        self.lines.append(_packed(message))
        self.more.set()

    async def _writes(self):
        try:
            while True:
                await self.more.wait()
                self.more.clear()
                while self.lines:
                    self.stream.write(self.lines.pop(0))
                    await self.stream.drain()
                if self.over:
                    break
        except OSError as e:
            self.close("the connection with the other program failed: %s" % e)
        await self.stream.wait_closed()

    async def send_recv_cmd(self, op, **more):
        """Sends a request to the other program, and returns its answer. Raises PoisonException if
        the channel is poisoned, OSError if the connection has ended, and BadUse if the other
        program refuses the request.
        """
        if self.over:
            raise OSError(self.over)
        self.number += 1
        number, request = self.number, _Request()
        more.update(op=op, msgno=number)
        self._send(more)
        self.waiting[number] = request
        try:
            await request.told.wait()
        except asyncio.CancelledError:
            if not self.over and not request.told.is_set():
                self._send({"op": "cancel", "msgno": number})
            raise
        finally:
            del self.waiting[number]
        answer = request.answer
        if answer is None:
            raise OSError(self.over)
        if answer.get("exc") == POISON:
            raise PoisonException("%s of %s" % (op, more.get("name")))
        if answer.get("err"):
            raise BadUse("the other program: %s" % str(answer["err"])[:500])
        return answer.get("ret")

    async def listen(self):
        """Reads messages until the connection ends."""
        why = "the other program has closed the connection"
        self.listener = asyncio.core.cur_task
        try:
            while True:
                line = await self.stream.readline()
                if not line:
                    break
                if len(line) >= LONGEST:
                    raise ValueError("a message is too long")
                message = json.loads(line)
                if not isinstance(message, dict):
                    raise ValueError("a message must be a JSON object")
                if "ack" in message:
                    request = self.waiting.get(message["ack"])
                    if request is not None:
                        request.answer = message
                        request.told.set()
                else:
                    self._begin(message)
        except (OSError, ValueError, TypeError) as e:
            why = "the connection with the other program failed: %s" % e
        except asyncio.CancelledError:
            if not self.over:
                raise
        finally:
            self.close(why)

    def _begin(self, message):
        number = message.get("msgno")
        cancel = message.get("op") == "cancel"
        if not isinstance(number, int) or (number in self.asked and not cancel):
            raise ValueError("expected a new message number, got %r" % (number,))
        if not cancel:
            self.asked[number] = asyncio.create_task(self._serve(number, message))
        elif number in self.asked:
            self.asked[number].cancel()

    async def _serve(self, number, message):
        answer = {"ack": number, "ret": None, "exc": None}
        try:
            try:
                answer["ret"] = await self._perform(message)
                self._send(answer)
            except PoisonException:
                answer["exc"] = POISON
                self._send(answer)
            except BadUse as e:
                answer["ret"], answer["err"] = None, str(e)
                self._send(answer)
        except asyncio.CancelledError:
            pass  # no request waits for this answer
        finally:
            self.asked.pop(number, None)

    async def _perform(self, message):
        op, name = message.get("op"), message.get("name")
        if op == "ping":
            return "ack"
        if op == "print":
            print("Server asked to print", message.get("args"))
            return "ack"
        if op == "chanlist":
            return list(_registered) if self.serves else []
        if op not in ("read", "write", "poison"):
            raise BadUse("there is no command %r" % (op,))
        chan = _registered.get(name) if self.serves and isinstance(name, str) else None
        if chan is None:
            raise BadUse("no channel %r is registered" % (name,))
        if op == "read":
            return await chan.read()
        return await (chan.write(message.get("msg")) if op == "write" else chan.poison())

    def close(self, why="this program has closed the connection"):
        """Ends the connection: operations that wait for an answer get OSError."""
        if self.over:
            return
        self.over = why
        if self in _connections:
            _connections.remove(self)
        for task in list(self.asked.values()):
            task.cancel()
        for request in self.waiting.values():
            request.told.set()
        if self.listener not in (None, asyncio.core.cur_task):
            self.listener.cancel()
        self.more.set()  # the task that writes closes the stream


class _Server:
    """A server of asyncio, with the methods that programs for CPython call."""

    def __init__(self, server):
        self.server = server
        self.closed = False

    async def serve_forever(self):
        await self.server.wait_closed()

    def close(self):
        """Closes the server. A program may await the result, as aPyCSP's examples do."""
        if not self.closed:
            self.closed = True
            self.server.close()
        return asyncio.sleep(0)

    async def wait_closed(self):
        await self.server.wait_closed()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()
        await self.server.wait_closed()


async def start_server(host_port=PORT):
    """Serves the registered channels at "HOST:PORT", or at "PORT" for this machine alone. Returns
    the server.
    """
    host, port = _host_and_port(host_port)

    async def came(reader, writer):
        connection = _Connection(writer, True)
        _connections.append(connection)
        await connection.listen()

    return _Server(await asyncio.start_server(came, host, port))


async def setup_client(host_port="127.0.0.1:" + PORT, can_serve=False):
    """Connects to a server, so that get_channel_proxy finds the server's channels. With `can_serve`
    the other program can also use the channels that are registered here. Returns the connection.
    """
    host, port = _host_and_port(host_port)
    _, stream = await asyncio.open_connection(host, port)
    connection = _Connection(stream, can_serve)
    _connections.append(connection)
    asyncio.create_task(connection.listen())
    return connection


class _End:
    """An end of a channel of another program. `await end(…)` reads, or writes its argument."""

    def __init__(self, chan, op):
        self._chan, self.op = chan, op

    def __call__(self, *value):
        return self._chan._ask(self.op, *value)

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self()
        except PoisonException:
            raise StopAsyncIteration

    def channel(self):
        return self._chan

    def poison(self):
        return self._chan.poison()

    def alt_pending_write(self, value):
        raise BadUse("%s is in another program: it cannot be in an Alternative" % self._chan.name)


class RemoteChannel:
    """A channel of another program; get_channel_proxy makes it."""

    def __init__(self, name, connection):
        self.name, self._connection = name, connection
        self.read = self._read = _End(self, "read")
        self.write = self._write = _End(self, "write")

    async def _ask(self, op, *value):
        if op == "write":
            return await self._connection.send_recv_cmd(op, name=self.name, msg=value[0])
        return await self._connection.send_recv_cmd(op, name=self.name)

    async def poison(self):
        """Poisons the channel, for all programs."""
        await self._ask("poison")

    def __aiter__(self):
        return self.read

    def __repr__(self):
        return "<RemoteChannel %s>" % self.name


async def get_channel_proxy(name):
    """Returns the channel with this name, of the first connected program that has one."""
    for connection in list(_connections):
        try:
            if name in await connection.send_recv_cmd("chanlist"):
                return RemoteChannel(name, connection)
        except OSError:
            pass  # that program has ended
    raise BadUse(
        "no channel %r is registered with the %d programs connected" % (name, len(_connections))
    )
