"""The thesis's experiments (chapters 4 to 8) as Lingua Franca programs on the emulated RP2040, with
functions that run them and return their figures.

tests/test_lf.py checks some figures in short runs; report.py writes all of them to RESULTS.md,
beside the figures of the thesis. Times are taken from the edges of the pins; they are exact, and do
not differ from run to run. A cycle is 8 ns. The argument `conflicts` turns on the emulator's model
of bus conflicts.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev

from device import Ran, on_the_board

from weft_lf.build import Wanted, build
from weft_lf.elaborate import elaborate
from weft_lf.load import load
from weft_lf.model import Model

# The unit of work is the same as in theses/experiments: a loop in assembler that takes 45 cycles
# when the other core is idle. Its inner loop begins at a word boundary.
LOOPS = r"""preamble {=
  #include "board.h"
  uint32_t thesis_loops(uint32_t count);
  __asm(".syntax unified\n.thumb\n.text\n.balign 4\n.global thesis_loops\n.type thesis_loops, %function\n.thumb_func\n"
        "thesis_loops:\n  movs r1, r0\n  movs r0, #0\n  nop\n"
        "1: movs r3, #0\n"
        "2: movs r2, r3\n  muls r2, r3, r2\n  adds r3, #1\n  adds r0, r0, r2\n  cmp r3, #6\n  bne 2b\n"
        "  subs r1, #1\n  bne 1b\n  bx lr\n.size thesis_loops, .-thesis_loops\n");
=}
"""
TASKS = """target C {{ platform: rp2040{target} }}
{loops}reactor Task(pin: int = 2, first: time = 0) {{ timer t(first, 100 usec)  state sum: uint32_t
  reaction(startup) {{= pin_out(self->pin); =}}
  reaction(t) {{= pin_high(self->pin); self->sum = thesis_loops({count}); pin_low(self->pin); =}} }}
main reactor {{ a = new Task(first = 100 usec)  b = new Task(pin = 3, first = 150 usec) }}
"""


@dataclass
class Task:
    """The means and extremes that a logic analyser would show of a task, from the tenth run on.
    Times are in us unless a comment names another unit."""

    execution: float
    total: float
    overhead: int  # the largest number of cycles from the end of a run to the start of the next
    deviation: float  # the standard deviation of the time from start to start
    late: float  # the longest time from start to start

    @property
    def holds(self) -> bool:
        return abs(self.total - 100) < 0.01 and self.late <= 101


def model(path: Path) -> Model:
    return elaborate(load(path))


def built(place: Path, name: str, text: str, flash: bool = False) -> Path:
    path = place / f"{name}.lf"
    path.write_text(text)
    program = build(model(path), Wanted("rp2040", flash=flash)).program
    assert program is not None
    return program


def run(image: Path, us: int, pins: str, conflicts: bool = False) -> Ran:
    return on_the_board(image, us, "--pins", pins, *(["--conflicts"] if conflicts else []))


def task(ran: Ran, pin: int) -> Task:
    rises = [ns for ns, level in ran.edges[pin] if level][10:]
    work = [b - a for (a, up), (b, _) in pairwise(ran.edges[pin][20:]) if up]
    between = [b - a for a, b in pairwise(rises)]
    return Task(
        fmean(work) / 1000,
        fmean(between) / 1000,
        max(ran.gaps(pin)[10:]),
        pstdev(between) / 1000,
        max(between) / 1000,
    )


def tasks(
    place: Path,
    loops: int,
    *,
    conflicts: bool = False,
    flash: bool = False,
    one_core: bool = False,
    us: int = 20_000,
) -> list[Task]:
    """Runs chapter 7's two interleaved 10 kHz tasks, each of `loops` loops. Each task is an
    enclave, and so runs on a core of its own unless `one_core` is true."""
    text = TASKS.format(loops=LOOPS, count=loops, target=", workers: 1" if one_core else "")
    ran = run(built(place, f"Tasks{loops}", text, flash), us, "2,3", conflicts)
    return [task(ran, 2), task(ran, 3)]


def most_loops(place: Path, low: int, high: int, **how: bool) -> int:
    """Returns the largest number of loops with which both tasks still start every 100 us, by
    bisection. The tasks must do so with `low` loops, and must not with `high` loops.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if all(t.holds for t in tasks(place, middle, **how)):  # type: ignore[arg-type]
            low = middle
        else:
            high = middle
    return low


# --- chapter 5 ------------------------------------------------------------------------------------

BANK = """target C {{ platform: rp2040, workers: 1 }}
preamble {{= #include "board.h" =}}
reactor Minimal{parameter} {{ timer t({offset}, 8 msec)
  reaction(t) {{= pin_high(2); pin_low(2); =}} }}
main reactor {{ all = new[{count}] Minimal()
  reaction(startup) {{= pin_out(2); =}} }}
"""


def bank(count: int, apart: bool) -> str:
    """Returns a program of `count` minimal reactors, each with a timer and a reaction. With `apart`
    no two timers fire at the same time, so there are as many timers as reactors; otherwise there is
    one timer for all.
    """
    offset = "{= USEC(1 + bank_index) =}" if apart else "1 msec"
    parameter = "(bank_index: int = 0)" if apart else ""
    return BANK.format(count=count, offset=offset, parameter=parameter)


