"""Typed values as arguments and results of calls on other hosts (WIRE-NETWORKS.md 17.10, 17.11,
17.15)."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import far_parts as parts
import numpy as np
import pytest
from points import Late, Place, Unknown

from weft import net
from weft import threads as th
from weft._net import calls as _net_calls
from weft._net import values as _net_values
from weft.errors import BadUse
from weft.processes import Executor


def test_arguments_and_results(gpu1, caller):  # wire 17.10, 17.15
    received = th.run(parts.moved.on("gpu1")(Place("a", (1, 2)), 3))
    assert received == Place("a", (4, 2)) and type(received) is Place
    array = th.run(parts.add.on("gpu1")(np.arange(4), np.float64(0.5)))
    assert array.tolist() == [0.5, 1.5, 2.5, 3.5]


def test_arguments_that_the_host_does_not_accept(agent, network):  # wire 17.11
    agent("gpu1", "--hosts", "1")
    before = th.run(parts.pid.on("gpu1")())
    with pytest.raises(
        BadUse, match=r"'arguments of x_of': an object of points\.Unknown"
    ) as raised:
        th.run(parts.x_of.on("gpu1")(Unknown(3)))
    assert "Traceback" in str(raised.value.__cause__)  # the error was raised on the host
    assert th.run(parts.pid.on("gpu1")()) == before  # the refused pickle has killed no OS process


def test_results_that_this_program_does_not_accept(agent, network):  # wire 17.11
    agent("gpu1", "--hosts", "1")
    before = th.run(parts.pid.on("gpu1")())
    with pytest.raises(BadUse, match=r"'result of gives': an object of points\.Unknown has come"):
        th.run(parts.gives.on("gpu1")("unknown"))
    assert th.run(parts.pid.on("gpu1")()) == before
    net.accepts(Late)
    try:
        assert th.run(parts.gives.on("gpu1")("late")) == Late(3)
    finally:
        del _net_values._accepted["points.Late"]


def test_an_executor(gpu1, caller):  # wire 17.14, 17.15
    """Refused calls fail, and the other calls return their results."""
    with Executor(on="gpu1") as pool:
        places = [Place(str(i), (i, i)) for i in range(20)]
        moved = list(pool.map(parts.moved._weft_body, places, range(20)))
        assert [p.at for p in moved] == [(2 * i, i) for i in range(20)]
        wrong = pool.submit(parts.plus, Unknown(1), 2)
        assert "an object of points.Unknown has come" in str(wrong.exception())
        assert pool.submit(parts.plus, 1, 2).result() == 3
        wrong = pool.submit(parts.unknown_if, True)
        assert isinstance(wrong.exception(), BadUse)
        assert "'result of unknown_if': an object of points.Unknown" in str(wrong.exception())
        assert pool.submit(parts.unknown_if, False).result() == 0
        many = [pool.submit(parts.unknown_if, i == 5) for i in range(10)]
        outcomes = [f.exception() for f in many]
        assert isinstance(outcomes[5], BadUse)
        assert all(o is None or isinstance(o, BadUse) for o in outcomes)


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("message", ["arguments", "failure"])
def test_a_pickle_among_plain_values_is_no_pickle(gpu1, caller, tmp_path, monkeypatch, message):
    """wire 17.10: between programs that do not trust each other, bytes that arrive in place of a
    pickle are not unpickled."""
    evil = pickle.dumps(((), {"x": _Evil(tmp_path / "made")}))
    if message == "arguments":
        monkeypatch.setattr(_net_calls, "packed", lambda *_: evil)
        with pytest.raises((BadUse, ValueError, TypeError)):
            th.run(parts.pid.on("gpu1")())
    else:
        with pytest.raises(TypeError, match="a malformed failure has come"):
            _net_calls.exception_of(evil, _net_calls.asked_of(parts.pid))
    assert not (tmp_path / "made").exists()
