"""Gives the unix port a raw prompt, so that tests of weft.boards can use the port as a board.
Reads from its standard input and writes to its standard output, as
shared/runtime/pyexec.c does on boards.
"""

import sys

_in, _out = sys.stdin.buffer, sys.stdout.buffer
_names = {"__name__": "__main__"}


def _byte():
    b = _in.read(1)
    if not b:
        sys.exit()
    return b


def _raw():
    """Serves the raw prompt until Ctrl-B."""
    _out.write(b"raw REPL; CTRL-B to exit\r\n>")
    code = b""
    while True:
        b = _byte()
        if b == b"\x01":
            _out.write(b"raw REPL; CTRL-B to exit\r\n>")
            code = b""
        elif b == b"\x02":
            return
        elif b == b"\x03":
            code = b""
        elif b == b"\x04":
            _out.write(b"OK")
            try:
                exec(code.decode(), _names)
                _out.write(b"\x04\x04>")
            except SystemExit:
                raise
            except BaseException as e:
                _out.write(b"\x04")
                sys.print_exception(e, sys.stdout)
                _out.write(b"\x04>")
            code = b""
        else:
            code += b


def main():
    while True:
        _out.write(b"\r\n>>> ")
        while _byte() != b"\x01":
            pass
        _raw()


if sys.argv[1:] == ["silent"]:  # a device that reads and never answers
    while True:
        _byte()
main()
