"""weft.compat.pycsp: the names of pycsp 0.9.2, over each backend. The networks were written for
Weft.

The tests of choice are in test_pycsp_choice.py.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from networks import implementations, load

from weft.compat.pycsp import _remote, current


@pytest.fixture(autouse=True, scope="module")
def nobody_listens_afterwards() -> Iterator[None]:
    """Shuts the server down after these tests: while other programs may connect, the virtual time
    of a run does not advance (rule 10.3).
    """
    yield
    _remote.shut()


def numbers(p: Any, count: int, end: str = "retire") -> Any:
    @p.process
    def numbers(out: Any) -> None:
        for i in range(count):
            out(i)
        getattr(out, end)()

    return numbers


def collector(p: Any) -> Any:
    @p.process
    def collect(source: Any) -> Any:
        got = []
        try:
            while True:
                got.append(source())
        except p.ChannelRetireException:
            return got, "retired"
        except p.ChannelPoisonException:
            return got, "poisoned"

    return collect


# --------------------------------------------------------------------------------------- processes


def test_parallel_gives_results_in_order(p: Any) -> None:
    @p.process
    def square(n: int) -> int:
        return n * n

    assert p.Parallel(square(2), [square(3), square(4)], square(n=5)) == [4, 9, 16, 25]
    assert p.Parallel() == []
    assert p.Sequence(square(2), [square(3)]) == [4, 9]


def test_a_process_keeps_its_name_and_docstring(p: Any) -> None:
    @p.process
    def worker(cin: Any) -> None:
        """Works."""

    assert worker.__name__ == "worker"
    assert worker.__doc__ == "Works."
    made = worker(1)
    assert (made.fn.__name__, made.args, made.name) == ("worker", (1,), "worker")
    assert isinstance(made, p.Process)
    assert made.update(host="x") is made


def test_process_class_and_return_value(p: Any) -> None:
    made = p.Process(lambda a, b=0: a + b, 1, b=2)
    assert p.Parallel(made) == [3]
    assert made.return_value == 3
    assert p.Parallel(made) == [3]  # a process may run again once it has ended


def test_a_process_that_runs_is_not_started_again(p: Any) -> None:
    channel = p.Channel()
    cin, cout = channel.reader(), channel.writer()

    @p.process
    def read(cin: Any) -> Any:
        return cin()

    made = read(cin)
    p.Spawn(made)
    with pytest.raises(p.InfoException, match="make another"):
        p.Spawn(made)
    cout(1)


def test_multiplied_processes_have_ends_of_their_own(p: Any) -> None:
    channel = p.Channel()
    results = p.Parallel(3 * numbers(p, 2)(channel.writer()), collector(p)(channel.reader()))
    got, how = results[-1]
    assert (sorted(got), how) == ([0, 0, 0, 1, 1, 1], "retired")


def test_multiplication_reaches_into_lists_and_dictionaries(p: Any) -> None:
    channel = p.Channel()
    cout = channel.writer()

    @p.process
    def send(where: Any) -> None:
        where["to"][0](1)
        where["to"][0].retire()

    processes = send({"to": [cout]}) * 4
    assert len({id(q.args[0]["to"][0]) for q in processes}) == 4
    results = p.Parallel(processes, collector(p)(channel.reader()))
    assert results[-1] == ([1] * 4, "retired")


def test_a_half_counts_as_its_integer_part(p: Any) -> None:
    assert len(2.5 * numbers(p, 1)(None)) == 2


def test_current_process_id(p: Any) -> None:
    @p.process
    def who() -> Any:
        return p.current_process_id()

    assert p.current_process_id() == "__main__"
    first, second = p.Parallel(2 * who())
    assert first != second
    assert first.endswith(".who")


def test_a_failure_ends_the_others_and_is_raised(p: Any) -> None:
    channel = p.Channel()

    @p.process
    def fails() -> None:
        raise ValueError("on purpose")

    @p.process
    def waits(cin: Any) -> None:
        cin()

    with pytest.raises(ValueError, match="on purpose"):
        p.Parallel(waits(channel.reader()), fails())


def test_what_is_no_process_is_refused(p: Any) -> None:
    with pytest.raises(p.InfoException, match="Parallel of 3"):
        p.Parallel(3)
    with pytest.raises(p.InfoException, match="Spawn of"):
        p.Spawn(print)

    async def coroutine() -> None: ...

    with pytest.raises(p.InfoException, match="apycsp"):
        p.process(coroutine)


def test_deadlock_is_reported(p: Any) -> None:
    channel = p.Channel("lonely")

    @p.process
    def reader(cin: Any) -> None:
        cin()

    with pytest.raises(p.Deadlock, match="'lonely'"):
        p.Parallel(reader(channel.reader()))


# -------------------------------------------------------------------------------- the main program


def test_the_main_program_spawns_reads_and_writes(p: Any) -> None:
    outward, back = p.Channel(), p.Channel(buffer=2)

    @p.process
    def double(cin: Any, cout: Any) -> None:
        while True:
            cout(2 * cin())

    p.Spawn(double(outward.reader(), back.writer()))
    cin, cout = back.reader(), outward.writer()
    for i in range(10):
        cout(i)
        assert cin() == 2 * i
    p.retire(cout)
    with pytest.raises(p.ChannelRetireException):
        cin()


def test_a_spawned_process_spawns_and_parallel_still_works(p: Any) -> None:
    channel = p.Channel()

    @p.process
    def child(cout: Any) -> None:
        cout("child")

    @p.process
    def parent(cout: Any) -> None:
        p.Spawn(child(cout))

    @p.process
    def one() -> int:
        return 1

    p.Spawn(parent(channel.writer()))
    assert channel.reader()() == "child"
    assert p.Parallel(one()) == [1]


def test_a_failure_of_a_spawned_process_is_told_at_once_and_raised_by_shutdown(
    p: Any, capsys: Any
) -> None:
    go = p.Channel()

    @p.process
    def fails(cin: Any) -> None:
        cin()
        raise KeyError("spawned")

    p.Spawn(fails(go.reader()))
    go.writer()(1)
    with pytest.raises(KeyError, match="spawned"):
        p.shutdown()
    assert "KeyError: 'spawned'" in capsys.readouterr().err
    p.shutdown()  # after this no process of the server is left


def test_shutdown_in_a_process_is_refused(p: Any) -> None:
    @p.process
    def stops() -> None:
        p.shutdown()

    with pytest.raises(p.InfoException, match="main program"):
        p.Parallel(stops())


@pytest.mark.parametrize("name", implementations())
def test_a_program_without_shutdown_waits_at_its_end(name: str) -> None:
    program = f"""
