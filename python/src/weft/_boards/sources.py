"""Takes the source of a process function, and of what the function uses, out of its module. The
rest of the module is not sent, because a board has little memory.

    taken(function) ──the names in its syntax──► the statements of its module that bind these names
        ──the names in these statements──► … ──imports of modules beside its file──► these modules,
        whole ──► Source: the files and their digest

Invariants
- Nothing is imported or run here: names are found by syntax. The values of the globals that go
  along are examined too: the board makes its own value, so the value must be plain.
- Each statement keeps its line, so that a traceback of the board names lines of the real file.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import dis
import hashlib
import inspect
import textwrap
import types
from pathlib import Path
from typing import Any, NamedTuple

from weft.errors import BadUse

__all__ = ["Source", "taken"]

_PLAIN = (type(None), bool, int, float, str, bytes)
_BOXES = (list, tuple, set, frozenset, dict)


class Source(NamedTuple):
    """What goes to a board for one function."""

    digest: str  #: the digest of all files, as a board computes it
    module: str  #: the name under which the board imports the function's file
    function: str  #: the function's name there
    files: dict[str, bytes]  #: file name → text
    places: dict[str, str]  #: file name → the real file, for tracebacks

    @property
    def size(self) -> int:
        """The number of bytes of all files, without the empty lines."""
        texts = (text.splitlines() for text in self.files.values())
        return sum(len(line) + 1 for lines in texts for line in lines if line)


def taken(function: Any) -> Source:
    """Returns the source that a board needs to run the function.

    Raises:
        BadUse: the function, or something that it uses, cannot go to a board.
    """
    name = getattr(function, "__qualname__", repr(function))
    if not isinstance(function, types.FunctionType):
        raise BadUse(f"{name}: only a function can go to a board: write an `async def`")
    if function.__name__ == "<lambda>":
        raise BadUse("a lambda cannot go to a board: write an `async def` with a name")
    if not inspect.iscoroutinefunction(function):
        raise BadUse(
            f"{name} is a `def`: a board runs coroutines, so write `async def {function.__name__}`, "
            "and await its operations"
        )
    if function.__code__.co_freevars:
        free = ", ".join(function.__code__.co_freevars)
        raise BadUse(
            f"{name} uses {free} of the function around it, which cannot go to a board: "
            "give it as an argument"
        )
    text, path = _text_of(function, name)
    tree = ast.parse(text)
    node = _definition(tree, function)
    if node is None:
        raise BadUse(
            f"{name}: line {function.__code__.co_firstlineno} of {path} does not define it any more: "
            "start the program again"
        )
    _only_process(node, name, path)
    slicer = _Slice(text, tree, function, path)
    slicer.add_definition(node)
    files = {}
    lines = slicer.written()
    for module, its in slicer.beside.items():
        files[f"{module}.py"] = _without_main(its.read_text(encoding="utf-8")).encode()
    # No module of the board and no other source has this name.
    own = "placed_" + hashlib.sha256(lines + b"".join(files.values())).hexdigest()[:8]
    files[f"{own}.py"] = lines
    places = {f"{module}.py": str(its) for module, its in slicer.beside.items()}
    places[f"{own}.py"] = path
    return Source(_digest(files), own, function.__name__, files, places)


def _digest(files: dict[str, bytes]) -> str:
    """Returns the digest that micropython/weft/_placed.py computes of these files."""
    its = hashlib.sha256()
    for file in sorted(files):
        its.update(file.encode() + b"\0" + files[file])
    return its.hexdigest()[:16]


def _text_of(function: Any, name: str) -> tuple[str, str]:
    import linecache

    path = function.__code__.co_filename
    lines = linecache.getlines(path, function.__globals__)
    if not lines:
        raise BadUse(
            f"{name}: its source cannot be read ({path}): a function that goes to a board must be "
            "in a file"
        )
    return "".join(lines), path


_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def _definition(tree: ast.Module, function: Any) -> Any:
    """Returns the definition of the function in the syntax tree of its module, None if the file has
    changed and lacks it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and node.name == function.__name__:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == function.__code__.co_firstlineno:
                return node
    return None


