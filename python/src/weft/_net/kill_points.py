"""The steps of networks (WIRE-NETWORKS.md 17) by name, for tests that kill an OS process at one of
them (17.22).

    WEFT_NET_KILL="STEP FILE"         an OS process that reaches that step ends by SIGKILL
    WEFT_NET_KILL="STEP FILE PID"     kills OS process PID instead, and goes on

Invariants
- There is one kill for each FILE. The OS process that kills makes the file, so a test sees that the
  step was reached, and a program that is started again passes the step.
- Without the variable a step costs one access to the environment. No step is passed for each value.
"""

from __future__ import annotations

import os
import signal

__all__ = ["STEPS", "at"]

STEPS = {
    "home": (
        "offer",  # the name is about to be written
        "offered",
        "renew",  # the name is about to be written again
        "heard",  # a program has sent its first message
        "answer",  # the program's ticket is valid, and the answer is about to be sent
        "give",  # there is a session, and the end is about to be given
        "given",
        "leave",  # the name is about to be deleted
        "left",
    ),
    "comer": (
        "look",  # the entry is about to be looked for
        "take",  # the ticket is about to be taken out
        "taken",
        "reached",  # there is a connection with TLS
        "said",  # the first message is sent
        "begun",  # there is a session
    ),
    "agent": (
        "asked",  # a caller asks for a call that is allowed
        "process",  # an OS process of the agent has connected for the call
        "passes",  # bytes are about to be passed on
        "over",  # no more bytes are passed on
    ),
    "call": (  # the steps of an OS process of the agent
        "here",  # the OS process has connected to its agent's socket
        "ends",  # the OS process has the ends for orders and result
        "runs",  # the OS process has its arguments
        "result",  # the OS process is about to send its result
        "told",  # the OS process has sent its result
    ),
}


def at(step: str) -> None:
    """Kills an OS process if this step, "ROLE.STEP", is the one in WEFT_NET_KILL."""
    wanted = os.environ.get("WEFT_NET_KILL")
    if not wanted or not wanted.startswith(step + " "):
        return
    _, file, *pid = wanted.split(" ")
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(int(pid[0]) if pid else os.getpid(), signal.SIGKILL)
