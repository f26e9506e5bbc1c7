"""Programs give the same results without system calls that an old system lacks (ENOSYS), that a
container's profile refuses (EPERM), or that fail once (rule 15.11).

Each program starts one OS process, which takes some 0.4 s.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_processes import program

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="filters of system calls are Linux's"
)

# Each program sends small and large values to a host and back, sums a Shared, meets a host that
# dies, runs a command, and lets two asyncio tasks communicate. `mapped` counts the rings in shared
# memory.
USES = """
    import array, asyncio, os, sys
    from pathlib import Path
    from weft import coroutines, threads, toolkit
    from weft.processes import Channel, Hosts, Parallel, ProcessDied, Shared, process

    @process
    def echo(r, w):
        for v in r:
            w.write(v)

    @process
    def total(shared):
        return sum(memoryview(shared))

    @process
    def die():
        os._exit(3)

    @threads.process
    def write(w, values):
        for v in values:
            w.write(v)

    @threads.process
    def collect(r):
        return list(r)

    def mapped():
        lines = Path("/proc/self/maps").read_text(encoding="ascii").splitlines()
        return sum("memfd:weft" in line for line in lines)

    def through(hosts, values):
        there, back = Channel("there"), Channel("back")
        return Parallel(
            write(there.writer(), values),
            echo.on(hosts)(there.reader(), back.writer()),
            collect(back.reader()),
        )[2]

    def command():
        out = threads.Channel("out")
        run = toolkit.command(["echo", "said"], stdout=out.writer())
        return threads.Parallel(run, collect(out.reader()))[1]

    async def tasks():
        c = coroutines.Channel("c")
        return (await asyncio.gather(c.reader().read(), c.writer().write(7)))[0]

    def main():
        large = [bytes([i]) * 200_000 for i in range(3)]
        with Hosts(1) as hosts:
            assert through(hosts, list(range(200))) == list(range(200))
            print("mapped", mapped())
            assert through(hosts, large) == large
            print(Parallel(total.on(hosts)(Shared(array.array("d", [1.0] * 50_000))))[0])
            try:
                Parallel(die.on(hosts)())
            except ProcessDied:
                print("died")
        print(command())
        try:
            print(asyncio.run(tasks()))
        except OSError as error:
            print(error)
"""
RUNS = """
    if __name__ == "__main__":
        main()
"""
GOES = "50000.0\ndied\n['said']\n"

REST = ",".join(
    [
        *("close_range", "membarrier", "pidfd_open", "prctl", "sched_getaffinity"),
        *("sched_getattr", "sched_setaffinity", "sched_setattr", "set_robust_list"),
    ]
)


def refusing(tmp_path: Path, error: str, calls: str, text: str) -> str:
    filtered = [str(HERE / "refused.py"), error, calls, "--", sys.executable, "program.py"]
    done = program(tmp_path, text, *filtered)
    if "no filter can be set" in done.stderr:
        pytest.skip("this system sets no filters of system calls")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("error", ["EPERM", pytest.param("ENOSYS", marks=pytest.mark.soak)])
@pytest.mark.parametrize("calls", ["futex_waitv", "memfd_create", "fallocate,eventfd2", REST])
def test_rule_15_11_a_program_goes_on_without_a_call(  # rule 15.11
    tmp_path: Path, error: str, calls: str
) -> None:
    answer = refusing(tmp_path, error, calls, USES + RUNS)
    mapped, _, rest = answer.partition("\n")
    # Without these calls there is no shared memory, because rings at which no thread can wait would
    # keep a CPU busy.
    assert (mapped == "mapped 0") == (calls != REST), answer
    if "eventfd2" in calls:
        assert (
            rest
            == GOES
            + str(
                OSError(
                    getattr(errno, error),
                    os.strerror(getattr(errno, error)),
                    "eventfd, which a loop of asyncio needs",
                )
            )
            + "\n"
        )
    else:
        assert rest == GOES + "7\n"


def test_rule_15_11_a_setting_that_the_system_refuses_says_so(tmp_path: Path) -> None:
    text = (
        USES
        + """
    if __name__ == "__main__":
        try:
            with Hosts(1, affinity="spread") as hosts:
                through(hosts, [1])
        except OSError as error:
            print(error)
"""
    )
    assert refusing(tmp_path, "EPERM", "sched_setaffinity,sched_getaffinity", text) == (
        "[Errno 1] affinity: the system lets no program choose its CPUs here (Operation not "
        "permitted): leave it out\n"
    )


@pytest.fixture(scope="module")
def fails_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("fails") / "fails_once.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, HERE / "fails_once.c", "-ldl"], check=True
    )
    return library


def failing(library: Path, fails: str) -> dict[str, str]:
    loaded = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
    return {**os.environ, "LD_PRELOAD": loaded, "WEFT_FAILS": fails}


@pytest.mark.parametrize(
    "fails",
    [
        f"futex_waitv={errno.EINTR},pidfd_open={errno.EMFILE},fallocate={errno.EINTR}",
        pytest.param(f"eventfd={errno.EMFILE}", marks=pytest.mark.soak),
    ],
)
def test_rule_15_11_a_call_that_fails_once_changes_nothing(
    tmp_path: Path, fails_once: Path, fails: str
) -> None:
    done = program(tmp_path, USES + RUNS, env=failing(fails_once, fails))
    assert done.stderr == ""
    assert done.stdout.partition("\n")[2] == GOES + "7\n"


def test_rule_15_11_a_lack_of_memory_in_a_host_is_told(tmp_path: Path, fails_once: Path) -> None:
    text = (
        USES
        + """
    if __name__ == "__main__":
        with Hosts(1) as hosts:
            try:
                through(hosts, [1])
            except ProcessDied as error:
                print(str(error).splitlines()[-1])
"""
    )
    fails = f"memfd_create={errno.ENOMEM}"
    assert program(tmp_path, text, env=failing(fails_once, fails)).stdout == (
        "weft.BadUse: no shared memory of 69632 bytes: Cannot allocate memory: "
        "free memory, or raise the limit of open descriptors\n"
    )


def test_rule_15_11_waits_that_fail_keep_no_cpu_busy(tmp_path: Path, fails_once: Path) -> None:
    text = (
        USES
        + """
    import ctypes, time

    @process
    def slow():
        time.sleep(0.3)  # this program waits meanwhile

    if __name__ == "__main__":
        with Hosts(1) as hosts:
            assert through(hosts, [1, 2, 3]) == [1, 2, 3]
            failed = ctypes.CDLL(None).waits_that_failed
            before, since = failed(), time.monotonic()
            Parallel(slow.on(hosts)())
            tries, ms = failed() - before, (time.monotonic() - since) * 1000
        print(tries > 0, tries <= 3 * ms + 300 or tries)
"""
    )
    # Each of three threads tries at most once a millisecond, and once each time that it is woken.
    done = program(tmp_path, text, env=failing(fails_once, f"waits={errno.ENOMEM}"))
    assert (done.stdout, done.stderr) == ("True True\n", "")
