"""Tests the output of `weft run`, `weft bench` and `weft --version`, where the output goes, and the
exit statuses, in commands that a user would run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from children import child, until_asleep

from weft import cli, styles
from weft._commands import main as _commands

EVERYWHERE = pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])


@pytest.fixture
def program(tmp_path: Path):
    """Writes a program and returns its path."""

    def write(text: str, name: str = "program.py") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(path)

    return write


def environment(**more: str) -> dict[str, str]:
    return {
        **{k: v for k, v in os.environ.items() if k != "WEFT_BACKEND"},
        "PYTHONIOENCODING": "utf-8",
        **more,
    }


def weft(*arguments: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *arguments],
        capture_output=True,
        encoding="utf-8",
        env=environment(**more),
        cwd=cwd,
        timeout=280,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str], status: int = 2) -> str:
    """Returns the only line on stderr of a command that was bad use."""
    assert done.returncode == status, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("weft: ")
    return done.stderr


PIPE = """
    import sys
    from weft import Channel, Parallel, process, run

    @process
    async def put(out, number):
        for i in range(number):
            await out.write(i)

    @process
    async def add(into):
        total = 0
        async for i in into:
            total += i
        return total

    @process
    async def main(number):
        c = Channel("c")
        return (await Parallel(put(c.writer(), number), add(c.reader())))[1]

    if __name__ == "__main__":
        print(run(main(10)), *sys.argv[1:])
"""

# --- run: programs --------------------------------------------------------------------------------


@EVERYWHERE
def test_a_program_runs_on_either_backend(program, backend: str) -> None:
    done = weft("run", program(PIPE), "--on", backend)
    assert (done.returncode, done.stdout, done.stderr) == (0, "45\n", "")


@EVERYWHERE
def test_the_backend_is_chosen_before_the_first_line(program, backend: str) -> None:
    text = "import weft\nprint(weft._backend().__name__ == 'weft.BACKEND')"
    done = weft("run", "--on", backend, program(text.replace("BACKEND", backend)))
    assert done.returncode == 0 and done.stdout.endswith("True\n"), done.stderr


def test_the_environment_chooses_and_on_outranks_it(program) -> None:
    text = "import weft\nprint(weft._backend().__name__ == 'weft.threads')"
    assert weft("run", program(text), WEFT_BACKEND="threads").stdout == "True\n"
    assert weft("run", program(text), "--on=coroutines", WEFT_BACKEND="threads").stdout == "False\n"
    assert weft("run", program(text)).stdout == "False\n"


def test_arguments_after_the_file_are_its_own(program) -> None:
    path = program("import sys\nprint(sys.argv)")
    done = weft("run", path, "--size", "3", "--help", "--on", "threads", "-x", "--", "--on", "mars")
    assert done.stdout == f"{[path, '--size', '3', '--help', '-x', '--on', 'mars']}\n"


def test_a_program_is_main_and_finds_its_neighbours(program) -> None:
    program("VALUE = 7", "neighbour.py")
    path = program(
        "import sys, neighbour\nprint(__name__, __file__, neighbour.VALUE, sys.modules['__main__'].__file__)"
    )
    assert weft("run", path).stdout == f"__main__ {path} 7 {path}\n"


def test_a_program_in_call_style_runs_on_threads(program) -> None:
    text = """
        from weft import Channel, Parallel, process
        @process
        def put(out): out.write("hello")
        @process
        def get(into): return into.read()
        c = Channel("c")
        print(Parallel(put(c.writer()), get(c.reader())))
    """
    assert weft("run", program(text), "--on", "threads").stdout == "[None, 'hello']\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import weft\nasync def f(): await g()", True),
        ("from weft import Channel\nasync def f(): pass", True),
        ("import weft\ndef f(): pass", False),
        ("import weft, asyncio\nasync def f(): pass", False),
        ("import weft\nfrom asyncio import sleep\nasync def f(): pass", False),
        ("import weft\nfrom weft import threads\nasync def f(): pass", False),
        ("import weft.coroutines\nasync def f(): pass", False),
        ("from weft.coroutines import Channel\nasync def f(): pass", False),
        ("from .weft import x\nasync def f(): pass", False),
        ("async def f(): pass", False),
    ],
)
def test_which_programs_are_for_any_backend(text: str, expected: bool) -> None:
    assert styles.is_for_any_backend(text) is expected


HELPER = "async def twice(r):\n    return 2 * await r.read()\n"
ASKS = """
    import weft, sys
    sys.path.append(sys.argv[1])
    from helper import twice

    @weft.process
    async def one(w):
        await w.write(1)

    @weft.process
    async def asks(r):
        print(await twice(r))

    c = weft.Channel()
    weft.run(one(c.writer()), asks(c.reader()))
