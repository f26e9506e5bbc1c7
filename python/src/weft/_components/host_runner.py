"""Runs processes of native components in separate OS processes, so that a crash ends no other
process (rules 16.7, 16.8).

    filter.scale(+a, -b, on="process")
        │ the arguments are checked, the channels get their types
        ▼
    Call, the body of a thread process
        │ the process starts: Call.away()
        ▼
    run_component() in a host (_hosts/host.py), which loads the library once and runs the component
        │ the host dies
        ▼
    ProcessDied, with the names of the component and its process
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from weft._extension import native as _native
from weft.errors import BadUse, Cancelled, ChannelEnd

__all__ = ["Call", "run_component"]


class Call:
    """A call of a component's process. It is the body of the Python process that runs the
    component, in this OS process or in another one.
    """

    def __init__(
        self, here: Any, path: str, component: str, number: int, name: str, values: Any, cpu: int
    ) -> None:
        self._call_here = here
        self._call_there = path, number, name, component, values, cpu
        self.__name__ = self.__qualname__ = name

    def __call__(self, *_: Any) -> Any:
        return self._call_here()

    def away(self, call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> Any:
        """Returns the same call as a function that `call` runs elsewhere. The ends among the
        arguments belong to the process and go with it.

        Raises:
            BadUse: one of the arguments is a barrier.
        """
        name = self.__name__
        call_there = self._call_there
        if any(isinstance(value, _native.Barrier) for value in call_there[4]):
            raise BadUse(
                f"{name} of component {call_there[3]} in another OS process: it is given a Barrier, which works only within one OS process. "
                "Run it on='thread', or meet by a channel"
            )

        def away(*_: Any) -> Any:
            return call(run_component, call_there, {})

        away.__name__ = away.__qualname__ = name
        away._weft_call = self  # type: ignore[attr-defined]
        return away


# --- in the host ----------------------------------------------------------------------------------


@functools.cache
def _loaded(path: str) -> Any:
    # This import also makes the classes of the aggregates and of failures.
    import weft.native

    return weft.native.load(path)._capsule


def run_component(
    path: str, number: int, name: str, component: str, values: tuple[Any, ...], cpu: int
) -> Any:
    """Runs the process of the component in the library `path`, on the calling thread. A host calls
    this function.

    Raises:
        BadUse: the library is no longer there.
    """
    try:
        capsule = _loaded(path)
    except BadUse as error:
        raise BadUse(f"{name} in another OS process: {error}") from None
    call = _native._component_call(capsule, number, values, cpu)
    try:
        return call()
    except (ChannelEnd, Cancelled) as end:
        file, line = _native._component_place(_native.current_process()) or ("", 0)
        if file:  # a component has no Python frames, so the place is passed along (rule 7.1)
            end._at = f"{file.rpartition(os.sep)[2]}:{line}"
        raise


# The name of the process in the host, and the name under which its death is reported to the caller.
run_component._weft_name = lambda path, number, name, *_: name  # type: ignore[attr-defined]
run_component._weft_called = (  # type: ignore[attr-defined]
    lambda path, number, name, component, *_: f"{name} of component {component}"
)
