"""Probes of Python's syntax. A probe has a snippet that uses a piece of syntax, for an interpreter
to run, and a test that finds this syntax in a syntax tree.

micropython/tests/portable_facts.py runs each snippet on MicroPython's unix port, and writes into
portable_facts.json which snippets fail. `weft portable` searches a file for the syntax of those
snippets.

Invariants
- On CPython 3.10 and later a snippet raises nothing, but that of `except*` needs 3.11. The test of
  a probe finds the probe's own snippet (python/tests/test_portable.py).
- A test examines one node of the tree, and what is inside that node.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Probe:
    """A piece of syntax that a source may use.

    Attributes:
        name: the name of the syntax in a report.
        snippet: a program that uses the syntax, and fails on an interpreter that lacks it.
        instead: what to write instead.
        kinds: the kinds of node for which `found` is called.
        found: returns whether a node uses the syntax.
    """

    name: str
    snippet: str
    instead: str
    kinds: tuple[type[ast.AST], ...]
    found: Callable[[Any], bool]


def _always(node: Any) -> bool:
    return True


def _starred(node: Any) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.elts) and not isinstance(
        node.ctx, ast.Store
    )


def _within(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    """Returns whether a function contains a node of these kinds, outside the functions in it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        isinstance(child, kinds) or (not isinstance(child, functions) and _within(child, *kinds))
        for child in ast.iter_child_nodes(node)
    )


def _awaits(node: Any) -> bool:
    return any(g.is_async for g in node.generators) or any(
        isinstance(inner, ast.Await) for inner in ast.walk(node)
    )


def _conversion(node: Any) -> bool:
    return bool(node.conversion == ord("a"))


def _group_of_thousands(node: Any) -> bool:
    spec = node.format_spec
    text = "".join(str(v.value) for v in spec.values if isinstance(v, ast.Constant)) if spec else ""
    return "," in text or "_" in text.lstrip("_")


