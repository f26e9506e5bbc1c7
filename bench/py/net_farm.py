"""The Mandelbrot set of away_work.py by two workers. WHERE: network, two hosts of a network, each
an agent on this machine with one OS process; local, two OS processes of this program. The figure is
ns for a whole run, on hosts that are warm.
"""

import contextlib
import sys

from away_work import network
from net_there import agents
from sampler import Sampler, fail, numbers

from weft import net
from weft.processes import Hosts

WORKERS = 2


@contextlib.contextmanager
def hosts_of(where):
    if where == "local":
        with Hosts(WORKERS) as hosts:
            yield hosts
    elif where == "network":
        names = [f"host{i}" for i in range(WORKERS)]
        with agents(names, "away_work:worker") as (url, keys), net.join(url, keys=keys) as joined:
            yield joined.hosts(WORKERS)
    else:
        fail(f"net_farm: network or local, not {where}")


def main():
    where = sys.argv.pop(1)
    samples, per = numbers("SAMPLES PER")
    sampler = Sampler()
    with hosts_of(where) as hosts:
        network(hosts, WORKERS, "mandelbrot", max(16, per // 16), None)  # this run warms up
        for _ in range(samples):
            network(hosts, WORKERS, "mandelbrot", per, sampler)
    sampler.print()


if __name__ == "__main__":
    main()
