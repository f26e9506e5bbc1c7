"""Types of weft.coroutines. Those of weft.threads and weft.greenlets follow from them: tools/names.py."""

# --- written by tools/names.py: imports
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, final, overload

from typing_extensions import Buffer, TypeVar

from weft._backends.shared import ChannelStats as ChannelStats
from weft._native import AwaitedBarrier, AwaitedReader, AwaitedWriter, ProcessFunction
from weft._native import Guard as Guard
from weft._native import Process as Process
from weft._native import ProcessEnd as ProcessEnd
from weft._native import Ready as Ready
from weft._native import after as after
from weft._native import at as at
from weft._native import current_process as current_process
from weft._native import now as now
from weft._native import readable as readable
from weft._native import skip as skip
from weft._native import watched as watched
from weft._native import writable as writable
from weft.errors import BadUse as BadUse
from weft.errors import BlockedProcess as BlockedProcess
from weft.errors import Cancelled as Cancelled
from weft.errors import ChannelEnd as ChannelEnd
from weft.errors import Deadlock as Deadlock
from weft.errors import Ended as Ended
from weft.errors import NoResult as NoResult
from weft.errors import PeerDied as PeerDied
from weft.errors import Poisoned as Poisoned
from weft.errors import ProcessDied as ProcessDied
from weft.errors import Retired as Retired
from weft.errors import WeftError as WeftError
from weft.errors import WeftWarning as WeftWarning
from weft.observe import deadlocks as deadlocks
from weft.observe import debug as debug
from weft.observe import measure as measure
from weft.observe import measuring as measuring
from weft.observe import tracing as tracing
from weft.observe import watchdog as watchdog
from weft.observe import watching_deadlocks as watching_deadlocks

# --- by hand: the types

T = TypeVar("T")
V = TypeVar("V", default=Any)  # the type of a channel's values; Any if the program names none
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
P = ParamSpec("P")

Overflow: TypeAlias = Literal["block", "drop_oldest", "drop_newest", "unbounded"]
Mode: TypeAlias = Literal["fair", "priority", "random"]
WhenEnded: TypeAlias = Literal["silent", "raise"]
AnyGuard: TypeAlias = Reader[Any] | Guard | Barrier | Timer

@final
class Reader(Generic[T_co]):
    def read(self) -> Awaitable[T_co]: ...
    def __call__(self) -> Awaitable[T_co]: ...
    def read_many(self, most: int) -> Awaitable[list[T_co]]: ...
    def blocks(self, most: int) -> AsyncIterator[list[T_co]]: ...
    def extended(self, *, redeliver: bool = False) -> AbstractAsyncContextManager[T_co]: ...
    def __aiter__(self) -> AsyncIterator[T_co]: ...
    def __anext__(self) -> Awaitable[T_co]: ...
    def poison(self, strength: int = 1) -> None: ...
    def retire(self) -> None: ...
    def die(self) -> None: ...
    @property
    def channel(self) -> Channel[Any]: ...
    @property
    def closed(self) -> bool: ...

@final
class Writer(Generic[T_contra]):
    def write(self, value: T_contra, /, *, move: bool = False) -> Awaitable[None]: ...
    def write_many(self, values: Iterable[T_contra]) -> Awaitable[None]: ...
    def __call__(self, value: T_contra, /) -> Awaitable[None]: ...
    def poison(self, strength: int = 1) -> None: ...
    def retire(self) -> None: ...
    def die(self) -> None: ...
    @property
    def channel(self) -> Channel[Any]: ...
    @property
    def closed(self) -> bool: ...

@final
class Channel(Generic[V]):
    def __init__(
        self,
        name: str | None = None,
        *,
        capacity: int = 0,
        overflow: Overflow = "block",
        immunity: int = 0,
        type: object = None,
    ) -> None: ...
    def reader(self) -> AwaitedReader[V]: ...
    def writer(self) -> AwaitedWriter[V]: ...
    def __pos__(self) -> AwaitedReader[V]: ...
    def __neg__(self) -> AwaitedWriter[V]: ...
    def poison(self, strength: int = 1) -> None: ...
    def stats(self) -> ChannelStats: ...
    def __mul__(self, n: int, /) -> ChannelArray[V]: ...
    def __rmul__(self, n: int, /) -> ChannelArray[V]: ...
    @property
    def name(self) -> str: ...

