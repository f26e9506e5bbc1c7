"""The program that `ssh` starts on another machine (_ssh.py):

    python -m weft.compat.pycsp._node run MODULE:FUNCTION DIGEST runs a process for the program
    that has started it python -m weft.compat.pycsp._node join PORT connects to a program of this
    machine

Invariants
- Standard input and output are the session's stream, and no other code writes to that stream:
  printed text goes to standard error.
- When the input ends, the session has ended, and this program ends once its process has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from typing import NoReturn

from weft._extension import native as _native
from weft._hosts import child as _child
from weft._net import calls as _net_calls
from weft.compat.pycsp import _remote

__all__ = ["main"]


def _first_line() -> bytes:
    """Reads a line, byte by byte, because the bytes after the line belong to the link."""
    line = b""
    while not line.endswith(b"\n"):
        if not (more := os.read(0, 1)):
            raise EOFError("the program that started this node has ended, and has sent no request")
        line += more
    return line


def _bring_in(stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, 1 << 16):
            stream.sendall(data)
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_WR)


def _take_out(stream: socket.socket, out: int) -> None:
    with contextlib.suppress(OSError):
        while data := stream.recv(1 << 16):
            while data:
                data = data[os.write(out, data) :]


def main(what: str, *words: str) -> int:
    out = os.dup(1)
    os.dup2(2, 1)  # printed text goes to standard error
    if what == "join":
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(str(_remote.meeting_point(int(words[0]), True)))
        except OSError as error:
            print(f"no program of pycsp's has port {words[0]} here ({error})", file=sys.stderr)
            return 1
        threading.Thread(target=_bring_in, args=(stream,), daemon=True).start()
        _take_out(stream, out)
        return 0
    run, digest = words
    request = json.loads(_first_line())
    sys.path[:] = request["path"]
    sys.argv[:] = request["argv"]
    if wrong := _net_calls.fault(socket.gethostname(), run, {"digest": digest}):
        print(wrong, file=sys.stderr)
        return 1

    def serve() -> None:
        own, theirs = socket.socketpair()
        threading.Thread(target=_bring_in, args=(own,), daemon=True).start()
        bringing = threading.Thread(target=_take_out, args=(own, out))
        bringing.start()
        _net_calls.serve_on(theirs.detach(), run, True)
        bringing.join()

    def goes_on(why: BaseException | None) -> NoReturn:
        try:
            if why is not None:
                raise why
            serve()
        except BaseException as error:
            _native._end_program(error)
        _native._end_program(None)

    _child._import_main(
        request["main_name"], request["main_path"], request["compiled_for"], goes_on
    )
    serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
