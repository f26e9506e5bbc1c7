"""A command shell on a serial line. The line's interrupt puts its bytes into a ring, one process
splits them into lines, and another one executes the lines. The commands are `blink N`, `mem` and
`quit`."""

from weft.coroutines import Channel, Parallel, process, run, sleep_ms
from weft.isr import Ring

received = Ring(64, "uart")


def on_byte(byte):
    """The UART's interrupt calls this."""
    received.put(byte)


@process
async def lines(source, out):
    text = ""
    async for byte in source:
        if byte in (10, 13):
            if text:
                await out.write(text)
            text = ""
        else:
            text += chr(byte)


@process
async def shell(commands, answers):
    async for line in commands:
        words = line.split()
        if words[0] == "blink" and len(words) == 2 and words[1].isdigit():
            await answers.write("blinked %s times" % words[1])
        elif words[0] == "quit":
            await answers.write("bye")
            received.close()
            return
        else:
            await answers.write("unknown: %s; try blink N, quit" % words[0])


@process
async def screen(source):
    async for text in source:
        print(">", text)


@process
async def terminal():
    """Simulates a terminal, on a PC: types some commands."""
    for byte in b"blink 3\nblnk\nquit\n":
        on_byte(byte)
        await sleep_ms(1)


@process
async def main():
    commands, answers = Channel("commands"), Channel("answers")
    await Parallel(
        lines(received.reader(), -commands),
        shell(+commands, -answers),
        screen(+answers),
        terminal(),
    )


run(main())
