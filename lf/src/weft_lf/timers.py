"""Writes the timers of the generated C. There are periodic timers, one-shot timers, and ratios:
timers whose period is not a whole number of ticks. A program with a static schedule (schedule.py)
has the schedule's table in place of all timers."""

from __future__ import annotations

from weft_lf.emission import Emission
from weft_lf.model import ModeOf
from weft_lf.schedule import Schedule
from weft_lf.ticks import period_of


class Timers:
    """Writes the timers, or the schedule's table, into the `fills` of `emitter`."""

    def __init__(self, emitter: Emission) -> None:
        self.emitter = emitter
        self.fills, self.layout = emitter.fills, emitter.layout
        # The number of timers in the enclave with the largest number of timers: the queue has this
        # number of places.
        self.count = 0
        self.ranges: dict[int, int] = {}  # enclave → the index of its range in weft_rx_timers
        self.last: dict[ModeOf, str] = {}  # mode → its last one-shot timer so far, in C

    def fill(self) -> None:
        tick = self.emitter.options.tick
        periodic, ratios, onces = [], [], []
        for key in self.layout.timers:
            _, period, mode, _ = key
            if period == 0:
                onces.append(key)
            elif mode is None and period_of(period, tick)[1] > 1:
                ratios.append(key)
            else:
                periodic.append(key)
        homes = [enclave for *_, enclave in self.layout.timers]
        self.count = max((homes.count(home) for home in set(homes)), default=0)
        if self.count:
            self.fills.array("weft_rx_timers", "weft_rx_range", 1, table=True, public=True)
        if periodic:
            self.periodic(periodic)
        if ratios:
            self.fills.array("lf_ratios", "weft_rx_ratio", len(ratios))
        for at, key in enumerate(ratios):
            text, numbers = self.emitter.trigger(key)
            ticks, per = period_of(key[1], tick)
            init = f"WEFT_RX_RATIO({key[0]}LL, {ticks}LL, {per}, {text})"
            self.fills.put("lf_ratios", at, "", init, *numbers, cast="weft_rx_ratio")
            self.emitter.starts[key[3]].append(f"  weft_rx_start_ratio(&lf_ratios[{at}]);")
        if onces:
            self.fills.array("lf_onces", "weft_rx_once", len(onces))
        for at, key in enumerate(onces):
            self.once(at, key)

    def periodic(self, keys: list[tuple[int, int, ModeOf | None, int]]) -> None:
        fills, emitter = self.fills, self.emitter
        fills.array("lf_timers", "weft_rx_timer", len(keys))
        keys.sort(key=lambda key: key[3])
        for at, key in enumerate(keys):
            text, numbers = emitter.trigger(key)
            offset, period, mode, _ = key
            init = f"WEFT_RX_TIMER({{}}, {{}}, {text})"
            if mode is not None:
                pointer = emitter.mode_pointer(mode)
                init = f"WEFT_RX_TIMER_IN({pointer}, {{}}, {{}}, {text})"
            own = (offset, period, *numbers)
            fills.put("lf_timers", at, "", init, *own, cast="weft_rx_timer")
        homes = [enclave for *_, enclave in keys]
        for place, home in enumerate(dict.fromkeys(homes)):
            first, count = homes.index(home), homes.count(home)
            range_ = f"{{{{&lf_timers[{first}], {count}, sizeof(weft_rx_timer)}}}}"
            fills.put("weft_rx_timers", place, "", range_, cast="weft_rx_range")
            self.ranges[home] = place
        fills.arrays["weft_rx_timers"].size = len(self.ranges)

    def once(self, at: int, key: tuple[int, int, ModeOf | None, int]) -> None:
        text, numbers = self.emitter.trigger(key)
        offset, _, mode, enclave = key
        start = self.emitter.starts[enclave]
        if mode is None:
            init = f"WEFT_RX_ONCE({offset}LL, {text})"
            start.append(f"  weft_rx_start_once(&lf_onces[{at}]);")
        else:
            pointer = self.emitter.mode_pointer(mode)
            init = f"WEFT_RX_ONCE_IN({pointer}, {offset}LL, {text})"
            before = self.last.get(mode)
            link = f"{before}.more" if before else f"{pointer[1:]}.onces"
            start.append(f"  {link} = &lf_onces[{at}];")
            self.last[mode] = f"lf_onces[{at}]"
        self.fills.put("lf_onces", at, "", init, *numbers, cast="weft_rx_once")

    def table(self, schedule: Schedule) -> None:
        """Writes the table of a static schedule."""
        fills = self.fills
        fills.array(
            "weft_rx_slots", "weft_rx_slot", len(schedule.slots) + 1, table=True, public=True
        )
        for at, slot in enumerate(schedule.slots):
            text, numbers = self.emitter.trigger_of(slot.reactions)
            init = f"{{{{{{}}LL, {text}}}}}"
            fills.put("weft_rx_slots", at, "", init, slot.gap, *numbers, cast="weft_rx_slot")
        fills.put(
            "weft_rx_slots", len(schedule.slots), "", "WEFT_RX_SLOTS_END", cast="weft_rx_slot"
        )


__all__ = ["Timers"]
