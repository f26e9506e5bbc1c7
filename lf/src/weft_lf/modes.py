"""Writes the tables of a program with modes: the reactors that have modes, the modes, and the mode
that contains each reaction.

Invariant: a reactor with modes comes before the reactors with modes that it contains.
"""

from __future__ import annotations

from weft_lf import tree
from weft_lf.emission import Emission
from weft_lf.fills import Fills
from weft_lf.model import ModeOf
from weft_lf.values import resolved


class Modes:
    """Fills the tables of modes, into the `fills` of `emitter`."""

    def __init__(self, emitter: Emission) -> None:
        self.emitter = emitter

    def fill(self) -> None:
        layout, fills = self.emitter.layout, self.emitter.fills
        for number, made in enumerate(layout.modal):
            first = layout.mode_slot[next(iter(made.modes.values()))]
            initial = next(layout.mode_slot[m] for m in made.modes.values() if m.decl.initial)
            outer = self.emitter.mode_pointer(made.within())
            parts = [".modes = &lf_modes[{}]", f".count = {len(made.modes)}"]
            parts += [".initial = &lf_modes[{}]", f".outer = {outer}"]
            text = "{{" + ", ".join(parts) + "}}"
            fills.put("lf_modal", number, "", text, first, initial, cast="weft_rx_modal")
            for mode in made.modes.values():
                self.mode(mode, number)
        fills.array(
            "weft_rx_modals", "weft_rx_modal *WEFT_RX_TABLE", len(layout.modal) + 1, public=True
        )
        for number in range(len(layout.modal)):
            fills.put("weft_rx_modals", number, "", "&lf_modal[{}]", number)
        fills.array("weft_rx_mode_of", "weft_rx_mode *WEFT_RX_TABLE", layout.count, public=True)
        for one in self.emitter.model.reactions:
            fills.put(
                "weft_rx_mode_of",
                layout.row[one],
                "",
                self.emitter.mode_pointer(layout.around(one)),
            )
        for delay in self.emitter.model.delays:
            fills.put(
                "weft_rx_mode_of",
                layout.row[delay],
                "",
                self.emitter.mode_pointer(layout.around(delay)),
            )

    def mode(self, mode: ModeOf, modal: int) -> None:
        layout = self.emitter.layout
        slot = layout.mode_slot[mode]
        made = mode.instance
        parts = [
            f'.name = "{mode.decl.name}"',
            ".modal = &lf_modal[{}]",
            f".self = &lf_s_{made.cls.key}[{layout.slot[made]}]",
        ]
        numbers: list[int] = [modal]
        lines = self.resets(mode)
        if lines:
            self.emitter.helpers += [
                f"static void lf_reset_{slot}(void *instance) {{",
                "  (void)instance;",
                *lines,
                "}",
            ]
            parts.append(f".reset_state = lf_reset_{slot}")
        for what in ("startup", "reset", "shutdown"):
            text, more = self.emitter.trigger((what, mode, 0))
            parts.append(f".{what} = {text}")
            numbers += more
        self.emitter.fills.put(
            "lf_modes", slot, "", "{{" + ", ".join(parts) + "}}", *numbers, cast="weft_rx_mode"
        )

    def resets(self, mode: ModeOf) -> list[str]:
        inside = Fills()
        saved, self.emitter.fills = self.emitter.fills, inside
        started, self.emitter.start = self.emitter.start, []
        for made in self.emitter.model.instances:
            for placed in made.cls.of(tree.State):
                decl = placed.decl
                assert isinstance(decl, tree.State)
                own = made is mode.instance and placed.mode == mode.decl.name
                if decl.reset and decl.init is not None and (own or made.within() is mode):
                    array = f"lf_s_{made.cls.key}"
                    self.emitter.value(
                        array,
                        self.emitter.layout.slot[made],
                        decl.name,
                        decl.type,
                        resolved(decl.init, made),
                        made,
                    )
        lines = inside.statements() + self.emitter.start
        self.emitter.fills, self.emitter.start = saved, started
        return lines
