"""Tests stub files of components, and help(): the declarations of a component, as Python's tools
see them (rule 16.1).
"""

from __future__ import annotations

import ast
import importlib.util
import os
import pydoc
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest
from components import HERE, basics, messages, needs_compiler, parties

import weft.native
from weft.errors import BadUse

pytestmark = needs_compiler

KINDS = {"basics": basics, "messages": messages, "parties": parties}


def names_in(path):
    return [
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]


@pytest.mark.parametrize("name", KINDS)
def test_a_stub_names_all_that_the_component_has(tmp_path, name):
    component = KINDS[name]()
    path = weft.native.write_stub(component, tmp_path)
    assert path == tmp_path / f"{name}.pyi"
    assert set(names_in(path)) == set(component.__all__)
    # Writing the stub again gives the same path.
    assert weft.native.write_stub(component, tmp_path) == path


def test_what_a_stub_says(tmp_path):
    text = weft.native.write_stub(messages(), tmp_path).read_text()
    assert "@dataclass\nclass Sample:\n    time: float\n    value: int\n" in text
    assert (
        "def later(source: Reader[Sample], out: Writer[Sample], by: Sample = ..., *, on: str | Hosts | OneHost | Supervisor = 'thread'"
        in text
    )
    assert "def sums(source: Reader[Any], out: Writer[float]" in text
    assert "def makes_constants(out: Writer[memoryview]" in text
    text = weft.native.write_stub(basics(), tmp_path).read_text()
    assert "factor: float = 2.0" in text
    assert "Each sample times `factor`." in text
    assert "barrier: Barrier" in weft.native.write_stub(parties(), tmp_path).read_text()


CACHE = HERE.parents[1] / ".build/mypy"  # test_types.py uses the same cache and the same options
MYPY = shutil.which("mypy") or importlib.util.find_spec("mypy")


@pytest.mark.skipif(not MYPY, reason="mypy is not installed")
def test_a_type_checker_reads_it(tmp_path):
    weft.native.write_stub(messages(), tmp_path)
    (tmp_path / "uses.py").write_text(
        "import messages\nfrom weft.coroutines import Channel\n"
        "a: Channel[messages.Sample] = Channel()\nb: Channel[str] = Channel()\n"
        "messages.samples(+a, -a)\nmessages.samples(+b, -a)\n"
        "from weft.processes import Hosts, Supervisor\nhosts = Hosts(2)\n"
        "messages.samples(+a, -a, on=hosts[0])\nmessages.samples(+a, -a, on=Supervisor())\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file="),
            *("--follow-imports=silent", "--cache-dir", CACHE, "uses.py"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stdout
    assert errors[0].startswith("uses.py:6:")


def test_a_class_of_the_program_s_own_is_imported(tmp_path):
    (tmp_path / "c.cpp").write_text(
        "#include <weft/component.hpp>\nusing namespace weft::native;\nstruct Mine { double x; };\n"
        "WEFT_FIELDS(Mine, x)\nvoid f(Reader<Mine>) {}\n"
        'WEFT_COMPONENT(c, "") { component.process<&f>("f").argument("source"); }\n'
    )

    @dataclass
    class Mine:
        x: float

    nested = weft.native.load(tmp_path / "c.cpp", types=(Mine,))
    text = weft.native.write_stub(nested, tmp_path).read_text(encoding="utf-8")
    assert "@dataclass\nclass Mine:\n    x: float\n" in text, "nobody can import it"
    ast.parse(text)

    Mine.__qualname__ = "Mine"
    component = weft.native.load(tmp_path / "c.cpp", types=(Mine,))
    text = weft.native.write_stub(component, tmp_path).read_text()
    assert f"from {__name__} import Mine as Mine" in text


def test_what_python_has_no_literal_for_and_texts_with_signs(tmp_path):
    (tmp_path / "c.cpp").write_text(
        "#include <weft/component.hpp>\n#include <limits>\nusing namespace weft::native;\n"
        "void f(Reader<double>, double) {}\n"
        'WEFT_COMPONENT(c, R"(Größer: C:\\new \\N "quoted")") {\n'
        '  component.process<&f>("f").argument("source").argument("most", std::numeric_limits<double>::infinity());\n}\n',
        encoding="utf-8",
    )
    component = weft.native.load(tmp_path / "c.cpp")
    code = (
        "import sys, weft.native\n"
        f"weft.native.write_stub(weft.native.load({component.path!r}), {str(tmp_path)!r})\n" * 2
    )
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code], env=ascii_only, check=True)
    text = (tmp_path / "c.pyi").read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)) == component.__doc__.strip()
    assert "most: float = ..." in text


def test_wrong_use_of_write_stub(tmp_path):
    with pytest.raises(BadUse, match="expected what"):
        weft.native.write_stub(sys, tmp_path)
    with pytest.raises(BadUse, match="there is no folder"):
        weft.native.write_stub(basics(), tmp_path / "none")
    (tmp_path / "basics.pyi").write_text("mine = 1\n")
    with pytest.raises(BadUse, match="was not written by it: move it away"):
        weft.native.write_stub(basics(), tmp_path)
    assert (tmp_path / "basics.pyi").read_text() == "mine = 1\n"


def test_weft_build_stub(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "weft.cli",
            "build",
            str(HERE / "component_parties.cpp"),
            "--stub",
            "-o",
            "lib.so",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["lib.so", "parties.pyi"]), done.stderr
    assert "serves" in names_in(tmp_path / "parties.pyi")


def test_help():
    text = pydoc.plain(pydoc.render_doc(basics()))
    assert "Small processes for tests." in text
    # in 3.13.6 and later each parameter of a long signature is on a separate line
    assert "scale(samples:'Reader[float]'" in "".join(text.split())
    assert "Each sample times `factor`." in text
    text = pydoc.plain(pydoc.render_doc(basics().scale))
    assert "samples: what comes" in text
    assert "Declared at" in text
    assert "Sample" in pydoc.plain(pydoc.render_doc(messages()))
