"""Keys, a server, and programs of their own for the tests of weft.net. A session joins two
programs, so one of the two is always a child.

p = program("writes", door.address, keys)      runs that function of programs.py in an interpreter
p.next_report()                                      the next line of JSON that it prints
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest
from cryptography import x509

from weft import net
from weft._net import certificates as _net_certificates
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import names as _net_names
from weft._net import relay as _net_relay
from weft._net import server as _net_server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT))  # makes the package conformance importable
SERVER = ROOT / ".build/net/bin/nats-server"
os.environ["WEFT_NATS_SERVER"] = str(SERVER)
# Without aiohttp, programs start in half the time, as for users who have installed only
# weft-csp[net].
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE / "without"), os.environ.get("PYTHONPATH")])
)


# The builds of the C++ programs that WEFT_NET_CPP names: those of users, and those with sanitizers.
BUILDS = os.environ.get("WEFT_NET_CPP", "asan").split()
FOUND = 99  # the status of a program in which a sanitizer has found something
SANITIZED = {
    **os.environ,
    "ASAN_OPTIONS": f"exitcode={FOUND}:handle_sigill=1",  # UBSan ends a program by a trap
    "LSAN_OPTIONS": f"exitcode={FOUND}",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:exitcode={FOUND}:suppressions={HERE / 'tsan.txt'}",
}


def built(build: str, name: str) -> Path:
    place = "cpp/asan-clang" if build == "asan" else f"net/{build}"
    return ROOT / ".build" / place / name


class Program:
    """A running program of programs.py, or of a build of programs.cpp."""

    def __init__(
        self, name: str, *args: object, before: Sequence[str] = (), cpp: str | None = None
    ) -> None:
        program = (
            [sys.executable, str(HERE / "programs.py")]
            if cpp is None
            else [str(built(cpp, "net_programs"))]
        )
        command = [*before, *program, name, *map(str, args)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=SANITIZED
        )

    def next_report(self) -> Any:
        """Waits for the next report of the program, and returns the report."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it has ended, with {self.process.wait()}"
        return json.loads(line)

    def go(self) -> None:
        """Permits the program to continue, if it waits for permission."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)

    def ended(self) -> int:
        return self.process.wait()

    def clear(self) -> None:
        self.process.kill()
        assert self.process.wait() != FOUND, "a sanitizer has found something: see stderr"
        for pipe in (self.process.stdout, self.process.stdin):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def program() -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def start(
        name: str, *args: object, before: Sequence[str] = (), cpp: str | None = None
    ) -> Program:
        started.append(Program(name, *args, before=before, cpp=cpp))
        return started[-1]

    yield start
    for one in started:
        one.clear()


class _NoPrograms(set[Any]):
    def __contains__(self, _: object) -> bool:
        return False


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this program open sessions with itself, which a home refuses."""
    monkeypatch.setattr(_net_names, "_own_homes", _NoPrograms())
    monkeypatch.setattr(_net_link, "_asking", _NoPrograms())


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cpp(program: Callable[..., Program], build: str) -> Callable[..., Program]:
    """Starts a C++ program, of each build. `relay` is how the program joins."""

    def start(name: str, *args: object, relay: str = "automatic") -> Program:
        return program(f"{name}@{relay}", *args, cpp=build)

    return start


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return net.make_keys(tmp_path_factory.mktemp("net") / "keys")


@pytest.fixture(scope="session")
def other_keys(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Makes the keys of another member, which may hold all names too."""
    folder = tmp_path_factory.mktemp("net") / "other"
    return net.make_keys(folder, by=keys, name="other", offers=["*"])


@pytest.fixture(scope="session")
def keys_of(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Callable[..., Path]:
    """Makes the keys of a member with this name, by the authority of `keys`. `offers` are the names
    that the member may offer.
    """
    folder = tmp_path_factory.mktemp("members")
    made: dict[Any, Path] = {}

    def make(name: str, *offers: str) -> Path:
        if (name, offers) not in made:
            made[name, offers] = net.make_keys(
                folder / str(len(made)), by=keys, name=name, offers=offers or None
            )
        return made[name, offers]

    return make


@pytest.fixture(scope="session")
def strange_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes keys of an authority other than that of `keys`."""
    return net.make_keys(tmp_path_factory.mktemp("net") / "strange")


@pytest.fixture
def keys_for_a_day(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], Path]:
    """Makes keys of the authority of `keys` that are valid for one day, `days` from now."""

    def make(days: int) -> Path:
        begins = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)

        def dated(builder: Any) -> Any:
            numbered = builder.serial_number(x509.random_serial_number())
            ends = begins + datetime.timedelta(days=1)
            return numbered.not_valid_before(begins).not_valid_after(ends)

        monkeypatch.setattr(_net_certificates, "_dated", dated)
        return net.make_keys(tmp_path / f"in {days} days", by=keys)

    return make


