"""Which definition or module a name in a Python source means.

    Source(path) ── parse ──► Scope of the module, of each class and function in it
        └── target(node) ──► "weft.coroutines.Channel", "builtins.sum", "time.sleep" or None

Invariants
- Nothing is imported or run: only the text of the file is read.
- A name means what the nearest scope around it binds to it. The names of a class's scope are
  visible only in the class's own statements.
- A name that is bound in several ways means nothing certain: target() returns None, and no finding
  follows from such a name.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*FUNCTIONS, ast.ClassDef)


@dataclass
class Binding:
    """A statement, or a part of one, that binds a name.

    Attributes:
        node: the statement or the part.
        target: the module, or the name in a module, that the name stands for; None if unknown.
        value: the expression that is assigned to the name; None if it is no plain assignment.
    """

    node: ast.AST
    target: str | None = None
    value: ast.expr | None = None


@dataclass
class Scope:
    """The names that a module, a class or a function binds."""

    node: ast.AST
    around: Scope | None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # the names declared global or nonlocal

    def bind(self, name: str, binding: Binding) -> None:
        self.names.setdefault(name, []).append(binding)

    def find(self, name: str) -> list[Binding]:
        """Returns the bindings of a name in the nearest scope that has the name; [] if none has."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            visible = first or not isinstance(scope.node, ast.ClassDef)
            if visible and name in scope.names and name not in scope.outer:
                return scope.names[name]
            first = False
            scope = scope.around
        return []


class Source:
    """A Python file: its tree, its scopes, and the modules beside it.

    Attributes:
        path: the file.
        tree: its syntax tree.
        stars: the modules from which the file imports `*`.
        defined: the names, attributes and methods that the file itself defines.
        statement_of: the import statement of each imported name (an ast.alias).
    """

    def __init__(self, path: Path, text: bytes) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text, str(path))
        self.stars: list[str] = []
        self.defined: set[str] = set()
        self.statement_of: dict[ast.AST, ast.stmt] = {}
        self._scope_of: dict[ast.AST, Scope] = {}
        self.scope = Scope(self.tree, None)
        for statement in self.tree.body:
            self._read(statement, self.scope)

    def beside(self, module: str) -> Path | None:
        """Returns the file of a module that lies beside this file, or None."""
        place = self.path.parent.joinpath(*module.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
        return None

    def scope_at(self, node: ast.AST) -> Scope:
        return self._scope_of[node]

    # --- reading ----------------------------------------------------------------------------------

    def _read(self, node: ast.AST, scope: Scope) -> None:
        self._scope_of[node] = scope
        self._bind(node, scope)
        inner = Scope(node, scope) if isinstance(node, _SCOPES) else scope
        if isinstance(node, FUNCTIONS):
            for arg in ast.walk(node.args):
                if isinstance(arg, ast.arg):
                    inner.bind(arg.arg, Binding(arg))
        for part in outside_of(node):
            self._read(part, scope)
        for part in inside_of(node):
            self._read(part, inner)

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                scope.bind(name, Binding(alias, alias.name if alias.asname else name))
                self.statement_of[alias] = node
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""  # a relative import means a module beside this file
            for alias in node.names:
                if alias.name == "*":
                    self.stars.append(module)
                else:
                    target = f"{module}.{alias.name}"
                    scope.bind(alias.asname or alias.name, Binding(alias, target))
                    self.statement_of[alias] = node
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope.bind(node.name, Binding(node))
            self.defined.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            scope.outer.update(node.names)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            if isinstance(node.targets[0], ast.Name):
                scope.bind(node.targets[0].id, Binding(node, None, node.value))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            scope.bind(node.name, Binding(node))
        self._bind_place(node, scope)

    def _bind_place(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            known = scope.names.get(node.id, [])
            if not any(_holds(b, node) for b in known):
                scope.bind(node.id, Binding(node))
            self.defined.add(node.id)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            self.defined.add(node.attr)

    # --- what a name means ------------------------------------------------------------------------

    def target(self, node: ast.AST) -> str | None:
        """Returns the module, or the name in a module, that an expression names. None if that is
        not certain, or if this file itself defines the name.
        """
        if isinstance(node, ast.Attribute):
            owner = self.target(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        found = self.scope_at(node).find(node.id)
        if not found:
            if self.stars and not hasattr(builtins, node.id):
                return None
            return f"builtins.{node.id}"
        targets = {b.target for b in found}
        return targets.pop() if len(targets) == 1 else None

    def assigned(self, node: ast.AST) -> ast.expr | None:
        """Returns the expression that is assigned to a name, if the name is bound only once; else
        None."""
        if not isinstance(node, ast.Name):
            return None
        found = self.scope_at(node).find(node.id)
        return found[0].value if len(found) == 1 else None

    def defines(self, node: ast.AST) -> ast.AST | None:
        """Returns the function or class of this file that a name means, or None."""
        if not isinstance(node, ast.Name):
            return None
        found = self.scope_at(node).find(node.id)
        one = found[0].node if len(found) == 1 else None
        return one if isinstance(one, _SCOPES) else None


def _holds(binding: Binding, name: ast.Name) -> bool:
    return isinstance(binding.node, ast.Assign) and binding.node.targets[0] is name


def outside_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the parts of a definition that are evaluated in the scope around it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from node.decorator_list
    if isinstance(node, ast.ClassDef):
        yield from node.bases
        yield from (keyword.value for keyword in node.keywords)
    if isinstance(node, FUNCTIONS):
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)


def inside_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the other parts of a node, without annotations, which MicroPython does not evaluate."""
    if isinstance(node, ast.Lambda):
        yield node.body
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from node.body
    elif isinstance(node, ast.AnnAssign):
        yield node.target
        if node.value is not None:
            yield node.value
    else:
        yield from ast.iter_child_nodes(node)
