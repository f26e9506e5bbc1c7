"""The steps of networks (WIRE.md 17) by name, for tests that kill an OS process at one of them
(17.22).

    WEFT_NET_KILL="STEP FILE"         who comes to that step ends by SIGKILL
    WEFT_NET_KILL="STEP FILE PID"     it kills that OS process instead, and goes on

Invariants
- One kill for each FILE, which whoever does it makes: so a test sees that the step was reached, and
  what is started anew passes it.
- Without the variable a step costs one look at the environment. None is taken for each value.
"""

from __future__ import annotations

import os
import signal

__all__ = ["STEPS", "at"]

STEPS = {
    "home": (
        "offer",  # the name is to be written
        "offered",
        "renew",  # it is to be written again
        "heard",  # a program has said its first message
        "answer",  # its ticket is good, and it is to be told so
        "give",  # there is a session, and the end is to be given
        "given",
        "leave",  # the name is to be deleted
        "left",
    ),
    "comer": (
        "look",  # the entry is to be looked for
        "take",  # the ticket is to be taken out
        "taken",
        "reached",  # there is a connection, and TLS
        "said",  # the first message
        "begun",  # there is a session
    ),
    "agent": (
        "asked",  # for a call that is allowed
        "process",  # one of its OS processes has come for it
        "passes",  # bytes are to be passed on
        "over",  # no more are
    ),
    "call": (  # an OS process of the agent's
        "here",  # at its agent's socket
        "ends",  # has the ends by which it is told what to do
        "runs",  # has its arguments
        "result",  # is to say what it came to
        "told",  # has said it
    ),
}


def at(step: str) -> None:
    """The caller has come to "ROLE.STEP"."""
    wanted = os.environ.get("WEFT_NET_KILL")
    if not wanted or not wanted.startswith(step + " "):
        return
    _, file, *pid = wanted.split(" ")
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(int(pid[0]) if pid else os.getpid(), signal.SIGKILL)
