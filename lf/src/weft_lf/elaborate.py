"""Makes the model of a program: the instances with their parameters and banks, then their
connections, reactions and the order of the reactions.

Invariants
- The outcome is a complete `Model` or an `LfError`. Code that is doubtful but not wrong gives a
  warning in `Program.warnings`.
- There are no more than LIMIT instances and channels: a mistyped width gives an error, and does not
  fill the memory.
"""

from __future__ import annotations

from weft_lf import tree
from weft_lf.classes import Classes, nearest
from weft_lf.connect import Wiring
from weft_lf.errors import LfError, Problem, Span, fail
from weft_lf.load import Program
from weft_lf.model import (
    ActionOf,
    Channel,
    Class,
    Instance,
    Model,
    ModeOf,
    Placed,
    PortOf,
    ReactionOf,
    TimerOf,
    Trigger,
    Value,
    WatchdogOf,
)
from weft_lf.order import Loop, put_in_order
from weft_lf.parser import FOREVER
from weft_lf.values import number, resolved

LIMIT = 4_000_000
POLICIES = ("defer", "drop", "replace", "update")
BANK = tree.Param("bank_index", tree.Type("int"), tree.Literal("int", "0"))


class _Elaborator:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.classes = Classes(program)
        self.problems = self.classes.problems
        self.instances: list[Instance] = []
        self.order: list[Class] = []
        self.size = 0
        self.sizes: dict[tuple[Instance, str], int] = {}  # (instance, parameter) → its items()

    # --- instances --------------------------------------------------------------------------------

    def instantiate(
        self,
        cls: Class,
        name: str,
        parent: Instance | None,
        index: int | None,
        width: int | None,
        decl: tree.Instance | None,
        mode: ModeOf | None,
    ) -> Instance:
        self.size += 1
        if self.size > LIMIT:
            span = decl.span if decl else cls.decl.span
            raise fail(
                span,
                f"the program has more than {LIMIT} reactors and channels",
                "make its banks smaller",
            )
        made = Instance(cls, name, parent, index, width, decl, mode, number=len(self.instances))
        self.instances.append(made)
        self.parameters(made)
        for position, one in enumerate(cls.modes):
            made.modes[one.name] = ModeOf(made, one, position)
        for placed in cls.members:
            member = placed.decl
            if isinstance(member, tree.Port):
                self.port(made, member)
            elif isinstance(member, tree.Timer):
                self.timer(made, member, placed)
            elif isinstance(member, tree.Action):
                self.action(made, member, placed)
            elif isinstance(member, tree.Watchdog):
                self.watchdog(made, member, placed)
        for placed in cls.of(tree.Instance):
            self.child(made, placed)
        if cls not in self.order:
            self.order.append(cls)
        return made

    def parameters(self, made: Instance) -> None:
        cls, decl = made.cls, made.decl
        made.values["bank_index"] = Value(tree.Literal("int", str(made.index or 0)))
        given: dict[str, tuple[tree.Expr, Span]] = {}
        for name, expr, span in decl.assignments if decl else []:
            if name not in cls.params and name != "bank_index":
                raise fail(
                    span, f"'{cls.name}' has no parameter '{name}'", nearest(name, list(cls.params))
                )
            if name in given:
                raise fail(span, f"'{name}' is given twice", "give it once")
            given[name] = (expr, span)
        for name, param in cls.params.items():
            if name == "bank_index" and name not in given:
                continue
            if name in given:
                expr, span = given[name]
                self.names_in(expr, made.parent)
                value = resolved(expr, made.parent, made.index)
            elif param.init is not None:
                span = param.span
                self.names_in(param.init, made)
                value = resolved(param.init, made)
            else:
                where = decl.span if decl else param.span
                text = f"the parameter '{name}' of '{cls.name}' has no value"
                hint = f"give it a default, or write new {cls.name}({name} = …)"
                raise fail(where, text, hint if decl else "give it a default")
            self.check_kind(param, value, span)
            made.values[name] = value
            size = self.sizes[(made, name)] = self.items(value)
            if size > LIMIT:
                text = f"'{name}' has {size} values, which are too many"
                raise fail(span, text, f"at most {LIMIT}; lists of parameters that are lists grow")

    def items(self, value: Value) -> int:
        """Returns the number of single values in `value`, which can be a list of lists and of
        parameters that are lists.
        """
        expr = value.expr
        if isinstance(expr, tree.Name) and value.scope is not None:
            return self.sizes.get((value.scope, expr.name), 1)
        if isinstance(expr, tree.Listing):
            return sum(self.items(Value(item, value.scope)) for item in expr.items)
        return 1

    def names_in(self, expr: tree.Expr, scope: Instance | None) -> None:
        """Checks that every name in `expr` is a parameter of `scope`."""
        if isinstance(expr, tree.Name):
            if scope is None or expr.name not in scope.values:
                known = list(scope.values) if scope else []
                raise fail(
                    expr.span,
                    f"there is no parameter '{expr.name}' here",
                    nearest(expr.name, known),
                )
        elif isinstance(expr, tree.Listing):
            for item in expr.items:
                self.names_in(item, scope)

    def check_kind(self, param: tree.Param, value: Value, span: Span) -> None:
        kind, expr = param.type, value.expr
        if kind is None or kind.is_code or kind.array is not None or kind.stars:
            return
        if kind.name == "time":
            if isinstance(expr, tree.Literal) and expr.text != "0":
                hint = (
                    f"write {expr.text} msec, for example"
                    if expr.kind == "int"
                    else "write a number and a unit"
                )
                raise fail(span, f"'{param.name}' is a time, and {expr.text} is not", hint)
            if isinstance(expr, tree.Listing) and len(expr.items) != 1:
                raise fail(span, f"'{param.name}' is a time, and this is a list")
        elif isinstance(expr, tree.Time) and kind.name in (
            "int",
            "bool",
            "string",
            "float",
            "double",
            "char",
        ):
            raise fail(
                span,
                f"'{param.name}' is of type {kind.name}, and {expr.text} is a time",
                "make it 'time'",
            )
        elif (
            isinstance(expr, tree.Literal)
            and expr.kind == "string"
            and kind.name
            in (
                "int",
                "bool",
                "float",
                "double",
                "size_t",
                "unsigned",
            )
        ):
            raise fail(
                span,
                f"'{param.name}' has type {kind.name}, but {expr.text} is a string",
                "give a number",
            )

    def port(self, made: Instance, member: tree.Port) -> None:
        width = self.width(made, member.width, member.span) if member.width is not None else 1
        port = PortOf(made, member, member.width is not None)
        self.size += width
        if self.size > LIMIT:
            raise fail(
                member.span,
                f"the program has more than {LIMIT} reactors and channels",
                "make it narrower",
            )
        port.channels = [Channel(port, i) for i in range(width)]
        made.ports[member.name] = port

    def width(self, scope: Instance, terms: list[tree.WidthTerm], span: Span) -> int:
        if not terms:
            raise fail(span, "this width is not given", "write a number between the brackets")
        total = 0
        for term in terms:
            if isinstance(term.value, int):
                total += term.value
            elif isinstance(term.value, tree.Ref):
                total += self.width_of(scope, term.value)
            else:
                if isinstance(term.value, tree.Name):
                    self.names_in(term.value, scope)
                found = number(Value(term.value, scope))
                if found is None:
                    hint = "a width is a number, a parameter that is one, or arithmetic on these"
                    raise fail(term.span, "this width is not known at compile time", hint)
                total += found
        if total < 0:
            raise fail(
                terms[0].span, f"the width is {total}, which is negative", "a width is 0 or more"
            )
        if total > LIMIT:
            raise fail(
                terms[0].span, f"the width is {total}, which is too large", f"at most {LIMIT}"
            )
        return total

    def width_of(self, scope: Instance, ref: tree.Ref) -> int:
        if not ref.container:
            if ref.variable in scope.ports:
                return len(scope.ports[ref.variable].channels)
            raise fail(
                ref.span,
                f"there is no port '{ref}' to take the width of",
                "declare it before this",
            )
        members = scope.children.get(ref.container)
        if not members:
            raise fail(
                ref.span,
                f"there is no reactor '{ref.container}' to take the width of",
                "declare it before this",
            )
        if ref.variable not in members[0].ports:
            raise fail(
                ref.span, f"there is no port '{ref}'", nearest(ref.variable, list(members[0].ports))
            )
        return sum(len(m.ports[ref.variable].channels) for m in members)

    def time(self, expr: tree.Expr | None, scope: Instance, what: str) -> int | None:
        """Returns the value of `expr` in nanoseconds, or None without an `expr`; `what` names the
        time in an error.
        """
        if expr is None:
            return None
        self.names_in(expr, scope)
        value = resolved(expr, scope)
        found = number(value)
        span = expr.span
        if found is None:
            hint = "a time is a number with a unit, a parameter that is one, or arithmetic on these"
            raise fail(span, f"the {what} is not a time known at compile time", hint)
        if found < 0:
            raise fail(span, f"the {what} is negative", "a time is 0 or more")
        if isinstance(value.expr, tree.Literal) and found != 0:
            raise fail(span, f"the {what} needs a unit of time", f"write {found} msec, for example")
        return min(found, FOREVER)

    def timer(self, made: Instance, member: tree.Timer, placed: Placed) -> None:
        offset = self.time(member.offset, made, "offset of the timer") or 0
        period = self.time(member.period, made, "period of the timer") or 0
        mode = made.modes.get(placed.mode)
        made.timers[_key(member.name, mode)] = TimerOf(made, member, offset, period, mode)

    def action(self, made: Instance, member: tree.Action, placed: Placed) -> None:
        delay = self.time(member.delay, made, "delay of the action") or 0
        spacing = self.time(member.spacing, made, "spacing of the action")
        if member.policy and member.policy not in POLICIES:
            text = f"there is no spacing policy '{member.policy}'"
            raise fail(member.span, text, f"one of: {', '.join(POLICIES)}")
        mode = made.modes.get(placed.mode)
        policy = member.policy or "defer"
        made.actions[_key(member.name, mode)] = ActionOf(made, member, delay, spacing, policy, mode)

    def watchdog(self, made: Instance, member: tree.Watchdog, placed: Placed) -> None:
        timeout = self.time(member.timeout, made, "timeout of the watchdog") or 0
        mode = made.modes.get(placed.mode)
        made.watchdogs[_key(member.name, mode)] = WatchdogOf(made, member, timeout, mode)

    def handlers(self, made: Instance) -> None:
        """Finds the actions that the handlers of watchdogs may schedule. Raises LfError for any
        other effect of a handler."""
        for one in made.watchdogs.values():
            for ref in one.decl.effects:
                name = ref.variable
                if ref.kind != "plain" or name in made.modes:
                    text = "the handler of a watchdog cannot set a mode"
                    raise fail(ref.span, text, f"let a reaction({one.decl.name}) do it")
                keys = [k for k in (_key(name, one.mode), name) if k in made.actions]
                if ref.container or not keys:
                    text = f"the handler of a watchdog cannot write '{ref}': it schedules actions"
                    raise fail(ref.span, text, f"let a reaction({one.decl.name}) write it")
                one.schedules.append(made.actions[keys[0]])

    def child(self, made: Instance, placed: Placed) -> None:
        decl = placed.decl
        assert isinstance(decl, tree.Instance)
        file, target = self.classes.find(placed.file, decl.cls, decl.span)
        if target.main:
            raise fail(
                decl.span,
                f"'{decl.cls}' is a main reactor and cannot be instantiated",
                "make it a plain reactor",
            )
        arguments = [_substituted(a, made.cls.types) for a in decl.arguments]
        cls = self.classes.get(file, target, arguments, decl.span)
        at: Instance | None = made
        while at is not None:
            if at.cls is cls:
                raise fail(
                    decl.span,
                    f"'{cls.name}' contains itself",
                    "a reactor cannot be inside one of its kind",
                )
            at = at.parent
        mode = made.modes.get(placed.mode)
        if decl.width is None:
            made.children[decl.name] = [
                self.instantiate(cls, decl.name, made, None, None, decl, mode)
            ]
            return
        width = self.width(made, decl.width, decl.span)
        made.children[decl.name] = [
            self.instantiate(cls, decl.name, made, i, width, decl, mode) for i in range(width)
        ]

    # --- reactions --------------------------------------------------------------------------------

    def reactions(self, made: Instance, wiring: Wiring) -> None:
        for placed in made.cls.of(tree.Reaction):
            decl = placed.decl
            assert isinstance(decl, tree.Reaction)
            mode = made.modes.get(placed.mode)
            one = ReactionOf(made, decl, len(made.reactions), mode)
            try:
                self.reaction(one)
            except LfError as error:
                if not any(p in self.problems for p in error.problems):
                    self.problems += error.problems
            made.reactions.append(one)
        for forward, mode in wiring.forwards.get(made, []):
            text = tree.Reaction("", [], [], [], None, None, None, [], forward.span)
            one = ReactionOf(made, text, len(made.reactions), mode)
            one.triggers, one.reads, one.writes = (
                [forward.made.source],
                [forward.made.source],
                [forward.made.sink],
            )
            one.forward = forward.made
            made.reactions.append(one)

    def reaction(self, one: ReactionOf) -> None:
        decl, made = one.decl, one.instance
        for ref in decl.triggers:
            if ref.kind == "builtin":
                one.triggers.append(ref.variable)
                if (
                    ref.variable == "reset"
                    and one.mode is None
                    and made.within() is None
                    and not made.modes
                ):
                    text = "'reset' triggers only inside modes"
                    self.program.warnings.append(Problem(ref.span, text, severity="warning"))
                continue
            found = self.readable(ref, one)
            one.triggers += found
            one.reads += [f for f in found if isinstance(f, Channel)]
        for ref in decl.sources:
            if ref.kind == "builtin":
                continue
            found = self.readable(ref, one)
            one.sources += found
            one.reads += [f for f in found if isinstance(f, Channel)]
        for ref in decl.effects:
            self.effect(ref, one)
        if not decl.triggers and not decl.sources:
            # As upstream, a reaction without triggers and sources is triggered by all inputs.
            for port in made.ports.values():
                if port.decl.is_input:
                    one.triggers += port.channels
                    one.reads += port.channels
        if decl.deadline is not None:
            one.deadline = self.time(decl.deadline, made, "deadline")

    def readable(self, ref: tree.Ref, one: ReactionOf) -> list[Trigger]:
        made = one.instance
        if ref.container:
            members = self.members(ref, made)
            if not members:
                return []
            port = self.port_named(ref, members[0])
            if port.is_input:
                text = f"'{ref}' is an input of '{ref.container}': it is written here, not read"
                raise fail(ref.span, text, "put it after ->, or read an output")
            return [c for m in members for c in m.ports[ref.variable].channels]
        name = ref.variable
        if name in made.ports:
            port_of = made.ports[name]
            if not port_of.decl.is_input:
                raise fail(
                    ref.span,
                    f"'{name}' is this reactor's own output",
                    "a reaction is triggered by inputs",
                )
            return list(port_of.channels)
        for key in (_key(name, one.mode), name):
            if key in made.timers:
                return [made.timers[key]]
            if key in made.actions:
                return [made.actions[key]]
            if key in made.watchdogs:
                return [made.watchdogs[key]]
        if name in made.children:
            raise fail(ref.span, f"'{name}' is a reactor", f"name one of its outputs: {name}.out")
        known = [
            *made.ports,
            *(t.decl.name for t in made.timers.values()),
            *(a.decl.name for a in made.actions.values()),
            *(w.decl.name for w in made.watchdogs.values()),
        ]
        raise fail(
            ref.span,
            f"'{made.cls.name}' has no input, timer or action '{name}'",
            nearest(name, known),
        )

    def members(self, ref: tree.Ref, made: Instance) -> list[Instance]:
        if ref.container not in made.children:
            hint = nearest(ref.container, list(made.children))
            raise fail(ref.span, f"'{made.cls.name}' contains no reactor '{ref.container}'", hint)
        return made.children[ref.container]

    def port_named(self, ref: tree.Ref, inside: Instance) -> tree.Port:
        if ref.variable not in inside.ports:
            text = f"'{inside.cls.name}' has no port '{ref.variable}'"
            raise fail(ref.span, text, nearest(ref.variable, list(inside.ports)))
        return inside.ports[ref.variable].decl

    def effect(self, ref: tree.Ref, one: ReactionOf) -> None:
        made, name = one.instance, ref.variable
        if ref.kind in ("reset", "history") or (not ref.container and name in made.modes):
            if name not in made.modes:
                raise fail(
                    ref.span,
                    f"'{made.cls.name}' has no mode '{name}'",
                    nearest(name, list(made.modes)),
                )
            one.moves.append((made.modes[name], ref.kind if ref.kind != "plain" else "reset"))
        elif ref.container:
            members = self.members(ref, made)
            if not members:
                return
            if not self.port_named(ref, members[0]).is_input:
                text = f"'{ref}' is an output of '{ref.container}': it is read here, not written"
                raise fail(ref.span, text, "put it among the triggers, or write an input")
            one.writes += [c for m in members for c in m.ports[name].channels]
        elif name in made.ports:
            if made.ports[name].decl.is_input:
                raise fail(
                    ref.span, f"'{name}' is this reactor's own input", "a reaction writes outputs"
                )
            one.writes += made.ports[name].channels
        else:
            for key in (_key(name, one.mode), name):
                if key in made.actions:
                    one.schedules.append(made.actions[key])
                    return
                if key in made.watchdogs:
                    return
            known = [*made.ports, *(a.decl.name for a in made.actions.values()), *made.modes]
            known += [w.decl.name for w in made.watchdogs.values()]
            raise fail(
                ref.span,
                f"'{made.cls.name}' has no output, action or mode '{name}'",
                nearest(name, known),
            )


