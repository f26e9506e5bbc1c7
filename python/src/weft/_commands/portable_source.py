"""Finds the parts of a Python file that CPython or MicroPython does not run, and which processes of
the file use them.

    file ──Source──► tree and scopes ──Reader──► findings ──judge()──► Judged, process by process

Invariants
- Nothing of the file is imported or run. Only modules of CPython's own library are imported, to
  look up names in them.
- A finding follows from the text alone. What the text does not show, such as the type of a
  parameter, leads to no finding. So a file without findings may still fail. A file with a finding
  fails on the side that lacks the name, once the program reaches that place.
- An import or a name in `try:` is no finding if a handler catches the error that MicroPython raises
  for it. In the branch of `if sys.implementation.name == "micropython":` only MicroPython must have
  what is used, so what MicroPython lacks is a finding there, and what CPython lacks is not. In the
  `else` branch the opposite holds.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft._commands import portable_list as _list
from weft._commands import portable_names as _names
from weft._commands import portable_syntax as _syntax
from weft._commands.portable_names import CPYTHON, MICROPYTHON
from weft._commands.portable_scopes import Source, inside_of, outside_of

BOTH = frozenset((CPYTHON, MICROPYTHON))
_WEFT = ("weft", "weft.coroutines", "weft.threads", "weft.errors")
_MODULES_OF_WEFT = ("coroutines", "threads", "errors")
# Members of Weft's classes that are ordinary words. They are findings only if the class is known.
_ORDINARY = frozenset(("on", "id", "close", "period", "when", "blocks"))
_PORT = "MicroPython"


@dataclass(frozen=True)
class Finding:
    """A place in a file that uses something which CPython or MicroPython lacks.

    Attributes:
        file: the file.
        line: the line of the place in the file.
        name: what the place uses.
        lacks: the side that lacks it, "MicroPython" or "CPython".
        reason: why that side lacks it, or which version was asked.
        instead: what to write instead.
        node: the part of the syntax tree at this place.
    """

    file: Path
    line: int
    name: str
    lacks: str
    reason: str
    instead: str
    node: ast.AST = field(compare=False, hash=False, repr=False)


@dataclass
class Judged:
    """A file and its findings. `processes` has for each process its name, its line, and the
    findings in the process and in what the process uses.
    """

    file: Path
    findings: list[Finding]
    processes: list[tuple[str, int, list[Finding]]]


class Reader:
    """Reads one source, and the modules beside it that the source imports."""

    def __init__(self, source: Source, known: dict[Path, Reader]) -> None:
        self.source = source
        self.found: list[Finding] = []
        self.processes: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self.imported: dict[str, Reader] = {}
        self.known = known
        known[source.path.resolve()] = self
        self._facts = _names.facts()
        self._suppressed: set[str] = set()
        self._sides = BOTH
        self._functions: set[ast.AST] = set()  # the expressions that are called
        self._read_all(source.tree.body)
        self._read_strings()

    # --- the walk ---------------------------------------------------------------------------------

    def _read_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._read(node)

    def _read(self, node: ast.AST) -> None:
        self._look_at_syntax(node)
        if isinstance(node, ast.Try):
            self._read_try(node)
        elif isinstance(node, ast.If) and self._asks_implementation(node.test) is not None:
            self._read_branches(node)
        else:
            self._look_at(node)
            self._read_all(outside_of(node))
            self._read_all(inside_of(node))

    def _read_try(self, node: ast.Try) -> None:
        before = self._suppressed
        self._suppressed = before | {n for h in node.handlers for n in _caught(h)}
        self._read_all(node.body)
        self._suppressed = before
        self._read_all((*node.handlers, *node.orelse, *node.finalbody))

    def _read_branches(self, node: ast.If) -> None:
        there = frozenset((MICROPYTHON,))
        yes = there if self._asks_implementation(node.test) else BOTH - there
        before = self._sides
        self._sides = before & yes
        self._read_all(node.body)
        self._sides = before - yes
        self._read_all(node.orelse)
        self._sides = before

    def _asks_implementation(self, test: ast.expr) -> bool | None:
        """Returns whether a condition is true on MicroPython; None if the condition does not ask
        for the implementation.
        """
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        named = test.comparators[0]
        if self.source.target(test.left) != "sys.implementation.name":
            return None
        if not isinstance(named, ast.Constant) or named.value not in ("micropython", "cpython"):
            return None
        equal = isinstance(test.ops[0], ast.Eq)
        return equal == (named.value == "micropython")

    def _look_at(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._look_at_module(alias.name, node)
        elif isinstance(node, ast.ImportFrom):
            self._look_at_import_from(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(self._is_process(d) for d in node.decorator_list):
                self.processes.append(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._look_at_name(node)
        elif isinstance(node, ast.Attribute):
            self._look_at_attribute(node)
        elif isinstance(node, ast.Call):
            self._functions.add(node.func)
            self._look_at_call(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for operand in (node.left, node.right):
                kind = self._class_of(operand)
                if kind in ("Channel", "Process"):
                    self._differs(f"{kind}.__mul__", node, f"n * {kind}")

    def _is_process(self, decorator: ast.expr) -> bool:
        target = self.source.target(decorator) or ""
        if not target and isinstance(decorator, ast.Name):
            return self._from_star(decorator.id) and decorator.id == "process"
        return target in [f"{module}.process" for module in _WEFT]

    def _find(
        self, node: ast.AST, name: str, lacks: str, reason: str, instead: str, raised: str = ""
    ) -> None:
        """Adds a finding, unless the program catches the error `raised`, or reaches this place only
        on the side that has the name.
        """
        if lacks == MICROPYTHON and re.match(r"weft\.\w+", name):
            # On MicroPython the package raises ImportError and its modules AttributeError, for an
            # import as well as for an attribute.
            raised = "AttributeError" if name.count(".") == 2 else "ImportError"
        if raised in self._suppressed or lacks not in self._sides:
            return
        line = getattr(node, "lineno", 1)
        self.found.append(Finding(self.source.path, line, name, lacks, reason, instead, node))

    def _differs(self, key: str, node: ast.AST, name: str, raised: str = "AttributeError") -> bool:
        difference = _list.difference(key) or _list.difference(key, _list.MODULES)
        if difference is not None:
            self._find(node, name, difference.lacks, difference.reason, difference.instead, raised)
        return difference is not None

    # --- syntax -----------------------------------------------------------------------------------

    def _look_at_syntax(self, node: ast.AST) -> None:
        for probe in _syntax.PROBES:
            lacking = probe.name in self._facts["syntax"] and isinstance(node, probe.kinds)
            if lacking and probe.found(node):
                self._add_syntax(node, probe.name, probe.instead)

    def _add_syntax(self, node: ast.AST, name: str, instead: str) -> None:
        line = getattr(node, "lineno", 1)
        reason = f"{_PORT} {self._facts['version']} does not run it"
        self.found.append(Finding(self.source.path, line, name, MICROPYTHON, reason, instead, node))

    def _read_strings(self) -> None:
        """Examines how strings are written, which the syntax tree does not show."""
        before = ""
        for token in tokenize.tokenize(io.BytesIO(self.source.text).readline):
            text = token.string
            opening = re.match(r"([a-zA-Z]*)['\"]", text)
            if opening:
                place = ast.Pass(lineno=token.start[0])
                for name, instead, found in _syntax.STRINGS:
                    if name in self._facts["strings"] and found(before, text):
                        self._add_syntax(place, name, instead)
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                before = text if opening else ""

    # --- modules and names ------------------------------------------------------------------------

    def _look_at_module(self, module: str, node: ast.AST) -> bool:
        """Adds a finding if a side lacks the imported module. Returns whether both sides have it."""
        top = module.partition(".")[0]
        if top == "weft":
            return self._look_at_weft_module(module, node)
        beside = self.source.beside(module)
        if beside is not None:
            self.imported[module] = _reader_of(beside, self.known)
            return False
        if module in self._facts["modules"] or module == "sys":
            return True
        raised = "ImportError"
        if top in self._facts["only_there"] and top not in sys.stdlib_module_names:
            reason = "it is a module of MicroPython alone"
            instead = "import it in `try: … except ImportError:`, or in a file of its own"
            self._find(node, f"the module {module}", CPYTHON, reason, instead, raised)
            return False
        if top in sys.stdlib_module_names:
            reason = f"{_PORT} {self._facts['version']} does not have it"
            instead = _list.HINTS.get(
                module, "do without it, or import it in `try: … except ImportError:`"
            )
            if module in self._facts["mip"]:
                instead = (
                    f"`mpremote mip install {module}` may bring what is needed of it; or {instead}"
                )
        else:
            reason = "it is no module of MicroPython, and none beside this file"
            instead = "put its source beside this file, or start that part from another file"
        self._find(node, f"the module {module}", MICROPYTHON, reason, instead, raised)
        return False

    def _look_at_weft_module(self, module: str, node: ast.AST) -> bool:
        if module in _WEFT:
            return True
        top = ".".join(module.split(".")[:2])
        if not self._differs(top, node, f"the module {module}", "ImportError"):
            reason = "Weft has no such module"
            sides: tuple[str, ...] = (CPYTHON, MICROPYTHON)
            if "._" in module:
                name = module.split(".")[1]
                reason, sides = "it is no public module", self._without_private("weft", name)
            for side in sides:
                self._find(
                    node, f"the module {module}", side, reason,
                    "give the name of a public module of Weft", "ImportError",
                )  # fmt: skip
        return False

    def _look_at_import_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if module == "__future__":
            self._find(
                node, "from __future__ import", MICROPYTHON,
                f"{_PORT} {self._facts['version']} does not have the module",
                "leave it out: MicroPython does not evaluate annotations", "ImportError",
            )  # fmt: skip
            return
        if node.level:
            names = [module] if module else [a.name for a in node.names]
            for name in names:
                self._look_at_module(name, node)
            return
        if not self._look_at_module(module, node):
            return
        for alias in node.names:
            if alias.name != "*":
                self._look_at_member(module, alias.name, alias, "ImportError")

    def _look_at_member(self, module: str, name: str, node: ast.AST, raised: str) -> None:
        """Adds a finding if a side lacks a name of a module that both sides have."""
        shown = f"{module}.{name}"
        if module in _WEFT:
            self._look_at_weft_name(module, name, node, shown, raised)
            return
        if name in self._facts["modules"].get(module, ()) or name.startswith("__"):
            return
        try:
            on_cpython = hasattr(importlib.import_module(module), name)
        except ImportError:
            return
        lacks = MICROPYTHON if on_cpython else CPYTHON
        version = f" {self._facts['version']}" if on_cpython else ""
        self._find(
            node, shown, lacks, f"the module {module} of {lacks}{version} does not have it",
            _list.HINTS.get(shown, "do without it, or catch the error that the lack of it raises"),
            raised,
        )  # fmt: skip

    def _look_at_weft_name(
        self, module: str, name: str, node: ast.AST, shown: str, raised: str
    ) -> None:
        if name.startswith("__") or (module == "weft" and name in _MODULES_OF_WEFT):
            return
        if self._differs(name, node, shown, raised):
            return
        if self._differs(f"weft.{name}", node, shown, raised):
            return
        on = module.partition(".")[2] or "coroutines"
        if name in self._facts["weft"]["importable"][on]:
            return
        sides: tuple[str, ...] = (CPYTHON, MICROPYTHON)
        reason = "Weft has no such name"
        if name in _names.names_on(CPYTHON):
            sides, reason = (MICROPYTHON,), f"{module} has it on CPython alone"
        elif name.startswith("_") or name in self._facts["weft"]["star"].get(module, ()):
            sides, reason = self._without_private(module, name), "it is not public"
        for side in sides:
            self._find(node, shown, side, reason, "give a public name that both have", raised)

    def _without_private(self, module: str, name: str) -> tuple[str, ...]:
        """Returns the sides that lack a name which is not public. For MicroPython this is known
        only of names of the package `weft`; of another module it counts as having the name.
        """
        try:
            here = hasattr(importlib.import_module(module), name)
        except ImportError:
            here = False
        if module == "weft" and not here:
            here = importlib.util.find_spec(f"weft.{name}") is not None
        there = module != "weft" or name in self._facts["weft"]["private"]
        has = {CPYTHON: here, MICROPYTHON: there}
        return tuple(side for side, it_has in has.items() if not it_has)

    def _from_star(self, name: str) -> bool:
        """Returns whether a name is one of Weft's that an `import *` of the file should bring."""
        return any(m in _WEFT for m in self.source.stars) and name in _names.names_on(CPYTHON)

    def _look_at_name(self, node: ast.Name) -> None:
        source = self.source
        if source.scope_at(node).find(node.id):
            return
        for module in source.stars:
            if module in _WEFT and self._from_star(node.id):
                self._look_at_weft_name(module, node.id, node, node.id, "NameError")
                if node.id not in self._facts["weft"]["star"].get(module, ()):
                    self._find(
                        node, node.id, MICROPYTHON, f"`from {module} import *` does not bring it there",
                        f"name it: from {module} import {node.id}", "NameError",
                    )  # fmt: skip
                return
        if node.id in self._facts["builtins"] and not source.stars:
            instead = _list.HINTS.get(node.id, "do without it")
            if node.id.endswith("Error") and issubclass(getattr(builtins, node.id), OSError):
                instead = "name OSError, from which it is derived, and look at its errno"
            self._find(
                node, node.id, MICROPYTHON,
                f"the builtins of {_PORT} {self._facts['version']} do not have it", instead,
                "NameError",
            )  # fmt: skip

    # --- attributes and calls ---------------------------------------------------------------------

    def _class_of(self, node: ast.AST | None) -> str:
        """Returns the name of the class of an expression's value: a class of Weft, or for a literal
        a type of Python. "" if the class is not certain.
        """
        if isinstance(node, ast.Name):
            return self._class_of(self.source.assigned(node))
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        ):
            return "str"
        if isinstance(node, ast.Constant) and isinstance(node.value, (bytes, int, float)):
            return type(node.value).__name__ if not isinstance(node.value, bool) else ""
        if isinstance(node, (ast.List, ast.ListComp)):
            return "list"
        if isinstance(node, (ast.Dict, ast.DictComp)):
            return "dict"
        if isinstance(node, ast.Call):
            if self.source.defines(node.func) in self.processes:
                return "Process"
            module, _, name = (self.source.target(node.func) or "").rpartition(".")
            if module in _WEFT and "bases" in _names.names_on(CPYTHON).get(name, {}):
                return name
        return ""

    def _look_at_attribute(self, node: ast.Attribute) -> None:
        owner = self.source.target(node.value)
        if owner is not None and not owner.startswith("builtins."):
            if owner in self._facts["modules"] or owner in _WEFT:
                self._look_at_member(owner, node.attr, node, "AttributeError")
            return
        kind = self._class_of(node.value)
        name = f".{node.attr}"
        if kind in self._facts["attributes"]:
            if node.attr in self._facts["attributes"][kind]:
                self._lacks_attribute(node, f"{kind} of {_PORT}")
            return
        if kind:
            self._differs(f"{kind}.{node.attr}", node, name)
            return
        if node.attr in self.source.defined or self._is_beside(node.attr):
            return
        if node.attr in _SAID_OF_EXCEPTIONS or self._is_called_of_a_type(node):
            self._lacks_attribute(node, f"no type of {_PORT}")
            return
        if node.attr not in _ORDINARY:
            for key in _members(node.attr):
                if self._differs(key, node, name):
                    return

    def _is_called_of_a_type(self, node: ast.Attribute) -> bool:
        """Returns whether the attribute is a called method that some type of CPython has, and
        nothing of MicroPython has.
        """
        types = [t for t, names in self._facts["attributes"].items() if node.attr in names]
        return (
            node in self._functions
            and bool(types)
            and not node.attr.startswith("__")
            and node.attr not in self._facts["attributes_there"]
        )

    def _is_beside(self, name: str) -> bool:
        return any(name in reader.source.defined for reader in self.imported.values())

    def _lacks_attribute(self, node: ast.Attribute, who: str) -> None:
        some = who if who.startswith("no ") else f"the type {who}"
        has = "has" if who.startswith("no ") else "does not have"
        self._find(
            node, f".{node.attr}", MICROPYTHON, f"{some} {self._facts['version']} {has} it",
            "write what it does as a function", "AttributeError",
        )  # fmt: skip

    def _look_at_call(self, node: ast.Call) -> None:
        target = self.source.target(node.func) or ""
        module, _, name = target.rpartition(".")
        if module == "builtins":
            self._look_at_keywords(node, name)
        elif module in _WEFT:
            self._look_at_weft_call(node, name, name)
        elif not target and isinstance(node.func, ast.Attribute):
            attr = node.func.attr
            if attr not in self.source.defined and not self._is_beside(attr):
                self._look_at_keywords(node, f".{attr}")
                for key in _members(attr, "("):
                    self._look_at_weft_call(node, key, f".{attr}")
        elif not target and isinstance(node.func, ast.Name):
            name = node.func.id
            if self._from_star(name) and not self.source.scope_at(node.func).find(name):
                self._look_at_weft_call(node, name, name)

    def _look_at_keywords(self, node: ast.Call, name: str) -> None:
        for keyword in node.keywords:
            key = f"{name}({keyword.arg}=)"
            if key in self._facts["keywords"]:
                self._find(
                    node, key, MICROPYTHON,
                    f"{name.lstrip('.')} of {_PORT} {self._facts['version']} does not take this name",
                    "give the argument by its place, if it has one", "TypeError",
                )  # fmt: skip

    def _look_at_weft_call(self, node: ast.Call, key: str, shown: str) -> None:
        for keyword in node.keywords:
            if keyword.arg:
                self._differs(
                    f"{key}({keyword.arg}=)", node, f"{shown}({keyword.arg}=)", "TypeError"
                )
        difference = _list.difference(f"{key}(…)")
        most = _names.places_of(key)
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        if difference and most != -1 and len(node.args) > most and not starred:
            self._differs(f"{key}(…)", node, f"{shown}(…)", "TypeError")


