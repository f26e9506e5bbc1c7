"""The command compat/old_programs.py, over a checkout made here: which programs it finds, and what
its table reports of a program that runs, of a program that needs a missing module, and of a program
that fails.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).resolve().parents[1] / "old_programs.py"
FILES = {
    "benchmarks/good.py": (
        "import sys\nimport apycsp\nfrom apycsp.utils import handle_common_args\n"
        "assert __name__ == '__main__' and len(sys.argv) == 1\nhandle_common_args()\n"
    ),
    "benchmarks/lacks.py": "import apycsp\nimport cProfile\n",
    "examples/unseen.py": (
        "import asyncio\nasync def f(): raise ValueError('a|b')\n"
        "async def main():\n    asyncio.create_task(f())\n    await asyncio.sleep(0)\n"
        "    await asyncio.sleep(0)\nasyncio.run(main())\n"
    ),
    "examples/lib_user.py": "import helper\n",
    "tests/test_all.py": (
        "from apycsp import Channel\nassert __name__ != '__main__'\n"
        "async def test_awaited(): assert Channel('a').verify()\n"
        "def test_called(): pass\ndef test_fails(): assert 1 == 2, 'wrong'\ndef helper(): raise 1\n"
    ),
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "lib").mkdir()
    (folder / "lib/helper.py").write_text("")
    return folder


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, COMMAND, *arguments], capture_output=True, text=True, check=False
    )


def test_each_program_has_a_line(checkout: Path) -> None:
    done = command("--apycsp", checkout, "--lib", checkout / "lib")
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(line.strip("| ").split(" | ", 2)[1:] for line in done.stdout.splitlines()[2:-2])
    unseen = rows.pop("examples/unseen.py")
    assert unseen != "runs" and "ValueError: a\\|b" in unseen
    assert rows == {
        "benchmarks/good.py": "runs",
        "benchmarks/lacks.py": "ImportError: no module named 'cProfile' (line 2: the module cProfile)",
        "examples/lib_user.py": "runs",
        "tests/test_all.py, test_awaited": "runs",
        "tests/test_all.py, test_called": "runs",
        "tests/test_all.py, test_fails": "AssertionError: wrong",
    }
    assert done.stdout.splitlines()[-1] == "4 run"


def test_a_program_without_an_end_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/hangs.py").write_text("import time\nwhile True: time.sleep(1)\n")
    done = command("--pycsp", tmp_path, "--seconds", "1")
    assert "| pycsp | benchmarks/hangs.py | no end after 1 s |" in done.stdout


def test_without_the_library_a_module_is_lacking(checkout: Path) -> None:
    done = command("--apycsp", checkout, "--only", "lib_user")
    assert "ImportError: no module named 'helper' (line 1: the module helper)" in done.stdout


def test_the_imports_that_micropython_lacks_are_listed(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/a.py").write_text(
        "import time, itertools\ntry:\n    import cProfile\nfinally: import apycsp.net\n"
    )
    (tmp_path / "examples/b.py").write_text("import asyncio\n")
    done = command("--apycsp", tmp_path, "--imports")
    assert done.stdout.splitlines()[2:] == ["| apycsp | examples/a.py | itertools | cProfile |"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "give --apycsp or --pycsp"), (["--apycsp", "nosuch"], "does not exist")],
)
def test_bad_use(arguments: list[str], message: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2 and message in done.stderr
