"""One communication between two programs that meet at a NATS server. KIND: rendezvous, through the
relay; direct, by TLS; request, the bare request and reply of the same client, nats-py, with as many
bytes as an int takes on the wire.

rendezvous, direct: ns for a write to a channel of the other program, which reads it: an offer and
its answer.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import nats
from away_shared import pin
from sampler import Sampler, fail, numbers

from weft import net
from weft._net import keys as _net_keys
from weft._net import server as _net_server
from weft.threads import Channel

SERVER = Path(__file__).resolve().parents[2] / ".build/net/bin/nats-server"
OFFER = bytes(72)  # the bytes that an int needs below TLS


def measure(samples, per, one):
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for n in range(per):
            one(n)
        if k:
            sampler.end(per)
    sampler.print()


# --- the other program ----------------------------------------------------------------------------


def home(url, keys, relay):
    """Reads until the channel ends. The values must count from 0 on, and may begin again at 0."""
    with net.join(url, keys=keys, relay=relay) as network:
        c = Channel("numbers")
        reader = c.reader()
        network.offer("numbers", c, writers=True)
        print("here", flush=True)
        last = -1
        for n in reader:
            if n not in (0, last + 1):
                fail("net_relay: a wrong value came")
            last = n


async def answers(url, tls):
    client = await nats.connect(url, tls=tls)

    async def answer(message):
        await message.respond(message.data)

    await client.subscribe("bare", cb=answer)
    await client.flush()
    print("here", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await client.close()


# --- the program that measures --------------------------------------------------------------------


def rendezvous(url, keys, samples, per):
    with net.join(url, keys=keys) as network:
        writer = network.writer("numbers")
        measure(samples, per, writer.write)
        writer.retire()


async def requests(url, tls, samples, per):
    client = await nats.connect(url, tls=tls)
    sampler = Sampler()
    for k in range(samples + 1):
        sampler.begin()
        for _ in range(per):
            if len((await client.request("bare", OFFER)).data) != len(OFFER):
                fail("net_relay: a wrong answer came")
        if k:
            sampler.end(per)
    sampler.print()
    await client.close()


def main(kind, samples, per):
    with tempfile.TemporaryDirectory() as folder:
        keys = net.make_keys(Path(folder) / "keys")
        with _net_server.Server(keys, "127.0.0.1:0", [SERVER]) as server:
            other = subprocess.Popen(
                [sys.executable, __file__, f"other-{kind}", server.url, str(keys)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            if other.stdout.readline() != b"here\n":
                fail("net_relay: the other program has ended")
            pin(0)
            if kind == "request":
                asyncio.run(
                    requests(server.url, _net_keys.context(keys, server=False), samples, per)
                )
            else:
                rendezvous(server.url, keys, samples, per)
            other.communicate()


if __name__ == "__main__":
    kind = sys.argv.pop(1)
    if kind.startswith("other-"):
        pin(1)
        url, keys = sys.argv[1:]
        if kind == "other-request":
            asyncio.run(answers(url, _net_keys.context(Path(keys), server=False)))
        else:
            home(url, keys, "only" if kind == "other-rendezvous" else "never")
    else:
        main(kind, *numbers("SAMPLES PER"))
