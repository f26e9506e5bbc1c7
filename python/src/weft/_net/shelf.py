"""The parcels of source that an agent has, and the OS processes that run them (WIRE-NETWORKS.md
17.26).

    find(digest) ──another connection receives it──► waits for that
        ├─it is here, and intact──► Shelved
        └─None: the agent asks the caller ──► receive() ──► Shelved
    Shelved: used() ──the calls are over──► drop(), once KEPT others were asked for later

Invariants
- All fields are used on the loop's thread only.
- An OS process runs the source of one parcel only. So two programs whose modules have the same
  names, and other source, never share an OS process.
- A parcel is dropped only while no call uses it. Its folder is removed after its OS processes have
  ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from weft._hosts.hosts import Hosts
from weft._net import parcels as _net_parcels
from weft._net.first_messages import Refused
from weft._net.incoming import read_pieces
from weft.errors import BadUse

__all__ = ["Shelf", "Shelved"]

# the number of parcels that are kept with their OS processes; there are more only while calls use
# them
KEPT = 4
WAITS = 30.0  # seconds to wait for a parcel that another connection brings
EACH = 20.0  # seconds for each piece of a parcel


class Shelved:
    """A parcel, and its OS processes."""

    def __init__(self, folder: Path, of: _net_parcels.Unpacked, hosts: Hosts) -> None:
        self.folder, self.of, self.hosts = folder, of, hosts
        self.calls = 0  # how many calls use the parcel

    @contextlib.contextmanager
    def used(self) -> Iterator[Hosts]:
        """Yields the OS processes. The parcel is not dropped while the block runs."""
        self.calls += 1
        try:
            yield self.hosts
        finally:
            self.calls -= 1

    def drop(self) -> None:
        """Ends the OS processes, and removes the files, on a separate thread."""

        def drops() -> None:
            self.hosts.close()
            shutil.rmtree(self.folder, ignore_errors=True)

        threading.Thread(target=drops, name="weft: drops a source", daemon=True).start()


class Shelf:
    """The parcels that callers have sent to an agent.

    Args:
        folder: a folder that belongs to the agent.
        start: starts OS processes, each of which first calls a function with its arguments.
    """

    def __init__(
        self, folder: Path, start: Callable[[Callable[..., None], tuple[str, ...]], Hosts]
    ) -> None:
        self._folder, self._start = folder, start
        self._parcels: dict[str, Shelved] = {}  # by their digests, the least recently used first
        self._arriving: dict[str, asyncio.Future[None]] = {}

    @property
    def hosts(self) -> list[Hosts]:
        return [one.hosts for one in self._parcels.values()]

    async def find(self, digest: str) -> Shelved | None:
        """Returns the parcel, or None if the caller has to send it."""
        if (arriving := self._arriving.get(digest)) is not None:
            await asyncio.wait((arriving,), timeout=WAITS)
        one = self._parcels.pop(digest, None)
        if one is None:
            return None
        if not _net_parcels.intact(one.folder, one.of):  # a call has changed its own program
            one.drop()
            return None
        self._parcels[digest] = one
        return one

    async def receive(self, digest: str, reader: asyncio.StreamReader) -> Shelved:
        """Receives a parcel from a caller, and starts its OS processes.

        Raises:
            Refused: the received bytes are not that parcel, or its OS processes cannot be started.
            EOFError, OSError, TimeoutError: the caller has disconnected, or sends nothing.
        """
        loop = asyncio.get_running_loop()
        arrives: asyncio.Future[None] = loop.create_future()
        self._arriving.setdefault(digest, arrives)
        try:
            try:
                data = await read_pieces(reader, _net_parcels.most_packed(), EACH)
            except ValueError as error:
                raise Refused(f"the source cannot be used: {error}") from None
            # two callers have sent the parcel at the same time
            if (there := self._parcels.get(digest)) is not None:
                return there
            folder = Path(tempfile.mkdtemp(prefix="source-", dir=self._folder))
            try:
                of = await loop.run_in_executor(None, _net_parcels.unpacked, data, digest, folder)
                if (there := self._parcels.get(digest)) is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    return there
                enters = str(folder), of.root, of.folder, str(Path.cwd())
                hosts = self._start(_net_parcels.enter, enters)  # type: ignore[arg-type]
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(error, (ValueError, OSError, BadUse)):
                    raise Refused(f"the source cannot be used: {error}") from None
                raise
            self._parcels[digest] = one = Shelved(folder, of, hosts)
            self._drop_old()
            return one
        finally:
            if self._arriving.get(digest) is arrives:
                del self._arriving[digest]
            arrives.set_result(None)

    def _drop_old(self) -> None:
        for digest in list(self._parcels)[:-1]:
            if len(self._parcels) <= KEPT:
                return
            if not self._parcels[digest].calls:
                self._parcels.pop(digest).drop()
