"""Runs the programs of aPyCSP and of PyCSP-locksharing, unchanged, on MicroPython, and prints what
became of each, as a table in Markdown.

    .venv/bin/python compat/old_programs.py --apycsp FOLDER --pycsp FOLDER [--lib FOLDER]

The folders are checkouts of the two repositories, and with --lib a folder that has modules of
micropython-lib. None of them is part of Weft. A program is a file of benchmarks/ or examples/, or a
test function of tests/. Before a program runs, `weft.compat.as_published` gives it the names that
it imports. MicroPython is the unix port that `./run setup micropython` builds.

Invariants
- No program is changed, not even its imports.
- A program that does not end well has a line with the reason: what MicroPython and the given
  modules lack, found in its text as `weft portable` finds it, or else the last line that it wrote.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from weft._commands import portable_source
from weft._commands.portable_names import facts

ROOT = Path(__file__).resolve().parent.parent
PORT = ROOT / ".build/micropython/micropython"
FOLDERS = ("benchmarks", "examples", "tests")
# What runs before a program: the names as published, the program's arguments, its text.
DRIVER = """\
import sys
import weft.compat.as_published as published
published.{library}()
sys.argv[:] = [{file!r}] + {arguments!r}
scope = {{"__name__": {name!r}, "__file__": {file!r}}}
with open({file!r}) as f:
    exec(compile(f.read(), {file!r}, "exec"), scope)
test = {test!r}
if test:
    result = scope[test]()
    if hasattr(result, "send") or hasattr(result, "__await__"):
        import asyncio
        asyncio.run(result)
"""


@dataclass(frozen=True)
class Program:
    """A program: its library, its file, and the test function if it is one."""

    library: str
    file: Path
    test: str = ""

    @property
    def title(self) -> str:
        name = f"{self.file.parent.name}/{self.file.name}"
        return f"{name}, {self.test}" if self.test else name


def programs(library: str, checkout: Path) -> Iterator[Program]:
    for folder in FOLDERS:
        for file in sorted((checkout / folder).glob("*.py")):
            if folder != "tests":
                yield Program(library, file)
                continue
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                name = getattr(node, "name", "")
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name[:4] == "test":
                    yield Program(library, file, name)


def lacks(program: Program, library: Path | None) -> list[str]:
    """Returns the lines and names of a program's text that MicroPython lacks, without the modules
    in the folder `library`.
    """
    judged = portable_source.judge(program.file, program.file.read_bytes())
    found = []
    for f in judged.findings:
        module = f.name.removeprefix("the module ")
        own = module.partition(".")[0] in ("apycsp", "pycsp")
        brought = library is not None and (library / f"{module}.py").exists()
        if f.lacks == "MicroPython" and f.file == program.file and not own and not brought:
            found.append(f"line {f.line}: {f.name}")
    return list(dict.fromkeys(found))


def installed(folder: Path) -> Path:
    """Puts Weft and the old names into a folder, as mip does."""
    for package in ("micropython/weft", "compat/micropython/weft"):
        shutil.copytree(ROOT / package, folder / "weft", dirs_exist_ok=True)
    return folder


def started(
    program: Program, weft: Path, library: Path | None, arguments: list[str]
) -> subprocess.Popen[str]:
    source = DRIVER.format(
        library=program.library,
        file=str(program.file),
        arguments=arguments,
        name="tested" if program.test else "__main__",
        test=program.test,
    )
    paths = [weft, *([library] if library else []), ".frozen"]
    return subprocess.Popen(
        [PORT, "-X", "heapsize=512m", "-c", source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MICROPYPATH": ":".join(map(str, paths))},
    )


def ended(process: subprocess.Popen[str], seconds: float) -> tuple[bool, str]:
    """Waits for a program. Returns whether it ended well, and the last line that it wrote."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False, f"no end after {seconds:.0f} s"
    # If no code has received the exception of a task of asyncio, a traceback is written and the
    # program continues.
    ended_well = process.returncode == 0 and "Traceback" not in out + err
    lines = (err or out).strip().splitlines()
    return ended_well, lines[-1] if lines else f"status {process.returncode}"