"""


@EVERYWHERE
def test_a_helper_beside_the_program_is_called_as_it_is(program, backend: str) -> None:  # rule 15
    file, helper = program(ASKS), program(HELPER, "helper.py")
    done = weft("run", "--on", backend, file, "nowhere")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    kept = Path(helper).parent / "__pycache__"
    # code that was compiled without `await` must not be left for other programs to import
    if kept.exists():
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import helper, inspect; assert inspect.iscoroutinefunction(helper.twice)",
            ],
            cwd=kept.parent,
            check=False,
        )
        assert done.returncode == 0


@pytest.mark.parametrize("backend", ["threads", "greenlets"])
def test_a_helper_elsewhere_that_would_be_awaited_is_told(program, tmp_path, backend: str) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library/helper.py").write_text(HELPER)
    (tmp_path / "programs").mkdir()
    file = program(ASKS, "programs/program.py")
    done = weft("run", "--on", backend, file, str(tmp_path / "library"))
    assert done.returncode == 1 and done.stdout == ""
    assert f"twice (helper.py:1) is an `async def`, and on {backend} nothing awaits" in done.stderr
    assert "never awaited" not in done.stderr
    assert weft("run", file, str(tmp_path / "library")).stdout == "2\n"


def test_a_helper_with_an_event_loop_is_left_alone(program) -> None:
    program("import asyncio\n" + HELPER, "helper.py")
    done = weft("run", "--on", "threads", program(ASKS), "nowhere")
    assert done.returncode == 1 and "import no event loop" in done.stderr


def test_a_helper_that_is_no_python_is_told_by_import(program) -> None:
    program("async def (", "helper.py")
    done = weft("run", "--on", "threads", program(ASKS), "nowhere")
    assert done.returncode == 1 and "SyntaxError" in done.stderr


def test_the_call_style_of_a_program_is_the_same_without_the_words() -> None:
    text = """
async def f(x):
    '''Says what it does.'''
    async with x as y:
        async for z in y:
            await z
    return [await v async for v in x if await v] + [lambda: 1]
async def g():
    yield await f(1)
"""
    namespace: dict[str, object] = {}
    exec(styles.compile_for("threads", text, "name.py"), namespace)
    f = namespace["f"]
    assert f.__code__.co_filename == "name.py" and f.__code__.co_firstlineno == 2  # type: ignore[attr-defined]
    assert f.__doc__ == "Says what it does."

    class Both:
        def __enter__(self):
            return [1]

        def __exit__(self, *_):
            pass

        def __iter__(self):
            return iter([0, 2])

    assert f(Both())[:-1] == [2]  # type: ignore[operator]


# --- run: how it ends -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "status"),
    [("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit(7)", 7), ("sys.exit('no')", 1)],
)
def test_a_programs_own_exit_is_passed_on(program, code: str, status: int) -> None:
    done = weft("run", program(f"import sys\n{code}"))
    assert done.returncode == status
    assert done.stderr == ("no\n" if status == 1 else "")


@EVERYWHERE
def test_a_program_that_fails_shows_its_own_traceback(program, backend: str) -> None:
    text = """
        import weft
        @weft.process
        async def divide(): return 1 / 0
        weft.run(divide())
    """
    path = program(text)
    done = weft("run", path, "--on", backend)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and f'"{path}", line 4' in done.stderr
    assert "weft/_commands" not in done.stderr


DEADLOCK = """
    from weft import Channel, Parallel, process, run
    @process
    async def swap(into, out):
        value = await into.read()
        await out.write(value)
    @process
    async def main():
        a, b = Channel("apples"), Channel("pears")
        await Parallel(swap(a.reader(), b.writer()), swap(b.reader(), a.writer()))
    run(main())
"""


@EVERYWHERE
def test_a_deadlock_prints_its_report_and_no_traceback(program, backend: str) -> None:
    """Rule 10.2: stderr has the report of the deadlock, and no traceback."""
    done = weft("run", program(DEADLOCK), "--on", backend)
    assert done.returncode == cli.EXIT["deadlock"] == 3
    assert "Traceback" not in done.stderr and done.stderr.startswith("weft: deadlock")
    for part in ("swap[0]", "swap[1]", "apples", "pears", "program.py:5", "knot"):
        assert part in done.stderr, done.stderr


WAITING = """
    import sys
    import click
    from weft import Cancelled, Channel, Parallel, process, run, sleep
    @process
    async def waits(into):
        try:
            await into.read()
        finally:
            print("cleaned up", flush=True)
    @process
    async def sleeps(out):
        print("ready", flush=True)
        await sleep(1000)
    @process
    async def main():
        c = Channel("orders")
        await Parallel(waits(c.reader()), sleeps(c.writer()))
    @click.command()
    def command():
        run(main())
    if "click" in sys.argv: command(args=[])
    else: run(main())
