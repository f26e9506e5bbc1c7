"""Turns a model into one C file that includes weft_mcu/lf.h, as described in mcu/REACTORS.md.

Invariants
- The same model gives the same text.
- The tables of a small program are initialised statically. If the tables have more than STATIC
  entries, the function `weft_rx_wire` fills them in loops when the program starts.
- Initial values that are code (`{= … =}`) are computed when the program starts: parents before
  children, in the order of declaration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft_lf import tree
from weft_lf.bodies import HERE, Bodies, code_lines
from weft_lf.enclaves import enclaves
from weft_lf.fills import Fills
from weft_lf.layout import base_of
from weft_lf.model import (
    ActionOf,
    Channel,
    Delay,
    Instance,
    Model,
    ModeOf,
    ReactionOf,
    Value,
    driver,
)
from weft_lf.modes import Modes
from weft_lf.oracle import name_of
from weft_lf.programs import program
from weft_lf.schedule import planned
from weft_lf.ticks import HOST, Tick
from weft_lf.timers import Timers
from weft_lf.values import c_expr, c_type, resolved

STATIC = 1500
POLICIES = {
    "defer": "WEFT_RX_DEFER",
    "drop": "WEFT_RX_DROP",
    "replace": "WEFT_RX_REPLACE",
    "update": "WEFT_RX_UPDATE",
}


@dataclass
class Options:
    """The options of a build that the program's own text does not decide."""

    device: bool = False
    trace: bool = False
    tick: Tick = HOST
    table: bool = True  # use a static schedule, if the program's timing is known
    sdk: bool = False  # the program is for a device and uses the pico-sdk


