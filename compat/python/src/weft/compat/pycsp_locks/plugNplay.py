"""PyCSP-locksharing's small processes, from which networks are built."""

from __future__ import annotations

from typing import Any

from weft.compat.pycsp_locks import Alternative, Parallel, process

__all__ = [
    "AltDelta2",
    "Delta2",
    "Identity",
    "Mux2",
    "ParDelta2",
    "Prefix",
    "SeqDelta2",
    "SkipProcess",
    "Successor",
    "poison_chans",
]


@process
def Identity(cin: Any, cout: Any) -> None:
    """Copies its input to its output."""
    for t in cin:
        cout(t)


@process
def Prefix(cin: Any, cout: Any, prefixItem: Any = None) -> None:
    """Writes `prefixItem`, then copies."""
    cout(prefixItem)
    for t in cin:
        cout(t)


@process
def SeqDelta2(cin: Any, cout1: Any, cout2: Any) -> None:
    """Writes every value to the first output, then to the second."""
    for t in cin:
        cout1(t)
        cout2(t)


@process
def _write(cout: Any, value: Any) -> None:
    cout(value)


@process
def ParDelta2(cin: Any, cout1: Any, cout2: Any) -> None:
    """Writes every value to both outputs at once, by two processes."""
    for t in cin:
        Parallel(_write(cout1, t), _write(cout2, t), check_poison=True).run()


@process
def AltDelta2(cin: Any, cout1: Any, cout2: Any) -> None:
    """Writes every value to both outputs, first to the output that is ready."""
    for t in cin:
        first = cout1.alt_pending_write(t)
        chosen, _ = Alternative(first, cout2.alt_pending_write(t)).select()
        (cout2 if chosen is first else cout1)(t)


Delta2 = ParDelta2


@process
def Successor(cin: Any, cout: Any) -> None:
    """Adds 1 to each value."""
    for t in cin:
        cout(t + 1)


@process
def SkipProcess() -> None:
    """Ends at once."""


@process
def Mux2(cin1: Any, cin2: Any, cout: Any) -> None:
    """Copies values from the input that is ready; if both are, from the first one."""
    alt = Alternative(cin1, cin2)
    while True:
        _, value = alt.pri_select()
        cout(value)


@process
def poison_chans(*chans: Any, verbose: bool = False) -> None:
    """Poisons the given channels, or the channels of the given ends."""
    for ch in chans:
        if verbose:
            print("poison_chans() - poison", ch)
        ch.poison()
