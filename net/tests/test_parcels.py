"""Tests source that is sent along with a call: parcels, the shelf of an agent, and calls whose
source the host does not have (WIRE-NETWORKS.md 17.26).
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click.utils
import far_parts as parts
import pytest
from conftest import HERE, Agent
from test_sources import written

from weft import net
from weft import processes as ps
from weft import threads as th
from weft._hosts import sources as _sources
from weft._net import calls as _net_calls
from weft._net import incoming as _net_incoming
from weft._net import parcels as _net_parcels
from weft._net import server as _net_server
from weft._net import shelf as _net_shelf
from weft._net.first_messages import Refused
from weft.errors import BadUse

pytestmark = pytest.mark.usefixtures("never_away")


def parcel_of(folder: Path, module: str = "job") -> _net_parcels.Parcel:
    file = folder / f"{module}.py"
    parcel = _net_parcels.of_modules(module, file, _sources.files(module, file))
    assert parcel is not None
    return parcel


def raw(fields: Any, content: bytes = b"") -> bytes:
    head = json.dumps(fields).encode()
    return struct.pack("<I", len(head)) + head + content


# --- parcels --------------------------------------------------------------------------------------


def test_a_parcel_arrives_as_it_was(tmp_path):  # wire 17.26
    here = written(
        tmp_path / "here", job="import helper, pack.one", helper="x = 1", pack__one="", unused=""
    )
    (here / "pack/__init__.py").write_text("y = 2")
    parcel = parcel_of(here)
    assert set(parcel.files) == {"job.py", "helper.py", "pack/__init__.py", "pack/one.py"}
    there = tmp_path / "there"
    there.mkdir()
    of = _net_parcels.unpacked(_net_parcels.packed(parcel), parcel.digest, there)
    assert (of.root, of.folder) == ("", False)
    for path in parcel.files:
        assert (there / path).read_bytes() == (here / path).read_bytes()
    assert not (there / "unused.py").exists()
    assert _net_parcels.intact(there, of)
    (there / "helper.py").write_text("x = 2")
    assert not _net_parcels.intact(there, of)
    (there / "helper.py").unlink()
    assert not _net_parcels.intact(there, of)


def test_the_digest_covers_names_and_bytes(tmp_path):  # wire 17.26
    """No two of the parcels in this test have the same digest, although some contain the same
    bytes."""
    folders = [
        written(tmp_path / "a", job="import one", one="x = 1"),
        written(tmp_path / "b", job="import one", one="x = 2"),
        written(tmp_path / "c", job="import one"),
        written(tmp_path / "d", job="import one"),
    ]
    (folders[2] / "one").mkdir()
    (folders[2] / "one/__init__.py").write_text("x = 1")
    parcels = [parcel_of(folder) for folder in folders]
    found = {p.digest for p in parcels} | {p._replace(root="one").digest for p in parcels[:1]}
    found |= {p._replace(folder=True).digest for p in parcels[:1]}
    assert len(found) == 6 and all(map(_net_parcels.is_digest, found))


def test_a_file_that_changes_while_it_is_sent(tmp_path):  # wire 17.26
    written(tmp_path, job="import one", one="x = 1")
    parcel = parcel_of(tmp_path)
    (tmp_path / "one.py").write_text("x = 2")
    with pytest.raises(_net_parcels.Changed, match=r"one\.py has changed while it was sent"):
        _net_parcels.packed(parcel)
    (tmp_path / "one.py").unlink()
    with pytest.raises(_net_parcels.Changed, match=r"one\.py has changed"):
        _net_parcels.packed(parcel)


# Each of these parcels is refused, and nothing is written.
NONE = {
    "nothing": b"",
    "half a length": b"\1\0",
    "no JSON": struct.pack("<I", 3) + b"abc",
    "a length that is too large": struct.pack("<I", 1 << 31) + b"[]",
    "a list that is short": raw([]),
    "no list": raw({"root": ""}),
    "no list of files": raw(["", False, 3]),
    "a folder that is a number": raw(["", 1, []]),
    "a root above": raw(["..", False, [["job.py", 0]]]),
    "a root from the top": raw(["/etc", False, [["job.py", 0]]]),
    "above": raw(["", False, [["../job.py", 1]]], b"x"),
    "above, later": raw(["", False, [["a/../../job.py", 1]]], b"x"),
    "from the top": raw(["", False, [["/tmp/job.py", 1]]], b"x"),
    "itself": raw(["", False, [[".", 1]]], b"x"),
    "an empty part": raw(["", False, [["a//job.py", 1]]], b"x"),
    "an empty path": raw(["", False, [["", 1]]], b"x"),
    "a zero byte": raw(["", False, [["job\0.py", 1]]], b"x"),
    "a new line": raw(["", False, [["job\n.py", 1]]], b"x"),
    "a long path": raw(["", False, [["x/" * 600 + "y", 1]]], b"x"),
    "a long name": raw(["", False, [["y" * 300, 1]]], b"x"),
    "a path that is a number": raw(["", False, [[3, 1]]], b"x"),
    "twice": raw(["", False, [["job.py", 0], ["job.py", 0]]]),
    "too few bytes": raw(["", False, [["job.py", 5]]], b"x"),
    "too many bytes": raw(["", False, [["job.py", 1]]], b"xy"),
    "fewer than none": raw(["", False, [["job.py", -1]]], b"x"),
    "true bytes": raw(["", False, [["job.py", True]]], b"x"),
    "another digest": raw(["", False, [["job.py", 1]]], b"x"),
    "many files": raw(["", False, [[str(i), 0] for i in range(10_001)]]),
}


@pytest.mark.parametrize("kind", NONE)
def test_what_is_no_parcel(tmp_path, kind):  # wire 17.26
    folder = tmp_path / "there"
    folder.mkdir()
    with pytest.raises(ValueError):  # each parcel has an error text of its own
        _net_parcels.unpacked(NONE[kind], "0" * 64, folder)
    assert list(tmp_path.rglob("*")) == [folder]


def test_a_file_and_a_folder_of_one_name(tmp_path):  # wire 17.26
    """A parcel with a file and a folder of one name is refused although its digest is correct."""
    data = raw(["", False, [["a", 1], ["a/b", 1]]], b"xy")
    files = {"a": _of(b"x"), "a/b": _of(b"y")}
    digest = _net_parcels.Parcel("", files).digest
    with pytest.raises(OSError, match="a"):
        _net_parcels.unpacked(data, digest, tmp_path)


def _of(data: bytes) -> _sources.Source:
    return _sources.Source(Path(), hashlib.sha256(data).hexdigest())


def test_a_link_that_is_there_is_not_followed(tmp_path):  # wire 17.26
    there, beyond = tmp_path / "there", tmp_path / "beyond"
    there.mkdir()
    (there / "a").symlink_to(beyond)
    digest = _net_parcels.Parcel("", {"a": _of(b"x")}).digest
    with pytest.raises(FileExistsError):
        _net_parcels.unpacked(raw(["", False, [["a", 1]]], b"x"), digest, there)
    assert not beyond.exists()


def test_what_a_folder_has(tmp_path):  # wire 17.26
    top = tmp_path / "top"
    written(top, src__job="import helper", src__helper="", data__x="")
    for name in (".git/config", "src/__pycache__/job.pyc", "env/pyvenv.cfg", "env/lib/x.py"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    (top / "words.txt").write_text("a b")
    (top / ".hidden").write_text("")
    (tmp_path / "beyond.txt").write_text("far")
    (top / "link.txt").symlink_to(tmp_path / "beyond.txt")
    (top / "nowhere").symlink_to(tmp_path / "nothing")
    (top / "up").symlink_to(tmp_path)  # following this link would never end
    os.mkfifo(top / "pipe")
    parcel = _net_parcels.of_folder(top, "job", top / "src/job.py")
    assert parcel.root == "src" and parcel.folder
    modules = {"src/job.py", "src/helper.py", "data/x.py"}
    assert set(parcel.files) == {*modules, "words.txt", "link.txt"}
    first = parcel.digest
    (top / "words.txt").write_text("a c")
    assert _net_parcels.of_folder(str(top), "job", top / "src/job.py").digest != first


def test_folders_that_cannot_go_along(tmp_path, monkeypatch):  # wire 17.26
    top = written(tmp_path / "top", job="", other="", env__x="")
    job = top / "job.py"
    for folder, says in (
        (job, "is not a folder"),
        (3, "must be the path of a folder, not 3"),
        (top / "env", "does not contain module 'job', which is in "),
    ):
        with pytest.raises(BadUse, match=says):
            _net_parcels.of_folder(folder, "job", job)
    (top / "env/pyvenv.cfg").write_text("")
    with pytest.raises(BadUse, match="module 'x' is in a part of the folder that does not go"):
        _net_parcels.of_folder(top, "x", top / "env/x.py")
    (top / "large").write_bytes(bytes(5000))
    with monkeypatch.context() as less:
        less.setattr(_net_parcels, "MAX_BYTES", 4000)
        says = r"is too large.*the largest that was seen is 'large', with 5,000 bytes"
        with pytest.raises(BadUse, match=says):
            _net_parcels.of_folder(top, "job", job)
    (top / "a\udcffb").write_text("")  # a name that is not UTF-8
    with pytest.raises(BadUse, match="cannot go to another machine"):
        _net_parcels.of_folder(top, "job", job)
    monkeypatch.setattr(_net_parcels, "MAX_FILES", 1)
    (top / "a\udcffb").unlink()
    with pytest.raises(BadUse, match="is too large to go along with a call: at most 1 files"):
        _net_parcels.of_folder(top, "job", job)


def test_an_installed_package_does_not_go_along(tmp_path):  # wire 17.26
    folder = tmp_path / "site-packages"
    written(folder, pack__job="")
    file = folder / "pack/job.py"
    covered = _sources.files("pack.job", file)
    assert _net_parcels.of_modules("pack.job", file, covered) is None


def test_modules_that_are_too_large(tmp_path, monkeypatch):  # wire 17.26
    """Such modules need no parcel if the host has them, so only sending them is bad use."""
    written(tmp_path, job="import one", one="x = 1")
    parcel = parcel_of(tmp_path)
    monkeypatch.setattr(_net_parcels, "MAX_BYTES", 8)
    with pytest.raises(BadUse, match="name the function by --allow there"):
        _net_parcels.packed(parcel)


# --- the shelf of an agent ------------------------------------------------------------------------


class _Hosts:
    def __init__(self, *args: Any) -> None:
        self.args, self.closed = args, asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.closed.set)


def pieces(data: bytes) -> bytes:
    most = _net_incoming.LARGEST
    parts = [data[at : at + most] for at in range(0, len(data), most)] + [b""]
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def coming(data: bytes, ends: bool = True) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    if ends:
        reader.feed_eof()
    return reader


def shelf_in(tmp_path: Path) -> _net_shelf.Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir(exist_ok=True)
    return _net_shelf.Shelf(folder, _Hosts)  # type: ignore[arg-type]


def some_parcels(tmp_path: Path, n: int) -> list[_net_parcels.Parcel]:
    return [parcel_of(written(tmp_path / f"p{i}", job=f"x = {i}")) for i in range(n)]


def test_the_shelf_keeps_what_was_used_last(tmp_path):  # wire 17.26
    """A parcel that a call uses stays, however many other parcels arrive."""
    parcels = some_parcels(tmp_path, _net_shelf.KEPT + 2)

    async def body() -> None:
        shelf = shelf_in(tmp_path)
        received = []
        used = None
        for i, parcel in enumerate(parcels):
            data = pieces(_net_parcels.packed(parcel))
            received.append(await shelf.receive(parcel.digest, coming(data)))
            if i == 0:
                used = received[0].used()
                used.__enter__()
            if i == _net_shelf.KEPT - 1:
                assert await shelf.find(parcels[1].digest) is received[1]
        there = [await shelf.find(parcel.digest) is not None for parcel in parcels]
        kept = [True, True, False, False, True, True]
        assert there == kept and len(shelf.hosts) == _net_shelf.KEPT
        for one, is_kept in zip(received, kept, strict=True):
            if not is_kept:
                await one.hosts.closed.wait()  # type: ignore[attr-defined]
        assert used is not None
        used.__exit__(None, None, None)
        args = received[0].hosts.args  # type: ignore[attr-defined]
        assert args == (_net_parcels.enter, (str(received[0].folder), "", False, str(Path.cwd())))

    asyncio.run(body())


def test_two_callers_bring_one_parcel(tmp_path):  # wire 17.26
    (parcel,) = some_parcels(tmp_path, 1)
    data = pieces(_net_parcels.packed(parcel))

    async def body() -> None:
        shelf = shelf_in(tmp_path)
        slow = coming(b"", ends=False)
        first = asyncio.ensure_future(shelf.receive(parcel.digest, slow))
        await asyncio.sleep(0)
        waits = asyncio.ensure_future(shelf.find(parcel.digest))
        await asyncio.sleep(0)
        assert not waits.done()
        second = await shelf.receive(parcel.digest, coming(data))
        slow.feed_data(data)
        assert await first is second and await waits is second
        assert len(list((tmp_path / "shelf").iterdir())) == 1 == len(shelf.hosts)

    asyncio.run(body())


def test_a_caller_that_brings_no_parcel(tmp_path, monkeypatch):  # wire 17.26
    """The agent requests the parcel from the next caller, which does not wait."""
    (parcel,) = some_parcels(tmp_path, 1)
    data = _net_parcels.packed(parcel)
    monkeypatch.setattr(_net_parcels, "most_packed", lambda: 1000)
    monkeypatch.setattr(_net_shelf, "EACH", 0.01)

    async def body() -> None:
        shelf = shelf_in(tmp_path)
        wrong: list[tuple[type[BaseException], bytes, bool]] = [
            (EOFError, b"", True),
            (EOFError, pieces(data)[:-2], True),
            (asyncio.TimeoutError, pieces(data)[:-2], False),
            (Refused, pieces(data[:-1] + b"?"), True),
            (Refused, pieces(data + bytes(2000)), True),
            (Refused, struct.pack("<I", 1 << 30), True),
        ]
        for kind, sent, ends in wrong:
            with pytest.raises(kind):
                await shelf.receive(parcel.digest, coming(sent, ends))
            assert await shelf.find(parcel.digest) is None
        assert not shelf.hosts and not list((tmp_path / "shelf").iterdir())
        assert (await shelf.receive(parcel.digest, coming(pieces(data)))).of.root == ""

    asyncio.run(body())


# --- calls whose source goes along ----------------------------------------------------------------


@pytest.fixture(scope="module")
def taker(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Starts an agent that takes source, in a folder with old modules of the same names. Yields the
    server's URL, and that folder.
    """
    top = tmp_path_factory.mktemp("taker")
    there = written(top / "there", old_along="x = 'old'", ours_along="f = None")
    for name in ("far_parts.py", "points.py"):
        shutil.copy(HERE / name, there)
    net.make_keys(top / "server", by=keys)
    with _net_server.Server(top / "server", "127.0.0.1:0") as started:
        allow = ("--allow", "far_parts:plus", "--allow", "source")
        agent = Agent(started.url, keys, "gpu1", "--hosts", "1", *allow, folder=there)
        assert agent.report["host"] == "gpu1"
        try:
            yield started.url, there
        finally:
            agent.process.terminate()
            _, errors = agent.process.communicate()
            assert "Traceback" not in errors, errors