class Emitter:
    """Writes the C of one program. `fills` collects the contents of its tables, `helpers` its
    functions, and `start` the code that runs when it starts."""

    def __init__(self, model: Model, options: Options) -> None:
        self.model, self.options = model, options
        found = enclaves(model, options.device)
        self.layout, self.schedule = planned(model, found, options.tick, options.table)
        self.fills = Fills()
        self.start: list[str] = []
        self.helpers: list[str] = []
        self.lists: dict[tuple[int, ...], int] = {}
        self.list_size = 1
        self.arrays = 0
        self.ends: dict[tuple[str, int], tuple[str, tuple[int, ...]]] = {}
        self.starts: list[list[str]] = [[] for _ in range(self.layout.enclaves.count)]
        self.timers = Timers(self)
        self.level_count = 0
        self.bodies = {cls: Bodies(self.layout, cls) for cls in model.classes}

    # --- triggers ---------------------------------------------------------------------------------

    def trigger(self, key: object) -> tuple[str, tuple[int, ...]]:
        """A WEFT_RX_TRIG(at, mask) with the reactions that `key` triggers: a template and the
        numbers that fill it."""
        return self.trigger_of(tuple(self.layout.readers.get(key, ())))

    def trigger_of(self, numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        if not numbers:
            return "WEFT_RX_TRIG(0, 0)", ()
        if self.layout.most > 64 and len(numbers) == 1:  # this form is quicker and needs no list
            return "WEFT_RX_TRIG_ONE({})", numbers
        at = self.lists.get(numbers)
        if at is None:
            at = self.lists[numbers] = self.list_size
            for place, number in enumerate(numbers):
                self.fills.put("weft_rx_triggers", at + place, "", "{}", number)
            self.fills.put("weft_rx_triggers", at + len(numbers), "", "WEFT_RX_END")
            self.list_size += len(numbers) + 1
        if self.layout.most <= (32 if self.options.device else 64):
            return "WEFT_RX_TRIG({}, " + hex(sum(1 << n for n in numbers)) + (
                "u" if self.options.device else "ull"
            ) + ")", (at,)
        return "WEFT_RX_TRIG({}, 0)", (at,)

    def mode_pointer(self, mode: ModeOf | None) -> str:
        return "0" if mode is None else f"&lf_modes[{self.layout.mode_slot[mode]}]"

    # --- the contents of the tables ---------------------------------------------------------------

    def declare(self) -> None:
        layout, fills = self.layout, self.fills
        for cls, rows in layout.of.items():
            fills.array(f"lf_s_{cls.key}", f"{cls.key}_self_t", len(rows))
        for kind in layout.types.values():
            for name, c, size in (
                ("pool", kind.port, kind.pool),
                ("pointers", f"{kind.port} *", 0),
                ("delay", f"lf_delay_{kind.name}_t", kind.delays),
            ):
                if size or name == "pointers":
                    fills.array(f"lf_{name}_{kind.name}", c, size)
        for cls, uses in layout.uses.items():
            for child in (c for c in uses.children if c in uses.banks):
                fills.array(f"lf_{cls.key}_{child}_refs", f"struct {cls.key}_{child}_ref", 0)
        if layout.modes:
            fills.array("lf_modes", "weft_rx_mode", len(layout.modes))
            fills.array("lf_modal", "weft_rx_modal", len(layout.modal))
        fills.array("weft_rx_reactions", "weft_rx_reaction", layout.count, table=True, public=True)
        fills.array("weft_rx_triggers", "weft_rx_index", 1, table=True, public=True)
        fills.put("weft_rx_triggers", 0, "", "WEFT_RX_END")

    def fill(self) -> None:
        self.declare()
        layout, fills = self.layout, self.fills
        for made in self.model.instances:
            self.instance(made)
        for made in self.model.instances:
            self.references(made)
        for channel, at in layout.pooled.items():
            kind = layout.port_type(channel)
            self.out_port(f"lf_pool_{kind.name}", at, "", channel)
        for delay in self.model.delays:
            if self.schedule is None:
                self.delay(delay, layout.row[delay])
            else:
                self.hold(delay, layout.row[delay], self.schedule.rings[delay])
        for one in self.model.reactions:
            made = one.instance
            own = [r for r in made.reactions if r.forward is None]
            if one.forward is None:
                at = own.index(one)
                text = f"{{{{{made.cls.key}_r{at}, &lf_s_{made.cls.key}[{{}}]}}}}"
                fills.put(
                    "weft_rx_reactions",
                    layout.row[one],
                    "",
                    text,
                    layout.slot[made],
                    cast="weft_rx_reaction",
                )
            else:
                fills.put(
                    "weft_rx_reactions",
                    layout.row[one],
                    "",
                    f"{{{{lf_forward_{one.order}, 0}}}}",
                    cast="weft_rx_reaction",
                )
                self.forward(one.order, one.forward.source, one.forward.sink)
        if self.schedule is not None:
            self.timers.table(self.schedule)
        else:
            self.timers.fill()
        if layout.modes:
            Modes(self).fill()
        self.ends = {
            (what, number): self.trigger((what, None, number))
            for what in ("startup", "shutdown")
            for number in range(layout.enclaves.count)
        }
        fills.arrays["weft_rx_triggers"].size = self.list_size
        if self.workers > 1:
            self.levels()
        if self.options.trace:
            fills.array("weft_rx_names", "const char *const", layout.count, fixed=True, public=True)
            for one in self.model.reactions:
                fills.put(
                    "weft_rx_names",
                    layout.row[one],
                    "",
                    "0" if one.forward else f'"{name_of(one)}"',
                )

    def levels(self) -> None:
        """Writes the index of each level's first reaction. The reactions of one level may run in
        parallel; the delays are the last level."""
        begins = [
            r.order
            for r, before in self.with_earlier()
            if before is None or before.level != r.level
        ]
        if self.model.delays:
            begins.append(len(self.model.reactions))
        self.level_count = len(begins)
        self.fills.array(
            "weft_rx_levels", "weft_rx_index", len(begins) + 1, table=True, public=True
        )
        for number, first in enumerate([*begins, self.layout.count]):
            self.fills.put("weft_rx_levels", number, "", "{}", first)

    def with_earlier(self) -> list[tuple[ReactionOf, ReactionOf | None]]:
        reactions = self.model.reactions
        return list(zip(reactions, [None, *reactions], strict=False))

    def forward(self, order: int, source: Channel, sink: Channel) -> None:
        """Writes the function of a reaction that does the work of a connection in a mode."""
        (left, n), (right, m) = self.layout.address(sink), self.layout.address(source)
        kind = self.layout.port_type(sink)
        call = "weft_rx_set_token" if kind.token else "weft_rx_set"
        what = "token" if kind.token else "value"
        self.helpers += [
            f"static void lf_forward_{order}(void *instance) {{",
            "  (void)instance;",
            f"  {call}({left.format(*n)}, ({right.format(*m)})->{what});",
            "}",
        ]

    def out_port(self, array: str, index: int, path: str, channel: Channel) -> None:
        kind = self.layout.port_type(channel)
        text, numbers = self.trigger(channel)
        init = (
            f"WEFT_RX_TOKEN_OUT({text}, sizeof({kind.element}))"
            if kind.token
            else f"WEFT_RX_OUT({text})"
        )
        self.fills.put(array, index, path, init, *numbers, cast=kind.port)

    def instance(self, made: Instance) -> None:
        cls, fills, layout = made.cls, self.fills, self.layout
        array, slot = f"lf_s_{cls.key}", layout.slot[made]
        bodies = self.bodies[cls]
        if bodies.named():
            fills.put(array, slot, "._lf_name", f'"{made.local_name}"')
            fills.put(array, slot, "._lf_full_name", f'"{made.path}"')
        for name, param in bodies.params():
            if (name == "bank_index" and name not in cls.params) or (
                name == "bank_index" and made.index is not None
            ):
                fills.put(array, slot, ".bank_index", "{}", made.index or 0)
                continue
            self.value(array, slot, name, param.type, made.values[name], made)
        for placed in cls.of(tree.State):
            decl = placed.decl
            assert isinstance(decl, tree.State)
            if decl.init is not None:
                self.value(array, slot, decl.name, decl.type, resolved(decl.init, made), made)
        for one in made.actions.values():
            self.action(made, one)
        for at, _ in bodies.varying_deadlines:
            fills.put(array, slot, f"._lf_deadline_{at}", "{}LL", made.reactions[at].deadline or 0)
        if cls.modes:
            first = layout.mode_slot[next(iter(made.modes.values()))]
            fills.put(array, slot, "._lf_modes", "&lf_modes[{}]", first)

    def value(
        self, array: str, slot: int, name: str, kind: tree.Type | None, value: Value, made: Instance
    ) -> None:
        """Sets the initial value of `array[slot].name`."""
        value = resolved(value.expr, value.scope, value.index)
        expr = value.expr
        cls = made.cls
        if (
            isinstance(expr, tree.Listing)
            and len(expr.items) == 1
            and (expr.opening == "(" or self.has_code(value))
            and (kind is None or (kind.array is None and not kind.stars))
        ):
            value = resolved(expr.items[0], value.scope, value.index)
            expr = value.expr
        if self.has_code(value):
            self.computed(array, slot, name, kind, value, made)
            return
        if not isinstance(expr, tree.Listing):
            text = c_expr(value)
            if re.fullmatch(r"-?\d{1,9}", text):
                self.fills.put(array, slot, f".{name}", "{}", int(text))
            else:
                self.fills.put(array, slot, f".{name}", _braced(text))
            return
        text = c_expr(value)
        if kind is not None and kind.array is not None:
            base = base_of(kind, cls)
            own = cls.params.get(name) is None
            if own and (
                kind.array or kind.array == ""
            ):  # a state variable: its struct contains the elements
                for at, item in enumerate(expr.items):
                    self.fills.put(
                        array,
                        slot,
                        f".{name}[{at}]",
                        _braced(c_expr(Value(item, value.scope, value.index))),
                    )
                return
            self.fills.put(array, slot, f".{name}", self.constant(base, text, len(expr.items)))
        elif kind is not None and kind.stars:
            base = base_of(kind, cls)[:-1]
            self.fills.put(array, slot, f".{name}", self.constant(base, text, len(expr.items)))
        else:
            self.fills.put(array, slot, f".{name}", _braced(text), cast=c_type(kind, cls.types))

    def constant(self, base: str, text: str, count: int) -> str:
        """The name of a C array with the contents `text`; equal contents share one array."""
        line = f"{base} @[{max(count, 1)}] = {text};"
        for at, helper in enumerate(self.helpers):
            if (
                helper.startswith("static ")
                and re.sub(r"\blf_list_\d+", "@", helper) == f"static {line}"
            ):
                return re.search(r"\blf_list_\d+", self.helpers[at]).group()  # type: ignore[union-attr]
        self.arrays += 1
        name = f"lf_list_{self.arrays}"
        self.helpers.append("static " + line.replace("@", name, 1))
        return name

    def has_code(self, value: Value) -> bool:
        value = resolved(value.expr, value.scope, value.index)
        if isinstance(value.expr, tree.Code):
            return True
        if isinstance(value.expr, tree.Listing):
            return any(
                self.has_code(Value(item, value.scope, value.index)) for item in value.expr.items
            )
        return False

    def computed(
        self, array: str, slot: int, name: str, kind: tree.Type | None, value: Value, made: Instance
    ) -> None:
        """Adds code that computes the initial value of `array[slot].name` when the program starts.
        Code in the value sees `self` and the parameters of the reactor in which it was written."""
        items = value.expr.items if isinstance(value.expr, tree.Listing) else []
        lines, text = ["  {"], c_expr(value)
        if items and not any(isinstance(i, tree.Listing) for i in items):
            parts = []
            for at, one in enumerate(resolved(i, value.scope, value.index) for i in items):
                if isinstance(one.expr, tree.Code):
                    inside = " ".join(self.around_code(one, made))
                    lines.append(f"    __auto_type lf_{at} = ({{ {inside} ({c_expr(one)}); }});")
                    parts.append(f"lf_{at}")
                else:
                    parts.append(c_expr(one))
            text = f"{{{', '.join(parts)}}}"
        else:
            lines += ["    " + line for line in self.around_code(value, made)]
        target = f"{array}[{slot}].{name}"
        if items:
            base = base_of(kind, made.cls) if kind is not None else "int"
            count = len(items)
            if kind is not None and kind.array is None and kind.stars:
                base = base[:-1]  # the type of the elements, without the pointer's star
            if cls_param(made, name) or (kind is not None and kind.stars):
                lines.append(
                    f"    static {base} list[{count}]; const {base} values[] = {text}; memcpy(list, values, sizeof values); {target} = list; }}"
                )
            elif kind is not None and kind.array is None:
                lines.append(f"    {target} = ({c_type(kind, made.cls.types)}){text}; }}")
            else:
                lines.append(
                    f"    const {base} values[] = {text}; memcpy({target}, values, sizeof values); }}"
                )
        else:
            span = value.expr.span
            file = span.file.replace("\\", "\\\\").replace('"', '\\"')
            lines += [
                f'#line {span.line} "{file}"' if span.line else "",
                f"    {target} = ({text}); }}",
                HERE,
            ]
        self.start += lines

    def around_code(self, value: Value, made: Instance) -> list[str]:
        """C declarations for the code in `value`: `self` and the parameters that it names."""
        scope, text = value.scope or made, c_expr(value)
        key = scope.cls.key
        lines = [f"{key}_self_t *self = &lf_s_{key}[{self.layout.slot[scope]}]; (void)self;"]
        if re.search(r"\bbank_index\b", re.sub(r"self\s*->\s*\w+", "", text)):
            index = value.index if value.index is not None else scope.index or 0
            lines.append(f"const int bank_index = {index};")
        for param, _ in self.bodies[scope.cls].params():
            if param != "bank_index" and re.search(rf"(?<!->)\b{re.escape(param)}\b", text):
                lines.append(f"__auto_type {param} = self->{param};")
        return lines

    def action(self, made: Instance, one: ActionOf) -> None:
        decl, layout = one.decl, self.layout
        text, numbers = self.trigger(one)
        spacing, policy = one.spacing or 0, POLICIES[one.policy]
        home = layout.enclave(made)
        origin = f"WEFT_RX_PHYSICAL_IN({home})" if decl.physical else "WEFT_RX_LOGICAL"
        rest = f"{text}, {one.delay}LL, {spacing}LL, {policy}, {origin}"
        name = self.bodies[made.cls].action_name(decl, one.mode.decl.name if one.mode else "")
        if decl.type is None:
            init = f"WEFT_RX_ACTION_INIT({rest})"
        else:
            kind = layout.type_of(decl.type, made.cls)
            init = (
                f"WEFT_RX_TOKEN_ACTION_INIT({kind.element}, {rest})"
                if kind.token
                else f"WEFT_RX_VALUE_INIT({kind.text}, {rest})"
            )
        slot = layout.slot[made]
        path = f"._lf_{one.mode.decl.name if one.mode else ''}_{decl.name}"
        self.fills.put(f"lf_s_{made.cls.key}", slot, path, init, *numbers, cast=f"{name}_t")
        around = layout.around(one)
        if around is not None:
            self.start.append(
                f"  lf_s_{made.cls.key}[{slot}]{path}.action.mode = {self.mode_pointer(around)};"
            )

    def references(self, made: Instance) -> None:
        """Fills the members through which the bodies of an instance reach its own ports and those
        of contained reactors."""
        cls, layout, fills = made.cls, self.layout, self.fills
        uses, array, slot = layout.uses[cls], f"lf_s_{cls.key}", layout.slot[made]
        for name, port in uses.ports.items():
            channels = made.ports[name].channels
            if port.width is not None:
                self.pointers(
                    array,
                    slot,
                    f"._lf_{name}",
                    f"._lf_{name}_width",
                    channels,
                    layout.type_of(port.type, cls),
                )
            elif port.is_input:
                text, numbers = layout.address(channels[0])
                fills.put(array, slot, f"._lf_{name}", text, *numbers)
                if port.mutable and layout.mutable_count.get(driver(channels[0]), 0) <= 1:
                    fills.put(array, slot, f"._lf_{name}_last", "true")
            elif name in uses.written:
                self.out_port(array, slot, f"._lf_{name}", channels[0])
        for child, ports in uses.children.items():
            members = made.children[child]
            if child in uses.banks:
                table = f"lf_{cls.key}_{child}_refs"
                first = fills.arrays[table].size
                fills.arrays[table].size += len(members)
                fills.put(
                    array,
                    slot,
                    f"._lf_{child}",
                    f"&{table}[{{}}]" if members else "0",
                    *([first] if members else []),
                )
                fills.put(array, slot, f"._lf_{child}_width", "{}", len(members))
                for at, member in enumerate(members):
                    for name, port in ports.items():
                        self.seen(table, first + at, f".{name}", member, name, port)
            else:
                for name, port in ports.items():
                    self.seen(array, slot, f"._lf_{child}.{name}", members[0], name, port)

    def seen(
        self, array: str, index: int, path: str, member: Instance, name: str, port: tree.Port
    ) -> None:
        channels = member.ports[name].channels
        kind = self.layout.type_of(port.type, member.cls)
        if port.width is not None:
            self.pointers(array, index, path, path + "_width", channels, kind)
        else:
            text, numbers = self.layout.address(channels[0])
            self.fills.put(array, index, path, text, *numbers)

    def pointers(
        self, array: str, index: int, path: str, width: str, channels: list[Channel], kind: object
    ) -> None:
        name = kind.name  # type: ignore[attr-defined]
        table = self.fills.arrays[f"lf_pointers_{name}"]
        if channels:
            self.fills.put(array, index, path, f"&lf_pointers_{name}[{{}}]", table.size)
        self.fills.put(array, index, width, "{}", len(channels))
        for channel in channels:
            text, numbers = self.layout.address(channel)
            self.fills.put(f"lf_pointers_{name}", table.size, "", text, *numbers)
            table.size += 1

    def delay(self, delay: Delay, number: int) -> None:
        layout = self.layout
        kind = layout.port_type(delay.sinks[0])
        at = layout.delay_slot[delay]
        text, numbers = self.trigger(delay)
        source, places = layout.address(delay.source)
        how = "WEFT_RX_PHYSICAL_CONNECTION" if delay.physical else "WEFT_RX_AFTER"
        array = f"lf_delay_{kind.name}"
        to = layout.enclaves.arrives.get(delay, 0)
        init = f"WEFT_RX_DELAY_INIT({text}, {source}, {delay.interval}LL, {how}, {to})"
        self.fills.put(array, at, "", init, *numbers, *places, cast=f"lf_delay_{kind.name}_t")
        call = f"{{{{weft_rx_delay_send, &{array}[{{}}].delay}}}}"
        self.fills.put("weft_rx_reactions", number, "", call, at, cast="weft_rx_reaction")
        around = layout.around(delay)
        if around is not None:
            self.start.append(f"  {array}[{at}].delay.mode = {self.mode_pointer(around)};")

    def hold(self, delay: Delay, number: int, capacity: int) -> None:
        """Writes a delay for a static schedule: a ring of `capacity` values, a reaction that puts
        values into it, and one that takes them out."""
        layout, fills = self.layout, self.fills
        kind = layout.port_type(delay.sinks[0])
        at = layout.delay_slot[delay]
        array, values, due = (f"lf_{part}_{kind.name}" for part in ("delay", "held", "due"))
        if values not in fills.arrays:
            fills.array(values, f"__typeof__((({kind.port} *)0)->value)", 0)
            fills.array(due, "weft_rx_time", 0)
        first = fills.arrays[values].size
        fills.arrays[values].size = fills.arrays[due].size = first + capacity
        text, numbers = self.trigger(delay)
        source, places = layout.address(delay.source)
        rest = f"&{array}[{{}}].port, {delay.interval}LL, &{values}[{{}}], &{due}[{{}}], {{}}"
        init = f"WEFT_RX_HOLD_INIT({text}, {source}, {rest})"
        own = (*numbers, *places, at, first, first, capacity)
        fills.put(array, at, "", init, *own, cast=f"lf_delay_{kind.name}_t")
        for row, function in (
            (layout.arrival[delay], "weft_rx_hold_arrive"),
            (number, "weft_rx_hold_send"),
        ):
            call = f"{{{{{function}, &{array}[{{}}].hold}}}}"
            fills.put("weft_rx_reactions", row, "", call, at, cast="weft_rx_reaction")

    # --- the text ---------------------------------------------------------------------------------

    def text(self, header: str = "") -> tuple[str, str]:
        """Returns the C file and the header for the program's own C files, which is empty if the
        program has none."""
        self.fill()
        static = self.fills.count <= STATIC
        types, bodies, externs = self.types()
        defines = self.defines(static)
        lines = ["/* Made by `weft lf` from " + self.model.program.path.name + ". */", *defines]
        declarations = ['#include "weft_mcu/lf.h"', "#include <string.h>", *types, *externs]
        if header and externs:
            lines.append(f'#include "{header}"')
        else:
            lines += declarations
        lines += [*self.nones(), *bodies]
        if static:
            lines += [*self.fills.declarations(), *self.helpers, *self.fills.static()]
        else:
            lines += [*self.fills.plain(), *self.helpers, *self.fills.static(fixed_alone=True)]
            lines += ["void weft_rx_wire(void) {", *self.fills.statements(), "}"]
        lines += program(self)
        guard = "WEFT_LF_" + re.sub(r"\W", "_", self.model.program.name).upper() + "_H"
        shared = [
            f"#ifndef {guard}",
            f"#define {guard}",
            *[f"#ifndef {d.split()[1]}\n{d}\n#endif" for d in defines],
        ]
        shared += [*declarations, "#endif"]
        return _numbered(lines, f"{self.model.program.name}.c"), _numbered(
            shared, header
        ) if externs else ""

    def defines(self, static: bool) -> list[str]:
        layout, config = self.layout, self.model.program.config
        actions = [a for made in self.model.instances for a in made.actions.values()]
        tokens = any(t.token for t in layout.types.values())
        physical = any(a.decl.physical for a in actions)
        events, delays = 0, 0 if self.schedule is not None else len(self.model.delays)
        if actions or delays:
            events = 4 * (len(actions) + delays) + 8
        found = {
            "WEFT_RX_REACTIONS": max(layout.most, 1),
            "WEFT_RX_TIMERS": self.timers.count,
            "WEFT_RX_STRICT": int(self.options.device and events > 0),
            "WEFT_RX_STATIC": int(self.schedule is not None),
            "WEFT_RX_FAST": int(self.options.device and config.fast),
            "WEFT_RX_EVENTS": events,
            "WEFT_RX_PHYSICAL": int(physical),
            "WEFT_RX_DELAYS": int(delays > 0),
            "WEFT_RX_TOKENS": events * 2 + 8 if tokens else 0,
            "WEFT_RX_MODES": int(bool(layout.modes)),
            "WEFT_RX_TRACE": int(self.options.trace),
            "NUMBER_OF_WORKERS": config.threads,
            "WEFT_RX_WORKERS": self.workers if self.workers > 1 else 0,
            "WEFT_RX_ENCLAVES": layout.enclaves.count if layout.enclaves.count > 1 else 0,
            "WEFT_RX_LINKS": len(layout.enclaves.links()),
            "LOG_LEVEL": ("error", "warn", "info", "log", "debug").index(config.logging),
        }
        lines = [
            f"#define {name} {value}"
            for name, value in found.items()
            if (value or name == "LOG_LEVEL") and name not in config.definitions
        ]
        return lines if static else [*lines, "#define WEFT_RX_TABLE"]

    def types(self) -> tuple[list[str], list[str], list[str]]:
        """Returns the lines of three parts: types with preambles; functions; and prototypes of the
        C functions that the program provides."""
        types: list[str] = []
        functions: list[str] = []
        externs: list[str] = []
        known: set[str] = set()
        done: set[int] = set()

        def preamble(code: tree.Code) -> None:
            if id(code) not in done:
                done.add(id(code))
                types.extend(code_lines(code))

        for loaded in self.model.program.files:
            for one in loaded.tree.preambles:
                preamble(one.code)
        for cls in self.model.classes:
            bodies = self.bodies[cls]
            for placed in cls.of(tree.Preamble):
                assert isinstance(placed.decl, tree.Preamble)
                preamble(placed.decl.code)
            types.append(f"typedef struct {bodies.self_t} {bodies.self_t};")
            for text in [self.layout.type_of(p.type, cls).text for p in cls.ports.values()]:
                if text in known:
                    continue
                known.add(text)
                kind = self.layout.types[text]
                value = text
                array = re.fullmatch(r"(.*)\[(\d+)\]", text)
                if array:
                    types.append(
                        f"typedef {array.group(1)} lf_array_{kind.name}[{array.group(2)}];"
                    )
                    value = f"lf_array_{kind.name}"
                made = "WEFT_RX_TOKEN_PORT" if kind.token else "WEFT_RX_PORT"
                types.append(f"typedef {made}({value}) {kind.port};")
                if kind.delays:
                    made = "WEFT_RX_DELAY" if self.schedule is None else "WEFT_RX_HOLD"
                    types.append(f"typedef {made}({kind.port}) lf_delay_{kind.name}_t;")
            types += bodies.aliases() + bodies.refs() + bodies.struct()
            functions += bodies.functions()
            externs += bodies.externs
        return types, functions, externs

    def nones(self) -> list[str]:
        return [
            f"static {kind.port} lf_no_{kind.name};"
            for kind in self.layout.types.values()
            if kind.used_none
        ]

    @property
    def workers(self) -> int:
        """The number of threads that share the reactions of a level. It is 1 if there are several
        enclaves, because each enclave has a thread of its own."""
        return 1 if self.layout.enclaves.count > 1 else self.model.program.config.threads


def cls_param(made: Instance, name: str) -> bool:
    return name in made.cls.params


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _numbered(lines: list[str], name: str) -> str:
    """The lines as one text, with each mark `HERE` replaced by a `#line` for the line after it."""
    text = "\n".join(lines) + "\n"
    out = []
    for number, line in enumerate(text.split("\n"), 1):
        out.append(f'#line {number + 1} "{name}"' if line == HERE else line)
    return "\n".join(out)


def emit(model: Model, options: Options | None = None, header: str = "") -> tuple[str, str]:
    """Returns the C file of a program, and the header for the program's own C files.

    Args:
        header: the path by which the C file includes the header.

    Returns:
        The two texts. The header is empty if the program has no C functions of its own.
    """
    return Emitter(model, options or Options()).text(header)


__all__ = ["Options", "emit"]
