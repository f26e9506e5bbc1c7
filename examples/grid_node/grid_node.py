"""A node of a power grid, which receives phasors, computes averages and thresholds in C++, and
decides in Python.

    weft run examples/grid_node/grid_node.py --seconds 60
    weft run examples/grid_node/grid_node.py --clock steady --seconds 8 --on threads

      frames ──inside──► pmu ──┐ 50/s                       ┌──► breaker
      frames ──inside──► pmu ──┴ 60/s ──► node ──► decide ──┘
                                        ask ▲▼ │      ▲ └─ settings ─► node
                                           model     rms ◄── record (COMTRADE)

`frames`, `pmu`, `node` and `rms` are processes in C++ (node.cpp): they run beside Python, on
threads that do not hold its lock.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
import comtrade
import inputs
import numpy as np
import picture

import weft.native
from weft import Channel, Retired, now, process, run, select, sleep

STATIONS = (50, 60)
LOW, HIGH = 0.9, 0.95


@process
async def model(ask, answers, slow_every):
    """Answers each question with the expected voltage, which is a slow mean. Some answers take
    longer than a handler's deadline.
    """
    expected, asked = 1.0, 0
    async for volts in ask:
        asked += 1
        await sleep(0.060 if asked % slow_every == 0 else 0.005)
        expected += 0.1 * (volts - expected)
        await answers.write(expected)
    return asked


@process
async def record(path, samples, levels_of):
    """Writes the recorded voltage, a cycle at a time, at the rate at which it was sampled."""
    read = comtrade.load(str(path.with_suffix(".cfg")), str(path.with_suffix(".dat")))
    voltage = np.asarray(read.analog[read.analog_channel_ids.index(levels_of)], dtype=np.float64)
    cycle = round(read.cfg.sample_rates[0][0] / read.frequency)
    for first in range(0, len(voltage), cycle):
        await sleep(cycle / read.cfg.sample_rates[0][0])
        # From this write on, the array belongs to the component.
        await samples.write(voltage[first : first + cycle].copy())


@process
async def decide(averages, alarms, recorded, settings, orders):
    """Opens a breaker after three bad averages and closes it after ten good ones; during a sag it
    accepts a lower voltage.
    """
    began = now()
    seen, heard, decisions = [], [], []
    bad, good, is_open = dict.fromkeys(STATIONS, 0), dict.fromkeys(STATIONS, 0), set()
    try:
        while True:
            which, value = await select(averages, alarms, recorded)
            if which > 0:
                heard.append(value)
                if value[0] == "sag":
                    await settings.write((LOW, HIGH - 0.02))
                continue
            seen.append(value)
            station, _, volts, _, _ = value
            bad[station] = bad[station] + 1 if volts < LOW else 0
            good[station] = good[station] + 1 if volts > HIGH else 0
            if bad[station] == 3 and station not in is_open:
                is_open.add(station)
                await orders.write(("open", station))
                decisions.append((now() - began, "open", station))
            if good[station] == 10 and station in is_open:
                is_open.remove(station)
                await orders.write(("close", station))
                decisions.append((now() - began, "close", station))
    except Retired:  # all three channels have retired
        return seen, heard, decisions


@process
async def breaker(orders):
    """Executes orders; each takes 40 ms."""
    moves = []
    async for order in orders:
        await sleep(0.040)
        moves.append(order)
    return moves


@process
async def collect(reader):
    return [value async for value in reader]


def network(node, folder, slow_every):
    """Returns the processes, and those of them that return a result."""
    measured = {s: Channel(f"measured {s}") for s in STATIONS}
    refused, alarms, recorded = Channel("refused"), Channel("alarms"), Channel("recorded")
    ask, answers, averages = Channel("ask"), Channel("answers"), Channel("averages")
    # A writer of settings must not wait for the node, which might be waiting for that writer. Only
    # the latest value counts.
    settings = Channel("settings", capacity=1, overflow="drop_oldest")
    orders, samples, levels = Channel("orders", capacity=8), Channel("samples"), Channel("levels")
    natives = []
    for s in STATIONS:
        inside = Channel(f"inside {s}")
        natives.append(node.frames(str(folder / f"pmu{s}.bin"), -inside, -refused))
        natives.append(node.pmu(+inside, -measured[s], -refused, inputs.NOMINAL))
    natives.append(
        node.node(
            +measured[50],
            +measured[60],
            +settings,
            +answers,
            -ask,
            -averages,
            -alarms,
            low=LOW,
            high=HIGH,
        )
    )
    natives.append(
        node.rms(
            +samples,
            -levels,
            -recorded,
            rate=inputs.RATE,
            hertz=50,
            nominal=inputs.NOMINAL,
            low=LOW,
            station=0,
        )
    )
    return [
        decide(+averages, +alarms, +recorded, -settings, -orders),
        breaker(+orders),
        collect(+refused),
        collect(+levels),
        model(+ask, -answers, slow_every),
        record(folder / "fault", -samples, "VA"),
        *natives,
    ]


def observe(folder, seconds, seed, clock, slow_every):
    """Writes the inputs, runs the node over them, and returns the outcome."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = {s: inputs.write_frames(folder / f"pmu{s}.bin", s, seconds, seed) for s in STATIONS}
    samples = inputs.write_record(folder / "fault", min(seconds, 5.0), seed)
    node = weft.native.load(Path(__file__).with_name("node.cpp"))
    began = time.perf_counter()
    (seen, heard, decisions), moves, refused, levels, asked, *_ = run(
        *network(node, folder, slow_every), clock=clock
    )
    return {
        "frames": frames,
        "samples": samples,
        "refused": sorted(refused),
        "averages": seen,
        "alarms": sorted(heard, key=lambda a: (a[2], a[0], a[1])),
        "decisions": decisions,
        "moves": moves,
        "levels": levels,
        "asked": asked,
        "took": time.perf_counter() - began,
    }


