"""Joins a network and has a warm agent start a worker. The figure is the ns until the worker has
answered; the time for leaving the network is not counted.
"""

from net_there import agents
from sampler import Sampler, fail, numbers

from weft import net
from weft.processes import process, run


@process
def answers(n):
    return n + 1


def main(samples):
    sampler = Sampler()
    with agents(["host"], "net_start:answers") as (url, keys):
        for k in range(samples + 1):  # the first join warms up
            sampler.begin()
            joined = net.join(url, keys=keys)
            received = run(answers.on(joined.host("host"))(k))
            if k:
                sampler.end(1)
            joined.close()
            if received != k + 1:
                fail("net_start: a wrong answer came")
    sampler.print()


if __name__ == "__main__":
    main(*numbers("SAMPLES"))
