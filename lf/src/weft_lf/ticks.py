"""Converts a program's times to ticks, the unit of the target's clock (SEMANTICS.md, R22).

Invariants
- `in_ticks` does what the macro WEFT_RX_TICKS does: it rounds to the nearest tick, and a positive
  time to at least one tick.
- A time that is rounded gives a warning with the rounded time. A time beyond the horizon is an
  error here, because a device would not detect it.
- A period is not rounded: `period_of` returns it as a fraction, so that its timer does not drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from weft_lf import tree
from weft_lf.errors import LfError, Problem, Span
from weft_lf.model import Model
from weft_lf.target import Config

HORIZON = 0x7F000000  # the longest time in 32-bit ticks, as in reactors.h
UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


@dataclass(frozen=True)
class Tick:
    """The target's tick: its length in ns. Times have 64 bits if `wide` is true, otherwise 32
    bits."""

    ns: int = 1
    wide: bool = True


HOST = Tick()


def tick_of(config: Config, target: str) -> Tick:
    """Returns the target's tick. On a device the default is a microsecond, in 32 bits;
    compile-definitions may change it.

    Raises:
        LfError: the device's clock cannot count the tick that compile-definitions ask for.
    """
    if target == "host":
        return HOST
    given = config.definitions
    text = given.get("WEFT_TICK_NS", "1000")
    ns = int(text) if text.isdigit() else 0
    if ns <= 0 or ns % 1000:
        raise LfError(
            Problem(
                config.span,
                f"WEFT_TICK_NS is {text}",
                "a device counts microseconds: a tick is a multiple of 1000 ns",
            )
        )
    return Tick(ns, given.get("WEFT_RX_TIME64", "0") not in ("", "0"))


def in_ticks(ns: int, tick: Tick) -> int:
    return 0 if ns <= 0 else max(1, (ns + tick.ns // 2) // tick.ns)


def period_of(ns: int, tick: Tick) -> tuple[int, int]:
    """Returns a period of `ns` as the fraction (ticks, per) in lowest terms. `per` is 1 if the
    period is a whole number of ticks. A period below one tick becomes (1, 1).
    """
    if ns <= tick.ns or ns % tick.ns == 0:
        return in_ticks(ns, tick), 1
    common = gcd(ns, tick.ns)
    return ns // common, tick.ns // common


def shown(ns: int) -> str:
    """Returns a time in ns as a person would write it: 1500000 gives 1.5 ms."""
    for size, name in UNITS:
        if ns >= size:
            whole, rest = divmod(ns, size)
            digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0") if size > 1 else ""
            return f"{whole}{'.' * bool(digits)}{digits} {name}"
    return "0"


def _problem(ns: int, tick: Tick, span: Span, what: str, kept: bool) -> Problem | None:
    """Returns the problem of a time that is beyond the horizon or is not a whole number of ticks.
    `kept` says whether the fraction of a tick is kept, as in the period of a timer."""
    if not tick.wide and in_ticks(ns, tick) >= HORIZON:
        text = f"the {what}, {shown(ns)}, is beyond the horizon of this target, {shown(HORIZON * tick.ns)}"
        hint = "compile-definitions: { WEFT_TICK_NS: 1000000 } makes a tick of 1 ms, { WEFT_RX_TIME64: 1 } removes the limit"
        return Problem(span, text, hint)
    if ns % tick.ns == 0:
        return None
    if kept and ns > tick.ns:
        text = f"the {what}, {shown(ns)}, is not a whole number of ticks of {shown(tick.ns)}"
        less = ns // tick.ns * tick.ns
        gaps = f"gaps of {shown(less)} and {shown(less + tick.ns)}, no drift"
        hint = f"the timer fires on the tick before each multiple: {gaps}"
    else:
        text = f"the {what}, {shown(ns)}, is {shown(in_ticks(ns, tick) * tick.ns)} here: a tick is {shown(tick.ns)}"
        hint = "write a multiple of the tick"
        if tick.ns > 1000:
            hint += ", or choose another: compile-definitions: { WEFT_TICK_NS: 1000 }"
    return Problem(span, text, hint, "warning")


def check(model: Model, tick: Tick) -> list[Problem]:
    """Returns warnings about the program's times that are not a whole number of ticks, one for each
    place.

    Raises:
        LfError: a time is beyond the horizon of 32-bit ticks, or the program has watchdogs and is for
            a device.
    """
    found: dict[Span, Problem] = {}

    def look(ns: int | None, span: Span, what: str, kept: bool = False) -> None:
        problem = _problem(ns, tick, span, what, kept) if ns else None
        if problem is not None and (problem.severity == "error" or span not in found):
            found[span] = problem

    def place(expr: tree.Expr | None, otherwise: Span) -> Span:
        return getattr(expr, "span", otherwise) if expr is not None else otherwise

    config = model.program.config
    look(config.timeout, config.timeout_span, "timeout")
    for made in model.instances:
        for timer in made.timers.values():
            decl = timer.decl
            look(timer.offset, place(decl.offset, decl.span), "offset of the timer")
            in_mode = timer.mode is not None or made.within() is not None
            look(
                timer.period, place(decl.period, decl.span), "period of the timer", kept=not in_mode
            )
        for action in made.actions.values():
            look(action.delay, place(action.decl.delay, action.decl.span), "delay of the action")
            look(
                action.spacing,
                place(action.decl.spacing, action.decl.span),
                "spacing of the action",
            )
        for dog in made.watchdogs.values():
            if tick != HOST and dog.decl.span not in found:
                text = "watchdogs need threads, and a device has none"
                hint = "use an action that each reaction schedules anew"
                found[dog.decl.span] = Problem(dog.decl.span, text, hint)
        for one in made.reactions:
            look(one.deadline, place(one.decl.deadline, one.decl.span), "deadline")
    for delay in model.delays:
        look(delay.ns, place(delay.via.delay, delay.via.span), "delay of the connection")
    problems = sorted(found.values(), key=lambda p: (p.span.file, p.span.line, p.span.column))
    if any(p.severity == "error" for p in problems):
        raise LfError(problems)
    return problems


__all__ = ["HOST", "Tick", "check", "in_ticks", "period_of", "shown", "tick_of"]
