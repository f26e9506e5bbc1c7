"""`weft view`: the network of a program that runs, or what the hosts of a network run, as a page in
the browser.

Invariants
- A look changes nothing in the program (rule 14.2). If the program or the network cannot be looked
  at, one sentence says why, with exit status 2, before a browser is opened.
- The address with its token is printed, and goes to the browser in a file that only this user can
  read: the command line of a browser can be read by every user of the machine.
- Ctrl-C ends the command, and so does the end of the program. The looks at a network end before
  the network is left.
"""

from __future__ import annotations

import contextlib
import html
import os
import threading
import webbrowser
from collections.abc import Iterator

import click

from weft._commands.bad_use import BadUse
from weft._commands.see import number_of
from weft._commands.see_hosts import is_network, joined
from weft._commands.view_server import PAGE, Hosts, Looks, Program, Server
from weft._watching import visit as _visit
from weft.cli import EXIT


@contextlib.contextmanager
def _opened(address: str) -> Iterator[None]:
    """Makes a browser show this address, if there is a screen. The file that passes the address to
    the browser exists during the block.
    """
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        yield
        return
    file = _visit.directory() / f"view-{os.getpid()}.html"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as f:
            to = html.escape(address, quote=True)
            f.write(
                f'<!doctype html><meta http-equiv="refresh" content="0;url={to}"><a href="{to}">weft view</a>\n'
            )
        # A browser in a terminal would not return from the call, so the call is made on another
        # thread.
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


@contextlib.contextmanager
def _looked_at(word: str | None, keys: str | None) -> Iterator[Program | Hosts]:
    """Yields the program or the hosts that the word on the command line names."""
    if is_network(word):
        assert word is not None
        with joined(word, keys) as network:
            yield Hosts(network, word)
        return
    pid = number_of(word)
    try:
        _visit.Visit(pid).__exit__()
    except _visit.NoLook as error:
        raise BadUse(str(error)) from None
    yield Program(pid)


def view(
    word: str | None, port: int, browser: bool, interval: float, most: int, keys: str | None = None
) -> int:
    """Serves the page until the program has ended, or Ctrl-C is pressed."""
    if not (PAGE / "page.js").exists():
        raise BadUse(f"the page is missing ({PAGE}): install weft again")
    with _looked_at(word, keys) as at:
        looks = Looks(at, interval, most)
        try:
            ended = _serve(looks, port, browser)
        finally:
            if isinstance(at, Hosts):
                looks.stop()
        if ended and isinstance(at, Program):
            click.echo(f"OS process {at.pid} has ended")
    return EXIT["ok"]


def _serve(looks: Looks, port: int, browser: bool) -> bool:
    """Returns True if the program has ended, or False if Ctrl-C was pressed."""
    try:
        server = Server(looks, port)
    except OSError as error:
        raise BadUse(
            f"--port {port}: {error.strerror}; choose another, or leave it out and the system chooses"
        ) from None
    looks.start()
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    with server, _opened(server.address) if browser else contextlib.nullcontext():
        click.echo(f"weft view: {server.address}\nCtrl-C ends it", nl=True)
        try:
            while not looks.ended.wait(0.5):
                if looks.at.has_ended() and not looks.busy:
                    break
        except KeyboardInterrupt:
            click.echo()
            return False
    return True


@click.command("view")
@click.argument("program", required=False)
@click.option("--port", default=0, help="The port on loopback (default: the system chooses).")
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option("--interval", default=1.0, help="Seconds of a look (default: 1).")
@click.option("--most", default=2_000, help="The most processes to ask for.")
@click.option("--keys", metavar="FOLDER", help="Of a network: its keys, as for weft net ls.")
def view_command(
    program: str | None,
    port: int,
    no_browser: bool,
    interval: float,
    most: int,
    keys: str | None,
) -> int:
    """Show the network of a program that runs as a page in the browser, until Ctrl-C.

    PROGRAM is the number of an OS process, or a word of its command line. It is not needed if only
    one program runs. It may be a network, nats://HOST:PORT: then the page shows what its hosts run.

    \b
    Examples:
      weft view
      weft view shop.py --no-browser --port 8080
      weft view nats://127.0.0.1:4222
    """
    if not 0 <= port < 1 << 16:
        raise BadUse(f"--port {port}: it must be from 0 (the system chooses) to 65535")
    if not 0.1 <= interval <= 60:
        raise BadUse(f"--interval {interval:g}: it must be from 0.1 to 60 seconds")
    if most < 1:
        raise BadUse(f"--most {most}: it must be 1 or more")
    return view(program, port, not no_browser, interval, most, keys)
