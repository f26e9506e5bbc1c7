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

from weft_lf import tree
from weft_lf.bodies import HERE, checked_type, code_lines, watchdogs_of
from weft_lf.emission import Emission, Options
from weft_lf.model import (
    ActionOf,
    Channel,
    Class,
    Delay,
    Instance,
    Model,
    ReactionOf,
    WatchdogOf,
)
from weft_lf.modes import Modes
from weft_lf.oracle import name_of
from weft_lf.programs import program
from weft_lf.timers import Timers
from weft_lf.values import resolved

STATIC = 1500
POLICIES = {
    "defer": "WEFT_RX_DEFER",
    "drop": "WEFT_RX_DROP",
    "replace": "WEFT_RX_REPLACE",
    "update": "WEFT_RX_UPDATE",
}


class Emitter(Emission):
    """Writes the C of one program."""

    def __init__(self, model: Model, options: Options) -> None:
        super().__init__(model, options)
        self.timers = Timers(self)

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
        if any(made.watchdogs for made in self.model.instances):
            fills.array("weft_rx_watchdogs", "weft_rx_watchdog *WEFT_RX_TABLE", 0, public=True)
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
            self.reaction(one)
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
        if self.options.trace or self.model.program.config.tracing:
            self.names()

    def reaction(self, one: ReactionOf) -> None:
        """Writes the entry of a reaction in the table of reactions: its function and the instance
        to which it belongs."""
        if one.forward is None:
            made = one.instance
            at = [r for r in made.reactions if r.forward is None].index(one)
            text = f"{{{{{made.cls.key}_r{at}, &lf_s_{made.cls.key}[{{}}]}}}}"
            numbers = [self.layout.slot[made]]
        else:
            text = f"{{{{lf_forward_{one.order}, 0}}}}"
            numbers = []
            self.forward(one.order, one.forward.source, one.forward.sink)
        self.fills.put(
            "weft_rx_reactions", self.layout.row[one], "", text, *numbers, cast="weft_rx_reaction"
        )

    def names(self) -> None:
        """Writes the names of the reactions, which a trace contains."""
        count = self.layout.count
        self.fills.array("weft_rx_names", "const char *const", count, fixed=True, public=True)
        for one in self.model.reactions:
            text = "0" if one.forward else f'"{name_of(one)}"'
            self.fills.put("weft_rx_names", self.layout.row[one], "", text)

    def levels(self) -> None:
        """Writes the index of each level's first reaction. The reactions of one level can run in
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
        for dog in made.watchdogs.values():
            self.watchdog(made, dog)
        for at, _ in bodies.varying_deadlines:
            fills.put(array, slot, f"._lf_deadline_{at}", "{}LL", made.reactions[at].deadline or 0)
        if cls.modes:
            first = layout.mode_slot[next(iter(made.modes.values()))]
            fills.put(array, slot, "._lf_modes", "&lf_modes[{}]", first)

    def action(self, made: Instance, one: ActionOf) -> None:
        decl, layout = one.decl, self.layout
        text, numbers = self.trigger(one)
        spacing, policy = one.spacing or 0, POLICIES[one.policy]
        if one.spacing == 0 and one.policy != "defer":
            spacing, policy = 1, f"{policy} | WEFT_RX_SAME"
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

    def watchdog(self, made: Instance, one: WatchdogOf) -> None:
        """Writes a watchdog, and its entry in the table of watchdogs."""
        cls, fills = made.cls, self.fills
        array, slot = f"lf_s_{cls.key}", self.layout.slot[made]
        text, numbers = self.trigger(one)
        mode = one.mode.decl.name if one.mode else ""
        at = watchdogs_of(cls).index((one.decl, mode))
        rest = f"{one.timeout}LL, {cls.key}_watchdog_{at}, &{array}[{{}}], &{array}[{{}}]._lf_lock"
        init = f"WEFT_RX_WATCHDOG_INIT({text}, {rest})"
        path = f"._lf_{mode}_{one.decl.name}"
        fills.put(array, slot, path, init, *numbers, slot, slot, cast="weft_rx_watchdog")
        table = fills.arrays["weft_rx_watchdogs"]
        fills.put("weft_rx_watchdogs", table.size, "", f"&{array}[{{}}]{path}", slot)
        table.size += 1
        around = self.layout.around(one)
        if around is not None:
            self.start.append(f"  {array}[{slot}]{path}.action.mode = {self.mode_pointer(around)};")

    def references(self, made: Instance) -> None:
        """Fills the members through which the bodies of an instance reach its own ports and the
        ports of contained reactors."""
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
                if port.mutable and layout.read_once(channels[0]):
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
        values into the ring, and a reaction that takes values out."""
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
        """Returns the C file, and the header for the program's own C files, which is empty if the
        program has none. Preambles of reactors are in the header only if the C file includes the
        header because it contains the functions of reactions. Otherwise these preambles can define
        objects that must exist only once."""
        self.fill()
        static = self.fills.count <= STATIC
        types, bodies, externs = self.types()
        defines = self.defines(static)
        lines = ["/* Made by `weft lf` from " + self.model.program.path.name + ". */", *defines]
        includes = ['#include "weft_mcu/lf.h"', "#include <string.h>", *self.options.headers]
        declarations = [*includes, *types, *externs]
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
        lines += program(self, self.timers.ranges)
        guard = "WEFT_LF_" + re.sub(r"\W", "_", self.model.program.name).upper() + "_H"
        shared = [
            f"#ifndef {guard}",
            f"#define {guard}",
            *[f"#ifndef {d.split()[1]}\n{d}\n#endif" for d in defines],
        ]
        shared += [*(declarations if externs else [*includes, *self.common]), "#endif"]
        wanted = bool(externs) or self.model.program.config.has_own_c
        text = _numbered(shared, header) if wanted else ""
        return _numbered(lines, f"{self.model.program.name}.c"), text

    def defines(self, static: bool) -> list[str]:
        layout, config = self.layout, self.model.program.config
        actions = [a for made in self.model.instances for a in made.actions.values()]
        tokens = any(t.token for t in layout.types.values())
        tokens = tokens or any(b.holds for b in self.bodies.values())
        physical = any(a.decl.physical for a in actions)
        events, delays = 0, 0 if self.schedule is not None else len(self.model.delays)
        watchdogs = sum(len(made.watchdogs) for made in self.model.instances)
        if actions or delays or watchdogs:
            events = 4 * (len(actions) + delays + watchdogs) + 8
        found = {
            "WEFT_RX_REACTIONS": max(layout.most, 1),
            "WEFT_RX_TIMERS": self.timers.count,
            "WEFT_RX_STRICT": int(self.options.device and events > 0),
            "WEFT_RX_STATIC": int(self.schedule is not None),
            "WEFT_RX_FAST": int(self.options.device and config.fast),
            "WEFT_RX_EVENTS": events,
            "WEFT_RX_PHYSICAL": int(physical),
            "WEFT_RX_WATCHDOGS": watchdogs,
            "WEFT_RX_SPACING_0": int(any(a.spacing == 0 and a.policy != "defer" for a in actions)),
            "WEFT_RX_DELAYS": int(delays > 0),
            "WEFT_RX_TOKENS": events * 2 + 8 if tokens else 0,
            "WEFT_RX_MODES": int(bool(layout.modes)),
            "WEFT_RX_TRACE": int(self.options.trace),
            "WEFT_RX_RECORDS": int(config.tracing),
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
        if config.tracing:
            root = config.trace_file or self.model.program.name
            lines.append(f'#define WEFT_RX_RECORD_FILE "{root}.flight"')
        return lines if static else [*lines, "#define WEFT_RX_TABLE"]

    def types(self) -> tuple[list[str], list[str], list[str]]:
        """Returns the lines of three parts: types with preambles; functions; and prototypes of the
        C functions that the program provides. `common` becomes the types without the preambles
        of reactors."""
        types: list[str] = []
        self.common: list[str] = []
        functions: list[str] = []
        externs: list[str] = []
        known: set[str] = set()
        checked: set[str] = set()
        done: set[int] = set()

        def preamble(code: tree.Code) -> None:
            if id(code) not in done:
                done.add(id(code))
                types.extend(code_lines(code))

        def check(named: list[tree.Type], cls: Class) -> None:
            for one in named:
                text, lines = checked_type(one, cls, len(checked))
                if text not in checked:
                    checked.add(text)
                    types.extend(lines)

        for loaded in self.model.program.files:
            for one in loaded.tree.preambles:
                preamble(one.code)
        self.common += types
        for cls in self.model.classes:
            bodies = self.bodies[cls]
            for placed in cls.of(tree.Preamble):
                assert isinstance(placed.decl, tree.Preamble)
                preamble(placed.decl.code)
            begin = len(types)
            ports, states = bodies.named_types()
            types.append(f"typedef struct {bodies.self_t} {bodies.self_t};")
            check(ports, cls)
            for text in [self.layout.type_of(p.type, cls).text for p in cls.ports.values()]:
                if text in known:
                    continue
                known.add(text)
                types += self.port_types(text)
            types += bodies.aliases() + bodies.refs()
            check(states, cls)
            types += bodies.struct()
            self.common += types[begin:]
            functions += bodies.functions()
            externs += bodies.externs
        return types, functions, externs

    def port_types(self, text: str) -> list[str]:
        """Returns the types of ports and delays whose values have the type `text`."""
        kind, value, lines = self.layout.types[text], text, []
        array = re.fullmatch(r"(.*)\[(\d+)\]", text)
        if array:
            value = f"lf_array_{kind.name}"
            lines.append(f"typedef {array.group(1)} {value}[{array.group(2)}];")
        made = "WEFT_RX_TOKEN_PORT" if kind.token else "WEFT_RX_PORT"
        lines.append(f"typedef {made}({value}) {kind.port};")
        if kind.delays:
            made = "WEFT_RX_DELAY" if self.schedule is None else "WEFT_RX_HOLD"
            lines.append(f"typedef {made}({kind.port}) lf_delay_{kind.name}_t;")
        return lines

    def nones(self) -> list[str]:
        return [
            f"static {kind.port} lf_no_{kind.name};"
            for kind in self.layout.types.values()
            if kind.used_none
        ]

    @property
    def workers(self) -> int:
        """The number of threads that share the reactions of a level. This is 1 if there are several
        enclaves, because each enclave has a thread of its own."""
        return 1 if self.layout.enclaves.count > 1 else self.model.program.config.threads


def _numbered(lines: list[str], name: str) -> str:
    """Returns the lines as one text, with each mark `HERE` replaced by a `#line` for the line after
    it.
    """
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
        The two texts. The header is empty if the program has no C files of its own.
    """
    return Emitter(model, options or Options()).text(header)


__all__ = ["Options", "emit"]
