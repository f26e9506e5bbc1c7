"""The other programs of the tests: python programs.py NAME ARGS…. Each program reports in lines of
JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import random
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import proxy
from points import Place, Point, Unknown

from weft import coroutines as co
from weft import net
from weft import processes as ps
from weft import threads as th
from weft._net import link as _net_link
from weft._net import names as _net_names
from weft._net import relay as _net_relay
from weft._net import server as _net_server
from weft.errors import BadUse, ChannelEnd, PeerDied


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


def wait_for_go() -> None:
    sys.stdin.readline()


# --- sessions at an address -----------------------------------------------------------------------


def echoes(address: str, keys: str, trust: str = "") -> None:
    """Sends back every value that it reads, until the channel has ended."""
    with net.connect(address, keys=keys, trust=bool(trust), name="echo") as session:
        say([session.host, session.trusted])
        values, back = session.take("values"), session.take("back")
        for value in values:
            back.write(value)
        back.retire()
        say("done")


def echoes_in_coroutines(address: str, keys: str) -> None:
    @co.process
    async def echo(values: Any, back: Any) -> None:
        async for value in values:
            await back.write(value)

    with net.connect(address, keys=keys) as session:
        co.run(echo(session.take("values"), session.take("back")))


def writes_an_object(address: str, keys: str, trust: str) -> None:
    with net.connect(address, keys=keys, trust=bool(trust)) as session:
        points = session.take("points")
        try:
            points.write(Point(1, 2))
            say("written")
        except BadUse as error:
            say(str(error))
        points.retire()


def writes_objects(address: str, keys: str) -> None:
    """Writes three objects; the reader accepts the first and the last."""
    with net.connect(address, keys=keys) as session:
        objects = session.take("objects")
        for value in (Place("a", (1, 2)), Unknown(1), [Place("b")]):
            objects.write(value)
        objects.retire()
        say("written")
        say(session.wait())


def counts(address: str, keys: str) -> None:
    """Writes 0, 1, 2, … until it is killed."""
    with net.connect(address, keys=keys) as session:
        numbers = session.take("numbers")
        i = 0
        while True:
            numbers.write(i)
            i += 1


def reads_until_the_end(address: str, keys: str) -> None:
    with net.connect(address, keys=keys) as session:
        values = session.take("values")
        say("here")
        try:
            while True:
                values.read()
        except ChannelEnd as end:
            say(type(end).__name__)


def takes_what_never_comes(address: str, keys: str) -> None:
    with net.connect(address, keys=keys) as session:
        say("here")
        try:
            session.take("nothing")
        except ChannelEnd as error:
            say(str(error))


def gives_pickles(address: str, keys: str) -> None:
    """Announces that it does not trust its peer, but then sends pickles."""
    from weft._net import link as _net_link

    made = _net_link._session

    async def lies(reader: Any, writer: Any, host: str, trusted: bool) -> Any:
        return await made(reader, writer, host, True)

    _net_link._session = lies  # type: ignore[assignment]
    with net.connect(address, keys=keys) as session:
        c = th.Channel("pickles")
        session.give("pickles", c.reader())
        say("given")
        say(session.wait())


def gives(address: str, keys: str) -> None:
    """Is the home of the channels whose ends it gives to the peer."""
    with net.connect(address, keys=keys) as session:
        squares, numbers = th.Channel("squares"), th.Channel("numbers")
        out, source = squares.writer(), numbers.reader()
        session.give("squares", squares.reader())
        session.give("numbers", numbers.writer())
        for n in source:
            out.write(n * n)
        out.retire()
        say(session.wait())


# --- by name --------------------------------------------------------------------------------------


def names_writer(server: str, keys: str, name: str, n: str) -> None:
    with net.join(server, keys=keys, name="writer") as network:
        results = network.writer(name)
        for i in range(int(n)):
            results.write(i)
        results.retire()
        say("written")


def writes_when_told(server: str, keys: str, name: str, n: str) -> None:
    with net.join(server, keys=keys, name="writer") as network:
        say("here")
        wait_for_go()
        values = network.writer(name)
        for i in range(int(n)):
            values.write(i)
        values.retire()
    say("left")


def names_reader(server: str, keys: str, name: str) -> None:
    with net.join(server, keys=keys, name="reader") as network:
        values = network.reader(name)
        say("has it")
        got = []
        try:
            while True:
                got.append(values.read())
        except ChannelEnd as end:
            say([got, type(end).__name__])


def counts_by_name(server: str, keys: str, name: str) -> None:
    with net.join(server, keys=keys) as network:
        numbers = network.writer(name)
        i = 0
        try:
            while True:
                numbers.write(i)
                i += 1
        except ChannelEnd as end:
            say([i, type(end).__name__])


def is_home(server: str, keys: str, name: str, relay: str = "auto") -> None:
    """Offers both sides of a channel, and keeps an end of each until the test permits the program
    to continue."""
    with net.join(server, keys=keys, name="home", relay=relay) as network:
        c = th.Channel(name)
        held = c.reader(), c.writer()
        network.offer(name, c, readers=True, writers=True)
        say("offered")
        wait_for_go()
        for end in held:
            end.retire()
    say("left")


def is_home_elsewhere(server: str, keys: str, name: str, address: str, relay: str) -> None:
    """Announces `address` instead of its own address, as if it could not be reached."""
    with net.join(server, keys=keys, name="home", relay=relay) as network:
        network._meeting.address = address
        c = th.Channel(name)
        held = c.reader(), c.writer()
        network.offer(name, c, readers=True, writers=True)
        say("offered")
        wait_for_go()
        say([s.relayed for s in network._sessions])
        for end in held:
            end.retire()


def echoes_by_name(server: str, keys: str, name: str) -> None:
    with net.join(server, keys=keys) as network:
        values, back = network.reader(f"{name}/values"), network.writer(f"{name}/back")
        for value in values:
            back.write(value)
        back.retire()
        say("done")


def squares_by_name(server: str, keys: str, name: str) -> None:
    """Is the home of two channels, for numbers and for their squares."""
    with net.join(server, keys=keys, relay="only") as network:
        squares, numbers = th.Channel("squares"), th.Channel("numbers")
        out, source = squares.writer(), numbers.reader()
        network.offer(f"{name}/squares", squares, readers=True)
        network.offer(f"{name}/numbers", numbers, writers=True)
        for n in source:
            out.write(n * n)
        out.retire()
        wait_for_go()


def reads_by_name(server: str, keys: str, name: str) -> None:
    """Reads until the channel ends or Ctrl-C is pressed. Reports which of the two happened."""
    with net.join(server, keys=keys) as network:
        values = network.reader(name)
        try:
            while True:
                say(values.read())
        except (ChannelEnd, KeyboardInterrupt) as end:
            say(type(end).__name__)


def calls_what_never_ends(server: str, keys: str, host: str) -> None:
    """Waits for a call until the second Ctrl-C. Reports when the call has begun on the host, when
    the call is cancelled, and how the call ended.
    """
    import far_parts

    @th.process
    def hands(out: Any, heard: Any) -> None:
        out.write("first")
        say(heard.read()[1])
        try:
            heard.read()
        finally:
            say("cancelled")

    with net.join(server, keys=keys) as network:
        jobs, pids = th.Channel("jobs", capacity=1), th.Channel("pids")
        far = far_parts.waits_with.on(network.host(host))
        try:
            th.run(hands(jobs.writer(), pids.reader()), far(jobs.reader(), pids.writer()))
        except KeyboardInterrupt:
            say("interrupted")


def calls_by_an_executor(server: str, keys: str, host: str) -> None:
    """Waits for an Executor's call that never ends, until the second Ctrl-C. Reports when the call
    has begun, when the run is cancelled, why the call ended, and how the program ended.
    """
    import far_parts

    never = th.Channel("never")
    held = never.writer()

    @th.process
    def hears(never: Any) -> None:
        try:
            never.read()
        finally:
            say("cancelled")

    @th.process
    def calls(pool: Any) -> None:
        pool.submit(far_parts.waits_if, False).result()
        call = pool.submit(far_parts.waits_if, True)
        while not call.running():
            th.sleep(0.001)
        say("begun")
        say(str(call.exception()))

    with net.join(server, keys=keys, name="calls") as network:
        with ps.Executor(1, on=network.host(host)) as pool:
            try:
                th.run(hears(never.reader()), calls(pool))
            except KeyboardInterrupt:
                say("interrupted")
        say("shut down")
    held.retire()


def calls_a_host_that_never_comes(server: str, keys: str) -> None:
    """Waits for a host until Ctrl-C."""
    import far_parts

    with net.join(server, keys=keys) as network:
        try:
            with ps.Executor(1, on=network.host("nobody", patience=1e5)) as pool:
                call = pool.submit(far_parts.plus, 1, 1)
                while not call.running():
                    th.sleep(0.001)
                say("begun")
                call.result()
        except KeyboardInterrupt:
            say(str(call.exception()))


def writes_with_checksums(server: str, keys: str, name: str, seed: str, lease: str) -> None:
    """Writes [number, bytes, their checksum], with at most as many bytes as a few packets hold."""
    _net_relay.LEASE = int(lease)
    dice = random.Random(int(seed))
    with net.join(server, keys=keys) as network:
        out = network.writer(name)
        i = 0
        try:
            while True:
                data = dice.randbytes(dice.choice((0, 10, 1000, 100_000)))
                out.write([i, data, zlib.crc32(data)])
                i += 1
        except ChannelEnd as end:
            say([i, type(end).__name__])


def reads_with_checksums(server: str, keys: str, name: str, capacity: str) -> None:
    """Is the home of the channel. Reports when the first value has arrived, and at the end how many
    values arrived, and how many of them were corrupted.
    """
    with net.join(server, keys=keys) as network:
        c = th.Channel(name, capacity=int(capacity))
        r = c.reader()
        network.offer(name, c, writers=True)
        say("offered")
        n = spoilt = 0
        try:
            while True:
                data, checksum = r.read()
                spoilt += zlib.crc32(data) != checksum
                n += 1
                if n == 1:
                    say("the first")
        except ChannelEnd as end:
            say([n, spoilt, type(end).__name__])


def many_writers(server: str, keys: str, name: str, n: str) -> None:
    """Starts n writers that connect at the same time."""
    with net.join(server, keys=keys) as network:

        def one(i: int) -> None:
            results = network.writer(name)
            results.write(i)
            results.retire()

        threads = [threading.Thread(target=one, args=(i,)) for i in range(int(n))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        say("written")


# --- hosts ----------------------------------------------------------------------------------------


def calls_for_ever(server: str, keys: str) -> None:
    """Reports the pid of the OS process that writes on the host, how the call ended on the host,
    and how it ended in this program.
    """
    import far_parts

    numbers, ended = th.Channel("numbers"), th.Channel("ended", capacity=1)
    listens = ended.reader()

    @th.process
    def reads(numbers: Any) -> None:
        say(numbers.read())
        for _ in numbers:
            pass

    with net.join(server, keys=keys) as network:
        host = network.host("gpu1")
        try:
            th.run(
                reads(numbers.reader()),
                far_parts.writes_for_ever.on(host)(numbers.writer(), ended.writer()),
            )
        except KeyboardInterrupt as error:
            say([listens.read(), type(error).__name__])


# --- on machines of their own (machines.py) -------------------------------------------------------


def is_server(folder: str, address: str) -> None:
    with _net_server.Server(Path(folder), address) as server:
        say(server.url)
        wait_for_go()


def sums(server: str, keys: str, address: str, capacity: str) -> None:
    """Is the home of a channel, and adds up all values that arrive."""
    with net.join(server, keys=keys, address=address) as network:
        c = th.Channel("c", capacity=int(capacity))
        r = c.reader()
        network.offer("sums", c, writers=True)
        say("offered")
        n, sha = 0, hashlib.sha256()
        for number, data in r:
            assert number == n
            n += 1
            sha.update(data)
        say([n, sha.hexdigest()])


def sends(server: str, keys: str, address: str, seed: str, n: str, most: str) -> None:
    """Sends random bytes, of all sizes up to `most`."""
    chosen = random.Random(int(seed))
    with net.join(server, keys=keys, address=address) as network:
        w = network.writer("sums", patience=60)
        sha = hashlib.sha256()
        for i in range(int(n)):
            data = chosen.randbytes(chosen.randrange(int(most)))
            w.write([i, data])
            sha.update(data)
        w.retire()
        say([int(n), sha.hexdigest()])


def _until_it_ends(call: Any) -> Any:
    try:
        while True:
            call()
    except PeerDied as error:
        return ["PeerDied", error.in_doubt]


def is_cut(server: str, keys: str, address: str) -> None:
    """Is the home of four channels: `never`, a read of which does not end before the session;
    `ticks`, to which the program writes one value; `jobs`, which it reads; and `again`.
    """
    with net.join(server, keys=keys, address=address) as network:
        names = ("never", "ticks", "jobs", "again")
        never, ticks, jobs, again = (th.Channel(name) for name in names)
        held = never.reader()
        w, r, comes = ticks.writer(), jobs.reader(), again.reader()
        network.offer("never", never, writers=True)
        network.offer("ticks", ticks, readers=True)
        network.offer("jobs", jobs, writers=True)
        network.offer("again", again, writers=True)
        say("offered")
        say(r.read())
        w.write(1)
        with held.extended():
            say("has it")
            say(_until_it_ends(r.read))
            say(_until_it_ends(lambda: w.write(2)))
        say(comes.read())
        held.retire()


def cuts_off(server: str, keys: str, address: str) -> None:
    """Is the peer of `is_cut`. Reports how each operation ended, and how later
    operations on the same ends end.
    """
    with net.join(server, keys=keys, address=address) as network:
        never, jobs = network.writer("never"), network.writer("jobs")
        ticks = network.reader("ticks")
        jobs.write("a job")
        say(ticks.read())
        ended: dict[str, Any] = {}

        def runs(name: str, call: Any) -> threading.Thread:
            thread = threading.Thread(
                target=lambda: ended.__setitem__(name, _until_it_ends(call)), name=name
            )
            thread.start()
            return thread

        threads = [runs("write", lambda: never.write("?")), runs("read", ticks.read)]
        wait_for_go()  # by now this machine is cut off
        for thread in threads:
            thread.join()
        say(ended)
        wait_for_go()  # by now this machine is reachable again
        say([_until_it_ends(lambda: never.write("?")), _until_it_ends(lambda: jobs.write("?"))])
        back = network.writer("again", patience=120)
        back.write("back")
        say("wrote")
        back.retire()


def squares_on_two(server: str, keys: str, address: str, n: str) -> None:
    """Has jobs squared by a supervisor over two hosts. Reports which OS process holds the tenth
    job, and continues once the test permits it. Then reports which squares arrived, which jobs were
    done twice, and the log.
    """
    import far_parts

    jobs, results = th.Channel("jobs"), th.Channel("results")

    @th.process
    def gives(jobs: Any) -> None:
        for i in range(int(n)):
            jobs.write(i)

    @th.process
    def gathers(results: Any) -> tuple[dict[int, int], list[int]]:
        found: dict[int, int] = {}
        twice: list[int] = []
        while len(found) < int(n):
            # Until this block ends, the writer is still in its write, and so in the block in which
            # it holds its job.
            with results.extended() as (i, square, pid):
                twice += [i] if i in found else []
                found[i] = square
                if len(found) == 10 and not twice:
                    say(pid)
                    wait_for_go()
        return found, twice

    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("weft").addHandler(handler)
    with net.join(server, keys=keys, address=address) as network:
        workers = ps.Supervisor(network.hosts(2, patience=60), backoff=0.01)
        got = th.run(
            gives(jobs.writer()),
            gathers(results.reader()),
            [far_parts.squares.on(workers)(jobs.reader(), results.writer()) for _ in range(2)],
        )
        found, twice = got[1]
        say([sorted(found.items()), twice, logged])


def offers_and_withdraws(server: str, keys: str, name: str) -> None:
    """Offers and withdraws a name repeatedly, whatever the server does. Reports how often its
    second member has seen the name.
    """
    seen = 0
    with net.join(server, keys=keys) as network, net.join(server, keys=keys) as other:
        stop = threading.Event()

        def until_told() -> None:
            wait_for_go()
            stop.set()

        threading.Thread(target=until_told, daemon=True).start()
        say("here")
        while not (stop.is_set() and seen):
            try:
                network.offer(name, th.Channel("c"), writers=True)
                seen += name in [n.name for n in other.names()]
                network.withdraw(name)
            except BadUse:  # the server is away
                with contextlib.suppress(BadUse):
                    network.withdraw(name)
        say(seen)


async def _direct(tls: Any, address: str, *patience: float) -> Any:
    there = await asyncio.get_running_loop().run_in_executor(None, proxy.through, address)
    return await direct(tls, there, *patience)


if __name__ == "__main__":
    if proxy.TOLD in os.environ:
        direct, _net_link.direct = _net_link.direct, _direct
    _net_names.RENEW = float(os.environ.get("WEFT_TEST_RENEW", _net_names.RENEW))
    globals()[sys.argv[1]](*sys.argv[2:])
