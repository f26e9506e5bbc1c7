"""Fixtures for the tests of the tools: a scratch checkout, in which rooms and commands can be
replaced by stand-ins.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The folders that contain texts and programs of the checkout.
FOLDERS = (
    "bench",
    "conformance",
    "cpp",
    "decisions",
    "examples",
    "lf",
    "mcu",
    "micropython",
    "compat",
    "net",
    "packaging",
    "python",
    "tools",
)
SETTINGS = ("WEFT_LOCKED", "WEFT_RETRY_DELAY")


def numbers_of_version() -> tuple[int, int, int]:
    """Returns MAJOR, MINOR, PATCH of version.hpp."""
    text = (ROOT / "cpp/include/weft/version.hpp").read_text()
    major, minor, patch = (
        int(re.findall(rf"^#define WEFT_VERSION_{name} (\d+)$", text, re.MULTILINE)[0])
        for name in ("MAJOR", "MINOR", "PATCH")
    )
    return major, minor, patch


VERSION = ".".join(map(str, numbers_of_version()))


def plain_signals() -> None:
    """Resets signals in a child before exec: a shell can ignore Ctrl-C for background programs,
    nohup ignores SIGHUP, and children inherit that.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class House:
    """A checkout with the real entry point and tasks, to which a test adds files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bin = path / "fake-bin"  # this folder comes first on PATH
        self.bin.mkdir()
        shutil.copy(ROOT / "run", path / "run")
        shutil.copytree(
            ROOT / "tools", path / "tools", ignore=shutil.ignore_patterns("tests", "__pycache__")
        )

    def script(self, name: str, text: str, shell: str = "#!/usr/bin/env bash\nset -eu\n") -> Path:
        """Makes an executable file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shell + text)
        path.chmod(0o755)
        return path

    def rooms(self, **rooms: str) -> None:
        """Makes rooms.toml from fields such as `name="budget = 5"`."""
        lines = [f"{name} = {{ {fields} }}\n" for name, fields in rooms.items()]
        text = "total = 100\nsetup = 10\nspare = 10\n[rooms]\n" + "".join(lines)
        (self.path / "tools/rooms.toml").write_text(text)

    def hangs_after(self, seconds: float) -> None:
        """Makes a room count as hung after `seconds` without a sign of life. hangs_after() must be
        called after rooms().
        """
        path = self.path / "tools/rooms.toml"
        path.write_text(f"still = {seconds}\n{path.read_text()}")

    def room(self, name: str, text: str, kind: str = "run") -> None:
        self.script(f"{name}/tests/{kind}", text)

    def env(self, **more: str) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        return {**env, "PATH": f"{self.bin}:{env['PATH']}", "WEFT_RETRY_DELAY": "0", **more}

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs `./run COMMAND…` to its end."""
        return self.call("./run", *command, **more)

    def bash(self, text: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a script over lib.sh."""
        return self.call("bash", "-c", f"source tools/lib.sh; {text}", **more)

    def call(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.path,
            env=self.env(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            preexec_fn=plain_signals,
        )


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def is_gone(pid: int) -> bool:
    """Returns whether the process has ended. (A zombie that has not been reaped yet has ended.)"""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"
