"""A coroutine wrapped so that it reports bad use when it is awaited, or stepped, a second time
(rule 11.1).
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator
from typing import Any

from weft.errors import BadUse


class Once(Coroutine[Any, Any, Any]):
    """An awaitable that can await the coroutine `inner` once. For asyncio a Once is also a
    coroutine: an asyncio task can step a Once instead of awaiting it.
    """

    __slots__ = ("_awaited", "_inner", "_name")

    def __init__(self, name: str, inner: Coroutine[Any, Any, Any]) -> None:
        self._name = name
        self._inner = inner
        self._awaited = False

    def _refuse(self) -> None:
        over = inspect.getcoroutinestate(self._inner) == inspect.CORO_CLOSED
        how = "was awaited already" if over else "is already being awaited"
        raise BadUse(f"{self._name} {how}: make another for each")

    def __await__(self) -> Generator[Any, Any, Any]:
        if inspect.getcoroutinestate(self._inner) != inspect.CORO_CREATED:
            self._refuse()
        self._awaited = True
        return self._inner.__await__()

    def send(self, value: Any) -> Any:
        if self._awaited:
            self._refuse()
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        if self._awaited and inspect.getcoroutinestate(self._inner) != inspect.CORO_CLOSED:
            self._refuse()
        return self._inner.throw(*error)

    def close(self) -> None:
        if self._awaited and inspect.getcoroutinestate(self._inner) != inspect.CORO_CLOSED:
            self._refuse()
        self._inner.close()

    @property
    def cr_await(self) -> Any:
        return self._inner.cr_await  # type: ignore[attr-defined]

    @property
    def cr_frame(self) -> Any:
        return self._inner.cr_frame  # type: ignore[attr-defined]

    @property
    def cr_running(self) -> Any:
        return self._inner.cr_running  # type: ignore[attr-defined]

    @property
    def cr_code(self) -> Any:
        return self._inner.cr_code  # type: ignore[attr-defined]
