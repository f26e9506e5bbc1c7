"""Writes the files that follow from names.toml: the modules of the backends, their stubs, and
weft.plugnplay for the backends whose operations are called.

    python3 tools/names.py            writes them
    python3 tools/names.py --check    exit status 1 if they differ from what would be written

Three things are written by hand: names.toml; the types in coroutines.pyi, below the imports; and
plugnplay/coroutines.py. All other text follows by rule: the only difference is that threads and
greenlets call the operations that coroutines await.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tools/names.toml"
WEFT = ROOT / "python/src/weft"
BACKENDS = ("coroutines", "threads", "greenlets", "processes")
# The plug-and-play modules of these backends are generated from the module for coroutines.
PLUG_AND_PLAY = ("threads", "greenlets")
BY = "Written by tools/names.py: do not edit."

# Names that the stubs use but programs do not.
OF_TYPES = ["AwaitedBarrier", "AwaitedReader", "AwaitedWriter", "ProcessFunction"]

Imports = dict[str, list[str]]  # module → names


class BadTable(Exception):
    """Raised if the table, or a part that is written by hand, is wrong. The text gives the
    reason."""


# --- the table ------------------------------------------------------------------------------------


def load(path: Path) -> dict[str, Any]:
    """Returns names.toml. Raises BadTable if a name is in it twice."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for backend in BACKENDS:
        names = exported(table, backend)
        beyond = set(every(more_of(table, backend)))
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadTable(f"{path.name}: {backend} has {', '.join(twice)} twice")
        if sorted(set(names) - beyond) != sorted(exported(table, BACKENDS[0])):
            raise BadTable(f"{path.name}: {backend} has not the names of {BACKENDS[0]}")
    return table


def every(imports: Imports) -> list[str]:
    return [name for names in imports.values() for name in names]


def more_of(table: dict[str, Any], backend: str) -> Imports:
    """Returns the names that a backend has beyond those of the other backends."""
    more: Imports = table.get("more", {}).get(backend, {})
    return {**more, **later_of(table, backend)}


def later_of(table: dict[str, Any], backend: str) -> Imports:
    """Returns the names of more_of() that are imported only when a program asks for them."""
    later: Imports = table.get("later", {}).get(backend, {})
    return later


def exported(table: dict[str, Any], backend: str) -> list[str]:
    """Returns the names that the module of a backend exports, sorted."""
    more = every(more_of(table, backend))
    own = every(table["own"][backend])
    return sorted([*every(table["alike"]), *every(table["lazy"]), *own, *more])


# --- text -----------------------------------------------------------------------------------------


def import_lines(*several: Imports, but: Iterable[str] = (), indent: str = "") -> list[str]:
    """Returns lines `from module import name as name`, in the order that the formatter wants."""
    merged: Imports = {}
    for imports in several:
        for module, names in imports.items():
            merged.setdefault(module, []).extend(n for n in names if n not in but)
    return [
        f"{indent}from {module} import {name} as {name}"
        for module in sorted(merged)
        for name in sorted(merged[module], key=lambda n: (n[0].islower(), n))
    ]


def list_lines(names: list[str]) -> list[str]:
    return ["__all__ = [", *(f'    "{name}",' for name in names), "]"]


def module(table: dict[str, Any], backend: str) -> str:
    """Returns the text of weft/BACKEND.py."""
    later = later_of(table, backend)
    at_once = [table["alike"], table["own"][backend], table.get("more", {}).get(backend, {})]
    where = {
        n: m for imports in (table["lazy"], later) for m, names in imports.items() for n in names
    }
    return "\n".join(
        [
            f'"""{table["says"][backend]}',
            "",
            f"{BY}",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "import weft._extension  # isort: skip  # noqa: F401 – reports a missing extension",
            "from importlib import import_module as _import_module",
            "from typing import TYPE_CHECKING as _TYPE_CHECKING",
            "from typing import Any as _Any",
            "",
            *import_lines(*at_once),
            "",
            "if _TYPE_CHECKING:",
            *import_lines(table["lazy"], later, indent="    "),
            "",
            *list_lines(exported(table, backend)),
            "",
            "_LATER = {",
            *(f'    "{name}": "{where[name]}",' for name in sorted(where)),
            "}",
            "",
            "",
            "def __getattr__(name: str) -> _Any:",
            '    """Imports a name that few programs need, when it is asked for."""',
            "    if name not in _LATER:",
            '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
            "    value = globals()[name] = getattr(_import_module(_LATER[name]), name)",
            "    return value",
            "",
            "",
            "def __dir__() -> list[str]:",
            "    return sorted({*globals(), *__all__})",
            "",
        ]
    )


# --- stubs ----------------------------------------------------------------------------------------


def declared(text: str) -> set[str]:
    """Returns the classes and functions of a stub."""
    found = (ast.ClassDef, ast.FunctionDef)
    return {node.name for node in ast.parse(text).body if isinstance(node, found)}


def by_hand(stub: str) -> str:
    """Returns the part of coroutines.pyi that is written by hand. Raises BadTable if the marks are
    missing.
    """
    parts = re.split(r"^# --- (?:by hand: .*|written by .*: exports)\n", stub, flags=re.MULTILINE)
    if len(parts) != 3:
        raise BadTable("coroutines.pyi: the lines `# --- by hand` and `# --- written by` are gone")
    return parts[1].strip("\n") + "\n"


