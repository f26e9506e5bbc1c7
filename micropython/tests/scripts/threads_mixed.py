# Mixes names of weft.threads and weft.coroutines in one network: each mixture is refused with
# advice, and the next network runs.
from weft import coroutines as c
from weft import threads as t


@t.process
def put(w):
    w.write(7)


@t.process
def take(r):
    return r.read()


@c.process
async def send(w):
    await w.write(8)


@c.process
async def get(r):
    return await r.read()


@t.process
def group_of_both(ch):
    with t.Group() as g:
        g.start(put(ch.writer()), get(ch.reader()))


def told(what, f):
    try:
        message = f()
    except c.BadUse as e:
        message = str(e).split(": one run is of threads or of coroutines, ")
        message = message[0] if len(message) == 2 and "Ring (weft.isr)" in message[1] else e
    print(what, "-", message)


def refused():
    ch = c.Channel("x")
    told("coroutines' end", lambda: t.run(put(ch.writer()), take(ch.reader())))
    told("the same by name", lambda: t.run(put(w=ch.writer())))
    ch = t.Channel("y")
    told("a coroutine among threads", lambda: t.run(put(ch.writer()), get(ch.reader())))
    told("in a group", lambda: t.run(group_of_both(ch)))
    told("threads' end", lambda: c.run(get(ch.reader())))
    told(
        "a thread among coroutines", lambda: c.run(send(c.Channel("z").writer()), put(ch.writer()))
    )


def runs():
    ch = t.Channel("threads")
    print("threads after it -", t.run(put(ch.writer()), take(ch.reader())))
    ch = c.Channel("coroutines")
    print("coroutines after it -", c.run(send(ch.writer()), get(ch.reader())))


for _ in range(2):
    refused()
    runs()
