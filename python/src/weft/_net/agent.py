"""An agent keeps OS processes on its machine, in which programs on other machines run the functions
that the agent allows (WIRE-NETWORKS.md 17.9, 17.12). `weft host` is an agent.

    welcome(): a caller asks for a call
        ├─not allowed, another source, or no OS process──► it is refused
        ├─its source goes along, and is not on the shelf──► the caller is asked for it
        └─a thread runs serve() in one of `Hosts`
            ──the OS process comes to the agent's socket──► couple(): bytes to and from the caller
            ──one of the two ends──► over
    welcome(): a caller asks for the fate of a call ──► how the call's OS process died
    welcome(): a caller asks where a call is ──► where its processes wait

Invariants
- Fields are used on the loop's thread only; but any thread may call `_hosts`.
- A caller's message is JSON. No part of it is run, and no module is imported here. The OS processes
  import the modules of the allowed functions: one of them does so when the agent begins.
- Each call has a thread that waits for it. Its future in `_calls` is set when the call has ended,
  and kept for KEPT further calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft._distributed_deadlock import rounds as _rounds
from weft._hosts import host as _host
from weft._hosts import sources as _sources
from weft._hosts.hosts import Hosts
from weft._net import calls as _net_calls
from weft._net import kill_points as _net_steps
from weft._net import link as _net_link
from weft._net import name_rules as _net_named
from weft._net import parcels as _net_parcels
from weft._net import shelf as _net_shelf
from weft.errors import BadUse, ProcessDied

__all__ = ["Agent"]

KEPT = 1000  # the number of calls whose futures are kept
MAX_ALLOWED = 60_000  # bytes; an entry has at most 65,536
ROOM = 3000  # the largest number of bytes of a fate, and of the lines that say where a call is
ASKS = 0.5  # seconds within which an OS process must report where a call is
# Seconds within which it must be known how the OS process of a call ended. The caller waits longer:
# GREETING (_net/link.py).
FATE = 8.0
LEAVES = 3.0  # seconds within which the calls must end when their agent ends
# Seconds within which an OS process must have connected for a call. The caller waits longer: BEGINS
# (_net/link.py).
START = 60.0
# How many OS processes may die before one connects for a call. Until then no part of the call has
# run.
TRIES = 3


class _Folder:
    """A temporary folder, which no other user can enter. Making one also removes the folders that
    killed agents of this user have left. A folder has its final name only once its lock is held. So
    if the lock of a folder with such a name is free, the folder's owner has ended.
    """

    PREFIX, UNNAMED = "weft-agent-", "weft-unnamed-"

    def __init__(self) -> None:
        made = tempfile.mkdtemp(prefix=self.UNNAMED)
        self._lock: int | None = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # on a file system without locks, locking fails
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        own = Path(made)
        self.path = own.with_name(own.name.replace(self.UNNAMED, self.PREFIX))
        own.rename(self.path)
        for other in own.parent.glob(f"{self.PREFIX}*"):
            if other != self.path:
                # another agent owns the folder, or is just removing it
                with contextlib.suppress(OSError):
                    _remove_left(other)

    def remove(self) -> None:
        """Removes the folder. A second call does nothing."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None


def _remove_left(path: Path) -> None:
    """Removes a folder whose owner was killed.

    Raises:
        OSError: the folder's owner still runs, the folder belongs to another user, or `path` is not
            a folder.
    """
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