@pytest.fixture
def joined(taker: tuple[str, Path], keys: Path) -> Iterator[net.Network]:
    with net.join(taker[0], keys=keys, name="caller") as network:
        yield network


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path, str], Any]]:
    """Imports a module of a folder, in place of a module of that name from another folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept = list(sys.path)

    def load(folder: Path, module: str) -> Any:
        sys.modules.pop(module, None)
        sys.path[:] = [str(folder), *kept]
        importlib.invalidate_caches()
        return importlib.import_module(module)

    yield load
    sys.path[:] = kept
    for name in ("jobs_along", "other_along"):
        sys.modules.pop(name, None)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the digest of each parcel that this program sends."""
    digests: list[str] = []
    packed = _net_parcels.packed

    def noted(parcel: _net_parcels.Parcel) -> bytes:
        digests.append(parcel.digest)
        return packed(parcel)

    monkeypatch.setattr(_net_parcels, "packed", noted)
    return digests


JOB = """
import importlib, os
import ours_along

def g(n):
    return ours_along.f(n), os.getpid()

def computed():
    return importlib.import_module("old_" + "along").x

def spoils():
    with open(ours_along.__file__, "a") as file:
        file.write("\\ndef f(n):\\n    return 'spoilt'\\n")
"""


def test_the_source_goes_along(joined, tmp_path, imports, sent):  # wire 17.26
    """The host has none of the program's files. Its folder contains old versions, which never
    run."""
    here = written(tmp_path / "here", jobs_along=JOB, ours_along="def f(n):\n    return n * n\n")
    jobs = imports(here, "jobs_along")
    with ps.Executor(on="gpu1") as pool:
        results = list(pool.map(jobs.g, range(3)))
        assert [square for square, _ in results] == [0, 1, 4]
        with pytest.raises(ModuleNotFoundError, match="No module named 'old_along'"):
            pool.submit(jobs.computed).result()
    square, pid = th.run(ps.process(jobs.g).on(joined.hosts())(5))
    assert square == 25 and pid == results[0][1] and len(sent) == 1
    # The call after an edit runs the new helper.
    (here / "ours_along.py").write_text("def f(n):\n    return n * n * n\n")
    assert th.run(ps.process(jobs.g).on("gpu1")(5))[0] == 125 and len(sent) == 2
    # Another program, whose modules have the same names.
    other = written(tmp_path / "other", jobs_along=JOB, ours_along="def f(n):\n    return -n\n")
    others = imports(other, "jobs_along")
    got, others_pid = th.run(ps.process(others.g).on("gpu1")(5))
    assert got == -5 and len(sent) == 3
    jobs = imports(here, "jobs_along")
    (here / "ours_along.py").write_text("def f(n):\n    return n * n\n")
    assert th.run(ps.process(jobs.g).on("gpu1")(5)) == (25, pid)
    assert others_pid != pid and len(sent) == 3  # the agent already has all parcels
    # A call that changes its own program on the host does not affect later calls.
    th.run(ps.process(jobs.spoils).on("gpu1")())
    got, fresh = th.run(ps.process(jobs.g).on("gpu1")(5))
    assert (got, fresh != pid, len(sent)) == (25, True, 4)


