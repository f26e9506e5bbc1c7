"""The types of weft.threads follow from those of weft.coroutines, and both name what the package exports."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

TYPES = ROOT / "python/src/weft"


@pytest.fixture
def stubs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools/stubs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(path: Path) -> list[str]:
    """What the literal `__all__` of a file lists."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{path} has no __all__")


def test_the_stub_of_threads_is_what_would_be_written() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/stubs.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_stubs_name_what_is_exported() -> None:
    more = ["Parallel", "Sequence", "Spawn", "process"]  # what a backend makes itself
    names = sorted([*exported(TYPES / "_exports.py"), *more])
    assert sorted(exported(TYPES / "coroutines.pyi")) == names
    assert sorted(exported(TYPES / "threads.pyi")) == names


@pytest.mark.parametrize(
    ("awaited", "called"),
    [
        ("def f() -> Awaitable[tuple[int, list[T]]]: ...", "def f() -> tuple[int, list[T]]: ..."),
        ("def io() -> Callable[P, Awaitable[R]]: ...", "def io() -> Callable[P, R]: ..."),
        ("    async def __aenter__(self) -> Group: ...", "    def __enter__(self) -> Group: ..."),
        ("def __aiter__(self) -> AsyncIterator[T]: ...", "def __iter__(self) -> Iterator[T]: ..."),
        ("def g() -> Coroutine[Any, Any, R]: ...", "def g() -> Coroutine[Any, Any, R]: ..."),
    ],
)
def test_what_is_awaited_is_called(stubs: ModuleType, awaited: str, called: str) -> None:
    assert stubs.called(f'"""Head."""\n{awaited}').splitlines()[1:] == [called]


def test_an_old_stub_and_bad_usage_are_told(
    stubs: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stubs.TYPES = tmp_path
    (tmp_path / "coroutines.pyi").write_text('"""Head."""\ndef f() -> Awaitable[int]: ...\n')
    (tmp_path / "threads.pyi").write_text("")
    assert stubs.main(["--check"]) == 1
    assert "run python3 tools/stubs.py" in capsys.readouterr().err
    assert stubs.main([]) == stubs.main(["--check"]) == 0
    assert stubs.main(["--chekc"]) == 2
