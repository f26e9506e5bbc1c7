"""Parses text into the objects of tree.py, by lark's LALR parser over grammar.lark.

Invariants
- For every text the outcome is a `tree.File`, or an `LfError` that names a line and a column.
- The tables of the parser, and the trees that parse_kept() returns, are kept in the user's cache
  (kept.py). Their keys have the versions of Python and lark.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token, Transformer, Tree
from lark.exceptions import UnexpectedInput, VisitError

from weft_lf import kept, tree
from weft_lf.errors import LfError, Span, fail
from weft_lf.syntax_errors import UNITS, problems, short

GRAMMAR = Path(__file__).with_name("grammar.lark")
FOREVER = 2**63 - 1
NEVER = -(2**63)
GRAMMAR_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "propagate_positions": True,
    "maybe_placeholders": False,
}
DIGITS = 40  # the limit on digits: 64 bits need fewer, and Python limits int() too


# The modules and the grammar that determine a syntax tree.
SOURCES = ("parser.py", "tree.py", "errors.py", "syntax_errors.py", "grammar.lark")
VERSIONS = (sys.version, lark.__version__)


@functools.cache
def _lark() -> Lark:
    grammar = GRAMMAR.read_text(encoding="utf-8")
    key = (grammar, GRAMMAR_OPTIONS, VERSIONS)
    content = kept.read("lf-tables", key)
    if content is not None:
        with contextlib.suppress(Exception):  # Damaged tables may raise any exception.
            return Lark.load(io.BytesIO(content))
    made = Lark(grammar, **GRAMMAR_OPTIONS)
    tables = io.BytesIO()
    made.save(tables)
    kept.keep("lf-tables", key, tables.getvalue())
    return made


def _tokens(children: list[Any], *kinds: str) -> list[Token]:
    return [c for c in children if isinstance(c, Token) and c.type in kinds]


def _token(children: list[Any], *kinds: str) -> str:
    """Returns the text of the first token of these kinds; empty if there is none."""
    found = _tokens(children, *kinds)
    return str(found[0]) if found else ""


def _all(children: list[Any], kind: Any) -> list[Any]:
    return [c for c in children if isinstance(c, kind)]


def _first(children: list[Any], kind: Any) -> Any:
    found = _all(children, kind)
    return found[0] if found else None


class _Tagged(tuple):  # type: ignore[type-arg]
    """A part of a rule, as (tag, value); the tag identifies the part."""


def _tagged(children: list[Any], tag: str, default: Any = None) -> Any:
    found = [c[1] for c in children if isinstance(c, _Tagged) and c[0] == tag]
    return found[0] if found else default


EXPRESSIONS = (tree.Code, tree.Literal, tree.Time, tree.Name, tree.Listing)


class _Builder(Transformer):  # type: ignore[type-arg]
    """Builds the objects of tree.py from the bottom up."""

    def __init__(self, file: str) -> None:
        super().__init__(visit_tokens=False)
        self.file = file

    def _call_userfunc(self, node: Tree, new_children: Any = None) -> Any:  # type: ignore[type-arg]
        children = node.children if new_children is None else new_children
        make = getattr(self, "do_" + node.data, None)
        meta = node.meta
        if meta.empty:
            span = Span(self.file, 1, 1)
        else:
            same = meta.line == meta.end_line
            length = meta.end_column - meta.column if same else 1
            span = Span(self.file, meta.line, meta.column, max(1, length))
        if make is None:
            return _Tagged((str(node.data), children))
        return make(children, span)

    def at(self, token: Token) -> Span:
        text = str(token)
        return Span(self.file, token.line or 1, token.column or 1, max(1, len(text.split("\n")[0])))

    def code_of(self, token: Token) -> tree.Code:
        at = self.at(token)
        return tree.Code(str(token)[2:-2], Span(at.file, at.line, at.column + 2, 1))

    def named(self, children: list[Any], span: Span) -> Span:
        """Returns the place of the first name among the children, or `span` if there is none."""
        names = _tokens(children, "ID")
        return self.at(names[0]) if names else span

    # --- the file ---------------------------------------------------------------------------------

    def do_start(self, children: list[Any], span: Span) -> tree.File:
        targets = _all(children, tree.Target)
        if len(targets) > 1:
            raise fail(targets[1].span, "a second target declaration", "keep one of them")
        return tree.File(
            self.file,
            targets[0] if targets else None,
            _all(children, tree.Import),
            _all(children, tree.Preamble),
            _all(children, tree.Reactor),
        )

    def do_target(self, children: list[Any], span: Span) -> tree.Target:
        config = _first(children, tree.Pairs) or tree.Pairs([], span)
        return tree.Target(_token(children, "ID"), config, self.named(children, span))

    def do_config(self, children: list[Any], span: Span) -> tree.Pairs:
        return tree.Pairs(_all(children, tree.Pair), span)

    def do_pair(self, children: list[Any], span: Span) -> tree.Pair:
        return tree.Pair(_unquoted(str(children[0])), children[1], self.at(children[0]))

    def do_array(self, children: list[Any], span: Span) -> tree.Values:
        return tree.Values(children, span)

    def do_path(self, children: list[Any], span: Span) -> tree.Literal:
        text = str(children[0])
        return tree.Literal("bool" if text in ("true", "false") else "string", text, span)

    def do_import_(self, children: list[Any], span: Span) -> tree.Import:
        package = _token(children, "PACKAGE")
        uri = package[1:-1] if package else _unquoted(_token(children, "STRING"))
        found = _tokens(children, "PACKAGE", "STRING")[0]
        names = [c[1] for c in children if isinstance(c, _Tagged) and c[0] == "as"]
        return tree.Import(names, uri, bool(package), self.at(found))

    def do_imported(self, children: list[Any], span: Span) -> _Tagged:
        there, here = str(children[0]), str(children[-1])
        return _Tagged(("as", (there, here, self.at(children[0]))))

    def do_preamble(self, children: list[Any], span: Span) -> tree.Preamble:
        return tree.Preamble(self.code_of(_tokens(children, "CODE")[0]), span)

    # --- reactors ---------------------------------------------------------------------------------

    def do_reactor_head(self, children: list[Any], span: Span) -> _Tagged:
        words = [str(t) for t in _tagged(children, "reactor_words", [])]
        names = _tokens(children, "ID")
        where = self.at(names[0]) if names else span
        name = str(names[0]) if names else ""
        return _Tagged(("head", (words, name, _all(children, tree.Attribute), where)))

    def do_reactor(self, children: list[Any], span: Span) -> tree.Reactor:
        words, name, attributes, where = _tagged(children, "head")
        if _tagged(children, "at") is not None:
            raise fail(where, "'at' belongs to federated programs, which are not supported")
        return tree.Reactor(
            name,
            "main" in words or "federated" in words,
            "federated" in words,
            _tagged(children, "typarams", []),
            _tagged(children, "params", []),
            [(str(t), self.at(t)) for t in _tagged(children, "supers", [])],
            [c for c in children if isinstance(c, tree.Member.__args__)],
            attributes,
            where,
        )

    def do_typaram(self, children: list[Any], span: Span) -> tree.TypeParam:
        code = _token(children, "CODE")
        words = code[2:-2].split() if code else [str(t) for t in _tokens(children, "ID")]
        if not words:
            raise fail(span, "an empty type parameter", "give it a name: reactor Hello<T>")
        return tree.TypeParam(words[-1], span)

    def do_param(self, children: list[Any], span: Span) -> tree.Param:
        return tree.Param(
            _token(children, "ID"),
            _tagged(children, "typed"),
            _tagged(children, "init"),
            self.named(children, span),
        )

    def do_mode(self, children: list[Any], span: Span) -> tree.Mode:
        members = [c for c in children if isinstance(c, tree.Member.__args__)]
        initial = bool(_tokens(children, "INITIAL"))
        return tree.Mode(_token(children, "ID"), initial, members, self.named(children, span))

    def do_state(self, children: list[Any], span: Span) -> tree.State:
        return tree.State(
            _token(children, "ID"),
            _tagged(children, "typed"),
            _tagged(children, "init"),
            bool(_tokens(children, "RESET")),
            self.named(children, span),
        )

    def do_method(self, children: list[Any], span: Span) -> tree.Method:
        return tree.Method(
            _token(children, "ID"),
            bool(_tokens(children, "CONST")),
            [c[1] for c in children if isinstance(c, _Tagged) and c[0] == "argument"],
            _tagged(children, "typed"),
            self.code_of(_tokens(children, "CODE")[0]),
            self.named(children, span),
        )

    def do_argument(self, children: list[Any], span: Span) -> _Tagged:
        return _Tagged(("argument", (_token(children, "ID"), _tagged(children, "typed"))))

    def do_port(self, children: list[Any], span: Span) -> tree.Port:
        words = [str(t) for t in _tagged(children, "port_words", [])]
        if words == ["mutable", "output"]:
            raise fail(span, "an output cannot be mutable", "remove 'mutable'")
        return tree.Port(
            _token(children, "ID"),
            "input" in words,
            "mutable" in words,
            _tagged(children, "width"),
            _tagged(children, "typed"),
            self.named(children, span),
        )

    def do_timer(self, children: list[Any], span: Span) -> tree.Timer:
        values = [*_all(children, EXPRESSIONS), None, None]
        return tree.Timer(_token(children, "ID"), values[0], values[1], self.named(children, span))

    def do_action(self, children: list[Any], span: Span) -> tree.Action:
        words = [str(t) for t in _tagged(children, "action_words", [])]
        arguments = _tagged(children, "action_args", [])
        values = [*_all(arguments, EXPRESSIONS), None, None]
        return tree.Action(
            _token(children, "ID"),
            "physical" in words,
            values[0],
            values[1],
            _unquoted(_token(arguments, "STRING")),
            _tagged(children, "typed"),
            self.named(children, span),
        )

    def do_watchdog(self, children: list[Any], span: Span) -> tree.Watchdog:
        return tree.Watchdog(
            _token(children, "ID"),
            _first(children, EXPRESSIONS),
            _tagged(children, "effects", []),
            self.code_of(_tokens(children, "CODE")[0]),
            self.named(children, span),
        )

    def do_instance(self, children: list[Any], span: Span) -> tree.Instance:
        names = _tokens(children, "ID")
        if _tagged(children, "at") is not None:
            raise fail(span, "'at' belongs to federated programs, which are not supported")
        return tree.Instance(
            str(names[0]),
            _tagged(children, "width"),
            str(names[1]),
            _tagged(children, "typeargs", []),
            [c[1] for c in children if isinstance(c, _Tagged) and c[0] == "assignment"],
            _all(children, tree.Attribute),
            self.at(names[0]),
        )

    def do_assignment(self, children: list[Any], span: Span) -> _Tagged:
        name = _tokens(children, "ID")[0]
        return _Tagged(("assignment", (str(name), _tagged(children, "init"), self.at(name))))

    def do_connection(self, children: list[Any], span: Span) -> tree.Connection:
        left = _tagged(children, "left", [])
        iterated = _tagged(left, "iterated")
        refs = _all(left if iterated is None else iterated, tree.Ref)
        return tree.Connection(
            refs,
            _all(_tagged(children, "right", []), tree.Ref),
            bool(_tokens(children, "SQUIGGLY")),
            iterated is not None and bool(_tokens(iterated, "PLUS")),
            _tagged(children, "after"),
            _all(children, tree.Attribute),
            refs[0].span,
        )

    def do_after(self, children: list[Any], span: Span) -> _Tagged:
        return _Tagged(("after", children[0]))

    # --- reactions --------------------------------------------------------------------------------

    def do_reaction_head(self, children: list[Any], span: Span) -> _Tagged:
        if _tokens(children, "MUTATION"):
            raise fail(span, "mutations are not supported", "write a reaction")
        return _Tagged(("head", (_token(children, "ID"), _all(children, tree.Attribute), span)))

    def do_reaction(self, children: list[Any], span: Span) -> tree.Reaction:
        name, attributes, where = _tagged(children, "head")
        deadline = _tagged(children, "deadline", [])
        codes = _tokens(children, "CODE")
        return tree.Reaction(
            name,
            _tagged(children, "triggers", []),
            _tagged(children, "sources", []),
            _tagged(children, "effects", []),
            self.code_of(codes[0]) if codes else None,
            _first(deadline, EXPRESSIONS),
            self.code_of(_tokens(deadline, "CODE")[0]) if deadline else None,
            attributes,
            where,
        )

    def do_transition(self, children: list[Any], span: Span) -> tree.Ref:
        return tree.Ref(str(children[1]), kind=str(children[0]), span=span)

    def do_builtin(self, children: list[Any], span: Span) -> tree.Ref:
        return tree.Ref(str(children[0]), kind="builtin", span=span)

    def do_plain(self, children: list[Any], span: Span) -> tree.Ref:
        container = str(children[0]) if len(children) > 1 else ""
        return tree.Ref(str(children[-1]), container, span=span)

    def do_ref(self, children: list[Any], span: Span) -> tree.Ref:
        ref: tree.Ref = children[0]
        ref.alias = _token(children, "ID")
        return ref

    def do_interleaved(self, children: list[Any], span: Span) -> tree.Ref:
        ref: tree.Ref = children[0]
        ref.interleaved = True
        return ref

    # --- pieces -----------------------------------------------------------------------------------

    def do_width_term(self, children: list[Any], span: Span) -> tree.WidthTerm:
        child = children[0]
        if isinstance(child, tree.Ref):
            return tree.WidthTerm(child, span)
        if child.type == "INT":
            return tree.WidthTerm(_whole(str(child), span), span)
        if child.type == "ID":
            return tree.WidthTerm(tree.Name(str(child), span), span)
        return tree.WidthTerm(self.code_of(child), span)

    def do_init(self, children: list[Any], span: Span) -> _Tagged:
        return _Tagged(("init", children[0]))

    def do_typed(self, children: list[Any], span: Span) -> _Tagged:
        return _Tagged(("typed", children[0]))

    def do_param_ref(self, children: list[Any], span: Span) -> tree.Name:
        return tree.Name(str(children[0]), span)

    def do_code(self, children: list[Any], span: Span) -> tree.Code:
        return self.code_of(children[0])

    def do_braces(self, children: list[Any], span: Span) -> tree.Listing:
        return tree.Listing("{", children, span)

    def do_brackets(self, children: list[Any], span: Span) -> tree.Listing:
        return tree.Listing("[", children, span)

    def do_parens(self, children: list[Any], span: Span) -> tree.Listing:
        return tree.Listing("(", children, span)

    def do_time(self, children: list[Any], span: Span) -> tree.Time:
        text = str(children[0])
        if text == "forever":
            return tree.Time(FOREVER, text, span)
        if text == "never":
            return tree.Time(NEVER, text, span)
        digits, unit = re.fullmatch(r"(\d+)\s*(\w+)", text).groups()  # type: ignore[union-attr]
        if unit not in UNITS:
            raise fail(
                span,
                f"'{unit}' is not a unit of time",
                "units: nsec, usec, msec, sec, min, hour, day, week (or ns, us, ms, s, m, h, d)",
            )
        ns = int(digits) * UNITS[unit] if len(digits) <= DIGITS else FOREVER + 1
        if ns > FOREVER:
            shown = short(text)
            raise fail(span, f"{shown} is longer than 292 years, the longest time", "use 'forever'")
        return tree.Time(ns, text, span)

    def do_literal(self, children: list[Any], span: Span) -> tree.Literal:
        token = children[0]
        kinds = {
            "STRING": "string",
            "CHAR": "char",
            "FLOAT": "float",
            "TRUE": "bool",
            "FALSE": "bool",
            "TRUE_UPPER": "bool",
            "FALSE_UPPER": "bool",
        }
        kind = kinds.get(token.type, "int")
        if kind == "int":
            _whole(str(token), span)
        return tree.Literal(kind, str(token).lower() if kind == "bool" else str(token), span)

    def do_type(self, children: list[Any], span: Span) -> tree.Type:
        code = _token(children, "CODE")
        if code:
            text, array = code[2:-2].strip(), None
            if found := re.fullmatch(r"([^\[\]]+?)\s*\[\s*(\d*)\s*\]", text):
                text, array = found.groups()
            return tree.Type(text, array=array, is_code=True, span=span)
        if _tokens(children, "TIMETYPE"):
            return tree.Type("time", span=span)
        name = "".join(str(t) for t in _tagged(children, "dotted", []))
        array = _tagged(children, "arrayspec")
        return tree.Type(
            name,
            _tagged(children, "typeargs", []),
            len(_tokens(children, "STAR")),
            None if array is None else _token(array, "INT"),
            span=span,
        )

    def do_attribute(self, children: list[Any], span: Span) -> tree.Attribute:
        arguments: list[tuple[str, str]] = []
        for part in _tagged(children, "attribute_args", []):
            inner = part[1]
            value = inner[-1]
            text = value.text if isinstance(value, (tree.Literal, tree.Time)) else str(value)
            arguments.append((_token(inner, "ID") if len(inner) > 1 else "", text))
        return tree.Attribute(_token(children, "ID"), arguments, span)


def _whole(text: str, span: Span) -> int:
    """Returns the value of a number that fits into 64 bits; a larger one raises an LfError."""
    if len(text) <= DIGITS and NEVER <= int(text) <= 2 * FOREVER + 1:
        return int(text)
    raise fail(span, f"{short(text)} has more than 64 bits", "give a smaller number")


def _unquoted(text: str) -> str:
    if text.startswith('"""'):
        return text[3:-3]
    return text[1:-1] if text.startswith('"') else text


