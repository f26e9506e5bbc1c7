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

import contextlib
import socket
import subprocess
import sys
import time
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
    """Reads `n` numbers from the board, and writes them to the component."""
    for _ in range(n):
        samples.write(float(answers.read()))


@process
def pass_on(means, levels):
    for mean in means:
        levels.write(mean)


@process
def show(verdicts):
    return list(verdicts)


@contextlib.contextmanager
def port(device, emulated, folder):
    """Yields the board's serial port, or a socket if the board is emulated."""
    if not emulated:
        yield device
        return
    at = folder / "board.sock"
    at.unlink(missing_ok=True)
    command = [HERE.parents[1] / "emulator/bin/weft-rp2040", "run", emulated, "--uart-socket", at]
    with subprocess.Popen([*command, "--uart-delay", "--no-uart"], stdout=subprocess.DEVNULL) as it:
        try:
            while not at.is_socket():
                if it.poll() is not None:
                    raise click.ClickException("the emulator has not started")
                time.sleep(0.02)  # no event reports that the emulator has made its socket
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(at))
                yield line
        finally:
            it.terminate()


def run_room(board, smooth, cellar, n):
    """Runs all processes, and returns the verdicts."""
    names = ["numbers", "answers", "samples", "means", "levels", "verdicts"]
    c = {name: Channel(name) for name in names}
    board.give("numbers", c["numbers"].reader())
    board.give("answers", c["answers"].writer())
    return run(
        show(c["verdicts"].reader()),
        dial(c["numbers"].writer(), n),
        fan(c["answers"].reader(), c["samples"].writer(), n),
        smooth(c["samples"].reader(), c["means"].writer(), 2),
        pass_on(c["means"].reader(), c["levels"].writer()),
        judge.on(cellar)(c["levels"].reader(), c["verdicts"].writer()),
    )[0]


@click.command()
@click.option("--device", help="The serial port of the board.")
@click.option("--emulate", help="The board's program, to run in the emulator.", metavar="ELF")
@click.option("--join", "url", required=True, help="The address of the network's server.")
@click.option("--keys", required=True, help="The folder with this program's keys.")
@click.option("--samples", default=8, show_default=True, help="How many numbers go round.")
@click.option("--folder", default="out", show_default=True, type=click.Path(path_type=Path))
def main(device, emulate, url, keys, samples, folder):
    if bool(device) == bool(emulate):
        raise click.UsageError("give either --device or --emulate")
    folder.mkdir(parents=True, exist_ok=True)
    smooth = weft.native.load(HERE / "smooth.cpp").smooth
    with net.join(url, keys=keys, name="pump-room") as network:
        cellar = network.host("cellar")
        with (
            port(device, emulate, folder) as line,
            serial.connect(line, baud=19200, lease=20.0) as board,
        ):
            with flight(folder / "program.flight"):
                verdicts = run_room(board, smooth, cellar, samples)
            board.flight(folder / "board.flight", patience=60.0)
    dump = [sys.executable, "-m", "weft.cli", "dump", url, "--keys", keys, "-o", str(folder)]
    subprocess.run(dump, check=True)
    print(" ".join(verdicts))


if __name__ == "__main__":
    main()