def static_bytes(image: Path) -> int:
    """Returns the bytes of a program's .data and .bss."""
    result = subprocess.run(["arm-none-eabi-size", str(image)], capture_output=True, text=True)
    _, data, bss, *_ = result.stdout.splitlines()[1].split()
    return int(data) + int(bss)


def bytes_each(place: Path, low: int, high: int, apart: bool) -> float:
    sizes = [static_bytes(built(place, f"Bank{n}", bank(n, apart))) for n in (low, high)]
    return (sizes[1] - sizes[0]) / (high - low)


# --- chapter 6 ------------------------------------------------------------------------------------

WORK = r"""preamble {=
  #include "board.h"
  uint32_t fib(uint32_t n);
  void spin(void);
  __asm(".syntax unified\n.thumb\n.text\n.balign 4\n.global fib, spin\n.type fib, %function\n.thumb_func\nfib:\n"
        "  push {r4, r5, r6, lr}\n  movs r5, r0\n  cmp r0, #1\n  bls 1f\n"
        "  subs r0, #1\n  bl fib\n  movs r4, r0\n  subs r0, r5, #2\n  bl fib\n  adds r0, r4, r0\n"
        "1: pop {r4, r5, r6, pc}\n.size fib, .-fib\n"
        ".balign 4\n.type spin, %function\n.thumb_func\nspin: b spin\n.size spin, .-spin\n");
  static uint32_t __attribute__((noinline)) matrices(uint32_t count) {
    volatile uint32_t a[10][10], b[10][10], c[10][10];
    for (uint32_t i = 0; i < 10; i++)
      for (uint32_t j = 0; j < 10; j++) a[i][j] = i + j, b[i][j] = i * j, c[i][j] = 0;
    while (count--)
      for (uint32_t i = 0; i < 10; i++)
        for (uint32_t j = 0; j < 10; j++) {
          uint32_t sum = 0;
          for (uint32_t k = 0; k < 10; k++) sum += a[i][k] * b[k][j];
          c[i][j] = sum;
        }
    return c[3][4];
  }
=}
"""
INTERFERENCE = """target C {{ platform: rp2040 }}
{work}reactor Work(pin: int = 2, first: time = 0, period: time = {period} usec) {{ timer t(first, period)  state result: uint32_t
  reaction(startup) {{= pin_out(self->pin); =}}
  reaction(t) {{= pin_high(self->pin); self->result = {call}; pin_low(self->pin); =}} }}
{other}main reactor {{ a = new Work(first = 100 usec)
{more} }}
"""
OTHERS = {  # the work of core 1; "same" has another period, so that the cores meet in all phases
    "idle": ("", ""),
    "same": ("", "  b = new Work(pin = 3, first = 107 usec, period = {other} usec)"),
    "loop": (
        "reactor Spin { timer t(50 usec)\n  reaction(t) {= spin(); =} }\n",
        "  b = new Spin()",
    ),
}


def interference(
    place: Path, call: str, period: int, core1: str, runs: int, flash: bool
) -> tuple[float, float]:
    """Runs chapter 6: returns the mean and the standard deviation of the time that `call` takes on
    core 0, in us, with bus conflicts modelled. `core1` is a key of OTHERS."""
    other, more = OTHERS[core1]
    more = more.format(other=period - 13) if core1 == "same" else more
    text = INTERFERENCE.format(work=WORK, call=call, period=period, other=other, more=more)
    ran = run(
        built(place, f"Work{core1}", text, flash),
        2_000 + period * (runs + 2),
        "2,3",
        conflicts=True,
    )
    times = [(b - a) / 1000 for (a, up), (b, _) in pairwise(ran.edges[2][4:]) if up][:runs]
    assert len(times) == runs
    return fmean(times), pstdev(times)


# --- chapter 8 ------------------------------------------------------------------------------------


def lateral_error() -> tuple[float, float]:
    """Returns the two results of figure 8.5: the angle a (radians) and the room e for wobbling
    (mm), which the thesis computes from t / tan a + d / sin a + 2 e = w."""
    angle = math.atan(2.45 / 1.26)
    return angle, (18 - 3.5 / math.tan(angle) - 11 / math.sin(angle)) / 2


def integral(of: Callable[[float], float], low: float, high: float, steps: int) -> float:
    width = (high - low) / steps
    return width * sum(of(low + (k + 0.5) * width) for k in range(steps))


def step_error(steps: int, count: int = 20_000) -> tuple[float, float]:
    """Returns the results of table 8.1: the absolute and the total error of a sine that is
    approximated in 1 / `steps` steps, over a quarter period, by the thesis's formula. With full
    steps (1) the approximation stays at the peak.
    """

    def error(t: float) -> float:
        made = math.floor(steps * t / math.pi + 0.5) * math.pi / steps
        return (math.sin(made) if steps > 1 else 1.0) - math.sin(t)

    half = math.pi / 2
    return integral(lambda t: abs(error(t)), 0, half, count), abs(integral(error, 0, half, count))
