"""The command `weft up`: agents on many nodes, for one program or until Ctrl-C.

Invariants: those of _commands/main.py. However `weft up` ends, the agents that it started end too
(_net/ssh_agents.py), and the program ends before them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from weft._commands.bad_use import BadUse, did_you_mean
from weft._commands.net import KEYS_HELP, agent_options, until_stopped
from weft._net import calls as _net_calls
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import nodes as _net_nodes
from weft._net import ssh_agents as _net_up
from weft.cli import EXIT
from weft.errors import BadUse as Refused

__all__ = ["up"]

PROGRAM_GRACE = 10.0  # seconds for the program to end after Ctrl-C
HELP = """\b
Exit status:
  0    the program ended well
  1    an agent did not start, or all of them have ended; stderr says which and why
  2    bad use: the one line on stderr says what to do, and nothing was started
  130  stopped by Ctrl-C    143  stopped by SIGTERM
A PROGRAM's own status is passed on.
"""


class _NotStarted(click.ClickException):
    exit_code = EXIT["failed"]


def _server_of(server: str | None, folder: Path, nodes: list[_net_nodes.Node]) -> str:
    """Returns the URL by which the nodes reach the server."""
    if server:
        if not re.fullmatch(r"(nats|tls)://[^\s/]+:\d+", server):
            raise BadUse(f"a server must be nats://HOST:PORT, not {server!r}")
        return server
    url = _net_keys.server_of(folder)
    host, port = _net_link.parted(url.partition("://")[2])
    if host in ("0.0.0.0", "::"):
        return f"nats://{os.uname().nodename}:{port}"
    here = ("127.0.0.1", "::1", "localhost")
    if host in here and any(node.address not in here for node in nodes):
        raise BadUse(
            f"{url} can be reached from this machine only: start it with "
            f"`weft net up --address 0.0.0.0:{port}`, or give --join nats://HOST:PORT"
        )
    return url


def _shell_line(node: _net_nodes.Node, given: dict[str, Any]) -> str:
    """Returns the command line that the node's shell runs."""
    words = ["host", "--join", given["server"], "--name", node.name, "--json", "--attached"]
    words += ["--address", given["address"].replace("NODE", node.address)]
    for run in given["allow"]:
        words += ["--allow", run]
    if hosts := given["hosts"] or node.slots:
        words += ["--hosts", str(hosts)]
    for option in ("relay", "memory_limit", "nice"):
        if given[option] not in (None, 0, "auto"):
            words += [f"--{option.replace('_', '-')}", str(given[option])]
    if given["trust"]:
        words.append("--trust")
    if given["remote_keys"]:
        words += ["--keys", given["remote_keys"]]
    folder = shlex.quote(given["directory"])
    return f"cd {folder} && {given['weft']} {shlex.join(words)}"


