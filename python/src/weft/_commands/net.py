"""The commands `weft net up`, `weft net ls`, `weft net keys` and `weft host`.

Invariants: those of _commands/main.py. `weft net up` leaves no server behind, and `weft host` no OS
process, however the command ends, except by SIGKILL.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click

from weft import net
from weft._commands.bad_use import BadUse
from weft._commands.main import find_checkout
from weft._net import agent as _net_agent
from weft._net import entries as _net_entries
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import name_rules as _net_named
from weft._net import server as _net_server
from weft._net import ssh_agents as _net_up
from weft.cli import EXIT
from weft.errors import BadUse as Refused

__all__ = ["KEYS_HELP", "add_to", "agent_options", "host", "until_stopped"]

KEYS_HELP = "The folder with the keys (default: $WEFT_NET, or ~/.config/weft/net)."
UP_HELP = """\b
Exit status:
  1    the server ended by itself; FOLDER/server.log says why
  2    bad use: no server is installed, or the address is taken
  130  stopped by Ctrl-C    143  stopped by SIGTERM
"""
REFUSED_HELP = """\b
Exit status:
  0  well
  2  bad use: the one line on stderr says what to do
"""


class _Stopped(BaseException):
    def __init__(self, number: int) -> None:
        self.number = number


def _stop(number: int, _: FrameType | None) -> None:
    for n in (signal.SIGINT, signal.SIGTERM):
        signal.signal(n, signal.SIG_IGN)  # a second signal must not disturb the clean-up
    raise _Stopped(number)


def until_stopped(what: str, serve: Callable[[], int]) -> int:
    """Runs serve() until it returns or a signal arrives. Returns the exit status. `what` names the
    server in the message that names the signal.
    """
    kept = {n: signal.signal(n, _stop) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        return serve()
    except _Stopped as stopped:
        by, status = (
            ("Ctrl-C", "interrupted")
            if stopped.number == signal.SIGINT
            else ("SIGTERM", "terminated")
        )
        click.echo(f"weft: {what} is stopped, by {by}", err=True)
        return EXIT[status]
    except (Refused, OSError) as error:
        raise BadUse(str(error)) from None
    finally:
        for n, handler in kept.items():
            signal.signal(n, handler)


@click.command("up", epilog=UP_HELP)
@click.option("--keys", metavar="FOLDER", help=KEYS_HELP)
@click.option(
    "--address",
    default="127.0.0.1:4222",
    show_default=True,
    metavar="HOST:PORT",
    help="Where it listens; port 0: a free one.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print where the server is, as one line of JSON, on stdout.",
)
def up(keys: str | None, address: str, as_json: bool) -> int:
    """Start a NATS server where programs meet, until Ctrl-C. Its keys are made if there are none.

    It is for a developer: of the key of the authority, which lies in FOLDER, there is no copy, and
    no password. The server is `nats-server` from $WEFT_NATS_SERVER, the PATH or ~/go/bin.

    \b
    Examples:
      weft net up
      weft net up --address 0.0.0.0:4222    for other machines too; their keys: weft net keys
    """
    folder = _net_keys.folder_of(keys)
    checkout = find_checkout(Path.cwd())
    beside = [checkout / ".build/net/bin/nats-server"] if checkout else []

    def serve() -> int:
        _net_server.found(beside)
        _net_link.parted(address)
        file = folder / _net_keys.SERVER
        with _net_server.Server(_made(folder), address, beside) as server:
            try:
                file.write_text(server.url + "\n", encoding="utf-8")
                _report_up(server, folder, as_json)
                status = server.wait()
            finally:
                file.unlink(missing_ok=True)
            click.echo(
                f"weft: the server ended by itself, with status {status}: see {folder / 'server.log'}",
                err=True,
            )
            return EXIT["failed"]

    return until_stopped("the server", serve)


def _made(folder: Path) -> Path:
    if not (folder / _net_keys.CERTIFICATE).exists():
        has_authority = (folder / _net_keys.AUTHORITY_KEY).exists()
        net.make_keys(folder, by=folder if has_authority else None)
        click.echo(f"weft: made keys in {folder}", err=True)
    _net_keys.Keys(folder)  # raises BadUse if the keys are not valid
    return folder


def _report_up(server: _net_server.Server, folder: Path, as_json: bool) -> None:
    if as_json:
        report = {
            "server": server.url,
            "keys": str(folder),
            "version": server.version,
            "pid": server.pid,
        }
        click.echo(json.dumps(report))
    else:
        click.echo(f"NATS {server.version} at {server.url}, keys in {folder}; Ctrl-C stops it")
    sys.stdout.flush()


@click.command("ls", epilog=REFUSED_HELP)
@click.option(
    "--server",
    metavar="URL",
    help="The server, nats://HOST:PORT (default: the one that `weft net up` has noted).",
)
@click.option("--keys", metavar="FOLDER", help=KEYS_HELP)
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def ls(server: str | None, keys: str | None, as_json: bool) -> int:
    """List the names of channels, with the program that each belongs to, where that program is, and
    which ends others get; and list the hosts, with what they run."""
    try:
        with net.join(server, keys=keys, name="weft net ls") as network:
            names = network.names()
            hosts = network._call(network._meeting.hosts())
    except (Refused, OSError) as error:
        raise BadUse(str(error)) from None
    if as_json:
        found = [n._asdict() for n in names]
        found += [
            {
                "host": h.name,
                "address": h.address,
                "allow": h.allow,
                "hosts": h.hosts,
                "trust": h.trust,
                "relayed": h.relayed,
            }
            for h in hosts
        ]
        click.echo(json.dumps(found))
        return EXIT["ok"]
    if not names and not hosts:
        click.echo("no names: no program offers a channel, and there is no host", err=True)
    width = max((len(n.name) for n in names), default=0)
    for n in names:
        ends = " and ".join(e for e, on in (("readers", n.readers), ("writers", n.writers)) if on)
        click.echo(f"{n.name:{width}}  {ends} from {n.host} {_where(n)}")
    for h in hosts:
        trusts = ", trusts" if h.trust else ""
        click.echo(
            f"host {h.name}: {h.hosts} OS processes {_where(h)}{trusts}, runs {', '.join(h.allow)}"
        )
    return EXIT["ok"]


def _where(one: Any) -> str:
    """Returns where a Named or a Host can be reached, and how many sessions of that program use the
    relay.
    """
    where = f"at {one.address}" if one.address else "by the relay"
    number = f"{one.relayed} session{'s' * (one.relayed != 1)}"
    by = " by the relay" if one.address else ""
    return f"{where} ({number}{by})" if one.relayed else where


_AGENT = (
    click.option(
        "--allow",
        metavar="MODULE:FUNCTION",
        multiple=True,
        help="A function that the host runs; once for each. `source`: every function whose source the caller sends.",
    ),
    click.option(
        "--hosts",
        type=click.IntRange(min=1, max=_net_entries.MAX_HOSTS),
        help="How many OS processes (default: one for each CPU).",
    ),
    click.option(
        "--relay",
        type=click.Choice(["auto", "only", "never"]),
        default="auto",
        show_default=True,
        help="Whether callers come through the NATS server: where they cannot reach the address, always, or never.",
    ),
    click.option(
        "--trust",
        is_flag=True,
        help="Exchange pickles with callers that say so too: each of them can make this machine run anything.",
    ),
    click.option(
        "--memory-limit",
        type=click.IntRange(min=1),
        metavar="BYTES",
        help="The most address space of each OS process.",
    ),
    click.option(
        "--nice", type=int, default=0, help="Add this to the niceness of its OS processes."
    ),
)


def agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of an agent to `weft host`, and to `weft up`, which passes these options on
    to `weft host`."""
    for option in reversed(_AGENT):
        command = option(command)
    return command


