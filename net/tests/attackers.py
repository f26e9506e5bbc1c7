"""A member of a network that claims names which its certificate does not grant (WIRE-NETWORKS.md
17.3, 17.4). The same attacks are tried on programs in Python and in C++.

    with Thief(url, keys) as thief:
        take, told = TAKES["overwrite"]
        take(thief, "lab/results")            now the entry is the thief's, or has the thief's data
        thief.got                             the first messages that the thief has received

The thief joins like any member, but its own program believes that the thief may hold all names.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography import x509

from weft import net
from weft import threads as th
from weft._commands import main as _commands_main
from weft._net import certificates as _net_certificates
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import name_rules as _net_named
from weft._net import names as _net_names
from weft.errors import BadUse, PeerDied

ALL = _net_named.Member("thief", ("*",))


class FalseAgent:
    """An agent with the fields of a host's entry. No client may reach its welcome()."""

    def __init__(self, allow: list[str], hosts: int, trust: bool) -> None:
        self.fields = {"allow": allow, "hosts": hosts, "trust": trust}

    def entry(self) -> dict[str, Any]:
        return self.fields

    def knows(self, _: Any) -> bool:
        return True

    async def welcome(self, _: Any) -> Any:
        raise _net_link.Refused("the thief has what he wanted")


class Thief:
    def __init__(self, url: str, keys: Path, **how: Any) -> None:
        self.got: list[Any] = []
        self._written: set[str] = set()
        answer = _net_names.Meeting._answer

        async def noted(meeting: Any, request: Any) -> Any:
            self.got.append(request)
            return await answer(meeting, request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_net_names.Meeting, "_answer", noted)
            self.network = net.join(url, keys=keys, name="thief", **how)
        self.meeting = self.network._meeting
        self.meeting.member = ALL
        self.channel = th.Channel("stolen")
        self.reader = self.channel.reader()

    def offer(self, name: str, agent: FalseAgent | None = None) -> None:
        channel = None if agent else self.channel
        self.network._call(self.meeting.offer(name, channel, not agent, not agent, agent))

    def entry(self, name: str) -> dict[str, Any]:
        async def read() -> Any:
            return json.loads((await (await self.meeting._names()).get(name)).value or b"")

        found: dict[str, Any] = self.network._call(read())
        return found

    def put(self, name: str, entry: dict[str, Any]) -> None:
        self._written.add(name)

        async def write() -> None:
            await (await self.meeting._names()).put(name, json.dumps(entry).encode())

        self.network._call(write())

    def delete(self, name: str) -> None:
        async def away() -> None:
            await (await self.meeting._names()).delete(name)

        self.network._call(away())

    def refused(self, client: Any, name: str, takes: Callable[[Thief, str], None]) -> str:
        """Returns the error that a client receives after the thief has attacked. The attack is
        repeated if the home has rewritten its entry before the client connected.
        """
        while True:
            takes(self, name)
            try:
                client.writer(name).retire()
            except BadUse as error:
                return str(error)
            except PeerDied:  # the client has opened a session with itself: the home has let it in
                assert self.got == []

    def puts(self, entry: dict[str, Any]) -> Callable[[Thief, str], None]:
        return lambda thief, name: thief.put(name, entry)

    def ticket(self, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = self.network._call(self.meeting._ticket_for(name, "writer", 60))
        return entry

    def shows(self, entry: dict[str, Any], name: str) -> Any:
        """Opens a session with the home, with the ticket in an entry, as any member may."""
        request = {"host": "thief", "trust": False, "name": name, "side": "writer"}
        first = {**request, "ticket": entry["ticket"]}
        tls, print_ = self.meeting._client_tls, entry["fingerprint"]
        return self.network._call(_net_link.reach(tls, entry["address"], first, print_))

    @contextlib.contextmanager
    def answers_with(self, folder: Path) -> Iterator[dict[str, Any]]:
        """Makes the thief also answer with the certificate in `folder`. Yields the fields of an
        entry that leads to the thief.
        """

        async def listen() -> asyncio.Server:
            tls = _net_keys.context(folder, server=True)
            answers = _net_link.receiver(self.meeting._answer)
            return await _net_link.serve(tls, "127.0.0.1:0", answers)

        async def close() -> None:
            listens.close()

        listens = self.network._call(listen())
        print_ = _net_keys.fingerprint_of(_net_keys._shown(folder)[0])
        yield {"address": _net_link.joined(listens), "fingerprint": print_}
        self.network._call(close())

    def __enter__(self) -> Thief:
        return self

    def __exit__(self, *_: object) -> None:
        """Removes everything that the thief has stored at the server."""
        for name in self._written:
            self.delete(name)
        self.network.close()


def _delete_and_take(thief: Thief, name: str) -> None:
    """Deletes the entry and writes another entry. Repeats both if the home has written its entry in
    between.
    """
    while True:
        thief.delete(name)
        try:
            return thief.offer(name)
        except BadUse as error:
            if "is taken" not in str(error):
                raise


def _overwrite(thief: Thief, name: str) -> None:
    """Replaces the whole entry by an entry with the thief's own address."""
    thief.offer("own")
    there = thief.entry(name)
    own = thief.entry("own")
    thief.meeting._offers[name] = thief.meeting._offers["own"]
    thief.put(name, {**there, **own})


def _overwrite_the_address(thief: Thief, name: str) -> None:
    """Replaces the address of the entry, which still contains the fingerprint of the home."""
    own = {"address": thief.network.address, "ticket": "0" * 32}
    thief.put(name, {**thief.entry(name), **own})


def _keep_the_home(thief: Thief, name: str) -> None:
    """Replaces the whole entry except the home, so that the home believes that the entry is its
    own.
    """
    print_ = {"fingerprint": thief.meeting._fingerprint, "address": thief.network.address}
    thief.put(name, {**thief.entry(name), **print_, "ticket": "0" * 32})


#: The attacks of the thief, each with a part of the error that a client receives.
TAKES: dict[str, tuple[Callable[[Thief, str], None], str]] = {
    "delete and take": (_delete_and_take, "may not offer"),
    "overwrite": (_overwrite, "may not offer"),
    "overwrite the address": (_overwrite_the_address, "not the program that was announced"),
    "keep the home": (_keep_the_home, "may not offer"),
}


# --- bytes under way ----------------------------------------------------------------------------


def connected(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)))


