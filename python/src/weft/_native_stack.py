"""The frames of C++ in the traceback of a component's failure, so that one stack says where it came from.

    a debug build's addresses (weft/component_stack.hpp) ──addr2line──► functions, files, lines ──through()──► frames of the traceback

Python prints the source's line of a frame by its file and number, whatever language that is in: so a frame of C++ is one whose code
says that it is of that file.

Invariant: a failure is told without frames rather than not at all.
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

# The functions of the header in which a process's own stack begins.
_BEGINS = re.compile(r"(.* )?weft::native::detail::(Run|guarded)<")


class Frame(NamedTuple):
    """A place in a source of C++."""

    file: str
    line: int
    function: str


def _tool() -> str | None:
    return shutil.which("addr2line") or shutil.which("llvm-addr2line")


def frames(stack: str) -> list[Frame]:
    """The component's own, outermost first; `stack`: a line for each, innermost first: library, a space, address in hex.

    Nothing if they cannot be told: no addr2line (of binutils), no debug information.
    """
    places = [line.rpartition(" ")[::2] for line in stack.splitlines()]
    tool = _tool()
    if not places or tool is None:
        return []
    library = places[0][0]  # that threw
    addresses = [
        hex(int(at, 16) - 1) for of, at in places if of == library
    ]  # of calls, not of returns
    command = [tool, "-C", "-f", "-i", "-a", "-e", library, *addresses]
    with contextlib.suppress(OSError):
        said = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return _read(said.stdout.splitlines())
    return []


def _read(lines: list[str]) -> list[Frame]:
    found: list[Frame] = []
    at = 0
    while at < len(lines):
        if lines[at].startswith(
            "0x"
        ):  # an address: then a function and a place for it and for each call inlined there
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
    """Without the parameters of the function and of anonymous namespaces, which are long."""
    return re.sub(r"\(anonymous namespace\)::", "", function).partition("(")[0]


def through(error: Any, stack: str) -> Any:
    """The exception, with the frames of its stack in its traceback."""
    traceback: types.TracebackType | None = None
    for frame in reversed(frames(stack)):
        made = _python_frame(frame)
        if made is not None:
            traceback = types.TracebackType(traceback, made.tb_frame, made.tb_lasti, frame.line)
    return error.with_traceback(traceback)


class _Here(Exception):
    pass


def _python_frame(frame: Frame) -> types.TracebackType | None:
    """A traceback of one frame of Python's whose code is of that file and function."""

    def stop() -> None:
        raise _Here

    tree = ast.parse("stop()")
    for node in ast.walk(tree):
        if isinstance(
            node, (ast.stmt, ast.expr)
        ):  # no columns: nothing is to be marked in the line
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
