"""Rule 16: mistakes in a component are reported when it is loaded or called, with advice."""

from __future__ import annotations

import ctypes.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from components import HERE, basics, needs_compiler, parties

import weft.native
from weft import threads
from weft.errors import BadUse
from weft.native import ComponentError

pytestmark = needs_compiler

HEADER = "#include <weft/component.hpp>\nusing namespace weft::native;\n"


def source(folder: Path, text: str, name: str = "made.cpp") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def compiled(folder: Path, text: str) -> Path:
    """Returns a library in C, which compiles quickly."""
    out = folder / "made.so"
    path = source(folder, text, "made.c")
    include = f"-I{weft.native.include_dir()}"
    subprocess.run(["cc", "-shared", "-fPIC", include, str(path), "-o", str(out)], check=True)
    return out


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    basics()  # this component's library is in the common cache
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadUse, match=r"load: there is no file .*none\.so; give a component's"):
        weft.native.load(tmp_path / "none.so")
    with pytest.raises(BadUse, match=r"build: there is no file .*none\.cpp"):
        weft.native.build(tmp_path / "none.cpp")
    with pytest.raises(BadUse, match="is a directory"):
        weft.native.load(tmp_path)


def test_a_name_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), ""])
    with pytest.raises(
        BadUse, match=r"no component 'none': no none\.so and no none\.cpp in /.*, \.;"
    ):
        weft.native.load("none")
    with pytest.raises(BadUse, match=r"no component 'nowhere\.none': nowhere is not a package"):
        weft.native.load("nowhere.none")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").touch()
    with pytest.raises(
        BadUse, match=r"no component 'package\.module\.none': package\.module is not a package"
    ):
        weft.native.load("package.module.none")
    with pytest.raises(
        BadUse, match=r"no component 'package\.none': no none\.so .* in /.*/package;"
    ):
        weft.native.load("package.none")


def test_what_is_no_library(tmp_path):
    with pytest.raises(BadUse, match=r"load: .*(invalid ELF header|file too short)"):
        weft.native.load(source(tmp_path, "no library, " * 100, "made.so"))


def test_a_foreign_library(tmp_path):
    library = compiled(tmp_path, "int answer(void) { return 42; }\n")
    with pytest.raises(BadUse, match=r"is a library, but not a component of Weft.*WEFT_COMPONENT"):
        weft.native.load(library)
    assert ctypes.util.find_library("c")


def test_another_abi_is_refused(tmp_path):  # rule 16.5
    library = compiled(
        tmp_path,
        """#include <weft/component_abi.h>
static const weft_component made = {.abi = WEFT_COMPONENT_ABI + 1};
const weft_component* weft_component_entry(void) { return &made; }
""",
    )
    with pytest.raises(BadUse, match=r"version 2 of the component ABI.*version 1: build it again"):
        weft.native.load(library)


def declaring(*fields: str) -> str:
    """Returns the source in C of a component of one process without parameters, except for the
    parts that the arguments give.
    """
    return f"""#include <weft/component_abi.h>
static const weft_process_info info = {{.name = "f"}};
static weft_component made = {{.abi = WEFT_COMPONENT_ABI, .size = sizeof made, .name = "m", .doc = "", .compiler = "C", .count = 1,
  .info_size = sizeof info, .processes = &info, .api_size = sizeof(weft_api), .parameter_size = sizeof(weft_parameter)}};
const weft_component* weft_component_entry(void) {{ {" ".join(f"made.{f};" for f in fields)} return &made; }}
"""


@pytest.mark.parametrize("field", ["size", "info_size", "parameter_size"])
def test_a_table_that_is_none_is_refused(tmp_path, field):  # rule 16.5
    library = compiled(tmp_path, declaring(f"{field} = 8"))
    with pytest.raises(BadUse, match="headers of no Weft that there was: build it again"):
        weft.native.load(library)


@pytest.mark.parametrize("field", ["size", "info_size", "parameter_size", "api_size"])
def test_a_component_of_a_newer_weft_is_refused(tmp_path, field):  # rule 16.5
    library = compiled(tmp_path, declaring(f"{field} += 8"))
    with pytest.raises(
        BadUse, match=r"a newer Weft than this one, \d.*: install that Weft, or build"
    ):
        weft.native.load(library)


def test_a_component_of_the_first_edition_runs_here(tmp_path):  # rule 16.5
    """The component was compiled with the header of the first edition, so its tables are shorter
    than today's."""
    out = tmp_path / "first.so"
    source = HERE / "component_first.c"
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(out)], check=True)
    first = weft.native.load(out)
    assert first.processes == ("doubles", "adds")
    a, c, d = threads.Channel("a"), threads.Channel("c"), threads.Channel("d")
    got = []

    @threads.process
    def sends(w):
        for n in range(5):
            w.write(n)

    @threads.process
    def reads(r):
        got.extend(r)

    threads.run(sends(-a), first.doubles(+a, -c), first.adds(+c, -d), reads(+d))
    assert got == [1, 3, 5, 7, 9]
    assert "by" in str(first.adds.__signature__)
    assert "= 1" in str(first.adds.__signature__)