# Special attributes that programs read from exceptions. Other special names are methods, or are for
# the interpreter itself.
_SAID_OF_EXCEPTIONS = ("__traceback__", "__cause__", "__context__", "__notes__", "__qualname__")


@functools.cache
def _members(attr: str, after: str = "") -> list[str]:
    """Returns the keys of the differences of Weft's classes for the member `attr`. `after` is "("
    for the keys of the member's parameters.
    """
    keys = {k.partition("(")[0] for d in _list.NAMES for k in d.keys if bool(after) == ("(" in k)}
    return sorted(k for k in keys if k.partition(".")[2] == attr)


def _caught(handler: ast.ExceptHandler) -> Iterator[str]:
    """Yields the names of the errors that a handler catches, of those that a missing name raises."""
    wide = ("ImportError", "AttributeError", "NameError", "TypeError")
    if handler.type is None:
        yield from wide
        return
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    for kind in types:
        name = kind.id if isinstance(kind, ast.Name) else ""
        if name in ("Exception", "BaseException"):
            yield from wide
        elif name == "ModuleNotFoundError":
            yield "ImportError"
        else:
            yield name


def _reader_of(path: Path, known: dict[Path, Reader]) -> Reader:
    reader = known.get(path.resolve())
    return reader or Reader(Source(path, path.read_bytes()), known)