class Agent:
    """Serves as the host `name` of the network.

    Args:
        allow: the functions that may be run, each as "module:function"; "source" allows any
            function whose source the caller sends.
        hosts: how many OS processes the agent has. None means one for each CPU.
        limits: further arguments of Hosts.
    Raises:
        BadUse: `name` is taken, is not a name, or is not granted by the network's keys; `allow` is
            empty, or names a function that is not found here; a limit makes no sense.
        OSError: the system cannot start a process.
    """

    def __init__(
        self, network: Any, name: str, allow: Sequence[str], hosts: int | None, **limits: Any
    ) -> None:
        self.name = _net_named.checked(name)
        for run in allow:
            _net_calls.checked_allow(run)
        if not allow:
            raise BadUse(
                "a host runs what --allow MODULE:FUNCTION names, or --allow source: give it at least once"
            )
        self.allow = sorted(set(allow))
        self._own = [run for run in self.allow if run != _net_parcels.SOURCE]
        if len(json.dumps(self.allow)) > MAX_ALLOWED:
            raise BadUse(
                f"the list of what host {self.name} runs has more than {MAX_ALLOWED} bytes: allow fewer functions"
            )
        network._meeting.check(_net_named.HOST + self.name)
        self._network = network
        self._pass = secrets.token_hex(16)
        self._number, self._limits = hosts, limits
        # Source that callers send runs in OS processes of its own. So if the agent allows nothing
        # else, it starts no OS processes for its own files.
        self._hosts = Hosts(hosts, **limits) if self._own else None
        self.size = hosts or len(_host.cpus_of_this_process())
        self._old: list[Hosts] = []
        self._seen: dict[str, str] = {}  # module → the digest that was asked for last
        self._coming: dict[str, asyncio.Future[tuple[socket.socket, int]]] = {}
        self._calls: dict[str, asyncio.Future[dict[str, Any] | None]] = {}
        # call → the pid of its OS process, and its name in that OS process
        self._running: dict[str, tuple[int, str]] = {}
        self._greets: set[asyncio.Task[None]] = set()
        self._folder = _Folder()
        self._path = f"{self._folder.path}/s"
        self._shelf = _net_shelf.Shelf(
            self._folder.path,
            lambda first, args: Hosts(hosts, initializer=first, initargs=args, **limits),
        )
        try:
            self._look_at_allowed()
            self._server = network._call(self._listen())
            network._call(
                network._meeting.offer(_net_named.HOST + self.name, None, False, False, self)
            )
        except BaseException:
            self._end_hosts()
            self._folder.remove()
            raise

    def _look_at_allowed(self) -> None:
        """Makes one of the OS processes import the modules of the allowed functions.

        Raises:
            BadUse: some of the functions cannot be run here.
        """
        own = self._hosts
        if own is None:
            return
        for module in {_net_calls.parted_run(run)[0] for run in self._own}:
            sources = _net_calls.sources_here(module)
            # A missing source is reported by the OS process that imports the module.
            if sources is not None:
                self._seen[module] = _sources.digest(sources)
        wrong: list[str] = []

        def look() -> None:
            try:
                wrong.extend(own.call(_net_calls.unfit, (self._own,), {}))
            except ProcessDied as error:
                wrong.append(f"the OS process that imported its modules has died: {error}")
            except BaseException as error:
                wrong.append(f"{type(error).__name__}: {error}")

        # A separate thread runs look(). Otherwise this thread would wait for an OS process that has
        # just begun, which would be reported as a standstill (rule 10.6).
        looks = threading.Thread(target=look, name="weft: looks at what is allowed", daemon=True)
        looks.start()
        looks.join()
        if wrong:
            raise BadUse(
                f"host {self.name} cannot run what --allow names: {'; '.join(wrong)}. "
                "Start it where that can be imported"
            )

    async def _listen(self) -> asyncio.Task[None]:
        listens = socket.socket(socket.AF_UNIX)
        listens.bind(self._path)
        listens.listen(128)
        listens.setblocking(False)
        return asyncio.ensure_future(self._accept(listens))

    async def _accept(self, listens: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listens:
            while True:
                child, _ = await loop.sock_accept(listens)
                child.setblocking(False)
                task = asyncio.ensure_future(self._take_for_call(child))
                self._greets.add(task)
                task.add_done_callback(self._greets.discard)

    def entry(self) -> dict[str, Any]:
        """Returns the fields of the agent's entry in the network."""
        return {
            "allow": self.allow,
            "hosts": self.size,
            "trust": bool(self._network._meeting.trust),
        }

    def knows(self, shown: Any) -> bool:
        return isinstance(shown, str) and secrets.compare_digest(
            shown.encode(), self._pass.encode()
        )

    async def _take_for_call(self, child: socket.socket) -> None:
        """Receives a connection from one of the OS processes, which is ready for a call."""
        loop = asyncio.get_running_loop()
        received = b""
        try:
            while len(received) < _net_calls.TOKEN:
                more = await loop.sock_recv(child, _net_calls.TOKEN - len(received))
                if not more:
                    raise EOFError
                received += more
            token, pid = received.split()
            self._coming.pop(token.decode()).set_result((child, int(pid)))
        except (OSError, EOFError, ValueError, KeyError, asyncio.InvalidStateError):
            child.close()  # no call waits for this OS process any longer

    async def welcome(self, request: dict[str, Any]) -> _net_link.Welcome:
        """Returns the answer to a caller's first message.

        Raises:
            Refused: the agent does not do what the message asks; the text says why.
        """
        meeting = self._network._meeting
        if "fate" in request:
            fate = await self._fate(request["fate"])
            return self._welcome({"fate": fate}, lambda streams: _net_link.close_writer(streams[1]))
        if "where" in request:
            where = await self._where(request["where"])
            return self._welcome(
                {"where": where}, lambda streams: _net_link.close_writer(streams[1])
            )
        run: Any = request.get("run")
        trusted: bool = meeting.trust and request.get("trust") is True
        what = run, trusted, request.get("many") is True
        own = run in self._own or run == _net_calls.OBSERVER
        if own and request.get("folder") is not True:
            if wrong := _net_calls.fault(self.name, run, request):
                raise _net_link.Refused(wrong)
            _net_steps.at("agent.asked")
            # the agent allows only `source`, and an observer asks it for a look
            if self._hosts is None:
                self._hosts = Hosts(1, **self._limits)
            self._fresh(_net_calls.parted_run(run)[0], request["digest"])
            return await self._begun(self._hosts, what)
        digest: Any = request.get("source")
        if _net_parcels.SOURCE not in self.allow or not _net_parcels.is_digest(digest):
            raise _net_link.Refused(self._not_allowed(run, request))
        try:
            _net_calls.parted_run(run)
        except BadUse as error:
            raise _net_link.Refused(str(error)) from None
        if (there := await self._shelf.find(digest)) is not None:
            return await self._begun_with(there, what)

        async def receives(streams: _net_link.Streams) -> None:
            there = await self._shelf.receive(digest, streams[0])
            await _net_link.follow(streams, await self._begun_with(there, what), trusted)

        return self._welcome({"send": True}, receives)

    def _not_allowed(self, run: Any, request: dict[str, Any]) -> str:
        """Returns why a function is not run here."""
        function = str(run)[: _net_calls.LONGEST]
        if request.get("folder") is True:
            return (
                f"{function} has a working_dir that would go along, and host {self.name} takes no source: "
                "start its agent with --allow source"
            )
        runs = f"{function} is not allowed on host {self.name}, which runs {', '.join(self.allow)[:500]}"
        if _net_parcels.SOURCE in self.allow:
            return (
                f"{runs}: no source came along, since its package is installed at the caller. Install the package there too, "
                "and start the agent with --allow for the function"
            )
        return f"{runs}: start its agent with --allow for it too"

    async def _begun_with(
        self, there: _net_shelf.Shelved, what: tuple[str, bool, bool]
    ) -> _net_link.Welcome:
        """Does what _begun() does, in an OS process for that source. The source is kept until the
        call has ended.
        """
        used = contextlib.ExitStack()
        hosts = used.enter_context(there.used())
        try:
            welcome = await self._begun(hosts, what)
        except BaseException:
            used.close()
            raise
        assert welcome.more is not None
        over = self._calls.get(welcome.more["call"])
        if over is None:  # the call has ended, and was forgotten after many later calls
            used.close()
        else:
            over.add_done_callback(lambda _: used.close())
        return welcome

    async def _begun(self, hosts: Hosts, what: tuple[str, bool, bool]) -> _net_link.Welcome:
        """Returns the answer to a caller whose call begins in one of these OS processes.

        Raises:
            Refused: no OS process comes.
        """
        call, child, pid = await self._process_for(hosts, what)
        _net_steps.at("agent.process")

        async def then(streams: _net_link.Streams) -> None:
            _net_steps.at("agent.passes")
            await _net_link.couple(child, streams)
            _net_steps.at("agent.over")

        more = {"pid": pid, "call": call, "pass": self._pass}
        return self._welcome(more, then, child.close)

    async def _process_for(
        self, hosts: Hosts, what: tuple[str, bool, bool]
    ) -> tuple[str, socket.socket, int]:
        """Returns the number of a new call, and the socket and the pid of the OS process that has
        connected for it.

        Raises:
            Refused: no OS process comes.
        """
        loop = asyncio.get_running_loop()
        for _ in range(TRIES):
            call, token = secrets.token_hex(8), secrets.token_hex(16)
            self._calls[call] = over = loop.create_future()
            self._coming[token] = coming = loop.create_future()
            while len(self._calls) > KEPT and next(iter(self._calls.values())).done():
                del self._calls[next(iter(self._calls))]
            threading.Thread(
                target=self._run,
                args=(loop, over, hosts, (self._path, token, *what)),
                name="weft: a call",
                daemon=True,
            ).start()
            try:
                await asyncio.wait(
                    (over, coming), timeout=START, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                self._coming.pop(token, None)
            if coming.done():
                child, pid = coming.result()
                if not over.done():
                    self._running[call] = pid, token
                    over.add_done_callback(functools.partial(self._has_ended, call))
                return call, child, pid
            why = over.result() if over.done() else None
            if why is None or "pid" not in why:  # the OS process has not died
                break
        raise _net_link.Refused(f"host {self.name} could not begin: {why}"[:1000])

    def _has_ended(self, call: str, _: object) -> None:
        self._running.pop(call, None)

    def _welcome(self, more: Any, then: Any, lost: Any = lambda: None) -> _net_link.Welcome:
        meeting = self._network._meeting
        return _net_link.Welcome(meeting.host, meeting.trust, lambda _: None, lost, more, then)

    def _fresh(self, module: str, digest: str) -> None:
        """Starts new OS processes if the present ones have another version of the module's code."""
        if self._seen.setdefault(module, digest) == digest:
            return
        self._seen[module] = digest
        _net_calls.forget_compiled(module)
        old, self._hosts = self._hosts, Hosts(self._number, **self._limits)
        assert old is not None
        self._old = [hosts for hosts in self._old if hosts.pids]
        self._old.append(old)
        threading.Thread(target=old.close, name="weft: closes hosts", daemon=True).start()

    def _run(self, loop: Any, over: Any, hosts: Hosts, args: tuple[Any, ...]) -> None:
        """Runs a call, on the call's own thread, and sets its future."""
        fate: dict[str, Any] | None = None
        try:
            hosts.call(_net_calls.serve, args, {})
        except ProcessDied as error:
            fate = {
                "pid": error.pid,
                "returncode": error._returncode,
                "stack": error.stack,
                "memory": error.out_of_memory,
                "stderr": error.stderr,
            }
        except BaseException as error:
            fate = {"why": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: over.done() or over.set_result(fate))

    async def _fate(self, call: Any) -> dict[str, Any] | None:
        over = self._calls.get(call) if isinstance(call, str) else None
        if over is None:
            return None
        await asyncio.wait((over,), timeout=FATE)
        came_to = over.result() if over.done() else None
        if came_to is None or "why" in came_to:
            return None
        fate = dict(came_to)
        while len(json.dumps(fate)) > ROOM:
            fate["stack"] = fate["stack"][: len(fate["stack"]) // 2]
            fate["stderr"] = fate["stderr"][(len(fate["stderr"]) + 1) // 2 :]
        return fate

    async def _where(self, call: Any) -> list[str] | None:
        """Returns where the processes of the call are, or None if the call has ended, or its OS
        process does not answer.
        """
        if not isinstance(call, str) or call not in self._running:
            return None
        pid, name = self._running[call]
        loop = asyncio.get_running_loop()
        lines = await loop.run_in_executor(None, _rounds.where_in, pid, name, ASKS)
        while lines and len(json.dumps(lines)) > ROOM:
            lines.pop()
        return lines

    @property
    def pids(self) -> list[int]:
        """The pids of the agent's OS processes that run the agent's own files."""
        return [] if self._hosts is None else self._hosts.pids

    def close(self) -> None:
        """Leaves the network. Running calls are cancelled; those that still run some seconds later
        are killed."""
        with contextlib.suppress(BadUse):
            self._network._call(self._stop_listening())
        self._network.close()  # callers' sessions end, which cancels the calls that run for them
        self._end_hosts()
        self._folder.remove()

    async def _stop_listening(self) -> None:
        self._server.cancel()

    def _end_hosts(self) -> None:
        own = [] if self._hosts is None else [self._hosts]
        for hosts in (*own, *self._old, *self._shelf.hosts):
            running = [p.host for p in hosts._places if p.host is not None]
            closing = threading.Thread(target=hosts.close, daemon=True)
            closing.start()
            closing.join(LEAVES)
            if closing.is_alive():
                for host in running:
                    host.kill()
                closing.join()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
