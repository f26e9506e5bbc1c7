"""An interpreter for a small subset of C, enough for the reaction bodies of tests. The oracle
(oracle.py) uses it.

The interpreter knows whole numbers, `self->x`, ports and actions (`p->value`, `p[i]->is_present`,
`c.p->value`, `c[i].p[j]->value`, widths), local `int`s, arithmetic, assignment, if, for, while,
return, and calls of functions that the caller provides. Any other code raises `Unsupported`, whose
text names the code: the interpreter never guesses.

Invariants
- Division and remainder are those of C. All arithmetic is exact; an assignment wraps its value to
  32 bits.
- Values are Python ints and strs.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(
    r"""\s*(?://[^\n]*|/\*.*?\*/|(?P<number>\d+)(?:[uUlL]*)|(?P<string>"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\])')"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<op>->|\+\+|--|\+=|-=|\*=|/=|%=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>=!?:;,.(){}\[\]&|^~]))""",
    re.S,
)
TYPES = {
    "int",
    "interval_t",
    "instant_t",
    "bool",
    "size_t",
    "tag_t",
    "microstep_t",
    "long",
    "const",
    "unsigned",
}
LEVELS = [
    ["||"],
    ["&&"],
    ["|"],
    ["^"],
    ["&"],
    ["==", "!="],
    ["<", ">", "<=", ">="],
    ["<<", ">>"],
    ["+", "-"],
    ["*", "/", "%"],
]

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


class Unsupported(Exception):
    """The body uses C that this interpreter does not know."""


class _Return(Exception):
    pass


@dataclass
class Node:
    """A statement or an expression."""

    kind: str
    parts: tuple[Any, ...] = ()


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Unsupported(f"cannot read {text[at : at + 20]!r}")
        at = match.end()
        for kind in ("number", "string", "char", "name", "op"):
            if match.group(kind) is not None:
                found.append((kind, match.group(kind)))
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        if self.at >= len(self.tokens):
            raise Unsupported("the body ends in the middle of something")
        text = self.tokens[self.at][1]
        if wanted and text != wanted:
            raise Unsupported(f"{text!r} where {wanted!r} is wanted")
        self.at += 1
        return text

    def block(self) -> Node:
        parts = []
        while self.at < len(self.tokens) and self.peek() != "}":
            parts.append(self.statement())
        return Node("block", tuple(parts))

    def statement(self) -> Node:
        word = self.peek()
        if word == "{":
            self.take()
            inside = self.block()
            self.take("}")
            return inside
        if word == ";":
            self.take()
            return Node("block")
        if word == "if":
            self.take()
            self.take("(")
            test = self.expression()
            self.take(")")
            then = self.statement()
            other = Node("block")
            if self.peek() == "else":
                self.take()
                other = self.statement()
            return Node("if", (test, then, other))
        if word == "for":
            self.take()
            self.take("(")
            first = self.statement()
            test = self.expression()
            self.take(";")
            step = self.expression()
            self.take(")")
            return Node("for", (first, test, step, self.statement()))
        if word == "while":
            self.take()
            self.take("(")
            test = self.expression()
            self.take(")")
            return Node("for", (Node("block"), test, Node("number", (0,)), self.statement()))
        if word == "return":
            self.take()
            if self.peek() != ";":
                raise Unsupported("a value returned")
            self.take(";")
            return Node("return")
        if word in TYPES and self.tokens[self.at + 1][0] == "name":
            while self.peek() in TYPES:
                self.take()
            parts = []
            while True:
                name = self.take()
                start = Node("number", (0,))
                if self.peek() == "=":
                    self.take()
                    start = self.expression()
                parts.append(Node("local", (name, start)))
                if self.take() == ";":
                    return Node("block", tuple(parts))
        found = self.expression()
        self.take(";")
        return Node("expression", (found,))

    def expression(self) -> Node:
        left = self.ternary()
        if self.peek() in ("=", "+=", "-=", "*=", "/=", "%="):
            how = self.take()
            return Node("assign", (left, how[:-1], self.expression()))
        return left

    def ternary(self) -> Node:
        test = self.binary(0)
        if self.peek() != "?":
            return test
        self.take()
        first = self.expression()
        self.take(":")
        return Node("ternary", (test, first, self.ternary()))

    def binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            how = self.take()
            left = Node("binary", (how, left, self.binary(level + 1)))
        return left

    def unary(self) -> Node:
        word = self.peek()
        if word in ("-", "!", "+", "~"):
            self.take()
            return Node("unary", (word, self.unary()))
        if word in ("++", "--"):
            self.take()
            return Node("step", (self.unary(), 1 if word == "++" else -1, False))
        if word == "(" and self.peek(1) in TYPES and self.peek(2) == ")":
            self.take(), self.take(), self.take()
            return self.unary()
        return self.postfix()

    def postfix(self) -> Node:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind == "number":
            node = Node("number", (int(self.take(), 0) if text == "0" else int(self.take()),))
        elif kind == "string":
            node = Node("string", (self.take()[1:-1],))
            while (
                self.at < len(self.tokens) and self.tokens[self.at][0] == "string"
            ) or self.peek() == "PRINTF_TIME":
                more = self.take()
                node = Node(
                    "string", (node.parts[0] + ("%lld" if more == "PRINTF_TIME" else more[1:-1]),)
                )
        elif kind == "char":
            node = Node("number", (ord(self.take()[1:-1].encode().decode("unicode_escape")),))
        elif kind == "name":
            node = Node("name", (self.take(),))
        elif text == "(":
            self.take()
            node = self.expression()
            self.take(")")
        else:
            raise Unsupported(f"{text!r} where an expression is wanted")
        while True:
            word = self.peek()
            if word == "(" and node.kind == "name":
                self.take()
                arguments = []
                while self.peek() != ")":
                    arguments.append(self.expression())
                    if self.peek() == ",":
                        self.take()
                self.take(")")
                node = Node("call", (node.parts[0], tuple(arguments)))
            elif word == "[":
                self.take()
                node = Node("index", (node, self.expression()))
                self.take("]")
            elif word in ("->", "."):
                self.take()
                node = Node("field", (node, self.take()))
            elif word in ("++", "--"):
                self.take()
                node = Node("step", (node, 1 if word == "++" else -1, True))
            else:
                return node