def _key(name: str, mode: ModeOf | None) -> str:
    return f"{mode.decl.name}/{name}" if mode else name


def _substituted(kind: tree.Type, types: dict[str, tree.Type]) -> tree.Type:
    """Returns the type argument `kind` with the enclosing reactor's type parameters replaced by
    `types`.
    """
    if kind.is_code or kind.name not in types:
        return kind
    given = types[kind.name]
    return tree.Type(
        given.name,
        given.arguments,
        given.stars + kind.stars,
        kind.array or given.array,
        given.is_code,
        kind.span,
    )


def elaborate(program: Program) -> Model:
    """Returns the model of a program.

    Raises:
        LfError: the program has errors, which the exception's `problems` list.
    """
    made = _Elaborator(program)
    try:
        cls = made.classes.get(program.main_file, program.main, [], program.main.span)
        made.classes.raise_problems()
        top = made.instantiate(cls, program.main.name, None, None, None, None, None)
    except RecursionError:
        raise fail(program.main.span, "reactors nested too deeply", "nest them less") from None
    made.classes.raise_problems()
    wiring = Wiring(made)
    for instance in made.instances:
        wiring.connect(instance)
    wiring.check_circles(made.instances)
    made.classes.raise_problems()
    for instance in made.instances:
        made.reactions(instance, wiring)
        made.handlers(instance)
    wiring.check_writers(made.instances)
    made.classes.raise_problems()
    try:
        reactions, levels = put_in_order(made.instances, program)
    except Loop as loop:
        every = [r for instance in made.instances for r in instance.reactions]
        loop.model = Model(program, top, made.order, made.instances, every, wiring.delays, 0)
        raise
    wiring.warn_unconnected(made.instances)
    return Model(program, top, made.order, made.instances, reactions, wiring.delays, levels)


__all__ = ["elaborate"]
