"""Programs for the RP2040, run in the emulator, which counts cycles exactly."""

from __future__ import annotations

from itertools import pairwise

from conftest import Write
from device import board

BUSY = """target C { platform: rp2040 }
preamble {= #include "board.h" =}
reactor Task(first: time = 0) { timer t(first, 15 usec)
  reaction(t) {=
    pin_high(2);
    for (uint32_t n = 600; n; n--) __asm volatile("");
    pin_low(2);
  =} }
main reactor { a = new Task()  b = new Task(first = 7 usec)
  reaction(startup) {= pin_out(2); =} }
"""


def test_a_table_takes_fewer_cycles_than_a_queue(write: Write) -> None:
    """R23, late all the time: from the end of a tag's reaction to the next tag's."""
    path = write(BUSY)
    table, queue = (board(path, 3000, "--pins", "2", table=t).gaps(2)[5:] for t in (True, False))
    assert len(table) > 100 and len(queue) > 100
    assert max(table) <= 74 and min(table) <= 64, (min(table), max(table))
    assert min(queue) >= max(table) + 25, (min(queue), max(queue))


def test_a_period_of_a_fraction_of_a_tick_does_not_drift(write: Write) -> None:
    """R5, R22: 62.5 us, 16 times a millisecond: 62 and 63 us in turn, and the 320th edge where it belongs."""
    for action in ("", "  logical action later\n  reaction(startup) -> later {= =}\n"):
        path = write(f"""target C {{ platform: rp2040 }}
preamble {{= #include "board.h" =}}
main reactor {{ timer t(0, 62500 nsec)
{action}  reaction(startup) {{= pin_out(2); =}}
  reaction(t) {{= pin_toggle(2); =}} }}
""")
        at = [ns for ns, _ in board(path, 21_000, "--pins", "2").edges[2]][2:]
        gaps = {after - before for before, after in pairwise(at)}
        assert gaps == {62_000, 63_000}, (action, gaps)
        assert at[320] - at[0] == 320 * 62_500