@click.command(
    epilog="Choose the backend with: weft run grid_node.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=20.0,
    show_default=True,
    help="Length of the run.",
)
@click.option(
    "--clock", type=click.Choice(["virtual", "steady"]), default="virtual", show_default=True
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the noise.")
@click.option(
    "--folder",
    type=Path,
    default=Path("out/grid_node"),
    show_default=True,
    help="Folder of the inputs.",
)
@click.option(
    "--out", type=Path, default=None, help="Picture; default: grid_node.png in the folder."
)
@click.option(
    "--slow-every",
    type=click.IntRange(min=1),
    default=25,
    show_default=True,
    help="One answer of the model in this many is late.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(seconds, clock, seed, folder, out, slow_every, as_json):
    """Watch over two stations of a power grid."""
    found = observe(folder, seconds, seed, clock, slow_every)
    out = out or folder / "grid_node.png"
    try:
        picture.draw(out, found, LOW)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"--out {out}: {error}") from None
    if as_json:
        print(json.dumps({"example": "grid_node", **found}))
        return
    late = sum(a[0] == "late" for a in found["alarms"])
    sizes = " and ".join(f"{n} frames at {s}/s" for s, n in found["frames"].items())
    print(
        f"{sizes}, {found['samples']} samples of a record; {len(found['refused'])} times something was refused"
    )
    print(
        f"{len(found['averages'])} averages, {late} with a late answer of {found['asked']} asked for"
    )
    for what, station, at, volts in found["alarms"]:
        if what != "late":
            print(f"  {at:7.3f} s  {what} at station {station}: {volts:.3f}")
    for at, order, station in found["decisions"]:
        print(f"  {at:7.3f} s  decided: {order} the breaker of station {station}")
    print(f"{seconds:g} s of the grid in {found['took']:.2f} s; {out}")


if __name__ == "__main__":
    main()
