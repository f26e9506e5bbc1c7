"""TLS 1.3 by Python's ssl over a blocking TCP connection on loopback, between two programs, each on
its own CPU: the layer below the sessions of weft.net, without an event loop.

    tls.py int SAMPLES PER      ns a round trip of 4 bytes
    tls.py 1mb SAMPLES PER      ns one way of a megabyte, from before the write to after the read of
                                the last byte, by the system's clock; the reader requests each
"""

import os
import socket
import struct
import sys
import tempfile

from away_shared import MEGABYTE, now, pin
from sampler import fail, numbers

from weft import net
from weft._net import keys as _net_keys

CLOCK = struct.Struct("<q")


def get(way, room):
    """Receives bytes until `room` is full."""
    at = 0
    while at < len(room):
        n = way.recv_into(room[at:])
        if not n:
            return False
        at += n
    return True


def answers(way):
    room = memoryview(bytearray(4))
    while get(way, room):
        way.sendall(struct.pack("<i", struct.unpack("<i", room)[0] + 1))


def sends(way):
    data = memoryview(bytes(range(256)) * (MEGABYTE // 256))
    asked = memoryview(bytearray(1))
    while get(way, asked):
        began = now()
        way.sendall(data)
        way.sendall(CLOCK.pack(began))


def ints(way, per, x):
    room = memoryview(bytearray(4))
    start = now()
    for _ in range(per):
        way.sendall(struct.pack("<i", x))
        if not get(way, room) or struct.unpack("<i", room)[0] != x + 1:
            fail("tls: a wrong answer")
        x += 1
    return now() - start


def megabytes(way, per, room):
    clock = memoryview(bytearray(CLOCK.size))
    total = 0
    for _ in range(per):
        way.sendall(b"?")
        if not get(way, room):
            fail("tls: the connection broke")
        total += now()
        if not get(way, clock) or room[1] != 1 or room[-1] != 255:
            fail("tls: a wrong megabyte")
        total -= CLOCK.unpack(clock)[0]
    return total


def main():
    what = sys.argv.pop(1)
    samples, per = numbers("SAMPLES PER")
    with tempfile.TemporaryDirectory() as folder:
        keys = net.make_keys(f"{folder}/keys")
        tls = [_net_keys.context(keys, server=s) for s in (False, True)]
    with socket.create_server(("127.0.0.1", 0)) as listens:
        address = listens.getsockname()
        child = os.fork()
        if child == 0:
            pin(1)
            way = tls[0].wrap_socket(socket.create_connection(address))
            way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            (answers if what == "int" else sends)(way)
            os._exit(0)
        pin(0)
        accepted, _ = listens.accept()
    with tls[1].wrap_socket(accepted, server_side=True) as way:
        way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = memoryview(bytearray(MEGABYTE))
        means = []
        for k in range(samples + 1):  # stretch 0 warms up
            total = ints(way, per, k * per) if what == "int" else megabytes(way, per, room)
            if k:
                means.append(total / per)
    if os.waitpid(child, 0)[1] != 0:
        fail("tls: the other has failed")
    print("ns", *(f"{m:.1f}" for m in means), flush=True)


if __name__ == "__main__":
    main()