def parse(text: str) -> Node:
    """Parses the statements of a body.

    Raises:
        Unsupported: the body uses more than the subset of C that this file's head describes.
    """
    parser = _Parser(text)
    body = parser.block()
    if parser.at != len(parser.tokens):
        raise Unsupported(f"{parser.peek()!r} where a statement is wanted")
    return body


def wrapped(value: Any) -> Any:
    """Returns the value as C stores it in an `int` of 32 bits; any other value is unchanged."""
    return (value + 2**31) % 2**32 - 2**31 if isinstance(value, int) else value


class Frame:
    """Runs one body. `names` returns the meaning of a name: a value, a dict of fields, a list, or a
    function. An assignment to a field changes the dict that has the field, such as that of `self`.
    """

    def __init__(self, names: Callable[[str], Any]) -> None:
        self.names = names
        self.locals: dict[str, Any] = {}

    def run(self, body: Node) -> None:
        with contextlib.suppress(_Return):
            self.do(body)

    def do(self, node: Node) -> None:
        kind, parts = node.kind, node.parts
        if kind == "block":
            for part in parts:
                self.do(part)
        elif kind == "if":
            self.do(parts[1] if self.value(parts[0]) else parts[2])
        elif kind == "for":
            self.do(parts[0])
            while self.value(parts[1]):
                self.do(parts[3])
                self.value(parts[2])
        elif kind == "local":
            self.locals[parts[0]] = self.value(parts[1])
        elif kind == "return":
            raise _Return
        else:
            self.value(parts[0])

    def value(self, node: Node) -> Any:
        return getattr(self, "on_" + node.kind)(*node.parts)

    def on_number(self, value: int) -> int:
        return value

    def on_string(self, value: str) -> str:
        return value

    def on_name(self, name: str) -> Any:
        return self.locals[name] if name in self.locals else self.names(name)

    def on_field(self, node: Node, name: str) -> Any:
        holder = self.value(node)
        if not isinstance(holder, dict) or name not in holder:
            raise Unsupported(f"there is no field {name!r}")
        return holder[name]

    def on_index(self, node: Node, index: Node) -> Any:
        return self.value(node)[self.value(index)]

    def on_call(self, name: str, arguments: tuple[Node, ...]) -> Any:
        return self.names(name)(*[self.value(a) for a in arguments])

    def on_unary(self, how: str, node: Node) -> int:
        value: int = self.value(node)
        if how == "!":
            return int(not value)
        return {"-": -value, "+": value, "~": ~value}[how]

    def on_ternary(self, test: Node, first: Node, second: Node) -> Any:
        return self.value(first if self.value(test) else second)

    def on_binary(self, how: str, left: Node, right: Node) -> int:
        if how == "&&":
            return int(bool(self.value(left)) and bool(self.value(right)))
        if how == "||":
            return int(bool(self.value(left)) or bool(self.value(right)))
        return arithmetic(how, self.value(left), self.value(right))

    def on_assign(self, place: Node, how: str, node: Node) -> Any:
        value = self.value(node)
        if how:
            value = arithmetic(how, self.value(place), value)
        return self.store(place, value)

    def on_step(self, place: Node, by: int, after: bool) -> int:
        old: int = self.value(place)
        self.store(place, old + by)
        return old if after else old + by

    def store(self, place: Node, value: Any) -> Any:
        value = wrapped(value)
        if place.kind == "name" and place.parts[0] in self.locals:
            self.locals[place.parts[0]] = value
        elif place.kind == "field":
            self.value(place.parts[0])[place.parts[1]] = value
        elif place.kind == "index":
            self.value(place.parts[0])[self.value(place.parts[1])] = value
        else:
            raise Unsupported("an assignment to something else than a local or a field")
        return value


def arithmetic(how: str, left: int, right: int) -> int:
    if how in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if how == "/" else left - right * quotient
    return int(OPERATORS[how](left, right))
