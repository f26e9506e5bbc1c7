"""Generates the C code of one reactor class: its self struct, its methods and its reaction
functions. The names that a reaction's body may use are those of Lingua Franca's own C target
("upstream").

Invariants
- A body is copied as it was written, between two `#line`s: the first names the program's file, the
  second the generated file. Therefore a debugger shows the right line in both files. The mark
  `HERE` stands for the second `#line` until the text is complete.
- A body sees `self`, the ports, actions and contained reactors that the reaction names, `x_width`
  for each multiport or bank x, the methods and the modes.
"""

from __future__ import annotations

import functools
import re

from weft_lf import tree
from weft_lf.connect import NUMBERS
from weft_lf.layout import Layout, Uses, base_of
from weft_lf.model import Class, Placed
from weft_lf.values import c_type

HERE = "#line @HERE@"


def code_lines(code: tree.Code) -> list[str]:
    """Returns the lines of a piece of code, between a `#line` to the program's file and a `#line`
    back to the generated file. The first line of the code keeps its column, which the compiler's
    messages name.
    """
    file = code.span.file.replace("\\", "\\\\").replace('"', '\\"')
    return [f'#line {code.span.line} "{file}"', " " * (code.span.column - 1) + code.text, HERE]


def checked_type(kind: tree.Type, cls: Class, number: int) -> tuple[str, list[str]]:
    """Returns the name of the type `kind` in C, without stars, and the lines of a typedef of this
    type. The typedef has the line number of `kind` in the `.lf` file, so a compiler that does not
    know the type names that line. There are no lines if C always has the type, or if the type is
    more than a name.
    """
    given = cls.types.get(kind.name, kind) if not kind.is_code else kind
    text = base_of(kind, cls).rstrip("* ")
    if text in NUMBERS or not re.fullmatch(r"[\w ]+", text):
        return text, []
    return text, ["typedef", *code_lines(tree.Code(text, given.span)), f"lf_type_{number};"]


