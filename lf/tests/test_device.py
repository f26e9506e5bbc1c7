"""Tests of programs for devices. RP2040 programs run in the emulator, which counts cycles exactly;
AN521 programs run in QEMU."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Write, model
from device import board

from weft_lf.build import Wanted, build
from weft_lf.device import sdk_libraries
from weft_lf.errors import LfError

BUSY = """target C { platform: rp2040, workers: 1 }
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


@pytest.mark.soak
def test_a_table_takes_fewer_cycles_than_a_queue(write: Write) -> None:
    """R23: with a table fewer cycles pass than with a queue from the end of a reaction to the
    beginning of the next tag's reaction, in a program that is always late."""
    path = write(BUSY)
    table, queue = (board(path, 3000, "--pins", "2", table=t).gaps(2)[5:] for t in (True, False))
    assert len(table) > 100 and len(queue) > 100
    assert max(table) <= 74 and min(table) <= 64, (min(table), max(table))
    assert min(queue) >= max(table) + 25, (min(queue), max(queue))


@pytest.mark.soak
def test_a_delay_by_table_takes_fewer_cycles_than_by_queue(write: Write) -> None:
    """R23: with a delay by table fewer cycles pass than with a delay by queue from the end of the
    sending reaction to the beginning of the receiving reaction, whose tag is 10 us later, in a
    program that is always late."""
    path = write("""target C { platform: rp2040, workers: 1 }
preamble {= #include "board.h" =}
reactor Source { output out: int  timer t(0, 20 usec)  state n: int = 0
  reaction(startup) {= pin_out(2); =}
  reaction(t) -> out {= lf_set(out, ++self->n); for (uint32_t n = 400; n; n--) __asm volatile(""); pin_low(2); =} }
reactor Sink { input in: int  state n: int = 0
  reaction(in) {= pin_high(2); if (in->value != ++self->n) pin_high(3);
    for (uint32_t n = 400; n; n--) __asm volatile(""); =} }
main reactor { a = new Source()  b = new Sink()  a.out -> b.in after 10 usec }
""")
    gaps = []
    for by_table in (True, False):
        ran = board(path, 4000, "--pins", "2,3", table=by_table)
        assert not ran.edges[3] and len(ran.gaps(2)) > 90
        gaps.append(max(ran.gaps(2)[5:]))
    assert gaps[0] <= 290 and gaps[1] >= gaps[0] + 200, gaps


def test_a_period_of_a_fraction_of_a_tick_does_not_drift(write: Write) -> None:
    """R5, R22: a period of 62.5 us gives gaps of 62 and 63 us, and the 320th edge is exactly 320
    periods after the first."""
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


def test_two_staggered_timers_hold_10_khz_on_both_cores(write: Write) -> None:
    """R20: the compiler finds two enclaves without `@enclave`. Each task works 75 us of 100 us, so
    that one core cannot run both in time."""
    text = """target C {{ platform: rp2040{} }}
preamble {{= #include "board.h" =}}
reactor Task(pin: int = 2, first: time = 0) {{ timer t(first, 100 usec)
  reaction(startup) {{= pin_out(self->pin); =}}
  reaction(t) {{=
    pin_high(self->pin);
    for (uint32_t n = 2343; n; n--) __asm volatile("");
    pin_low(self->pin);
  =}} }}
main reactor {{ a = new Task()  b = new Task(pin = 3, first = 50 usec) }}
"""
    for more, held in (("", True), (", workers: 1", False)):
        ran = board(write(text.format(more)), 20_000, "--pins", "2,3")
        for pin in (2, 3):
            rises = [ns for ns, level in ran.edges[pin] if level][10:]
            work = [b - a for (a, up), (b, _) in pairwise(ran.edges[pin]) if up]
            assert all(70_000 < ns < 80_000 for ns in work), work[:5]
            gaps = {after - before for before, after in pairwise(rises)}
            assert (max(gaps) <= 100_100) == held, (more, pin, gaps)


def test_a_pipeline_over_both_cores(write: Write) -> None:
    """A delayed connection between the cores delivers every value, in order and at its time. Pin 4
    has an edge for each value; pin 5 would have one for a wrong value."""
    path = write("""target C { platform: rp2040 }
preamble {= #include "board.h" =}
reactor Source { output out: int  timer t(0, 100 usec)  state n: int = 0
  reaction(t) -> out {= lf_set(out, self->n++); =} }
reactor Sink { input in: int  state n: int = 0
  reaction(startup) {= pin_out(4); pin_out(5); =}
  reaction(in) {=
    pin_toggle(4);
    if (in->value != self->n++ || lf_time_logical_elapsed() != USEC(100) * in->value + USEC(300)) pin_high(5);
  =} }
main reactor { a = new Source()  b = new Sink()
  a.out -> b.in after 300 usec }
""")
    ran = board(path, 20_000, "--pins", "4,5")
    assert len(ran.edges[4]) > 190 and not ran.edges[5]


