"""Tests `weft up`: agents on many nodes. A stand-in for `ssh` on the PATH runs the command on this
machine; test_up_ssh.py uses the real one.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weft._net import keys as _net_keys
from weft._net import nodes as _net_nodes
from weft._net import ssh_agents as _net_up
from weft._net.nodes import Node
from weft.errors import BadUse

HERE = Path(__file__).resolve().parent
WEFT = f"{sys.executable} -m weft.cli"
SSH = r"""#!/bin/sh
for word; do case $word in --) break;; *) node=$word;; esac; done
while [ "$1" != -- ]; do shift; done; shift
case $node in
refused) echo "ssh: connect to host refused port 22: Connection refused" >&2; exit 255;;
silent) exec cat >/dev/null;;
deaf) trap '' TERM; while :; do sleep 300 & wait $!; done;;
chatty) echo "Welcome to chatty"; echo "be nice" >&2;;
esac
exec sh -c "$*"
"""


def ignores(pid: int, number: signal.Signals) -> bool:
    """Returns whether the OS process `pid` ignores the signal."""
    ignored = Path(f"/proc/{pid}/status").read_text().partition("\nSigIgn:")[2].split()[0]
    return bool(int(ignored, 16) >> number - 1 & 1)


def gone(pid: int) -> bool:
    """Waits until the OS process `pid`, which is not a child of this OS process, has ended."""
    try:
        one = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([one], [], [], 300)[0])
    finally:
        os.close(one)


@pytest.fixture
def where(tmp_path: Path) -> dict[str, str]:
    """An environment with the stand-in, and without variables of a batch job."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(SSH)
    (programs / "ssh").chmod(0o755)
    left = {
        k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PBS", "WEFT_SERVER"))
    }
    return {**left, "PATH": f"{programs}:{left['PATH']}"}


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(server: Any, keys: Path, where: dict[str, str]) -> Iterator[Start]:
    """Runs `weft up` on nodes that are this machine."""
    started: list[subprocess.Popen[str]] = []

    def up(*args: str, program: tuple[str, ...] = (), allow: str = "far_parts:squares") -> Any:
        command = [*WEFT.split(), "up", "--join", server.url, "--keys", str(keys), "--weft", WEFT]
        command += ["--remote-keys", str(keys), "--address", "127.0.0.1:0", "--allow", allow]
        process = subprocess.Popen(
            [*command, "--hosts", "1", "--json", *args, *(["--", *program] if program else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=HERE,
            env=where,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield up
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()


def joined(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    hosts: list[dict[str, Any]] = json.loads(line)["hosts"]
    return hosts


def pids(hosts: list[dict[str, Any]]) -> list[int]:
    return [pid for host in hosts for pid in host["pids"]]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate()
    return process.returncode, errors


# --- from start to end ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "status", "name"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_until_it_is_stopped(start, number, status, name):
    process = start("--ssh", "node1", "--ssh", "me@node-2.lab")
    hosts = joined(process)
    assert [h["host"] for h in hosts] == ["node1", "node-2-lab"]
    os.killpg(process.pid, number)
    end, errors = ended(process)
    assert (end, errors.splitlines()[-1]) == (status, f"weft: weft up is stopped, by {name}")
    reports = re.findall(
        r"weft: (\S+) has joined: 1 OS processes, 127.0.0.1:\d+ \((. of 2)\)", errors
    )
    assert sorted(h for h, _ in reports) == ["node-2-lab", "node1"]
    assert [n for _, n in reports] == ["1 of 2", "2 of 2"]
    assert all(gone(pid) for pid in pids(hosts))


PROGRAM = """
import sys, json
from weft import net
from weft.processes import Executor
import far_parts
with net.join() as network:
    hosts = network.hosts(2)
    with Executor(on=hosts) as pool:
        print(json.dumps([pool.submit(far_parts.plus, i, i).result() for i in range(4)]))
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("status", [0, 7])
def test_a_program(start, tmp_path, status):
    """The program finds the server without an option, its output is not mixed with other text, and
    `weft up` returns its status.
    """
    (tmp_path / "nodes").write_text("node1\nnode2\n")
    program = (sys.executable, "-c", PROGRAM, str(status))
    process = start("--nodefile", str(tmp_path / "nodes"), program=program, allow="far_parts:plus")
    printed, errors = process.communicate()
    assert (printed, process.returncode) == ("[0, 2, 4, 6]\n", status), errors
    (line,) = [line for line in errors.splitlines() if line.startswith("{")]
    assert all(gone(pid) for pid in pids(json.loads(line)["hosts"]))


def test_ctrl_c_ends_the_program_before_the_agents(start):
    text = (
        "import time\ntry:\n  print('here', flush=True)\n  time.sleep(300)\nfinally: print('well')"
    )
    process = start("--ssh", "node1", program=(sys.executable, "-c", text))
    assert process.stdout.readline() == "here\n"
    os.killpg(process.pid, signal.SIGINT)
    printed, errors = process.communicate()
    assert printed == "well\n" and process.returncode == 130
    assert "KeyboardInterrupt" in errors and errors.splitlines()[-1].endswith("by Ctrl-C")


def test_a_program_that_is_not_there(start):
    status, errors = ended(start("--ssh", "node1", program=("no-such-program",)))
    assert status == 2 and "there is no program 'no-such-program'" in errors


def test_it_is_killed(start):
    """When `weft up` is killed, the agents notice that their standard input ends, and end."""
    process = start("--ssh", "node1", "--ssh", "node2")
    hosts = joined(process)
    process.kill()
    process.wait()
    assert all(gone(pid) for pid in pids(hosts))


def test_agents_that_end(start):
    process = start("--ssh", "node1", "--ssh", "node2")
    hosts = joined(process)
    agents = [int(Path(f"/proc/{pid}/stat").read_text().split()[3]) for pid in pids(hosts)]
    for agent in agents:
        os.kill(agent, signal.SIGKILL)
    status, errors = ended(process)
    assert status == 1 and "weft: no agent is left" in errors
    assert "node1: the agent ended with status" in errors and "node2: the agent" in errors


# --- failed starts --------------------------------------------------------------------------------


def test_a_node_that_refuses(start):
    status, errors = ended(start("--ssh", "node1", "--ssh", "refused"))
    assert status == 1
    refused = "ssh: connect to host refused port 22: Connection refused"
    assert f"refused: ssh ended with status 255: {refused}" in errors


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--weft", "no-such-weft"), r"node1: the agent ended with status 127: .*not found"),
        (("--directory", "/no/such"), r"node1: the agent ended with status \d: .*/no/such"),
        (("--remote-keys", "/no/such"), r"node1: the agent ended with status 2: .*no keys in"),
    ],
)
def test_an_agent_that_does_not_start(start, args, why):
    status, errors = ended(start("--ssh", "node1", *args))
    assert status == 1 and re.search(why, errors), errors
    assert "Traceback" not in errors


def test_keys_that_are_not_for_the_nodes(start, keys_of):  # wire 17.9
    """The keys of a node must grant its name, or all hosts. The user sees the agent's error."""
    assert Node("me@gpu1.lab", None).name == "gpu1-lab"
    assert _net_keys.Keys(keys_of("gpu1-lab")).member.may_hold("host=gpu1-lab")
    status, errors = ended(start("--ssh", "gpu2", "--remote-keys", str(keys_of("lab1"))))
    assert status == 1 and "gpu2: the agent ended with status 2" in errors
    assert "may not offer 'host=gpu2': the certificate of 'lab1' is for lab1/*" in errors


def test_a_name_that_is_taken(start, agent):
    agent("node1", "--hosts", "1", "--allow", "far_parts:squares")
    status, errors = ended(start("--ssh", "node1"))
    assert status == 1 and "node1: the agent ended with status 2" in errors and "taken" in errors


def test_a_node_that_does_not_join(start):
    status, errors = ended(start("--ssh", "silent", "--patience", "0.5"))
    assert status == 1
    assert "not joined within 0.5 s: silent (silent); can it reach the server?" in errors


def test_a_node_that_does_not_answer(start, where, monkeypatch):
    """The node's `ssh` notices neither the end of its input nor SIGTERM: `ssh` is killed, and the
    user is notified.
    """
    monkeypatch.setattr(_net_up, "GRACE", 0.1)
    monkeypatch.setenv("PATH", where["PATH"])
    log: list[str] = []
    command = [*_net_up.SSH, "deaf", "--", "true"]
    with _net_up.Agents([Node("deaf", None)], lambda _: command, log.append) as agents:
        agents.start()
        with pytest.raises(BadUse, match="not joined within 1 s"):
            agents.wait(1.0)
        while not ignores(agents.all[0].process.pid, signal.SIGTERM):  # until it ignores SIGTERM
            os.sched_yield()
    assert agents.all[0].over == -signal.SIGKILL
    assert log == ["deaf does not answer: its agent ends by itself within 30 s"]


def test_what_a_shell_says_first(start):
    """The greeting of a shell is not mistaken for an agent's output, and does no harm."""
    process = start("--ssh", "chatty")
    assert [h["host"] for h in joined(process)] == ["chatty"]


# --- an agent that is left behind -----------------------------------------------------------------

LEFT = """
import sys, threading
from weft._net import ssh_agents as _net_up
_net_up.stop_when_left(lease=float(sys.argv[1]))
threading.Event().wait()
"""


def left(lease: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", LEFT, str(lease)], stdin=subprocess.PIPE)


def test_an_agent_whose_input_ends():
    process = left(300)
    process.stdin.close()
    assert process.wait() == -signal.SIGTERM


def test_an_agent_whose_input_is_silent():
    process = left(0.2)
    assert process.wait() == -signal.SIGTERM
    process.stdin.close()


def test_an_agent_that_cannot_end():
    """SIGTERM is not enough if the peer that the agent waits for does not answer."""
    text = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)" + LEFT
    process = subprocess.Popen([sys.executable, "-c", text, "0.2"], stdin=subprocess.PIPE)
    assert process.wait() == 143
    process.stdin.close()


# --- lists of nodes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("node1\nnode2\n", [("node1", 1), ("node2", 1)]),
        ("node1\nnode2\nnode1\nnode1\n", [("node1", 3), ("node2", 1)]),  # PBS
        ("node1:2\nnode2 slots=4 # fast\n\n# all\n", [("node1", 2), ("node2", 4)]),
        ("node1:2\r\n  node1\n", [("node1", 3)]),
        ("me@10.77.0.1:2", [("me@10.77.0.1", 2)]),
    ],
)
def test_a_node_file(tmp_path, text, nodes):
    (tmp_path / "nodes").write_text(text)
    assert [(n.target, n.slots) for n in _net_nodes.of_file(str(tmp_path / "nodes"))] == nodes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no node: put one on each line"),
        ("# nobody\n\n", "names no node"),
        ("node1\n-oProxyCommand=x\n", r"line 2: '-oProxyCommand=x' is not a node"),
        ("node1\nnode 2\n", r"line 2: 'node 2' is not a node"),
        ("node1:0\n", r"line 1: a node must have 1 to 10000 slots, not 0"),
        ("node1:" + "9" * 5000, r"line 1: a node must have 1 to 10000 slots"),
        ("node1:two\n", r"line 1: 'node1:two' is not a node"),
        ("n" * 51, r"is not a node"),
        ("me@node1\nyou@node1\n", r"me@node1 and you@node1 would both be host node1"),
        ("a.b\na-b\n", r"a.b and a-b would both be host a-b"),
        ("node1; rm -rf x\n", r"is not a node"),
    ],
)
def test_a_wrong_node_file(tmp_path, text, why):
    (tmp_path / "nodes").write_text(text)
    with pytest.raises(BadUse, match=why) as raised:
        _net_nodes.of_file(str(tmp_path / "nodes"))
    assert str(tmp_path / "nodes") in str(raised.value)


