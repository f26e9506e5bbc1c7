"""Evaluates expressions at compile time, to whole numbers and times, or else to C text.

Invariant: no code of the program is executed. Code (`{= … =}`) is evaluated only if it is
arithmetic on whole numbers, parameters and the macros for times.
"""

from __future__ import annotations

import ast
import operator
import re

from weft_lf import tree
from weft_lf.model import Instance, Value
from weft_lf.parser import FOREVER, NEVER

MACROS = {
    "NSEC": 1,
    "NSECS": 1,
    "USEC": 10**3,
    "USECS": 10**3,
    "MSEC": 10**6,
    "MSECS": 10**6,
    "SEC": 10**9,
    "SECS": 10**9,
    "MINUTE": 60 * 10**9,
    "MINUTES": 60 * 10**9,
    "HOUR": 3600 * 10**9,
    "HOURS": 3600 * 10**9,
}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: lambda a, b: a << min(b, 64),
    ast.RShift: lambda a, b: a >> min(b, 64),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
LIMIT = 2**63


def resolved(expr: tree.Expr, scope: Instance | None, index: int | None = None) -> Value:
    """Returns the value of `expr` in `scope`: if `expr` is the name of a parameter, the parameter's
    value.
    """
    while isinstance(expr, tree.Name) and scope is not None and expr.name in scope.values:
        value = scope.values[expr.name]
        expr, scope, index = value.expr, value.scope, value.index
    return Value(expr, scope, index)


def number(value: Value) -> int | None:
    """Returns the value as a whole number, for a time in nanoseconds; None if the number is not
    known at compile time.
    """
    value = resolved(value.expr, value.scope, value.index)
    expr = value.expr
    if isinstance(expr, tree.Time):
        return expr.ns
    if isinstance(expr, tree.Literal):
        return int(expr.text) if expr.kind == "int" else None
    if isinstance(expr, tree.Code):
        return _arithmetic(expr.text, value)
    if isinstance(expr, tree.Listing) and expr.opening == "(" and len(expr.items) == 1:
        return number(Value(expr.items[0], value.scope, value.index))
    return None


def _arithmetic(text: str, value: Value) -> int | None:
    text = re.sub(r"\bself\s*->\s*", "", text.strip().rstrip(";"))
    text = re.sub(r"(?<=\d)(?:[uU]?[lL]{1,2}|[uU])\b", "", text)
    if len(text) > 200:
        return None
    try:
        return _fold(ast.parse(text, mode="eval").body, value, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError, OverflowError):
        return None


def _fold(node: ast.expr, value: Value, depth: int) -> int:
    if depth > 50:
        raise ValueError
    if isinstance(node, ast.Constant) and type(node.value) is int:
        result = node.value
    elif isinstance(node, ast.Name) and node.id == "bank_index" and value.index is not None:
        result = value.index
    elif isinstance(node, ast.Name) and value.scope is not None and node.id in value.scope.values:
        found = number(value.scope.values[node.id])
        if found is None:
            raise ValueError
        result = found
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = _fold(node.operand, value, depth + 1)
        result = -inner if isinstance(node.op, ast.USub) else inner
    elif isinstance(node, ast.BinOp):
        left, right = _fold(node.left, value, depth + 1), _fold(node.right, value, depth + 1)
        if isinstance(node.op, (ast.Div, ast.Mod)):  # C rounds towards zero.
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            result = quotient if isinstance(node.op, ast.Div) else left - right * quotient
        elif type(node.op) in OPERATORS:
            result = OPERATORS[type(node.op)](left, right)
        else:
            raise ValueError
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in MACROS
        and len(node.args) == 1
    ):
        result = MACROS[node.func.id] * _fold(node.args[0], value, depth + 1)
    else:
        raise ValueError
    if not -LIMIT <= result < LIMIT:
        raise ValueError
    return result


def c_time(ns: int) -> str:
    if ns >= FOREVER:
        return "FOREVER"
    if ns <= NEVER:
        return "NEVER"
    return f"{ns}LL" if abs(ns) > 2**31 - 1 else str(ns)


def c_type(
    kind: tree.Type | None, types: dict[str, tree.Type], expr: tree.Expr | None = None
) -> str:
    """Returns a type in C, such as `int`, `double*`, `interval_t` or `int[3]`; `int[]` gives
    `int*`. If `kind` is None the result is the type of `expr`, or `int`.
    """
    if kind is None:
        if isinstance(expr, tree.Time):
            return "interval_t"
        kinds = {"string": "string", "char": "char", "float": "double", "bool": "bool"}
        return kinds.get(expr.kind, "int") if isinstance(expr, tree.Literal) else "int"
    base = c_base(kind, types)
    return base if kind.array is None else f"{base}[{kind.array}]" if kind.array else f"{base}*"


def c_base(kind: tree.Type, types: dict[str, tree.Type]) -> str:
    """Returns a type in C without its array part."""
    if kind.name in types and not kind.is_code:
        given = types[kind.name]
        return c_type(given, {}) + "*" * kind.stars
    if kind.name == "time":
        return "interval_t" + "*" * kind.stars
    text = kind.name
    if kind.is_code:
        for name, given in types.items():
            text = re.sub(rf"\b{re.escape(name)}\b", c_type(given, {}), text)
        return text
    return text + "*" * kind.stars


def c_expr(value: Value) -> str:
    """Returns the C text of a value. Parameters are replaced by their values; code stays as it was
    written.
    """
    value = resolved(value.expr, value.scope, value.index)
    expr = value.expr
    if isinstance(expr, tree.Time):
        return c_time(expr.ns)
    if isinstance(expr, tree.Literal):
        if expr.text.startswith('"""'):
            inner = expr.text[3:-3].replace("\\", "\\\\").replace('"', '\\"')
            return '"' + inner.replace("\n", "\\n") + '"'
        return expr.text
    if isinstance(expr, tree.Code):
        return expr.text.strip()
    if isinstance(expr, tree.Name):
        return expr.name
    inner = ", ".join(c_expr(Value(item, value.scope, value.index)) for item in expr.items)
    return f"{{{inner}}}"