@contextlib.contextmanager
def overhears(address: str) -> Iterator[tuple[str, bytearray]]:
    """Yields a second address of the program at `address`, and a copy of all bytes that are sent to
    that address.
    """
    kept = bytearray()

    def passes(come: socket.socket, to: socket.socket, keep: bool) -> None:
        with contextlib.suppress(OSError):
            while data := come.recv(1 << 16):
                if keep:
                    kept.extend(data)
                to.sendall(data)
        for end in (come, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def listens() -> None:
        with contextlib.suppress(OSError):  # the server is closed
            while True:
                with server.accept()[0] as here, connected(address) as there:
                    back = threading.Thread(target=passes, args=(there, here, False))
                    back.start()
                    passes(here, there, True)
                    back.join()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=listens)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", kept
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def says_again(address: str, kept: bytearray) -> None:
    """Sends the bytes `kept` again, and waits until the program at the address has closed the
    connection.
    """
    with connected(address) as raw:
        raw.sendall(kept)
        with contextlib.suppress(ConnectionError):
            while raw.recv(4096):
                pass


def until(so: Any, *not_yet: type[BaseException]) -> None:
    while True:
        try:
            if so():
                return
        except not_yet:
            pass
        threading.Event().wait(0.01)


# --- certificates ---------------------------------------------------------------------------------


def weft(*args: object) -> str:
    """Returns the output of `weft net` with these arguments."""
    done = CliRunner().invoke(_commands_main.net_group, [*map(str, args)])
    assert done.exit_code == 0, done.output
    return done.output


def keys_by_the_command(error: str, by: Path, folder: Path) -> Path:
    """Makes keys with the command that the text `error` names."""
    command = shlex.split(error.split("`")[1].replace("FOLDER", str(folder)))
    assert command[:3] == ["weft", "net", "keys"]
    weft(*command[2:], "--by", by)
    return folder


GRANTED = [
    ("lab/results", "lab/results", True),
    ("lab/results", "lab/results/x", False),
    ("lab/results", "lab/result", False),
    ("lab/*", "lab/results", True),
    ("lab/*", "lab/a/b.c", True),
    ("lab/*", "lab", False),
    ("lab/*", "labs/x", False),
    ("lab/*", "Lab/x", False),
    ("lab/*", "lab.x", False),
    ("lab.*", "lab.x", True),
    ("lab/*", "host=lab/x", False),
    ("la*", "lab/x", False),
    ("**", "lab/x", False),
    ("*/x", "lab/x", False),
    ("*", "lab/x", True),
    ("*", "host=gpu1", True),
    ("host=*", "host=gpu1", True),
    ("host=*", "gpu1", False),
    ("host=gpu1", "host=gpu1", True),
    ("host=gpu1", "host=gpu11", False),
    ("host=lab/*", "host=lab/x", True),
    ("lab/..*", "lab/x", False),
    ("", "lab", False),
]


def with_names(keys: Path, folder: Path, names: list[x509.GeneralName], title: str) -> Path:
    """Makes keys of the authority of `keys`, with a certificate that contains only `names`."""
    made = net.make_keys(folder, by=keys, name="odd")
    key = _net_certificates.serialization.load_pem_private_key(
        (made / "key.pem").read_bytes(), None
    )
    signer = _net_certificates.serialization.load_pem_private_key(
        (keys / "authority-key.pem").read_bytes(), None
    )
    issuer = x509.load_pem_x509_certificate((keys / "authority.pem").read_bytes())
    builder = (
        _net_certificates._dated(x509.CertificateBuilder())
        .subject_name(_net_certificates._named(title))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(signer, _net_certificates.hashes.SHA256())
    pem = signed.public_bytes(_net_certificates.serialization.Encoding.PEM)
    (made / "certificate.pem").write_bytes(pem)
    return made


URI = x509.UniformResourceIdentifier
ODD = {
    "nothing": [],
    "another scheme": [URI("https:lab/*"), URI("WEFT:lab/*"), URI("xweft:*"), URI(" weft:*")],
    "another kind": [x509.DNSName("weft:lab/*"), x509.RFC822Name("weft:*"), x509.DNSName("*")],
}


def old_keys_of_the_authority(keys: Path, folder: Path) -> Path:
    """Makes a folder with the authority's own key, and with a certificate that grants nothing."""
    with_names(keys, folder, [], "vm")
    for file in ("authority.pem", "authority-key.pem"):
        (folder / file).write_bytes((keys / file).read_bytes())
    return folder
