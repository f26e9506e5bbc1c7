"""OS processes that run out of memory, and calls whose results never arrive, are reported."""

from __future__ import annotations

import resource
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from test_processes import program

import weft.threads as th
from weft.processes import BadUse, Channel, Executor, Hosts, Parallel, ProcessDied, process, run

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

LARGE = 100 << 20


class Fails:
    """Raises an exception when it is pickled."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error("of the test")


def fail_to_load() -> None:
    raise ValueError("of the test")


class Unloadable:
    """Raises an exception when it is unpickled."""

    def __reduce__(self) -> Any:
        return fail_to_load, ()


def no_memory() -> None:
    raise MemoryError("of the test")


class TooLarge:
    def __reduce__(self) -> Any:
        return no_memory, ()


@process
def keep_within(more: int) -> None:
    """Limits the memory of this OS process to `more` bytes beyond its present size."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@process
def length(inp: Any) -> int:
    return len(inp.read())


@process
def returns(error: type[BaseException]) -> Fails:
    return Fails(error)


@process
def writes(error: type[BaseException], out: Any) -> None:
    out.write(Fails(error))


def unloadable(number: int) -> Any:
    return Unloadable() if number == 1 else number


@th.process
def write_large(out: Any) -> None:
    out.write(b"x" * LARGE)


def test_a_value_of_shared_memory_for_which_a_host_has_no_room() -> None:  # rule 9.3
    c = Channel("c")
    with Hosts(1) as hosts:
        run(keep_within.on(hosts[0])(LARGE // 4))
        with pytest.raises(ProcessDied, match="this program has no room") as caught:
            Parallel(length.on(hosts[0])(c.reader()), write_large(c.writer()))
        assert caught.value.status == 1
        assert "memory_limit" in caught.value.stderr
        # The process that replaced the killed one answers.
        assert run(away_length.on(hosts[0])(b"abc")) == 3


@process
def never_ends(begun: Any) -> None:
    begun.write(None)
    threading.Event().wait()


@process
def length_once_begun(begun: Any, inp: Any) -> int:
    begun.write(None)
    return len(inp.read())


@th.process
def writes_large_once_both_have_begun(begun: Any, host: Any, out: Any) -> None:
    begun.read()
    begun.read()
    # After this there is no room for the thread of another call.
    Parallel(keep_within.on(host)(LARGE // 4))
    out.write(b"x" * LARGE)


def test_it_is_told_although_another_call_there_does_not_end() -> None:  # rule 9.3
    c, begun = Channel("c"), Channel("begun")
    with Hosts(1) as hosts, pytest.raises(ExceptionGroup) as caught:
        Parallel(
            length_once_begun.on(hosts[0])(begun.writer(), c.reader()),
            never_ends.on(hosts[0])(begun.writer()),
            writes_large_once_both_have_begun(begun.reader(), hosts[0], c.writer()),
        )
    died = [e for e in caught.value.exceptions if isinstance(e, ProcessDied)]
    assert died and all("memory_limit" in e.stderr for e in died)


@process
def away_length(value: bytes) -> int:
    return len(value)


def test_a_lack_of_memory_while_a_value_is_pickled_is_a_memory_error() -> None:  # rule 9.3
    c = Channel("c")
    reader = c.reader()
    with pytest.raises(MemoryError, match="of the test"):
        run(writes(MemoryError, c.writer()))
    reader.retire()


def test_a_lack_of_memory_while_a_value_is_built_is_one_at_the_read() -> None:  # rule 9.3
    c = Channel("c")
    writer = c.writer()

    @th.process
    def gives() -> None:
        writer.write(TooLarge())

    with pytest.raises(MemoryError, match="of the test"):
        Parallel(length(c.reader()), gives())


def test_a_lack_of_memory_while_a_result_is_pickled_is_a_memory_error() -> None:  # rule 9.3
    with pytest.raises(MemoryError, match="of the test"):
        run(returns(MemoryError))
    with Hosts(1) as hosts:
        with pytest.raises(MemoryError, match="of the test"):
            run(returns.on(hosts)(MemoryError))
        assert run(away_length.on(hosts)(b"abc")) == 3


@process
def breaks_its_host() -> None:
    """Makes its host unable to report any failure."""
    from weft._hosts import pickling

    def no_failure(*_: Any) -> Any:
        raise MemoryError("of the test")

    pickling.Failure = no_failure  # type: ignore[assignment, misc]
    raise ValueError


def test_a_call_that_is_dropped_without_a_result_is_told() -> None:  # rule 9.3
    with (
        Hosts(1) as hosts,
        pytest.raises(BadUse, match=r"has dropped its call of 'breaks_its_host'"),
    ):
        run(breaks_its_host.on(hosts)())


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError, GeneratorExit])
def test_a_result_that_cannot_be_sent_is_told(error: type[BaseException]) -> None:  # rule 9.3
    with Hosts(1) as hosts:
        with pytest.raises(BadUse, match=r"its result: .* Fails cannot go to another OS process"):
            run(returns.on(hosts)(error))
        assert run(away_length.on(hosts)(b"abc")) == 3


def test_a_result_that_cannot_be_rebuilt_fails_its_call_alone() -> None:  # rule 9.3
    with Executor(1) as executor:
        assert executor.submit(unloadable, 0).result() == 0
        with pytest.raises(ValueError, match="of the test"):
            executor.submit(unloadable, 1).result()
        assert executor.submit(unloadable, 0).result() == 0


WITHOUT_DESCRIPTORS = """
    import os, resource
    from weft.processes import Hosts, process, run

    kept = []  # until the OS process ends

    def used_up(fails):
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            while True:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        if fails:
            raise ValueError("its own failure")
        return "its result"

    away = process(used_up)

    def tell(call):
        try:
            call(True)
        except ValueError as error:
            print(error)
        print(call(False))

    if __name__ == "__main__":
        from weft.processes import Executor  # here: the OS processes have not imported its modules

        with Hosts(1) as hosts, Executor(1) as executor:
            tell(lambda fails: run(away(fails)))
            tell(lambda fails: run(away.on(hosts)(fails)))
            tell(lambda fails: executor.submit(used_up, fails).result())
"""


def test_no_descriptor_is_left_in_the_middle_of_a_run(tmp_path: Path) -> None:  # rule 9.3
    """Without a descriptor no module can be imported to write a traceback, and no source can be
    read. The callers receive the failure nevertheless; in an earlier version they waited forever.
    """
    result = program(tmp_path, WITHOUT_DESCRIPTORS)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["its own failure", "its result"] * 3
