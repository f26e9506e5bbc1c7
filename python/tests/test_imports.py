"""Tests how many modules an import of the package costs: fewer than an import of asyncio. (For the
time, run python -X importtime -c "import weft.coroutines".) Also tests Ctrl-C during the import.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest


def imported(statement: str) -> set[str]:
    """Returns the modules that a fresh interpreter imports for the statement."""
    text = f"import sys, json; before = set(sys.modules)\n{statement}\nprint(json.dumps([*set(sys.modules) - before]))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


# Modules that a program imports only when it uses them.
LATER = {
    "argparse",
    "asyncio",
    "click",
    "concurrent.futures",
    "dataclasses",
    "logging",
    "pickle",
    "rich",
    "socket",
    "ssl",
    "subprocess",
    "traceback",
    "weft._backends.asyncio",
    "weft._watching.measure",
    "weft.observe",
}


@pytest.mark.parametrize("module", ["weft", "weft.coroutines", "weft.threads"])
def test_importing_it_imports_less_than_asyncio(module: str) -> None:
    found = imported(f"import {module}")
    assert found & LATER == set()
    assert len(found) < len(imported("import asyncio"))


# Modules that an OS process of weft.processes does not import until it needs them.
LATER_THERE = {
    "concurrent.futures",
    "dataclasses",
    "hashlib",
    "inspect",
    "logging",
    "multiprocessing",
    "pathlib",
    "subprocess",
    "tempfile",
    "traceback",
    "weft._hosts.executor",
    "weft._hosts.start",
}


def test_what_an_os_process_imports_before_the_program_itself() -> None:
    assert imported("import weft._hosts.child, weft.processes") & LATER_THERE == set()


@pytest.mark.parametrize("name", ["Executor", "freeze_support"])
def test_what_is_not_imported_there_is_had_by_its_name(name: str) -> None:
    imported(f"from weft.processes import {name}\nassert callable({name})")
    imported(f"from weft.processes import *\nassert callable({name})")


def test_weft_alone_imports_no_backend() -> None:
    assert {m for m in imported("import weft") if m.startswith("weft.")} == {"weft._name_clash"}


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_what_observes_is_there_when_it_is_asked_for(backend: str) -> None:
    for name in ("measuring", "deadlocks"):
        assert "weft.observe" in imported(f"from weft.{backend} import {name}")
    assert "weft._watching.measure" in imported(
        f"from weft.{backend} import *\nassert measuring and tracing"
    )
    imported(f"import weft.{backend} as b\nassert {{'measuring', 'run'}} <= set(dir(b))")
    imported(
        f"import weft.{backend} as b\ntry: b.measurng\nexcept AttributeError as e: assert 'measurng' in str(e)\nelse: raise 1"
    )


@pytest.mark.parametrize("stderr, told", [("sys.stderr", 1), ("None", 0), ("closed", 0)])
def test_of_another_weft_is_told_on_stderr_and_nowhere_else(
    tmp_path: Path, capfd: Any, monkeypatch: Any, stderr: str, told: int
) -> None:
    """The line is printed once in a program and its OS processes; a closed stderr does not prevent
    the import.
    """
    from weft import _name_clash

    (tmp_path / "weft-1.0.dist-info").mkdir()
    monkeypatch.delenv(_name_clash.TOLD, raising=False)
    monkeypatch.setattr(_name_clash, "told", "")
    closed = io.StringIO()
    closed.close()
    given = {"sys.stderr": sys.stderr, "None": None}.get(stderr, closed)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", given)
        _name_clash.tell_of_another(str(tmp_path / "weft"))
    out, err = capfd.readouterr()
    assert out == "" and err.count("another package named weft") == told
    if told:
        monkeypatch.setenv(_name_clash.TOLD, _name_clash.told)
        _name_clash.tell_of_another(str(tmp_path / "weft"))
        assert capfd.readouterr().err == ""


def test_ctrl_c_before_there_are_commands() -> None:
    """Ctrl-C arrives while the package's own modules are imported: the program gets the exit status
    of Ctrl-C, and prints no traceback of these modules."""
    code = """
        import sys

        class Interrupted:
            def find_spec(self, name, path=None, target=None):
                if name == "weft._commands.main":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupted())
        from weft import cli
        sys.exit(cli.main(["--version"]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")
