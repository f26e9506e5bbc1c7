"""weft.compat.pycsp: channels of another program that are found by their address (as in pycsp's
remotetest, rewritten)."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import remote_there as there
from networks import free_port, implementations, load

from weft import coroutines
from weft.compat.pycsp import _remote

THERE = Path(there.__file__)


@pytest.fixture(params=implementations())
def p(request: pytest.FixtureRequest) -> Iterator[Any]:
    module = load(request.param)
    module.Configuration().set(module.SOCKETS_CONNECT_TIMEOUT, 280)  # programs might start late
    yield module
    module.Configuration().set(module.SOCKETS_CONNECT_TIMEOUT, 2)
    module.shutdown()


class Other:
    """The test's view of another program, which doubles values."""

    def __init__(self, buffer: int = 0) -> None:
        self.child = subprocess.Popen(
            [sys.executable, str(THERE), "main", str(buffer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = ("localhost", int(self.line()))

    def line(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.communicate()


@pytest.mark.parametrize(("buffer", "how"), [(0, "retired"), (3, "poisoned"), (0, "poisoned")])
def test_another_program_is_written_to_and_read(p: Any, buffer: int, how: str) -> None:
    got: list[int] = []
    with Other(buffer) as other:
        inp = p.Channel("in", connect=other.address)
        out = p.Channel("out", connect=other.address)
        assert (inp.address, inp.name, out.buffer) == (other.address, "in", buffer)

        @p.process
        def writes(end: Any) -> None:
            for i in range(5):
                end(i)
            (p.retire if how == "retired" else p.poison)(end)

        @p.process
        def reads(end: Any) -> str:
            try:
                while True:
                    got.append(end())
            except p.ChannelRetireException:
                return "retired"
            except p.ChannelPoisonException:
                return "poisoned"

        assert p.Parallel(writes(-inp), reads(+out)) == [None, how]
        assert other.line() == how
        with pytest.raises(
            p.ChannelRetireException if how == "retired" else p.ChannelPoisonException
        ):
            (-inp)(9)
    assert got == [0, 2, 4, 6, 8]


def test_a_choice_with_ends_of_another_program(p: Any) -> None:
    got: list[int] = []
    with Other() as other:
        inp = p.Channel("in", connect=other.address)
        out = p.Channel("out", connect=other.address)

        @p.choice
        def take(channel_input: Any = None) -> None:
            got.append(channel_input)

        @p.process
        def chooses(to: Any, back: Any) -> None:
            for i in range(3):
                p.AltSelect(p.OutputGuard(to, msg=i))
                p.AltSelect(p.InputGuard(back, take()), p.TimeoutGuard(seconds=280))
            p.retire(to)

        p.Parallel(chooses(-inp, +out))
        assert other.line() == "retired"
    assert got == [0, 2, 4]


def test_ends_are_counted_where_the_channel_lives(p: Any) -> None:
    """This program has two writers, so the side ends only with the second retirement. A new end can
    be made when this program has no end left.
    """
    with Other() as other:
        inp = p.Channel("in", connect=other.address)
        again = p.Channel("in", connect=other.address)
        out = p.Channel("out", connect=other.address)
        first, second, back = inp.writer(), again.writer(), out.reader()

        @p.process
        def uses() -> None:
            first(1)
            assert back() == 2
            first.retire()
            third = inp.writer()
            third(2)
            assert back() == 4
            third.retire()
            second(3)
            assert back() == 6
            second.retire()

        p.Parallel(uses())
        assert other.line() == "retired"


def test_a_program_that_is_killed_is_lost(p: Any) -> None:
    with Other() as other:
        stays = p.Channel("stays", connect=other.address)
        end = +stays

        @p.process
        def reads() -> None:
            with pytest.raises(p.ChannelLostException, match="has ended") as caught:
                end()
            assert caught.value.addr == other.address

        @p.process
        def kills() -> None:
            other.child.kill()

        p.Parallel(reads(), kills())
        with pytest.raises(p.ChannelLostException):
            stays.reader()
        p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
        with pytest.raises(p.ChannelConnectException):
            p.Channel("stays", connect=other.address)


def test_a_program_that_ends_as_it_is_found(p: Any) -> None:
    """If the other program's socket accepts the connection, but the program ends without a message,
    the channel is not found."""
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
    with socket.socket(socket.AF_UNIX) as listens:
        path = _remote._folder() / "pycsp-1"
        listens.bind(str(path))
        listens.listen()

        def ends() -> None:
            listens.accept()[0].close()

        dying = threading.Thread(target=ends)
        dying.start()
        try:
            with pytest.raises(p.ChannelConnectException, match="has ended"):
                p.Channel("stays", connect=("localhost", 1))
        finally:
            dying.join()
            path.unlink()


def test_nobody_is_there(p: Any) -> None:
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
    for address, why in (
        (("localhost", free_port()), "no channel 'A' is found"),
        (("-weft", 7), "is not the name of a machine"),  # test_ssh.py tests the other names
    ):
        with pytest.raises(p.ChannelConnectException, match=why) as caught:
            p.Channel("A", connect=address)
        assert caught.value.addr == address


def test_a_package_that_other_machines_need_and_is_missing_is_named() -> None:
    program = """if True:
        import sys
        sys.modules["msgspec"] = None
        from weft.compat.pycsp import _ssh
        _ssh._host_at("machine")
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=280, check=False
    )
    assert "processes on other machines need msgspec: pip install 'weft-csp[net]'" in done.stderr


def test_a_program_that_has_no_such_channel(p: Any) -> None:
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
    with (
        Other() as other,
        pytest.raises(p.ChannelConnectException, match="none of that name"),
    ):
        p.Channel("elsewhere", connect=other.address)


def test_another_users_program_is_refused(p: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
    with Other() as other:
        monkeypatch.setattr(_remote, "_is_ours", lambda connection: False)
        with pytest.raises(p.ChannelConnectException, match="another user's"):
            p.Channel("in", connect=other.address)


def test_a_folder_that_others_may_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "weft").mkdir()
    (tmp_path / "weft").chmod(0o777)
    with pytest.raises(OSError, match="set XDG_RUNTIME_DIR"):
        _remote._folder()


# --- processes with a port of their own (on threads alone) ----------------------------------------


@pytest.fixture
def threads() -> Iterator[Any]:
    module = load("parallel")
    module.Configuration().set(module.SOCKETS_CONNECT_TIMEOUT, 280)
    yield module
    module.Configuration().set(module.SOCKETS_CONNECT_TIMEOUT, 2)
    module.shutdown()


@pytest.mark.parametrize("readers", [1, 10])
def test_a_program_that_connects_before_the_process_is_there(threads: Any, readers: int) -> None:
    p, port, got = threads, free_port(), []

    @p.process
    def reads() -> None:
        while True:
            try:
                got.append(p.Channel("A", connect=("localhost", port)).reader()())
                return
            except p.ChannelConnectException:
                pass

    p.Spawn(readers * reads())
    p.Parallel(p.MultiProcess(there.writes._weft_body, "A", readers, pycsp_port=port))
    p.shutdown()
    assert sorted(got) == list(range(readers))


def test_a_port_is_one_process_s(threads: Any) -> None:
    p, port = threads, free_port()
    first = p.MultiProcess(there.writes._weft_body, "A", 1, pycsp_host="localhost", pycsp_port=port)
    p.Spawn(first)
    with pytest.raises(p.ChannelBindException, match="no channel can be bound") as caught:
        p.Parallel(p.MultiProcess(there.writes._weft_body, "A", 1, pycsp_port=port))
    assert caught.value.addr == ("localhost", port)
    reader = p.Channel("A", connect=("localhost", port)).reader()
    assert reader() == 0
    p.shutdown()
    with socket.socket() as again:  # the port is free again
        again.bind(("127.0.0.1", port))


def test_the_errors_go_to_other_os_processes_as_they_are() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(_remote.ChannelBindException(("localhost", 5), "taken:")))
    assert (error.addr, error.msg, str(error)) == (
        ("localhost", 5),
        "taken:",
        "taken: ('localhost', 5)",
    )


def test_an_end_of_another_program_stays_here(threads: Any) -> None:
    with Other() as other:
        end = threads.Channel("out", connect=other.address).reader()
        with pytest.raises(threads.InfoException, match="name and address"):
            threads.Parallel(there.takes(end))


def test_a_network_that_waits_for_another_program_alone_is_no_deadlock(threads: Any) -> None:
    """A network is not deadlocked if another program may still find its channel."""
    p = threads
    channel = p.Channel("A")
    child = subprocess.Popen(
        [sys.executable, str(THERE), "nested", str(channel.address[1])],
        stdout=subprocess.PIPE,
        text=True,
    )

    @p.process
    def writes(out: Any) -> None:
        for i in range(3):
            out(i)

    p.Parallel(writes(-channel))
    assert child.communicate()[0] == "[0, 2, 4]\n"


def test_after_shutdown_nobody_comes_and_virtual_time_goes_on(p: Any) -> None:  # rule 10.3
    channel = p.Channel("kept")
    address = channel.address
    with socket.socket() as taken, pytest.raises(OSError, match="in use"):
        taken.bind(("127.0.0.1", address[1]))
    p.shutdown()
    p.shutdown()
    with socket.socket() as free:
        free.bind(("127.0.0.1", address[1]))

    @coroutines.process
    async def sleeps() -> float:
        await coroutines.sleep(1000)
        return coroutines.now()

    assert coroutines.run(sleeps(), clock="virtual") == pytest.approx(1000)