class ChannelArray(list[Channel[V]]):
    def readers(self) -> list[Reader[V]]: ...
    def writers(self) -> list[Writer[V]]: ...
    def __pos__(self) -> list[Reader[V]]: ...
    def __neg__(self) -> list[Writer[V]]: ...
    def poison(self, strength: int = 1) -> None: ...

@final
class Input(Guard):
    def __init__(self, reader: Reader[Any], *, ended: WhenEnded = "silent") -> None: ...

@final
class Output(Guard, Generic[T]):
    @overload
    def __init__(self, writer: Writer[T], value: T, *, ended: WhenEnded = "silent") -> None: ...
    @overload
    def __init__(
        self, writer: Writer[T], *, make: Callable[[], T], ended: WhenEnded = "silent"
    ) -> None: ...

@final
class Barrier:
    def __new__(cls, parties: int) -> AwaitedBarrier: ...
    def sync(self) -> Awaitable[None]: ...
    def enrol(self) -> None: ...
    def resign(self) -> None: ...
    def when(self, condition: object) -> Guard: ...
    @property
    def parties(self) -> int: ...

@final
class Timer:
    def __init__(self, period: float) -> None: ...
    def tick(self) -> Awaitable[int]: ...
    def when(self, condition: object) -> Guard: ...
    @property
    def period(self) -> float: ...