def _only_process(node: Any, name: str, path: str) -> None:
    others = [
        d
        for d in node.decorator_list
        if not (isinstance(d, ast.Name) and d.id == "process")
        and not (isinstance(d, ast.Attribute) and d.attr == "process")
    ]
    if others:
        raise BadUse(
            f"{name} has the decorator @{ast.unparse(others[0])} at {path}:{others[0].lineno}: what "
            "goes to a board has @process alone"
        )


class _Slice:
    """The part of a module that a function needs: its statements, with their lines."""

    def __init__(self, text: str, tree: ast.Module, function: Any, path: str) -> None:
        self.lines = text.splitlines()
        self.path, self.function = path, function
        self.globals = function.__globals__
        self.beside: dict[str, Path] = {}  # the modules of the same folder that go along, by name
        self._pieces: dict[int, str] = {}  # the texts that go along, by their first line
        # the statements that bind each name of the module
        self._binders: dict[str, list[ast.stmt]] = {}
        self._stars: list[ast.ImportFrom] = []
        self._done: set[int] = set()
        self._names: set[str] = set()
        self._bind(tree.body)

    def _bind(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.If) and _is_main(node.test):
                continue
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                self._stars.append(node)
            for name in _bound(node):
                self._binders.setdefault(name, []).append(node)

    def add_definition(self, node: Any) -> None:
        """Adds the function itself, without its decorator, which the board does not need."""
        self._put(node.lineno, "\n".join(self.lines[node.lineno - 1 : node.end_lineno]))
        self._names.add(node.name)
        plain = copy.copy(node)
        plain.decorator_list = []
        self._follow(plain)

    def written(self) -> bytes:
        """Returns the text of the file for the board."""
        out: list[str] = []
        for line in sorted(self._pieces):
            out.extend([""] * (line - 1 - len(out)))
            out.extend(self._pieces[line].split("\n"))
        return ("\n".join(out) + "\n").encode()

    def _put(self, line: int, text: str) -> None:
        text = textwrap.dedent(text)
        if line in self._pieces:  # two statements on one line
            text = f"{self._pieces[line]}; {text}"
        self._pieces[line] = text

    def _follow(self, node: Any) -> None:
        """Adds the statements of the module that `node` needs."""
        for name in _globals_of(node):
            if name not in self._names:
                self._names.add(name)
                self._need(name)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                for alias in inner.names:
                    self._module(alias.name)
            elif isinstance(inner, ast.ImportFrom) and not inner.level:
                self._module(inner.module or "")

    def _need(self, name: str) -> None:
        if name not in self._binders and not hasattr(builtins, name):
            for star in self._stars:  # one of these imports may bind the name
                self._import_from(star, name)
        for node in self._binders.get(name, ()):
            if isinstance(node, ast.ImportFrom):
                self._import_from(node, name)
            elif id(node) not in self._done:
                self._done.add(id(node))
                self._check(node, name)
                self._put(_first(node), self._text(node))
                self._follow(node)

    def _text(self, node: ast.stmt) -> str:
        """Returns the statement's text. A statement that begins or ends in the middle of a line is
        written from its syntax tree."""
        first, last = self.lines[_first(node) - 1], self.lines[(node.end_lineno or 1) - 1]
        alone = not first[: node.col_offset].strip() and not last.encode()[
            node.end_col_offset :
        ].strip().startswith(b";")
        if not alone and not isinstance(node, (*_Function, ast.ClassDef)):
            return ast.unparse(node)
        return "\n".join(self.lines[_first(node) - 1 : node.end_lineno])

    def _import_from(self, node: ast.ImportFrom, name: str) -> None:
        """Adds an import of `name` alone: the board's module may lack the other names."""
        module = node.module or ""
        if node.level:
            raise BadUse(
                f"{self.path}:{node.lineno}: an import relative to a package does not go to a board: "
                "put the module beside this one, and import it by its name"
            )
        if module in ("__future__", "typing"):
            return
        for alias in node.names:
            if alias.name == "*" and module.partition(".")[0] == "weft":
                self._import_from(
                    ast.ImportFrom(module, [ast.alias(name)], 0, lineno=node.lineno), name
                )
            elif alias.name == "*" or (alias.asname or alias.name) == name:
                shown = f" as {alias.asname}" if alias.asname else ""
                its = _weft(module, name, self.path, node.lineno)
                self._put(node.lineno, f"from {its} import {alias.name}{shown}")
        self._module(module)

    def _module(self, module: str) -> None:
        """Adds a module that lies beside this file, and the modules beside it that it imports."""
        top = module.partition(".")[0]
        if not top or top == "weft" or top in self.beside:
            return
        root = Path(self.path).resolve().parent
        if (root / top / "__init__.py").is_file():
            raise BadUse(
                f"{self.path} imports the package {top!r}: only single modules go to a board; put "
                "what the process needs into a module beside the file"
            )
        file = root / f"{top}.py"
        if not file.is_file():
            return  # a module of the board; if the board lacks it, the import fails there
        self.beside[top] = file
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except SyntaxError as error:
            raise BadUse(f"{file}:{error.lineno}: {error.msg}") from error
        for inner in ast.walk(tree):
            if isinstance(inner, ast.Import):
                for alias in inner.names:
                    self._module(alias.name)
            elif isinstance(inner, ast.ImportFrom) and not inner.level:
                self._module(inner.module or "")

    def _check(self, node: ast.stmt, name: str) -> None:
        """Raises BadUse if the statement binds `name` to a value that is not plain. On the board
        the statement would make another object.
        """
        if isinstance(node, (*_Function, ast.ClassDef, ast.Import)) or name not in self.globals:
            return
        wrong = _not_plain(self.globals[name])
        if wrong is not None:
            raise BadUse(
                f"{self.function.__qualname__} uses the global {name!r} ({self.path}:{node.lineno}), "
                f"which is {wrong}: a board would make one of its own; give it as an argument, or "
                "make it in the process"
            )


