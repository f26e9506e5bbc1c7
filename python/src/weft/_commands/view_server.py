"""The server of `weft view`: looks at a program, or at the hosts of a network, and shows the looks to
browsers on this machine.

    Looks (a thread) ──look()──► the program's door, or the hosts
      │ publishes an event
      ▼
    one thread for each browser: GET /TOKEN/looks, server-sent events

Invariants
- The server listens on loopback alone. A request without the token, with the name of another host
  (DNS rebinding), or from a page of another origin, gets a sentence and nothing of the program.
- While no browser listens, no looks are made.
- A browser receives the newest look. A slow browser misses some looks, since none are kept for it.
  A browser that has disconnected is noticed at the next event, or within HEARTBEAT.
- The token is compared in constant time, and is in no log.
"""

from __future__ import annotations

import contextlib
import hmac
import http.server
import json
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from weft import _helper_threads
from weft._commands.see import as_dict
from weft._commands.see_hosts import FarLooking
from weft._watching import visit as _visit
from weft._watching import visit_hosts as _visit_hosts

PAGE = Path(__file__).parent / "page"
FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "licenses.txt": ("licenses.txt", "text/plain; charset=utf-8"),
}
HEARTBEAT = 5.0  #: seconds after which a browser is sent an event that says that nothing is new
BROWSERS = 16  #: how many browsers may listen at one time
REQUESTS = 64  #: how many connections may be open at one time
FIRST = 0.2  #: seconds of the first look, which is short because the user waits for it
SELDOM = 5.0  #: the longest time between two looks, in seconds
STANDS = 1.0  #: seconds of waiting after which a process is suspected to be stuck
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Program:
    """A program on this machine, as the object of looks."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def begin(self) -> _visit.Looking:
        return _visit.Looking(self.pid)

    def has_ended(self) -> bool:
        return _visit.has_ended(self.pid)

    def about(self) -> dict[str, Any]:
        return {"pid": self.pid, "since": _visit.seconds_since_start(self.pid), "network": ""}


class Hosts:
    """The hosts of a network, as the object of looks. All of them can leave without ending the
    looks, since others can join."""

    def __init__(self, network: Any, server: str) -> None:
        self._network = network
        self._server = server

    def begin(self) -> FarLooking:
        return FarLooking(self._network, _visit.PATIENCE)

    def has_ended(self) -> bool:
        return False

    def about(self) -> dict[str, Any]:
        return {"pid": FarLooking.pid, "since": None, "network": self._server}


class Looks:
    """Looks at one program, or one network, for all browsers, as long as one listens."""

    def __init__(self, at: Program | Hosts, interval: float, most: int) -> None:
        self.at = at
        self.interval = interval
        self.most = most
        #: set once the program has ended and each browser has been notified
        self.ended = threading.Event()
        self._changed = threading.Condition()
        self._browsers = 0  # guarded by _changed, like the fields that follow
        self._number = 0
        self._event = b""
        self._over = False
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="weft view", daemon=True)
        # Only `_thread` uses this field and the fields that follow.
        self._looking: _visit.Looking | FarLooking | None = None
        self._knows_stuck = True
        self._stuck: list[_visit.Stuck] = []
        self._asked = 0.0

    @property
    def busy(self) -> bool:
        """Whether a browser listens."""
        with self._changed:
            return self._browsers > 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the looks for each browser. This method may be called at any time and any number of
        times. It returns once the look under way has ended.
        """
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def listens(self, tell: Callable[[bytes], None]) -> bool:
        """Passes every event to `tell`, until the program or the looks have ended or `tell` raises
        OSError. Returns False if too many browsers are listening already.
        """
        with self._changed:
            if self._browsers >= BROWSERS:
                return False
            # Looks from before a time without browsers are out of date.
            seen = self._number if self._browsers == 0 and not self._over else 0
            self._browsers += 1
            self._changed.notify_all()
        try:
            while True:
                with self._changed:
                    if self._number == seen and not self._over and not self._stopped:
                        self._changed.wait(HEARTBEAT)
                    news = self._number > seen
                    seen, event = self._number, self._event
                    over = self._over or self._stopped
                tell(event if news else b": nothing new\n\n")
                if over:
                    return True
        finally:
            with self._changed:
                self._browsers -= 1
                self._changed.notify_all()

    def _publish(self, kind: str, content: dict[str, Any], over: bool = False) -> None:
        text = json.dumps(content, separators=(",", ":"))
        with self._changed:
            self._event = f"event: {kind}\ndata: {text}\n\n".encode()
            self._number += 1
            self._over = over
            self._changed.notify_all()

    def _work(self) -> None:
        _helper_threads.add_until_end()
        while True:
            if not self.busy:
                self._forget()
            with self._changed:
                self._changed.wait_for(lambda: self._browsers > 0 or self._stopped)
                if self._stopped:
                    break
            start = time.monotonic()
            try:
                self._publish("look", self._look())
                # If a look takes long, looks are made less often.
                late = time.monotonic() - start - self.interval
                time.sleep(min(max(2 * late, 0.0), SELDOM) if late > 0.1 else 0)
            except _visit.NoLook as error:
                self._forget()
                alive = not self.at.has_ended()
                self._publish("silent" if alive else "ended", {"text": str(error)}, not alive)
                if not alive:
                    break
                time.sleep(0.5)
        self._forget()
        with self._changed:
            self._changed.wait_for(lambda: self._browsers == 0 or self._stopped, 2.0)
        self.ended.set()

    def _forget(self) -> None:
        if self._looking is not None:
            self._looking.__exit__()
            self._looking = None

    def _look(self) -> dict[str, Any]:
        fresh = self._looking is None
        if self._looking is None:
            self._looking = self.at.begin()
        network = self._looking.look(FIRST if fresh else self.interval, self.most)
        network.stuck = self._stuck_now(self._looking, network)
        return {
            **as_dict(network),
            **self.at.about(),
            "at": time.time(),
            "interval": self.interval,
            "stuck": [vars(one) for one in network.stuck],
            "hosts": [vars(one) for one in network.hosts],
            "os_processes": [
                {**vars(one), "number": _visit_hosts.pid_there(one.pid, one.host)}
                for one in network.os_processes
            ],
        }

    def _stuck_now(
        self, looking: _visit.Looking | FarLooking, network: _visit.Network
    ) -> list[_visit.Stuck]:
        """Returns the processes that can never go on. The program is asked only if a process has
        waited for long, and the questions take at most a tenth of the time, because the answer
        takes some microseconds for each process. Hosts are not asked.
        """
        if isinstance(looking, FarLooking):
            return []
        waits = any(row.waits and row.seconds > STANDS for row in network.rows)
        if not waits or not self._knows_stuck:
            self._stuck = []
        elif time.monotonic() >= self._asked:
            start = time.monotonic()
            try:
                self._stuck = looking.stuck()
            except _visit.NoLook as error:
                if " says: " not in str(error):
                    raise
                self._knows_stuck = False  # the program uses an older version of Weft
            self._asked = time.monotonic() + 10 * (time.monotonic() - start)
        return self._stuck


