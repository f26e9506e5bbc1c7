"""Tests that rooms and layers include only downwards, as ARCHITECTURE.md draws them: in the table
of rooms and under "Layers", which names the folders too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
HEADERS = ROOT / "cpp/include/weft"
OLD_HEADERS = ROOT / "compat/cpp/include/weft"  # the highest layer
CPP_SOURCES = ROOT / "cpp/src"
PACKAGE = ROOT / "python/src/weft"
OLD_PACKAGE = ROOT / "compat/python/src/weft"  # the highest layer
NATIVE = ROOT / "python/native"


def layers(of: str) -> list[list[str]]:
    """Returns the lines of the block `layers=OF`, the lowest first. Each line is a list of
    patterns. An indented line continues the one above."""
    (block,) = re.findall(rf"```text layers={of}\n(.*?)```", TEXT, re.DOTALL)
    return [line.split() for line in reversed(re.sub(r"\n +", " ", block).splitlines())]


def like(name: str, pattern: str) -> bool:
    """Compares a name with a pattern. `*` stands for a part of one name, but not for a slash."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), name) is not None


def layer(name: str, of: list[list[str]]) -> int:
    # A pattern that is exactly the name has precedence.
    found = [n for n, patterns in enumerate(of) if name in patterns]
    found += [n for n, patterns in enumerate(of) if any(like(name, p) for p in patterns)]
    assert found, f"{name} is in no layer: write it into ARCHITECTURE.md"
    return found[0]


def upwards(edges: Iterator[tuple[str, str]], of: list[list[str]]) -> list[str]:
    return sorted({f"{a} -> {b}" for a, b in edges if layer(a, of) < layer(b, of)})


# --- C++ ------------------------------------------------------------------------------------------


def includes(file: Path, roots: tuple[Path, ...], within: Path) -> Iterator[Path]:
    """Yields the files in `within` that a file includes."""
    text = file.read_text(encoding="utf-8")
    for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE):
        for folder in (file.parent, *roots):
            path = (folder / name).resolve()
            if path.is_file() and path.is_relative_to(within):
                yield path
                break


def included(file: Path) -> Iterator[str]:
    """Yields the headers of weft/ that a file includes, as paths below weft/."""
    for within in (HEADERS, OLD_HEADERS):
        yield from map(place, includes(file, (within.parent,), within))


