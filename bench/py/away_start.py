"""N hosts are started, run a call each and are let go of: ns a host, all of it ÷ N. Each is a fresh
interpreter."""

from sampler import Sampler, numbers

from weft.processes import Hosts, process, run


@process
def nothing():
    pass


def main(n, samples):
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        with Hosts(n) as hosts:
            run(*(nothing.on(hosts[k])() for k in range(n)))
        sampler.end(n)
    sampler.print()


if __name__ == "__main__":
    main(*numbers("N SAMPLES"))
