"""Models in virtual time how many hosts one home can keep busy, and what helps when there are more
hosts.

    weft run examples/farm_scale/farm_scale.py
    weft run examples/farm_scale/farm_scale.py --work 10 --hosts 10 --hosts 100 --svg out/farm.svg

                   jobs                       results
    one home:   hand_out ════►  worker × N  ════►  collect
    a tree:     hand_out ══►  fetch ════►  worker × N/H  ════►  gather ══►  collect
                top home      └──────── a home below, H times ───────┘      top home

The model is itself a network of Weft. Its processes only wait and compute nothing, and time jumps
from one wait to the next, so a thousand hosts need one CPU and no network.

Assumptions
- A host has one worker. A job takes two communications with the worker's home: the job is read, and
  the result is written. Each communication is a request and its answer, which go over the network
  (--delay each).
- A home serves one request at a time, in order of arrival, in --service, however many hosts it
  has. This holds for `weft.net` in Python, where all sessions of a program share one event loop.
- All jobs take --work, and all values are small. Where jobs differ in length, a farm is slower than
  the model near its limit, and at its end, when it waits for the last jobs.
- In a tree the top home gives each home below as many jobs at once as that home has hosts, and gets
  their results at once. A home below receives its next jobs before the previous ones run out.
- No host or home fails, the network carries everything, and starting costs nothing.

Invariants
- Every job is done once: `simulate` returns the jobs whose results have reached the top home.
- Nothing is random, and the clock is virtual: the same options give the same figures.
"""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import NamedTuple

import click

from weft import Channel, Parallel, now, process, run, sleep

REQUESTS = 2  # requests of a worker, for each job
# The time of a round trip by TLS on loopback, the median of a run of `./run bench net-int`; other
# runs measured up to 189 (the newest results are in bench/RESULTS.md). The whole time counts as the
# home's, although the other program and the system spend a part of it.
SERVICE_US = 156
HOSTS = (1, 10, 100, 300, 1000, 3000)


class Costs(NamedTuple):
    """Times of the model, in seconds."""

    work: float  # seconds of work for a job
    service: float  # seconds that a home needs to serve a request
    delay: float  # seconds for one way over the network


@process
async def home(requests, service):
    """Serves one request at a time; the sender continues when its request has been served."""
    while True:
        async with requests.extended():
            await sleep(service)


@process
async def hand_out(jobs, number, batch):
    for first in range(0, number, batch):
        await jobs.write(list(range(first, min(first + batch, number))))


@process
async def worker(at_home, jobs, results, costs):
    await sleep(costs.delay)
    while True:
        await at_home.write("a job?")
        job = await jobs.read()
        await sleep(costs.delay + costs.work + costs.delay)
        await at_home.write("a result")
        await results.write(job)
        await sleep(2 * costs.delay)  # for the answer, and for the next request


@process
async def fetch(at_top, at_home, batches, jobs, costs):
    """Fetches jobs from the top home, for a home below."""
    while True:
        await sleep(costs.delay)
        await at_top.write("jobs?")
        batch = await batches.read()
        await sleep(costs.delay)
        await at_home.write("they came")
        for job in batch:
            await jobs.write([job])


@process
async def gather(at_top, at_home, results, batches, costs, size):
    """Sends results of a home below to the top home, `size` at a time, and at the end the remaining
    ones."""
    done = []
    async for part in results:
        done += part
        if len(done) >= size:
            await send(at_top, at_home, batches, costs, done)
            done = []
    if done:
        await send(at_top, at_home, batches, costs, done)


async def send(at_top, at_home, batches, costs, done):
    await at_home.write("they go")
    await sleep(costs.delay)
    await at_top.write("results")
    await batches.write(done)


@process
async def collect(results):
    """Returns the jobs that were done, in the order of their results, and when the last result
    arrived.
    """
    done, last = [], 0.0
    async for part in results:
        done += part
        last = now()
    return done, last


def farm(hosts, costs, jobs, results):
    """Returns a home with its workers, and the channel of its requests, for other processes that
    use this home.
    """
    requests = Channel("requests")
    ends = [(requests.writer(), jobs.reader(), results.writer()) for _ in range(hosts)]
    return [home(requests.reader(), costs.service), *(worker(*e, costs) for e in ends)], requests


def at_once(hosts, homes):
    """Returns how many jobs the top home hands out at a time."""
    return math.ceil(hosts / homes) if homes else 1


