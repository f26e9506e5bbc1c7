"""Random texts that Lingua Franca's grammar allows. The texts mean nothing: names are not declared,
and bodies are not C. Therefore only the parser reads the texts.

Invariants
- Every text is one that upstream's grammar (LinguaFranca.xtext) accepts. Where this project's
  grammar accepts more, such as a keyword as a name, the text keeps to upstream's grammar.
- White space and comments may be wherever two tokens meet, except where upstream's lexer has one
  token. A number and its unit are on one line: that is this project's own rule.
- The same seed gives the same text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

BODIES = (
    "",
    " lf_set(o, 1); ",
    "\n  // don't stop\n  int a[] = {1, 2};\n",
    ' printf("=}"); ',
    " char c = '\"'; char d = '='; ",
    ' /* "open */ ',
    " x = y == z ? {= 0; ",
    " #include <stdio.h>\n",
    " a->b = 'q'; b %= 3; ",
)
UNITS = ("ns", "nsec", "us", "usecs", "ms", "msec", "s", "sec", "seconds", "min", "hours", "days")
NAMES = ("a", "b2", "in_", "Out", "_x", "the_long_name", "T", "msec", "C", "self", "void", "int")
GAPS = ("\n", "\n  ", "\t", "\r\n", " /* gap */ ", " // gap\n", " # gap\n", " ''' gap ''' ")


class Syntax:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    # --- choices ----------------------------------------------------------------------------------

    def maybe(self, make: Callable[[], str], share: float = 0.4) -> str:
        return make() if self.random.random() < share else ""

    def any(self, *makes: Callable[[], str]) -> str:
        return self.random.choice(makes)()

    def list(self, make: Callable[[], str], least: int = 0, most: int = 3, by: str = ",") -> str:
        return self.join([make() for _ in range(self.random.randint(least, most))], by)

    def join(self, parts: Sequence[str], by: str) -> str:
        return self.gap(f"{by} ").join(parts)

    def gap(self, text: str = " ") -> str:
        """Returns white space, or another text that ends in white space, sometimes with one more
        line or comment.
        """
        return text + (self.random.choice(GAPS) if self.random.random() < 0.08 else "")

    def words(self, *parts: str) -> str:
        return self.gap().join(p for p in parts if p)

    # --- pieces -----------------------------------------------------------------------------------

    def name(self) -> str:
        return self.random.choice(NAMES)

    def code(self) -> str:
        return "{=" + self.random.choice(BODIES) + "=}"

    def time(self) -> str:
        if self.random.random() < 0.2:
            return self.random.choice(("forever", "never"))
        return f"{self.random.randint(0, 999)}{self.random.choice((' ', '', '  '))}{self.random.choice(UNITS)}"

    def literal(self) -> str:
        return self.random.choice(
            (
                '"text"',
                '"a \\" b"',
                '"""many\nlines "of" text"""',
                "'c'",
                "'\\n'",
                "1.5",
                "-.5",
                ".25e-3",
                "2.5E6",
                "0",
                "42",
                "-7",
                "true",
                "false",
                "True",
                "False",
            )
        )

    def expression(self, depth: int = 0) -> str:
        makes = [self.literal, self.time, self.name, self.code]
        if depth < 2:
            makes += [lambda: self.listing(depth)]
        return self.any(*makes)

    def listing(self, depth: int = 0) -> str:
        opening, closing = self.random.choice(("{}", "()", "[]"))
        inner = self.list(lambda: self.expression(depth + 1))
        return opening + self.gap("") + inner + self.maybe(lambda: ",", 0.2) + closing

    def initializer(self) -> str:
        def list_() -> str:
            opening, closing = self.random.choice(("{}", "()"))
            return opening + self.list(lambda: self.expression(1)) + closing

        return self.any(lambda: self.words("=", self.expression()), list_)

    def type(self, depth: int = 0) -> str:
        def named() -> str:
            dotted = self.name() + self.maybe(
                lambda: self.random.choice((".", "::")) + self.name(), 0.2
            )
            arguments = ""
            if depth < 2:
                arguments = self.maybe(
                    lambda: f"<{self.list(lambda: self.type(depth + 1), 1, 2)}>", 0.2
                )
            stars = "*" * self.random.choice((0, 0, 0, 1, 2))
            return (
                dotted
                + arguments
                + stars
                + self.maybe(lambda: self.random.choice(("[]", "[3]")), 0.2)
            )

        return self.any(lambda: "time", named, named, named, self.code)

    def typed(self, share: float = 0.8) -> str:
        return self.maybe(lambda: self.random.choice((":", " : ")) + self.type(), share)

    def semicolon(self) -> str:
        return self.maybe(lambda: ";", 0.4)

    def attributes(self, share: float = 0.4) -> str:
        """Returns attributes. The last attribute has brackets if `share` is 1, since a bracket may
        follow.
        """

        def argument() -> str:
            value = self.any(self.literal, self.time)
            return self.any(lambda: value, lambda: f"{self.name()} = {value}", self.name)

        def one() -> str:
            inner = lambda: f"({self.list(argument)})"  # noqa: E731
            return "@" + self.name() + self.maybe(inner, share)

        return self.words(*[one() for _ in range(self.random.choice((0, 0, 0, 1, 2)))])

    def width(self) -> str:
        term = lambda: self.any(  # noqa: E731
            lambda: "4", self.name, lambda: f"widthof({self.ref(False)})", self.code
        )
        return self.maybe(lambda: "[" + self.list(term, 0, 2, " +") + "]", 0.3)

    def ref(self, interleaved: bool = True, alias: bool = False) -> str:
        plain = self.name() + self.maybe(lambda: "." + self.name(), 0.5)
        if interleaved and self.random.random() < 0.1:
            plain = f"interleaved({plain})"
        return plain + (self.maybe(lambda: f" as {self.name()}", 0.1) if alias else "")

    # --- members ----------------------------------------------------------------------------------

    def state(self) -> str:
        head = self.words(self.attributes(), self.maybe(lambda: "reset", 0.2), "state", self.name())
        return (
            head
            + self.typed()
            + self.maybe(lambda: " " + self.initializer(), 0.6)
            + self.semicolon()
        )

    def method(self) -> str:
        arguments = self.list(lambda: self.name() + self.typed())
        head = self.words(
            self.maybe(lambda: "const", 0.3), "method", self.name() + f"({arguments})"
        )
        return self.words(head + self.typed(0.5), self.code()) + self.semicolon()

    def port(self) -> str:
        kind = self.random.choice(("input", "mutable input", "output"))
        return (
            self.words(self.attributes(), kind + self.width(), self.name())
            + self.typed()
            + self.semicolon()
        )

    def timer(self) -> str:
        times = self.maybe(lambda: f"({self.list(self.expression, 1, 2)})", 0.7)
        return self.words(self.attributes(), "timer", self.name() + times) + self.semicolon()

    def action(self) -> str:
        times = [self.expression() for _ in range(self.random.randint(0, 2))]
        if len(times) == 2 and self.random.random() < 0.5:
            times.append('"defer"')
        inner = f"({self.join(times, ',')})" if times else ""
        origin = self.random.choice(("", "logical", "physical"))
        head = self.words(self.attributes(), origin, "action", self.name() + inner)
        return head + self.typed() + self.semicolon()

    def effects(self) -> str:
        one = lambda: self.any(  # noqa: E731
            self.ref, self.ref, lambda: f"{self.random.choice(('reset', 'history'))}({self.name()})"
        )
        return self.maybe(lambda: "-> " + self.list(one, 1), 0.5)

    def watchdog(self) -> str:
        head = self.words(self.attributes(), "watchdog", f"{self.name()}({self.expression()})")
        return self.words(head, self.effects(), self.code())

    def instance(self) -> str:
        arguments = self.list(lambda: self.words(self.name(), self.initializer()))
        types = self.maybe(lambda: f"<{self.list(self.type, 1, 2)}>", 0.2)
        made = f"{self.name()} = new{self.width()} {self.name()}{types}({arguments})"
        return self.words(self.attributes(), made) + self.semicolon()

    def connection(self) -> str:
        plain = lambda: self.list(self.ref, 1)  # noqa: E731
        iterated = lambda: f"({self.list(self.ref, 1)})" + self.maybe(lambda: "+", 0.7)  # noqa: E731
        return (
            self.words(
                self.attributes(1),
                self.any(plain, plain, iterated),
                self.random.choice(("->", "->", "~>")),
                self.list(self.ref, 1),
                self.maybe(lambda: "after " + self.expression(), 0.3),
                self.maybe(lambda: 'serializer "ROS2"', 0.05),
            )
            + self.semicolon()
        )

    def reaction(self) -> str:
        """Returns a reaction. A reaction with neither effects nor body ends in `;`, since upstream
        would treat the following text as the reaction's sources.
        """
        trigger = lambda: self.any(  # noqa: E731
            lambda: self.ref(alias=True),
            lambda: self.random.choice(("startup", "shutdown", "reset")),
        )
        head = self.words(self.attributes(), "reaction", self.maybe(self.name, 0.2))
        sources = self.maybe(lambda: self.list(self.ref, 1), 0.3)
        effects, code = self.effects(), self.maybe(self.code, 0.9)
        deadline = self.maybe(lambda: f"deadline({self.expression()}) {self.code()}", 0.2)
        late = self.maybe(lambda: f"STAA({self.expression()}) {self.code()}", 0.05)
        end = self.semicolon() if code or effects or deadline or late else ";"
        triggers = f"({self.list(trigger)})"
        return self.words(head + triggers, sources, effects, code, late, deadline) + end

    def preamble(self) -> str:
        visibility = self.random.choice(("", "", "private", "public"))
        return self.words(visibility, "preamble", self.code())

    def inner(self) -> str:
        """Returns a member that may be in a mode too."""
        return self.any(
            self.state,
            self.timer,
            self.action,
            self.watchdog,
            self.instance,
            self.instance,
            self.connection,
            self.connection,
            self.reaction,
            self.reaction,
            self.reaction,
        )

    def mode(self) -> str:
        head = self.words(self.maybe(lambda: "initial", 0.4), "mode", self.maybe(self.name, 0.9))
        return head + " {" + self.members(self.inner, 3) + "}"

    def members(self, make: Callable[[], str], most: int) -> str:
        """Returns up to `most` members. A bracket after a member may be part of that member, for
        upstream too, so a connection that begins with a bracket follows a `;`.
        """
        made = [make() for _ in range(self.random.randint(0, most))]
        return "".join(f";\n{m}" if m.startswith("(") else f"\n{m}" for m in made) + "\n"

    # --- the file ---------------------------------------------------------------------------------

    def reactor(self) -> str:
        role = self.random.choice(
            ("", "", "", "main", "realtime", "main realtime", "realtime main", "federated")
        )

        def kinds():
            return self.any(
                self.name, lambda: "{= typename N =}", lambda: f"{self.name()} {self.name()}"
            )

        types = self.maybe(lambda: f"<{self.list(kinds, 1, 2)}>", 0.2)
        one = lambda: (  # noqa: E731
            self.words(self.attributes(), self.name())
            + self.typed()
            + self.maybe(lambda: " " + self.initializer(), 0.7)
        )
        params = self.maybe(lambda: f"({self.list(one, 1)})", 0.4)
        supers = self.maybe(lambda: " extends " + self.list(self.name, 1, 2), 0.2)
        head = self.words(self.attributes(), role, "reactor", self.maybe(self.name, 0.8))

        def member():
            return self.any(
                self.inner, self.inner, self.port, self.method, self.preamble, self.mode
            )

        return head + types + params + supers + " {" + self.members(member, 8) + "}"

    def element(self, depth: int) -> str:
        path = lambda: self.random.choice(  # noqa: E731
            (
                "src/a.c",
                "../lib",
                "/abs/olute",
                "./x-y.cmake",
                "a-b",
                "word",
                "C:\\dir\\file",
                "-",
                "_",
            )
        )
        makes = [self.literal, self.time, path]
        if depth < 2:
            makes += [
                lambda: self.pairs(depth + 1),
                lambda: (
                    "["
                    + self.list(lambda: self.element(depth + 1), 1)
                    + self.maybe(lambda: ",", 0.2)
                    + "]"
                ),
            ]
        return self.any(*makes)

    def pairs(self, depth: int = 0) -> str:
        def key():
            return self.random.choice(
                ("timeout", "keep-alive", '"quoted"', "physical-x", "a-b-c", "files")
            )

        inner = self.list(lambda: f"{key()}: {self.element(depth)}")
        return "{" + inner + (self.maybe(lambda: ",", 0.2) if inner else "") + "}"

    def import_(self) -> str:
        what = self.list(lambda: self.name() + self.maybe(lambda: f" as {self.name()}", 0.3), 1)
        place = self.random.choice(('"lib/A.lf"', "<pack/A.lf>", "<p2-3/x.lf>"))
        return self.words("import", what, "from", place) + self.semicolon()

    def file(self) -> str:
        lines = [self.words("target C", self.maybe(self.pairs, 0.6)) + self.semicolon()]
        for make, most in ((self.import_, 2), (self.preamble, 2)):
            lines += [make() for _ in range(self.random.randint(0, most))]
        lines += [self.reactor() for _ in range(self.random.randint(1, 3))]
        return "\n".join(lines) + "\n"


def text(seed: int) -> str:
    """Returns the random text of a seed."""
    return Syntax(seed).file()
