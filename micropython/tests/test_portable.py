"""Rule 19.7: what `weft portable` says of a file is true. The judges are CPython and MicroPython's
unix port, which run the files.

- Files without a finding run on both, with the same output.
- A file with a finding fails on the side that lacks it, with the error that REFUSED names.
- No scenario, example or program of a page that MicroPython runs has a finding about MicroPython.
- The list has all differences of the two packages, and the facts are true of the port.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conformance import micropython as converter
from weft._commands import portable_list, portable_names, portable_source
from weft._commands.portable_names import CPYTHON, MICROPYTHON

from . import board, tiers
from .test_examples import EXAMPLES, programs

PROGRAMS = sorted((Path(__file__).parent / "portable").glob("*.py"))
PAGE = tiers.ROOT / "python/docs/portable.md"


def on_cpython(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)


def on_micropython(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*tiers.command("pure"), path],
        env=tiers.environment("pure"),
        capture_output=True,
        text=True,
        check=False,
    )


def findings(path: Path, lacks: str = "") -> list[portable_source.Finding]:
    judged = portable_source.judge(path, path.read_bytes())
    return [f for f in judged.findings if lacks in ("", f.lacks)]


# --- files that run on both -----------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_file_without_findings_does_the_same_on_both(program: Path) -> None:
    expected = program.with_name(program.name + ".exp").read_text(encoding="utf-8")
    assert findings(program) == []
    for done in (on_cpython(program), on_micropython(program)):
        assert (done.stdout, done.returncode) == (expected, 0), done.stderr
    assert tiers.run("native", program) == expected


@pytest.mark.parametrize("where", list(board.FIRMWARE))
def test_such_a_file_does_the_same_on_the_cortex_m3(where: str, tmp_path: Path) -> None:
    program = PROGRAMS[-1]
    assert board.run(where, program, tmp_path) == program.with_name("ring.py.exp").read_text()


def test_the_files_of_the_page_run_on_both(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    files = dict(re.findall(r"```python save file=(\S+)\n(.*?)```", text, re.DOTALL))
    mended = files["level.py"].replace("[*window, value][-n:]", "window[1 - n :] + [value]")
    files["level.py"] = mended.replace(", start=0", "")
    assert sorted(files) == ["both.py", "level.py"]
    for name, source in files.items():
        path = tmp_path / name
        path.write_text(source, encoding="utf-8")
        here, there = on_cpython(path), on_micropython(path)
        assert findings(path) == [] and here.returncode == there.returncode == 0, there.stderr
        assert here.stdout == there.stdout != ""


# --- files that do not ----------------------------------------------------------------------------

NETWORK = """\
from weft import process, run
@process
async def main():
    {}