@contextlib.contextmanager
def _program(command: tuple[str, ...], url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the program, which finds the same server and keys as `weft up`. The program has ended
    when the block is left. If Ctrl-C ends the block, the terminal has sent SIGINT to the program
    too; otherwise the program is sent SIGTERM.
    """
    where = {**os.environ, "WEFT_SERVER": url, "WEFT_NET": str(folder.resolve())}
    process = subprocess.Popen(command, env=where)
    try:
        yield process
    except BaseException as error:
        if getattr(error, "number", None) != signal.SIGINT:
            process.terminate()
        raise
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                process.wait(PROGRAM_GRACE)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        process.wait()


def _nodes_of(nodefile: str | None, ssh: tuple[str, ...]) -> list[_net_nodes.Node]:
    if nodefile is not None and ssh:
        raise BadUse("--nodefile and --ssh: give one of the two")
    if nodefile is not None:
        return _net_nodes.of_file(nodefile)
    return _net_nodes.named(ssh) if ssh else _net_nodes.from_environment()


@click.command(
    "up",
    epilog=HELP,
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--nodefile",
    metavar="FILE",
    help="A file with a node on each line: NODE, NODE:SLOTS or NODE slots=SLOTS.",
)
@click.option(
    "--ssh",
    metavar="NODE",
    multiple=True,
    help="A node, or USER@NODE, or NODE:SLOTS; once for each.",
)
@click.option(
    "--join", "server", metavar="URL", help="The server, nats://HOST:PORT, as nodes see it."
)
@click.option("--keys", metavar="FOLDER", help=KEYS_HELP)
@click.option(
    "--remote-keys",
    metavar="FOLDER",
    help="The folder of the keys on the nodes (default: the default there).",
)
@click.option(
    "--directory",
    metavar="FOLDER",
    help="Where modules are on the nodes (default: this directory).",
)
@click.option(
    "--weft",
    default="weft",
    show_default=True,
    metavar="COMMAND",
    help="The command `weft` on the nodes, for their shell.",
)
@click.option(
    "--address",
    default="NODE:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Where callers reach an agent; NODE stands for its node's name.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds to wait until all agents have joined.",
)
@click.option("--dry-run", is_flag=True, help="Print the commands, and start nothing.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print what has joined, as one line of JSON, on stdout; on stderr if there is a PROGRAM.",
)
@agent_options
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def up(nodefile: str | None, ssh: tuple[str, ...], program: tuple[str, ...], **given: Any) -> int:
    """Start an agent on each node, wait until all have joined, and run PROGRAM, or stay until
    Ctrl-C. Then the agents end.

    Nodes come from --nodefile or --ssh; else from $PBS_NODEFILE, or the job of SLURM that this is
    in. They are reached by your own `ssh`, which must need no password. In PROGRAM `net.join()`
    finds the server, and "WEFT_SERVER" and "WEFT_NET" are set.

    \b
    Examples:
      weft up --ssh gpu1 --ssh gpu2:8 --allow squares:square
      weft up --nodefile $PBS_NODEFILE --allow squares:square -- python squares.py
      weft up --ssh gpu1 --allow squares:square --dry-run
    """
    if program and program[0].startswith("-"):
        options = [o for p in up.params for o in p.opts if o.startswith("--")]
        raise BadUse(f"there is no option {program[0]}{did_you_mean(program[0], options)}")
    if not given["allow"]:
        raise BadUse(
            "an agent runs what --allow MODULE:FUNCTION names, or --allow source: give it at least once"
        )
    try:
        for run in given["allow"]:
            _net_calls.checked_allow(run)
    except Refused as error:
        raise BadUse(f"--allow: {error}") from None
    folder = _net_keys.folder_of(given["keys"])
    try:
        nodes = _nodes_of(nodefile, ssh)
        _net_link.parted(given["address"].replace("NODE", "node"))
        given["server"] = _server_of(given["server"], folder, nodes)
    except Refused as error:
        raise BadUse(str(error)) from None
    given["directory"] = given["directory"] or str(Path.cwd())

    def command_of(node: _net_nodes.Node) -> list[str]:
        return [*_net_up.SSH, node.target, "--", _shell_line(node, given)]

    if given["dry_run"]:
        return _shown(nodes, command_of, given["as_json"])
    return until_stopped("weft up", lambda: _run(nodes, command_of, program, folder, given))


def _shown(nodes: list[_net_nodes.Node], command_of: Any, as_json: bool) -> int:
    if as_json:
        planned = [
            {"host": n.name, "node": n.target, "slots": n.slots, "command": command_of(n)}
            for n in nodes
        ]
        click.echo(json.dumps({"hosts": planned}))
    else:
        for node in nodes:
            click.echo(shlex.join(command_of(node)))
    return EXIT["ok"]


def _run(
    nodes: list[_net_nodes.Node],
    command_of: Any,
    program: tuple[str, ...],
    folder: Path,
    given: dict[str, Any],
) -> int:
    def tell(line: str) -> None:
        click.echo(f"weft: {line}", err=True)

    with _net_up.Agents(nodes, command_of, tell) as agents:
        try:
            agents.start()
        except OSError as error:
            raise BadUse(f"cannot run ssh ({error.strerror}): is it installed?") from None
        try:
            joined = agents.wait(given["patience"])
        except Refused as error:
            raise _NotStarted(str(error)) from None
        if given["as_json"]:
            click.echo(json.dumps({"hosts": joined}), err=bool(program))
        elif not program:
            click.echo(f"{len(joined)} hosts have joined {given['server']}; Ctrl-C ends them")
        sys.stdout.flush()
        if not program:
            agents.watch(lambda: True)
            tell("no agent is left")
            return EXIT["failed"]
        try:
            running = _program(program, given["server"], folder)
            with running as process:
                agents.watch(lambda: process.poll() is None)
                status = process.wait()
        except FileNotFoundError:
            raise BadUse(f"there is no program {program[0]!r}: give it as in your shell") from None
        return status if status >= 0 else 128 - status
