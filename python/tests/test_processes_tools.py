"""Tools that inspect a program also cover its OS processes of weft.processes: coverage, pytest's
capfd and xdist, a notebook (rule 15.1).

Each test starts programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from test_processes import TIMEOUT

WORK = """
    from weft.processes import Channel, Hosts, Parallel, process, run

    @process
    def numbers(out):
        for i in range(3):
            out.write(i)

    @process
    def only_elsewhere(inp):
        total = 0
        for i in inp:
            total += i
        print("total", total)
        return total

    def network():
        c = Channel("c")
        return Parallel(numbers(c.writer()), only_elsewhere(c.reader()))[1]
    """


def done(folder: Path, *command: str, **environment: str) -> str:
    """Runs Python in `folder`, and returns its output."""
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, **environment},
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_coverage_counts_what_runs_in_a_child(tmp_path: Path, start: str) -> None:
    """Coverage runs with its own settings; the child of a fork server ends by _exit(), as forks
    do."""
    write(
        tmp_path,
        work=WORK,
        program=f"""
            import work
            from weft.processes import Channel, Hosts, Parallel

            if __name__ == "__main__":
                c = Channel("c")
                with Hosts(2, start={start!r}) as hosts:
                    Parallel(work.numbers.on(hosts)(c.writer()), work.only_elsewhere.on(hosts)(c.reader()))
            """,
    )
    (tmp_path / "settings").write_text(
        "[run]\nparallel = True\npatch = subprocess, fork, _exit\nsource = .\n", encoding="utf-8"
    )
    done(tmp_path, "-m", "coverage", "run", "--rcfile=settings", "program.py")
    done(tmp_path, "-m", "coverage", "combine", "--rcfile=settings")
    done(tmp_path, "-m", "coverage", "json", "--rcfile=settings", "-o", "found.json")
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    missing = found["files"]["work.py"]["missing_lines"]
    lines = textwrap.dedent(WORK).splitlines()
    left = {lines[n - 1].strip() for n in missing}
    assert left <= {
        'c = Channel("c")',
        "return Parallel(numbers(c.writer()), only_elsewhere(c.reader()))[1]",
    }, left


@pytest.mark.soak
def test_pytest_and_xdist(tmp_path: Path) -> None:
    """capfd captures the output of a child, in each of xdist's workers."""
    write(
        tmp_path,
        work=WORK,
        test_it="""
            import pytest, work

            @pytest.mark.parametrize("i", range(3))
            def test_it(capfd, i):
                assert work.network() == 3
                assert capfd.readouterr().out == "total 3\\n"
            """,
    )
    output = done(tmp_path, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_it.py")
    assert "3 passed" in output


def test_faulthandler_of_the_program_is_its_own(tmp_path: Path) -> None:
    """A dump that is requested in the parent, while children run, shows the parent's threads."""
    write(
        tmp_path,
        work=WORK,
        program="""
            import faulthandler, sys
            faulthandler.enable()
            import work

            if __name__ == "__main__":
                work.network()
                faulthandler.dump_traceback(sys.stdout)
                assert faulthandler.is_enabled()
            """,
    )
    assert "program.py" in done(tmp_path, "program.py")


def test_a_notebook(tmp_path: Path) -> None:
    """Cells define processes and run them; the output of a child, and its failure, are in the
    output of the cell."""
    cells = [
        "from weft.processes import Channel, Hosts, Parallel, process, run_async\nfactor = 7",
        "@process\ndef worker(inp):\n    print('from the child')\n    return factor * inp.read()\n\n"
        "@process\ndef source(out):\n    out.write(6)",
        "c = Channel('c')\n(await run_async(source(c.writer()), worker(c.reader())))[1]",
        "@process\ndef fails():\n    raise ValueError('in the child')\n\n"
        "try:\n    await run_async(fails())\nexcept ValueError as error:\n    print(error, error.__cause__ is not None)",
    ]
    write(
        tmp_path,
        program=f"""
            import nbformat
            from nbclient import NotebookClient

            cells = [nbformat.v4.new_code_cell(text) for text in {cells!r}]
            notebook = nbformat.v4.new_notebook(cells=cells)
            NotebookClient(notebook, timeout=280, startup_timeout=280, kernel_name="python3").execute()
            for cell in notebook.cells:
                for output in cell.outputs:
                    print(output.get("text") or output["data"]["text/plain"])
            """,
    )
    output: Any = done(tmp_path, "program.py", JUPYTER_PLATFORM_DIRS="1")
    assert (
        "42" in output.split() and "from the child" in output and "in the child True" in output
    ), output