@click.command(
    "host",
    epilog=UP_HELP.replace("the server ended by itself; FOLDER/server.log says why", "it failed"),
)
@click.option(
    "--join",
    "server",
    metavar="URL",
    help="The server, nats://HOST:PORT (default: the one that `weft net up` has noted).",
)
@click.option(
    "--name",
    metavar="NAME",
    help="The name by which others find the host (default: this machine's name).",
)
@click.option("--keys", metavar="FOLDER", help=KEYS_HELP)
@click.option(
    "--address",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Where callers reach it; from other machines: the machine's name, and port 0.",
)
@agent_options
@click.option(
    "--attached",
    is_flag=True,
    help="End when standard input closes, or says nothing for 30 s: `weft up` uses this.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print what the host is, as one line of JSON, on stdout.",
)
def host(
    server: str | None,
    name: str | None,
    allow: tuple[str, ...],
    hosts: int | None,
    keys: str | None,
    address: str,
    relay: str,
    trust: bool,
    memory_limit: int | None,
    nice: int,
    attached: bool,
    as_json: bool,
) -> int:
    """Be a host: run processes here for programs elsewhere, until Ctrl-C.

    It runs the functions that --allow names, from modules that can be imported in this directory,
    and nothing else; their source has to be the caller's. With `--allow source` callers send their
    source along: then every member of the network can make this machine run anything. In the
    functions $WEFT_HOST is NAME.

    \b
    Examples:
      weft host --join nats://lab1:4222 --name gpu1 --allow mandelbrot:worker
      weft host --join nats://lab1:4222 --name gpu1 --allow source
    then, in the program:
      worker.on("gpu1")(…)
    """
    called = name or _net_named.simple(socket.gethostname())
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    os.environ["WEFT_HOST"] = called  # code that runs in this host can read the host's name here

    def serve() -> int:
        if attached:
            _net_up.stop_when_left()
        with (
            net.join(
                server, keys=keys, address=address, trust=trust, name=called, relay=relay
            ) as network,
            _net_agent.Agent(
                network, called, allow, hosts, memory_limit=memory_limit, nice=nice
            ) as agent,
        ):
            where = f"at {network.address}" if network.address else "by the relay"
            if as_json:
                report = {"host": called, "address": network.address, "pids": agent.pids}
                click.echo(json.dumps(report))
            else:
                click.echo(
                    f"host {called} {where}, {agent.size} OS processes, "
                    f"runs {', '.join(agent.allow)}; Ctrl-C stops it"
                )
            sys.stdout.flush()
            over = threading.Event()
            # The wait is limited because of signals: the system can deliver a signal to another
            # thread, which does not end a wait here.
            while not over.wait(1.0):
                pass
            raise AssertionError("nobody sets this event")

    return until_stopped(f"host {called}", serve)