from weft.compat.pycsp.{name} import *
@process
def late(cin): print("got", cin())
c = Channel()
Spawn(late(+c))
(-c)(7)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=280
    )
    assert (done.returncode, done.stdout) == (0, "got 7\n"), done.stderr


@pytest.mark.parametrize("name", implementations())
def test_a_program_that_fails_cancels_what_it_spawned(name: str) -> None:
    program = f"""
from weft.compat.pycsp.{name} import *
@process
def endless(cin): cin()
c, go = Channel(), Channel(buffer=1)
@process
def begun(cout): cout(1)
Spawn(endless(+c), begun(-go))
(+go)()
raise ValueError("main")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: main\n")


# ---------------------------------------------------------------------------------------- channels


def test_a_process_that_returns_gives_up_nothing(p: Any) -> None:
    """In pycsp only retire() retires an end: three writers return, and a fourth still writes."""
    channel = p.Channel()

    @p.process
    def once(out: Any, value: int) -> None:
        out(value)

    @p.process
    def three(cin: Any) -> Any:
        return sorted(cin() for _ in range(3))

    results = p.Parallel([once(channel.writer(), i) for i in range(3)], three(channel.reader()))
    assert results[-1] == [0, 1, 2]
    assert p.Parallel(once(channel.writer(), 3), collector_of_one(p)(channel.reader()))[1] == 3


def collector_of_one(p: Any) -> Any:
    @p.process
    def one(cin: Any) -> Any:
        return cin()

    return one


def test_retire_counts_ends(p: Any) -> None:
    channel = p.Channel(buffer=4)
    first, second, cin = -channel, -channel, +channel
    first(1)
    first.retire()
    first.retire()  # retiring an end a second time does nothing
    with pytest.raises(p.ChannelRetireException):
        first(2)
    second(3)
    p.retire([second])
    assert [cin(), cin()] == [1, 3]  # both values that were in the buffer
    with pytest.raises(p.ChannelRetireException):
        cin()
    with pytest.raises(p.ChannelRetireException):
        channel.writer()(4)


def test_writers_learn_that_the_readers_have_retired(p: Any) -> None:
    channel = p.Channel(buffer=1)
    cout, cin = channel.writer(), channel.reader()
    cin.retire()
    with pytest.raises(p.ChannelRetireException):
        cout(1)
    with pytest.raises(p.ChannelRetireException):
        channel.reader()()


def test_poison_reaches_both_sides(p: Any) -> None:
    channel = p.Channel()
    cout, cin = channel.writer(), channel.reader()
    p.poison(cin)
    for operation in (cin, lambda: cout(1), channel.reader()):
        with pytest.raises(p.ChannelPoisonException):
            operation()


def test_poison_of_a_writer_goes_through_the_buffer(p: Any) -> None:
    channel = p.Channel(buffer=3)
    cout, cin = channel.writer(), channel.reader()
    cout(1)
    cout(2)
    p.poison(cout)
    with pytest.raises(p.ChannelPoisonException):
        cout(3)
    with pytest.raises(p.ChannelPoisonException):
        p.AltSelect(p.OutputGuard(channel.writer(), 3))
    assert cin() == 1
    assert p.AltSelect(p.InputGuard(cin)) == (cin, 2)
    with pytest.raises(p.ChannelPoisonException):
        cin()
    with pytest.raises(p.ChannelPoisonException):
        p.AltSelect(p.InputGuard(cin))


def test_poison_of_a_reader_is_at_once(p: Any) -> None:
    channel = p.Channel(buffer=3)
    cout, cin = channel.writer(), channel.reader()
    cout(1)
    cin.poison()
    with pytest.raises(p.ChannelPoisonException):
        cin()


@pytest.mark.parametrize("end", ["poison", "retire"])
def test_what_is_not_caught_spreads_through_the_arguments(p: Any, end: str) -> None:
    """a → pass_on → b: poison spreads through ends in a list, in a dictionary and by keyword."""
    a, b, c, d = p.Channel() * 4

    @p.process
    def pass_on(cin: Any, out: Any, more: Any = None) -> None:
        while True:
            value = cin()
            out[0]["to"](value)
            more(value)

    @p.process
    def stay(cin: Any) -> Any:
        try:
            while True:
                cin()
        except p.ChannelPoisonException:
            return "poison"
        except p.ChannelRetireException:
            return "retire"

    results = p.Parallel(
        numbers(p, 3, end)(-a),
        pass_on(+a, [{"to": -b}], more=-c),
        stay(+b),
        stay(+c),
        numbers(p, 0)(-d),
    )
    assert results[2:4] == [end, end]


def test_retire_and_poison_of_a_channel_are_refused(p: Any) -> None:
    for refused in (p.retire, p.poison):
        with pytest.raises(p.InfoException, match="one of its ends"):
            refused(p.Channel())


def test_one_name_is_two_channels_and_connect_is_one(p: Any) -> None:
    first = p.Channel("same", buffer=1)
    second = p.Channel("same", buffer=1)
    (-first)(1)
    (-second)(2)
    assert ((+second)(), (+first)()) == (2, 1)
    again = p.Channel("same", connect=second.address)
    assert again is second
    with pytest.raises(p.InfoException, match="name"):
        p.Channel(connect=second.address)
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 0)
    with pytest.raises(p.ChannelConnectException, match="no channel 'other'") as caught:
        p.Channel("other", connect=("localhost", 1))
    assert caught.value.addr == ("localhost", 1)
    assert isinstance(caught.value, p.ChannelSocketException)
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 2)
    with pytest.raises(p.InfoException, match="buffer"):
        p.Channel("same", buffer=1, connect=second.address)


def test_names_signs_and_multiples_of_channels(p: Any) -> None:
    channels = 3 * p.Channel("c", buffer=1)
    assert [c.buffer for c in channels] == [1, 1, 1]
    assert [c.name for c in channels] == ["c", "c[1]", "c[2]"]
    cin, cout = +channels[0], -channels[0]
    assert (cin.isReader(), cin.isWriter(), cout.isReader(), cout.isWriter()) == (
        True,
        False,
        False,
        True,
    )
    assert repr(cin) == "<ChannelEndRead on channel named c>"
    assert cin.channel is channels[0]
    cin.disconnect()
    channels[0].disconnect()
    assert p.Channel().name.startswith("test_pycsp.py:")


# ---------------------------------------------------------------------------------------- the rest


def test_io_returns_and_raises(p: Any) -> None:
    @p.io
    def blocking(n: int) -> int:
        """Blocks its thread."""
        if n < 0:
            raise ValueError("negative")
        return n + 1

    @p.process
    def caller(n: int) -> Any:
        try:
            return blocking(n)
        except ValueError as e:
            return str(e)

    assert blocking.__name__ == "blocking"
    assert p.Parallel(caller(1), caller(-1)) == [2, "negative"]
    assert p.Io(abs, -3) == 3


def test_io_lets_the_others_run(p: Any) -> None:
    """One process waits in io until the next process has acted, which is possible only if io lets
    it run."""
    met = threading.Event()

    @p.io
    def wait() -> bool:
        return met.wait(280)

    @p.process
    def waits() -> bool:
        return wait()

    @p.process
    def sets() -> None:
        met.set()

    assert p.Parallel(waits(), sets())[0]


def test_configuration_is_one(p: Any) -> None:
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 200)
    assert p.Configuration().get(p.SOCKETS_CONNECT_TIMEOUT) == 200
    assert p.Configuration() is p.Configuration()
    with pytest.raises(KeyError):
        p.Configuration().get("nothing")
    p.Configuration().set(p.SOCKETS_CONNECT_TIMEOUT, 2)


def test_greenlets_have_no_other_interpreters(p: Any) -> None:
    """Greenlets have no `multiprocess` or `sshprocess`. test_apart.py and test_ssh.py test these
    with the other backends."""
    if p.version[3] == "greenlets":
        for refused in (p.multiprocess, p.MultiProcess, p.sshprocess, p.ClusterProcess):
            with pytest.raises(p.InfoException, match="not available for greenlets"):
                refused(print)
        return
    one = p.MultiProcess(print, 4, pycsp_host="localhost", pycsp_port=9998)
    assert isinstance(one, p.Process) and all(isinstance(q, p.MultiProcess) for q in one * 2)


def test_every_name_is_there(p: Any) -> None:
    names = """
        Skip SkipGuard Timeout TimeoutGuard InputGuard OutputGuard choice Alternation FairSelect AltSelect PriSelect
        Channel retire poison Process process MultiProcess multiprocess ClusterProcess clusterprocess SSHProcess
        sshprocess Sequence Parallel Spawn current_process_id shutdown ChannelRetireException ChannelPoisonException
        ChannelSocketException ChannelConnectException ChannelBindException ChannelLostException InfoException
        FatalException io Io Configuration SOCKETS_CONNECT_TIMEOUT SOCKETS_CONNECT_RETRY_DELAY SOCKETS_BIND_TIMEOUT
        SOCKETS_BIND_RETRY_DELAY PYCSP_PORT PYCSP_HOST SOCKETS_STRICT_MODE version
    """
    assert set(names.split()) <= set(p.__all__)
    assert all(hasattr(p, name) for name in p.__all__)
    assert p.version[:3] == (0, 9, 2)
    assert current.version == p.version
    with pytest.raises(AttributeError, match="no 'nothing'"):
        current.nothing  # noqa: B018
    # A program may raise these exceptions itself.
    assert str(p.ChannelPoisonException()) and str(p.ChannelRetireException())
    assert p.FatalException("m").msg == p.InfoException("m").msg == "m"


def test_the_package_itself_is_parallel() -> None:
    import weft.compat.pycsp as pycsp

    assert pycsp.version[3] == "parallel"
    assert pycsp.Channel is load("parallel").Channel
    names: dict[str, Any] = {}
    exec("from weft.compat.pycsp.threads import *", names)
    assert names["Parallel"] == pycsp.Parallel
    with pytest.raises(AttributeError, match="'nothing'"):
        pycsp.nothing  # noqa: B018
