"""`weft up` in a job of SLURM: Debian's slurmctld and slurmd, two nodes on loopback. The programs
are unpacked, not installed (`./run setup slurm`); a namespace of mounts shows them below /usr.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import of_its_own
from test_up import HERE, WEFT, gone, pids, where

__all__ = ["where"]  # a fixture

pytestmark = pytest.mark.soak
UNPACKED = Path(__file__).resolve().parents[2] / ".build/net/slurm"
CONFIG = """\
ClusterName=weft
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/%n
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/builtin
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
"""
# In the namespace slurmd finds its programs and plugins below /usr, as if they were installed.
BEGIN = """\
mount -t overlay overlay -o lowerdir="$1/usr:/usr" /usr || exit 77
shift
slurmctld -D -i & controller=$!
slurmd -D -N n1 & one=$!
slurmd -D -N n2 & two=$!
trap 'kill $one $two $controller; wait' EXIT
until [ "$(sinfo -h -t idle -o %D)" = 2 ]; do sleep 0.1; done
"$@"
status=$?
exit $status
"""
# The node's part of `ssh`, which starts the command on that node of the job.
SSH = r"""#!/bin/sh
for word; do case $word in --) break;; *) node=$word;; esac; done
while [ "$1" != -- ]; do shift; done; shift
exec srun --quiet --overlap --nodes=1 --ntasks=1 --nodelist="$node" sh -c "$*"
"""


class Slurm:
    """A cluster of two nodes, for one command."""

    def __init__(self, folder: Path, ports: list[str], env: dict[str, str]) -> None:
        if not (UNPACKED / "usr/sbin/slurmctld-wlm").exists():
            pytest.skip("there is no SLURM: ./run setup slurm")
        for program in ("slurmctld", "slurmd", "slurmstepd"):
            link = UNPACKED / "usr/sbin" / program
            if not link.exists():
                link.symlink_to(f"{program}-wlm")
        host, user = os.uname().nodename, "root" if os.geteuid() == 0 else os.environ["USER"]
        config = folder / "slurm.conf"
        config.write_text(CONFIG.format(host=host, user=user, ports=ports, folder=folder))
        for name in ("state", "n1", "n2"):
            (folder / name).mkdir()
        libraries = ":".join(f"/usr/lib/{p.name}/slurm-wlm" for p in UNPACKED.glob("usr/lib/*-*"))
        self.env = {**env, "SLURM_CONF": str(config), "LD_LIBRARY_PATH": libraries}
        self.folder = folder

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Starts the cluster, and runs the command in it."""
        whole = ["unshare", "-m", "sh", "-c", BEGIN, "slurm", str(UNPACKED), *command]
        with (self.folder / "errors").open("w") as errors:
            return subprocess.Popen(
                whole, cwd=HERE, env=self.env, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def errors(self) -> str:
        return (self.folder / "errors").read_text()


@pytest.fixture
def slurm(tmp_path: Path, where: dict[str, str]) -> Iterator[Slurm]:
    (tmp_path / "bin/ssh").write_text(SSH)
    folder = tmp_path / "cluster"
    folder.mkdir()
    with ExitStack() as stack:
        addresses = [stack.enter_context(of_its_own()) for _ in range(3)]
        yield Slurm(folder, [a.rpartition(":")[2] for a in addresses], where)


SQUARES = """
from far_parts import plus
from weft import net
from weft.processes import Executor
with net.join() as network, Executor(on=network.hosts(2)) as pool:
    print(sorted(pool.map(plus, range(20), range(20))))
"""


def ran(slurm: Slurm, url: str, keys: Path, *program: str) -> tuple[str, int, Any]:
    """Runs a job of two nodes that runs `weft up`, which runs the program. Returns what the program
    has printed, the job's status, and the hosts, whose OS processes have ended.
    """
    up = [*WEFT.split(), "up", "--join", url, "--keys", str(keys), "--weft", WEFT, "--json"]
    up += ["--remote-keys", str(keys), "--address", "127.0.0.1:0", "--allow", "far_parts:plus"]
    process = slurm.start("salloc", "--quiet", "--kill-command", "--nodes=2", *up, "--", *program)
    printed, _ = process.communicate()
    if process.returncode == 77:
        pytest.skip(f"a namespace of mounts is not possible here: {slurm.errors()}")
    told = [line for line in slurm.errors().splitlines() if line.startswith('{"hosts"')]
    assert len(told) == 1, slurm.errors()
    hosts = json.loads(told[0])["hosts"]
    assert all(gone(pid) for pid in pids(hosts))
    return printed, process.returncode, hosts


def test_a_job_of_two_nodes(slurm, server, keys):
    """The nodes and their CPUs are those of the job, and a program in the job uses both."""
    printed, status, hosts = ran(slurm, server.url, keys, sys.executable, "-c", SQUARES)
    assert [(h["host"], len(h["pids"])) for h in hosts] == [("n1", 1), ("n2", 2)]
    assert (printed, status) == (f"{[2 * n for n in range(20)]}\n", 0), slurm.errors()


def test_a_job_that_is_cancelled(slurm, server, keys):
    """The agents end with their job, and so does the program."""
    wait = 'scancel "$SLURM_JOB_ID"; sleep 300; echo went on'
    printed, _, hosts = ran(slurm, server.url, keys, "sh", "-c", wait)
    assert (printed, len(hosts)) == ("", 2)