def test_a_type_that_is_none(tmp_path):  # rule 16.5
    library = compiled(
        tmp_path,
        """#include <weft/component_abi.h>
static const weft_parameter p = {.name = "x", .type = "[i", .doc = "", .role = WEFT_READER};
static const weft_process_info info = {.name = "f", .count = 1, .parameters = &p};
static const weft_component made = {
  .abi = WEFT_COMPONENT_ABI, .size = sizeof made, .name = "m", .count = 1, .info_size = sizeof info, .processes = &info};
const weft_component* weft_component_entry(void) { return &made; }
""",
    )
    with pytest.raises(BadUse, match=r"'\[i' is not a type of a native value"):
        weft.native.load(library)


def test_the_compiler_says_what_is_wrong(tmp_path):
    path = source(tmp_path, HEADER + "void f(Reader<int> in) { in.reed(); }\n")
    with pytest.raises(BadUse, match=r"made\.cpp was not built:") as refused:
        weft.native.load(path)
    assert "reed" in str(refused.value)
    assert f"{path}:3" in str(refused.value)


def test_a_type_that_cannot_cross_is_told_by_the_compiler(tmp_path):
    path = source(tmp_path, HEADER + "void f(Reader<int*> in) { in.read(); }\n")
    with pytest.raises(BadUse, match="no channel to Python carries values of this type"):
        weft.native.load(path)


@pytest.mark.parametrize(
    "process",
    [
        "Reader<Mine> in",
        pytest.param("Writer<Mine> out", marks=pytest.mark.soak),
        pytest.param("Mine mine", marks=pytest.mark.soak),
    ],
)
def test_a_struct_whose_fields_are_not_named(tmp_path, process):  # rule 16.4
    text = HEADER + f"struct Mine {{ int n; }};\nvoid f({process}) {{}}\n"
    text += 'WEFT_COMPONENT(made, "") { component.process<&f>("f").argument("x"); }\n'
    with pytest.raises(BadUse, match=r"WEFT_FIELDS\(Type, field, \.\.\.\)"):
        weft.native.load(source(tmp_path, text))


def test_there_is_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BadUse, match=r"there is no C\+\+ compiler .*no-such-compiler.*install one"):
        weft.native.build(source(tmp_path, HEADER))


def test_flags_are_for_sources(tmp_path):
    with pytest.raises(BadUse, match="flags and debug are for the compiler"):
        weft.native.load(basics().path, flags=("-g",))


DECLARATIONS = [
    ('.argument("in")', "'in' is not a name in Python"),
    ('.argument("on")', "taken by load"),
    ("", "has 1 parameters, and 0 are named"),
    ('.argument("a").argument("b")', "one more than its function has"),
    ('.argument("a", 2)', "an end or a barrier has no default"),
]


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    """Builds one library for all cases: the environment chooses the declaration when the library is
    loaded.
    """
    folder = tmp_path_factory.mktemp("declared")
    cases = "".join(
        f'  if (which == {n}) component.process<&f>("f"){text};\n'
        for n, (text, _) in enumerate(DECLARATIONS)
    )
    path = source(
        folder,
        f"{HEADER}#include <cstdlib>\nvoid f(Reader<int>) {{}}\n"
        'WEFT_COMPONENT(m, "") {\n  const int which = std::atoi(std::getenv("WHICH"));\n'
        f"{cases}}}\n",
    )
    return weft.native.build(path, output=folder / "made.so")


@pytest.mark.parametrize("which", range(len(DECLARATIONS)))
def test_a_declaration_that_cannot_be(declared, tmp_path, monkeypatch, which):
    monkeypatch.setenv("WHICH", str(which))
    copy = shutil.copyfile(declared, tmp_path / "made.so")  # a copy is loaded as another library
    with pytest.raises(BadUse, match=DECLARATIONS[which][1]):
        weft.native.load(copy)


def test_a_name_that_the_module_needs_itself(tmp_path):  # rule 16.2
    process = HEADER + (
        "void f(Writer<int>) {}\n"
        'WEFT_COMPONENT(m, "") { component.process<&f>("_capsule").argument("out"); }\n'
    )
    with pytest.raises(BadUse, match="the name '_capsule' is taken"):
        weft.native.load(source(tmp_path, process))
    aggregate = HEADER + (
        "struct _capsule { int x; };\nWEFT_FIELDS(_capsule, x)\nvoid f(Writer<_capsule>) {}\n"
        'WEFT_COMPONENT(m, "") { component.process<&f>("f").argument("out"); }\n'
    )
    with pytest.raises(BadUse, match="the name '_capsule' of an aggregate is taken"):
        weft.native.load(source(tmp_path, aggregate))