class Bodies:
    """Generates the C code of the class `cls`. `functions` also collects, in `externs`, the
    prototypes of the C functions that the program itself must provide."""

    def __init__(self, layout: Layout, cls: Class) -> None:
        self.layout, self.cls = layout, cls
        self.uses: Uses = layout.uses[cls]
        self.self_t = f"{cls.key}_self_t"
        self.lines: list[str] = []
        self.externs: list[str] = []

    # --- the struct -------------------------------------------------------------------------------

    def named_types(self) -> tuple[list[tree.Type], list[tree.Type]]:
        """Returns the types that the class names: those of ports and actions, and those of
        parameters and states, which may use the types that are made for ports."""
        decls = [placed.decl for placed in self.cls.members]
        ports = [port.type for port in self.cls.ports.values()]
        ports += [decl.type for decl in decls if isinstance(decl, tree.Action)]
        states = [param.type for _, param in self.params()]
        states += [decl.type for decl in decls if isinstance(decl, tree.State)]
        return [t for t in ports if t is not None], [t for t in states if t is not None]

    def aliases(self) -> list[str]:
        """Returns typedefs of ports and actions under upstream's names: count_out_t and
        _count_out_t.
        """
        lines, cls = [], self.cls
        for name, port in cls.ports.items():
            kind = self.layout.type_of(port.type, cls)
            lines.append(f"typedef {kind.port} {cls.key}_{name}_t;")
            lines.append(f"typedef {kind.port} _{cls.key}_{name}_t;")
        for placed in cls.of(tree.Action):
            decl = placed.decl
            assert isinstance(decl, tree.Action)
            lines.append(
                f"typedef {self.action_type(decl)} {self.action_name(decl, placed.mode)}_t;"
            )
        return lines

    def action_name(self, decl: tree.Action, mode: str) -> str:
        return f"{self.cls.key}_{mode + '_' if mode else ''}{decl.name}"

    def action_type(self, decl: tree.Action) -> str:
        if decl.type is None:
            return "weft_rx_void_action"
        kind = self.layout.type_of(decl.type, self.cls)
        made = "TOKEN_ACTION" if kind.token else "HELD_ACTION" if self.held(decl) else "ACTION"
        return f"WEFT_RX_{made}({kind.text})"

    def held(self, decl: tree.Action) -> bool:
        """Returns whether bodies use a token of the action `decl`, which has plain values."""
        if decl.type is None or self.layout.type_of(decl.type, self.cls).token:
            return False
        name = re.escape(decl.name)
        asks = rf"\b{name}\s*->\s*token\b|\blf_(schedule|new)_token\s*\(\s*{name}\s*,"
        return re.search(asks, self.uses.text) is not None

    @property
    def holds(self) -> bool:
        """Whether the class has an action whose plain values are used as tokens by bodies."""
        actions = (placed.decl for placed in self.cls.of(tree.Action))
        return any(self.held(a) for a in actions if isinstance(a, tree.Action))

    @property
    def watched(self) -> bool:
        """Whether the class has watchdogs. Such a class has a lock, which its reactions hold."""
        return bool(watchdogs_of(self.cls))

    def named(self) -> bool:
        return any(
            self.layout.mentions(self.cls, n) for n in ("lf_reactor_name", "lf_reactor_full_name")
        )

    def struct(self) -> list[str]:
        cls, layout = self.cls, self.layout
        lines = [f"struct {self.self_t} {{"]
        if self.named():
            lines.append("  const char *_lf_name, *_lf_full_name;")
        for name, param in self.params():
            lines.append(f"  {declared(param.type, name, cls, param.init)};")
        for placed in cls.of(tree.State):
            decl = placed.decl
            assert isinstance(decl, tree.State)
            lines.append(f"  {self.state_declared(decl)};")
        for name, port in self.uses.ports.items():
            kind = layout.type_of(port.type, cls)
            if port.width is not None:
                lines.append(f"  {kind.port} **_lf_{name}; int _lf_{name}_width;")
            elif port.is_input:
                lines.append(
                    f"  {kind.port} *_lf_{name};"
                    + (f" bool _lf_{name}_last;" if port.mutable else "")
                )
            elif name in self.uses.written:
                lines.append(f"  {kind.port} _lf_{name};")
        for child in self.uses.children:
            ref = f"struct {cls.key}_{child}_ref"
            lines.append(
                f"  {ref} *_lf_{child}; int _lf_{child}_width;"
                if child in self.uses.banks
                else f"  {ref} _lf_{child};"
            )
        for placed in cls.of(tree.Action):
            action = placed.decl
            assert isinstance(action, tree.Action)
            lines.append(
                f"  {self.action_name(action, placed.mode)}_t _lf_{placed.mode}_{action.name};"
            )
        for dog, mode in watchdogs_of(cls):
            lines.append(f"  weft_rx_watchdog _lf_{mode}_{dog.name};")
        if self.watched:
            lines.append("  pthread_mutex_t _lf_lock;")
        if cls.modes:
            lines.append("  weft_rx_mode *_lf_modes;")
        for number_, _ in self.varying_deadlines:
            lines.append(f"  int64_t _lf_deadline_{number_};")
        # In GNU C an empty struct takes no bytes.
        return [*lines, "};"]

    def params(self) -> list[tuple[str, tree.Param]]:
        """Returns the parameters that the class's code mentions. The other parameters are not in
        the struct.
        """
        found = [(n, p) for n, p in self.cls.params.items() if self.layout.mentions(self.cls, n)]
        if "bank_index" not in self.cls.params and self.layout.mentions(self.cls, "bank_index"):
            found.append(
                ("bank_index", tree.Param("bank_index", tree.Type("int"), tree.Literal("int", "0")))
            )
        return found

    def state_declared(self, decl: tree.State) -> str:
        kind = decl.type
        if kind is not None and kind.array == "" and isinstance(decl.init, tree.Listing):
            return f"{base_of(kind, self.cls)} {decl.name}[{max(1, len(decl.init.items))}]"
        return declared(kind, decl.name, self.cls, decl.init)

    def refs(self) -> list[str]:
        """Returns a struct for each contained reactor that a reaction names, with the ports that
        bodies use.
        """
        lines = []
        for child, ports in self.uses.children.items():
            inside = self.uses.child_class[child]
            lines.append(f"struct {self.cls.key}_{child}_ref {{")
            for name, port in ports.items():
                kind = self.layout.type_of(port.type, inside)
                lines.append(
                    f"  {kind.port} **{name}; int {name}_width;"
                    if port.width is not None
                    else f"  {kind.port} *{name};"
                )
            lines.append("};")
        return lines

    # --- functions --------------------------------------------------------------------------------

    def functions(self) -> list[str]:
        cls = self.cls
        methods = [p.decl for p in cls.of(tree.Method) if isinstance(p.decl, tree.Method)]
        lines = []
        for method in methods:
            lines.append(self.method_head(method) + ";")
        for method in methods:
            name = f"{cls.key}_method_{method.name}"
            lines.append(f"#define {method.name}(...) {name}(self, ##__VA_ARGS__)")
        for method in methods:
            lines += [self.method_head(method) + " {", *code_lines(method.code), "}"]
        for at, (dog, mode) in enumerate(watchdogs_of(cls)):
            lines += self.handler(at, dog, mode)
        for at, placed in enumerate(cls.of(tree.Reaction)):
            lines += self.reaction(at, placed)
        lines += [f"#undef {m.name}" for m in methods]
        return lines

    def method_head(self, method: tree.Method) -> str:
        cls = self.cls
        returns = "void" if method.returns is None else c_type(method.returns, cls.types)
        arguments = [f"{self.self_t} *self"]
        arguments += [declared(kind, name, cls, None) for name, kind in method.arguments]
        return f"static {returns} {cls.key}_method_{method.name}({', '.join(arguments)})"

    def handler(self, at: int, decl: tree.Watchdog, mode: str) -> list[str]:
        """Returns the C function that is the handler of a watchdog. The handler's body can use
        `self`, the watchdog, and the actions that the handler names."""
        refs = [tree.Ref(decl.name), *decl.effects]
        head = tree.Reaction("", refs, [], [], None, None, None, [], decl.span)
        name = f"{self.cls.key}_watchdog_{at}"
        lines = [f"static void {name}(void *instance) {{", f"  {self.self_t} *self = instance;"]
        names = Names(self, head, mode).lines
        return [*lines, "  (void)self;", *names, *code_lines(decl.code), "}"]

    @functools.cached_property
    def varying_deadlines(self) -> list[tuple[int, Placed]]:
        """Returns the reactions whose deadline differs between instances, or can change, with their
        numbers.
        """
        found = []
        for at, placed in enumerate(self.cls.of(tree.Reaction)):
            values = {made.reactions[at].deadline for made in self.layout.of[self.cls]}
            decl = placed.decl
            assert isinstance(decl, tree.Reaction)
            if len(values) > 1 or (decl.deadline_code is not None and updates(decl)):
                found.append((at, placed))
        return found

    def reaction(self, at: int, placed: Placed) -> list[str]:
        decl, cls = placed.decl, self.cls
        assert isinstance(decl, tree.Reaction)
        name = f"{cls.key}_r{at}"
        one = self.layout.of[cls][0].reactions[at]
        names = Names(self, decl, placed.mode)
        mutable = [p for n, p in names.ports.items() if p.mutable]
        lines: list[str] = []
        if decl.deadline_code is not None:
            lines += self.function(f"{name}_late", decl.deadline_code, names, mutable, "")
        check = ""
        if decl.deadline_code is not None:
            interval = (
                f"self->_lf_deadline_{at}"
                if any(n == at for n, _ in self.varying_deadlines)
                else f"{one.deadline}LL"
            )
            check = f"  WEFT_RX_DEADLINE(instance, {interval}, {name}_late);"
        if self.watched:
            check = f"  WEFT_RX_ALONE(&self->_lf_lock);{check}"
        if updates(decl) and decl.deadline_code is not None:
            check += f" int64_t *const weft_rx_deadline_here = &self->_lf_deadline_{at};"
        elif updates(decl):  # Only lf_check_deadline in this body reads the deadline.
            check += " int64_t weft_rx_own = -1, *const weft_rx_deadline_here = &weft_rx_own;"
        if decl.code is None:
            return lines + self.bodyless(name, decl, names, check)
        return lines + self.function(name, decl.code, names, mutable, check)

    def function(
        self, name: str, code: tree.Code, names: Names, mutable: list[tree.Port], check: str
    ) -> list[str]:
        tokens = [p for p in mutable if self.layout.type_of(p.type, self.cls).token]
        lines = []
        if not tokens:
            lines += [
                f"static void {name}(void *instance) {{",
                f"  {self.self_t} *self = instance;",
            ]
            lines += [check] * bool(check)
            lines += [*names.lines, *code_lines(code), "}"]
            return lines
        # The body can return early. Therefore the body becomes a function of its own, and its
        # caller releases the tokens.
        kinds = [self.layout.type_of(p.type, self.cls) for p in tokens]
        given = "".join(
            f", {k.port} **{p.name}" if p.width is not None else f", {k.port} *{p.name}"
            for p, k in zip(tokens, kinds, strict=False)
        )
        limit = ", weft_rx_limit_here, weft_rx_deadline_here" if check else ""
        if check:
            given += ", weft_rx_limit weft_rx_limit_here, int64_t *weft_rx_deadline_here"
        lines.append(f"static void {name}_body({self.self_t} *self, void *instance{given}) {{")
        lines += [line for n, line in names.by_name if n not in {p.name for p in tokens}]
        lines += [*code_lines(code), "}"]
        lines += [f"static void {name}(void *instance) {{", f"  {self.self_t} *self = instance;"]
        lines += [check] * bool(check)
        for port, kind in zip(tokens, kinds, strict=False):
            n = port.name
            if port.width is not None:
                lines.append(f"  int {n}_width = self->_lf_{n}_width;")
                lines.append(f"  {kind.port} {n}_copy[{n}_width], *{n}[{n}_width];")
                copy = f"{n}_copy[i] = *self->_lf_{n}[i]; {n}[i] = &{n}_copy[i];"
                own = f"weft_rx_make_mutable({n}[i], false);"
                lines.append(f"  for (int i = 0; i < {n}_width; i++) {{ {copy} {own} }}")
            else:
                lines.append(f"  {kind.port} {n}_copy = *self->_lf_{n}, *{n} = &{n}_copy;")
                lines.append(f"  weft_rx_make_mutable({n}, self->_lf_{n}_last);")
        lines.append(
            f"  {name}_body(self, instance{''.join(', ' + p.name for p in tokens)}{limit});"
        )
        for port in tokens:
            n = port.name
            if port.width is not None:
                lines.append(
                    f"  for (int i = 0; i < {n}_width; i++) weft_rx_release_mutable({n}[i]);"
                )
            else:
                lines.append(f"  weft_rx_release_mutable({n});")
        lines.append("}")
        return lines

    def bodyless(self, name: str, decl: tree.Reaction, names: Names, check: str) -> list[str]:
        """Returns the function of a reaction without a body. The function calls the C function that
        has the reaction's name, which the program must provide.
        """
        if not decl.name:
            return [f"static void {name}(void *instance) {{ (void)instance; }}"]
        arguments, kinds = ["self"], [f"{self.self_t} *self"]
        before = []
        for ref in [*decl.triggers, *decl.sources, *decl.effects]:
            if ref.kind != "plain":
                continue
            n = ref.variable
            if ref.container:
                port = self.uses.children[ref.container][n]
                kind = self.layout.type_of(port.type, self.uses.child_class[ref.container]).port
                if ref.container in self.uses.banks and port.width is None:
                    before.append(f"  {kind} *_lf_arg{len(arguments)}[{ref.container}_width + 1];")
                    before.append(
                        f"  for (int i = 0; i < {ref.container}_width; i++) _lf_arg{len(arguments)}[i] = {ref.container}[i].{n};"
                    )
                    arguments.append(f"_lf_arg{len(arguments)}")
                    kinds.append(f"{kind} **{n}")
                elif ref.container in self.uses.banks:
                    before.append(f"  {kind} **_lf_arg{len(arguments)}[{ref.container}_width + 1];")
                    before.append(
                        f"  for (int i = 0; i < {ref.container}_width; i++) _lf_arg{len(arguments)}[i] = {ref.container}[i].{n};"
                    )
                    arguments.append(f"_lf_arg{len(arguments)}")
                    kinds.append(f"{kind} ***{n}")
                else:
                    arguments.append(f"{ref.container}.{n}")
                    kinds.append(f"{kind} **{n}" if port.width is not None else f"{kind} *{n}")
            elif n in self.uses.ports:
                port = self.uses.ports[n]
                kind = self.layout.type_of(port.type, self.cls).port
                arguments.append(n)
                kinds.append(f"{kind} **{n}" if port.width is not None else f"{kind} *{n}")
            else:
                for placed in self.cls.of(tree.Action):
                    action = placed.decl
                    if isinstance(action, tree.Action) and action.name == n:
                        arguments.append(n)
                        kinds.append(f"{self.action_name(action, placed.mode)}_t *{n}")
                if any(dog.name == n for dog, _ in watchdogs_of(self.cls)):
                    arguments.append(n)
                    kinds.append(f"weft_rx_watchdog *{n}")
        self.externs.append(f"void {decl.name}({', '.join(kinds)});")
        lines = [f"static void {name}(void *instance) {{", f"  {self.self_t} *self = instance;"]
        lines += [check] * bool(check)
        return [*lines, *names.lines, *before, f"  {decl.name}({', '.join(arguments)});", "}"]


