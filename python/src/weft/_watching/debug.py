"""Debug mode: it detects objects that were changed after they were sent (rules 9.2, 14.5).

From the moment a write begins, its object belongs to the receiver. The process that has an object
may change it, so a change alone proves nothing. Two kinds of changes are reported: changes at a
time when no process may change the object, and changes that only the sender can have made.

    the write begins ──── under way ────► the reader goes on: now the reader may change the object
           │                              (1) compared here
           └─ the sender goes on ─ runs ─► the sender's next operation, or its end
                                          (2) compared here, while the object is under way
                                          (3) compared here also later, if every process runs on
                                              this thread, since only the sender ran in between

A fingerprint is a hash of the object's pickle (buffers, such as those of numpy arrays, are hashed
in place). An object that cannot be pickled, or gives two different pickles in a row, is not
watched.

Invariants
- The last `_KEPT` objects that each process sent are watched for (3), and are kept alive for that.
  When a process receives anything mutable, or its children end, its list is cleared, since an
  object may have been sent back.
- At most `_MAX_OBJECTS` objects are watched while they are under way by reference. The oldest are
  dropped, so that values that a buffer has dropped are not kept forever. A value that is copied
  (for another OS process, or a component) is never under way here, since no receiver would report
  its arrival.
- Processes, channels, ends, functions, classes and modules inside an object are compared by
  identity.
- Making a fingerprint runs user code, and dropping the last reference to an object may run such
  code: neither is done under a lock (rule 12.1). `_lock` protects only `_under_way`. State that
  belongs to one process is changed only by that process's thread.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft._watching import quiet_ends as _quiet_ends
from weft.errors import WeftWarning

_KEPT = 16  # how many objects that a process sent are watched
_MAX_OBJECTS = 4096  # how many objects under way are watched at a time

_ATOMS = (
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    range,
    type,
    types.FunctionType,
    types.ModuleType,
)
_BY_IDENTITY = (
    _native.Channel,
    _native.Reader,
    _native.Writer,
    _native.Process,
    _native.ProcessFunction,
    _native.Barrier,
    _native.Timer,
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
)


class Changed(NamedTuple):
    """An object that was changed after it was sent."""

    sender: str  #: path of the process that wrote the object
    kind: str  #: the name of the object's type
    channel: str  #: the name of the channel
    file: str  #: the file of the write
    line: int  #: the line of the write
    noticed: str  #: when the change was noticed, in words
    pid: int | None = None  #: the OS process of the sender; None if it is this OS process

    def __str__(self) -> str:
        where = "" if self.pid is None else f" in OS process {self.pid}"
        return (
            f"process {self.sender}{where} wrote a {self.kind} to channel {self.channel} at {self.file}:{self.line}, and it was "
            f"changed {self.noticed}: after a write the object is the receiver's; send a copy, or make a new one each time"
        )


@functools.cache
def _hasher() -> Callable[[Any], bytes]:
    """Returns the function that hashes a value's pickle. It is made when it is first needed, so
    that a program without debug mode imports nothing for it.
    """
    import hashlib
    import pickle

    class Hasher:
        def __init__(self) -> None:
            self.hash = hashlib.blake2b(digest_size=16)

        def write(self, data: Any) -> int:
            self.hash.update(data)
            return len(data)

    class Pickler(pickle.Pickler):
        def persistent_id(self, o: Any) -> Any:
            return id(o) if isinstance(o, _BY_IDENTITY) else None

    def pickle_hash(value: Any) -> bytes:
        out = Hasher()

        def buffer(b: pickle.PickleBuffer) -> None:
            with b.raw() as raw:
                out.hash.update(raw)

        Pickler(out, protocol=5, buffer_callback=buffer).dump(value)
        return out.hash.digest()

    return pickle_hash


def is_atom(value: Any) -> bool:
    """Returns whether the value is immutable. No method of the value is called, since its methods
    might be faulty, and the value might be nested more deeply than calls can be.
    """
    ahead = [value]
    while ahead:
        kind = type(one := ahead.pop())
        if issubclass(kind, tuple):
            ahead.extend(tuple.__iter__(one))
        elif issubclass(kind, frozenset):
            ahead.extend(frozenset.__iter__(one))
        elif not issubclass(kind, _ATOMS + _BY_IDENTITY) or type.__dict__["__module__"].__get__(
            kind
        ) not in ("builtins", "weft", "types"):
            return False
    return True


def fingerprint(value: Any) -> bytes | None:
    """Returns a hash that changes with the object, or None if the object cannot be watched."""
    pickle_hash = _hasher()
    try:
        first = pickle_hash(value)
        return first if first == pickle_hash(value) else None
    except KeyboardInterrupt:  # the exception can be a Ctrl-C
        raise
    except BaseException:  # a __reduce__ of the program can raise any exception
        return None


class _Sent:
    """One write of one object."""

    def __init__(self, value: Any, digest: bytes, path: Any, channel: Any) -> None:
        self.value = value
        self.digest = digest
        self.path = path  # the sender, as Debug._sender() returns it
        self.channel = channel
        self.file, self.line = _quiet_ends.caller()
        self.thread = threading.get_ident()  # the thread of the sender
        self.under_way = True
        # Whether a process of another thread, which might have changed the object, has ended.
        self.stale = False
        self.reported = False


class Debug:
    """The object that :func:`debug` returns.

    Attributes:
        unwatched: the names of the types of objects that were sent and could not be watched.
    """

    kind = "debug"

    def __init__(self, report: Callable[[Changed], object] | None) -> None:
        self.unwatched: set[str] = set()
        self._report = report
        # Process → the objects of the operation that it has begun.
        self._writing: dict[int, list[_Sent | None]] = {}
        # Channel and object → the writes of the object that are under way.
        self._under_way: dict[tuple[int, int], deque[_Sent]] = {}
        self._kept: dict[int, deque[_Sent]] = {}  # process → the objects that it has sent
        self._lock = threading.RLock()

    def _event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        key = _observers.key_of(process)
        if what == "begin":
            self._compare(key, f"before its next {operation}")
            self._begin(key, process, operation, target, detail)
        elif what == "commit":
            self._commit(key, operation, target, detail)
        elif what == "raise":
            for sent in self._writing.pop(key, ()):
                self._remove_under_way(sent)
            self._refresh(key)
        elif what in ("end", "left"):
            self._compare(key, "before the end of its process")
            self._kept.pop(key, None)
            here = threading.get_ident()
            for kept in list(self._kept.values()):
                for sent in kept.copy():
                    sent.stale = sent.stale or sent.thread != here
        elif what == "lent":
            self._lent_out(target)

    # --- the sender -------------------------------------------------------------------------------

    def _begin(
        self, key: int, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        writes = []
        if operation == "write":
            writes = [(target.channel, detail)]
        elif operation == "select" and target:
            writes = [
                (end.channel, value) if kind == "output" and on else (None, None)
                for kind, end, value, on, _ in target
            ]
        made: list[_Sent | None] = []
        for channel, value in writes:
            if channel is not None and _native._is_native(channel):
                # The object was converted (which copies it) or lent. The extension itself watches a
                # loan.
                made.append(None)
                continue
            digest = None if channel is None or is_atom(value) else fingerprint(value)
            if digest is None and channel is not None and not is_atom(value):
                self._is_unwatched(type(value).__name__)
            if digest is None:
                made.append(None)
                continue
            sent = _Sent(value, digest, self._sender(process), channel)
            if not _native._by_copy(channel):
                self._add_under_way(sent)
            made.append(sent)
        if operation == "select":
            self._writing[key] = made
        elif made and made[0] is not None:
            self._writing[key] = [made[0]]

    def _add_under_way(self, sent: _Sent) -> None:
        where = id(sent.channel), id(sent.value)
        dropped = []  # these objects are freed after the lock is released
        with self._lock:
            while len(self._under_way) >= _MAX_OBJECTS:
                dropped.append(self._under_way.pop(next(iter(self._under_way))))
            queue = self._under_way.setdefault(where, deque())
            queue.append(sent)
            if len(queue) > _KEPT:
                dropped.append(deque([queue.popleft()]))

    def _lent_out(self, channel: Any) -> None:
        """Records that an end of the channel was lent. From now on the channel's values are copied,
        including those under way.
        """
        with self._lock:
            those = [w for w in self._under_way if w[0] == id(channel)]
            dropped = [self._under_way.pop(where) for where in those]
        del dropped  # the objects are freed here, without the lock

    def _remove_under_way(self, sent: _Sent | None) -> None:
        if sent is None:
            return
        where = (id(sent.channel), id(sent.value))
        with self._lock:
            queue = self._under_way.get(where)
            if queue and sent in queue:
                queue.remove(sent)
                if not queue:
                    del self._under_way[where]
        sent.under_way = False

    def _commit(self, key: int, operation: str | None, target: Any, detail: Any) -> None:
        written = self._writing.pop(key, [])
        received = detail
        if operation == "select":
            guard, received = detail
            kind, end, *_ = target[guard]
            for i, sent in enumerate(written):
                if i != guard:
                    self._remove_under_way(sent)
            written = written[guard : guard + 1]
            if kind == "input":
                self._taken(end.channel, received)
        elif operation in ("read", "extended read"):
            self._taken(target.channel, received)
        kept = self._kept.get(key)
        if kept and operation != "write" and not is_atom(received):
            kept.clear()
        for sent in written:
            if sent is not None:
                self._kept.setdefault(key, deque(maxlen=_KEPT)).append(sent)
        self._refresh(key)

    def _refresh(self, key: int) -> None:
        """Takes new fingerprints when a process goes on, since receivers were allowed to change
        objects meanwhile.
        """
        # The list is copied, since objects that the process sends meanwhile are added to it.
        for sent in list(self._kept.get(key, ())):
            if not sent.under_way:
                digest = fingerprint(sent.value)
                sent.digest = digest if digest is not None else sent.digest

    def _compare(self, key: int, when: str) -> None:
        # the frames of thread processes count too
        alone = len(sys._current_frames()) == _native._helpers() + 1
        for sent in list(self._kept.get(key, ())):
            if sent.stale and not sent.under_way:
                sent.stale = False
                sent.digest = fingerprint(sent.value) or sent.digest
            elif sent.under_way or alone:
                self._check(
                    sent,
                    f"by the sender, {when}"
                    if alone
                    else f"while it was under way, noticed by the sender {when}",
                )

    # --- the receiver -----------------------------------------------------------------------------

    def _taken(self, channel: Any, value: Any) -> None:
        with self._lock:
            queue = self._under_way.get((id(channel), id(value)))
            if not queue:
                return
            sent = queue.popleft()
            if not queue:
                del self._under_way[id(channel), id(value)]
        self._check(sent, "before its receiver had it")
        sent.under_way = False

    def _check(self, sent: _Sent, noticed: str) -> None:
        digest = fingerprint(sent.value)
        if digest is None or digest == sent.digest:
            return
        sent.digest = digest
        if sent.reported:
            return
        sent.reported = True
        self._say(
            Changed(
                sent.path,
                type(sent.value).__name__,
                sent.channel.name,
                sent.file,
                sent.line,
                noticed,
            )
        )

    def _sender(self, process: Any) -> Any:
        return process.path if process is not None else threading.current_thread().name

    def _is_unwatched(self, kind: str) -> None:
        self.unwatched.add(kind)

    def _say(self, changed: Changed) -> None:
        if self._report is not None:
            self._report(changed)
        else:
            warnings.warn_explicit(str(changed), WeftWarning, changed.file, changed.line)

    # --- arrays that are lent to native components (rule 16.6) ------------------------------------

    def _lent(self, value: Any, channel: Any) -> Changed:
        sender = self._sender(_native.current_process())
        name = "(an argument)" if channel is None else channel.name
        return Changed(sender, type(value).__name__, name, *_quiet_ends.caller(), "")

    def _touched(self, note: Changed, noticed: str) -> None:
        self._say(note._replace(noticed=noticed))

    # --- in other OS processes (rule 14.7) ------------------------------------------------------------

    def _for_others(self) -> None:
        """Returns None, since another OS process needs no setting."""

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        for r in records:
            if "unwatched" in r:
                self.unwatched.add(r["unwatched"])
            else:
                what = r["kind"], r["channel"], r["file"], r["line"], r["noticed"]
                self._say(Changed(r["p"], *what, source[0]))

    def _host_ended(self, pid: int) -> None:
        """Does nothing: changes that the OS process had found but not yet sent are not reported."""


_present: Debug | None = None


def debug(on: bool, report: Callable[[Changed], object] | None = None) -> Debug | None:
    """Turns the debug mode on or off. It detects objects that were changed after they were sent
    (rule 9.2), and names each process that the end of a channel has ended, with its line, in a
    warning to the logger `weft` (rule 3.5).

    For an array that is lent to a native component (rule 16.6) a checksum is made when it is lent,
    and again when the component takes the array, passes it on and, if it only reads the array,
    gives it back.

    The debug mode pickles every mutable object that is sent, twice, and again when the object is
    taken and around every operation of its sender. `WEFT_DEBUG=1` in the environment turns it on at
    the start.

    Args:
        report: called with a :class:`Changed`; for changes in another OS process it is called on a
            thread of Weft. None: a WeftWarning at the line of the write.
    Returns:
        The debug mode that has begun, or the one that has ended; None if there was none.
    """
    global _present
    before = _present
    if before is not None:
        _present = None
        _observers.remove(before._event)
        _native._watch_loans(None, None)
        _observers.end_everywhere(before)
        _naming.end()
    if not on:
        return before
    _present = _begun(Debug(report))
    _observers.begin_everywhere(_present)
    _naming.begin()
    return _present


def _begun(one: Debug) -> Debug:
    _observers.add(one._event)
    _native._watch_loans(one._lent, one._touched)
    return one


def _log(text: str) -> None:
    import logging

    logging.getLogger("weft").warning(text)


_naming = _quiet_ends.Naming(_log, guards=False)


def _from_environment() -> None:
    """Begins the debug mode at the start of the program, if WEFT_DEBUG asks for it
    (_backends/shared.py).
    """
    global _present
    _present = _begun(Debug(None))
    _observers.add(_naming.event)
