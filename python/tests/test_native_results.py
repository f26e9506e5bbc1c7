"""Reports of how a component's process ended (rules 3.5, 4.3, 7.1, 16.1): on the pool, on a thread,
and in an OS process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from components import needs_compiler, tasks

from weft import threads as th
from weft.errors import NoResult, PeerDied, Poisoned, Retired

pytestmark = needs_compiler

ON = pytest.mark.parametrize("on", ["pool", "thread", "process"])
SOURCE = Path(__file__).with_name("component_tasks.cpp").read_text(encoding="utf-8").splitlines()
READS = 1 + SOURCE.index(
    "  co_await in.read();", SOURCE.index("Task<> left(Ints in, std::string by) {")
)


def left(r: Any, by: str, on: str) -> Any:
    return tasks().left(r, by, on=on)


@th.process
def beside() -> str:
    return "beside"


@ON
@pytest.mark.parametrize("how", ["retired", "poisoned"])
def test_what_it_met_is_quiet(on: str, how: str) -> None:  # rules 3.5, 4.3, 7.1
    c = th.Channel("c")
    r = c.reader()
    c.writer().retire() if how == "retired" else c.poison()
    n, _ = th.run(left(r, "", on), beside())
    assert isinstance(n, NoResult) and not n
    assert (n.process, n.how) == ("main/left", how)
    assert n.reason.startswith("read on channel 'c': ")
    assert n.where == f"component_tasks.cpp:{READS}"


@ON
@pytest.mark.parametrize(
    ("by", "kind"),
    [
        ("Retired", Retired),
        ("Poisoned", Poisoned),
        ("PeerDied", PeerDied),
        ("no end of its", Retired),
    ],
)
def test_what_it_throws_of_itself_is_a_failure(on: str, by: str, kind: type[Any]) -> None:
    """Rules 3.5, 4.3: an exception that the component throws itself is a failure, and poison
    spreads to the ends that the process holds.
    """
    c = th.Channel("c")
    w = c.writer()
    with pytest.raises(kind, match="none of its operations ended") as caught:
        th.run(left(c.reader(), by, on), beside())
    assert caught.value.met is False
    with pytest.raises(Poisoned if kind is Poisoned else Retired):
        w.write(1)
