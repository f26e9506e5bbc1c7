"""Shared by the writers of a program's C (emit.py, modes.py, timers.py, programs.py): the parts of
the text as they grow, and the C of triggers and of initial values.

Invariant: an initial value that is code is computed when the program starts, after the initial
values before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft_lf import tree
from weft_lf.bodies import HERE, Bodies
from weft_lf.enclaves import enclaves
from weft_lf.fills import Fills
from weft_lf.layout import base_of
from weft_lf.model import Instance, Model, ModeOf, Value
from weft_lf.schedule import planned
from weft_lf.ticks import HOST, Tick
from weft_lf.values import c_expr, c_type, resolved


@dataclass
class Options:
    """The options of a build that the program's own text does not determine."""

    device: bool = False
    trace: bool = False
    tick: Tick = HOST
    table: bool = True  # use a static schedule, if the program's timing is known
    sdk: bool = False  # the program is for a device and uses the pico-sdk
    headers: tuple[str, ...] = ()  # lines that include more headers before the preambles


class Emission:
    """The C of one program while it is written. `fills` collects the contents of its tables,
    `helpers` its functions, `start` the code that runs when the program starts, and `starts` the
    code that runs when each enclave starts."""

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
        self.level_count = 0
        self.bodies = {cls: Bodies(self.layout, cls) for cls in model.classes}

    # --- triggers ---------------------------------------------------------------------------------

    def trigger(self, key: object) -> tuple[str, tuple[int, ...]]:
        """Returns a WEFT_RX_TRIG(at, mask) with the reactions that `key` triggers: a template and
        the numbers that fill it.
        """
        return self.trigger_of(tuple(self.layout.readers.get(key, ())))

    def trigger_of(self, numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        if not numbers:
            return "WEFT_RX_TRIG(0, 0)", ()
        if self.layout.most > 64 and len(numbers) == 1:  # This form is faster and needs no list.
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

    # --- initial values ---------------------------------------------------------------------------

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
            ):  # A state variable: its struct contains the elements.
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
        """Returns the name of a C array with the contents `text`; equal contents share one
        array.
        """
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
            lines += self.given_by_code(target, name, kind, value, text, made)
        self.start += lines

    def given_by_code(
        self,
        target: str,
        name: str,
        kind: tree.Type | None,
        value: Value,
        text: str,
        made: Instance,
    ) -> list[str]:
        """Returns the lines that give `target` the value of the code `text`, and end the block."""
        span = value.expr.span
        file = span.file.replace("\\", "\\\\").replace('"', '\\"')
        # The code can be an initialiser, or a macro for one: C accepts an initialiser only in a
        # declaration.
        own = kind is not None and (kind.array is not None or kind.stars)
        if text.startswith("{") and own and cls_param(made, name):
            assert kind is not None
            base = base_of(kind, made.cls)
            base = base if kind.array is not None else base[:-1]
            given = (
                f"const {base} values[] = {text};"
                f" static {base} list[sizeof values / sizeof *values];"
                f" memcpy(list, values, sizeof values); {target} = list;"
            )
        elif text.startswith("{") and own:
            given = f"__typeof__({target}) value = {text}; memcpy(&{target}, &value, sizeof value);"
        else:
            given = f"__typeof__({target}) value = {text}; {target} = value;"
        return [
            f'#line {span.line} "{file}"' if span.line else "",
            f"    {given} }}",
            HERE,
        ]

    def around_code(self, value: Value, made: Instance) -> list[str]:
        """Returns C declarations for the code in `value`: `self` and the parameters that the code
        names.
        """
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


def cls_param(made: Instance, name: str) -> bool:
    return name in made.cls.params


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


__all__ = ["Emission", "Options"]