def _method(*names: str) -> Callable[[Any], bool]:
    return lambda node: any(
        isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name in names
        for item in node.body
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_TRY_STAR: Any = getattr(ast, "TryStar", ())  # CPython 3.11 and later
_RUN = "\ntry:\n    f().send(None)\nexcept StopIteration as e:\n    assert e.value == {}\n"

PROBES: tuple[Probe, ...] = (
    Probe(
        "match",
        "match 1:\n    case 1: pass\n",
        "write if and elif",
        (ast.Match,),
        _always,
    ),
    Probe(
        "positional-only parameters",
        "def f(a, /, b): return a + b\nassert f(1, 2) == 3",
        "leave out the /",
        _FUNCTIONS,
        lambda node: bool(node.args.posonlyargs),
    ),
    Probe(
        "keyword-only parameters",
        "def f(a, *, b=2): return a + b\nassert f(1, b=3) == 4",
        "give the parameter a place",
        _FUNCTIONS,
        lambda node: bool(node.args.kwonlyargs),
    ),
    Probe(
        "an assignment expression",
        "if (n := 3) > 2: assert n == 3",
        "assign in a statement of its own",
        (ast.NamedExpr,),
        _always,
    ),
    Probe(
        "a starred item in a list",
        "a = [1]\nassert [*a, 2] == [1, 2]",
        "write list(a) + [b]",
        (ast.List,),
        _starred,
    ),
    Probe(
        "a starred item in a tuple",
        "a = [1]\nassert (*a, 2) == (1, 2)",
        "write tuple(a) + (b,)",
        (ast.Tuple,),
        _starred,
    ),
    Probe(
        "a starred item in a set",
        "a = [1]\nassert {*a, 2} == {1, 2}",
        "write set(a) | {b}",
        (ast.Set,),
        lambda node: any(isinstance(item, ast.Starred) for item in node.elts),
    ),
    Probe(
        "** in a dictionary",
        "a = {1: 2}\nassert {**a, 3: 4} == {1: 2, 3: 4}",
        "copy the dictionary, and update() the copy",
        (ast.Dict,),
        lambda node: None in node.keys,
    ),
    Probe(
        "several * in a call",
        "def f(*a): return a\nassert f(*[1], *[2]) == (1, 2)",
        "add the lists before the call",
        (ast.Call,),
        lambda node: sum(isinstance(a, ast.Starred) for a in node.args) > 1,
    ),
    Probe(
        "several ** in a call",
        "def f(**a): return len(a)\nassert f(**{'x': 1}, **{'y': 2}) == 2",
        "put the dictionaries together before the call",
        (ast.Call,),
        lambda node: sum(k.arg is None for k in node.keywords) > 1,
    ),
    Probe(
        "a starred target",
        "a, *b = 1, 2, 3\nassert b == [2, 3]",
        "use slices",
        (ast.Starred,),
        lambda node: isinstance(node.ctx, ast.Store),
    ),
    Probe(
        "await or async for in a comprehension",
        "async def g(): return 1\nasync def f(): return [await g() for _ in range(2)]"
        + _RUN.format("[1, 1]"),
        "write a loop that appends",
        _COMPREHENSIONS,
        _awaits,
    ),
    Probe(
        "an async generator",
        "async def g():\n    yield 1\n"
        "async def f():\n    n = 0\n    async for x in g(): n += x\n    return n"
        + _RUN.format("1"),
        "use a process and a channel",
        (ast.AsyncFunctionDef,),
        lambda node: _within(node, ast.Yield),
    ),
    Probe(
        "async with",
        "class A:\n    async def __aenter__(self): return 1\n"
        "    async def __aexit__(self, *error): pass\n"
        "async def f():\n    async with A() as a, A() as b: return a + b" + _RUN.format("2"),
        "call the methods yourself",
        (ast.AsyncWith,),
        _always,
    ),
    Probe(
        "except*",
        "try:\n    raise ExceptionGroup('', [ValueError()])\nexcept* ValueError: pass",
        "catch Failures of weft on MicroPython, and the exception group on CPython",
        (_TRY_STAR,) if _TRY_STAR else (),
        _always,
    ),
    Probe(
        "an f-string",
        "n = 3\nassert f'{n}' == '3' and f'{n:4d}' == '   3' and f'{n!r}' == '3'",
        "use %",
        (ast.JoinedStr,),
        _always,
    ),
    Probe(
        "!a in an f-string",
        "assert f'{1!a}' == '1'",
        "use !r",
        (ast.FormattedValue,),
        _conversion,
    ),
    Probe(
        "an expression in a format of an f-string",
        "w = 4\nassert f'{3:{w}d}' == '   3'",
        "use %*d",
        (ast.FormattedValue,),
        lambda node: (
            node.format_spec is not None
            and any(isinstance(v, ast.FormattedValue) for v in node.format_spec.values)
        ),
    ),
    Probe(
        "a separator of thousands",
        "assert f'{1000:,}' == '1,000'",
        "put the separators in yourself",
        (ast.FormattedValue,),
        _group_of_thousands,
    ),
    Probe(
        "a metaclass, or another keyword of a class",
        "class M(type): pass\nclass A(metaclass=M): pass",
        "leave it out",
        (ast.ClassDef,),
        lambda node: bool(node.keywords),
    ),
    Probe(
        "several base classes",
        "class A: x = 1\nclass B: y = 2\nclass C(A, B): pass\nassert C().x + C().y == 3",
        "keep one object in another",
        (ast.ClassDef,),
        lambda node: len(node.bases) > 1,
    ),
    Probe(
        "__init_subclass__",
        "seen = []\nclass A:\n    def __init_subclass__(cls): seen.append(cls)\n"
        "class B(A): pass\nassert seen == [B]",
        "call a function for each class",
        (ast.ClassDef,),
        _method("__init_subclass__"),
    ),
    Probe(
        "__set_name__",
        "seen = []\nclass D:\n    def __set_name__(self, owner, name): seen.append(name)\n"
        "class A:\n    x = D()\nassert seen == ['x']",
        "give the name as an argument",
        (ast.ClassDef,),
        _method("__set_name__"),
    ),
    Probe(
        "a descriptor",
        "class D:\n    def __get__(self, a, b=None): return 3\n"
        "class A:\n    x = D()\nassert A().x == 3",
        "use a property",
        (ast.ClassDef,),
        _method("__get__", "__set__"),
    ),
    Probe(
        "__class_getitem__",
        "class A:\n    def __class_getitem__(cls, x): return x\nassert A[3] == 3",
        "write a function",
        (ast.ClassDef,),
        _method("__class_getitem__"),
    ),
    Probe(
        "__del__",
        "import gc\nseen = []\nclass A:\n    def __del__(self): seen.append(1)\n"
        "def f():\n    for _ in range(50): A()\nf()\ngc.collect()\nassert seen",
        "give the class a close() and call it",
        (ast.ClassDef,),
        _method("__del__"),
    ),
    Probe(
        "the operator @",
        "class A:\n    def __matmul__(self, x): return x\nassert A() @ 3 == 3",
        "write a function",
        (ast.MatMult,),
        _always,
    ),
    Probe(
        "a complex number",
        "assert 2j * 2j == -4",
        "keep two numbers",
        (ast.Constant,),
        lambda node: isinstance(node.value, complex),
    ),
    Probe(
        "an annotated variable",
        "x: int = 3\nassert x == 3",
        "leave the annotation out",
        (ast.AnnAssign,),
        _always,
    ),
    Probe(
        "yield from",
        "def g():\n    return (yield from [1])\nassert list(g()) == [1]",
        "write a loop",
        (ast.YieldFrom,),
        _always,
    ),
    Probe(
        "nonlocal",
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    g()\n"
        "    return x\nassert f() == 2",
        "keep the value in a list",
        (ast.Nonlocal,),
        _always,
    ),
    Probe(
        "raise from",
        "try:\n    raise ValueError from KeyError()\nexcept ValueError: pass",
        "leave the from out",
        (ast.Raise,),
        lambda node: node.cause is not None,
    ),
    Probe(
        "a decorated class",
        "def f(c):\n    c.x = 1\n    return c\n@f\nclass A: pass\nassert A.x == 1",
        "call the function yourself",
        (ast.ClassDef,),
        lambda node: bool(node.decorator_list),
    ),
    Probe(
        "the else of a loop",
        "for x in []: pass\nelse: x = 1\nassert x == 1",
        "use a variable",
        (ast.For, ast.While, ast.AsyncFor),
        lambda node: bool(node.orelse),
    ),
)


def lacking_in(tree: ast.AST, lacks: frozenset[str]) -> list[tuple[int, Probe]]:
    """Returns the probes named in `lacks` whose syntax a tree uses, each with the line."""
    wanted = [probe for probe in PROBES if probe.name in lacks]
    return [
        (getattr(node, "lineno", 0) or _line_of(tree, node), probe)
        for node in ast.walk(tree)
        for probe in wanted
        if probe.kinds and isinstance(node, probe.kinds) and probe.found(node)
    ]


def _line_of(tree: ast.AST, node: ast.AST) -> int:
    """Returns the line of the nearest node around `node` that has one."""
    for around in ast.walk(tree):
        if any(child is node for child in ast.iter_child_nodes(around)):
            return getattr(around, "lineno", 1)
    return 1


def _prefix(text: str) -> str:
    return text[: len(text) - len(text.lstrip("rRbBfFuU"))].lower()


def _braces(text: str) -> bool:
    return "{" in text or "}" in text


# Ways to write strings, which a syntax tree does not show. Each has its name, what to write
# instead, and a test. The arguments of a test are the text of the string directly before this one
# ("" if another token is there), and the text of this string.
STRINGS: tuple[tuple[str, str, Callable[[str, str], bool]], ...] = (
    (
        "a raw f-string",
        "write a plain f-string, and double each backslash",
        lambda before, text: set(_prefix(text)) >= {"r", "f"},
    ),
    (
        "an f-string beside a string with a brace",
        "write one f-string, with {{ for the brace",
        lambda before, text: (
            bool(before)
            and ("f" in _prefix(before)) != ("f" in _prefix(text))
            and _braces(before if "f" in _prefix(text) else text)
        ),
    ),
)
STRING_SNIPPETS = {
    "a raw f-string": "n = 3\nassert rf'\\d{n}' == '\\\\d3'",
    "an f-string beside a string with a brace": "n = 3\nassert f'{n}' '{}' == '3{}'",
}
