"""Tests the drivers: the line format for twins, and the Python driver over a toy package."""

from __future__ import annotations

import sys

import pytest

from conformance import driver as driver_module
from conformance.checker import check
from conformance.driver import ModelDriver, ProgramDriver, conform, from_lines, to_lines
from conformance.explore import frozen, run
from conformance.networks import DEFAULT, FEATURES, generate
from conformance.python_driver import PythonDriver
from conformance.python_names import Names
from conformance.shrink import report
from conformance.tests import toy
from conformance.tests.kit import net, proc

# The features that the toy supports: it has no deadlines, and its processes cannot be cancelled by
# number.
TOY = DEFAULT


class ToyDriver(PythonDriver):
    def __init__(self, threads: bool, defect: str = ""):
        names = Names("conformance.tests.toy")
        names.awaits = names.one_scheduler = not threads
        super().__init__("toy", TOY, names)
        self.threads, self.defect, self.grain = threads, defect, "cores" if threads else "atomic"

    def run(self, n, seed):
        toy.reset(self.threads, self.defect)
        return super().run(n, seed)


@pytest.mark.parametrize("threads", [False, True])
def test_the_python_driver_over_a_good_package(threads):
    driver = ToyDriver(threads)
    for seed in range(150):
        n = generate(seed, features=TOY)
        history = driver.run(n, seed)
        found = check(n, history, driver.grain)
        assert found, f"seed {seed}\n{report(n, history, found.why)}"


@pytest.mark.parametrize(
    "defect",
    ["wrong value", "no spread", "no value back", "deaf retire", "eager functions", "unfair"],
)
def test_the_python_driver_over_a_broken_package(defect):
    driver, messages = ToyDriver(False, defect), []
    for seed in range(1500):
        if conform(driver, range(seed, seed + 1), say=messages.append)[1]:
            break
    assert messages, f"{defect}: not seen in 1500 networks"
    assert f"seed {seed}" in messages[0]
    assert len(messages[0].splitlines()) < 70


def test_the_line_format_round_trip():
    for seed in range(200):
        n = generate(seed, features=FEATURES)
        back = from_lines(to_lines(n))
        for k in ("seed",):
            n.pop(k)
        assert back["barriers"] == n["barriers"] and back["main"] == n["main"]
        for a, b in zip(back["channels"], n["channels"], strict=True):
            assert a == {"capacity": 0, "overflow": "block", "immunity": 1, **b}
        assert frozen(run(back, seed)) == frozen(run(n, seed))


@pytest.mark.parametrize(
    "text, word",
    [
        ("", "weft-net 1"),
        ("weft-net 1\nprocess 0\n", "breaks off"),
        ("weft-net 1\nprocess 0\ndance\nend\n", "dance"),
        ("weft-net 1\nprocess 0\nend\nmore\n", "after"),
        ("weft-net 1\nbanana 0\nend\n", "banana"),
    ],
)
def test_the_line_format_refuses_the_rest(text, word):
    with pytest.raises(ValueError, match=word):
        from_lines(text)


def test_a_program_as_a_twin():
    twin = ProgramDriver(
        [sys.executable, "-m", "conformance.driver", "--twin"], "atomic", "virtual"
    )
    assert conform(twin, range(3)) == (3, 0, 0)


def test_a_program_that_breaks(capsys):
    broken = ProgramDriver(
        [sys.executable, "-c", "print('{\"e\": 1'); raise SystemExit(3)"], "atomic", "virtual"
    )
    assert broken.run(generate(1), 0) == []
    assert not check(generate(1), [], "atomic")
    slow = ProgramDriver(
        [sys.executable, "-c", "import threading; threading.Event().wait()"],
        "cores",
        "virtual",
        seconds=0.3,
    )
    assert slow.run(generate(1), 0) == []
    assert "not done within" in capsys.readouterr().err


def test_the_command_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["driver", "--seeds", "0:5"])
    assert driver_module.main() == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 passed, 0 failed"
    monkeypatch.setattr(sys, "argv", ["driver", "--seed", "3"])
    assert driver_module.main() == 0
    assert "possible" in capsys.readouterr().out


def test_features_on_the_command_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["driver", "--seeds", "0:3", "--without", "time,poison"])
    assert driver_module.main() == 0
    monkeypatch.setattr(sys, "argv", ["driver", "--without", "magic"])
    with pytest.raises(SystemExit):
        driver_module.main()
    assert "no such feature: magic" in capsys.readouterr().err


def test_the_reference_in_both_grains():
    for grain in ("atomic", "cores"):
        assert conform(ModelDriver(grain), range(1000, 1060))[:2] == (60, 0)


def test_functions_called_wrongly_are_in_the_record():
    n = net(
        1,
        proc(1, ["0w"], ["select", "fair", [{"g": "out", "end": 0, "fn": "make"}, {"g": "skip"}]]),
        proc(2, ["0r"], ["sleep", 1]),
    )
    history = ToyDriver(False, "eager functions").run(n, 0)
    assert any("were called" in str(r["out"]) for r in history if r["e"] == "ret")
    assert not check(n, history)
