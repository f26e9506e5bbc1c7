"""Tests that the backends' modules and stubs and weft.plugnplay are what tools/names.py would
write, and that the tool reports what it cannot write.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT


@pytest.fixture
def names(tmp_path: Path) -> ModuleType:
    """Returns the tool, working on a copy of the files that it reads and writes."""
    spec = importlib.util.spec_from_file_location("names", ROOT / "tools/names.py")
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.WEFT = Path(shutil.copytree(ROOT / "python/src/weft", tmp_path / "weft"))
    module.TABLE = Path(shutil.copy(ROOT / "tools/names.toml", tmp_path))
    return module


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_what_is_committed_is_what_would_be_written() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/names.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "coroutines.py",
        "threads.py",
        "greenlets.py",
        "coroutines.pyi",
        "threads.pyi",
        "greenlets.pyi",
        "plugnplay/threads.py",
        "plugnplay/greenlets.py",
    ],
)
def test_a_file_that_was_edited_is_named_and_written_again(
    names: Any, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = names.WEFT / name
    before = path.read_text(encoding="utf-8")
    change(path, '"poison",' if "plug" not in name else '"identity",', "")
    assert names.main(["--check"]) == 1
    assert f"{name}: out of date; run python3 tools/names.py" in capsys.readouterr().err
    assert names.main([]) == names.main(["--check"]) == 0
    assert path.read_text(encoding="utf-8") == before


def test_a_new_name_comes_into_every_module_and_stub(names: Any) -> None:
    change(names.TABLE, '["io"]', '["io", "oi"]')
    assert names.main([]) == 0
    for name in ("coroutines", "threads", "greenlets"):
        module = (names.WEFT / f"{name}.py").read_text(encoding="utf-8")
        assert "from weft._backends.io import oi as oi\n" in module and '    "oi",\n' in module
        stub = (names.WEFT / f"{name}.pyi").read_text(encoding="utf-8")
        assert " import oi as oi\n" in stub and '    "oi",\n' in stub


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("names.toml", '["io"]', '["io", "io"]', "coroutines has io twice"),
        (
            "names.toml",
            '"weft._backends.greenlets" = ["process"]',
            "",
            "greenlets has not the names of coroutines",
        ),
        (
            "weft/coroutines.pyi",
            "class Barrier:",
            "class Barier:",
            "declares what names.toml has not: Barier",
        ),
        (
            "names.toml",
            '"weft._backends.shared" = ["process"]',
            '"weft._backends.shared" = ["process", "more"]',
            "has not the names",
        ),
        ("weft/coroutines.pyi", "# --- by hand", "# by hand", "the lines `# --- by hand` and"),
        (
            "weft/plugnplay/coroutines.py",
            '"""The plug',
            'x = 1\n"""The plug',
            "begins without a docstring",
        ),
    ],
)
def test_what_cannot_be_is_told(
    names: Any, name: str, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(names.TABLE.parent / name, old, new)
    assert names.main([]) == 1
    assert message in capsys.readouterr().err


def test_bad_usage_is_told(names: Any) -> None:
    assert names.main(["--chekc"]) == 2


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
def test_types_of_what_is_awaited_are_called(names: Any, awaited: str, called: str) -> None:
    assert names.called(awaited) == called


@pytest.mark.parametrize(
    ("awaited", "called"),
    [
        ("async def f(r):\n    return await r()\n", "def f(r):\n    return r()\n"),
        ("async for x in r: await w(await r())\n", "for x in r: w(r())\n"),
        ("async  with g as h:  # async\n    'await'\n", "with g as h:  # async\n    'await'\n"),
        ("[v async for v in r if await f(v)]\n", "[v for v in r if f(v)]\n"),
        ("awaited = asynchronous\n", "awaited = asynchronous\n"),
    ],
)
def test_programs_lose_the_words_and_nothing_else(names: Any, awaited: str, called: str) -> None:
    assert names.without_await(awaited) == called


def test_plug_and_play_lists_every_process_in_its_order() -> None:
    import ast

    tree = ast.parse((ROOT / "python/src/weft/plugnplay/coroutines.py").read_text(encoding="utf-8"))
    processes = [
        node.name
        for node in tree.body
        if isinstance(node, ast.AsyncFunctionDef)
        and node.decorator_list
        and not node.name.startswith("_")
    ]
    (listed,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert listed == [*processes, "mult"]