def test_a_host_that_does_not_take_source(gpu1, caller, tmp_path, imports, sent):  # wire 17.26
    here = written(tmp_path / "here", jobs_along=JOB, ours_along="def f(n):\n    return n\n")
    jobs = imports(here, "jobs_along")
    for on in ("gpu1", caller.hosts()):
        with ps.Executor(on=on) as pool, pytest.raises(BadUse, match=r"--allow"):
            pool.submit(jobs.g, 1).result()
        with (
            ps.Executor(on=on, working_dir=here) as pool,
            pytest.raises(BadUse, match=r"--allow source"),
        ):
            pool.submit(jobs.g, 1).result()
        assert th.run(ps.process(parts.plus).on(on)(1, 2)) == 3
    with pytest.raises(ValueError, match="working_dir= can be given only with on="):
        ps.Executor(working_dir=here)
    assert sent == []


def test_what_is_named_runs_with_the_hosts_files(joined, sent):  # wire 17.26
    """A function of an installed package comes without its source, so the host must name it."""
    assert th.run(ps.process(parts.plus).on("gpu1")(1, 2)) == 3 and sent == []
    assert th.run(ps.process(parts.where).on("gpu1")(0)) > 0 and len(sent) == 1
    says = "make_str is not allowed on host gpu1.*its package is installed at the caller"
    with pytest.raises(BadUse, match=says):
        th.run(ps.process(click.utils.make_str).on("gpu1")("x"))