class Server(http.server.ThreadingHTTPServer):
    """Serves the page on loopback. `address` is the address that a browser opens.

    Raises:
        OSError: the port is taken, or this user may not use it.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, looks: Looks, port: int) -> None:
        self.looks = looks
        self.token = secrets.token_urlsafe(24)
        self.slots = threading.BoundedSemaphore(REQUESTS)
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = self.server_address[1]
        self.hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        self.address = f"http://127.0.0.1:{self.port}/{self.token}/"

    def server_bind(self) -> None:
        # HTTPServer.server_bind would look a name up in the DNS.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.slots.acquire(blocking=False):
            self.shutdown_request(request)  # these are more connections than any browser opens
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports nothing, since a browser that disconnects during a request is not an error."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    # seconds in which a request must have arrived whole, or a browser must accept what is sent to
    # it
    timeout = 20.0
    server_version = "weft"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    error_message_format = "%(explain)s\n"
    error_content_type = "text/plain; charset=utf-8"
    _WRONG: ClassVar = {
        "token": "This address has no token, or a wrong one. `weft view` prints the right one each time it starts.",
        "host": "This page is for a browser on the same machine: open the address that `weft view` printed.",
        "many": "Too many pages look at this program already: close one, and load this page again.",
    }

    def setup(self) -> None:
        super().setup()
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        name = self._allowed()
        if name == "looks":
            self._listen()
        elif name is not None:
            file, kind = FILES[name]
            self._answer(200, kind, (PAGE / file).read_bytes())

    def _allowed(self) -> str | None:
        """Returns the name of the requested file. If the request is not allowed, sends the refusal
        and returns None.
        """
        origin = self.headers.get("Origin")
        own = {f"http://{host}" for host in self.server.hosts}
        from_elsewhere = self.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")
        if self.headers.get("Host") not in self.server.hosts or (origin and origin not in own):
            self._refuse(403, "host")
            return None
        _, _, rest = self.path.partition("?")[0].partition("/")
        token, slash, name = rest.partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(403, "token")
            return None
        # Any site can link to the page, but only the page itself is allowed to request the files
        # that it loads.
        if from_elsewhere and name:
            self._refuse(403, "host")
            return None
        if not slash:
            self.send_response(308)
            self.send_header("Location", f"/{self.server.token}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if name not in FILES and name != "looks":
            self._answer(404, "text/plain; charset=utf-8", b"There is no such file here.\n")
            return None
        return name

    def _refuse(self, status: int, why: str) -> None:
        self._answer(status, "text/plain; charset=utf-8", (self._WRONG[why] + "\n").encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self._send_headers(kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_headers(self, kind: str) -> None:
        self.send_header("Content-Type", kind)
        for name, value in _HEADERS.items():
            self.send_header(name, value)

    def _listen(self) -> None:
        begun = False

        def tell(event: bytes) -> None:
            nonlocal begun
            if not begun:
                begun = True
                self.send_response(200)
                self._send_headers("text/event-stream; charset=utf-8")
                self.send_header("Connection", "close")
                self.end_headers()
            self.wfile.write(event)

        self.close_connection = True
        if not self.server.looks.listens(tell):
            self._refuse(503, "many")

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing, since the requests contain the token."""
