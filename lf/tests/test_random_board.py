"""Tests with random programs on the emulated RP2040, on one core and on both: their trace and their
output are the interpreter's.

test_random.py does the same with more programs on this machine. The programs here write to the UART
without setting it up, which the emulator allows. A spin lock that the runtime does not use keeps
their lines whole.
"""

from __future__ import annotations

import os

import pytest
from conftest import Write, model
from device import board
from randoms import by_seed, program
from test_random import by_instance

from weft_lf.conform import by_reactor
from weft_lf.enclaves import enclaves
from weft_lf.oracle import Oracle

SEED = int(os.environ.get("WEFT_LF_SEED", "1"))
BATCHES = int(os.environ.get("WEFT_LF_BOARDS", "1"))
SIZE = 25

SAY = r"""preamble {=
#include <stdarg.h>
#include "board.h"
static char *say_number(char *at, int n) {
  char digits[12];
  int count = 0;
  unsigned rest = n < 0 ? 0u - (unsigned)n : (unsigned)n;
  if (n < 0) *at++ = '-';
  do digits[count++] = (char)('0' + rest % 10), rest /= 10; while (rest);
  while (count) *at++ = digits[--count];
  return at;
}
static void say(const char *format, ...) {
  char line[160], *at = line;
  va_list list;
  va_start(list, format);
  for (const char *f = format; *f; f++)
    if (*f == '%' && f[1] == 'd') at = say_number(at, va_arg(list, int)), f++;
    else if (*f == '%' && f[1] == 's') { for (const char *s = va_arg(list, const char *); *s; s++) *at++ = *s; f++; }
    else *at++ = *f;
  va_end(list);
  *at = 0;
  weft_irq_t irq = weft_lock(WEFT_SPINLOCK(20));
  uart_puts(line);
  weft_unlock(WEFT_SPINLOCK(20), irq);
}
#define printf say
#define WEFT_RX_TRACE_HOOK(time, microstep, number, name, missed) \
  do { if (name) say("T %d000 %d %s%s\n", (int)((time) / 1000), (int)(microstep), (name), (missed) ? "!" : ""); } while (0)
=}
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(SEED, SEED + BATCHES))
def test_random_programs_on_the_board(write: Write, seed: int, workers: int) -> None:
    picks = [by_seed(seed * 100_000 + 50_000 + n) for n in range(SIZE)]
    text = program(picks, workers=workers).replace("1 hour", "20 min")
    target, rest = text.split("\n", 1)
    path = write(f"{target}\n{SAY}{rest}")
    assert enclaves(model(path), True).count == workers
    oracle = Oracle(model(path))
    trace = [f"{f.time} {f.microstep} {f.name}{'!' * f.missed}" for f in oracle.run()]
    output = board(path, 5_000_000, "--pins", "2", trace=True).output.splitlines()
    fired = [line.split() for line in output if line.startswith("T ")]
    got = [f"{int(time)} {microstep} {name}" for _, time, microstep, name in fired]
    wanted, seen = by_reactor(trace), by_reactor(got)
    assert len(trace) > 200
    for name in sorted(wanted.keys() | seen.keys()):
        assert seen.get(name) == wanted.get(name), f"{name} in {path}"
    printed = "\n".join(line for line in output if line and not line.startswith("T "))
    assert by_instance(printed) == by_instance("".join(oracle.printed)), path
