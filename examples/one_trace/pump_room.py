"""A board, a component in C++, threads of Python and a process on a second host: one network, and
one trace of it.

      dial ──numbers──► [board: filter ──squares──► uplink] ──answers──► fan
      (thread)                                                        (thread) │ samples
                                                                               ▼
      show ◄──verdicts── [host cellar: judge] ◄──levels── pass_on ◄──means── [C++: smooth]
      (thread)                                           (thread)

Run by README.md. Writes three kinds of files of flight recorders into FOLDER: that of this program,
that of the board, and those of the hosts.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import click
from judge import judge

import weft.native
from weft import net, serial
from weft.observe import flight
from weft.threads import Channel, process, run

HERE = Path(__file__).resolve().parent


@process
def dial(numbers, n):
    for i in range(n):
        numbers.write(i)


@process
def fan(answers, samples, n):
    """Takes `n` numbers from the board, and hands them on."""
    for _ in range(n):
        samples.write(float(answers.read()))


@process
def pass_on(means, levels):
    for mean in means:
        levels.write(mean)


@process
def show(verdicts):
    return list(verdicts)


def port(device):
    """Returns the board's serial port. An emulated board has a socket in its place."""
    if not Path(device).is_socket():
        return device
    line = socket.socket(socket.AF_UNIX)
    line.connect(device)
    return line


def run_room(board, cellar, n):
    """Starts all processes, and returns the verdicts."""
    names = ["numbers", "answers", "samples", "means", "levels", "verdicts"]
    c = {name: Channel(name) for name in names}
    board.give("numbers", c["numbers"].reader())
    board.give("answers", c["answers"].writer())
    smooth = weft.native.load(HERE / "smooth.cpp").smooth
    return run(
        show(c["verdicts"].reader()),
        dial(c["numbers"].writer(), n),
        fan(c["answers"].reader(), c["samples"].writer(), n),
        smooth(c["samples"].reader(), c["means"].writer(), 2),
        pass_on(c["means"].reader(), c["levels"].writer()),
        judge.on(cellar)(c["levels"].reader(), c["verdicts"].writer()),
    )[0]


@click.command()
@click.option(
    "--device", required=True, help="The serial port of the board, or an emulator's socket."
)
@click.option("--join", "url", required=True, help="The address of the network's server.")
@click.option("--keys", required=True, help="The folder with this program's keys.")
@click.option("--samples", default=8, show_default=True, help="How many numbers go round.")
@click.option("--folder", default="out", show_default=True, type=click.Path(path_type=Path))
def main(device, url, keys, samples, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with (
        net.join(url, keys=keys, name="pump-room") as network,
        serial.connect(port(device), baud=19200, lease=20.0) as board,
    ):
        with flight(folder / "program.flight"):
            verdicts = run_room(board, network.host("cellar"), samples)
        board.flight(folder / "board.flight", patience=60.0)
    dump = [sys.executable, "-m", "weft.cli", "dump", url, "--keys", keys, "-o", str(folder)]
    subprocess.run(dump, check=True)
    print(" ".join(verdicts))


if __name__ == "__main__":
    main()
