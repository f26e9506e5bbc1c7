"""Sends a value there and back, or one way, between two OS processes over multiprocessing.Pipe.
away_shared.py lists the values of KIND.

floor: KIND is pickled and rebuilt in one process, and is not sent.
"""

import multiprocessing
import pickle
import sys

from away_shared import check, now, payload, pin
from sampler import Sampler, fail, numbers


def answers(pipe):
    pin(1)
    while (value := pipe.recv()) is not None:
        pipe.send(value + 1)


def sends(pipe, kind):
    pin(1)
    value = payload(kind)
    while pipe.recv():
        began = now()
        pipe.send(value)
        pipe.send(began)


def round_trips(pipe, samples, per):
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for n in range(per):
            pipe.send(n)
            if pipe.recv() != n + 1:
                fail("away_values_pipe: a wrong value came back")
        if k:
            sampler.end(per)
    sampler.print()
    pipe.send(None)


def one_way(pipe, kind, samples, per):
    mine = payload(kind)
    means = []
    for k in range(samples + 1):
        total = 0
        for _ in range(per):
            pipe.send(True)
            value = pipe.recv()
            ended = now()
            total += ended - pipe.recv()
            if not check(kind, value, mine):
                fail("away_values_pipe: a wrong value came")
            del value
        if k:
            means.append(total / per)
    print("ns", *(f"{m:.1f}" for m in means), flush=True)
    pipe.send(False)


def floor(kind, samples, per):
    pin(0)
    value = payload(kind)
    sampler = Sampler()
    for k in range(samples + 1):
        sampler.begin()
        for _ in range(per):
            received = pickle.loads(pickle.dumps(value, 5))
        if k:
            sampler.end(per)
        if not check(kind, received, value):
            fail("away_values_pipe: a wrong value came")
    sampler.print()


def main():
    kind = sys.argv.pop(1)
    if kind == "floor":
        floor(sys.argv.pop(1), *numbers("SAMPLES PER"))
        return
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    body, args = (answers, (theirs,)) if kind == "int" else (sends, (theirs, kind))
    child = spawn.Process(target=body, args=args)
    child.start()
    pin(0)
    if kind == "int":
        round_trips(ours, *numbers("SAMPLES PER"))
    else:
        one_way(ours, kind, *numbers("SAMPLES PER"))
    child.join()


if __name__ == "__main__":
    main()