def test_on_the_pico_sdk(write: Write) -> None:
    """A program whose preamble includes the SDK's headers is built with the SDK: printf writes to
    the SDK's UART, and gpio calls drive the LED's pin."""
    path = write("""target C { platform: rp2040, timeout: 20 msec }
preamble {=
  #include <stdio.h>
  #include "hardware/gpio.h"
=}
main reactor { timer t(0, 5 msec)  state n: int = 0
  reaction(startup) {= gpio_init(25); gpio_set_dir(25, true); =}
  reaction(t) {= gpio_put(25, ++self->n & 1); printf("at %d ms\\n", (int)(lf_time_logical_elapsed() / 1000000)); =}
  reaction(shutdown) {= lf_print("end"); =} }
""")
    ran = board(path, 60_000, "--pins", "25")
    assert ran.output.split() == [
        "at",
        "0",
        "ms",
        "at",
        "5",
        "ms",
        "at",
        "10",
        "ms",
        "at",
        "15",
        "ms",
        "at",
        "20",
        "ms",
        "end",
    ]
    at = [ns for ns, _ in ran.edges[25]]
    assert len(at) >= 5 and all(abs(b - a - 5_000_000) < 100_000 for a, b in pairwise(at[-4:]))


@pytest.mark.soak
def test_both_cores_on_the_pico_sdk(write: Write) -> None:
    path = write("""target C { platform: rp2040 }
preamble {= #include "hardware/gpio.h" =}
reactor Task(pin: int = 2, first: time = 0) { timer t(first, 100 usec)
  reaction(startup) {= gpio_init(self->pin); gpio_set_dir(self->pin, true); =}
  reaction(t) {=
    gpio_put(self->pin, 1);
    for (uint32_t n = 2343; n; n--) __asm volatile("");
    gpio_put(self->pin, 0);
  =} }
main reactor { a = new Task()  b = new Task(pin = 3, first = 50 usec) }
""")
    ran = board(path, 20_000, "--pins", "2,3")
    for pin in (2, 3):
        rises = [ns for ns, level in ran.edges[pin] if level][10:]
        assert len(rises) > 100
        assert max(b - a for a, b in pairwise(rises)) <= 101_000


def test_the_sdk_is_found_or_asked_for(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "target C {{ platform: rp2040 }}\npreamble {{= #include {} =}}\nmain reactor {{}}\n"
    for header, libraries in (
        ('"hardware/gpio.h"', ["hardware_gpio"]),
        ("<pico/stdlib.h>", ["pico_stdlib"]),
        ('"hardware/structs/pio.h"', ["hardware_structs"]),
        ('"board.h"', []),
    ):
        assert sdk_libraries(model(write(text.format(header)))) == libraries
    monkeypatch.setenv("PICO_SDK_PATH", "/nowhere")
    with pytest.raises(LfError, match="pico-sdk, which is not found"):
        build(model(write(text.format('"pico/stdlib.h"'))), Wanted())


def test_on_two_cortex_m33(write: Write) -> None:
    """`--target an521`, in QEMU: the exit status is the program's, and a panic prints its text."""
    path = write("""target C { platform: an521, timeout: 5 msec }
preamble {= extern void an521_puts(const char *); =}
reactor A(name: string = "a") { timer t(0, 1 msec)  logical action later(500 usec): int
  reaction(t) -> later {= lf_schedule_int(later, 0, 7); =}
  reaction(later) {= an521_puts(later->value == 7 ? self->name : "?"); =} }
main reactor { a = new A()  b = new A(name = "b")
  reaction(shutdown) {= an521_puts(".\\n"); =} }
""")
    status, output = qemu(build(model(path), Wanted()).program)
    # The two enclaves have no order.
    assert (status, sorted(output)) == (0, sorted("ab" * 5 + ".\n"))
    path = write("""target C
main reactor { reaction(startup) {= lf_print_error_and_exit("no good"); =} }
""")
    status, output = qemu(build(model(path), Wanted("an521")).program)
    assert (status, output.strip()) == (77, "no good")


@pytest.mark.parametrize(
    "kind, call, pool",
    [
        ("int", "lf_schedule_int(a, MSEC(self->n), self->n)", "events"),
        ("int*", "lf_new_token(a, NULL, 0)", "tokens"),
    ],
)
def test_a_full_pool_stops_with_its_name(write: Write, kind: str, call: str, pool: str) -> None:
    """R21: a full pool stops the program. If the event were just lost, an action that schedules
    itself would silently stop."""
    path = write(f"""target C {{ platform: an521 }}
preamble {{= extern void an521_puts(const char *); =}}
main reactor {{ timer t(0, 10 usec)  logical action a(1 sec): {kind}  state n: int = 0
  reaction(t) -> a {{= self->n++; (void){call}; if (self->n == 1000) {{ an521_puts("?"); lf_request_stop(); }} =}}
  reaction(a) {{= =}} }}
""")
    status, output = qemu(build(model(path), Wanted()).program)
    assert status and f"the pool of {pool} is empty; define a larger WEFT_RX_" in output
    larger = {"events": "WEFT_RX_EVENTS", "tokens": "WEFT_RX_TOKENS"}[pool]
    path.write_text(
        path.read_text().replace("an521 }", f"an521, compile-definitions: {{ {larger}: 1200 }} }}")
    )
    assert qemu(build(model(path), Wanted()).program) == (0, "?")


def qemu(image: Path | None) -> tuple[int, str]:
    command = "qemu-system-arm -M mps2-an521 -nographic -monitor none -serial none -icount shift=4,sleep=off"
    options = ["-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
    ran = subprocess.run([*command.split(), *options], capture_output=True, text=True, timeout=300)
    return ran.returncode, ran.stdout + ran.stderr