# The examples of apycsp.net: the server of each client.
SERVERS = {
    "net_basic_client.py": "net_basic_server.py",
    "net_commstime_client.py": "net_commstime_server.py",
}
# On CPython, for a client that does not run on MicroPython.
CLIENT = """\
import sys
import weft.compat.apycsp as apycsp, weft.compat.apycsp.net, weft.compat.apycsp.utils
import weft.compat.apycsp.plugNplay
for part in ("", ".net", ".utils", ".plugNplay"):
    sys.modules["apycsp" + part] = sys.modules["weft.compat.apycsp" + part]
file, *sys.argv[1:] = sys.argv[1:]
exec(compile(open(file).read(), file, "exec"), {"__name__": "__main__"})
"""


def run(program: Program, weft: Path, library: Path | None, seconds: float) -> tuple[bool, str]:
    """Runs a program, and returns what `ended` returns. A server is run with its client, and a
    client with its server. The server is stopped by Ctrl-C when its client has ended.
    """
    name = program.file.name
    if name not in SERVERS and name not in SERVERS.values():
        return ended(started(program, weft, library, []), seconds)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = next(c for c, s in SERVERS.items() if name in (c, s))
    place = program.file.parent
    server = started(
        Program(program.library, place / SERVERS[client]), weft, library, ["-p", str(port)]
    )
    wait_for(port, server)
    asking = ["-s", f"127.0.0.1:{port}"]
    if name in SERVERS or client == "net_basic_client.py":
        other = started(Program(program.library, place / client), weft, library, asking)
    else:
        other = subprocess.Popen(
            [sys.executable, "-c", CLIENT, place / client, *asking],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    of_client = ended(other, seconds)
    server.send_signal(signal.SIGINT)
    of_server = ended(server, seconds)
    if name in SERVERS:
        return of_client
    return of_server if of_client[0] else (False, f"its client: {of_client[1]}")


def wait_for(port: int, server: subprocess.Popen[str]) -> None:
    """Waits until a server listens, or has ended."""
    while server.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return


def imports(program: Program) -> tuple[list[str], list[str]]:
    """Returns the modules that a file imports, also in `try:`, and that MicroPython lacks: first
    those that micropython-lib has, and then the others.
    """
    brought, lacking = [], []
    for node in ast.walk(ast.parse(program.file.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name.partition(".")[0] not in ("apycsp", "pycsp", "sys", *facts()["modules"]):
                (brought if name in facts()["mip"] else lacking).append(name)
    return sorted({*brought}), sorted({*lacking})


def print_imports(chosen: list[Program]) -> None:
    click.echo("| library | file | micropython-lib has | nobody has |\n|---|---|---|---|")
    for program in dict.fromkeys(Program(p.library, p.file) for p in chosen):
        brought, lacking = (", ".join(names) for names in imports(program))
        if brought or lacking:
            click.echo(f"| {program.library} | {program.title} | {brought} | {lacking} |")


def became(program: Program, weft: Path, library: Path | None, seconds: float) -> tuple[bool, str]:
    """Returns whether a program ran, and a sentence about it for the table."""
    ended_well, last = run(program, weft, library, seconds)
    if ended_well:
        return True, "runs"
    needed = lacks(program, library)
    shown = last.replace("|", "\\|")[:160]
    return False, f"{shown} ({'; '.join(needed)})" if needed else shown


@click.command()
@click.option("--apycsp", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pycsp", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--lib", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--imports", "listed", is_flag=True, help="List what MicroPython lacks; run nothing.")
@click.option("--only", default="", help="Run the programs that have this in their names.")
@click.option("--seconds", default=280.0, help="How long a program may run.")
def main(
    apycsp: Path | None,
    pycsp: Path | None,
    lib: Path | None,
    listed: bool,
    only: str,
    seconds: float,
) -> None:
    """Run the old programs on MicroPython, and print a table."""
    if apycsp is None and pycsp is None:
        raise click.UsageError("give --apycsp or --pycsp, a checkout of the library")
    with_folder = [("apycsp", apycsp), ("pycsp", pycsp)]
    chosen = [p for name, folder in with_folder if folder for p in programs(name, folder.resolve())]
    if listed:
        print_imports(chosen)
        return
    if not PORT.exists():
        raise click.UsageError("MicroPython is not here: ./run setup micropython")
    click.echo("| library | program | on MicroPython |\n|---|---|---|")
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        weft = installed(Path(folder))
        for program in chosen:
            if only in f"{program.library} {program.title}":
                ended_well, text = became(program, weft, lib and lib.resolve(), seconds)
                ran += ended_well
                click.echo(f"| {program.library} | {program.title} | {text} |")
                sys.stdout.flush()
    click.echo(f"\n{ran} run")


if __name__ == "__main__":
    main()