def nested(of: str) -> Any:
    value: Any = ()
    for _ in range(60_000):
        value = {"list": [value], "tuple": (value,), "dict": {1: value}}[of]
    return value


@pytest.mark.parametrize("of", ["list", "tuple", "dict"])
def test_an_argument_that_nests_too_deep_to_be_shown_is_refused(of):  # rule 11.2
    """The argument takes the place of an end, a barrier, or a value. The error names its type."""
    value = nested(of)
    what = f"not an object of type {of}"
    with pytest.raises(BadUse, match=f"'source' must be a reader end of a channel of int, {what}"):
        basics().ints(value, -threads.Channel())
    with pytest.raises(BadUse, match=f"'barrier' must be a Barrier, {what}"):
        parties().resigns(value)
    with pytest.raises(BadUse, match=f"'n': expected int, but what came is of type {of}"):
        basics().count_to(-threads.Channel(), value)
    with pytest.raises(BadUse, match=r"Input\(an object whose repr\(\) fails\): an input guard"):
        threads.Input(value)


# --- a component that is built once ---------------------------------------------------------------


def test_what_was_built_is_found_and_a_change_is_built(tmp_path):
    header = source(tmp_path, "inline int answer() { return 1; }\n", "answer.h")
    text = (
        HEADER + '#include "answer.h"\nvoid f(Writer<int> out) { out.write(answer()); }\n'
        'WEFT_COMPONENT(m, "") { component.process<&f>("f").argument("out"); }\n'
    )
    path = source(tmp_path, text)
    first = weft.native.build(path, debug=True)
    made = first.stat().st_mtime_ns
    assert weft.native.build(path, debug=True) == first
    assert first.stat().st_mtime_ns == made
    header.write_text("inline int answer() { return 2; }\n")
    second = weft.native.build(path, debug=True)
    assert second != first
    c = threads.Channel()
    reader = +c
    got = []

    @threads.process
    def reads(r):
        got.append(r.read())

    threads.run(weft.native.load(second).f(-c), reads(reader))
    assert got == [2]


@pytest.mark.parametrize("compiler", ["g++-12", "clang++-14"])
@pytest.mark.parametrize("debug", [False, True], ids=["NDEBUG", "assertions"])
def test_compilers_and_flags_meet_in_one_network(monkeypatch, compiler, debug):  # rules 16.1, 16.5
    """A component of each build runs between two processes of another component, in one program."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not here")
    common = basics()
    monkeypatch.setenv("WEFT_CACHE", str(Path(common.path).parent))
    monkeypatch.setenv("CXX", compiler)
    other = weft.native.load(weft.native.build(HERE / "component_basics.cpp", debug=debug))
    assert other.compiler.split()[0] in compiler
    a, c, d, t = (threads.Channel() for _ in range(4))
    got = []

    @threads.process
    def reads(r, t):
        got.extend(r)
        got.extend(t)

    text = other.tells(-t)
    threads.run(
        common.count_to(-a, 50), other.ints(+a, -c), common.ints(+c, -d), text, reads(+d, +t)
    )
    assert got[:50] == list(range(50))
    assert got[50:] == ["a 1 2 yes nothing", "assertions" if debug else "no assertions"]
    with pytest.raises(ComponentError, match="std::runtime_error: it is 0"):
        a = threads.Channel()
        threads.run(common.count_to(-a, 1), other.fails(+a))


@pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake")
def test_a_component_by_cmake(tmp_path):
    source(
        tmp_path,
        HEADER + "void f(Writer<int> out) { out.write(7); }\n"
        'WEFT_COMPONENT(m, "") { component.process<&f>("f").argument("out"); }\n',
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(p LANGUAGES CXX)\n"
        f'include("{weft.native.cmake_dir()}/weft-component.cmake")\nweft_add_component(seven made.cpp)\n'
    )
    for command in (["-B", "build"], ["--build", "build"]):
        subprocess.run(["cmake", *command], cwd=tmp_path, check=True, capture_output=True)
    c = threads.Channel(capacity=1)
    reader = +c
    threads.run(weft.native.load(tmp_path / "build/seven.so").f(-c))
    assert reader.read() == 7


def test_weft_build_on_the_command_line(tmp_path):
    def weft_build(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "weft.cli", "build", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )

    path = source(tmp_path, "#error none\n")
    bad = weft_build(path)
    assert bad.returncode == 2
    assert "#error none" in bad.stderr
    source(
        tmp_path,
        HEADER + "void f(Writer<int> out) { out.write(7); }\n"
        'WEFT_COMPONENT(m, "") { component.process<&f>("f").argument("out"); }\n',
    )
    out = tmp_path / "out.so"
    good = weft_build(path, "-o", out)
    assert (good.returncode, good.stdout) == (0, f"{out}\n")
    assert out.exists()
