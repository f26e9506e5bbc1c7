"""Tests of `tracing`: the file that a program writes has each run of each reaction with its tag
(R26), and `weft trace` reads it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Write, model, problems
from randoms import by_seed, program

from weft._watching import flight_read
from weft_lf import cli
from weft_lf.build import Wanted, build
from weft_lf.conform import by_reactor
from weft_lf.errors import LfError

HEAD = "target C { timeout: 20 msec, fast: true, tracing: true }\n"
SLOW = (
    HEAD
    + """
reactor Source {
  output out: int
  timer t(0, 10 msec)
  state n: int = 0
  reaction(t) -> out {=
    lf_set(out, self->n++);
    tracepoint_user_value(self, "n", self->n);
  =}
}
main reactor {
  source = new Source()
  logical action a
  reaction(source.out) -> a {= lf_schedule(a, 0); =}
  reaction(a) {= tracepoint_user_event(self, "not called"); =} deadline(0) {=
    tracepoint_user_event(self, "called");
  =}
}
"""
)


def traced(path: Path, status: int = 0, name: str = "", **environment: str) -> list[str]:
    """Builds and runs a program in its folder. Returns the events of its trace: the reaction and
    the operation of each."""
    built = build(model(path), Wanted(trace=True, quick=True))
    folder = path.parent
    ran = subprocess.run(
        [str(built.program)], cwd=folder, capture_output=True, env={**os.environ, **environment}
    )
    assert ran.returncode == status, ran.stderr
    recorded = flight_read.Recorded([str(folder / f"{name or path.stem}.flight")])
    found = [f"{line['p']} {line['op']}" for line in recorded.lines() if line["e"] == "commit"]
    assert not recorded.fault
    assert recorded.summary().unfinished == []
    return found


def fired(events: list[str]) -> list[str]:
    """Returns the runs of reactions, as a line `TIME MICROSTEP REACTION` each."""
    runs = (re.fullmatch(r"(\S+) wait for tag \((\d+), (\d+)\)", event) for event in events)
    return [f"{run[2]} {run[3]} {run[1]}" for run in runs if run]


def test_each_run_has_its_tag(write: Write) -> None:
    """R26: the file has an event with the tag for each run of each reaction, in order."""
    events = traced(write(SLOW))
    runs = [
        line
        for n in range(3)
        for line in (
            f"Main.source.1 wait for tag ({n * 10_000_000}, 0)",
            f"Main.source.1 n: {n + 1}",
            f"Main.1 wait for tag ({n * 10_000_000}, 0)",
            *[
                f"Main.2 {what}"
                for what in (f"wait for tag ({n * 10_000_000}, 1)", "deadline missed", "called")
                if n < 2
            ],
        )
    ]
    ends = [f"Main.{name} wait for the end" for name in ("source.1", "1", "2")]
    assert [e for e in events if "end" not in e] == runs
    assert sorted(e for e in events if "end" in e) == sorted(ends)


@pytest.mark.parametrize("workers", [1, 2])
def test_random_programs_have_the_runs_of_their_other_trace(write: Write, workers: int) -> None:
    """R26: the file has the same runs as WEFT_RX_TRACE, from one thread and from two."""
    picks = [by_seed(7_000_000 + n) for n in range(20)]
    text = program(picks, workers=workers).replace("fast: true", "fast: true, tracing: true")
    path = write(text)
    trace = path.with_suffix(".fired")
    events = traced(path, WEFT_RX_TRACE=str(trace))
    other = [line.rstrip("!") for line in trace.read_text().splitlines()]
    assert by_reactor(fired(events)) == by_reactor(other)
    assert len(other) > 500
    assert sum(e.endswith("missed") for e in events) == trace.read_text().count("!")


def test_the_command_reads_it_and_names_the_reactions(write: Write) -> None:
    path = write(SLOW.replace("tracing: true", 'tracing: { trace-file-name: "other" }'))
    assert len(fired(traced(path, name="other"))) == 8
    assert not path.with_suffix(".flight").exists()
    summary = flight_read.Recorded([str(path.with_name("other.flight"))]).summary()
    assert {"Main.source.1", "Main.1", "Main.2"} <= {row.name for row in summary.processes}


def test_a_body_that_exits_leaves_a_whole_file(write: Write) -> None:
    path = write(HEAD + "main reactor { timer t(0, 1 msec)\n reaction(t) {= exit(3); =} }\n")
    assert traced(path, status=3) == ["Main.1 wait for tag (0, 0)"]


def test_a_file_that_cannot_be_written_stops_nothing(write: Write) -> None:
    """R26: the program ends with status 0, and stderr says why there is no trace."""
    text = SLOW.replace("tracing: true", 'tracing: { trace-file-name: "no/folder" }')
    built = build(model(write(text)), Wanted(quick=True))
    ran = subprocess.run([str(built.program)], capture_output=True, text=True)
    assert ran.returncode == 0
    assert "the trace no/folder.flight cannot be written: No such file" in ran.stderr


def test_devices_refuse_it_by_name(write: Write) -> None:
    path = write(SLOW)
    for target in ("rp2040", "an521"):
        with pytest.raises(LfError, match=f"'tracing' is not supported for the target {target}"):
            model(path).program.config.check_for(target)
    off = write(SLOW.replace("tracing: true", "tracing: false"))
    model(off).program.config.check_for("rp2040")


def test_an_option_nobody_knows_is_an_error(write: Write) -> None:
    path = write("target C { tracing: { file: x } }\nmain reactor { }\n")
    assert "there is no option 'file' of a trace" in str(problems(path))


def test_the_compilers_option_asks_for_it(write: Write) -> None:
    path = write("target C { timeout: 0 }\nmain reactor { reaction(startup) {= =} }\n")
    assert cli.main(["build", "--tracing", "--no-compile", str(path)]) == 0
    text = (path.parent / "src-gen" / "Main" / "Main.c").read_text()
    assert '#define WEFT_RX_RECORD_FILE "Main.flight"' in text