def _not_plain(value: Any, deep: int = 0) -> str | None:
    """Returns a description of the value; None if it is a plain value, a function, a class or a
    module."""
    if isinstance(value, (types.FunctionType, types.ModuleType, types.BuiltinFunctionType, type)):
        return None
    if type(value).__name__ == "ProcessFunction" or type(value) in _PLAIN or deep > 8:
        return None
    if type(value) in _BOXES:
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        return next((w for w in (_not_plain(v, deep + 1) for v in inner) if w), None)
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def _weft(module: str, name: str, path: str, line: int) -> str:
    """Returns the name of the module on the board: a module of Weft may have another name there.

    Raises:
        BadUse: no module of a board has the names of this module of Weft.
    """
    if module.partition(".")[0] != "weft" or module in ("weft.coroutines", "weft.errors"):
        return module
    if module in ("weft", "weft.threads", "weft.greenlets", "weft.processes"):
        return "weft.coroutines"
    raise BadUse(
        f"{path}:{line}: {name!r} of {module} is not on a board: a process there uses "
        "weft.coroutines and weft.errors"
    )


def _is_main(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
    ) or (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING")


def _first(node: Any) -> int:
    first: int = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return first


def _bound(node: ast.stmt) -> set[str]:
    """Returns the names that a statement of a module binds."""
    if isinstance(node, (*_Function, ast.ClassDef)):
        return {node.name}
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).partition(".")[0] for a in inner.names}
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.add(inner.id)
        elif isinstance(inner, (*_Function, ast.ClassDef)):
            names.add(inner.name)
    return names - {"*"}


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")


def _globals_of(node: Any) -> set[str]:
    """Returns the globals that a statement names, also within functions in the statement.
    Annotations are left out, since a board does not evaluate them.
    """
    flags = __future__.annotations.compiler_flag
    names: set[str] = set()
    module = ast.Module([node], [])
    waiting = [compile(module, "?", "exec", flags, dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        names |= {i.argval for i in dis.get_instructions(code) if i.opname in _LOADS}
        waiting.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
    return names


def _without_main(text: str) -> str:
    """Returns a module's text without the blocks of `if __name__ == …` and `if TYPE_CHECKING`.
    The lines of these blocks remain as empty lines.
    """
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and _is_main(node.test):
            for i in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[i] = ""
    return "\n".join(lines).rstrip() + "\n"