WORDS = """
import helper_along

def count():
    with open("data/words.txt") as file:
        return helper_along.length(file.read())
"""


def test_a_working_dir(taker, keys, tmp_path, imports):  # wire 17.26
    """The function is in a subfolder of the working folder, and reads a file of the working folder.
    The file is larger than many pieces, and is sent through the relay.
    """
    here = tmp_path / "here"
    written(
        here, src__other_along=WORDS, src__helper_along="def length(text):\n    return len(text)"
    )
    (here / "data").mkdir()
    (here / "data/words.txt").write_text("x" * 1_000_000)
    server, there = taker
    before = sorted(there.iterdir())
    other = imports(here / "src", "other_along")
    with net.join(server, keys=keys, relay="only") as network:
        with ps.Executor(on="gpu1", working_dir=here) as pool:
            assert pool.submit(other.count).result() == 1_000_000
        (here / "data/words.txt").write_text("abc")
        host = network.host("gpu1", working_dir=str(here))
        assert th.run(ps.process(other.count).on(host)()) == 3
        hosts = network.hosts(working_dir=here)
        assert th.run(ps.process(other.count).on(hosts)()) == 3
        with pytest.raises(FileNotFoundError):  # without working_dir, no data goes along
            th.run(ps.process(other.count).on("gpu1")())
    assert sorted(there.iterdir()) == before


