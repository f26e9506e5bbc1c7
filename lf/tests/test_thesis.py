"""The thesis's experiments that a Lingua Franca program can repeat, compiled by `weft lf` and run on the emulated RP2040.

The thesis (chapters 4, 5 and 7, on a board, with upstream's compiler): 32 us from the end of a reaction to the next one's start at
saturation, a start deviation of 4.3 us at light load, one core for two staggered timers, 96.1 kB for blink.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import pstdev

import pytest
from conftest import Write, model
from device import board

from weft_lf.build import Wanted, build

TASKS = """target C {{ platform: rp2040{target} }}
preamble {{= #include "board.h" =}}
reactor Task(pin: int = 2, first: time = 0) {{ timer t(first, {period} usec)
  reaction(startup) {{= pin_out(self->pin); =}}
  reaction(t) {{=
    pin_high(self->pin);
    for (uint32_t n = {loops}; n; n--) __asm volatile("");
    pin_low(self->pin);
  =}} }}
main reactor {{ a = new Task()  b = new Task(pin = 3, first = {half} usec) }}
"""


def tasks(period: int, loops: int, target: str = "") -> str:
    return TASKS.format(period=period, half=period // 2, loops=loops, target=target)


def test_overhead_at_saturation_on_both_cores(write: Write) -> None:
    """7.3: start to start less the task's own time; thesis 4,000 cycles, on one core."""
    ran = board(write(tasks(15, 600)), 3000, "--pins", "2,3")
    for pin in (2, 3):
        gaps = ran.gaps(pin)[10:]
        assert len(gaps) > 100 and max(gaps) <= 180, (pin, max(gaps))


def test_start_deviation(write: Write) -> None:
    """7.4, 7.5: the standard deviation of the time from start to start, two tasks of 10 kHz at light load; thesis 4.3 us."""
    for target in ("", ", workers: 1"):
        ran = board(write(tasks(100, 100, target)), 20_000, "--pins", "2,3")
        for pin in (2, 3):
            rises = [ns for ns, level in ran.edges[pin] if level][10:]
            assert len(rises) > 150
            assert pstdev(b - a for a, b in pairwise(rises)) <= 64, "8 cycles"


@pytest.mark.parametrize("flash, limit", [(True, 3072), (False, 3072)])
def test_blink(write: Write, flash: bool, limit: int) -> None:
    """5.4: the whole image, start-up included; thesis 96,100 bytes."""
    path = write("""target C { platform: rp2040 }
preamble {= #include "board.h" =}
main reactor { timer t(0, 500 msec)
  reaction(startup) {= pin_out(25); =}
  reaction(t) {= pin_toggle(25); =} }
""")
    built = build(model(path), Wanted("rp2040", flash=flash))
    assert built.program is not None
    assert built.program.with_suffix(".bin").stat().st_size <= limit


@pytest.mark.parametrize("after", ["", " after 3 msec"])
def test_the_race_of_listing_4_1_is_none(write: Write, after: str) -> None:
    """Listing 4.2 with the loops of 4.1: always printed before it is incremented, on one core and over both."""
    path = write(f"""target C {{ platform: rp2040, timeout: 22500 usec }}
preamble {{= #include "board.h" =}}
reactor Printer {{ input print: bool  input increment: int  state x: int = 0
  reaction(startup) {{= uart_init(); =}}
  reaction(print) {{= uart_put_u32(self->x); uart_put(' '); =}}
  reaction(increment) {{= self->x += increment->value; =}} }}
reactor Loop1 {{ output out: bool  timer t(0, 1 msec)
  reaction(t) -> out {{= lf_set(out, true); =}} }}
reactor Loop2 {{ output out: int  timer t(0, 1 msec)
  reaction(t) -> out {{= lf_set(out, 1); =}} }}
main reactor {{ p = new Printer()  one = new Loop1()  two = new Loop2()
  two.out -> p.increment{after}
  one.out -> p.print{after} }}
""")
    said = board(path, 60_000, "--pins", "25").said.split()
    assert said[:20] == [str(n) for n in range(20)]
