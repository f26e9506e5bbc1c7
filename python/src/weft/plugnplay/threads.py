"""The plug-and-play processes as threads: those of coroutines.py, called. Written by tools/names.py: do not edit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import inf as _inf
from typing import Any, Literal, TextIO

from weft.threads import BadUse as _BadUse
from weft.threads import Channel as _Channel
from weft.threads import Input, Output, Reader, Writer, after, now, process, select, sleep
from weft.threads import Parallel as _Parallel
from weft.threads import Process as _Process
from weft.threads import Retired as _Retired
from weft.threads import skip as _skip

__all__ = [  # noqa: RUF022 – in the order of this file
    "identity",
    "prefix",
    "tail",
    "transform",
    "successor",
    "sign",
    "substitute",
    "not_",
    "pairs",
    "integrate",
    "select_if",
    "generate",
    "numbers",
    "from_iterable",
    "black_hole",
    "collect",
    "take",
    "printer",
    "delta",
    "parallel_delta",
    "dynamic_delta",
    "demultiplex",
    "deparaplex",
    "merge",
    "multiplex",
    "paraplex",
    "combine",
    "plus",
    "minus",
    "times",
    "divide",
    "and_",
    "or_",
    "xor",
    "nand",
    "nor",
    "fixed_delay",
    "regular",
    "regulate",
    "batch",
    "rate_limit",
    "keyed_pool",
    "broadcast",
    "mult",
]

# --- one stream -----------------------------------------------------------------------------------


@process
def identity(source: Reader[Any], out: Writer[Any]) -> None:
    """Writes each value that it reads."""
    for value in source:
        out.write(value)


@process
def prefix(source: Reader[Any], out: Writer[Any], first: Any) -> None:
    """Writes `first`, then each value that it reads."""
    out.write(first)
    for value in source:
        out.write(value)


@process
def tail(source: Reader[Any], out: Writer[Any]) -> None:
    """Writes each value that it reads, except the first."""
    source.read()
    for value in source:
        out.write(value)


@process
def transform(source: Reader[Any], out: Writer[Any], function: Callable[[Any], Any]) -> None:
    """Writes `function(value)` for each value."""
    for value in source:
        out.write(function(value))


@process
def successor(source: Reader[Any], out: Writer[Any]) -> None:
    """Writes each value plus 1."""
    for value in source:
        out.write(value + 1)


@process
def sign(source: Reader[Any], out: Writer[Any], mark: str) -> None:
    """Writes `mark` and the text of each value."""
    for value in source:
        out.write(f"{mark}{value}")


@process
def substitute(source: Reader[Any], out: Writer[Any], value: Any) -> None:
    """Writes `value` for each value that it reads."""
    for _ in source:
        out.write(value)


@process
def not_(source: Reader[Any], out: Writer[Any]) -> None:
    """Writes the bitwise not of each integer, and the negation of each boolean."""
    for value in source:
        out.write(_inverted(value))


@process
def pairs(source: Reader[Any], out: Writer[Any]) -> None:
    """Writes the sum of each pair of neighbouring values (as JCSP's Pairs does)."""
    before = source.read()
    for value in source:
        out.write(before + value)
        before = value


@process
def integrate(source: Reader[Any], out: Writer[Any]) -> None:
    """Writes the running sum."""
    total: Any = 0
    for value in source:
        total += value
        out.write(total)


@process
def select_if(
    source: Reader[Any], out: Writer[Any], condition: Callable[[Any], object]
) -> None:
    """Writes the values for which `condition` is true."""
    for value in source:
        if condition(value):
            out.write(value)


# --- sources and sinks ----------------------------------------------------------------------------


@process
def generate(out: Writer[Any], value: Any) -> None:
    """Writes `value` forever."""
    while True:
        out.write(value)


@process
def numbers(out: Writer[int], start: int = 0, step: int = 1) -> None:
    """Writes start, start + step, start + 2 step, …"""
    value = start
    while True:
        out.write(value)
        value += step


@process
def from_iterable(out: Writer[Any], values: Iterable[Any]) -> None:
    """Writes the values, then retires."""
    for value in values:
        out.write(value)


@process
def black_hole(source: Reader[Any]) -> None:
    """Reads forever."""
    for _ in source:
        pass


@process
def collect(source: Reader[Any]) -> list[Any]:
    """Reads until its channel retires. Its result is the list of values."""
    return [value for value in source]


@process
def take(source: Reader[Any], out: Writer[Any], n: int) -> None:
    """Writes the first `n` values, then retires both its ends."""
    for _ in range(n):
        out.write(source.read())


@process
def printer(source: Reader[Any], file: TextIO | None = None) -> None:
    """Prints each value on a line of `file` (standard output if None)."""
    for value in source:
        print(value, file=file, flush=True)


# --- one to many ----------------------------------------------------------------------------------


@process
def delta(source: Reader[Any], outs: Sequence[Writer[Any]]) -> None:
    """Writes each value to every writer, in their order. It reads the next value when all writers
    have written this one.
    """
    for value in source:
        for out in outs:
            out.write(value)


@process
def parallel_delta(source: Reader[Any], outs: Sequence[Writer[Any]]) -> None:
    """Writes each value to every writer, in the order in which they are ready. It reads the next
    value when all writers have written this one.
    """
    n = len(outs)
    for value in source:
        waiting = [True] * n
        while any(waiting):
            index, _ = select(
                *(Output(out, value).when(on) for out, on in zip(outs, waiting, strict=True))
            )
            waiting[index] = False


@process
def dynamic_delta(source: Reader[Any], outs: Reader[Writer[Any]]) -> None:
    """Writes each value to every writer that it has received on `outs` so far. Writers without
    readers are dropped.

    It ends when `source` retires. If `outs` retires, no more writers are added.
    """
    known: list[Writer[Any]] = []
    ending = Input(source, ended="raise")  # `outs` may retire, and then falls silent (rule 5.6)
    while True:
        index, value = select(outs, ending, mode="priority")
        if index == 0:
            known.append(value)
            continue
        for out in list(known):
            try:
                out.write(value)
            except _Retired:
                known.remove(out)


@process
def demultiplex(source: Reader[tuple[int, Any]], outs: Sequence[Writer[Any]]) -> None:
    """Reads pairs (index, value), and writes each value to the writer with that index: the inverse
    of :func:`multiplex`.
    """
    for index, value in source:
        outs[index].write(value)


@process
def deparaplex(source: Reader[Sequence[Any]], outs: Sequence[Writer[Any]]) -> None:
    """Writes the i-th element of each sequence to the i-th writer: the inverse of :func:`paraplex`."""
    for values in source:
        for out, value in zip(outs, values, strict=True):
            out.write(value)


# --- many to one ----------------------------------------------------------------------------------


def _merge(sources: Sequence[Reader[Any]], out: Writer[Any], tag: bool) -> None:
    # without sources the process ends at once; otherwise a select ends with the last source (rule
    # 5.6)
    while sources:
        index, value = select(*sources)
        out.write((index, value) if tag else value)


@process
def merge(sources: Sequence[Reader[Any]], out: Writer[Any]) -> None:
    """Copies values from all the readers to `out`, fairly. It ends when all have retired."""
    _merge(sources, out, False)


@process
def multiplex(sources: Sequence[Reader[Any]], out: Writer[tuple[int, Any]]) -> None:
    """Does what :func:`merge` does, but writes (index, value), where `index` is the index of the
    reader.
    """
    _merge(sources, out, True)


@process
def paraplex(sources: Sequence[Reader[Any]], out: Writer[tuple[Any, ...]]) -> None:
    """Writes tuples of one value from each reader. It ends when the first of them retires."""
    while True:
        values: list[Any] = [None] * len(sources)
        waiting = [True] * len(sources)
        while any(waiting):
            guards = (Input(r).when(on) for r, on in zip(sources, waiting, strict=True))
            index, value = select(*guards, ended="raise")
            values[index] = value
            waiting[index] = False
        out.write(tuple(values))


def _of_two(
    a: Reader[Any], b: Reader[Any], out: Writer[Any], function: Callable[[Any, Any], Any]
) -> None:
    while True:
        index, value = select(a, b, ended="raise")
        other = (b if index == 0 else a).read()
        out.write(function(value, other) if index == 0 else function(other, value))


@process
def combine(
    a: Reader[Any], b: Reader[Any], out: Writer[Any], function: Callable[[Any, Any], Any]
) -> None:
    """Writes `function(x, y)` for one value from each of two readers. It reads the two values in
    the order in which they arrive.
    """
    _of_two(a, b, out, function)


@process
def plus(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the sum of one value from each reader."""
    _of_two(a, b, out, operator.add)


@process
def minus(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the difference of one value from each reader."""
    _of_two(a, b, out, operator.sub)


@process
def times(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the product of one value from each reader. `mult` is another name of it."""
    _of_two(a, b, out, operator.mul)


@process
def divide(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the quotient of one value from each reader."""
    _of_two(a, b, out, operator.truediv)


@process
def and_(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the bitwise and of one value from each reader."""
    _of_two(a, b, out, operator.and_)


@process
def or_(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the bitwise or of one value from each reader."""
    _of_two(a, b, out, operator.or_)


@process
def xor(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the bitwise exclusive or of one value from each reader."""
    _of_two(a, b, out, operator.xor)


def _inverted(value: Any) -> Any:
    return (not value) if isinstance(value, bool) else ~value


@process
def nand(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the inverse of the bitwise and of one value from each reader."""
    _of_two(a, b, out, lambda x, y: _inverted(x & y))


@process
def nor(a: Reader[Any], b: Reader[Any], out: Writer[Any]) -> None:
    """Writes the inverse of the bitwise or of one value from each reader."""
    _of_two(a, b, out, lambda x, y: _inverted(x | y))


# --- time -----------------------------------------------------------------------------------------


@process
def fixed_delay(source: Reader[Any], out: Writer[Any], seconds: float) -> None:
    """Writes each value `seconds` after it was read."""
    for value in source:
        sleep(seconds)
        out.write(value)


@process
def regular(out: Writer[Any], value: Any, seconds: float) -> None:
    """Writes `value` every `seconds`, without drift; the first time at once."""
    due = now()
    while True:
        out.write(value)
        due = max(due + seconds, now())  # the times that a slow reader has missed are left out
        sleep(due - now())


@process
def regulate(source: Reader[Any], out: Writer[Any], seconds: float) -> None:
    """Writes every `seconds` the last value that it has read, whether values arrive more often or
    less often.

    The first value is written when it arrives. The process ends when `source` retires.
    """
    value = source.read()
    out.write(value)
    due = now() + seconds
    while True:
        # the time is checked here, since a ready guard takes precedence over an expired timer (rule
        # 5.7)
        if now() >= due:
            out.write(value)
            due = max(due + seconds, now())
            continue
        index, newer = select(source, after(due - now()))
        if index == 0:
            value = newer


# --- services -------------------------------------------------------------------------------------


def _count(who: str, name: str, n: object) -> None:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise _BadUse(f"{who}: {name} must be a whole number of at least 1, not {n!r}")


def _span(who: str, seconds: object, longest: float) -> None:
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= longest:
        raise _BadUse(f"{who}: seconds must be a time above 0, not {seconds!r}")


@process
def batch(source: Reader[Any], out: Writer[list[Any]], n: int, seconds: float = _inf) -> None:
    """Writes lists of `n` values. A list with fewer values is written `seconds` after its first
    value was read, or when `source` retires (rule 20.1). No list is empty.

    Raises BadUse if n < 1 or seconds <= 0. Rx has this as `buffer`.
    """
    _count("batch", "n", n)
    _span("batch", seconds, _inf)
    while True:
        values = [source.read()]
        due = now() + seconds
        ended = False
        # the time is checked here, since a ready guard takes precedence over an expired timer (rule
        # 5.7)
        while len(values) < n and (left := due - now()) > 0:
            try:
                index, value = select(source, after(left), ended="raise")
            except _Retired:
                ended = True
                break
            if index == 0:
                values.append(value)
        out.write(values)
        if ended:
            return


@process
def rate_limit(
    source: Reader[Any], out: Writer[Any], n: int, seconds: float, burst: int = 1
) -> None:
    """Writes each value, but at most n + burst - 1 of them in any `seconds`: one every seconds / n,
    and after a pause up to `burst` at once (rule 20.2).

    Raises BadUse if n < 1, burst < 1, or `seconds` is not above 0 and finite. The algorithm is the
    generic cell rate algorithm (ITU-T I.371), a token bucket that keeps one number.
    """
    _count("rate_limit", "n", n)
    _count("rate_limit", "burst", burst)
    _span("rate_limit", seconds, 1e300)
    each = seconds / n
    ahead = (burst - 1) * each
    due = now()  # when the bucket will next be full
    for value in source:
        if (wait := due - ahead - now()) > 0:
            sleep(wait)
        out.write(value)
        # counted from the time of the write, which a slow reader may delay
        due = max(due, now()) + each


@process
def _to_workers(
    source: Reader[Any], outs: Sequence[Writer[Any]], key: Callable[[Any], Any]
) -> None:
    for value in source:
        outs[hash(key(value)) % len(outs)].write(value)


@process
def keyed_pool(
    source: Reader[Any],
    out: Writer[Any],
    worker: Callable[[Reader[Any], Writer[Any]], _Process[Any]],
    n: int,
    key: Callable[[Any], Any],
    capacity: int = 0,
) -> None:
    """Runs `n` processes `worker(reader, out)`, and gives each value to the one that
    hash(key(value)) selects: values of one key reach one worker, in order (rule 20.3).

    Up to `capacity` values wait for each worker. The pool ends when `source` has retired and all
    workers have ended. The pool fails if a worker fails. Raises BadUse if n < 1 or `capacity` is
    not a capacity of a channel.
    """
    _count("keyed_pool", "n", n)
    inner = [_Channel(f"keyed_pool[{i}]", capacity=capacity) for i in range(n)]
    workers = [worker(c.reader(), out) for c in inner]
    _Parallel(_to_workers(source, [c.writer() for c in inner], key), workers)


@process
def broadcast(
    source: Reader[Any],
    joins: Reader[Writer[Any]],
    slow: Literal["wait", "cut_off"] = "wait",
) -> None:
    """Writes each value to every writer that it has read from `joins` so far (rule 20.4). A
    reader leaves by retiring its end.

    A reader may be behind by as many values as the capacity of its own channel. If that channel is
    full, the process waits (`slow="wait"`); or it poisons the channel, so that the reader gets
    Poisoned, and goes on without the reader (`slow="cut_off"`). A channel with
    overflow="drop_oldest" is never full in this sense. The process ends when `source` retires.
    Raises BadUse if `slow` is something else.
    """
    if slow not in ("wait", "cut_off"):
        raise _BadUse(f'broadcast: slow must be "wait" or "cut_off", not {slow!r}')
    known: list[Writer[Any]] = []
    ending = Input(source, ended="raise")  # `joins` may retire, and then falls silent (rule 5.6)
    while True:
        index, value = select(joins, ending, mode="priority")
        if index == 0:
            known.append(value)
            continue
        for out in list(known):
            try:
                if slow == "wait":
                    out.write(value)
                elif (select(Output(out, value), _skip(), ended="raise"))[0] == 1:
                    out.poison()
                    known.remove(out)
            except _Retired:
                known.remove(out)


mult = times