def test_a_module_that_changes_while_it_is_sent(joined, tmp_path, imports, monkeypatch):
    """Wire 17.26. The call starts again with the new version, but not forever."""
    here = written(tmp_path / "here", jobs_along=JOB, ours_along="def f(n):\n    return 0\n")
    jobs = imports(here, "jobs_along")
    packed, edits = _net_parcels.packed, iter(range(1, 100))
    most = 2

    def edits_first(parcel: _net_parcels.Parcel) -> bytes:
        if (n := next(edits)) <= most:
            (here / "ours_along.py").write_text(f"def f(n):\n    return {n}\n")
        return packed(parcel)

    monkeypatch.setattr(_net_parcels, "packed", edits_first)
    assert th.run(ps.process(jobs.g).on("gpu1")(5))[0] == 2
    edits, most = iter(range(10, 100)), 100
    (here / "ours_along.py").write_text("def f(n):\n    return 9\n")
    with pytest.raises(BadUse, match=r"ours_along\.py has changed while it was sent"):
        th.run(ps.process(jobs.g).on("gpu1")(5))
    assert next(edits) == 13


def test_callers_that_send_rubbish(joined, tmp_path, imports, monkeypatch):  # wire 17.26
    """The agent refuses the rubbish, and continues."""
    here = written(tmp_path / "here", jobs_along=JOB, ours_along="def f(n):\n    return n\n")
    jobs = imports(here, "jobs_along")
    packed = _net_parcels.packed
    up = raw(["", False, [["../../../../../../../../tmp/climbed_along.py", 1]]], b"x")
    for odd in (b"", b"x" * 300_000, up, raw(["", False, [["job.py", 1]]], b"x")):
        monkeypatch.setattr(_net_parcels, "packed", lambda _, odd=odd: odd)
        with pytest.raises(BadUse, match="refuses: the source cannot be used"):
            th.run(ps.process(jobs.g).on("gpu1")(5))
    monkeypatch.setattr(_net_parcels, "packed", packed)
    assert not Path("/tmp/climbed_along.py").exists()
    for run, source in (("a b", "0" * 64), (7, "0" * 64), ("a:b", "0" * 63), ("a:b", 7)):
        asked = _net_calls.asked_of(jobs.g)
        request = {**asked.request(), "run": run, "source": source}
        with pytest.raises(BadUse, match="refuses"):
            joined._call(joined._meeting.begin_call("gpu1", request, 5.0))
    assert th.run(ps.process(jobs.g).on("gpu1")(5))[0] == 5
