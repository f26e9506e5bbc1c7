"""weft.compat.pycsp: processes and channels on other machines, by `ssh`. In these tests `ssh` is a
stand-in that runs the command on this machine; each node has its name in $NODE."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ssh_there as there
from networks import free_port

from weft.compat.pycsp import _ssh, _ssh_host
from weft.compat.pycsp import parallel as p
from weft.errors import ProcessDied

pytest.importorskip("msgspec", reason="of weft-csp[net]; it has no wheel for some Pythons")

SSH = r"""#!/bin/sh
words=
while [ "$1" != -- ]; do words="$words$1
"; node=$1; shift; done; shift
printf %s "$words" >>"$SSH_LOG"  # at once: two of these may write
case $node in refused) echo "ssh: connect to host refused port 22: Connection refused" >&2; exit 255;; esac
export NODE=$node
[ -z "$LATE" ] && exec sh -c "$*"
# what it prints comes when it has ended
{ sh -c "$*" 2>&1 1>&3 3>&- | { said=$(cat); printf '%s\n' "$said" >&2; }; } 3>&1
"""


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Puts a stand-in for `ssh` on the PATH. Returns the file with the arguments of the stand-in,
    one word on each line.
    """
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_LOG", str(tmp_path / "log"))
    _ssh._groups.clear()
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 280)  # an interpreter may start late
    monkeypatch.setattr(_ssh_host, "PATIENCE", 280.0)  # and a host may end late
    monkeypatch.setattr(_ssh_host, "GRACE", 280.0)
    yield tmp_path / "log"
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 2)
    p.shutdown()


def test_what_it_prints_is_here_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """The output arrives however late it comes. In an earlier version, a program that ended
    immediately lost its output.
    """
    monkeypatch.setenv("LATE", "yes")
    p.Parallel(there.where())
    assert capfd.readouterr().err == "this is printed\n"


def test_ends_go_along() -> None:
    jobs, results = p.Channel("jobs"), p.Channel("results", buffer=3)
    assert p.Parallel(
        there.gives(-jobs, 20),
        there.doubles(+jobs, -results),
        there.takes(+results),
    ) == [None, None, [2 * i for i in range(20)]]


def test_where_it_runs(ssh: Path, capfd: Any) -> None:
    """Values are sent and received by pickle; text that the process prints is printed on the
    standard error of this program."""
    first, second = p.Parallel(there.where({1, 2}) * 2)
    assert (first[0], first[2]) == ("me@node1", {1, 2})
    assert len({os.getpid(), first[1], second[1]}) == 3
    assert ssh.read_text().splitlines()[-3:] == ["-p", "2200", "me@node1"]
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err.count("this is printed\n") == 2


def test_what_it_raises() -> None:
    with pytest.raises(ValueError, match="over there"):
        p.Parallel(there.fails())


def test_it_dies() -> None:
    with pytest.raises(ProcessDied, match="node1") as raised:
        p.Parallel(there.dies())
    assert raised.value.host == "node1" and "last words" in raised.value.stderr


def test_a_machine_that_refuses() -> None:
    with pytest.raises(ProcessDied, match="Connection refused") as raised:
        p.Parallel(there.where(), ssh_host="refused", ssh_user=None)
    assert raised.value.status == 255


@pytest.mark.parametrize(
    ("hint", "nodes"),
    [("blocked", ["a", "a", "b", "a"]), ("strided", ["a", "b", "a", "b"])],
)
def test_nodes_by_hint(tmp_path: Path, monkeypatch: Any, hint: str, nodes: list[str]) -> None:
    (tmp_path / "nodes").write_text("a:2\nb\n")
    monkeypatch.setenv("NODES", str(tmp_path / "nodes"))
    assert p.Sequence(there.node() * 4, cluster_hint=hint) == nodes


def test_a_node_by_number(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "nodes").write_text("a\nb\n")
    monkeypatch.setenv("NODES", str(tmp_path / "nodes"))
    assert p.Parallel(there.node().update(cluster_pin=3), there.node()) == ["b", "a"]
    assert p.Parallel(there.node(), cluster_hint="local") == ["localhost"]


def test_wrong_nodes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("NODES", raising=False)
    with pytest.raises(p.InfoException, match=r"\$NODES is not set"):
        p.Parallel(there.node())
    (tmp_path / "nodes").write_text("-oProxyCommand=x\n")
    for nodefile, why in (
        (tmp_path / "none", "No such file"),
        (tmp_path / "nodes", "is not a node"),
    ):
        with pytest.raises(p.InfoException, match=why):
            p.Parallel(there.node(), cluster_nodefile=str(nodefile))
    (tmp_path / "nodes").write_text("a\n")
    with pytest.raises(p.InfoException, match="'blocked', 'strided' or 'local'"):
        p.Parallel(there.node(), cluster_nodefile=str(tmp_path / "nodes"), cluster_hint="far")


def test_wrong_settings() -> None:
    with pytest.raises(p.InfoException, match="has no setting cluster_pin: it has pycsp_host"):
        p.Parallel(there.where(), cluster_pin=1)
    with pytest.raises(p.InfoException, match="asks for no password"):
        p.sshprocess(ssh_password="42")
    with pytest.raises(p.InfoException, match="'-x' is not the name of a machine"):
        p.Parallel(there.where(), ssh_host="-x", ssh_user=None)
    with pytest.raises(p.InfoException, match="has no setting host"):
        p.clusterprocess(host="a")


def test_its_channels_are_found() -> None:
    """A process on another machine has its own address; in this test both names lead to this
    machine."""
    port, done = free_port(), p.Channel("done")

    @p.process
    def reads(read: Any) -> list[int]:
        got: list[int] = there.takes.__wrapped__(+p.Channel("A", connect=("node1", port)))
        read(True)  # the read returns once the other program runs
        return got

    serves = there.serves("A", 5, +done).update(pycsp_port=port)
    assert p.Parallel(serves, reads(-done)) == [None, list(range(5))]


@pytest.mark.parametrize("buffer", [0, 3])
def test_a_program_that_ends_right_after_it_has_retired(buffer: int) -> None:
    """The values in the program's channel are read, and a reader that goes on learns how the
    channel had ended.
    """
    port = free_port()

    @p.process
    def reads() -> list[int]:
        end = +p.Channel("A", connect=("node1", port))
        got = there.takes.__wrapped__(end)
        with pytest.raises(p.ChannelRetireException):
            end()  # the host's program has ended, or is about to
        p.retire(end)
        return got

    serves = there.serves_and_ends("A", 5, buffer).update(pycsp_port=port)
    assert p.Parallel(serves, reads()) == [None, list(range(5))]


def test_a_channel_of_a_program_on_another_machine() -> None:
    with subprocess.Popen(
        [sys.executable, there.__file__, "node2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        jobs = p.Channel("jobs", connect=("node2", port))
        assert (jobs.address, jobs.buffer) == (("node2", port), 2)

        @p.process
        def writes(out: Any) -> None:
            # The value is so large that hosts on one machine would share its memory; here the
            # socket carries it.
            out("x" * 3_000_000)
            out(100_000)
            p.retire(out)

        p.Parallel(writes(-jobs))
        assert other.stdout.readline() == f"[['{'x' * 3_000_000}', 100000]]\n"
        other.kill()
        with pytest.raises(p.ChannelLostException):
            p.Parallel(there.gives(-jobs, 1))


def test_nobody_is_there() -> None:
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
    for host in ("refused", "node1", "-x"):
        with pytest.raises(p.ChannelConnectException, match="no channel 'A' is found"):
            p.Channel("A", connect=(host, free_port()))