"""


@EVERYWHERE
@pytest.mark.parametrize("how", ["plain", "click"])
def test_ctrl_c_ends_the_network_cleanly_and_says_where_each_process_was(
    program, backend: str, how: str
) -> None:
    start = ("-m", "weft.cli", "run", program(WAITING), "--on", backend, how)
    with child(*start, env=environment()) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        until_asleep(running.pid)  # by then the reader is also waiting, if it has its own thread
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert running.returncode == cli.EXIT["interrupted"] == 130, err
    assert out == "cleaned up\n"
    assert "Traceback" not in err
    for part in ("waits", "sleeps", "orders", "weft: stopped by Ctrl-C"):
        assert part in err, err


# --- run: bad use ---------------------------------------------------------------------------------


def test_a_file_that_does_not_exist(program, tmp_path: Path) -> None:
    program("", "wordcount.py")
    assert (
        "wordcount.py"
        in one_line(weft("run", str(tmp_path / "wordcuont.py"))).partition("did you mean")[2]
    )
    assert "does not exist; give" in one_line(weft("run", str(tmp_path / "zzz")))
    assert "does not exist; give" in one_line(weft("run", str(tmp_path / "no" / "folder.py")))


@pytest.mark.parametrize(
    "content",
    [
        b"#include <stdio.h>\nint main() {}",
        b"\x7fELF\x00\x01",
        b"\xff\xfe\xfa",
        b"x = (",
        b"def f(:\n",
    ],
)
@EVERYWHERE
def test_a_file_that_is_not_python(tmp_path: Path, content: bytes, backend: str) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(content)
    assert f"{path} is not Python" in one_line(weft("run", str(path), "--on", backend))


def test_a_directory_and_a_file_that_may_not_be_read(program, tmp_path: Path) -> None:
    assert "is a directory; give" in one_line(weft("run", str(tmp_path)))
    if os.geteuid() != 0:  # root may read everything
        path = Path(program("", "secret.py"))
        path.chmod(0)
        assert "cannot read" in one_line(weft("run", str(path)))


@pytest.mark.parametrize(
    ("given", "meant"),
    [("thread", "threads"), ("Coroutines", "coroutines"), ("corutines", "coroutines")],
)
def test_a_backend_that_does_not_exist(program, given: str, meant: str) -> None:
    path = program(PIPE)
    for done in (
        weft("run", path, "--on", given),
        weft("run", "--on", given, path),
        weft("run", path, WEFT_BACKEND=given),
    ):
        line = one_line(done)
        assert f"no backend '{given}'; did you mean '{meant}'?" in line
    assert "did you mean" not in one_line(weft("run", path, "--on", "mars"))
    assert "backends: coroutines, threads" in one_line(weft("run", path, "--on", "mars"))


def test_on_without_a_backend(program) -> None:
    assert "--on needs a backend" in one_line(weft("run", program(PIPE), "--on"))


def test_other_bad_use() -> None:
    assert "did you mean 'run'?" in one_line(weft("rnu"))
    assert "did you mean 'weft run hello.py'?" in one_line(weft("hello.py"))
    assert "--help" in one_line(weft("xyzzy"))
    assert "weft net --help lists them" in one_line(weft("net", "xyzzy"))
    assert "--help" in one_line(weft("run"))
    assert "--help" in one_line(weft("--nonsense"))


# --- the rest -------------------------------------------------------------------------------------


def test_version() -> None:
    done = weft("--version")
    assert done.returncode == 0 and re.fullmatch(r"weft \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["-h"], ["run", "--help"], ["bench", "--help"], ["net"]]
)
def test_help_is_for_a_newcomer(arguments: list[str]) -> None:
    done = weft(*arguments, COLUMNS="100")
    assert done.returncode == 0 and done.stderr == ""
    if arguments[:1] == ["run"]:
        for part in (
            "Examples:",
            "weft run hello.py --on threads",
            "Exit status:",
            "130",
            "deadlock",
        ):
            assert part in done.stdout
    elif arguments[:1] == ["bench"]:
        assert "Examples:" in done.stdout and "./run bench" in done.stdout
    elif arguments[:1] == ["net"]:
        assert "Examples:" in done.stdout and "weft net up" in done.stdout
    else:
        assert "--version" in done.stdout
        for command in ("bench", "build", "host", "lf", "net", "run", "trace", "up"):
            assert re.search(rf"^  {command} +[A-Z]", done.stdout, re.MULTILINE), command


def test_bench_outside_a_checkout_measures_commstime(tmp_path: Path) -> None:
    done = weft("bench", "--json", cwd=tmp_path, WEFT_BENCH_ROUNDS="50")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["bench"] == "commstime" and set(found["ns"]) == {
        "weft.coroutines",
        "asyncio.Queue(1)",
    }
    assert all(ns > 0 for ns in found["ns"].values()) and found["ratio"]["asyncio"] > 0
    plain = weft("bench", "commstime", cwd=tmp_path, WEFT_BENCH_ROUNDS="50")
    assert plain.returncode == 0 and "asyncio.Queue(1)" in plain.stdout


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_bench_passes_on_what_stops_it(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """The signal is sent only to `weft bench`, which passes the signal on to the `./run` that it
    has started.
    """
    for part in ("bench/run.py", "cpp/include/weft/version.hpp"):
        (tmp_path / part).parent.mkdir(parents=True)
        (tmp_path / part).touch()
    (tmp_path / "run").write_text(
        f"""#!{sys.executable}
