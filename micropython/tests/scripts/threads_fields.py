# Without a GIL a thread that looks up a field while another thread adds a field to the same object
# might not find the field. So processes and channels of threads have all their fields from the
# beginning, and objects that grow are read under the lock (rules 7.8, 10.5, 12).
from weft import _machine, threads
from weft.threads import (
    Cancelled,
    Channel,
    Deadlock,
    Group,
    Input,
    Output,
    Parallel,
    Poisoned,
    Timer,
    after,
    current_process,
    move_on_after,
    now,
    poison,
    process,
    run,
    select,
    timeout,
    watched,
)

seen = []  # (what, object, its fields when it was made)


def fields(x):
    return sorted(x.__dict__)


def look(what, x):
    seen.append((what, x, fields(x)))
    return x


def channel(what, **kw):
    return look(what, Channel(what, **kw))


@process
def returns(x):
    return x


@process
def fails():
    raise ValueError


@process
def reads(r):
    return r.read()


@process
def writes(w, n):
    for i in range(n):
        w.write(i)


@process
def chooses(r, w):
    for i in range(2):
        select(r, Output(w, i), after(1))


@process
def extended(r):
    with r.extended() as v:
        return v


@process
def limited(r):
    with move_on_after(1), timeout(2):
        r.read()


@process
def poisons(w):
    poison(w)


@process
def all_of_it():
    kinds = {}
    c = channel("plain")
    Parallel(look("returns", returns(1)), look("reads", reads(+c)), look("writes", writes(-c, 1)))
    c = channel("buffered", capacity=2, overflow="drop_oldest")
    Parallel(look("writes", writes(-c, 9)), look("extended", extended(+c)))
    c, d = channel("in"), channel("out")
    Parallel(look("chooses", chooses(+c, -d)), look("reads", reads(+d)), writes(-c, 1))
    c = channel("poisoned", immunity=0)
    Parallel(look("poisoned", reads(+c)), look("poisons", poisons(-c)))
    c = channel("waits")
    w = -c
    Parallel(look("limited", limited(+c)).named("given"))
    with Group() as g:
        p = look("watched", watched(fails()))
        end = p.ended()
        g.start(p)
        kinds["watched"] = end.wait().how
    c = channel("cancelled")
    w = -c
    with Group() as g:
        p, q = look("cancelled", reads(+c)), look("chosen", reads(+c))
        g.start(p)
        p.cancel()
        g.start(q)
        i, _ = select(q.ended(), after(1))
        q.cancel()
        kinds["chosen"] = i, select(q.ended())[1].how
    del w
    return sorted(kinds.items())


@process
def main():
    look("main", current_process())
    try:
        return Parallel(look("all", all_of_it()))[0]
    except (Cancelled, Poisoned):
        pass


print(run(main(), clock="virtual"))
c = channel("never read")
r = +c
try:
    run(look("stuck", writes(-c, 1)))
except Deadlock as e:
    print(e.knot)
for what, x, before in seen:
    if fields(x) != before:
        print(what, "has more:", [f for f in fields(x) if f not in before])
print(len(seen), "looked at")


class Counted:
    """A lock that behaves as if another thread held it until this thread waits for it."""

    entered = 0

    def locked(self):
        return True

    def __enter__(self):
        self.entered += 1
        return lock.__enter__()

    def __exit__(self, *_):
        return lock.__exit__(None, None, None)


lock, counted = threads._lock, Counted()
threads._lock = _machine.lock = counted
p = returns(1)
for what in (
    lambda: Channel("x").poison(),
    now,
    lambda: Timer(1),
    lambda: p.path,
    lambda: r.channel,
    lambda: Input(r) and timeout(1).expired,
):
    counted.entered = 0
    what()
    print("under the lock:", counted.entered > 0)
