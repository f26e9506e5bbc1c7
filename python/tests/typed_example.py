"""Code that a type checker must accept, and (by warn_unused_ignores) code that it must refuse."""

from __future__ import annotations

from weft import coroutines, greenlets, threads


@coroutines.process
async def numbers(out: coroutines.Writer[int], n: int) -> str:
    for i in range(n):
        await out.write(i)
    await out.write("a")  # type: ignore[arg-type]
    return "done"


@coroutines.process
async def total(source: coroutines.Reader[int]) -> int:
    first: int = await source.read()
    async with source.extended() as second:
        first += second
    index, _ = await coroutines.select(source, coroutines.after(1.0), mode="fair")
    return first + sum([v async for v in source]) + index


@threads.process
def thread_total(source: threads.Reader[int]) -> int:
    with source.extended() as second:
        return source.read() + second + sum(source)


c: coroutines.Channel[int] = coroutines.Channel(capacity=3, overflow="drop_oldest")
p: coroutines.Process[str] = numbers(c.writer(), 3)
numbers(c.reader(), 3)  # type: ignore[arg-type]
numbers(c.writer())  # type: ignore[call-arg]
result: int = coroutines.run(total(c.reader()))
both: list[object] = coroutines.run(p, total(+c))


async def compose() -> list[int]:
    return await coroutines.Parallel(total(c.reader()), total(c.reader()))


d: threads.Channel[int] = threads.Channel()
results: list[int] = threads.Parallel(thread_total(d.reader()), thread_total(+d))


@greenlets.io
def fetch(name: str) -> bytes:
    return name.encode()


@greenlets.process
def greenlet_total(source: greenlets.Reader[int]) -> int:
    size: int = len(fetch("x"))
    return size + source.read()


class Scale:
    @greenlets.process
    def times(self, x: int) -> int:
        return x


results = greenlets.Parallel(greenlet_total(d.reader()), thread_total.on(greenlets)(+d))
three: int = threads.run(greenlet_total.on("threads")(+d))
four: int = greenlets.run(Scale().times(4))
greenlet_total.on(threads)("d")  # type: ignore[arg-type]
fetch(3)  # type: ignore[arg-type]
