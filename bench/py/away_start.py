"""Starts N hosts, runs one call on each and closes them. The figure is ns for a host: the whole
time ÷ N. Each host is a fresh interpreter, or, with a third argument, a fork of a server that has
imported this program.

usage: away_start.py N SAMPLES [1]
"""

import sys

from sampler import Sampler, numbers

from weft.processes import Hosts, process, run


@process
def nothing():
    pass


def main(n, samples, forks=0):
    how = {"start": "forkserver", "preload": ["away_start"]} if forks else {}
    if forks:
        with Hosts(1, **how) as hosts:  # the first host starts the server, which keeps running
            run(nothing.on(hosts)())
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        with Hosts(n, **how) as hosts:
            run(*(nothing.on(hosts[k])() for k in range(n)))
        sampler.end(n)
    sampler.print()


if __name__ == "__main__":
    main(*numbers("N SAMPLES" if len(sys.argv) < 4 else "N SAMPLES FORKS"))
