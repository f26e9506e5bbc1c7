"""Turns a program that awaits its operations into one that calls them, so that one source serves
both styles.

Coroutine processes await the operations that thread and greenlet processes call, under the same
names. So the program for threads or greenlets is the coroutine program without `async` and `await`,
and need not be written twice. `weft run FILE --on threads` does this to FILE, if its `await` can
only mean Weft (`is_for_any_backend`), and to the modules beside it that FILE imports (`Beside`).

Invariants
- Lines and columns stay as they are in the file, so errors, deadlock reports and debuggers point at
  the right place.
- Only the syntax changes: the words `async` and `await` are left out of `async def`, `await`,
  `async for`, `async with` and asynchronous comprehensions.
- No awaited call is dropped: if the call of a function of another file returns a coroutine, which
  nothing awaits now, BadUse is raised (`called`).
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

__all__ = ["Beside", "called", "compile_for", "is_for_any_backend"]

# A program that imports one of these modules runs only as a coroutine program, since its `await`
# can mean something else.
_OWN_STYLE = (
    "asyncio",
    "trio",
    "anyio",
    "curio",
    "weft.coroutines",
    "weft.greenlets",
    "weft.processes",
    "weft.threads",
)


# The names of Weft's own operations, whose results need not be checked.
_OPERATIONS = {
    "Parallel",
    "Sequence",
    "Spawn",
    "ended",
    "extended",
    "read",
    "run_async",
    "select",
} | {"sleep", "sync", "tick", "write", "yield_"}


class _Call(ast.NodeTransformer):
    """Removes every `async` and `await` from a tree."""

    def __init__(self, tree: ast.AST, backend: str) -> None:
        self.backend = backend
        self.own = {n.name for n in ast.walk(tree) if isinstance(n, ast.AsyncFunctionDef)}

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        function = node.value.func if isinstance(node.value, ast.Call) else None
        name = getattr(function, "attr", getattr(function, "id", None))
        if name is None or name in self.own or name in _OPERATIONS:
            return node.value
        look = f"__import__('weft.styles').styles.called({self.backend!r}, None)"
        checked = ast.parse(look, mode="eval").body
        assert isinstance(checked, ast.Call)
        checked.args[1] = node.value
        for new in ast.walk(checked):
            if not hasattr(new, "lineno") or new.lineno == 1:
                ast.copy_location(new, node)
        return checked

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        fields = {name: getattr(node, name) for name in node._fields if hasattr(node, name)}
        return ast.copy_location(ast.FunctionDef(**fields), node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.generic_visit(node)
        fields = {name: getattr(node, name) for name in node._fields if hasattr(node, name)}
        return ast.copy_location(ast.For(**fields), node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        fields = {name: getattr(node, name) for name in node._fields if hasattr(node, name)}
        return ast.copy_location(ast.With(**fields), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.is_async = 0
        return node


class _From(ast.NodeTransformer):
    """Makes `from weft import …` import from one backend, whatever `weft.use` has chosen."""

    def __init__(self, backend: str) -> None:
        self.module = f"weft.{backend}"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module == "weft" and not node.level:
            node.module = self.module
        return node


def compile_for(backend: str, source: str | bytes, filename: str) -> CodeType:
    """Compiles a program written with `await` for a backend. For every backend but coroutines, its
    `async` and `await` are left out.

    Args:
        backend: "coroutines", "greenlets", "processes" or "threads". `from weft import …` imports
            this backend's names.
        source: the text of a module.
        filename: its name in errors and reports.
    Raises:
        SyntaxError: `source` is not Python.
        ValueError: `source` contains a null byte.
    """
    tree = _From(backend).visit(ast.parse(source, filename))
    if backend != "coroutines":
        tree = ast.fix_missing_locations(_Call(tree, backend).visit(tree))
    return compile(tree, filename, "exec", dont_inherit=True)


def called(backend: str, value: Any) -> Any:
    """Passes on the value of a call that the original program awaits.

    Raises:
        BadUse: the value is a coroutine, which nothing would await.
    """
    if not inspect.iscoroutine(value):
        return value
    code = value.cr_code
    value.close()
    from weft.errors import BadUse

    raise BadUse(
        f"{value.__qualname__} ({Path(code.co_filename).name}:{code.co_firstlineno}) is an `async def`, and on {backend} "
        f"nothing awaits what it gives: `weft run` leaves `await` out of the program and of the modules in its folder that "
        f"import no event loop. Move it there, write it as a `def`, or run --on coroutines"
    )


class Beside:
    """Finds the modules in a program's folder. Modules that await in the same way as the program
    are compiled in the same way.

    While a Beside is on `sys.meta_path`, modules that `import` finds in the folder are compiled for
    the backend too.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder = folder.resolve()
        self.backend = backend

    def __enter__(self) -> Beside:
        if self.backend != "coroutines":
            sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        file = Path(spec.loader.path)
        if self.folder not in file.resolve().parents or "site-packages" in file.parts:
            return None
        try:
            if not _awaits_weft(spec.loader.get_data(str(file)), imports_weft=False):
                return None
        except (OSError, SyntaxError, ValueError):
            return None  # import itself reports the error
        spec.loader = _Loader(name, str(file), self.backend)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module for a backend. It writes no bytecode files, because programs that run the
    module unchanged would find those files.
    """

    def __init__(self, name: str, path: str, backend: str) -> None:
        super().__init__(name, path)
        self.backend = backend

    def get_code(self, fullname: str) -> CodeType:
        return compile_for(self.backend, self.get_data(self.path), self.path)


def is_for_any_backend(source: str | bytes) -> bool:
    """Returns whether a program awaits, and its `await` can only mean Weft's operations. Such a
    program imports `weft` itself, and no event loop.

    Raises:
        SyntaxError: `source` is not Python.
        ValueError: `source` contains a null byte.
    """
    return _awaits_weft(source, imports_weft=True)


def _awaits_weft(source: str | bytes, imports_weft: bool) -> bool:
    awaits = False
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef):
            awaits = True
        elif isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module)
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    own = any(
        name == style or name.startswith(style + ".") for name in imported for style in _OWN_STYLE
    )
    return awaits and ("weft" in imported or not imports_weft) and not own
