"""weft.processes in a program that cannot be imported: an interactive interpreter, `python -c`, the
standard input (rule 15.3).

The definitions of such a main module go to other OS processes by value, by cloudpickle; without
cloudpickle, the error names it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from test_processes import TIMEOUT, program

pytest.importorskip("cloudpickle")

BLOCKED = "import sys; sys.modules['cloudpickle'] = None\n"


def typed(how: str, text: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that is not in a file. At an interactive interpreter each part between empty
    lines is one statement."""
    text = textwrap.dedent(text)
    given = {"-c": ["-c", text], "-": ["-"], "-i": ["-i", "-q"]}[how]
    return subprocess.run(
        [sys.executable, *given],
        input=text if how != "-c" else "",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


EVERY_WAY = pytest.mark.parametrize("how", ["-c", "-", "-i"])


@EVERY_WAY
def test_a_function_and_the_globals_that_it_uses(how: str) -> None:
    done = typed(
        how,
        """
        from weft.processes import Channel, process, run

        FACTOR = 3

        @process
        def source(out, n):
            for i in range(n):
                out.write(i * FACTOR)

        @process
        def total(inp):
            return sum(inp)

        c = Channel()

        print(run(source(c.writer(), 4), total(c.reader())))
        """,
    )
    assert "[None, 18]" in done.stdout, done.stderr


@EVERY_WAY
def test_processes_of_every_kind_that_it_starts_there(how: str) -> None:
    done = typed(
        how,
        """
        import weft.coroutines as co
        import weft.greenlets as gr
        from weft.processes import process, run

        @co.process
        async def awaiting(n):
            return n * 3

        @gr.process
        def green(n):
            return n * 5

        @process
        def away(n):
            return n + 1

        @process
        def outer(n, first):
            return first.__name__, co.run(first(n)), gr.run(green(n)), run(away(n))

        print(run(outer(4, awaiting)))
        """,
    )
    assert "('awaiting', 12, 20, 5)" in done.stdout, done.stderr


@EVERY_WAY
def test_objects_of_its_classes_as_arguments_values_results_and_failures(how: str) -> None:
    done = typed(
        how,
        """
        from weft.processes import Channel, process, run

        class Thing:
            def __init__(self, n):
                self.n = n

        class Wrong(Exception):
            pass

        @process
        def makes(out, thing):
            out.write(Thing(thing.n + 1))
            return thing

        @process
        def takes(inp):
            return [thing.n for thing in inp]

        @process
        def fails():
            raise Wrong("as it should")

        def main():
            c = Channel()
            thing, numbers = run(makes(c.writer(), Thing(5)), takes(c.reader()))
            print(type(thing) is Thing, thing.n, numbers)
            try:
                run(fails())
            except Wrong as error:
                print("raised", error)

        main()
        """,
    )
    assert "True 5 [6]\nraised as it should\n" in done.stdout, done.stderr


def test_a_process_function_of_a_module_goes_by_its_name() -> None:
    done = typed(
        "-",
        f"""
        import sys
        sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
        import os_process_targets as targets
        from weft.processes import process, run

        @process
        def outer(known):
            import os_process_targets as targets
            return known is targets.who, run(known()) != 0

        print(run(outer(targets.who)))
        """,
    )
    assert done.stdout == "(True, True)\n", done.stderr


@pytest.mark.parametrize("how", ["-c", "-"])
def test_without_cloudpickle_it_says_what_to_do(how: str) -> None:
    done = typed(
        how,
        BLOCKED
        + textwrap.dedent(
            """
        from weft.processes import process, run
        @process
        def one():
            return 1
        run(one())
        """
        ),
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "one was defined in an interactive interpreter, by -c or on the standard input" in last
    assert "move it to a file, or install cloudpickle" in last and "weft-csp[processes]" in last


def test_what_a_file_defines_goes_by_name_and_cloudpickle_is_not_even_imported(
    tmp_path: Path,
) -> None:
    text = """
        import sys
        from weft.processes import process, run

        @process
        def there():
            return "cloudpickle" in sys.modules

        print(run(there()), "cloudpickle" in sys.modules)
        """
    done = program(tmp_path, text)
    assert done.stdout == "False False\n", done.stderr
