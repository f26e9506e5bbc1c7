"""Puts C++ frames into the traceback of a component's failure, so that the traceback shows where
the exception was thrown.

    a debug build's addresses (weft/component_stack.hpp) ──addr2line──► functions, files, lines ──through()──► frames of the traceback

Python prints the source line of a frame by its file and line number, whatever the language of the
file. So a frame whose code names a C++ file serves as a frame of C++.

Invariant: if frames cannot be made, the failure is still reported, without them.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shutil
import subprocess
import types
from typing import Any, NamedTuple

__all__ = ["Frame", "frames", "through"]

# The functions of the header that call the process's own code: the component's own frames begin
# below them.
_BEGINS = re.compile(r"(.* )?weft::native::detail::(Run|guarded)<")


class Frame(NamedTuple):
    """A place in a C++ source."""

    file: str
    line: int
    function: str


def _tool() -> str | None:
    return shutil.which("addr2line") or shutil.which("llvm-addr2line")


def frames(stack: str) -> list[Frame]:
    """Returns the component's own frames, outermost first. The list is empty if there is no
    addr2line (of binutils) or no debug information.

    Args:
        stack: a line for each frame, innermost first: library, a space, address in hex.
    """
    places = [line.rpartition(" ")[::2] for line in stack.splitlines()]
    tool = _tool()
    if not places or tool is None:
        return []
    library = places[0][0]  # the library in which the exception was thrown
    # An address on the stack is a return address; the byte before it belongs to the call.
    addresses = [hex(int(at, 16) - 1) for of, at in places if of == library]
    command = [tool, "-C", "-f", "-i", "-a", "-e", library, *addresses]
    with contextlib.suppress(OSError):
        result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return _read(result.stdout.splitlines())
    return []


def _read(lines: list[str]) -> list[Frame]:
    found: list[Frame] = []
    at = 0
    while at < len(lines):
        # An address is followed by its function and place, and by the function and place of each
        # call inlined there.
        if lines[at].startswith("0x"):
            at += 1
            continue
        if _BEGINS.match(lines[at]):
            break
        place = re.match(r"(.+):(\d+)", lines[at + 1]) if at + 1 < len(lines) else None
        if place is not None and place[1] != "??":
            found.append(Frame(place[1], int(place[2]), _short(lines[at])))
        at += 2
    return found[::-1]


def _short(function: str) -> str:
    """Returns the name of a function without its parameters and without anonymous namespaces, since
    both are long.
    """
    return re.sub(r"\(anonymous namespace\)::", "", function).partition("(")[0]


def through(error: Any, stack: str) -> Any:
    """Puts the frames of `stack` into the traceback of the exception, and returns the exception."""
    traceback: types.TracebackType | None = None
    for frame in reversed(frames(stack)):
        made = _python_frame(frame)
        if made is not None:
            traceback = types.TracebackType(traceback, made.tb_frame, made.tb_lasti, frame.line)
    return error.with_traceback(traceback)


class _Here(Exception):
    pass


def _python_frame(frame: Frame) -> types.TracebackType | None:
    """Returns a traceback of one Python frame whose code names the file and the function of
    `frame`. Returns None if none can be made.
    """

    def stop() -> None:
        raise _Here

    tree = ast.parse("stop()")
    for node in ast.walk(tree):
        # If a frame has no columns, Python marks nothing in the line that it prints.
        if isinstance(node, (ast.stmt, ast.expr)):
            node.col_offset = node.end_col_offset = -1
    code = compile(tree, frame.file, "exec").replace(
        co_name=frame.function, co_firstlineno=frame.line
    )
    try:
        exec(code, {"stop": stop})
    except _Here as here:
        assert here.__traceback__ is not None
        return here.__traceback__.tb_next
    return None
