"""Starts an actor of Ray in a warm session. The figure is the ns until the actor has answered."""

import ray
from sampler import Sampler, fail, numbers


@ray.remote
class Answers:
    def answer(self, n):
        return n + 1


def main(samples):
    sampler = Sampler()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    for k in range(samples + 1):  # the first start warms up
        sampler.begin()
        actor = Answers.remote()
        received = ray.get(actor.answer.remote(k))
        if k:
            sampler.end(1)
        ray.kill(actor)
        if received != k + 1:
            fail("net_start_ray: a wrong answer came")
    ray.shutdown()
    sampler.print()


if __name__ == "__main__":
    main(*numbers("SAMPLES"))
