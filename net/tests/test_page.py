"""Tests that the two programs of python/docs/network.md behave as the page describes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "python/docs/network.md"

EXAMPLE = PAGE.parents[2] / "examples/mandelbrot"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_home_and_who_writes_to_it(server, tmp_path):
    home, writer, *_ = BLOCKS
    assert "offer(" in home and "network.writer(" in writer
    folder = tmp_path / "server"
    (folder / "server").write_text(server.url)  # the note that `weft net up` would write
    where = {**os.environ, "WEFT_NET": str(folder)}
    children = [
        subprocess.Popen([sys.executable, "-c", text], env=where, stdout=subprocess.PIPE, text=True)
        for text in (home, writer)
    ]
    printed = [child.communicate()[0] for child in children]
    assert (printed, [child.returncode for child in children]) == (["0\n1\n4\n", ""], [0, 0])


def test_a_process_on_another_host(server, keys, agent, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "squares.py").write_text(BLOCKS[2])
    assert (
        "weft host --join nats://lab1:4222 --name gpu1 --address gpu1:0 --allow squares:square"
        in (PAGE.read_text())
    )
    agent("gpu1", "--allow", "squares:square", folder=there)
    (tmp_path / "server" / "server").write_text(server.url)
    done = subprocess.run(
        [sys.executable, "squares.py"],
        cwd=here,
        env={**os.environ, "WEFT_NET": str(tmp_path / "server")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{[[n, n * n] for n in range(8)]}\n"


def test_the_source_goes_along(server, keys, agent, tmp_path):
    """The page's program runs although the other machine has no file of the program."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (here / "squares.py").write_text(BLOCKS[2])
    assert "--name gpu1 --address gpu1:0 --allow source\n" in PAGE.read_text()
    agent("gpu1", "--allow", "source", folder=there)
    (tmp_path / "server" / "server").write_text(server.url)
    done = subprocess.run(
        [sys.executable, "squares.py"],
        cwd=here,
        env={**os.environ, "WEFT_NET": str(tmp_path / "server")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{[[n, n * n] for n in range(8)]}\n"


def test_the_class_that_is_accepted(server, keys, agent, tmp_path):
    """An object of the page's module is sent as an argument and is returned as a result."""
    function = "\n\ndef moved(p):\n    return Point(p.name, (p.at[0] + 1, p.at[1]))\n"
    program = (
        "import points\nfrom weft import net\nfrom weft.processes import Executor\n"
        "with net.join() as network, Executor(on='gpu1') as pool:\n"
        "    print(pool.submit(points.moved, points.Point('a', (1, 2))).result())\n"
    )
    (point,) = (block for block in BLOCKS if "class Point" in block)
    (tmp_path / "points.py").write_text(point + function)
    agent("gpu1", "--allow", "points:moved", folder=tmp_path)
    (tmp_path / "server" / "server").write_text(server.url)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "WEFT_NET": str(tmp_path / "server")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Point(name='a', at=(2, 2))\n"


@pytest.mark.soak
def test_the_picture_comes_though_a_host_is_killed(server, keys, agent, tmp_path):
    """examples/mandelbrot/over_hosts.py runs unchanged. Both hosts have drawn rows, and the picture
    is correct.
    """
    agents = {
        name: agent(name, "--hosts", "1", "--allow", "over_hosts:worker", folder=EXAMPLE)
        for name in ("gpu1", "gpu2")
    }
    (tmp_path / "server" / "server").write_text(server.url)
    size, jobs, iterations = 120, 60, 3000
    command = [sys.executable, "over_hosts.py", "--hosts", "2", "--workers", "2", "--json"]
    command += ["--size", str(size), "--jobs", str(jobs), "--iterations", str(iterations)]
    command += ["--out", str(tmp_path / "m.png"), "--who", str(tmp_path / "who.png")]
    drawing = subprocess.Popen(
        command,
        cwd=EXAMPLE,
        env={**os.environ, "WEFT_NET": str(tmp_path / "server")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert drawing.stderr is not None
    first = drawing.stderr.readline().split()[0]
    drawing.send_signal(signal.SIGSTOP)  # no results are received, so some lines remain to be drawn
    agents[first].kill()
    agents[first].process.wait()
    drawing.send_signal(signal.SIGCONT)
    printed, errors = drawing.communicate()
    assert drawing.returncode == 0, errors
    report = json.loads(printed)
    assert set(report["rows"]) == {"gpu1", "gpu2"} and sum(report["rows"].values()) == size
    sys.path.insert(0, str(EXAMPLE))
    import fractal

    whole = fractal.compute(fractal.View(size, size, iterations), 0, size)
    assert report["digest"] == hashlib.sha256(whole.tobytes()).hexdigest()[:16]
    assert (
        (tmp_path / "m.png").read_bytes()[:4]
        == (tmp_path / "who.png").read_bytes()[:4]
        == b"\x89PNG"
    )