import os, signal, sys
def ends(number, _):
    print("ended by", signal.Signals(number).name)
    sys.exit(3)
signal.signal(signal.SIGINT, ends)
signal.signal(signal.SIGTERM, ends)
print(" ".join(sys.argv[1:]), flush=True)
signal.pause()
"""
    )
    (tmp_path / "run").chmod(0o755)
    with child("-m", "weft.cli", "bench", "py-ring", "--json", cwd=tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "bench py-ring --json\n"  # the command has begun
        running.send_signal(number)
        assert running.stdout.read() == f"ended by {number.name}\n"
        assert running.wait() == status


def test_bench_gives_the_status_of_the_checkouts(tmp_path: Path) -> None:
    for part in ("bench/run.py", "cpp/include/weft/version.hpp"):
        (tmp_path / part).parent.mkdir(parents=True)
        (tmp_path / part).touch()
    (tmp_path / "run").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "run").chmod(0o755)
    assert weft("bench", cwd=tmp_path).returncode == 7


# --- what is not installed ------------------------------------------------------------------------


def without(*names: str) -> str:
    """Returns a Python program that cannot import some packages, and then runs the command line."""
    return textwrap.dedent(
        f"""
        import sys
        class Hides:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {names!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        import importlib.util
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda n, p=None: None if n in {names!r} else found(n, p)
        sys.meta_path.insert(0, Hides())
        import weft.cli
        sys.exit(weft.cli.main(sys.argv[1:]))
        """
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [(("click",), "'click'"), (("rich",), "'rich'"), (("click", "rich"), "'click' and 'rich'")],
)
def test_the_command_without_its_extra(program, names: tuple[str, ...], message: str) -> None:
    for arguments in (["--version"], ["run", program("import weft")], ["bench"]):
        done = subprocess.run(
            [sys.executable, "-c", without(*names), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        install = f"pip install {' '.join(names)}"
        assert one_line(done) == (
            f"weft: the command line needs {message}: {install} (weft-csp[cli] has them)\n"
        )


def test_the_package_needs_nothing_of_the_commands() -> None:
    """Without rich, every module of the package that is not a command can be imported, and a
    measurement prints its table."""
    text = """
import weft, weft.threads, weft.observe, weft.toolkit, weft._commands.bench, weft.plugnplay
with weft.measuring() as m:
    @weft.process
    async def one(w): await w.write(1)
    @weft.process
    async def other(r): await r.read()
    c = weft.Channel("c")
    weft.run(one(c.writer()), other(c.reader()))
m.table()
import sys
assert not {"click", "rich"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heading, row, verdict = done.stdout.splitlines()
    assert verdict.startswith("where the time goes: ")
    assert heading.split("  ")[0].strip() == "channel" and len(heading) == len(row)
    assert row.split()[:3] == ["c", "1", "0"]


def test_greenlets_without_greenlet(program) -> None:
    path = program("print('it ran')")
    for how in (["--on", "greenlets", path], [path, "--on=greenlets"]):
        done = subprocess.run(
            [sys.executable, "-c", without("greenlet"), "run", *how],
            capture_output=True,
            text=True,
            check=False,
        )
        assert one_line(done).startswith("weft: --on greenlets needs the package 'greenlet'")
    done = subprocess.run(
        [sys.executable, "-c", without("greenlet"), "run", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr


def test_bench_outside_a_checkout_has_no_other(tmp_path: Path) -> None:
    assert "commstime" in one_line(weft("bench", "py-ring", cwd=tmp_path))


def test_bench_in_a_checkout_is_its_run_bench(tmp_path: Path) -> None:
    for part in ("bench/run.py", "cpp/include/weft/weft.hpp"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).write_text("")
    (tmp_path / "run").write_text('#!/bin/sh\necho "$@"\nexit 5\n')
    (tmp_path / "run").chmod(0o755)
    below = tmp_path / "cpp" / "include"
    done = weft("bench", "py-ring", "--json", cwd=below)
    assert (done.returncode, done.stdout) == (5, "bench py-ring --json\n")
    assert weft("bench", cwd=below).stdout == "bench\n"
    assert _commands.find_checkout(below) == tmp_path


# --- weft trace -----------------------------------------------------------------------------------


@EVERYWHERE
def test_a_trace_and_its_summary(program, tmp_path: Path, backend: str) -> None:
    """Rule 14.6: `weft run --trace` writes a trace, which `weft trace` summarises and draws."""
    out, picture = tmp_path / "out.jsonl", tmp_path / "out.json"
    done = weft("run", program(PIPE), "--on", backend, f"--trace={out}", "3")
    assert done.returncode == 0, done.stderr
    drawn = tmp_path / "out.svg"
    output = weft("trace", str(out), "--json", "--chrome", str(picture), "--picture", str(drawn))
    assert output.returncode == 0, output.stderr
    assert drawn.read_text().count('class="value"') == 10  # one channel, and ten values
    summary = json.loads(output.stdout)
    assert summary["unfinished"] == [] and not summary["cut_off"]
    done_by = {row["name"]: row["operations"] for row in summary["processes"]}
    assert done_by["main/main/put"] == done_by["main/main/add"] == 10
    assert json.loads(picture.read_text())["traceEvents"]
    table = weft("trace", str(out))
    assert "main/main/put" in table.stdout and "events in" in table.stdout


def test_the_trace_of_a_deadlock_is_whole(program, tmp_path: Path) -> None:
    """Rule 14.6: the trace of a deadlock contains the withdrawn operation."""
    out = tmp_path / "out.jsonl"
    text = """
    from weft import Channel, process, run

    @process
    async def waits(r, w):
        await r.read()

    c = Channel("c")
    run(waits(c.reader(), c.writer()))
    """
    assert weft("run", program(text), "--trace", str(out)).returncode == 3
    (row,) = json.loads(weft("trace", str(out), "--json").stdout)["processes"]
    assert row["withdrawn"] == 1 and row["waited"] > 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file that is always full")
def test_a_full_disk_is_told_in_one_line(program, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    assert weft("run", program(PIPE), "--trace", str(out)).returncode == 0
    for arguments in (
        ["--version"],
        ["--help"],
        ["trace", str(out)],
        ["trace", str(out), "--json"],
    ):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "weft.cli", *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        assert done.stderr.endswith("could not be written: No space left on device\n")
        assert len(done.stderr.splitlines()) == 1, done.stderr
    done = weft("run", program(textwrap.dedent(PIPE) + "print('done')\n"), "--trace", "/dev/full")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stdout.endswith("done\n")  # the text could be written


def test_a_summary_for_nobody(program, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    assert weft("run", program(PIPE), "--trace", str(out)).returncode == 0
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "weft.cli", "trace", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (closed.returncode, closed.stderr) == (0, "")


def test_what_is_no_trace(program, tmp_path: Path) -> None:
    assert "cannot read" in one_line(weft("trace", str(tmp_path / "none")))
    assert "not a line of a trace" in one_line(weft("trace", program("x")))
    assert "--trace needs a file" in one_line(weft("run", program("1"), "--trace"))
    nowhere = str(tmp_path / "no" / "where")
    assert "cannot write" in one_line(weft("run", program("1"), "--trace", nowhere))
    out = tmp_path / "t.jsonl"
    assert weft("run", program("1"), "--trace", str(out)).returncode == 0
    assert "cannot write" in one_line(weft("trace", str(out), "--chrome", nowhere))
    assert "cannot write" in one_line(weft("trace", str(out), "--picture", nowhere))
