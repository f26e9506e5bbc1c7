"""`pycsp.current`: the names of the module of pycsp that was imported last."""

from collections.abc import Callable
from typing import Any

trace: bool
process: Callable[[Callable[..., Any]], Callable[..., Any]]
io: Callable[[Callable[..., Any]], Callable[..., Any]]
version: tuple[int, int, int, str]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"weft.compat.pycsp.current has no {name!r}: import weft.compat.pycsp.parallel or .greenlets first"
    )
