"""Runs cpp/gdb/weft_gdb.py in gdb, on a program that stops itself, and checks its output about
channels, ends and processes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import library_object

pytestmark = [
    pytest.mark.together,  # the tests use one program
    pytest.mark.skipif(
        shutil.which("gdb") is None or shutil.which("g++") is None, reason="gdb or g++ is missing"
    ),
]
SCRIPT = ROOT / "cpp/gdb/weft_gdb.py"
PROGRAM = """
#include <weft/weft.hpp>
weft::Process reads(weft::Reader<int> r) {
  co_await r.read();
  co_await r.read();  // waits here
}
weft::Process sends(weft::Writer<int> w) { while (true) co_await w.write(1); }
weft::Process stops(weft::Writer<int> w, weft::Writer<int> spare) {
  co_await w.write(1);
  for (int i = 0; i < 3; ++i) co_await weft::yield();
  const weft::Writer<int> moved = std::move(spare);
  __builtin_trap();
}
int main() {
  weft::Channel<int> orders{weft::named("orders")}, full{weft::named("full")};
  weft::Channel<int> buffered{weft::buffer(4).called("buffered")};
  weft::Channel<int> born;  // made here
  weft::Channel<int, weft::Local> local{weft::named("local")};
  weft::Channel<int, weft::OneToOne> ring{weft::buffer(8).called("ring")};
  auto w = buffered.writer();
  w(7);
  auto keep = full.reader();
  auto p = reads(born.reader());
  weft::run(reads(orders.reader()), sends(full.writer()), sends(full.writer()), stops(orders.writer(), orders.writer()));
}
"""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gdb")
    source = folder / "net.cpp"
    source.write_text(PROGRAM)
    return library_object.program(folder / "net", source)


def gdb(binary: Path, *commands: str) -> str:
    """Returns the output of gdb after the program has stopped itself."""
    given = ["-ex", f"source {SCRIPT}", "-ex", "run", "-ex", "echo ==\\n"]
    for command in commands:
        given += ["-ex", command]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", *given, binary], capture_output=True, text=True, check=False
    )
    assert "SIGILL" in done.stdout, done.stdout + done.stderr
    return done.stdout.partition("==\n")[2] + done.stderr


def test_channels_are_shown_with_their_names_ends_and_who_waits(binary: Path) -> None:
    names = ("orders", "full", "buffered", "born", "local", "*orders.core_")
    output = gdb(binary, "frame function main", *(f"print {name}" for name in names))
    shown = re.findall(r"^\$\d+ = (.*)$", output, re.MULTILINE)
    line = PROGRAM.splitlines().index("  weft::Channel<int> born;  // made here") + 1
    assert shown == [
        "'orders', 1 reader end, 2 writer ends, 1 waits to read",
        "'full', 1 reader end, 2 writer ends, 2 wait to write",
        "'buffered', 0 reader ends, 1 writer end, 1 of 4 buffered",
        f"net.cpp:{line}, 1 reader end, 0 writer ends",
        "'local', 0 reader ends, 0 writer ends",
        "'orders', 1 reader end, 2 writer ends, 1 waits to read",
    ]


def test_ends_are_shown_with_their_channels_or_as_closed(binary: Path) -> None:
    output = gdb(
        binary, "print w", "print moved", "print spare", "frame function main", "print keep"
    )
    assert re.findall(r"^\$\d+ = (.*)$", output, re.MULTILINE) == [
        "writer of 'orders', 1 reader end, 2 writer ends, 1 waits to read",
        "writer of 'orders', 1 reader end, 2 writer ends, 1 waits to read",
        "writer, closed",
        "reader of 'full', 1 reader end, 2 writer ends, 2 wait to write",
    ]


def test_processes_are_listed_with_what_they_wait_for(binary: Path) -> None:
    output = gdb(binary, "weft processes").splitlines()
    line = PROGRAM.splitlines().index("  co_await r.read();  // waits here") + 1
    shown = [re.sub(r"id [1-9]\d*", "id N", row) for row in output if row.startswith("main")]
    assert sorted(shown) == [
        f"main/reads, id N, read at net.cpp:{line}",
        "main/sends, id N, write at net.cpp:7",
        "main/sends[1], id N, write at net.cpp:7",
        "main/stops, id N, running",
    ]


def test_what_is_wrong_is_told(binary: Path, tmp_path: Path) -> None:
    assert "give `weft processes`" in gdb(binary, "weft proceses")
    done = subprocess.run(
        [
            "gdb",
            "-nx",
            "-batch",
            "-ex",
            f"source {SCRIPT}",
            "-ex",
            "start",
            "-ex",
            "weft processes",
            binary,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no thread is in a run" in done.stderr


def test_memory_that_is_no_channel_raises_nothing(binary: Path) -> None:
    output = gdb(binary, "frame function main", "set var orders.core_ = 1", "print orders")
    assert "$1 = ? (" in output
