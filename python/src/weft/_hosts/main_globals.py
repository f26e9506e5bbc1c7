"""Warns of a global variable of the main module that has another value, or none, in other OS
processes (rule 15.12).

Another OS process imports the main module under another name, so the code below `if __name__ ==
"__main__"` does not run there, and neither do the functions that this code calls. If this code sets
a variable, a function in the other OS process finds only the value that the rest of the module has
assigned.

Invariants
- Only functions of the main module that use a global variable other than a function, a class or a
  module are examined further. For these the source of the main module is parsed, once.
- Each variable is reported once. Nothing is reported if it cannot be known (no source, a main
  module that is not a file).
"""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

from weft._extension import native as _native
from weft._hosts.pickling import body_of
from weft.errors import WeftWarning

__all__ = ["warn_of"]

_looked_at: set[types.CodeType] = set()
_told: set[str] = set()
_set_below: dict[str, int] | None = None  # variables that only the parent sets → their lines
_helpers: dict[str, str] = {}  # those of these variables that a function sets → it


def warn_of(function: Any) -> None:
    """Warns of each variable that has another value for the function in another OS process. The
    warning names the line that sets the variable.

    Args:
        function: the body of a process, or what an executor calls; a function of the main module.
    """
    code = getattr(function, "__code__", None)
    if code is None or code in _looked_at:
        return
    _looked_at.add(code)
    main = sys.modules["__main__"]
    used, called = _used(code, vars(main))
    if not used:
        return
    below = _below(main)
    for name in sorted((used & below.keys()) - _told):
        if _helpers.get(name) in called:
            continue  # the function sets the variable itself
        _told.add(name)
        warnings.warn_explicit(
            f"{function.__qualname__} uses the global variable {name!r} in another OS process, "
            'where it does not have this value: this line is below `if __name__ == "__main__"`, and runs '
            "in the program that starts OS processes alone. Give the value as an argument, or set "
            "the variable at the top of the module",
            WeftWarning,
            main.__file__ or "?",
            below[name],
        )


def _used(code: types.CodeType, variables: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Returns the global variables that a function uses, by itself or by way of other functions of
    the main module, and the names of those functions.
    """
    used: set[str] = set()
    called: set[str] = set()
    seen: set[types.CodeType] = set()
    open_ = [code]
    while open_:
        one = open_.pop()
        if one in seen:
            continue
        seen.add(one)
        called.add(one.co_name)
        open_ += [const for const in one.co_consts if isinstance(const, types.CodeType)]
        for name in one.co_names:
            if name not in variables:
                continue
            value = variables[name]
            # type() is used because a proxy's `__class__` is that of another object.
            if issubclass(type(value), types.FunctionType | _native.ProcessFunction):
                body = body_of(value)
                if getattr(body, "__module__", "") == "__main__" and hasattr(body, "__code__"):
                    open_.append(body.__code__)
            elif not issubclass(type(value), type | types.ModuleType) and name in _globals_of(one):
                used.add(name)
    return used, called


def _globals_of(code: types.CodeType) -> set[str]:
    """Returns the global names that a function reads. (co_names has names of attributes too.)"""
    import dis

    return {
        i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }


def _below(main: types.ModuleType) -> dict[str, int]:
    """Returns the variables that the main module sets below `if __name__ == "__main__"`, or in
    functions that are called there, with the lines.
    """
    global _set_below
    if _set_below is None:
        import ast
        import tokenize

        _set_below = {}
        try:
            with tokenize.open(main.__file__ or "") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            return _set_below
        functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
        for block in tree.body:
            if not (isinstance(block, ast.If) and "__main__" in _constants(block.test)):
                continue
            for node in (n for statement in block.body for n in _own(statement)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    _set_below.setdefault(node.id, node.lineno)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    helper = functions.get(node.func.id)
                    if helper is not None and not helper.decorator_list:
                        _of_helper(helper, _set_below)
    return _set_below


def _of_helper(helper: Any, below: dict[str, int]) -> None:
    import ast

    nodes = [n for statement in helper.body for n in _own(statement)]
    declared = {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in declared:
            below.setdefault(node.id, node.lineno)
            _helpers[node.id] = helper.name


def _own(statement: Any) -> list[Any]:
    """Returns the nodes of a statement, without what is within functions and classes."""
    import ast

    within = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    found, open_ = [], [statement]
    while open_:
        node = open_.pop()
        found.append(node)
        if not isinstance(node, within):
            open_ += ast.iter_child_nodes(node)
    return found


def _constants(test: Any) -> list[Any]:
    """Returns the constants with which a test compares `__name__` for equality."""
    import ast

    if not isinstance(test, ast.Compare) or not all(isinstance(o, ast.Eq) for o in test.ops):
        return []
    sides = [test.left, *test.comparators]
    if not any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides):
        return []
    return [side.value for side in sides if isinstance(side, ast.Constant)]
