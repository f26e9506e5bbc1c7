"""Sends megabytes one way through multiprocessing.Pipe. The figure is ns for a megabyte."""

import itertools
import multiprocessing
import os

from sampler import Sampler, fail, numbers

MEGABYTE = 1 << 20


def pin(index):
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[index % len(cpus)]})


def other(end, reader):
    reader.close()
    pin(1)
    data = bytearray(MEGABYTE)
    for n in itertools.count():
        data[-1] = n & 255
        try:
            end.send_bytes(data)
        except OSError:  # the reader has read all megabytes, and has closed its end
            return


def main(samples, per):
    here, there = multiprocessing.Pipe()
    child = multiprocessing.Process(target=other, args=(there, here), daemon=True)
    child.start()
    there.close()
    pin(0)
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for n in range(per):
            data = here.recv_bytes()
            if len(data) != MEGABYTE or data[-1] != (k * per + n) & 255:
                fail("pipe_megabyte: a wrong value came")
        if k:
            sampler.end(per)
    here.close()
    child.join()
    sampler.print()


if __name__ == "__main__":
    main(*numbers("SAMPLES PER"))
