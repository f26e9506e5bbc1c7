"""A vibration monitor, whose filter runs where one word says:

accelerometer ──samples──► goertzel ──powers──► threshold ──alarms──► display
                           (anywhere)

python monitor.py here | process | host | board | everywhere [--language python|cpp] [--table]
"""

from __future__ import annotations

import pickle
from time import perf_counter_ns, process_time_ns

import cbor2
import click
from places import PLACES

from weft.coroutines import Channel, process, run
from weft.errors import BadUse

SIZE = 32  # samples in a block
TONE = (0, 181, 256, 181, 0, -181, -256, -181)  # the bearing: 500 Hz at 4,000 samples a second
HEAD = (
    "| filter | in | ns a sample | ns of this program's CPU | bytes of values on a line |",
    "|---|---|--:|--:|--:|",
)
HUM = (0, 100, 0, -100)  # the motor: 1,000 Hz


def readings(blocks):
    """Yields what the accelerometer reads in so many blocks: a bearing that is worse in some of
    them, the motor, and noise. Below 512 in size; the same on every run.
    """
    noise = 1
    for i in range(blocks * SIZE):
        noise = (noise * 1103515245 + 12345) % 2**31
        worn = (i // SIZE) ** 2 % 7  # 0, 1, 2 or 4
        yield TONE[i % 8] * worn // 4 + HUM[i % 4] + (noise >> 16) % 65 - 32


def clocks():
    """Returns the time, and the CPU time that this program has taken, both in ns."""
    return perf_counter_ns(), process_time_ns()


@process
async def accelerometer(samples, blocks):
    """Writes samples as fast as they are taken. Returns the clocks when the first was."""
    begun = None
    for sample in readings(blocks):
        await samples.write(sample)
        begun = begun or clocks()
    return begun


@process
async def threshold(powers, alarms, limit):
    """Passes on the blocks above the limit. Returns all powers, and the clocks at their end."""
    seen = []
    async for power in powers:
        if power > limit:
            await alarms.write((len(seen), power))
        seen.append(power)
    return seen, clocks()


@process
async def display(alarms):
    """Prints the alarms. Returns their lines."""
    lines = []
    async for block, power in alarms:
        lines.append(f"block {block}: {power}")
        click.echo(lines[-1])
    return lines


def monitored(place, language, blocks, limit):
    """Runs the monitor with the filter at that place. Returns the lines of the display, and a row
    of the table.
    """
    with PLACES[language, place]() as filter_at:
        samples, powers, alarms = Channel("samples"), Channel("powers"), Channel("alarms")
        placed = filter_at(samples.reader(), powers.writer())
        begun, (seen, ended), lines, *_ = run(
            accelerometer(samples.writer(), blocks),
            threshold(powers.reader(), alarms.writer(), limit),
            display(alarms.reader()),
            *([] if placed is None else [placed]),
        )
    n = blocks * SIZE
    took, cpu = ((end - begin) // (n - 1) for begin, end in zip(begun, ended, strict=True))
    size = carried(place, [*readings(blocks), *seen]) / n
    return lines, f"| {place} | {language} | {took:,} | {cpu:,} | {size:.1f} |"


def carried(place, values):
    """Returns how many bytes these values have where they leave or enter this program: CBOR on the
    way to a board and to another machine, a pickle to another OS process here.
    """
    if place == "here":
        return 0
    packed = pickle.dumps if place == "process" else cbor2.dumps
    return sum(len(packed(value)) for value in values)


@click.command()
@click.argument("place", type=click.Choice(["here", "process", "host", "board", "everywhere"]))
@click.option("--language", default="python", type=click.Choice(["python", "cpp"]))
@click.option("--blocks", default=8, show_default=True, type=click.IntRange(1, 100000))
@click.option("--limit", default=3_000_000, show_default=True, help="The power of an alarm.")
@click.option("--table", is_flag=True, help="Print what it took. `everywhere` always does.")
def main(place, language, blocks, limit, table):
    """Monitors vibrations, with the filter at PLACE. `everywhere`: at each place in turn, in both
    languages; the display must always show the same.
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