@click.command("keys", epilog=REFUSED_HELP)
@click.argument("folder")
@click.option("--by", metavar="FOLDER", help="The folder of the authority. " + KEYS_HELP)
@click.option("--name", help="The name of that machine, for messages (default: this one's).")
@click.option(
    "--offers",
    metavar="NAME",
    multiple=True,
    help="A name that programs there may offer, BEGINNING/*, host=NAME or '*'; once for each "
    "(default: NAME/* and host=NAME, of --name).",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was made, as JSON, on stdout.")
def keys_command(
    folder: str, by: str | None, name: str | None, offers: tuple[str, ...], as_json: bool
) -> int:
    """Make FOLDER with keys for another machine, of the same authority. Copy it there as carefully
    as a password. Programs with these keys may come to any channel, but offer only the names that
    --offers says: so no program can take another's name.

    \b
    Examples:
      weft net keys for-gpu1 --name gpu1
      scp -r for-gpu1 gpu1:.config/weft/net
      weft net keys for-lab2 --name lab2 --offers 'lab/*' --offers host=lab2
    """
    try:
        made = net.make_keys(folder, by=_net_keys.folder_of(by), name=name, offers=offers or None)
        keys = _net_keys.Keys(made)
    except (Refused, OSError) as error:
        raise BadUse(str(error)) from None
    if as_json:
        own = {"name": keys.member.name, "offers": keys.member.grants}
        click.echo(json.dumps({"keys": str(made), "fingerprint": keys.fingerprint, **own}))
        return EXIT["ok"]
    click.echo(made)
    click.echo(f"weft: {keys.member}", err=True)
    return EXIT["ok"]


def add_to(group: click.Group) -> None:
    for command in (up, ls, keys_command, host):
        group.add_command(command)
