"""Santa Claus sleeps until all his reindeer are back, or until some elves need him (Trono, 1994).

    weft run examples/santa_claus/santa_claus.py
    weft run examples/santa_claus/santa_claus.py --years 3 --elves 4 --on threads
    weft check examples/santa_claus/santa_claus.py::small

      reindeer × 9 ══ back, home (barriers) ══╗
                                            santa ──answers──► the elves of the group
      elf × 10 ──queue──► porter ──door (3 elves)──►╝

Santa waits for one of two things, by a choice: a barrier with all his reindeer, which has priority,
or a group of elves at his door. The porter lets elves in three at a time. Many published solutions
contain an error; `weft check` proves this one for a few reindeer and elves.
"""

from __future__ import annotations

import json

import click

from weft import Barrier, Channel, Parallel, process, run, select


@process
async def reindeer(back, home, years):
    for _ in range(years):
        # A reindeer that is back from its holidays waits at this barrier. The last reindeer that
        # returns wakes Santa.
        await back.sync()
        await home.sync()  # the toys are delivered


@process
async def elf(number, queue, answer, problems):
    for _ in range(problems):
        await queue.write(number)
        await answer.read()


@process
async def porter(queue, door, size):
    while True:
        group = tuple([await queue.read() for _ in range(size)])
        await door.write(group)


@process
async def santa(back, home, door, answers, years):
    """Returns how often the toys were delivered, and how many groups of elves received an
    answer."""
    delivered = groups = 0
    while delivered < years:
        chosen, group = await select(back, door, mode="priority")
        if chosen == 0:
            delivered += 1
            await home.sync()
        else:
            assert len(set(group)) == len(group), f"an elf is in the group twice: {group}"
            groups += 1
            for number in group:
                await answers[number].write("so do it")
    return delivered, groups


@process
async def north_pole(years, deer, elves, size, problems):
    back, home = Barrier(deer + 1), Barrier(deer + 1)
    queue, door = Channel("queue"), Channel("door")
    answers = [Channel(f"answer {i}") for i in range(elves)]
    found, *_ = await Parallel(
        santa(back, home, door.reader(), tuple(a.writer() for a in answers), years),
        [reindeer(back, home, years) for _ in range(deer)],
        [elf(i, queue.writer(), a.reader(), problems) for i, a in enumerate(answers)],
        porter(queue.reader(), door.writer(), size),
    )
    return found


def small():
    """Runs a north pole that is small enough that `weft check` can check every order."""
    delivered, _ = run(north_pole(years=1, deer=2, elves=2, size=2, problems=1))
    assert delivered == 1


@click.command(
    epilog="Choose the backend with: weft run santa_claus.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--years",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Years until Santa retires.",
)
@click.option("--deer", type=click.IntRange(min=1), default=9, show_default=True, help="Reindeer.")
@click.option("--elves", type=click.IntRange(min=1), default=10, show_default=True, help="Elves.")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Elves in a group.",
)
@click.option(
    "--problems",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Problems of each elf.",
)
@click.option("--json", "as_json", is_flag=True, help="Close with one line of JSON on stdout.")
def main(years, deer, elves, size, problems, as_json):
    """Reindeer, elves, and Santa, who sleeps."""
    delivered, groups = run(north_pole(years, deer, elves, size, problems))
    if as_json:
        print(json.dumps({"example": "santa_claus", "delivered": delivered, "groups": groups}))
    else:
        print(
            f"the toys were delivered {delivered} times, and {groups} groups of elves were helped"
        )


if __name__ == "__main__":
    main()
