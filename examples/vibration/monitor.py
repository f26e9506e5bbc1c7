"""A vibration monitor, whose filter runs at the place that an option names.

    accelerometer ──samples──► goertzel ──powers──► threshold ──alarms──► display
                               (anywhere)

At the place `device` the accelerometer is also on the board. At all other places everything but the
filter runs in this program.
"""

from __future__ import annotations

import pickle
from time import perf_counter_ns, process_time_ns

import cbor2
import click
from accelerometer import SIZE, readings
from places import PLACES

from weft.coroutines import Channel, process, run
from weft.errors import BadUse

WORDS = ["here", "process", "host", "board", "device", "everywhere"]
HEAD = (
    "| filter | in | ns a sample | ns of this program's CPU | bytes that cross |",
    "|---|---|--:|--:|--:|",
)


def clocks():
    """Returns the time, and the CPU time that this program has used, both in ns."""
    return perf_counter_ns(), process_time_ns()


@process
async def threshold(powers, alarms, limit):
    """Writes the number and the power of each block whose power is above the limit. Returns all
    powers, and the clocks at the first and at the last of them.
    """
    seen, times = [], []
    async for power in powers:
        times = [*times[:1], clocks()]
        if power > limit:
            await alarms.write((len(seen), power))
        seen.append(power)
    return seen, times


@process
async def display(alarms):
    """Prints the alarms. Returns their lines."""
    lines = []
    async for block, power in alarms:
        lines.append(f"block {block}: {power}")
        click.echo(lines[-1])
    return lines


def monitored(place, language, blocks, limit):
    """Runs the monitor with the filter at this place. Returns the lines of the display, and a row
    of the table.
    """
    with PLACES[language, place]() as at:
        samples, powers, alarms = Channel("samples"), Channel("powers"), Channel("alarms")
        (seen, times), lines, *_ = run(
            threshold(powers.reader(), alarms.writer(), limit),
            display(alarms.reader()),
            at.sensor(samples.writer(), blocks),
            at.filter(samples.reader(), powers.writer()),
        )
    if len(seen) != blocks:
        raise BadUse(f"{place}, {language}: the filter gave {len(seen)} powers for {blocks} blocks")
    n = (blocks - 1) * SIZE  # samples between the first power and the last
    took, cpu = ((end - begin) // n for begin, end in zip(*times, strict=True))
    size = carried(place, list(readings(blocks)), seen) / (blocks * SIZE)
    return lines, f"| {place} | {language} | {took:,} | {cpu:,} | {size:.1f} |"


def carried(place, samples, powers):
    """Returns how many bytes the values that leave or enter this program have when packed: in CBOR
    for a board or a host, as a pickle for another OS process of this program.
    """
    if place == "here":
        return 0
    packed = pickle.dumps if place == "process" else cbor2.dumps
    crossing = powers if place == "device" else [*samples, *powers]
    return sum(len(packed(value)) for value in crossing)


@click.command()
@click.argument("place", type=click.Choice(WORDS))
@click.option("--language", default="python", type=click.Choice(["python", "cpp"]))
@click.option("--blocks", default=8, show_default=True, type=click.IntRange(2, 100000))
@click.option("--limit", default=3_000_000, show_default=True, help="The power of an alarm.")
@click.option("--table", is_flag=True, help="Print what it took. `everywhere` always does.")
def main(place, language, blocks, limit, table):
    """Monitors vibrations, with the filter at PLACE. `everywhere` runs the monitor with the filter
    at each place in turn, in both languages; the display must always show the same.
    """
    wanted = [(language, place)] if place != "everywhere" else list(PLACES)
    shown, rows = [], [*HEAD]
    for its_language, at in wanted:
        if place == "everywhere":
            click.echo(f"{at}, {its_language}:")
        try:
            lines, row = monitored(at, its_language, blocks, limit)
        except BadUse as bad:
            raise click.ClickException(str(bad)) from bad
        shown.append(lines)
        rows.append(row)
    if table or place == "everywhere":
        click.echo("\n".join(rows))
    if any(lines != shown[0] for lines in shown):
        raise click.ClickException("the places do not show the same")


if __name__ == "__main__":
    main()
