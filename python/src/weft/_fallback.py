"""Weft without its extension module: coroutines and threads in pure Python.

The build copies the package for MicroPython into the folder _pure. The folder _pure_fallback
contains the modules `weft.coroutines`, `weft.threads` and `weft.errors` that use this copy.
weft/__init__.py calls `take_over` if there is no extension module.

Invariants
- `take_over` runs before any other module of weft is imported. It puts _pure_fallback before the
  package's own folder; nothing else decides from which of the two folders a module is imported.
- `weft.errors` is imported before the rest of _pure, so that several failures are an exception
  group here too (rule 7.2).
"""

from __future__ import annotations

import ast
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

HOW = (
    "weft.processes, weft.greenlets, weft check, native components, what observes a network and "
    "weft.compat need the "
    "extension module: install a C++20 compiler and the headers of Python, then "
    "pip install --force-reinstall --no-binary weft-csp weft-csp"
)
NAMES = (
    "Alternative",
    "Barrier",
    "Channel",
    "Group",
    "Input",
    "Output",
    "Parallel",
    "Sequence",
    "Spawn",
    "Timer",
    "after",
    "at",
    "current_process",
    "deadline",
    "io",
    "move_on_after",
    "now",
    "poison",
    "process",
    "retire",
    "run",
    "select",
    "skip",
    "sleep",
    "timeout",
    "watched",
    "yield_",
)


def take_over(path: list[str]) -> None:
    """Puts the modules in _pure_fallback in place of the package's own. Prints one line that says
    so, unless WEFT_PURE has asked for it.
    """
    path.insert(0, str(Path(__file__).with_name("_pure_fallback")))
    if os.environ.get("WEFT_PURE", "") in ("", "0"):
        print(
            f"weft: no extension module for this Python: coroutines and threads run in pure Python. {HOW}",
            file=sys.stderr,
        )


def version() -> str:
    return str(pure().__version__)


def pure(name: str = "") -> ModuleType:
    """Imports a module of _pure, after weft.errors has been imported."""
    import_module("weft.errors")
    return import_module(f"weft._pure.{name}" if name else "weft._pure")


def not_here(module: str, name: str) -> Any:
    """Raises the exception of `__getattr__` of a module in _pure_fallback.

    For a name that the module exports if there is an extension, the exception is an ImportError,
    since `from … import` hides the text of an AttributeError.
    """
    if name.startswith("_"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    message = f"{module} has no {name!r} in pure Python. {HOW}"
    raise (ImportError if name in _whole(module) else AttributeError)(message)


def _whole(module: str) -> list[str]:
    """Returns the names that a module exports if there is an extension. The names are read from the
    module's file, because the module cannot be imported here.
    """
    file = Path(__file__).with_name(f"{module.rpartition('.')[2]}.py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []
