"""Contains, for each entry of the table of what commutes, a pair of steps that needs the entry: the
order of the steps makes a difference, and no other entry reports the conflict (commuting.py). So if
the entry is wrong, its pair shows it.

`NOWHERE` contains the entries whose two accesses never meet at one place.
"""

from __future__ import annotations

from .commuting import ACCESSES, Entry, Witness

# fmt: off
WITNESSES: dict[Entry, Witness] = {
    ("read", "read", False): Witness(5, (), 0, "read 0", "read 0"),
    ("read", "read", True): Witness(6, (), 0, "read 0", "read 0"),
    ("read", "choice", False): Witness(5, (), 0, "select r0 r1", "read 0"),
    ("read", "choice", True): Witness(6, (), 0, "select r0 r1", "read 0"),
    ("read", "quiet_choice", False): Witness(5, ("write 0",), 0, "read 0", "select r0 r1", "write 1"),
    ("read", "quiet_choice", True): Witness(6, ("write 0",), 0, "read 0", "select r0 r1", "write 1"),
    ("read", "choose_read", False): Witness(5, (), 0, "select r0 r1", "read 0", "write 0"),
    ("read", "choose_read", True): Witness(6, (), 0, "select r0 r1", "read 0", "write 0"),
    ("read", "make", False): Witness(0, ("write 0", "close w0.1"), 0, "read 0", "make r0"),
    ("read", "make", True): Witness(2, ("write 0", "close w0.1"), 0, "read 0", "make r0"),
    ("read", "all", False): Witness(0, ("write 0",), 0, "read 0", "poison 0"),
    ("read", "all", True): Witness(2, ("write 0",), 0, "read 0", "poison 0"),
    ("write", "write", False): Witness(5, (), 0, "write 0", "write 0"),
    ("write", "write", True): Witness(6, (), 0, "write 0", "write 0"),
    ("write", "choice", False): Witness(5, (), 0, "select w0 r1", "write 0"),
    ("write", "choice", True): Witness(6, (), 0, "write 0", "select w0 r1"),
    ("write", "quiet_choice", False): Witness(3, (), 0, "write 1", "select w0 r1"),
    ("write", "quiet_choice", True): Witness(6, ("write 1",), 0, "write 0", "select r0 r1"),
    ("write", "choose_write", False): Witness(5, (), 0, "select w0 r1", "write 0", "read 0"),
    ("write", "choose_write", True): Witness(6, (), 0, "select w0 r1", "write 0"),
    ("write", "close", True): Witness(2, (), 0, "write 0", "close r0.0"),
    ("write", "make", False): Witness(0, ("read 0", "close r0.0"), 0, "write 0", "make w0"),
    ("write", "make", True): Witness(2, ("read 0", "close r0.0"), 0, "write 0", "make w0"),
    ("write", "all", False): Witness(0, ("read 0",), 0, "write 0", "poison 0"),
    ("write", "all", True): Witness(2, (), 0, "write 0", "poison 0"),
    ("choice", "choice", False): Witness(5, (), 0, "select r0 r1", "select r0 r1"),
    ("choice", "choice", True): Witness(6, (), 0, "select r0 r1", "select r0 r2"),
    ("choice", "quiet_choice", False): Witness(1, (), 0, "select w0 skip", "select r0 r1", "write 1"),
    ("choice", "quiet_choice", True): Witness(3, ("write 1",), 0, "select w0 skip", "select r0 r1"),
    ("choice", "choose_read", False): Witness(5, (), 0, "select r0 r1", "select r0 r2", "write 0"),
    ("choice", "choose_read", True): Witness(6, (), 0, "select r0 r1", "select r0 r2", "write 0"),
    ("choice", "choose_write", False): Witness(0, (), 0, "select w0 w1", "select r0 skip"),
    ("choice", "choose_write", True): Witness(6, (), 0, "select w0 r1", "select w0 r2"),
    ("choice", "close", False): Witness(0, (), 0, "select r0 skip", "close w0.1"),
    ("choice", "close", True): Witness(2, (), 0, "select r0 skip", "close w0.1"),
    ("choice", "make", False): Witness(0, ("write 0", "close w0.1"), 0, "select r0 skip", "make r0"),
    ("choice", "make", True): Witness(2, ("write 0", "close w0.1"), 0, "select r0 skip", "make r0"),
    ("choice", "all", False): Witness(0, (), 0, "select r0 skip", "poison 0"),
    ("choice", "all", True): Witness(2, (), 0, "select r0 skip", "poison 0"),
    ("quiet_choice", "quiet_choice", False): Witness(5, ("write 0", "write 1"), 0, "select r0 r1", "select r0 r2", "write 2"),
    ("quiet_choice", "quiet_choice", True): Witness(6, ("write 0", "write 1"), 0, "select r0 r1", "select r0 r2", "write 2"),
    ("quiet_choice", "choose_read", False): Witness(5, ("write 0",), 0, "select r0 r1", "select r0 r1", "write 1"),
    ("quiet_choice", "choose_read", True): Witness(6, ("write 0",), 0, "select r0 r1", "select r0 r2", "write 2"),
    ("quiet_choice", "choose_write", False): Witness(5, ("write 1",), 0, "select w0 r2", "select r0 r1"),
    ("quiet_choice", "choose_write", True): Witness(6, ("write 1",), 0, "select w0 r2", "select r0 r1"),
    ("quiet_choice", "all", False): Witness(0, ("write 1",), 0, "poison 0", "select r0 r1"),
    ("quiet_choice", "all", True): Witness(2, ("write 1",), 0, "poison 0", "select r0 r1"),
    ("choose_read", "choose_read", False): Witness(5, ("write 0",), 0, "select r0 r1", "select r0 r2", "write 0"),
    ("choose_read", "choose_read", True): Witness(6, ("write 0",), 0, "select r0 r1", "select r0 r2", "write 0"),
    ("choose_read", "make", False): Witness(0, ("write 0", "close w0.1"), 0, "select r0 r1", "make r0"),
    ("choose_read", "make", True): Witness(2, ("write 0", "close w0.1"), 0, "select r0 r1", "make r0"),
    ("choose_read", "all", False): Witness(0, ("write 0",), 0, "select r0 r1", "poison 0"),
    ("choose_read", "all", True): Witness(2, ("write 0",), 0, "select r0 r1", "poison 0"),
    ("choose_write", "choose_write", False): Witness(5, ("read 0",), 0, "select w0 r1", "select w0 r2", "read 0"),
    ("choose_write", "choose_write", True): Witness(6, (), 0, "select w0 r1", "select w0 r2", "read 0"),
    ("choose_write", "close", True): Witness(2, (), 0, "select w0 w1", "close r0.0"),
    ("choose_write", "make", False): Witness(0, ("read 0", "close r0.0"), 0, "select w0 r1", "make w0"),
    ("choose_write", "make", True): Witness(2, ("read 0", "close r0.0"), 0, "select w0 r1", "make w0"),
    ("choose_write", "all", False): Witness(0, ("read 0",), 0, "select w0 w1", "poison 0"),
    ("choose_write", "all", True): Witness(2, (), 0, "select w0 w1", "poison 0"),
    ("close", "make", False): Witness(0, (), 0, "make r0", "close w0.1"),
    ("close", "make", True): Witness(2, (), 0, "make r0", "close w0.1"),
    ("close", "all", False): Witness(0, ("write 0",), 0, "close r0.0", "poison 0"),
    ("close", "all", True): Witness(4, (), 0, "write 0", "close r0.0"),
    ("close_other", "make", False): Witness(0, (), 0, "make r0", "close r0.0"),
    ("close_other", "make", True): Witness(2, (), 0, "make r0", "close r0.0"),
    ("make", "all", False): Witness(0, (), 0, "make r0", "poison 0"),
    ("make", "all", True): Witness(2, (), 0, "make r0", "poison 0"),
    ("all", "all", False): Witness(0, ("sync",), 0, "sync", "sync"),
    ("all", "all", True): Witness(4, (), 0, "read 0", "read 0"),
    ("all", "join", False): Witness(0, ("sync",), 0, "sync", "enrol"),
    ("all", "look", False): Witness(1, ("select r0 r1",), 0, "poison 0", "write 1"),
}
# fmt: on

#: Barriers, selects, ends of processes, time and cancellation are places too, and none of them is a
#: buffer. Of the accesses, only `join`, `look` and `all` occur at these places, and `join` only at
#: barriers.
_ELSEWHERE = ("join", "look")
NOWHERE: set[Entry] = {
    (a, b, buffered)
    for a in ACCESSES
    for b in _ELSEWHERE
    for buffered in (False, True)
    if buffered or a != "all"
}
