"""weft.coroutines without the extension module: the names of the pure-Python package."""

from __future__ import annotations

import os
from typing import Any

from weft import errors
from weft._fallback import NAMES, not_here, pure

_module = pure("coroutines")
__all__ = sorted([*NAMES, *errors.__all__])
globals().update({name: getattr(_module, name) for name in NAMES})
globals().update({name: getattr(errors, name) for name in errors.__all__})
_calls: Any = pure("_io")


class _Call(_calls._Call):  # type: ignore[misc]
    """A call that blocks. CPython's poll() takes only descriptors, so a pipe reports the end of the
    call.
    """

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self._ends: tuple[int, ...] = os.pipe()

    def fileno(self) -> int:
        return self._ends[0]

    def work(self) -> None:
        super().work()
        os.write(self._ends[1], b".")

    def close(self) -> None:
        ends, self._ends = self._ends, ()
        for end in ends:
            os.close(end)


_calls._Call = _Call


def __getattr__(name: str) -> Any:
    not_here(__name__, name)
