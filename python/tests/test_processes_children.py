"""What runs in an OS process of weft.processes behaves as it would here: options, output, forks (rule 15.1). Each starts an interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import away
import pytest
from test_processes import TIMEOUT, program

from weft.processes import Channel, Parallel, run


@pytest.mark.parametrize(
    "options",
    [("-W", "error::UserWarning"), ("-X", "weft=1", "-X", "faulthandler"), ("-O", "-W", "ignore")],
    ids=" ".join,
)
def test_options_of_the_interpreter_go_with_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    text = """
        import sys
        from weft.processes import process, run

        @process
        def told():
            return sys.warnoptions, sys._xoptions, sys.flags.optimize, sys.argv, sys.path

        mine = sys.warnoptions, sys._xoptions, sys.flags.optimize, sys.argv, sys.path
        there = run(told())
        assert there == mine, (there, mine)
        print(mine[:3])
    """
    path = tmp_path / "program.py"
    done = program(tmp_path, text, *options, str(path), "an argument")
    assert done.returncode == 0, done.stderr
    assert done.stdout != "([], {}, 0)\n"


def test_what_it_says_comes_out_here(capfd: pytest.CaptureFixture[str]) -> None:
    run(away.says())
    out, err = capfd.readouterr()
    assert out == "printed\nwritten\n"
    assert "UserWarning: warned" in err and "logged" in err and "complained" in err


def test_a_fork_in_the_middle() -> None:
    """The copy has no part in the network: the process goes on, and its ends are its own."""
    c = Channel("c")
    (status, pid), got = Parallel(away.forks(c.writer()), away.total(c.reader()))
    assert os.waitstatus_to_exitcode(status) == 7
    assert pid != os.getpid() and got == 3


def test_a_fork_that_is_killed_in_the_middle_ends_nobody_elses_channels() -> None:
    c = Channel("c")
    (status, _), got = Parallel(away.forks(c.writer(), kill=True), away.total(c.reader()))
    assert os.waitstatus_to_exitcode(status) == -9
    assert got == 3


@pytest.mark.parametrize("code", [0, 4, "a text", None])
def test_sys_exit_arrives_with_its_code(code: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        run(away.leaves(code))
    assert caught.value.code == code


# --- breakpoint() ---------------------------------------------------------------------------------------------------

STOPS = """
    from weft.processes import process, run

    @process
    def there(n):
        breakpoint()
        return n

    if __name__ == "__main__":
        print("result", run(there(5)))
    """


def test_breakpoint_asks_at_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(STOPS), encoding="utf-8")
    at_a_terminal = "import pty, sys; sys.exit(pty.spawn([sys.executable, 'program.py']))"
    done = subprocess.run(
        [sys.executable, "-c", at_a_terminal],
        input="p 'it is', n + 37\nn = 6\ncontinue\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=tmp_path,
        check=False,
    )
    assert "('it is', 42)" in done.stdout, done.stdout + done.stderr
    assert "result" in done.stdout and done.returncode == 0, done.stdout


def test_breakpoint_without_a_terminal_says_so(tmp_path: Path) -> None:
    done = program(tmp_path, STOPS, start_new_session=True)
    assert done.returncode == 1
    assert "BadUse: breakpoint() in an OS process asks at the terminal" in done.stderr


def test_breakpoint_obeys_its_variable(tmp_path: Path) -> None:
    done = program(
        tmp_path, STOPS, start_new_session=True, env={**os.environ, "PYTHONBREAKPOINT": "0"}
    )
    assert (done.returncode, done.stdout) == (0, "result 5\n"), done.stderr
