"""Values between two programs over a session of weft.net, by TLS on loopback. KIND:

read, choice, spanning: ns for a rendezvous. The first program reads an int from a channel of the
other program: by a plain read, by a choice of two channels of that program, or by a choice of one
of its channels and one of its own. array: ns for a numpy array of 1 MB one way, from before the
write to after the read; the reader requests each array. The clock is the same for the whole system.
"""

import os
import subprocess
import sys
import tempfile

from away_shared import check, now, payload, pin
from sampler import Sampler, fail, numbers

from weft import net
from weft.threads import Channel, select


def main(cpu, kind, samples, per):
    """The first program: the home of `theirs` and `never`, which answers requests."""
    with (
        tempfile.TemporaryDirectory() as folder,
        net.listen(keys=(keys := net.make_keys(f"{folder}/keys"))) as door,
    ):
        more = ["other", cpu, door.address, str(keys), kind, str(samples), str(per)]
        second = subprocess.Popen([sys.executable, __file__, *more])
        with door.next() as session:
            values, asks, never = Channel("values"), Channel("asks"), Channel("never")
            out, asked, kept = values.writer(), asks.reader(), never.writer()
            session.give("asks", asks.writer())
            session.give("values", values.reader())
            session.give("never", never.reader())
            value = payload("array") if kind == "array" else None
            for n in range((samples + 1) * per):
                if kind == "array":
                    asked.read()
                    began = now()
                    out.write(value)
                    out.write(began)
                else:
                    out.write(n)
            kept.retire()
            if second.wait() != 0:
                fail("net_values: the other program has failed")


def other(address, keys, kind, samples, per):
    """The second program, which measures."""
    with net.connect(address, keys=keys) as session:
        ask, values, never = (session.take(name) for name in ("asks", "values", "never"))
        if kind == "array":
            arrays(ask, values, samples, per)
        else:
            reads(values, never, kind, samples, per)


def reads(values, never, kind, samples, per):
    near = Channel("near")
    own, kept = near.reader(), near.writer()
    once = {
        "read": values.read,
        "choice": lambda: select(values, never)[1],
        "spanning": lambda: select(values, own)[1],
    }[kind]
    sampler = Sampler()
    n = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            if once() != n:
                fail("net_values: a wrong value came")
            n += 1
        if k:
            sampler.end(per)
    kept.retire()
    sampler.print()


def arrays(ask, values, samples, per):
    mine = payload("array")
    means = []
    for k in range(samples + 1):
        total = 0
        for _ in range(per):
            ask.write(None)
            value = values.read()
            ended = now()
            total += ended - values.read()
            if not check("array", value, mine):
                fail("net_values: a wrong array came")
        if k:
            means.append(total / per)
    print("ns", *(f"{m:.1f}" for m in means), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "other":
        _, _, cpu, address, keys, kind, *rest = sys.argv
        os.sched_setaffinity(0, {int(cpu)})
        other(address, keys, kind, *map(int, rest))
    else:
        kind = sys.argv.pop(1)
        # `last` is for the second program, which inherits the CPUs that pin() leaves.
        last = max(os.sched_getaffinity(0))
        pin(0)
        main(str(last), kind, *numbers("SAMPLES PER"))
