"""Writes the end of the C file: the table of programs (one for each enclave), the functions that
run when the programs start, and `main`."""

from __future__ import annotations

from collections.abc import Mapping

from weft_lf.emission import Emission


def _enclave(e: Emission, number: int, ranges: Mapping[int, int]) -> list[str]:
    """Returns the initialisers of an enclave's weft_rx_program."""
    counts = e.layout.counts
    parts = [f'.name = "{e.model.program.name}"', f".count = {counts[number]}"]
    if number:
        parts += [f".first = {sum(counts[:number])}", f".core = {min(number, 255)}"]
    if number in ranges:
        parts += [f".first_range = {ranges[number]}", ".ranges = 1"]
    if e.schedule is not None:
        parts += [f".slots = {len(e.schedule.slots)}", f".loop = {e.schedule.loop}"]
    for what in ("startup", "shutdown"):
        text, numbers = e.ends[what, number]
        if numbers:
            parts.append(f".{what} = {text.format(*numbers)}")
    if e.level_count:
        parts.append(f".levels = {e.level_count}")
    if e.starts[number]:
        parts.append(f".start = lf_start_{number}")
    return parts


def program(e: Emission, ranges: Mapping[int, int]) -> list[str]:
    """Returns the lines of the end of the C file. `ranges` contains the place of each enclave's
    timers.
    """
    config, layout = e.model.program.config, e.layout
    e.starts[0] = [*e.start, *e.starts[0]]
    lines, programs = [], []
    for number, start in enumerate(e.starts):
        if start:
            lines += [f"static void lf_start_{number}(void) {{", *start, "}"]
        programs.append(f"{{{', '.join(_enclave(e, number, ranges))}}}")
    links = layout.enclaves.links()
    if links:
        rows = ", ".join(f"{{{a}, {b}, {ns}LL}}" for a, b, ns in links)
        lines.append(f"const weft_rx_link weft_rx_links[] = {{{rows}}};")
    table = ", ".join(programs)
    lines.append(f"WEFT_RX_TABLE weft_rx_program weft_rx_programs[] = {{{table}}};")
    lines.append('#include "weft_mcu/reactors_run.h"')
    options = [f".timeout_ns = {-1 if config.timeout is None else config.timeout}"]
    if config.fast:
        options.append(".fast = true")
    if config.keepalive is not None:
        options.append(".keepalive = true" if config.keepalive else ".no_keepalive = true")
    given = f"(weft_rx_options){{{', '.join(options)}}}"
    if e.options.device:
        lines += [
            *['#include "pico/stdlib.h"'] * e.options.sdk,
            "int main(void) {",
            *["  stdio_init_all();"] * e.options.sdk,
            f"  const weft_rx_options options = {given[17:]};",
            "  return weft_rx_run(&options);",
            "}",
        ]
    else:
        lines += [
            "int main(int argc, char **argv) {",
            f"  return weft_rx_main(argc, argv, {given});",
            "}",
        ]
    return lines


__all__ = ["program"]