class Names:
    """The local variables that a reaction's body sees."""

    def __init__(self, bodies: Bodies, decl: tree.Reaction, mode: str) -> None:
        self.by_name: list[tuple[str, str]] = []
        self.ports: dict[str, tree.Port] = {}
        cls, layout, uses = bodies.cls, bodies.layout, bodies.uses
        seen: set[str] = set()
        refs = [*decl.triggers, *decl.sources, *decl.effects]
        if not decl.triggers and not decl.sources:
            refs = [*(tree.Ref(n) for n, p in cls.ports.items() if p.is_input), *refs]
        for ref in refs:
            name = ref.container or ref.variable
            if ref.kind == "builtin" or name in seen:
                continue
            seen.add(name)
            if ref.container:
                self.child(bodies, name)
            elif ref.kind in ("reset", "history") or (
                name in {m.name for m in cls.modes} and name not in cls.ports
            ):
                at = [m.name for m in cls.modes].index(name)
                how = "WEFT_RX_HISTORY" if ref.kind == "history" else "WEFT_RX_RESET"
                self.add(
                    name,
                    f"  weft_rx_mode *const {name} = &self->_lf_modes[{at}]; enum {{ _lf_{name}_change_type = {how} }};",
                )
            elif name in uses.ports:
                port = uses.ports[name]
                self.ports[name] = port
                self.port(bodies, name, port)
            else:
                for placed in cls.of(tree.Action):
                    action = placed.decl
                    if (
                        isinstance(action, tree.Action)
                        and action.name == name
                        and placed.mode in ("", mode)
                    ):
                        kind = f"{bodies.action_name(action, placed.mode)}_t"
                        self.add(name, f"  {kind} *{name} = &self->_lf_{placed.mode}_{name};")
                        if bodies.held(action):
                            made = f"{name}->token = weft_rx_value_token(&{name}->action)"
                            let_go = "__attribute__((cleanup(weft_rx_let_go), unused))"
                            self.add(name, f"  weft_rx_token *_lf_{name}_held {let_go} = {made};")
                        break
                for dog, place in watchdogs_of(cls):
                    if dog.name == name and place in ("", mode):
                        made = f"weft_rx_watchdog *{name} __attribute__((unused))"
                        self.add(name, f"  {made} = &self->_lf_{place}_{name};")
                        break
        self.layout = layout

    @property
    def lines(self) -> list[str]:
        return [line for _, line in self.by_name]

    def add(self, name: str, line: str) -> None:
        self.by_name.append((name, line))

    def child(self, bodies: Bodies, name: str) -> None:
        ref = f"struct {bodies.cls.key}_{name}_ref"
        if name in bodies.uses.banks:
            self.add(
                name,
                f"  {ref} *{name} = self->_lf_{name}; int {name}_width = self->_lf_{name}_width;",
            )
        else:
            self.add(name, f"  const {ref} {name} = self->_lf_{name};")

    def port(self, bodies: Bodies, name: str, port: tree.Port) -> None:
        kind = bodies.layout.type_of(port.type, bodies.cls)
        if port.width is not None:
            self.add(name + "_width", f"  int {name}_width = self->_lf_{name}_width;")
            if port.mutable and not kind.token:
                self.add(
                    name, f"  {kind.port} {name}_copy[{name}_width + 1], *{name}[{name}_width + 1];"
                )
                self.add(
                    name,
                    f"  for (int i = 0; i < {name}_width; i++) {{ {name}_copy[i] = *self->_lf_{name}[i]; {name}[i] = &{name}_copy[i]; }}",
                )
            else:
                self.add(name, f"  {kind.port} **{name} = self->_lf_{name};")
        elif not port.is_input:
            self.add(name, f"  {kind.port} *{name} = &self->_lf_{name};")
        elif port.mutable and not kind.token:
            self.add(
                name, f"  {kind.port} {name}_copy = *self->_lf_{name}, *{name} = &{name}_copy;"
            )
        else:
            self.add(name, f"  {kind.port} *{name} = self->_lf_{name};")


def watchdogs_of(cls: Class) -> list[tuple[tree.Watchdog, str]]:
    """Returns the watchdogs of a class, each with the mode that contains it ("" for none)."""
    found = ((placed.decl, placed.mode) for placed in cls.of(tree.Watchdog))
    return [(decl, mode) for decl, mode in found if isinstance(decl, tree.Watchdog)]


def updates(decl: tree.Reaction) -> bool:
    """Returns whether the reaction's body sets its deadline."""
    return decl.code is not None and "lf_update_deadline" in decl.code.text


def declared(kind: tree.Type | None, name: str, cls: Class, init: tree.Expr | None) -> str:
    """Returns a C declaration of `name`, such as `int x`, `int x[3]` or `int *x`."""
    if kind is not None and kind.array:
        return f"{base_of(kind, cls)} {name}[{kind.array}]"
    return f"{c_type(kind, cls.types, init)} {name}"


__all__ = ["HERE", "Bodies", "checked_type", "code_lines", "declared"]