print(run(main()))
"""
# The statements of a process, what is found, the side that lacks it, and the error there.
REFUSED: list[tuple[str, str, str, str]] = [
    ("match 1:\n        case 1: pass", "match", MICROPYTHON, "SyntaxError"),
    ("return [*[1], 2]", "a starred item in a list", MICROPYTHON, "SyntaxError"),
    ("return {**{}, 1: 2}", "** in a dictionary", MICROPYTHON, "SyntaxError"),
    ("def f(a, /): pass", "positional-only parameters", MICROPYTHON, "SyntaxError"),
    ("return f'{1!a}'", "!a in an f-string", MICROPYTHON, "SyntaxError"),
    (
        "x = 1\n    return f'{x}' '{}'",
        "an f-string beside a string with a brace",
        MICROPYTHON,
        "Error",
    ),
    (
        "async def g(): yield 1\n    async for x in g(): pass",
        "an async generator",
        MICROPYTHON,
        "AttributeError",
    ),
    ("class A(metaclass=type): pass", "a metaclass, or another keyword of a class", MICROPYTHON, "TypeError"),
    ("import dataclasses", "the module dataclasses", MICROPYTHON, "ImportError"),
    ("import numpy", "the module numpy", MICROPYTHON, "ImportError"),
    ("from weft import processes", "weft.processes", MICROPYTHON, "ImportError"),
    ("import weft.processes", "the module weft.processes", MICROPYTHON, "ImportError"),
    ("from weft import Reader", "weft.Reader", MICROPYTHON, "ImportError"),
    ("from weft import nosuch", "weft.nosuch", CPYTHON, "ImportError"),
    ("from weft import nosuch", "weft.nosuch", MICROPYTHON, "ImportError"),
    ("from weft.coroutines import Reader", "weft.coroutines.Reader", MICROPYTHON, "AttributeError"),
    ("import weft\n    weft.Outside()", "weft.Outside", MICROPYTHON, "ImportError"),
    ("import time\n    time.perf_counter()", "time.perf_counter", MICROPYTHON, "AttributeError"),
    ("from time import ticks_ms", "time.ticks_ms", CPYTHON, "ImportError"),
    ("import machine", "the module machine", CPYTHON, "ModuleNotFoundError"),
    ("from weft import isr", "weft.isr", CPYTHON, "ImportError"),
    ("from weft import sleep_ms", "weft.sleep_ms", CPYTHON, "ImportError"),
    ("try: raise OSError\n    except TimeoutError: pass\n    except OSError: pass", "TimeoutError", MICROPYTHON, "NameError"),
    ("vars(main)", "vars", MICROPYTHON, "NameError"),
    ("return '1'.zfill(3)", ".zfill", MICROPYTHON, "AttributeError"),
    ("x = str(1)\n    return x.zfill(3)", ".zfill", MICROPYTHON, "AttributeError"),
    ("x = [1]\n    return sum(x, start=1)", "sum(start=)", MICROPYTHON, "TypeError"),
    ("return 'a b'.split(maxsplit=1)", ".split(maxsplit=)", MICROPYTHON, "TypeError"),
    ("print('', flush=True)", "print(flush=)", MICROPYTHON, "TypeError"),
    ("from weft import Channel\n    Channel(type=int)", "Channel(type=)", MICROPYTHON, "TypeError"),
    ("from weft import timeout\n    timeout(1, again=True)", "timeout(again=)", MICROPYTHON, "TypeError"),
    ("from weft import Channel\n    c = Channel()\n    return c * 2", "n * Channel", MICROPYTHON, "TypeError"),
    ("return 2 * main()", "n * Process", MICROPYTHON, "TypeError"),
    ("from weft import Channel\n    await Channel().reader().read_many(1)", ".read_many", MICROPYTHON, "AttributeError"),
    ("from weft import Channel\n    Channel().writer().write(1, move=True)", ".write(move=)", MICROPYTHON, "TypeError"),
    ("from weft import Channel, Input\n    Input(Channel().reader(), 'raise')", "Input(…)", CPYTHON, "TypeError"),
    ("from weft import io\n    io(fn=print)", "io(fn=)", CPYTHON, "TypeError"),
    ("try: raise ValueError\n    except ValueError as e: e.__traceback__", ".__traceback__", MICROPYTHON, "AttributeError"),
]  # fmt: skip


@functools.cache
def attempts(side: str) -> dict[int, str]:
    """Runs each refused program on the side that lacks something. Returns the outputs."""
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        for i, (statements, _, lacks, _) in enumerate(REFUSED):
            if lacks == side:
                path = Path(folder, f"refused{i}.py")
                path.write_text(NETWORK.format(statements), encoding="utf-8")
                done = (on_cpython if side == CPYTHON else on_micropython)(path)
                texts[i] = done.stderr if done.returncode else f"it ran: {done.stdout}"
    return texts


@pytest.mark.parametrize("i", range(len(REFUSED)), ids=lambda i: f"{i}-{REFUSED[i][1]}")
def test_a_finding_is_what_fails(i: int, tmp_path: Path) -> None:
    statements, name, lacks, error = REFUSED[i]
    path = tmp_path / "refused.py"
    path.write_text(NETWORK.format(statements), encoding="utf-8")
    judged = portable_source.judge(path, path.read_bytes())
    found = [f for f in judged.findings if f.name == name and f.lacks == lacks]
    assert len(found) == 1, judged.findings
    assert found[0] in judged.processes[0][2], "the process that uses it does not name it"
    assert found[0].reason and found[0].instead
    assert error in attempts(lacks)[i]


def test_what_a_program_catches_is_no_finding_and_is_caught(tmp_path: Path) -> None:
    """Rule 19.7: the same `except` serves both."""
    path = tmp_path / "caught.py"
    path.write_text(
        "try:\n    from weft import Reader, isr\nexcept ImportError:\n    print('one')\n"
        "try:\n    from weft.coroutines import Outside, sleep_ms\n"
        "except (AttributeError, ImportError):\n    print('two')\n",
        encoding="utf-8",
    )
    assert findings(path) == []
    for done in (on_cpython(path), on_micropython(path)):
        assert (done.stdout, done.returncode) == ("one\ntwo\n", 0), done.stderr


def test_import_star_brings_less_on_micropython(tmp_path: Path) -> None:
    """Rule 19.7: a name that a star does not bring there is reported at its first use."""
    path = tmp_path / "star.py"
    path.write_text(
        "from weft.coroutines import *\n@process\nasync def main():\n    await sleep(0)\n"
        "run(main())\n",
        encoding="utf-8",
    )
    assert [(f.line, f.name) for f in findings(path)] == [(4, "sleep")]
    assert "NameError" in on_micropython(path).stderr
    assert on_cpython(path).returncode == 0


# --- no false refusal -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenarios")
    converter.write(folder)
    for helper in (tiers.KIT / "kit.py", *(tiers.KIT / "device").glob("*.py")):
        shutil.copy(helper, folder)  # the modules that the converted scenarios import
    return folder


@pytest.mark.parametrize("module", sorted(p.stem for p in converter.HERE.glob("rules_*.py")))
def test_no_scenario_that_micropython_passes_is_refused(module: str, converted: Path) -> None:
    path = converted / f"{module}.py"
    reader = portable_source.read(path, path.read_bytes())
    run = {*converter.scenarios_of(converter.HERE / f"{module}.py")} - {*converter.LEFT_OUT}
    bad = {}
    seen = set()
    for node in reader.source.tree.body:
        name = f"{module}.{getattr(node, 'name', '')}"
        if name not in run:
            continue
        seen.add(name)
        found = portable_source.used_by(node, reader)
        wrong = [f for f in found if f.lacks == MICROPYTHON and f.file == path]
        if wrong:
            bad[name] = wrong
    assert seen == run and bad == {}


@pytest.mark.parametrize(
    "path",
    [*EXAMPLES, *sorted((tiers.HERE / "tests/scripts").glob("*.py"))],
    ids=lambda p: p.stem,
)
def test_no_program_that_micropython_runs_is_refused(path: Path) -> None:
    """A script that tries what MicroPython lacks catches the error."""
    wrong = [f for f in findings(path, MICROPYTHON) if f.file == path]
    own = ("the module weft_board", "the module kit")  # of the board, and of these tests
    assert [f for f in wrong if f.name not in own] == []


@pytest.mark.parametrize(("name", "text"), programs(), ids=[n for n, _ in programs()])
def test_no_program_of_a_page_is_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "page.py"
    path.write_text(text, encoding="utf-8")
    assert findings(path, MICROPYTHON) == []


# --- one list -------------------------------------------------------------------------------------


def test_the_list_is_what_the_names_differ_in() -> None:
    """Rule 19.7: a difference that the list does not have is a mistake in one of the packages."""
    listed = [(key, d.lacks) for d in portable_list.NAMES for key in d.keys]
    assert len(listed) == len({key for key, _ in listed}), "a key stands in the list twice"
    assert dict(listed) == portable_names.differences()
    for d in (*portable_list.NAMES, *portable_list.MODULES):
        assert d.reason and d.instead and not d.reason.endswith(".")


def test_the_list_has_the_modules_that_one_side_lacks() -> None:
    here = {
        p.stem
        for p in (tiers.ROOT / "python/src/weft").iterdir()
        if (p.suffix == ".py" or (p / "__init__.py").exists()) and p.stem[0] != "_"
    }
    there = {p.stem for p in (tiers.HERE / "weft").glob("[!_]*.py")}
    listed = {key: d.lacks for d in portable_list.MODULES for key in d.keys}
    in_weft_alone = {"weft.use", "weft.check"}  # functions
    modules = {k.partition(".")[2]: v for k, v in listed.items() if k not in in_weft_alone}
    assert {k for k, v in modules.items() if v == MICROPYTHON} == here - there
    assert {k for k, v in modules.items() if v == CPYTHON} == there - here


def test_the_facts_are_what_the_port_answers() -> None:
    done = subprocess.run(
        [sys.executable, tiers.ROOT / "micropython/tests/portable_facts.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