def coroutines_stub(table: dict[str, Any], stub: str) -> str:
    """Returns coroutines.pyi with new imports and exports."""
    hand = by_hand(stub)
    names = exported(table, "coroutines")
    more = declared(hand) - set(names)
    if more:
        raise BadTable(
            f"coroutines.pyi declares what names.toml has not: {', '.join(sorted(more))}"
        )
    lines = import_lines(table["alike"], table["lazy"], but=declared(hand))
    first = next(n for n, line in enumerate(lines) if line.startswith("from weft._native "))
    lines.insert(first, f"from weft._native import {', '.join(OF_TYPES)}")
    missing = set(names) - declared(hand) - {line.rpartition(" ")[2] for line in lines}
    if missing:
        raise BadTable(f"coroutines.pyi has no type of {', '.join(sorted(missing))}")
    return "\n".join(
        [
            '"""Types of weft.coroutines. Those of weft.threads and weft.greenlets follow from them: tools/names.py."""',
            "",
            "# --- written by tools/names.py: imports",
            *re.findall(
                r"^from (?:collections|contextlib|os|types|typing)\b(?!_).*$", stub, re.MULTILINE
            ),
            "",
            "from typing_extensions import Buffer, TypeVar",
            "",
            *lines,
            "",
            "# --- by hand: the types",
            "",
            hand,
            "# --- written by tools/names.py: exports",
            "",
            *list_lines(names),
            "",
        ]
    )


RULES = (
    (
        r"import AsyncIterator, Awaitable, Callable, Coroutine, Iterable$",
        "import Callable, Coroutine, Iterable, Iterator",
    ),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaited(Barrier|Reader|Writer)\b", r"Called\1"),
    (r"\bAbstractAsyncContextManager\b", "AbstractContextManager"),
    (r"\basync def\b", "def"),
    (r"\b__a(iter|next|enter|exit)__", r"__\1__"),
    (r"^# --- .*\n\n?", ""),
)


def without_awaitable(text: str) -> str:
    """Replaces `Awaitable[X]` by X, whatever brackets are in X."""
    word = "Awaitable["
    while (start := text.find(word)) >= 0:
        depth, end = 1, start + len(word)
        while depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        text = text[:start] + text[start + len(word) : end - 1] + text[end:]
    return text


def called(stub: str) -> str:
    """Returns the text of `stub`, with operations that are called instead of awaited."""
    for pattern, replacement in RULES:
        stub = re.sub(pattern, replacement, stub, flags=re.MULTILINE)
    return without_awaitable(stub)


def threads_stub(stub: str) -> str:
    text = re.sub(
        r"\A.*", f'"""Types of weft.threads: those of weft.coroutines, called. {BY}"""', stub
    )
    return called(text)


def alike_stub(table: dict[str, Any], backend: str) -> str:
    """Returns the stub of a backend whose names have the types of weft.threads."""
    names = exported(table, backend)
    more = more_of(table, backend)
    return "\n".join(
        [
            f'"""Types of weft.{backend}: those of weft.threads. {BY}"""',
            "",
            *import_lines({"weft.threads": [n for n in names if n not in every(more)]}, more),
            "",
            *list_lines(names),
            "",
        ]
    )


# --- programs -------------------------------------------------------------------------------------


def without_await(text: str) -> str:
    """Returns a program without its words `async` and `await`; comments and strings are
    unchanged."""
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, following in reversed(list(itertools.pairwise(tokens))):
        if token.type == tokenize.NAME and token.string in ("async", "await"):
            row, column = token.start
            assert following.start[0] == row, f"line {row}: the word and what follows it"
            line = lines[row - 1]
            lines[row - 1] = line[:column] + line[following.start[1] :]
    return "".join(lines)


def plug_and_play(text: str, backend: str) -> str:
    """Makes weft/plugnplay/BACKEND.py from the file of coroutines."""
    text = without_await(text).replace("from weft.coroutines import", f"from weft.{backend} import")
    head = re.match(r'""".*?"""\n', text, re.DOTALL)
    if head is None:
        raise BadTable("plugnplay/coroutines.py begins without a docstring")
    body = text[head.end() :]
    return f'"""The plug-and-play processes as {backend}: those of coroutines.py, called. {BY}"""\n{body}'


# --- all of it ------------------------------------------------------------------------------------


def files(table: dict[str, Any], weft: Path) -> dict[str, str]:
    """Returns the text that each file should have, by the file's path below weft/."""
    awaited = (weft / "plugnplay/coroutines.py").read_text(encoding="utf-8")
    stub = coroutines_stub(table, (weft / "coroutines.pyi").read_text(encoding="utf-8"))
    return {
        **{f"{backend}.py": module(table, backend) for backend in BACKENDS},
        "coroutines.pyi": stub,
        "threads.pyi": threads_stub(stub),
        **{f"{backend}.pyi": alike_stub(table, backend) for backend in ("greenlets", "processes")},
        **{f"plugnplay/{name}.py": plug_and_play(awaited, name) for name in PLUG_AND_PLAY},
    }


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: names.py [--check]", file=sys.stderr)
        return 2
    try:
        wanted = files(load(TABLE), WEFT)
    except BadTable as bad:
        print(f"names: {bad}", file=sys.stderr)
        return 1
    old = []
    for name, text in wanted.items():
        path = WEFT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments:
            old.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if old:
        print(f"{', '.join(old)}: out of date; run python3 tools/names.py", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
