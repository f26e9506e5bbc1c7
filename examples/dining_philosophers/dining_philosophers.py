"""Five philosophers, five forks: what the report of a deadlock contains, and two ways to avoid the
deadlock.

    weft run examples/dining_philosophers/dining_philosophers.py
    weft run examples/dining_philosophers/dining_philosophers.py --table greedy
    weft run examples/dining_philosophers/dining_philosophers.py --table ordered --on threads
    weft check examples/dining_philosophers/dining_philosophers.py::secured

A fork is a process: a philosopher takes it by reading from it and puts it back by writing to it, so
a fork that is in use cannot be taken.

    butler   a butler lets all philosophers but one sit down, by a choice with preconditions (Hoare,
             "Communicating Sequential Processes", section 2.5)
    ordered  every philosopher takes the fork with the smaller number first (Dijkstra)
    greedy   every philosopher takes the left fork first. In the end all hold one fork and wait
             for the other: the run raises Deadlock, which names the knot (exit status 3 under
             `weft run`)

A philosopher holds a fork as a pair (take, put) of ends. The pair is a tuple, so that the process
owns the ends (rule 2.3).
"""

from __future__ import annotations

import json

import click

from weft import Barrier, Channel, Input, Parallel, process, run, select


@process
async def fork(take, put):
    """Offers the fork while it is on the table. Once the fork has been taken, waits until it is put
    back. Ends when both philosophers who use the fork have ended.
    """
    while True:
        await take.write("fork")
        await put.read()


async def eat(first, second, held):
    take, put = first
    take_other, put_other = second
    await take.read()
    if held is not None:
        await held.sync()  # every philosopher holds a fork here, so a deadlock is certain
    await take_other.read()
    await put_other.write("fork")
    await put.write("fork")


@process
async def philosopher(first, second, meals, held=None):
    for _ in range(meals):
        await eat(first, second, held)
    return meals


@process
async def seated_philosopher(first, second, meals, sit, leave):
    for _ in range(meals):
        await sit.write("please")
        await eat(first, second, None)
        await leave.write("thank you")
    return meals


@process
async def butler(sit, leave, chairs):
    seated = 0
    while True:
        chosen, _ = await select(Input(sit).when(seated < chairs), Input(leave).when(seated > 0))
        seated += 1 if chosen == 0 else -1


@process
async def dinner(table, guests, meals):
    take = [Channel(f"take {i}") for i in range(guests)]
    put = [Channel(f"put {i}") for i in range(guests)]
    forks = [fork(t.writer(), p.reader()) for t, p in zip(take, put, strict=True)]

    def both(guest):
        numbers = guest, (guest + 1) % guests
        if table == "ordered":
            numbers = sorted(numbers)
        return [(take[i].reader(), put[i].writer()) for i in numbers]

    if table == "butler":
        sit, leave = Channel("sit"), Channel("leave")
        at_table = [
            seated_philosopher(*both(i), meals, sit.writer(), leave.writer()) for i in range(guests)
        ]
        staff = [butler(sit.reader(), leave.reader(), guests - 1)]
    else:
        held = Barrier(guests) if table == "greedy" else None
        at_table = [philosopher(*both(i), meals, held) for i in range(guests)]
        staff = []
    return (await Parallel(at_table, forks, staff))[:guests]


def secured():
    """Runs a dinner with a butler, small enough that `weft check` can check every order."""
    return run(dinner("butler", 3, 1))


@click.command(
    epilog="Choose the backend with: weft run dining_philosophers.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--table",
    type=click.Choice(("butler", "ordered", "greedy")),
    default="butler",
    show_default=True,
    help="The order in which forks are taken.",
)
@click.option(
    "--guests",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Philosophers, and forks.",
)
@click.option(
    "--meals",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Meals of each philosopher.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(table, guests, meals, as_json):
    """Philosophers share forks, with or without a deadlock."""
    eaten = run(dinner(table, guests, meals))
    if as_json:
        print(json.dumps({"example": "dining_philosophers", "table": table, "eaten": eaten}))
        return
    for guest, number in enumerate(eaten):
        print(f"philosopher {guest} ate {number} meals")
    print(f"nobody starved at the {table} table")


if __name__ == "__main__":
    main()
