"""Writes python/docs/reference.md: every public name of the Python package, by topic, with its
signature and its docstring.

    .venv/bin/python tools/reference.py            writes the page
    .venv/bin/python tools/reference.py --check    exit status 1 if the page is out of date

Examples are programs of the pages, which are tested there (EXAMPLES).
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
HEAD = """<!-- Written by tools/reference.py: do not edit. -->
# Reference

Every public name, by topic. The names of the first {topics} topics are those that `weft.coroutines` exports.
`weft.threads` and `weft.greenlets` export the same names; there what is `Awaitable` here is called and returns
at once. `weft` exports the names of the chosen backend. [What you call](../README.md) tells the same as a text.
"""
# The topics of weft.coroutines, and their names in the order in which a reader needs them.
TOPICS = {
    "Processes and networks": "process Process run run_async Parallel Sequence Group Spawn io "
    "yield_ current_process NoResult Outside",
    "Channels and their ends": "Channel ChannelArray Reader Writer retire poison",
    "Choice": "select Alternative Guard Input Output skip readable writable Ready Ended ProcessEnd "
    "watched",
    "Sockets": "connect listen Listener Stream",
    "Time and barriers": "now sleep after at Timer timeout move_on_after deadline Timeout Barrier",
    "Deadlocks and observers": "deadlocks watching_deadlocks BlockedProcess watchdog debug measure "
    "measuring statistics ChannelStats tracing",
    "Errors": "WeftError ChannelEnd Retired Poisoned PeerDied ProcessDied Cancelled Deadlock "
    "BadUse WeftWarning",
}
# The example of a topic or module: the first program of a section of a page, which is tested there.
EXAMPLES = {
    "Processes and networks": ("README.md", "# Weft"),
    "Channels and their ends": ("python/docs/toolkit.md", "## Several of the same"),
    "Choice": ("python/README.md", "## Choice"),
    "Sockets": ("python/docs/io.md", "## An echo server"),
    "Time and barriers": ("python/docs/stopping.md", "## After so long"),
    "Deadlocks and observers": ("README.md", "## Deadlock"),
    "Errors": ("python/docs/tutorial.md", "## 4 When something fails"),
    "weft.observe": ("python/docs/observing.md", "## Watchdog"),
    "weft.toolkit": ("python/docs/toolkit.md", "## Files and commands"),
    "weft.native": ("python/docs/native.md", "## What crosses"),
    "weft.processes": ("python/docs/from-joblib-ray.md", "## Calls"),
    "weft.plugnplay.coroutines": ("python/docs/toolkit.md", "## Plug and play"),
}
# The other modules whose public names are listed, each under its own heading.
MODULES = (
    "weft.metrics",
    "weft.observe",
    "weft.toolkit",
    "weft.native",
    "weft.processes",
    "weft.serial",
    "weft.boards",
    "weft.net",
    "weft.plugnplay.coroutines",
    "weft.errors",
)


class Undocumented(Exception):
    """Raised if public names have no docstring, or no topic. The text lists the names."""


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


def example(topic: str) -> str:
    """Returns the program that is the example of a topic or module, as a block of the page; an
    empty text if there is none.
    """
    if topic not in EXAMPLES:
        return ""
    path, section = EXAMPLES[topic]
    _, _, rest = f"\n{(ROOT / path).read_text()}".partition(f"\n{section}\n")
    program = re.search(r"^```python[^\n]*\n(.*?)^```", rest, re.DOTALL | re.MULTILINE)
    assert program is not None, f"{path} has no program in the section {section!r}"
    return f"```python\n{program[1]}```\n"


def page() -> str:
    """Returns the whole page.

    Raises:
        Undocumented: a public name has no docstring, or no topic.
    """
    lacking: list[str] = []
    parts = [HEAD.format(topics=len(TOPICS))]
    listed = set(importlib.import_module("weft.coroutines").__all__)
    without = listed - {name for names in TOPICS.values() for name in names.split()}
    if without:
        raise Undocumented("these public names have no topic: " + ", ".join(sorted(without)))
    for topic, listed_names in TOPICS.items():
        parts += [f"## {topic}\n", example(topic)]
        parts += [entry("weft.coroutines", name, lacking) for name in listed_names.split()]
    for module in MODULES:
        try:
            names = importlib.import_module(module).__all__
        except ModuleNotFoundError:
            continue
        names = [n for n in names if module == "weft.plugnplay.coroutines" or n not in listed]
        if names:
            about = textwrap.dedent(text_of(importlib.import_module(module))).split("\n\n")[0]
            parts += [f"## `{module}`\n\n{about}\n", example(module)]
            parts += [entry(module, name, lacking) for name in sorted(names, key=str.lower)]
    if lacking:
        raise Undocumented("these public names have no docstring: " + ", ".join(lacking))
    return "\n".join(part for part in parts if part).rstrip() + "\n"


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