def ways_round(edges: Iterator[tuple[str, str]]) -> list[str]:
    """Returns the cycles by which a file includes itself, or a module imports itself."""
    of: dict[str, set[str]] = {}
    for a, b in edges:
        of.setdefault(a, set()).add(b)
    done: set[str] = set()
    found: list[str] = []

    def walk(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            found.append(" -> ".join((*above[above.index(name) :], name)))
        elif name not in done:
            for other in sorted(of.get(name, set()) - {name}):
                walk(other, (*above, name))
            done.add(name)

    for name in sorted(of):
        walk(name, ())
    return found


def place(path: Path) -> str:
    """Returns the place of a file in the layers. A source has the place of its header."""
    if path.is_relative_to(CPP_SOURCES):
        path = HEADERS / path.relative_to(CPP_SOURCES).with_suffix(".hpp")
    path = path.resolve()
    return str(path.relative_to(OLD_HEADERS if path.is_relative_to(OLD_HEADERS) else HEADERS))


def test_headers_include_only_downwards() -> None:
    files = [*HEADERS.rglob("*.hpp"), *OLD_HEADERS.rglob("*.hpp"), *CPP_SOURCES.rglob("*.cpp")]
    files.remove(CPP_SOURCES / "weft.cpp")  # weft.cpp includes all sources
    assert len(files) > 50
    edges = ((place(file), other) for file in files for other in included(file))
    assert upwards(edges, layers("cpp")) == []


def test_no_header_includes_itself_by_a_way_round() -> None:
    """Within a layer, too, no header includes itself indirectly. One pair is allowed: the version's
    text contains the configuration, which contains the version's numbers.
    """
    edges = [
        (place(file), other)
        for file in (*HEADERS.rglob("*.hpp"), *OLD_HEADERS.rglob("*.hpp"))
        for other in included(file)
    ]
    edges.remove(("version.hpp", "config.hpp"))
    assert ways_round(iter(edges)) == []


# --- the extension --------------------------------------------------------------------------------


def native_edges() -> Iterator[tuple[str, str]]:
    for file in (*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")):
        for other in includes(file, (NATIVE,), NATIVE):
            yield str(file.relative_to(NATIVE)), str(other.relative_to(NATIVE))


def test_the_extension_includes_only_downwards() -> None:
    """The extension's headers and .cpp files include only downwards."""
    edges = list(native_edges())
    assert len(edges) > 200
    assert upwards(iter(edges), layers("native")) == []
    assert ways_round(iter(edges)) == []


def test_every_include_of_the_extension_names_the_folder() -> None:
    """A file is included by the same name everywhere: with its folder."""
    wrong = []
    for file in (*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")):
        for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.MULTILINE):
            if not name.startswith("weft/") and not (NATIVE / name).is_file():
                wrong.append(f"{file.relative_to(NATIVE)}: {name}")
    assert wrong == []


# Headers of the extension that are in more than twelve objects: small files with the declarations
# that all folders share, which therefore rarely change.
WIDE = [
    *("gate.hpp", "owned.hpp", "declare.hpp", "value.hpp", "sequences.hpp"),
    *("channels/channel.hpp", "channels/fork.hpp", "channels/marks.hpp"),
    *("interpreter/errors.hpp", "interpreter/lock.hpp", "interpreter/pending.hpp"),
    "checking/points.hpp",
    "rounds/runs.hpp",
    *("processes/loops.hpp", "processes/outcome.hpp", "processes/process.hpp"),
    *("processes/run.hpp", "processes/thread.hpp"),
    *("watching/observe.hpp", "watching/observing.hpp"),
]


def objects_with(edges: Iterator[tuple[str, str]]) -> dict[str, int]:
    """For each header, returns the number of .cpp files that include it, also by way of other
    headers.
    """
    of: dict[str, set[str]] = {}
    for a, b in edges:
        of.setdefault(a, set()).add(b)
    count: dict[str, int] = {}
    for source in (name for name in of if name.endswith(".cpp")):
        reached: set[str] = set()
        waiting = [source]
        while waiting:
            for other in of.get(waiting.pop(), set()) - reached:
                reached.add(other)
                waiting.append(other)
        for name in reached:
            count[name] = count.get(name, 0) + 1
    return count


def test_an_edit_in_a_header_of_the_extension_compiles_few_objects() -> None:
    count = objects_with(native_edges())
    assert len(count) > 80
    assert sorted(name for name, n in count.items() if n > 12) == sorted(WIDE)


# --- Python ---------------------------------------------------------------------------------------


def module_of(file: Path) -> str:
    source = OLD_PACKAGE if file.is_relative_to(OLD_PACKAGE) else PACKAGE
    parts = file.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path, known: set[str], late: bool = False) -> Iterator[str]:
    """Yields the modules of weft that a file imports when it is imported itself, without those that
    serve only types. With `late`, the imports of its functions are included.
    """

    def look(body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, ast.If):
                if "TYPE_CHECKING" not in ast.unparse(node.test):
                    yield from look([*node.body, *node.orelse])
            elif isinstance(node, ast.Try):
                yield from look([*node.body, *(n for h in node.handlers for n in h.body)])
            elif isinstance(node, ast.With):
                yield from look(node.body)
            elif late and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from look([n for n in ast.walk(node) if isinstance(n, IMPORTS)])
            else:
                yield node

    for node in look(ast.parse(file.read_text(encoding="utf-8")).body):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: imports of this package are absolute"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else str(node.module) for name in inner]
        yield from (name for name in names if name in known)


IMPORTS = (ast.Import, ast.ImportFrom)
# Imports of higher modules that a function performs when it is called: of the class of a component,
# and of hosts of a network, which need packages that other programs need not have.
FROM_ABOVE = [
    "weft._components.host_runner -> weft.native",
    "weft._hosts.executor -> weft._net.host_executor",
    "weft._hosts.hosts -> weft.net",
]


def python_edges(late: bool = False) -> Iterator[tuple[str, str]]:
    sources = (*PACKAGE.rglob("*.py"), *OLD_PACKAGE.rglob("*.py"))
    files = {module_of(file): file for file in sources}
    known = {*files, "weft._native", "weft._checking._engine"}
    assert len(known) > 50
    for name, file in files.items():
        for other in imported(file, known, late):
            yield name, other


def test_modules_import_only_downwards() -> None:
    assert upwards(python_edges(), layers("python")) == []


def test_functions_import_only_downwards() -> None:
    assert upwards(python_edges(late=True), layers("python")) == FROM_ABOVE


def test_no_module_imports_itself_by_a_way_round() -> None:
    assert ways_round(python_edges()) == []


# --- ways round in the other rooms ----------------------------------------------------------------


def test_no_header_of_a_board_includes_itself_by_a_way_round() -> None:
    """Headers in mcu/, and in the parts that are built with mcu/, do not include themselves
    indirectly."""
    roots = tuple(ROOT / name for name in ("cpp/include", "mcu/include", "mcu/csp/include"))
    files = [
        file
        for room in ("mcu", "theses", "micropython")
        for pattern in ("*.h", "*.hpp", "*.c", "*.cpp")
        for file in (ROOT / room).rglob(pattern)
        if not APART & set(file.relative_to(ROOT).parts)
    ]
    assert len(files) > 60
    edges = [(str(file), str(other)) for file in files for other in includes(file, roots, ROOT)]
    assert ways_round(iter(edges)) == []


REACTORS = ROOT / "mcu/include/weft_mcu"
# The parts of the reactors that a program sees: other parts may call the functions that these
# headers declare, wherever they are defined.
INTERFACE = ("reactors/types.h", "reactors/env.h", "lf.h")


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def functions(text: str) -> set[str]:
    """Returns the functions that a part of the reactors defines."""
    found = re.findall(r"^[A-Za-z_][^\n;{}#]*?\b(weft_rx_\w+)\([^;{}]*?\) *\{", text, re.M | re.S)
    return set(found) | set(re.findall(r"^(weft_rx_\w+)\([^;{}]*?\) *\{", text, re.M | re.S))


def declared(text: str) -> set[str]:
    """Returns the functions that a part declares, and leaves to other parts."""
    return set(re.findall(r"^[A-Za-z_][^\n;{}#=]*?\b(weft_rx_\w+)\([^;{}]*?\);", text, re.M | re.S))


def test_a_part_of_the_reactors_calls_only_parts_that_it_includes() -> None:
    """A part that declares a function which a part above defines would hide a cycle."""
    files = [*REACTORS.glob("reactors*.h"), REACTORS / "lf.h", *REACTORS.glob("reactors/*.h")]
    parts = {str(f.relative_to(REACTORS)): without_comments(f.read_text("utf-8")) for f in files}
    assert len(parts) > 15
    public = {name for part in INTERFACE for name in declared(parts[part])}
    homes: dict[str, set[str]] = {}
    for part, text in parts.items():
        for name in functions(text) - public:
            homes.setdefault(name, set()).add(part)
    assert len(homes) > 100
    below: dict[str, set[str]] = {}

    def reached(part: str) -> set[str]:
        if part not in below:
            below[part] = set()
            for other in re.findall(r'^#include "weft_mcu/([^"]+)"', parts[part], re.M):
                if other in parts:
                    below[part] |= {other} | reached(other)
        return below[part]

    wrong = []
    for part, text in parts.items():
        for name in sorted(set(re.findall(r"\bweft_rx_\w+", text)) & set(homes)):
            if not homes[name] & (reached(part) | {part}):
                wrong.append(f"{part} -> {name} of {', '.join(sorted(homes[name]))}")
    assert wrong == []


IMPORTING = {  # folder: the package in it
    "lf/src/weft_lf": "weft_lf",
    "conformance": "conformance",
    "micropython/weft": "weft",
    "bench/harness": "harness",
}
# Parts of the package for MicroPython that are loaded when a program first uses them, so that other
# programs have the memory (decisions/micropython-loads-little.md).
LOADED_LATE = {
    ("weft.errors", "weft._none"),
    ("weft.errors", "weft._rare"),
    ("weft._alt", "weft._standing"),
    *(("weft._chan", f"weft.{part}") for part in ("_aio", "_alt", "_ext", "_foreign", "_full")),
    *(
        ("weft._proc", f"weft.{part}")
        for part in ("_aio", "_ended", "_foreign", "_limits", "_report")
    ),
}


def imports_of(where: str) -> set[tuple[str, str]]:
    """Returns which module of a package imports which other module, including imports in functions
    and for types alone.
    """
    folder, package = ROOT / where, IMPORTING[where]
    modules = {}
    for file in folder.rglob("*.py"):
        if "tests" not in file.relative_to(folder).parts:
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
            modules[name] = file
    edges = set()
    for name, file in modules.items():
        here = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                above = here.split(".")[: len(here.split(".")) - node.level + 1]
                base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
                inner = [f"{base}.{alias.name}" for alias in node.names]
                names = [n if n in modules else base for n in inner]
            edges |= {(name, other) for other in names if other in modules and other != name}
    return edges


@pytest.mark.parametrize("where", IMPORTING)
def test_no_module_of_a_room_imports_itself_by_a_way_round(where: str) -> None:
    edges = imports_of(where)
    assert len(edges) > 10
    if where == "micropython/weft":
        assert edges >= LOADED_LATE
        edges -= LOADED_LATE
    assert ways_round(iter(sorted(edges))) == []


def test_no_module_for_node_imports_itself_by_a_way_round() -> None:
    edges = []
    for room in ("emulator", "mcu", "theses", "micropython"):
        for file in (ROOT / room).rglob("*.mjs"):
            if "node_modules" in file.parts:
                continue
            for name in re.findall(
                r"^(?:import|export)\b[^;]*?'(\.[^']+)'", file.read_text(), re.M
            ):
                edges.append((str(file), str((file.parent / name).resolve())))
    assert len(edges) > 60
    assert ways_round(iter(edges)) == []


# --- folders --------------------------------------------------------------------------------------


def folders(table: str) -> set[str]:
    """Returns the folders in the page's table for the folder `table`."""
    (rows,) = re.findall(rf"\| folder of `{table}/` \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT)
    return set(re.findall(r"^\| \[?`(\w+)/`", rows, re.MULTILINE))


@pytest.mark.parametrize("where", ["python/src/weft", "python/native"])
def test_every_folder_is_in_the_table(where: str) -> None:
    assert folders(where) == {
        p.parent.name
        for p in (ROOT / where).glob("*/[!.]*")
        if p.is_file() and p.parent.name != "__pycache__"
    }


@pytest.mark.parametrize("where", ["python", "native"])
def test_a_folder_stands_on_one_line(where: str) -> None:
    """The files of a folder include nothing above the folder, and none of these files is above a
    file of another folder.
    """
    lines = [line for patterns in layers(where) for line in patterns]
    names = folders("python/native" if where == "native" else "python/src/weft")
    own = {"native": "{}/*", "python": "weft.{}*"}[where]
    assert {own.format(name) for name in names} <= {*lines}
    assert not [line for line in lines if re.match(r"weft\.\w+\.", line)]


def test_a_folder_says_what_is_in_it_and_does_nothing_else() -> None:
    """An __init__ file contains only its docstring, because each import of a module imports the
    module's folder.
    """
    for name in folders("python/src/weft") - {"_pure_fallback", "_not_installed", "plugnplay"}:
        (statement,) = ast.parse((PACKAGE / name / "__init__.py").read_text(encoding="utf-8")).body
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# --- rooms ----------------------------------------------------------------------------------------


def rooms() -> dict[str, set[str]]:
    """Returns, for each room of the table, the rooms on which that room stands."""
    found = {}
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.match(r"\[?`([\w/]+)/`", cells[0])
        if name and len(cells) == 3:
            found[name[1]] = set(re.findall(r"`([\w/]+)/`", cells[2]))
            if "everything" in cells[2]:
                found[name[1]] = {"everything"}
    return found


def stands_on(room: str, all_: dict[str, set[str]]) -> set[str]:
    """Returns the rooms that a room may know: those on which it stands, directly or by way of
    other rooms.
    """
    reached: set[str] = set()
    waiting = [room]
    while waiting:
        for other in all_.get(waiting.pop(), set()) - reached:
            reached.add(other)
            waiting.append(other)
    return reached


def room_of(path: Path, all_: dict[str, set[str]]) -> str | None:
    """Returns the innermost room in whose folder a file is; None if it is in no room."""
    here = str(path.relative_to(ROOT))
    found = [room for room in all_ if here.startswith(f"{room}/")]
    return max(found, key=len, default=None)


def outward(file: Path) -> Iterator[Path]:
    """Yields the files of the checkout that a C or C++ file includes, or whose package a Python
    file imports.
    """
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".py":
        own = "micropython" if "micropython" in file.relative_to(ROOT).parts else "python/src"
        folders = {"weft": f"{own}/weft", "weft_lf": "lf/src/weft_lf", "conformance": "conformance"}
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for name in {name.partition(".")[0] for name in names} & set(folders):
                yield ROOT / folders[name] / "__init__.py"
            if any(name.startswith("weft.compat") for name in names):
                yield OLD_PACKAGE / "compat/__init__.py"
        return
    roots = [
        ROOT / name
        for name in ("cpp/include", "compat/cpp/include", "mcu/include", "mcu/csp/include")
    ]
    roots = [file.parent, NATIVE, *roots] if NATIVE in file.parents else [file.parent, *roots]
    for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE):
        for root in roots:
            path = (root / name).resolve()
            if path.is_file() and path.is_relative_to(ROOT):
                yield path
                break


SOURCES = ("*.py", "*.hpp", "*.cpp", "*.h", "*.c")
APART = {".build", ".venv", "out", "node_modules", "tests", "bench"}


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_knows_only_the_rooms_it_stands_on(room: str) -> None:
    """Only the tests of a room may know other rooms."""
    all_ = rooms()
    allowed = stands_on(room, all_) | {room}
    if "everything" in allowed:
        pytest.skip("it measures everything")
    wrong = []
    for pattern in SOURCES:
        for file in (ROOT / room).rglob(pattern):
            if APART & set(file.relative_to(ROOT).parts) or room_of(file, all_) != room:
                continue
            for other in outward(file):
                where = room_of(other, all_)
                if where is not None and where not in allowed:
                    wrong.append(f"{file.relative_to(ROOT)} -> {other.relative_to(ROOT)}")
    assert wrong == []


# --- the checks themselves ------------------------------------------------------------------------


def test_what_goes_upwards_is_found() -> None:
    of = [["a"], ["b", "c/*"]]
    assert upwards(iter([("a", "c/x"), ("b", "a"), ("b", "c/y")]), of) == ["a -> c/x"]
    with pytest.raises(AssertionError, match="d is in no layer"):
        layer("d", of)
    ways = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "d")]
    assert ways_round(iter(ways)) == ["b -> c -> b"]
    edges = [("a.cpp", "b"), ("b", "c"), ("d.cpp", "c")]
    assert objects_with(iter(edges)) == {"b": 1, "c": 2}


def test_the_table_of_rooms_is_read() -> None:
    all_ = rooms()
    assert all_["python"] == {"cpp", "lf"} and all_["cpp"] == all_["emulator"] == set()
    assert stands_on("mcu/csp", all_) == {"cpp", "mcu"}
    assert "conformance" in all_ and "lf" in all_
    assert room_of(ROOT / "mcu/csp/include/x.hpp", all_) == "mcu/csp"


def test_what_a_module_imports_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(
        "from weft import _a\nfrom weft._b import c\nimport weft._d\nimport os\n"
        "if TYPE_CHECKING:\n    import weft._e\n"
        "try:\n    import weft._f\nexcept ImportError:\n    pass\n"
        "def f():\n    import weft._g\n"
    )
    known = {f"weft._{letter}" for letter in "abdefg"} | {"weft"}
    assert list(imported(file, known)) == ["weft._a", "weft._b", "weft._d", "weft._f"]
    assert list(imported(file, known, late=True))[-1] == "weft._g"
