"""Tests of a device's ticks (R22): a warning at the place of each time that is rounded gives the
rounded time; a time beyond the horizon is an error."""

from __future__ import annotations

import json

import pytest
from conftest import Write, model

from weft_lf import cli
from weft_lf.build import Wanted, build
from weft_lf.emit import Options, emit
from weft_lf.errors import LfError
from weft_lf.target import Config
from weft_lf.ticks import HOST, Tick, check, in_ticks, period_of, shown, tick_of

US = Tick(1000, False)


def test_rounding_is_the_runtime_s() -> None:
    for ns, ticks in ((0, 0), (-5, 0), (1, 1), (499, 1), (500, 1), (1499, 1), (1500, 2), (2000, 2)):
        assert in_ticks(ns, US) == ticks, ns
    assert in_ticks(1499, HOST) == 1499


def test_a_period_keeps_its_fraction() -> None:
    assert period_of(62_500, US) == (125, 2)
    assert period_of(333_333, US) == (333_333, 1000)
    assert period_of(2_000, US) == (2, 1)
    assert period_of(300, US) == (1, 1), "less than a tick is a tick"
    assert period_of(62_500, HOST) == (62_500, 1)


def test_times_as_a_person_writes_them() -> None:
    for ns, text in ((0, "0"), (5, "5 ns"), (1500, "1.5 us"), (62_500, "62.5 us"), (10**9, "1 s")):
        assert shown(ns) == text
    assert shown(2_000_000) == "2 ms" and shown(1_000_001) == "1.000001 ms"


MAIN = """target C { timeout: 1234567 nsec }
reactor A { output out: int
  timer t(1500 nsec, 62500 nsec)
  logical action a(2300 nsec, 700 nsec)
  reaction(t) -> out, a {= =} deadline(900 nsec) {= =}
  reaction(a) {= =} }
reactor B { input in: int
  reaction(in) {= =} }
main reactor { a = new[3] A()  b = new[3] B()
  a.out -> b.in after 300 nsec }
"""
TOLD = (
    (1, "the timeout, 1.234567 ms, is 1.235 ms here: a tick is 1 us"),
    (3, "the offset of the timer, 1.5 us, is 2 us here"),
    (3, "the period of the timer, 62.5 us, is not a whole number of ticks of 1 us"),
    (4, "the delay of the action, 2.3 us, is 2 us here"),
    (4, "the spacing of the action, 700 ns, is 1 us here"),
    (5, "the deadline, 900 ns, is 1 us here"),
    (10, "the delay of the connection, 300 ns, is 1 us here"),
)


def test_what_is_rounded_is_told_once_and_at_its_place(write: Write) -> None:
    found = check(model(write(MAIN)), US)
    assert [(p.span.line, p.severity) for p in found] == [(line, "warning") for line, _ in TOLD]
    for problem, (_, text) in zip(found, TOLD, strict=True):
        assert problem.message.startswith(text), problem.message
    assert "gaps of 62 us and 63 us" in found[2].hint
    assert check(model(write(MAIN)), HOST) == []


def test_a_mode_s_timer_is_rounded(write: Write) -> None:
    path = write(
        "target C\nmain reactor { initial mode M { timer t(0, 62500 nsec)\n reaction(t) {= =} } }\n"
    )
    (problems,) = check(model(path), US)
    assert "is 63 us here" in problems.message
    assert "WEFT_RX_RATIO" not in emit(model(path), Options(True, tick=US))[0]


def test_a_fraction_is_a_ratio_in_the_c(write: Write) -> None:
    path = write("""target C
main reactor { timer t(0, 62500 nsec)  timer u(0, 10 usec)  logical action a
  reaction(t) -> a {= =}
  reaction(u) {= =} }
""")
    text, _ = emit(model(path), Options(True, tick=US))
    assert "WEFT_RX_RATIO(0LL, 125LL, 2, " in text and "weft_rx_start_ratio(&lf_ratios[0]);" in text
    assert "#define WEFT_RX_TIMERS 2" in text
    assert "RATIO" not in emit(model(path), Options())[0]


def test_every_timer_has_a_place_in_the_queue(write: Write) -> None:
    """WEFT_RX_TIMERS counts one-shot timers too, because a device's heap has only that many
    places."""
    lines = "\n".join(f"  timer t{n}({n} msec)\n  reaction(t{n}) {{= =}}" for n in range(70))
    path = write(
        f"target C\nmain reactor {{\n{lines}\n timer u(0, 1 msec)\n reaction(u) {{= =}} }}\n"
    )
    assert "#define WEFT_RX_TIMERS 71" in emit(model(path), Options(table=False))[0]


@pytest.mark.parametrize(
    "member",
    [
        "timer t(0, 1 hour)\n reaction(t) {= =}",
        "timer t(36 min, 1 sec)\n reaction(t) {= =}",
        "logical action a(1 hour)\n reaction(a) {= =}",
        "reaction(startup) {= =} deadline(1 hour) {= =}",
    ],
)
def test_beyond_the_horizon(write: Write, member: str) -> None:
    path = write(f"target C\nmain reactor {{ {member} }}\n")
    with pytest.raises(LfError, match=r"beyond the horizon of this target, 2130\.7"):
        check(model(path), US)
    with pytest.raises(LfError, match="beyond the horizon"):
        build(model(path), Wanted("rp2040", compile=False))
    for tick in (HOST, Tick(1000, True), Tick(1_000_000, False)):
        assert check(model(path), tick) == []


def test_the_tick_of_a_target(write: Write) -> None:
    assert tick_of(Config(), "host") == HOST
    assert tick_of(Config(), "rp2040") == US == tick_of(Config(), "an521")
    given = Config(definitions={"WEFT_TICK_NS": "1000000", "WEFT_RX_TIME64": "1"})
    assert tick_of(given, "rp2040") == Tick(1_000_000, True)
    for bad in ("10", "0", "x"):
        with pytest.raises(LfError, match="WEFT_TICK_NS is"):
            tick_of(Config(definitions={"WEFT_TICK_NS": bad}), "rp2040")


def test_the_command_tells_it(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(MAIN))
    assert cli.main(["check", path]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main(["check", "--target", "rp2040", path]) == 0
    output = capsys.readouterr().err
    assert f"{path}:3:22: warning: the period of the timer, 62.5 us" in output and "^" in output
    assert cli.main(["check", "--json", "--target", "rp2040", path]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(TOLD)
    assert cli.main(["build", "--no-compile", "--target", "rp2040", path]) == 0
    assert "is 1 us here" in capsys.readouterr().err


def test_watchdogs_are_for_hosts(write: Write) -> None:
    """R25: a device has no threads; the error is at the watchdog."""
    path = write("target C\nmain reactor {\n  watchdog w(1 sec) {= =}\n}\n")
    assert check(model(path), HOST) == []
    with pytest.raises(LfError, match="watchdogs need threads") as caught:
        check(model(path), US)
    assert caught.value.problems[0].span.line == 3
