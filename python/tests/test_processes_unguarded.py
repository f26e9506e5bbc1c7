"""Rule 15.10: a main module may start a network outside `if __name__ == "__main__"`. Each OS
process imports the module up to that run and goes no further, and does not leave the blocks around
the run.

Every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_processes import nobody_is_left, program  # noqa: F401

# An OS process that left a block would write its pid, and remove the file.
PROGRAM = """
import contextlib, os, pathlib
from weft.processes import *

left = pathlib.Path("left")
state = pathlib.Path("state")

def leaves(what):
    with left.open("a") as file:
        print(os.getpid(), what, file=file)

@contextlib.contextmanager
def kept():
    try:
        yield
    finally:
        leaves("a generator")

class Kept:
    def __enter__(self):
        return self
    def __exit__(self, *_):
        leaves("a with")

@process
def work(n):
    return state.read_text() + str(n)

@process
def waits():
    sleep(0.3)  # longer than the timeout in its main module
    return "waited"

hosts = HOSTS if __name__ == "__main__" else "threads"

on = work.on(hosts)

def begins():
    try:
        with kept(), Kept(), contextlib.ExitStack() as stack:
            stack.callback(leaves, "a stack")
            START
    except:
        leaves("an except")
        raise
    else:
        leaves("an else")
    finally:
        leaves("a finally")
        state.unlink()

if not state.exists():
    state.write_text("made once ")
begins()
others = {line.split()[0] for line in left.read_text().splitlines()} - {str(os.getpid())}
print(len(others), state.exists())
if hosts != "processes": hosts.close()
"""

STARTS = {
    "run": ('"processes"', "print(run(on(1), on(2)))"),
    "Sequence, by a server": ('Hosts(2, start="forkserver")', "print(Sequence(on(1), on(2)))"),
    "Parallel, on hosts": ("Hosts(2, initializer=state.exists)", "print(Parallel(on(1), on(2)))"),
}


@pytest.mark.parametrize("start", STARTS)
def test_no_block_around_the_run_is_left(start: str, tmp_path: Path) -> None:  # rule 15.10
    hosts, begins = STARTS[start]
    result = program(tmp_path, PROGRAM.replace("HOSTS", hosts).replace("START", begins))
    output = result.stdout.strip().splitlines()
    assert (output[-2:], result.stderr) == (["['made once 1', 'made once 2']", "0 False"], "")


def test_nor_one_around_what_an_os_process_is_refused(tmp_path: Path) -> None:
    start = "with Hosts(1) as own: print(run(work.on(own)(1)))"
    result = program(tmp_path, PROGRAM.replace("HOSTS", '"processes"').replace("START", start))
    assert 'below `if __name__ == "__main__":`' in result.stderr
    parent = (tmp_path / "left").read_text(encoding="utf-8").split()[0]
    assert {line.split()[0] for line in (tmp_path / "left").read_text().splitlines()} == {parent}


def test_a_timeout_around_the_run_is_the_parents(tmp_path: Path) -> None:
    text = PROGRAM.partition("hosts = ")[0]
    result = program(
        tmp_path,
        text
        + """
hosts = Hosts(1) if __name__ == "__main__" else None
with timeout(0.2 if __name__ == "__mp_main__" else 1000):
    print(run(waits.on(hosts or "threads")()), run(waits()))
if hosts: hosts.close()
""",
    )
    assert (result.stdout, result.stderr) == ("waited waited\n", "")


def test_a_run_in_another_thread_of_the_main_module_says_where_to_put_it(tmp_path: Path) -> None:
    result = program(
        tmp_path,
        """
        import threading
        from weft.processes import *

        @process
        def work():
            return "done"

        def begins():
            print(run(work()))

        thread = threading.Thread(target=begins)
        thread.start()
        thread.join()
        """,
    )
    assert result.stdout == "done\n"
    assert 'below `if __name__ == "__main__":`' in result.stderr


def test_a_program_that_ends_within_its_run_ends_as_one_does(tmp_path: Path) -> None:
    """The OS process ends properly: its threads end, its atexit functions are called, and its
    output is flushed.
    """
    result = program(
        tmp_path,
        """
        import atexit, threading
        from weft.processes import *

        ended = threading.Event()

        def goes_on():
            ended.wait()
            print("a thread")

        @process
        def work():
            atexit.register(print, "at its exit")
            threading.Thread(target=goes_on, daemon=False).start()
            threading._register_atexit(ended.set)
            print("work")

        try:
            run(work())
        finally:
            print("once")
        """,
    )
    assert (result.stdout, result.stderr) == ("work\na thread\nat its exit\nonce\n", "")
