"""For tests: runs the server of `weft view` in this OS process, and reads what browsers receive."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

from weft._commands import view_server as _server


@contextlib.contextmanager
def serving(at: int | _server.Hosts, interval: float = 0.1) -> Iterator[_server.Server]:
    """Serves the page of this OS process, or of this network."""
    looks = _server.Looks(_server.Program(at) if isinstance(at, int) else at, interval, 2_000)
    with _server.Server(looks, 0) as server:
        looks.start()
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
            looks.stop()


def get(
    server: _server.Server, path: str, **headers: str
) -> tuple[int, str, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer


class Events:
    """Receives the looks as a browser does."""

    def __init__(self, server: _server.Server) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.connection.request("GET", f"/{server.token}/looks")
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.getheader("Content-Type", "").startswith("text/event-stream")

    def next(self) -> tuple[str, dict[str, Any]]:
        kind = ""
        while line := self.answer.readline().decode():
            if line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                return kind, json.loads(line[6:])
        return "end", {}

    def until(self, kind: str) -> dict[str, Any]:
        while (found := self.next())[0] not in (kind, "end"):
            pass
        assert found[0] == kind, "the stream has ended"
        return found[1]

    def close(self) -> None:
        self.answer.close()
        self.connection.close()