def tree(hosts, homes, costs, jobs, results):
    """Returns a home at the top, and `homes` homes below it that share the hosts."""
    top, batch = Channel("requests at the top"), at_once(hosts, homes)
    parts = [home(top.reader(), costs.service)]
    for i in range(homes):
        below, done = Channel("jobs", capacity=batch), Channel("results", capacity=batch)
        ours, requests = farm(hosts // homes + (i < hosts % homes), costs, below, done)
        ends = (top.writer(), requests.writer(), jobs.reader(), below.writer())
        back = (top.writer(), requests.writer(), done.reader(), results.writer())
        parts += [*ours, fetch(*ends, costs), gather(*back, costs, batch)]
    return parts


@process
async def network(hosts, homes, number, costs):
    """Runs a farm of `number` hosts: at one home (`homes` is 0), or at `homes` homes below a top
    home.
    """
    began = now()
    jobs, results = Channel("jobs"), Channel("results")
    if homes == 0:
        parts, _ = farm(hosts, costs, jobs, results)
    else:
        parts = tree(hosts, homes, costs, jobs, results)
    source = hand_out(jobs.writer(), number, at_once(hosts, homes))
    (finished, last), *_ = await Parallel(collect(results.reader()), source, parts)
    return finished, last - began


def simulate(hosts, homes, number, costs):
    """Returns the jobs done, in the order of their results, and the seconds that `number` jobs
    took.
    """
    return run(network(hosts, homes, number, costs), clock="virtual")


def bound(hosts, homes, costs):
    """Returns the largest possible speed-up of a farm over one worker without a network, namely the
    speed-up at which every host, or every home, is busy all the time.
    """
    # The number of jobs that a busy home serves while a worker does one.
    served = costs.work / (REQUESTS * costs.service)
    batch = at_once(hosts, homes)
    return min(hosts, batch * served, homes * served / (1 + 1 / batch) if homes else hosts)


def point(hosts, homes, jobs, costs):
    done, seconds = simulate(hosts, homes, hosts * jobs, costs)
    figures = (len(done), seconds, costs.work * len(done) / seconds, bound(hosts, homes, costs))
    return dict(zip(("done", "seconds", "speedup", "bound"), figures, strict=True))


def plot(farms, title):
    """Draws speed-up against hosts, both on logarithmic scales, as SVG."""
    decades = max(math.ceil(math.log10(farms[-1]["hosts"])), 1)

    def at(hosts, speedup):
        x, y = math.log10(hosts) / decades, max(math.log10(speedup), 0) / decades
        return round(60 + 420 * x, 1), round(350 - 300 * y, 1)

    def text(x, y, words, anchor="start", colour="black"):
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{words}</text>'

    parts = [text(8, 20, title), text(8, 40, "times as fast as one worker")]
    parts += [text(270, 392, "hosts"), '<path d="M60,350L480,50" stroke="#888"/>']
    for n in (10**power for power in range(decades + 1)):
        x, y = at(n, n)
        parts.append(f'<path d="M{x},350V50M60,{y}H480" stroke="#ddd"/>')
        parts += [text(x, 370, n, "middle"), text(52, y + 4, n, "end")]
    for key, colour, name in (("tree", "#2b83ba", "a tree"), ("one", "#d7301f", "one home")):
        where = [at(farm["hosts"], farm[key]["speedup"]) for farm in farms]
        line = " ".join(f"{x},{y}" for x, y in where)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(where[-1][0] + 8, where[-1][1] + 4, name, colour=colour))
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 400" style="background:white"'
    return "\n".join([f'{head} font-family="sans-serif" font-size="13">', *parts, "</svg>\n"])


option = functools.partial(click.option, show_default=True)
some, time = click.IntRange(1, 10**5), click.IntRange(1, 10**6)


@click.command(epilog="Choose the backend with: weft run farm_scale.py --on BACKEND [OPTIONS]")
@option(
    "--hosts", type=some, multiple=True, default=HOSTS, help="Hosts of a farm; once for each farm."
)
@option("--homes", type=some, default=10, help="Homes below the top home of the tree.")
@option("--jobs", type=some, default=50, help="Jobs for each host.")
@option("--work", type=time, default=100, help="Time of a job, in ms.")
@option("--service", type=time, default=SERVICE_US, help="Time of a request at its home, in µs.")
@option(
    "--delay", type=click.IntRange(0, 10**6), default=100, help="Time of the way to a home, in µs."
)
@option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="The plot to write.")
@option("--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end.")
def main(hosts, homes, jobs, work, service, delay, svg, as_json):
    """Model farms of many hosts, at one home and at a tree of homes: how many times as fast as one
    worker they are, beside the most that is possible."""
    costs, farms = Costs(work / 1e3, service / 1e6, delay / 1e6), []
    for n in sorted(set(hosts)):
        one, several = point(n, 0, jobs, costs), point(n, min(homes, n), jobs, costs)
        farms.append({"hosts": n, "one": one, "tree": several})
    title = f"a job {work} ms, a request {service} µs at its home, the way {delay} µs"
    if svg:
        try:
            svg.parent.mkdir(parents=True, exist_ok=True)
            svg.write_text(plot(farms, title), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"--svg {svg}: {error.strerror}") from None
    if as_json:
        report = {"example": "farm_scale", **costs._asdict(), "homes": homes, "jobs": jobs}
        print(json.dumps({**report, "farms": farms}))
        return
    print(f"{title}; {jobs} jobs for each host\n")
    print(f" hosts   one home    at most {f'{homes} homes':>10}    at most")
    for farm in farms:
        figures = [farm[key][name] for key in ("one", "tree") for name in ("speedup", "bound")]
        print(f"{farm['hosts']:>6}", *(f"{figure:>10.1f}" for figure in figures))


if __name__ == "__main__":
    main()
