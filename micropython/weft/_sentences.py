"""The texts of BadUse errors raised by the modules that every program loads. `_chan.bad("STARTED",
path)` uses a text by its name. This module is loaded with the first error, so that a program
without errors needs no memory for it."""

STRENGTH = "the strength of poison is 1 or more, not %r"
CLOSED = "%s: this end of channel %r is closed: %s"
ORDINARY = "%s in ordinary code: start the network by run(...)"
UNAWAITED = "%s: %s: the write before it was not awaited"
STARTED = "process %s was started before: make another"
COROUTINE = "%s is not a coroutine: write async def"
OUTSIDE = "%s outside a run, or a Group's block"
NOBODY = "ordinary code is not a process"
PROCESS = "expected a process, got %r (@process?)"
WITHIN = "a run within a run: await Parallel(...)"
FOREIGN = (
    "%s awaited something of asyncio: run the network inside an asyncio loop, by await run_async(...)"
    " in a task or by run(..., host='asyncio')"
)
STRANGE = "%s awaited or yielded what is not an operation of Weft"
AWAITED = (
    "a process is not awaited: `await Parallel(%s(...))` runs it; of one that was started"
    " `await p.ended().wait()` waits for its end"
)

MISFIT = "weft: weft_native is for another processor or version; going on in pure Python"
