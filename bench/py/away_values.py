"""Sends a value there and back, or one way, between two OS processes over channels of
weft.processes. away_shared.py lists the values of KIND.

int: the figure is ns for a round trip. Other values: ns from before the write to after the read, by
a clock that is the same for the whole system. read: ns until the sum of an array has been computed;
here: like read, but from thread to thread in one process; shared: like read, with a
weft.processes.Shared. fill, fill-here: like read and here, but from before the array is made and
filled, in place (weft.processes.empty). give: like fill, but numpy makes the array, and the write
gives it away.
"""

import sys

from away_shared import MEGABYTE, check, now, payload, pin
from sampler import Sampler, fail, numbers

from weft import threads
from weft.processes import Channel, Shared, arrays_in_shared_memory, empty, process, run


@process
def answers(source, sink):
    pin(1)
    for value in source:
        sink.write(value + 1)


def send(asked, sink, kind):
    pin(1)
    value = Shared(payload("read")) if kind == "shared" else payload(kind)
    for _ in asked:
        began = now()
        sink.write(value)
        sink.write(began)


def make_and_send(asked, sink, make):
    pin(1)
    for number in asked:
        began = now()
        value = make(MEGABYTE // 8)
        value.fill(number)
        sink.write(value)
        sink.write(began)
        del value


def filled(number):
    import numpy

    array = numpy.empty(MEGABYTE // 8)
    array.fill(number)
    return array


@process
def gives(asked, sink):
    pin(1)
    with arrays_in_shared_memory():
        for number in asked:
            began = now()
            sink.write(filled(number))
            sink.write(began)


@process
def fills(asked, sink):
    make_and_send(asked, sink, empty)


@threads.process
def fills_here(asked, sink):
    import numpy

    make_and_send(asked, sink, numpy.empty)


@process
def sends(asked, sink, kind):
    send(asked, sink, kind)


@threads.process
def sends_here(asked, sink, kind):
    send(asked, sink, kind)


@threads.process
def round_trips(there, back, samples, per):
    pin(0)
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for n in range(per):
            there.write(n)
            if back.read() != n + 1:
                fail("away_values: a wrong value came back")
        if k:
            sampler.end(per)
    sampler.print()


@threads.process
def one_way_filled(ask, back, samples, per):
    pin(0)
    means = []
    for k in range(samples + 1):
        total = 0
        for number in range(per):
            ask.write(number)
            value = back.read()
            if value.sum() != number * (MEGABYTE // 8):
                fail("away_values: a wrong sum")
            ended = now()
            total += ended - back.read()
            del value
        if k:
            means.append(total / per)
    print("ns", *(f"{m:.1f}" for m in means), flush=True)


@threads.process
def one_way(ask, back, kind, samples, per):
    pin(0)
    summed = kind in ("read", "shared")
    if summed:
        import numpy
    mine = payload("read" if summed else kind)
    total_of_mine = mine.sum() if summed else None
    means = []
    for k in range(samples + 1):
        total = 0
        for _ in range(per):
            ask.write(None)
            value = back.read()
            if summed and numpy.asarray(value).sum() != total_of_mine:
                fail("away_values: a wrong sum")
            ended = now()
            total += ended - back.read()
            if kind != "shared" and not check(kind, value, mine):
                fail("away_values: a wrong value came")
            del value
        if k:
            means.append(total / per)
    print("ns", *(f"{m:.1f}" for m in means), flush=True)


if __name__ == "__main__":
    kind = sys.argv.pop(1)
    there, back = Channel("there"), Channel("back")
    if kind == "int":
        run(
            round_trips(there.writer(), back.reader(), *numbers("SAMPLES PER")),
            answers(there.reader(), back.writer()),
        )
    elif kind in ("fill", "fill-here", "give"):
        makes = {"fill": fills, "fill-here": fills_here, "give": gives}[kind]
        run(
            one_way_filled(there.writer(), back.reader(), *numbers("SAMPLES PER")),
            makes(there.reader(), back.writer()),
        )
    else:
        sender = sends_here if kind == "here" else sends
        kind = "read" if kind == "here" else kind
        run(
            one_way(there.writer(), back.reader(), kind, *numbers("SAMPLES PER")),
            sender(there.reader(), back.writer(), kind),
        )
