"""`weft portable`, as a user runs it (rule 19.7): its output, its exit status, bad use, and odd
files. micropython/tests/test_portable.py checks on MicroPython whether the output is true.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from weft import cli
from weft._commands import portable, portable_list, portable_names, portable_syntax
from weft._commands.portable_source import judge

GOOD = "from weft import process, run\n@process\nasync def f(): return 1\nprint(run(f()))\n"


def says(*arguments: str | Path) -> tuple[int, str]:
    given = [str(a) for a in arguments]
    done = CliRunner().invoke(portable.portable_command, given, standalone_mode=False)
    assert done.exception is None, done.exception
    return done.return_value, done.output


def found(path: Path, text: str) -> list[tuple[int, str, str]]:
    path.write_text(text, encoding="utf-8")
    return [(f.line, f.name, f.lacks) for f in judge(path, path.read_bytes()).findings]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", "portable", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "100"},
        check=False,
    )


# --- the command ----------------------------------------------------------------------------------


def test_a_file_that_runs_on_both_and_one_that_does_not(tmp_path: Path) -> None:
    """Rule 19.7: the report and the exit status of a portable file and of another file."""
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD)
    bad.write_text(GOOD.replace("return 1", "return [*[1]]"))
    one = command(good)
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout.splitlines()[1:] == ["  f (line 3): runs on both"]
    two = command(good, bad, "--json")
    assert (two.returncode, two.stderr) == (1, "")
    report = json.loads(two.stdout)
    assert report["micropython"] == portable_names.facts()["version"]
    first, second = report["files"]
    assert first == {
        "file": str(good),
        "portable": True,
        "processes": [{"name": "f", "line": 3, "portable": True, "findings": []}],
        "findings": [],
    }
    assert second["processes"] == [{"name": "f", "line": 3, "portable": False, "findings": [0]}]
    assert second["findings"][0]["name"] == "a starred item in a list"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "weft: give the path of a Python file\n"),
        (["nosuch.py"], "weft: nosuch.py does not exist"),
        (["."], "weft: . is a directory"),
        (["--list", __file__], "weft: give files or --list, not both\n"),
        (["--no-such"], "weft: No such option"),
    ],
)
def test_bad_use_is_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["portable", *arguments]) == cli.EXIT["bad use"]
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(message), err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"def f(:\n", "is not Python (line 1"),
        (b"x = '\xff'\n", "is not Python"),
        (b"x = 1\0\n", "is not Python"),
    ],
)
def test_a_file_that_is_not_python(
    text: bytes, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(text)
    assert cli.main(["portable", str(file)]) == cli.EXIT["bad use"]
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


def test_a_module_beside_the_file_that_is_not_python_is_named(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.with_name("helper.py").write_text("x = = 1\n")
    file.write_text("import helper\n")
    assert cli.main(["portable", str(file)]) == cli.EXIT["bad use"]
    assert "helper.py is not Python (line 1" in capsys.readouterr().err


def test_the_list_has_every_difference_with_its_reason() -> None:
    """Rule 19.7: `--list` prints each difference with its reason, also as JSON."""
    status, text = says("--list")
    assert status == 0
    for difference in (*portable_list.NAMES, *portable_list.MODULES):
        assert f"  {', '.join(difference.keys)}: {difference.reason}" in text
    status, text = says("--list", "--json")
    listed = json.loads(text)
    assert {d["lacks"] for d in listed} == {"CPython", "MicroPython"}
    assert all(d["names"] and d["reason"] for d in listed)


def test_help_and_the_list_of_commands_name_it() -> None:
    done = command("--help")
    assert done.returncode == 0 and "Exit status:" in done.stdout and "--list" in done.stdout


# --- probes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("probe", portable_syntax.PROBES, ids=lambda p: p.name)
def test_a_probe_finds_its_own_snippet_which_runs_here(probe: portable_syntax.Probe) -> None:
    if probe.name == "except*" and not probe.kinds:
        pytest.skip("except* came with CPython 3.11")
    tree = ast.parse(probe.snippet)
    nodes = [n for n in ast.walk(tree) if isinstance(n, probe.kinds)]
    assert any(probe.found(n) for n in nodes)
    exec(compile(tree, probe.name, "exec"), {})


@pytest.mark.parametrize("name", [name for name, _, _ in portable_syntax.STRINGS])
def test_a_way_to_write_strings_runs_here(name: str, file: Path) -> None:
    snippet = portable_syntax.STRING_SNIPPETS[name]
    exec(snippet, {})
    lacking = name in portable_names.facts()["strings"]
    assert [n for _, n, _ in found(file, snippet)] == ([name] if lacking else [])


def test_what_the_port_lacks_is_a_probe() -> None:
    known = {p.name for p in portable_syntax.PROBES}
    lacks = portable_names.facts()["syntax"]
    assert {*lacks} <= known and 5 < len(lacks) < len(known)


# --- what a name means ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def f(sum): return sum([1], start=1)",  # a parameter
        "sum = print\nsum(start=1)",
        "def f():\n    vars = 1\n    return vars",
        "class A:\n    def zfill(self, n): return n\ndef f(x): return x.zfill(1)",
        "class A:\n    def __init__(self): self.blocks = 1\ndef f(x): return x.blocks",
        "def f(x): return x.title, x.obj, x.on(1), x.close()",
        "def f(path: vars) -> vars:\n    x: vars = 1\n    return x",  # annotations
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\nif numpy: numpy.array",
        "try:\n    import numpy\nexcept (ValueError, ImportError): pass",
        "try:\n    import numpy\nexcept: pass",
        "try:\n    vars\nexcept NameError: pass",
        "import time\ntry:\n    time.perf_counter\nexcept AttributeError: pass",
        "import sys\nif sys.implementation.name == 'micropython':\n    import machine\n"
        "else:\n    import threading",
        "import sys\nif sys.implementation.name != 'cpython':\n    import machine\n"
        "else:\n    import threading",
        "from sys import implementation\nif implementation.name == 'cpython':\n    import threading",
        "import weft.coroutines\nweft.coroutines.run",
        "import weft\nweft.threads.run\nweft.__version__\nweft.coroutines.__file__",
        "from weft import _cbor",  # both Pythons have this module
        "import asyncio\nasyncio.run(asyncio.sleep(0))",
        "class A:\n    def __init__(self): super().__init__()",
        "a, *b = 1, 2\nprint(*b)\n[x for x in b]",
        "lambda *a, b=1, **c: (a, b, c)",
        "def f(text):\n    return text.split('a', 1)",
        "",
        "# nothing but a remark",
        "\ufeffx = 1",
        "x = r'\\d' 'a{}'",
    ],
)
def test_no_finding(text: str, file: Path) -> None:
    assert found(file, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy as np\nnp.array", [(1, "the module numpy", "MicroPython")]),
        ("try:\n    import numpy\nexcept ValueError: pass", [(2, "the module numpy", "MicroPython")]),
        (
            "try:\n    import numpy\nexcept ModuleNotFoundError: pass",
            [(3, "ModuleNotFoundError", "MicroPython")],
        ),
        ("try: pass\nfinally:\n    import numpy", [(3, "the module numpy", "MicroPython")]),
        (
            "import sys\nif sys.implementation.name == 'micropython':\n    import threading\n"
            "else:\n    import machine",
            [(3, "the module threading", "MicroPython"), (5, "the module machine", "CPython")],
        ),
        ("from time import perf_counter as t\nt()", [(1, "time.perf_counter", "MicroPython")]),
        ("import time as t\nt.perf_counter()", [(2, "time.perf_counter", "MicroPython")]),
        ("import os.path", [(1, "the module os.path", "MicroPython")]),
        ("from weft import *\nrun()", [(2, "run", "MicroPython")]),
        ("from weft.nosuch import x", [
            (1, "the module weft.nosuch", "CPython"), (1, "the module weft.nosuch", "MicroPython"),
        ]),
        ("from weft import _native", [(1, "weft._native", "MicroPython")]),
        ("from weft import _core", [(1, "weft._core", "CPython")]),
        ("import weft._nosuch.deeper", [
            (1, "the module weft._nosuch.deeper", "CPython"),
            (1, "the module weft._nosuch.deeper", "MicroPython"),
        ]),
        ("import weft as w\nw.Channel('a', type=int)", [(2, "Channel(type=)", "MicroPython")]),
        ("import weft\nweft.use('threads')", [(2, "weft.use", "MicroPython")]),
        ("from weft import Channel\nc = Channel()\nc * 3", [(3, "n * Channel", "MicroPython")]),
        ("from weft import Output\nOutput(a, 1, None)", [(2, "Output(…)", "CPython")]),
        ("from weft import Group\ng = Group(clock='steady')\ng.start(a, b)", [(3, ".start(…)", "CPython")]),
        ("class A:\n    def __del__(self): pass", [(1, "__del__", "MicroPython")]),
        ("print(f'{1}' '{')", [(1, "an f-string beside a string with a brace", "MicroPython")]),
    ],
)  # fmt: skip
def test_findings(text: str, expected: list[tuple[int, str, str]], file: Path) -> None:
    assert found(file, text) == expected


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("folder", ["examples", "conformance/scenarios"])
def test_nothing_that_runs_on_cpython_is_refused_on_cpython(folder: str) -> None:
    """Rule 19.7: no false refusal. (MicroPython's side: micropython/tests/test_portable.py.)"""
    files = sorted((ROOT / folder).rglob("*.py"))
    wrong = [f for p in files for f in judge(p, p.read_bytes()).findings if f.lacks == "CPython"]
    assert len(files) > 10 and wrong == []


# --- who uses what --------------------------------------------------------------------------------


def processes(path: Path) -> dict[str, list[str]]:
    judged = judge(path, path.read_bytes())
    return {name: [f.name for f in findings] for name, _, findings in judged.processes}


def test_a_process_answers_for_what_it_uses(file: Path) -> None:
    """Rule 19.7: through functions, classes, variables and imports, and no further."""
    file.write_text(
        "from weft import process\nimport weft\nimport threading\nfrom time import perf_counter, sleep\n"
        "table = [*[1], 2]\n"
        "def deep(): return table\n"
        "class A:\n    def f(self): return deep()\n"
        "@process\nasync def through(): A().f()\n"
        "@process\nasync def clock(): sleep(perf_counter())\n"
        "@process\nasync def clean(): sleep(0)\n"
        "def outer():\n    import dataclasses\n"
        "    @weft.process\n    async def inner(): dataclasses.field()\n"
        "    @weft.process\n    async def other(table): return table\n"
    )
    assert processes(file) == {
        "through": ["a starred item in a list"],
        "clock": ["time.perf_counter"],
        "clean": [],
        "inner": ["the module dataclasses"],
        "other": [],
    }


def test_modules_beside_the_file_are_read_also_in_a_circle(file: Path) -> None:
    file.with_name("one.py").write_text("import two\nimport threading\ndef f(): return two.g\n")
    file.with_name("two.py").write_text("import one\ndef g(x): return x.zfill(3)\n")
    package = file.parent / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("def h(): return [*[1]]\n")
    file.write_text(
        "from weft import process\nimport two\nfrom one import f\nimport pack\n"
        "@process\nasync def a(): f()\n@process\nasync def b(): two.g(1)\n"
        "@process\nasync def c(): pack.h()\n@process\nasync def d(): pass\n"
    )
    judged = judge(file, file.read_bytes())
    assert {(f.file.name, f.name) for f in judged.findings} == {
        ("one.py", "the module threading"),
        ("two.py", ".zfill"),
        ("__init__.py", "a starred item in a list"),
    }
    assert processes(file) == {
        "a": [".zfill"],
        "b": [".zfill"],
        "c": ["a starred item in a list"],
        "d": [],
    }
    status, text = says(file)
    assert status == 1 and f"{file.with_name('two.py')}, line 2: .zfill" in text


def test_nothing_is_run(file: Path) -> None:
    file.write_text("raise SystemExit(7)\n")
    file.with_name("helper.py").write_text("raise SystemExit(8)\n")
    assert says(file)[0] == 0


def test_a_deep_file_is_judged(file: Path) -> None:
    """A file that is nested deeper than this program can recurse is judged, or refused with one
    sentence."""
    file.write_text("x = " + "-" * 3000 + "1\n")
    done = command(file)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done.stderr
