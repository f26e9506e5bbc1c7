"""`weft up` over the real `ssh`, with an sshd on loopback and keys made for the test. Without an
sshd the tests are skipped, with the reason (`./run setup net` fetches an sshd for Debian).
"""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import of_its_own
from test_up import ended, gone, joined, pids, start, where

__all__ = ["start", "where"]  # fixtures

UNPACKED = Path(__file__).resolve().parents[2] / ".build/net/sshd"
CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PidFile none
"""
CLIENT = """\
Host *
  Port {port}
  IdentityFile {folder}/{identity}
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  HostKeyAlias node
"""
# An sshd that runs as root needs a user of its own, and /run/sshd: a namespace of mounts provides
# both.
AS_ROOT = """\
grep -q ^sshd: /etc/passwd ||
  { cat /etc/passwd; echo sshd:x:33333:65534::/run/sshd:/bin/false; } >"$0/passwd" &&
{ [ ! -s "$0/passwd" ] || mount --bind "$0/passwd" /etc/passwd; } &&
mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"
"""


def server_program() -> list[str]:
    for program in ("/usr/sbin/sshd", str(UNPACKED / "usr/sbin/sshd")):
        if Path(program).exists():
            return [program]
    pytest.skip("there is no sshd")


class Sshd:
    """A running sshd for this user."""

    def __init__(self, folder: Path, address: str) -> None:
        program = server_program()
        if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
            pytest.skip("there is no ssh")
        self.folder, self.port = folder, int(address.rpartition(":")[2])
        for name in ("host", "user", "unknown"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)],
                check=True,
            )
        (folder / "config").write_text(CONFIG.format(port=self.port, folder=folder))
        host = (folder / "host.pub").read_text()
        (folder / "known_hosts").write_text(f"node {host}")
        libraries = ":".join(map(str, UNPACKED.glob("usr/lib/*-linux-*")))
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        tried = subprocess.run([*program, "-V"], capture_output=True, text=True, env=environment)
        if "OpenSSH" not in tried.stderr:
            pytest.skip(f"sshd does not run here: {tried.stderr}")
        command = [*program, "-D", "-e", "-f", str(folder / "config")]
        if os.geteuid() == 0:
            command = ["unshare", "-m", "sh", "-c", AS_ROOT, str(folder), *command]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        assert self.process.stderr is not None
        log = []
        for line in self.process.stderr:
            log.append(line)
            if "Server listening" in line:
                return
        self.stop()
        pytest.skip(f"sshd does not start here: {log}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def client(self, path: Path, identity: str) -> None:
        """Makes an `ssh` at that path: the real `ssh`, with this server's port and a key."""
        config = path.with_suffix(".config")
        config.write_text(CLIENT.format(port=self.port, folder=self.folder, identity=identity))
        real = shutil.which("ssh")
        path.write_text(f'#!/bin/sh\nexec {real} -F {shlex.quote(str(config))} "$@"\n')


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    folder = tmp_path / "sshd"
    folder.mkdir()
    with of_its_own() as address:
        started = Sshd(folder, address)
        yield started
        started.stop()


NODES = ("--ssh", "localhost", "--ssh", f"{getpass.getuser()}@127.0.0.1")


def test_from_start_to_end(sshd, start, tmp_path):
    sshd.client(tmp_path / "bin/ssh", "user")
    process = start(*NODES)
    hosts = joined(process)
    assert [h["host"] for h in hosts] == ["localhost", "127-0-0-1"]
    process.terminate()
    assert ended(process)[0] == 143
    assert all(gone(pid) for pid in pids(hosts))


def test_it_is_killed(sshd, start, tmp_path):
    """When `ssh` ends, the agent's input ends too, so no agent remains."""
    sshd.client(tmp_path / "bin/ssh", "user")
    process = start(*NODES)
    hosts = joined(process)
    process.kill()
    process.wait()
    assert all(gone(pid) for pid in pids(hosts))


def test_a_key_that_is_not_the_users(sshd, start, tmp_path):
    sshd.client(tmp_path / "bin/ssh", "unknown")
    status, errors = ended(start("--ssh", "localhost"))
    assert status == 1 and "localhost: ssh ended with status 255: " in errors
    assert "Permission denied (publickey)" in errors


def test_a_host_that_is_another(sshd, start, tmp_path):
    """`ssh` would ask whether to continue. Since no user can answer, `ssh` ends."""
    sshd.client(tmp_path / "bin/ssh", "user")
    (sshd.folder / "known_hosts").write_text("")
    status, errors = ended(start("--ssh", "localhost"))
    assert status == 1 and "Host key verification failed" in errors


def test_nobody_listens(sshd, start, tmp_path):
    sshd.client(tmp_path / "bin/ssh", "user")
    sshd.stop()
    status, errors = ended(start("--ssh", "localhost"))
    assert status == 1 and f"port {sshd.port}: Connection refused" in errors
