"""`pycsp.common.plugNplay`: the small processes from which networks are built."""

from __future__ import annotations

from typing import Any

from weft.compat.pycsp import current as _pycsp

__all__ = [
    "Delta2",
    "Identity",
    "Mux2",
    "Pairs",
    "Plus",
    "Prefix",
    "SkipProcess",
    "Successor",
    "Tail",
]

_process = _pycsp.process


@_process
def Identity(cin: Any, cout: Any) -> None:
    """Copies its input to its output."""
    while True:
        cout(cin())


@_process
def Prefix(cin: Any, cout: Any, prefix: Any = None) -> None:
    """Writes `prefix`, then copies."""
    cout(prefix)
    while True:
        cout(cin())


@_process
def Successor(cin: Any, cout: Any) -> None:
    """Adds 1 to each value."""
    while True:
        cout(cin() + 1)


@_process
def Delta2(cin: Any, cout1: Any, cout2: Any) -> None:
    """Writes every value to both outputs, first to the output that is ready."""
    while True:
        msg = cin()
        first, _ = _pycsp.AltSelect(_pycsp.OutputGuard(cout1, msg), _pycsp.OutputGuard(cout2, msg))
        (cout2 if first is cout1 else cout1)(msg)


@_process
def Plus(cin1: Any, cin2: Any, cout: Any) -> None:
    """Reads a value from each input, and writes their sum."""
    while True:
        cout(cin1() + cin2())


@_process
def Tail(cin: Any, cout: Any) -> None:
    """Drops the first value, then copies."""
    cin()
    while True:
        cout(cin())


@_process
def Pairs(cin: Any, cout: Any) -> None:
    """Writes the sum of each value and the value before it."""
    a, b, c = _pycsp.Channel("pA"), _pycsp.Channel("pB"), _pycsp.Channel("pC")
    _pycsp.Parallel(Delta2(cin, -a, -b), Plus(+a, +c, cout), Tail(+b, -c))


@_process
def SkipProcess() -> None:
    """Ends at once."""


@_process
def Mux2(cin1: Any, cin2: Any, cout: Any) -> None:
    """Copies values from the input that is ready."""
    alt = _pycsp.Alternation([{cin1: None, cin2: None}])
    while True:
        _, msg = alt.select()
        cout(msg)
