"""Measures how long an editor waits: from a change in a file of 500 lines to its problems, and
`weft lf check`.

    .venv/bin/python lf/tests/editing.py

Each figure is the least of RUNS runs, as time that has passed and as processor time (which other
programs on the machine change less). `weft lf check` is warm: the messages about the bodies are in
the user's cache.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SOURCE))

from weft_lf.server import read, write  # noqa: E402

RUNS = 7
REACTORS = 38
COMMAND = [sys.executable, "-m", "weft_lf"]
# The modules are compiled already, as in an installed Weft.
CACHE = tempfile.mkdtemp()
ENV = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONPYCACHEPREFIX": CACHE}
ENV.pop("PYTHONDONTWRITEBYTECODE", None)
TICK = os.sysconf("SC_CLK_TCK")


def program() -> str:
    """Returns a program of some 500 lines: reactors with ports, states, actions and bodies."""
    reactors = "".join(
        f"""reactor R{i}(n: int = {i}) {{
  input in: int
  output out: int
  state s: int = 0
  logical action a: int
  reaction(in) -> out, a {{=
    self->s += in->value;
    lf_set(out, self->s + self->n);
    lf_schedule_int(a, MSEC(1), self->s);
  =}}
  reaction(a) {{= lf_print("%d", a->value); =}}
}}
"""
        for i in range(REACTORS)
    )
    made = "".join(f"  r{i} = new R{i}()\n" for i in range(REACTORS))
    joined = "".join(f"  r{i}.out -> r{i + 1}.in\n" for i in range(REACTORS - 1))
    joined += f"  r{REACTORS - 1}.out -> r0.in after 1 msec\n"  # otherwise there is a warning
    return f"target C {{ timeout: 1 sec }}\n{reactors}main reactor {{\n{made}{joined}}}\n"


def used_by(process: int) -> float:
    """Returns the processor time of a process and of its children that have ended, in s."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICK


def least(what: str, once: Callable[[int], tuple[float, float]]) -> None:
    found = [once(run) for run in range(RUNS)]
    passed, used = (min(column) for column in zip(*found, strict=True))
    print(f"{what:48} {passed:6.3f} s, processor {used:5.2f} s")


class Editor:
    """An editor that has a file open. `process` is the server."""

    def __init__(self, path: Path, text: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV
        )
        self.path, self.text = path, text
        self.tell("initialize", {}, id=1)
        document = {"uri": path.as_uri(), "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        self.until(lambda found: True)

    def tell(self, method: str, given: dict[str, Any], **more: Any) -> None:
        assert self.process.stdin is not None
        write(self.process.stdin, {"jsonrpc": "2.0", "method": method, "params": given, **more})
        self.process.stdin.flush()

    def until(self, shown: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Reads messages until the server publishes diagnostics that satisfy `shown`."""
        assert self.process.stdout is not None
        while True:
            message = read(self.process.stdout)
            assert message is not None
            if message.get("method") != "textDocument/publishDiagnostics":
                continue
            if shown(message["params"]["diagnostics"]):
                return

    def type(self, old: str, new: str, part: str) -> tuple[float, float]:
        """Types `new` in place of `old`. Returns the time until a problem with `part` is shown."""
        document = {"uri": self.path.as_uri()}
        begin, before = time.perf_counter(), used_by(self.process.pid)
        text = self.text.replace(old, new, 1)
        given = {"textDocument": document, "contentChanges": [{"text": text}]}
        self.tell("textDocument/didChange", given)
        self.until(lambda found: any(part in one["message"] for one in found))
        passed = time.perf_counter() - begin
        used = used_by(self.process.pid) - before
        given = {"textDocument": document, "contentChanges": [{"text": self.text}]}
        self.tell("textDocument/didChange", given)
        self.until(lambda found: not found)
        return passed, used


def main() -> None:
    text = program()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Big.lf"
        path.write_text(text)
        print(f"{text.count(chr(10))} lines, the least of {RUNS} runs")
        editor = Editor(path, text)
        least(
            "a key until a name that is not there is told",
            lambda run: editor.type("r3.out ->", f"r3.out{run} ->", f"out{run}"),
        )
        least(
            "a key until an error in a body is told",
            lambda run: editor.type("self->s += in->value", f"self->t{run} += 1", f"t{run}"),
        )
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        editor.process.wait()

        def check(_: int) -> tuple[float, float]:
            begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([*COMMAND, "check", str(path)], check=True, env=ENV)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return time.perf_counter() - begin, used

        check(0)
        least("weft lf check, with bodies, warm", check)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(CACHE)
