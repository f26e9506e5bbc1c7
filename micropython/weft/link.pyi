from typing import Any

from .coroutines import Guard, Reader, Writer

class Link:
    name: str
    largest: int
    why: str | None
    def __init__(
        self,
        stream: Any,
        out: Any = None,
        *,
        name: str = "board",
        largest: int = 1024,
        lease: int = 3000,
        again: int = 200,
    ) -> None: ...
    async def __aenter__(self) -> Link: ...
    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> bool: ...
    async def reader(self, name: str) -> Reader[Any]: ...
    async def writer(self, name: str) -> Writer[Any]: ...
    async def wait(self) -> str: ...
    async def select(self, *guards: Guard | Reader[Any]) -> tuple[int, Any]: ...
