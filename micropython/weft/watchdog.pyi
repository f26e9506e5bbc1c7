from collections.abc import Callable
from typing import Any

class Watchdog:
    hogs: dict[str, int]
    def __init__(
        self,
        period: int,
        tell: Callable[[str], None] | None = None,
        start: Callable[[int, Callable[[Any], None]], Any] | None = None,
    ) -> None: ...
    def tick(self, _: Any) -> None: ...
    def stop(self) -> None: ...
