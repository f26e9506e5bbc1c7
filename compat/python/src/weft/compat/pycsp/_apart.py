"""`@multiprocess`, and on other machines `@sshprocess` and `@clusterprocess` (_ssh.py): a pycsp
process in an OS process of its own.

    here: body(p) ──its ends lent, with a line to ask by──► there: _there() ──_processes._body──► what it returned, or raised
                  ◄──"retire", "poison", "draining"──  a pycsp end there

Invariants
- A pycsp end of a process in another OS process stays counted here (_channels.py): it is retired
  and poisoned here when the end there requests this.
- A far channel has one native end there, which is lent to that process. The channel does not end
  when the process releases this end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft import threads
from weft._hosts import pickling as _pickling
from weft.compat.pycsp._asking import Asking, channels
from weft.compat.pycsp._channels import (
    READ,
    WRITE,
    Channel,
    ChannelEnd,
    ChannelEndRead,
    ChannelEndWrite,
)
from weft.compat.pycsp._errors import InfoException
from weft.errors import PeerDied
from weft.processes import process

__all__ = ["run_apart"]


class _Lent(NamedTuple):
    """A pycsp end that is being sent."""

    native: Any
    side: int
    name: str
    buffer: int
    number: int  # the number by which requests name the end


# --- here -----------------------------------------------------------------------------------------


class _Lender:
    """Converts the pycsp ends in arguments to a form that can be sent to another OS process."""

    def __init__(self) -> None:
        self.ends: list[ChannelEnd] = []

    def lend(self, value: Any) -> Any:
        if isinstance(value, Channel):
            raise InfoException(
                f"{value!r} itself cannot go to another OS process: give the process an end of it, +channel or -channel"
            )
        if isinstance(value, ChannelEnd):
            if value in self.ends:
                number = self.ends.index(value)
            else:
                number = len(self.ends)
                self.ends.append(value)
            of = value.channel
            if of._native is None:
                raise InfoException(
                    f"{value!r}: the channel lives in another program, and its end stays here: give the process the channel's "
                    "name and address, and it connects itself"
                )
            make = of._native.reader if value._op == READ else of._native.writer
            return _Lent(make(), value._op, of.name, of.buffer, number)
        if type(value) in (list, tuple):
            return type(value)([self.lend(v) for v in value])
        if type(value) is dict:
            return {self.lend(k): self.lend(v) for k, v in value.items()}
        return value


@threads.process
def _serve(asked: Any, answers: Any, ends: list[ChannelEnd]) -> None:
    """Performs the requests that the lent ends in the other OS process send."""
    try:
        for question, what, number in asked:
            end = ends[number]
            if what != "draining":
                getattr(end, what)()
            answers.write((question, end.channel._draining))
    except PeerDied:  # the code that called the process reports this
        pass


def run_apart(p: Any) -> Any:
    """Runs a pycsp process in an OS process of its own; returns its result.

    Raises:
        the exception of the process; ProcessDied; BadUse: its function or an argument cannot be
        sent; InfoException: an argument is a channel and not an end.
    """
    lender = _Lender()
    asked, answers = channels()
    there: Any = _there(
        _pickling.dump_function(p.fn),
        lender.lend(p.args),
        lender.lend(p.kwargs),
        asked.writer(),
        answers.reader(),
        p._address,
        p._place is not None,
    ).named(p.name)
    if p._place is not None:
        there = there.on(p._place)
    return threads.Parallel(there, _serve(asked.reader(), answers.writer(), lender.ends))[0]


# --- there ----------------------------------------------------------------------------------------


class _FarChannel(Channel):
    """In the other OS process: a channel of which one end was lent."""

    __slots__ = ("_line", "_number")

    _line: Asking
    _number: int

    def __new__(cls, lent: _Lent, line: Asking) -> _FarChannel:
        self = object.__new__(cls)
        self._native = None
        self._ends = (lent.native, None) if lent.side == READ else (None, lent.native)
        self._open, self._over = [0, 0], [lent.side != READ, lent.side != WRITE]
        self.name, self.buffer = lent.name, lent.buffer
        self._line, self._number = line, lent.number
        return self

    @property
    def _draining(self) -> bool:  # type: ignore[override]
        return self.buffer > 0 and bool(self._line.ask("draining", self._number))

    def _leave(self, side: int) -> None:
        super()._leave(side)
        if self._over[side]:
            self._line.ask("retire", self._number)

    def _poison(self, side: int) -> None:
        self._line.ask("poison", self._number)


def _received(value: Any, line: Asking, known: dict[int, ChannelEnd]) -> Any:
    if isinstance(value, _Lent):
        if value.number not in known:
            of = _FarChannel(value, line)
            known[value.number] = ChannelEndRead(of) if value.side == READ else ChannelEndWrite(of)
        return known[value.number]
    if type(value) in (list, tuple):
        return type(value)([_received(v, line, known) for v in value])
    if type(value) is dict:
        return {_received(k, line, known): _received(v, line, known) for k, v in value.items()}
    return value


@process
def _there(
    function: bytes,
    args: Any,
    kwargs: Any,
    asked: Any,
    answers: Any,
    address: Any,
    takes: bool,
) -> Any:
    from weft.compat.pycsp import _processes, _remote, parallel

    if address is not None:
        _remote.listen(address, _remote.bound(*address) if takes else None)

    line, known = Asking(asked, answers), {}  # type: ignore[var-annotated]
    p = parallel.Process(
        _pickling.load_function(function),
        *_received(args, line, known),
        **_received(kwargs, line, known),
    )
    return _processes._body(p)
