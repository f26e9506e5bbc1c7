"""Rule 11.1: groups of ordinary code are left in the wrong order while a signal's handler raises.

Each program sets an alarm, whose handler raises, again and again, at random moments. Wherever the
alarm arrives, nothing crashes; leaving a group in the wrong order is bad use that changes nothing;
and once no more alarms arrive, all groups can be left in order, and every process has ended.
"""

from __future__ import annotations

import pytest
from children import child

HEAD = """
import gc, random, signal, sys, warnings
from weft.coroutines import BadUse, Channel, Group, process

warnings.simplefilter("ignore")  # groups that are collected are named
sys.unraisablehook = lambda _: None  # an alarm that raises in a finaliser
dice = random.Random(int(sys.argv[1]))
ROUNDS = 60


class Bell(Exception):
    pass


def ring(*_):
    raise Bell


signal.signal(signal.SIGALRM, ring)


@process
async def turns(r):
    async for _ in r:
        pass


def soon():
    signal.setitimer(signal.ITIMER_REAL, dice.choice([1e-6, 1e-5, 3e-5, 1e-4, 3e-4]))


def quiet(act):
    # None: an alarm came, before, within or after it; it may have ended processes, too
    try:
        try:
            soon()
            return act()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BadUse:
        raise
    except BaseException:
        return None


def leave(group):
    # None: it is left, or was already; else why not
    try:
        group.__exit__(None, None, None)
    except BadUse as e:
        return None if "not open" in str(e) else str(e)
    except BaseException:  # what an alarm had left in it
        return leave(group)
"""

GROUPS = """
for _ in range(ROUNDS):
    channel, groups, started = Channel(), [Group() for _ in range(3)], []
    writer = channel.writer()
    entered = []
    for g in groups:
        try:
            quiet(lambda: entered.append(g) or g.__enter__())
            quiet(lambda: started.append(g.start(turns(channel.reader()))))
        except BadUse as e:  # the alarm came before it was entered
            assert "not open" in str(e), e
    for _ in range(8 if entered else 0):
        g = dice.choice(entered)
        last = g is entered[-1]
        try:
            quiet(lambda: None if last else g.__exit__(None, None, None))
        except BadUse as e:
            assert "leave that one first" in str(e) or "not open" in str(e), e
    writer.retire()
    assert [why for g in reversed(entered) if (why := leave(g))] == []
    gc.collect()
    assert all(p.done for p in started), started
print("left")
"""


@pytest.mark.parametrize("seed", range(4))
def test_alarms_in_between(seed: int) -> None:  # rules 7.5, 11.1
    with child("-c", HEAD + GROUPS, str(seed), seconds=280) as running:
        out, err = running.communicate()
    assert (running.returncode, out, err) == (0, "left\n", ""), f"seed {seed}"