def parse(text: str, file: str) -> tree.File:
    """Returns the syntax tree of `text`, the contents of `file`.

    Raises:
        LfError: the text is not Lingua Franca.
    """
    try:
        built = _Builder(file).transform(_lark().parse(text))
    except UnexpectedInput as error:
        raise LfError(problems(error, text, file, _error_in)) from None
    except VisitError as error:
        if isinstance(error.orig_exc, LfError):
            raise error.orig_exc from None
        raise
    except RecursionError:
        raise fail(Span(file, 1, 1), "brackets nested too deeply", "nest them less") from None
    assert isinstance(built, tree.File)
    return built


def parse_kept(text: str, file: str) -> tree.File:
    """Returns what parse() returns. The tree is taken from the user's cache if the cache has it.

    Raises:
        LfError: the text is not Lingua Franca.
    """
    here = Path(__file__).parent
    key = (text, file, kept.stamps(str(here / name) for name in SOURCES), VERSIONS)
    content = kept.read("lf-trees", key)
    if content is not None:
        with contextlib.suppress(Exception):  # Unpickling may raise any exception.
            found = pickle.loads(content)
            if isinstance(found, tree.File):
                return found
    made = parse(text, file)
    with contextlib.suppress(RecursionError):
        kept.keep("lf-trees", key, pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
    return made


def _error_in(text: str) -> UnexpectedInput | None:
    """Returns the first syntax error of a text; None if there is none."""
    try:
        _lark().parse(text)
    except UnexpectedInput as error:
        return error
    return None


def tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of a text that parse() accepts, without white space and comments."""
    yield from _lark().parse_interactive(text).iter_parse()
