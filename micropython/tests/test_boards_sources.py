"""Tests which source goes along with a process to a board (rule 21.2). Weft finds it by syntax, so
the tests need no board."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft._boards import sources
from weft.threads import BadUse

from . import placed_programs as programs

FILE = Path(programs.__file__)
LINES = FILE.read_text(encoding="utf-8").splitlines()


def body(process: Any) -> Any:
    return process.__wrapped__


def text_of(process: Any) -> tuple[sources.Source, list[str]]:
    source = sources.taken(body(process))
    return source, source.files[source.module + ".py"].decode().splitlines()


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str], Any]:
    """Returns a function that makes a module of a text."""

    def made(text: str, name: str = "made_for_a_board") -> Any:
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(tmp_path))
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(tmp_path))
        return module

    return made


def test_only_what_is_named_goes_along_and_keeps_its_line() -> None:
    """rule 21.2: no import, class or decorator goes along"""
    source, lines = text_of(programs.count)
    written = {i: line for i, line in enumerate(lines) if line}
    assert written == {i: LINES[i] for i in written}
    assert "SCALE = 3" in lines
    assert "def scaled(x: int) -> int:" in lines
    assert "async def count(out: Writer[int], n: int) -> int:" in lines
    assert not [line for line in lines if "import" in line or "class" in line or "@" in line]
    assert source.function == "count"
    assert source.places == {source.module + ".py": str(FILE)}


def test_an_import_brings_only_the_names_that_are_used() -> None:
    """rule 21.2: Reader, which MicroPython does not have, is only in annotations"""
    _, lines = text_of(programs.exchange_within)
    imports = [line for line in lines if "import" in line]
    assert imports == [
        "from weft.coroutines import Parallel; from weft.coroutines import process"
    ] or imports == ["from weft.coroutines import process; from weft.coroutines import Parallel"]
    assert "@process" in lines  # of the other process, which the board makes


def test_a_module_beside_the_file_goes_whole_but_for_its_main_program() -> None:
    """rule 21.2: `size` counts no empty lines"""
    source, _ = text_of(programs.helped)
    helper = source.files["placed_helper.py"].decode()
    assert "def shifted" in helper
    assert "__main__" not in helper
    assert source.places["placed_helper.py"] == str(FILE.with_name("placed_helper.py"))
    bare = [text.replace(b"\n\n", b"\n") for text in source.files.values()]
    assert source.size < sum(map(len, bare))
    assert source.size == sum(
        len(line) + 1 for text in source.files.values() for line in text.split(b"\n") if line
    )


def test_the_digest_is_that_of_the_text(module: Callable[[str], Any]) -> None:
    """rule 21.3"""
    text = "K = {}\n\n\nasync def f():\n    return K\n"
    one, same, other = (
        sources.taken(module(text.format(k), name).f) for k, name in ((1, "a"), (1, "b"), (2, "c"))
    )
    assert (one.digest, one.files) == (same.digest, same.files)
    assert one.digest != other.digest


CASES = {
    "of two statements on a line one goes": (
        "A = 1; B = 2\n\n\nasync def f():\n    return B\n",
        ["B = 2", "", "", "async def f():", "    return B"],
    ),
    "a local of the same name is another": (
        "import threading\n\nx = threading.Lock()\n\n\nasync def f():\n    x = 1\n    return x\n",
        ["", "", "", "", "", "async def f():", "    x = 1", "    return x"],
    ),
    "a statement that may bind it goes whole": (
        "try:\n    import utime as time\nexcept ImportError:\n    import time\n\n\n"
        "async def f():\n    time.time()\n",
        ["try:", "    import utime as time", "except ImportError:", "    import time"],
    ),
    "what only the main program runs does not go": (
        "x = 1\nif __name__ == '__main__':\n    x = 2\n\n\nasync def f():\n    return x\n",
        ["x = 1", "", "", "", "", "async def f():"],
    ),
    "a star brings the name from Weft": (
        "from weft.coroutines import *\n\n\nasync def f():\n    await sleep(1)\n",
        ["from weft.coroutines import sleep"],
    ),
    "threads are coroutines there": (
        "from weft.threads import BadUse as Wrong\n\n\nasync def f():\n    raise Wrong\n",
        ["from weft.coroutines import BadUse as Wrong"],
    ),
    "a constant of constants": (
        "A = 2\nTABLE = [A * i for i in range(4)]\n\n\nasync def f():\n    return TABLE\n",
        ["A = 2", "TABLE = [A * i for i in range(4)]"],
    ),
    "a function within goes alone": (
        "def g():\n    async def f(x):\n        return x\n\n    return f\n\n\nf = g()\n",
        ["", "async def f(x):", "    return x"],
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_names_are_found_by_syntax(case: str, module: Callable[[str], Any]) -> None:
    """rule 21.2"""
    text, expected = CASES[case]
    source = sources.taken(module(text).f)
    lines = source.files[source.module + ".py"].decode().splitlines()
    assert lines[: len(expected)] == expected


def test_what_cannot_travel_is_told_at_once(module: Callable[[str], Any]) -> None:
    """rule 21.2: each error has the reason"""
    around = 1

    async def inner() -> int:
        return around

    async def generated() -> Any:
        yield 1

    for function, why in (
        (lambda: None, "a lambda cannot go to a board"),
        (body(programs.no_coroutine), "no_coroutine is a `def`: .* write `async def no_coroutine`"),
        (inner, "uses around of the function around it.*give it as an argument"),
        (generated, "is a `def`"),
        (print, "only a function can go to a board"),
        (body(programs.locks), r"locks uses the global 'LOCK' \(.*:\d+\), which is a _thread.lock"),
        (body(programs.uses_a_channel), "the global 'ROOM' .*, which is a weft.Channel"),
        (body(programs.decorated), r"decorated has the decorator @other at .*:\d+"),
    ):
        with pytest.raises(BadUse, match=why):
            sources.taken(function)
    made: dict[str, Any] = {}
    exec("async def f(): pass", made)
    with pytest.raises(BadUse, match=r"its source cannot be read \(<string>\)"):
        sources.taken(made["f"])
    for text, why in (
        (
            "from weft.observe import flight\n\n\nasync def f():\n    flight()\n",
            "'flight' of weft.observe is not on a board",
        ),
        ("import email\n\n\nasync def f():\n    email.x()\n", "imports the package 'email'"),
        (
            "N = [open('/dev/null')]\n\n\nasync def f():\n    return N\n",
            "which is a _io.TextIOWrapper",
        ),
    ):
        made_of = module(text)
        if "email" in text:
            folder = Path(made_of.__file__).parent / "email"
            folder.mkdir()
            (folder / "__init__.py").write_text("")
        linecache.checkcache()
        with pytest.raises(BadUse, match=why):
            sources.taken(made_of.f)
        if "open" in text:
            made_of.N[0].close()


def test_a_file_that_was_edited_meanwhile(module: Callable[[str], Any]) -> None:
    """rule 21.2: if it lacks the function, the program must be started again"""
    f = module("async def f():\n    pass\n").f
    Path(f.__code__.co_filename).write_text("# nothing here any more\n")
    with pytest.raises(BadUse, match="does not define it any more: start the program again"):
        sources.taken(f)


def test_a_module_beside_it_that_does_not_parse(module: Callable[[str], Any]) -> None:
    """rule 21.2: the error has the file and line"""
    f = module("async def f():\n    import beside_it\n").f
    Path(f.__code__.co_filename).with_name("beside_it.py").write_text("def (\n")
    with pytest.raises(BadUse, match=r"beside_it.py:1: "):
        sources.taken(f)
