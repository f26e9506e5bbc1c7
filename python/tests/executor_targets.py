"""The functions that test_processes_executor_large.py and test_processes_executor_map.py run in
other OS processes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from weft.processes import Executor

KEPT: list[Any] = []


def first(a: Any) -> Any:
    return a[0]


def seen(a: Any) -> tuple[str, bool, Any, int]:
    """Returns the type of an argument, whether it may be written to, its first item and length."""
    writeable = not memoryview(a).readonly
    return type(a).__name__, writeable, a[0], len(a)


def writes(a: Any, value: Any) -> Any:
    """Writes to its argument. Returns the previous value."""
    before = a[0]
    a[0] = value
    return before


def writes_at(a: Any, at: int, value: Any) -> Any:
    before = float(a[at])
    a[at] = value
    return before


def square_of(n: int, folder: str) -> int:
    (Path(folder) / f"ran-{n}").touch(exist_ok=False)  # fails if the call is run a second time
    return n * n


def cached(given: tuple[str, int]) -> int:
    from joblib import Memory  # type: ignore[import-not-found, import-untyped, unused-ignore]

    folder, n = given
    return int(Memory(folder, verbose=0).cache(square_of, ignore=["folder"])(n, folder))


def within(given: dict[str, list[Any]]) -> float:
    return float(sum(a.sum() for a in given["arrays"]))


def keeps(a: Any) -> None:
    KEPT.append(a)


def kept() -> float:
    return float(KEPT[-1].sum())


def its_memory(a: Any) -> tuple[int, int]:
    """Returns the pid of this OS process, and how many of Weft's segments it has mapped."""
    return os.getpid(), Path("/proc/self/maps").read_text(encoding="ascii").count("/memfd:weft")


def of_a_frame(frame: Any) -> tuple[str, str, list[Any]]:
    """Returns the type of a frame or a series, and its last row."""
    kind = type(frame)
    last = frame.to_list()[-1:] if kind.__name__ == "Series" else list(frame.row(-1))
    return kind.__module__.split(".")[0], kind.__name__, last


def memory_of(a: Any) -> set[str]:
    """Returns the inodes of the segments that this OS process has mapped."""
    lines = Path("/proc/self/maps").read_text(encoding="ascii").splitlines()
    return {line.split()[4] for line in lines if "/memfd:weft" in line}


def dies(a: Any = None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def marks(folder: str, n: int) -> int:
    """Records that call n begins. Returns how often it had begun before."""
    before = len(list(Path(folder).glob(f"{n}-*")))
    (Path(folder) / f"{n}-{before}").touch()
    return before


def dies_first(folder: str, n: int, times: int = 1) -> int:
    if marks(folder, n) < times:
        dies()
    return n


def raises_first(folder: str, n: int, error: Any) -> int:
    if marks(folder, n) < 1:
        raise error
    return n


def stays(n: int, those: tuple[int, ...]) -> int:
    """Returns n, or never returns if n is in `those`."""
    if n in those:
        threading.Event().wait()
    return n


def within_a_worker(n: int) -> list[int]:
    with Executor(1) as pool:
        return list(pool.map(abs, range(-n, 0)))


def opens(path: str) -> int:
    with Path(path).open(encoding="utf-8") as file:
        return int(file.read())


class RaisesWhenPickled:
    def __reduce__(self) -> Any:
        raise ValueError("not this one")


def stays_first(folder: str, n: int) -> int:
    return stays(n, (n,) if marks(folder, n) < 1 else ())


def once_only(path: str) -> None:
    """Kills its OS process when it is called for the second time."""
    if Path(path).exists():
        dies()
    Path(path).touch()