def test_a_node_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadUse, match="No such file or directory; give a file with a node"):
        _net_nodes.of_file(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadUse, match="it is not a text"):
        _net_nodes.of_file(str(tmp_path / "binary"))


SCONTROL = """#!/bin/sh
[ "$1 $2" = "show hostnames" ] || exit 3
[ "$3" = "gpu[1-3],fat" ] || { echo "Invalid hostlist: $3" >&2; exit 1; }
printf 'gpu1\\ngpu2\\ngpu3\\nfat\\n'
"""


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    folder = tmp_path / "slurm"
    folder.mkdir()
    (folder / "scontrol").write_text(SCONTROL)
    (folder / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def slurm(nodes: str, cpus: str = "") -> list[tuple[str, int | None]]:
    found = _net_nodes.of_slurm({"SLURM_JOB_NODELIST": nodes, "SLURM_JOB_CPUS_PER_NODE": cpus})
    return [(n.target, n.slots) for n in found]


def test_the_nodes_of_a_job_of_slurm(scontrol):
    assert slurm("gpu[1-3],fat", "8(x3),72") == [("gpu1", 8), ("gpu2", 8), ("gpu3", 8), ("fat", 72)]
    for unclear in ("", "8(x2)", "8(x99999999999),72", "some"):
        assert {n for _, n in slurm("gpu[1-3],fat", unclear)} == {None}
    with pytest.raises(BadUse, match=r"status 1: Invalid hostlist: gpu\[1-"):
        slurm("gpu[1-")


def test_a_job_of_slurm_without_scontrol(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert slurm("gpu1,gpu2", "4(x2)") == [("gpu1", 4), ("gpu2", 4)]
    with pytest.raises(
        BadUse, match="only `scontrol` can expand, and `scontrol` is not on the PATH"
    ):
        slurm("gpu[1-3]")


# --- the command line -----------------------------------------------------------------------------


def weft_up(where: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    command = [*WEFT.split(), "up", *args]
    return subprocess.run(command, capture_output=True, text=True, env=where, check=False)


def test_a_dry_run(where, tmp_path):
    (tmp_path / "nodes").write_text("node1\nnode1\nnode2\n")
    where["PBS_NODEFILE"] = str(tmp_path / "nodes")
    more = ("--allow", "a:b", "--join", "nats://lab1:4222", "--directory", "/my code", "--dry-run")
    output = weft_up(where, *more, "--trust", "--nice", "5", "--json")
    first, second = json.loads(output.stdout)["hosts"]
    assert (first["host"], first["node"], first["slots"], second["slots"]) == (
        "node1",
        "node1",
        2,
        1,
    )
    *_, target, dashes, line = first["command"]
    assert (target, dashes) == ("node1", "--") and first["command"][0] == "ssh"
    assert line == (
        "cd '/my code' && weft host --join nats://lab1:4222 --name node1 --json --attached "
        "--address node1:0 --allow a:b --hosts 2 --nice 5 --trust"
    )
    lines = weft_up(where, *more).stdout.splitlines()
    assert len(lines) == 2 and lines[0].startswith("ssh -o BatchMode=yes ")


def test_a_server_for_other_machines(where, keys, tmp_path):
    """The server is the one in the note of `weft net up`, if nodes can reach that server."""
    dry = ("--allow", "a:b", "--dry-run", "--keys", str(tmp_path), "--ssh")
    (tmp_path / "server").write_text("tls://0.0.0.0:4222")
    assert f"--join nats://{os.uname().nodename}:4222 " in weft_up(where, *dry, "gpu1").stdout
    (tmp_path / "server").write_text("tls://127.0.0.1:4222")
    assert "--join tls://127.0.0.1:4222 " in weft_up(where, *dry, "localhost").stdout
    output = weft_up(where, *dry, "gpu1")
    assert output.returncode == 2 and "can be reached from this machine only" in output.stderr


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--allow", "a:b"), "which nodes? give --nodefile FILE or --ssh NODE"),
        (("--ssh", "gpu1"), "give it at least once"),
        (("--allow", "a", "--ssh", "gpu1"), "what a host runs must be MODULE:FUNCTION"),
        (("--allow", "a:b", "--ssh", "gpu1", "--ssh", "gpu1"), "would both be host gpu1"),
        (("--allow", "a:b", "--ssh", "-x"), "'-x' is not a node"),
        (("--allow", "a:b", "--ssh", "gpu1:"), "'gpu1:' is not a node"),
        (("--allow", "a:b", "--nodefile", "/no/such"), "cannot read '/no/such'"),
        (("--allow", "a:b", "--nodefile", "x", "--ssh", "y"), "give one of the two"),
        (("--allow", "a:b", "--ssh", "gpu1"), "no server is noted"),
        (
            ("--allow", "a:b", "--ssh", "gpu1", "--join", "lab1"),
            "a server must be nats://HOST:PORT",
        ),
        (
            ("--allow", "a:b", "--ssh", "gpu1", "--address", "here"),
            "an address must be 'HOST:PORT'",
        ),
        (("--nodfile", "x"), "No such option"),
    ],
)
def test_bad_use(where, tmp_path, args, why):
    output = weft_up({**where, "WEFT_NET": str(tmp_path)}, *args)
    assert output.returncode == 2 and output.stdout == "", output
    assert why in output.stderr and len(output.stderr.splitlines()) == 1, output.stderr


def test_no_ssh(where, keys, tmp_path):
    where["PATH"] = str(tmp_path)
    output = weft_up(where, "--allow", "a:b", "--ssh", "gpu1", "--join", "nats://127.0.0.1:1")
    assert output.returncode == 2 and "cannot run ssh" in output.stderr


def test_help(where):
    output = weft_up(where, "--help")
    assert (
        output.returncode == 0 and "Exit status:" in output.stdout and "--nodefile" in output.stdout
    )