@pytest.fixture
def expired_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes programs skip the check of their own certificate, as if the certificate had expired
    after they began.
    """

    def shown(folder: Path, *_: Any) -> tuple[bytes, dict[str, Any]]:
        pem = (folder / "certificate.pem").read_text()
        return ssl.PEM_cert_to_DER_cert(pem), {"subjectAltName": (("URI", "weft:*"),)}

    monkeypatch.setattr(_net_keys, "_shown", shown)


# The first port that of_its_own() may take, and how many ports it may take.
LEAST, SOME = 10_000, 20_000
_tried = os.getpid() * 331 % SOME


@contextlib.contextmanager
def of_its_own() -> Iterator[str]:
    """Yields an address at which a server can be started again, after it was killed.

    During that time no other lane uses the port (each port that is in use has a file), nor does the
    system use it for an outgoing connection: the port is below those that the system assigns, if
    there are lower ones.
    """
    global _tried
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(SOME):
        _tried = (_tried + 1) % SOME
        port = LEAST + _tried
        if LEAST < given <= port:
            continue
        with socket.socket(socket.AF_UNIX) as kept:
            try:
                kept.bind(f"\0weft-net-tests-{port}")
                with socket.socket() as free:
                    free.bind(("127.0.0.1", port))
            except OSError:
                continue
            yield f"127.0.0.1:{port}"
            return
    raise OSError("no port is free")


@pytest.fixture
def own_address() -> Iterator[str]:
    with of_its_own() as address:
        yield address


@pytest.fixture
def server(keys: Path, tmp_path: Path, own_address: str) -> Iterator[_net_server.Server]:
    """Starts a server for a single test."""
    folder = tmp_path / "server"
    net.make_keys(folder, by=keys, offers=["*"])
    with _net_server.Server(folder, own_address) as started:
        yield started


@pytest.fixture
def network(server: Any, keys: Path) -> Iterator[net.Network]:
    with net.join(server.url, keys=keys, name="caller") as joined:
        yield joined


@pytest.fixture
def refusing() -> Iterator[str]:
    """Yields an address where no program listens, or can listen."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def never_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes programs believe that the server was never away, so that they do not wait for missing
    programs.
    """
    monkeypatch.setattr(_net_relay, "BACK", 0.0)


ALLOWED = [
    name
    for name in vars(parts)
    if getattr(getattr(parts, name), "__module__", "") == "far_parts" and name != "not_allowed"
]


class Agent:
    """A running `weft host`."""

    def __init__(
        self,
        url: str,
        keys: Path,
        name: str,
        *more: str,
        folder: Path = HERE,
        before: Sequence[str] = (),
    ) -> None:
        self.url = url
        command = [*before, sys.executable, "-m", "weft.cli", "host", "--join", url]
        command += ["--keys", str(keys), "--name", name, "--json", *more]
        if not any(word.startswith("--allow") for word in more):
            command += [word for each in ALLOWED for word in ("--allow", f"far_parts:{each}")]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        self.refused = "" if line else self.process.stderr.read()
        self._report: dict[str, Any] | None = json.loads(line) if line else None

    @property
    def report(self) -> dict[str, Any]:
        """The agent's first report."""
        assert self._report is not None, f"it has not begun: {self.refused}"
        return self._report

    def kill(self) -> None:
        self.process.kill()

    def ended(self) -> tuple[int, str]:
        _, errors = self.process.communicate()
        return self.process.returncode, errors


@pytest.fixture
def agent(server: Any, keys: Path) -> Iterator[Callable[..., Agent]]:
    started: list[Agent] = []

    def start(name: str = "gpu1", *more: str, **where: Any) -> Agent:
        started.append(Agent(server.url, keys, name, *more, **where))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.terminate()
        one.process.communicate()


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="session")
def gpu1(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """The host gpu1, with two OS processes, for all tests that leave it unchanged: starting a host
    takes longer than most tests.
    """
    folder = tmp_path_factory.mktemp("gpu1") / "server"
    net.make_keys(folder, by=keys)
    with _net_server.Server(folder, "127.0.0.1:0") as started:
        agent = Agent(started.url, keys, "gpu1", "--hosts", "2")
        pids = agent.report["pids"]
        try:
            yield agent
        finally:
            # Whatever the tests have requested, the agent's OS processes still run, and the agent
            # has reported no exception.
            died = [pid for pid in pids if gone(pid)]
            agent.process.terminate()
            _, errors = agent.process.communicate()
            assert "Traceback" not in errors and not died, (died, errors)


@pytest.fixture
def caller(gpu1: Agent, keys: Path) -> Iterator[net.Network]:
    """Joins the network of gpu1 as a member."""
    with net.join(gpu1.url, keys=keys, name="caller") as joined:
        yield joined


# --- tests that are the same for programs in Python and in C++


def several_come(network: Any, name: str) -> None:
    """Eight clients request a writer at the same time, and each receives a writer of its own."""
    ends: list[Any] = []
    threads = [
        threading.Thread(target=lambda: ends.append(network.writer(name, patience=60)))
        for _ in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(ends) == 8


def stand_in(impostor: Any, name: str, network: Any) -> None:
    """Makes the impostor, which has offered the name, listen on the relay where `network` should:
    the entry contains the fingerprint of `network`.
    """

    async def put_another_fingerprint() -> None:
        names, fingerprint = await impostor._meeting._names(), network._meeting._fingerprint
        entry = json.loads((await names.get(name)).value)
        entry["fingerprint"] = fingerprint
        await names.put(name, json.dumps(entry).encode())
        place = f"{fingerprint}.{impostor._meeting.home}"
        relay = impostor._meeting._relay
        await relay._client.subscribe(f"{_net_relay.RELAY}.{place}.*", cb=relay._on_message)

    impostor._call(put_another_fingerprint())


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collects the transports of the sessions that are opened."""
    found: list[Any] = []
    carry = _net_link.carry

    async def noted(feed: Any, there: Any) -> None:
        found.append(there[1].transport)
        await carry(feed, there)

    monkeypatch.setattr(_net_link, "carry", noted)
    return found
