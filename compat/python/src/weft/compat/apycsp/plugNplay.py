"""aPyCSP's small processes, from which networks are built."""

from __future__ import annotations

from typing import Any

from weft.compat.apycsp import Alternative, Parallel, process

__all__ = [
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
async def Identity(cin: Any, cout: Any) -> None:
    """Copies its input to its output."""
    async for t in cin:
        await cout(t)


@process
async def Prefix(cin: Any, cout: Any, prefixItem: Any = None) -> None:
    """Writes `prefixItem`, then copies."""
    await cout(prefixItem)
    async for t in cin:
        await cout(t)


@process
async def SeqDelta2(cin: Any, cout1: Any, cout2: Any) -> None:
    """Writes every value to the first output, then to the second."""
    async for t in cin:
        await cout1(t)
        await cout2(t)


@process
async def ParDelta2(cin: Any, cout1: Any, cout2: Any) -> None:
    """Writes every value to both outputs at once."""
    async for t in cin:
        await Parallel(cout1(t), cout2(t))


Delta2 = ParDelta2


@process
async def Successor(cin: Any, cout: Any) -> None:
    """Adds 1 to each value."""
    async for t in cin:
        await cout(t + 1)


@process
async def SkipProcess() -> None:
    """Ends at once."""


@process
async def Mux2(cin1: Any, cin2: Any, cout: Any) -> None:
    """Copies values from the input that is ready; if both are, from the first one."""
    alt = Alternative(cin1, cin2)
    while True:
        _, value = await alt.pri_select()
        await cout(value)


@process
async def poison_chans(*chans: Any, verbose: bool = False) -> None:
    """Poisons the given channels, or the channels of the given ends."""
    for ch in chans:
        if verbose:
            print("poison_chans() - poison", ch)
        await ch.poison()