# --- who uses what ------------------------------------------------------------------------------


def read(path: Path, text: bytes) -> Reader:
    """Reads a file, and the modules beside it that it imports. Raises what `judge` raises."""
    return Reader(Source(path, text), {})


def judge(path: Path, text: bytes) -> Judged:
    """Returns the findings of a file, and of each of its processes.

    Raises:
        SyntaxError: the file, or one beside it that it imports, is not Python.
    """
    reader = read(path, text)
    everything = [f for r in reader.known.values() for f in r.found]
    order = {r.source.path: i for i, r in enumerate(reader.known.values())}
    everything = sorted(set(everything), key=lambda f: (order[f.file], f.line, f.name, f.lacks))
    processes = [
        (node.name, node.lineno, [f for f in everything if f in used])
        for node in reader.processes
        for used in [used_by(node, reader)]
    ]
    return Judged(path, everything, processes)


def used_by(process: ast.AST, reader: Reader) -> set[Finding]:
    """Returns the findings in a process and in all that the process uses, also in other files."""
    seen: set[int] = set()
    waiting: list[tuple[Reader, ast.AST]] = [(reader, process)]
    used: set[Finding] = set()
    while waiting:
        at, top = waiting.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        inside = {id(node) for node in ast.walk(top)}
        inside.add(id(at.source.statement_of.get(top)))
        used |= {f for f in at.found if id(f.node) in inside}
        used |= {f for f in at.found if isinstance(f.node, ast.Pass) and _lines(top, f.line)}
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                waiting += _bound(at, node)
    return used


def _lines(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return isinstance(first, int) and isinstance(last, int) and first <= line <= last


def _bound(at: Reader, name: ast.Name) -> Iterator[tuple[Reader, ast.AST]]:
    """Yields the nodes that bind a name, each with the Reader of its file: this file, or one beside
    it."""
    try:
        scope = at.source.scope_at(name)
    except KeyError:
        return  # an annotation
    for binding in scope.find(name.id):
        if not isinstance(binding.node, ast.arg):
            yield at, binding.node
        if binding.target is None:
            continue
        module, _, what = binding.target.rpartition(".")
        other = at.imported.get(binding.target) or at.imported.get(module)
        if other is not None:
            bound = other.source.scope.names.get(what, [])
            yield from (((other, b.node) for b in bound) if bound else [(other, other.source.tree)])
