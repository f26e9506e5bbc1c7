"""The sleeping barber: a shop with some chairs, whose barber sleeps while no customer waits
(Dijkstra).

    weft run examples/sleeping_barber/sleeping_barber.py
    weft run examples/sleeping_barber/sleeping_barber.py --chairs 1 --customers 50 --on threads
    weft check examples/sleeping_barber/sleeping_barber.py::small

      customer ─┐
      customer ─┼──room (so many chairs)──► barber ──shaven──► the customer
      customer ─┘

The waiting room is a buffer: a customer who finds no free chair leaves. The barber sleeps in a
read. With semaphores wake-ups are easily lost here. With a channel no wake-up can be lost, and
`weft check` proves this for a small shop: no customer waits for ever, and all chairs are used.
"""

from __future__ import annotations

import json

import click

from weft import Channel, Output, Parallel, process, run, select, skip


@process
async def barber(room, shaven):
    customers = 0
    async for number in room:  # the barber sleeps here
        await shaven[number].write(None)
        customers += 1
    return customers


@process
async def customer(number, room, shaven):
    """Returns whether the customer found a chair, and so was shaved."""
    chosen, _ = await select(Output(room, number), skip(), mode="priority")
    if chosen == 1:
        return False
    await shaven.read()
    return True


@process
async def shop(chairs, customers):
    room = Channel("room", capacity=chairs)
    shaven = [Channel(f"shaven {i}") for i in range(customers)]
    served, *happy = await Parallel(
        barber(room.reader(), tuple(c.writer() for c in shaven)),
        [customer(i, room.writer(), c.reader()) for i, c in enumerate(shaven)],
    )
    assert served == sum(happy), f"{served} were shaved, and {sum(happy)} say so"
    assert served >= min(chairs, customers), f"{chairs} chairs, and only {served} sat down"
    return served


def small():
    """Runs a shop that is small enough that `weft check` can check every order."""
    return run(shop(1, 3))


@click.command(
    epilog="Choose the backend with: weft run sleeping_barber.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--chairs",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Chairs in the waiting room.",
)
@click.option(
    "--customers",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Customers who come.",
)
@click.option("--json", "as_json", is_flag=True, help="Close with one line of JSON on stdout.")
def main(chairs, customers, as_json):
    """A barber, some chairs, and customers who do not wait outside."""
    served = run(shop(chairs, customers))
    if as_json:
        print(json.dumps({"example": "sleeping_barber", "served": served, "came": customers}))
    else:
        print(f"{customers} customers came, {served} were shaved, {customers - served} went away")


if __name__ == "__main__":
    main()
