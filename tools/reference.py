"""Writes python/docs/reference.md: every public name of the Python package, its signature and its
docstring.

    .venv/bin/python tools/reference.py            writes the page
    .venv/bin/python tools/reference.py --check    exit status 1 if the page is out of date

Signatures are those of the stubs (`coroutines.pyi`, which shows what is awaited), or of the module
that defines the name. Texts are the docstrings that `help()` shows in the installed package. A
public name without a docstring is an error.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python/src/weft"
PAGE = ROOT / "python/docs/reference.md"
HEAD = """# Reference

Every public name, as `weft.coroutines` exports it. `weft.threads` and `weft.greenlets` export the same names; there what is `Awaitable` here
is called and returns at once. `weft` exports the names of the chosen backend. Written by `tools/reference.py`: do not edit.
"""
# The other modules whose public names are listed, each under its own heading.
MODULES = (
    "weft.metrics",
    "weft.observe",
    "weft.toolkit",
    "weft.native",
    "weft.processes",
    "weft.serial",
    "weft.net",
    "weft.plugnplay.coroutines",
    "weft.errors",
)


class Undocumented(Exception):
    """Raised if public names have no docstring. The text lists the names."""


def tree_of(module: str) -> ast.Module:
    """Returns the stub of a module if it has one, else its source. The text of a field is its
    attribute `comment`.
    """
    path = SOURCES.joinpath(*module.split(".")[1:])
    for candidate in (path.with_suffix(".pyi"), path.with_suffix(".py"), path / "__init__.py"):
        if candidate.exists():
            text = candidate.read_text()
            tree = ast.parse(text)
            for node in ast.walk(tree):
                if isinstance(node, ast.AnnAssign):
                    line = text.splitlines()[node.lineno - 1]
                    node.comment = line.partition("#:")[2].strip()  # type: ignore[attr-defined]
            return tree
    raise FileNotFoundError(f"{module} has no source under {SOURCES}")


def definitions(module: str, name: str, seen: frozenset[str] = frozenset()) -> list[ast.stmt]:
    """Returns the statements that define a name: one, or the overloads. Follows imports. Empty if
    there is no definition.
    """
    if module in seen:
        return []
    tree = tree_of(module)
    here = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == name
    ]
    if here:
        return list(here)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weft"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definitions(str(node.module), alias.name, seen | {module})
    return []


def signature(node: ast.stmt) -> str:
    """Returns a function's header without its body, on one line or several."""
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    bare = type(node)(
        name=node.name,
        args=node.args,
        body=[ast.Expr(ast.Constant(...))],
        decorator_list=[],
        returns=node.returns,
        lineno=0,
    )
    bare.type_params = []  # type: ignore[attr-defined,unused-ignore]
    line = ast.unparse(bare).replace(":\n    ...", "").removeprefix("def ")
    line = (
        line.replace("(cls, ", "(")
        .replace("self, /, ", "")
        .replace("(self, ", "(")
        .replace("(self)", "()")
    )
    return re.sub(r"^async def ", "async ", line)


def text_of(thing: Any) -> str:
    """Returns the docstring of an object, as Markdown."""
    doc = inspect.getdoc(thing) or ""
    doc = re.sub(r":\w+:`([^`]+)`", r"`\1`", doc)
    return doc.strip()


def members(node: ast.ClassDef, cls: Any) -> Iterator[tuple[str, str]]:
    """Yields the public methods and properties of a class: (signature, text)."""
    for item in node.body:
        if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = item.name
        shown = not name.startswith("_") or name in ("__call__", "__pos__", "__neg__", "__mul__")
        if not shown:
            continue
        member = inspect.getattr_static(cls, name, None)
        decorators = {ast.unparse(d) for d in item.decorator_list}
        doc = text_of(member) if not name.startswith("__") else ""
        if "property" in decorators:
            returns = f": {ast.unparse(item.returns)}" if item.returns else ""
            yield f"{name}{returns}", doc
        else:
            yield signature(item), doc


def fields(node: ast.ClassDef, cls: Any) -> Iterator[tuple[str, str]]:
    """Yields the public fields of a named tuple or a dataclass: name and type, and the text after
    its `#:`.
    """
    if not (hasattr(cls, "_fields") or dataclasses.is_dataclass(cls)):
        return
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
            yield ast.unparse(item).split(" = ")[0], item.comment  # type: ignore[attr-defined]


def entry(module: str, name: str, lacking: list[str]) -> str:
    """Returns the part of the page about one name."""
    thing = getattr(importlib.import_module(module), name)
    nodes = definitions(module, name)
    lines = [f"### `{name}`", ""]
    calls: list[str] = []
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            inits = [
                n
                for n in node.body
                if isinstance(n, ast.FunctionDef) and n.name in ("__init__", "__new__")
            ]
            calls += [signature(n).replace(n.name, name, 1).partition(" -> ")[0] for n in inits]
            if not inits and node.bases:
                calls.append(f"class {name}({', '.join(ast.unparse(b) for b in node.bases)})")
        else:
            calls.append(signature(node))
    if calls:
        lines += ["```python", *dict.fromkeys(calls), "```", ""]
    doc = text_of(thing)
    if not doc:
        lacking.append(f"{module}.{name}")
    lines += [doc, ""]
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        rows = dict(fields(node, thing)) | dict(members(node, thing))
        if rows:
            lines += ["| | |", "|---|---|"]
            for call, text in rows.items():
                first = " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")
                lines.append(f"| `{call.replace('|', chr(92) + '|')}` | {first} |")
            lines.append("")
    return "\n".join(lines)


def page() -> str:
    """Returns the whole page.

    Raises:
        Undocumented: a public name has no docstring.
    """
    lacking: list[str] = []
    parts = [HEAD]
    main = importlib.import_module("weft.coroutines")
    listed = set(main.__all__)
    parts += [
        entry("weft.coroutines", name, lacking) for name in sorted(main.__all__, key=str.lower)
    ]
    for module in MODULES:
        try:
            names = importlib.import_module(module).__all__
        except ModuleNotFoundError:
            continue
        names = [n for n in names if module == "weft.plugnplay.coroutines" or n not in listed]
        if names:
            about = textwrap.dedent(text_of(importlib.import_module(module))).split("\n\n")[0]
            parts.append(f"## `{module}`\n\n{about}\n")
            parts += [entry(module, name, lacking) for name in sorted(names, key=str.lower)]
    if lacking:
        raise Undocumented("these public names have no docstring: " + ", ".join(lacking))
    return "\n".join(parts).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    """Writes or checks the page. Returns the exit status."""
    if arguments not in ([], ["--check"]):
        print("usage: reference.py [--check]", file=sys.stderr)
        return 2
    try:
        text = page()
    except Undocumented as error:
        print(f"reference.py: {error}", file=sys.stderr)
        return 1
    if not arguments:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print(
        "python/docs/reference.md is out of date: run .venv/bin/python tools/reference.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
