"""One source for both styles: a program written with `await` becomes the one that calls.

Coroutine processes await what thread and greenlet processes call, and the names are the same. So the program for
those is the coroutine program without `async` and `await`, and nobody needs to write both. `weft run FILE --on threads` does
this to FILE if FILE can only mean that (`is_for_any_backend`).

Invariants
- Lines and columns stay what they are in the file, so errors, deadlock reports and debuggers point at the right
  place.
- Only the syntax changes: `async def`, `await`, `async for`, `async with` and asynchronous comprehensions lose the
  word.
"""

from __future__ import annotations

import ast
from types import CodeType

__all__ = ["compile_for", "is_for_any_backend"]

# Whoever imports these means one way of running: there `await` has a meaning of its own.
_OWN_STYLE = (
    "asyncio",
    "trio",
    "anyio",
    "curio",
    "weft.coroutines",
    "weft.greenlets",
    "weft.threads",
)


class _Call(ast.NodeTransformer):
    """Removes every `async` and `await` of a tree."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        return node.value

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
    """Makes `from weft import …` mean one backend, whatever `weft.use` has chosen."""

    def __init__(self, backend: str) -> None:
        self.module = f"weft.{backend}"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module == "weft" and not node.level:
            node.module = self.module
        return node


def compile_for(backend: str, source: str | bytes, filename: str) -> CodeType:
    """Compiles a program written with `await` for a backend: for threads and greenlets without its `async` and `await`.

    Args:
        backend: "coroutines", "greenlets" or "threads". `from weft import …` gives this backend's names.
        source: the text of a module.
        filename: what errors and reports call it.
    Raises:
        SyntaxError: `source` is not Python.
        ValueError: `source` contains a null byte.
    """
    tree = _From(backend).visit(ast.parse(source, filename))
    if backend != "coroutines":
        tree = _Call().visit(tree)
    return compile(tree, filename, "exec", dont_inherit=True)


def is_for_any_backend(source: str | bytes) -> bool:
    """Whether a program awaits, and means by it nothing but Weft: it imports `weft` itself and no event loop.

    Raises:
        SyntaxError: `source` is not Python.
        ValueError: `source` contains a null byte.
    """
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
    return awaits and "weft" in imported and not own
