"""Networks of processes of all backends: ends are passed to processes of another backend than that
of their channel.
"""

from __future__ import annotations

import weft.greenlets as wg
import weft.processes as wp
import weft.threads as wt
from weft.coroutines import Barrier, Channel, Parallel, Reader, Writer, after, process, run, select


@process
async def source(out: Writer[int], meet: Barrier) -> None:
    for i in range(4):
        await out.write(i)
    await meet.sync()


@process
async def doubles(inp: Reader[int], out: Writer[float]) -> int:
    number = 0
    async for value in inp:
        number += 1
        await out.write(2.0 * value)
    return number


@wt.process
def total(inp: wt.Reader[float]) -> float:
    return sum(inp)


@wg.process
def passes(inp: wg.Reader[int], out: wg.Writer[int]) -> None:
    for value in inp:
        out(value)


@wp.process
def squares(inp: wp.Reader[int], out: wp.Writer[int]) -> None:
    for value in inp:
        out.write(value * value)


@wt.process
def meets(meet: wt.Barrier) -> None:
    meet.sync()


def from_coroutines(hosts: wp.Hosts) -> list[object]:
    a, b = Channel[int]("a"), Channel[int]("b")
    c: Channel[int] = Channel("c", capacity=3)
    d: Channel[float] = Channel()
    meet = Barrier(2)
    return list(
        run(
            source(a.writer(), meet),
            squares.on(hosts)(a.reader(), b.writer()),
            passes(+b, -c),
            doubles(c.reader(), d.writer()),
            total(d.reader()),
            meets(meet),
        )
    )


def from_threads(hosts: wp.Hosts) -> None:
    a, b, d = wt.Channel[int]("a"), wt.Channel[int]("b"), wt.Channel[float]("d")
    meet = wt.Barrier(2)
    both: list[float] = []
    wt.Parallel(
        source(a.writer(), meet),
        squares(a.reader(), b.writer()).on(hosts[0]),
        squares.on("threads")(a.reader(), b.writer()),
        squares.on(wp.Supervisor(restarts=1))(a.reader(), b.writer()),
        passes.on(wt)(a.reader(), b.writer()),
        doubles.on(hosts)(b.reader(), d.writer()),
        meets.on(hosts[0])(meet),
    )
    wt.Parallel([total.on(one)(d.reader()) for one in hosts[:]])
    reader = d.reader()
    both.append(reader.read())
    both.extend(reader)


@process
async def uses_what_it_makes() -> float:
    c: Channel[int] = Channel("c")
    reader, writer = c.reader(), c.writer()
    await writer.write(1)
    index, _ = await select(reader, after(1.0))
    async for value in reader:
        index += value
    ends = [Channel[int]().reader() for _ in range(2)]
    results = await Parallel(doubles(end, Channel[float]().writer()) for end in ends)
    return await reader.read() + index + results[0]


def unannotated() -> None:
    c = wt.Channel("c")
    c.writer().write("anything")


if __name__ == "__main__":
    with wp.Hosts(2, initializer=unannotated) as its_hosts:
        print(from_coroutines(its_hosts), run(uses_what_it_makes()))
        from_threads(its_hosts)