@final
class Alternative:
    def __init__(
        self, *guards: AnyGuard, mode: Mode = "fair", ended: WhenEnded = "silent"
    ) -> None: ...
    def select(self) -> Awaitable[tuple[int, Any]]: ...
    def enable(self, index: int, on: object) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Alternative: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Outside:
    def __init__(self, *, due: bool = False) -> None: ...
    def close(self) -> None: ...
    @property
    def due(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Outside: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Group:
    def __init__(self, *, clock: str = "steady") -> None: ...
    def start(self, process: Process[R]) -> Process[R]: ...
    def cancel(self) -> None: ...
    async def __aenter__(self) -> Group: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Stream:
    def __init__(self, descriptor: int) -> None: ...
    @staticmethod
    def pair() -> tuple[Stream, Stream]: ...
    def read_some(self, most: int = 65536) -> Awaitable[bytes]: ...
    def write_all(self, data: Buffer) -> Awaitable[None]: ...
    def write_some(self, data: Buffer) -> Awaitable[int]: ...
    def shutdown_write(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...
    @property
    def local(self) -> str: ...
    @property
    def peer(self) -> str: ...
    @property
    def sent(self) -> int: ...
    def __enter__(self) -> Stream: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Listener:
    def accept(self) -> Awaitable[Stream]: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...
    @property
    def address(self) -> str: ...
    def __enter__(self) -> Listener: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

class Timeout:
    @property
    def expired(self) -> bool: ...
    def reschedule(self, seconds: float | None) -> None: ...
    async def __aenter__(self) -> Timeout: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool: ...

def timeout(seconds: float | None, *, again: bool = False) -> Timeout: ...
def deadline(time: float | None, *, again: bool = False) -> Timeout: ...
def move_on_after(seconds: float | None, *, again: bool = False) -> Timeout: ...
def select(
    *guards: AnyGuard, mode: Mode = "fair", ended: WhenEnded = "silent"
) -> Awaitable[tuple[int, Any]]: ...
def connect(address: str | tuple[str, int]) -> Awaitable[Stream]: ...
def listen(address: str | tuple[str, int]) -> Listener: ...
def sleep(seconds: float) -> Awaitable[None]: ...
def yield_() -> Awaitable[None]: ...
@overload
def process(function: Callable[P, Coroutine[Any, Any, R]], /) -> ProcessFunction[P, R]: ...
@overload
def process(function: Callable[P, R], /) -> ProcessFunction[P, R]: ...
def io(function: Callable[P, R], /) -> Callable[P, Awaitable[R]]: ...
@overload
def run(
    first: Process[R],
    /,
    *,
    clock: str = "steady",
    host: str = "weft",
    trace: str | PathLike[str] | None = None,
    watchdog: float | None = None,
    partial: Literal["warn", "raise"] | None = None,
) -> R: ...
@overload
def run(
    first: Process[Any],
    second: Process[Any] | Iterable[Process[Any]],
    /,
    *others: Process[Any] | Iterable[Process[Any]],
    clock: str = "steady",
    host: str = "weft",
    trace: str | PathLike[str] | None = None,
    watchdog: float | None = None,
    partial: Literal["warn", "raise"] | None = None,
) -> list[Any]: ...
@overload
def run(
    first: Iterable[Process[Any]],
    /,
    *others: Process[Any] | Iterable[Process[Any]],
    clock: str = "steady",
    host: str = "weft",
    trace: str | PathLike[str] | None = None,
    watchdog: float | None = None,
    partial: Literal["warn", "raise"] | None = None,
) -> list[Any]: ...
@overload
def run_async(first: Process[R], /, *, clock: str = "steady") -> Coroutine[Any, Any, R]: ...
@overload
def run_async(
    first: Process[Any],
    second: Process[Any] | Iterable[Process[Any]],
    /,
    *others: Process[Any] | Iterable[Process[Any]],
    clock: str = "steady",
) -> Coroutine[Any, Any, list[Any]]: ...
@overload
def run_async(
    first: Iterable[Process[Any]],
    /,
    *others: Process[Any] | Iterable[Process[Any]],
    clock: str = "steady",
) -> Coroutine[Any, Any, list[Any]]: ...
@overload
def Parallel(first: Process[R] | Iterable[Process[R]] = ..., /) -> Awaitable[list[R]]: ...
@overload
def Parallel(
    first: Process[Any] | Iterable[Process[Any]],
    second: Process[Any] | Iterable[Process[Any]],
    /,
    *others: Process[Any] | Iterable[Process[Any]],
) -> Awaitable[list[Any]]: ...
@overload
def Sequence(first: Process[R] | Iterable[Process[R]] = ..., /) -> Awaitable[list[R]]: ...
@overload
def Sequence(
    first: Process[Any] | Iterable[Process[Any]],
    second: Process[Any] | Iterable[Process[Any]],
    /,
    *others: Process[Any] | Iterable[Process[Any]],
) -> Awaitable[list[Any]]: ...
def Spawn(*processes: Process[Any] | Iterable[Process[Any]]) -> None: ...
def poison(*ends: Reader[Any] | Writer[Any] | Channel[Any], strength: int = 1) -> None: ...
def retire(*ends: Reader[Any] | Writer[Any]) -> None: ...
def statistics(channel: Channel[Any], /) -> ChannelStats: ...

# --- written by tools/names.py: exports

__all__ = [
    "Alternative",
    "BadUse",
    "Barrier",
    "BlockedProcess",
    "Cancelled",
    "Channel",
    "ChannelArray",
    "ChannelEnd",
    "ChannelStats",
    "Deadlock",
    "Ended",
    "Group",
    "Guard",
    "Input",
    "Listener",
    "NoResult",
    "Output",
    "Outside",
    "Parallel",
    "PeerDied",
    "Poisoned",
    "Process",
    "ProcessDied",
    "ProcessEnd",
    "Reader",
    "Ready",
    "Retired",
    "Sequence",
    "Spawn",
    "Stream",
    "Timeout",
    "Timer",
    "WeftError",
    "WeftWarning",
    "Writer",
    "after",
    "at",
    "connect",
    "current_process",
    "deadline",
    "deadlocks",
    "debug",
    "io",
    "listen",
    "measure",
    "measuring",
    "move_on_after",
    "now",
    "poison",
    "process",
    "readable",
    "retire",
    "run",
    "run_async",
    "select",
    "skip",
    "sleep",
    "statistics",
    "timeout",
    "tracing",
    "watchdog",
    "watched",
    "watching_deadlocks",
    "writable",
    "yield_",
]
