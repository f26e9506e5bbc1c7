"""Makes the plug-and-play processes of a backend from `_source.py` (weft.styles: the same text, with or without
`await`)."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from weft import styles

_FILE = Path(__file__).with_name("_source.py")
_TEXT = _FILE.read_text(encoding="utf-8")


def _is_process(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef) and any(
        isinstance(d, ast.Name) and d.id == "process" for d in node.decorator_list
    )


#: The processes, in the order of the file.
NAMES: tuple[str, ...] = (
    *(node.name for node in ast.parse(_TEXT).body if _is_process(node)),  # type: ignore[attr-defined]
    "mult",
)


def fill(backend: str, module: dict[str, Any]) -> None:
    """Puts the processes of `backend` ("coroutines", "threads", or another of the same names) into a module."""
    module["__all__"] = list(NAMES)
    made = {"__name__": module["__name__"], "__file__": str(_FILE)}
    exec(styles.compile_for(backend, _TEXT, str(_FILE)), made)
    for name in NAMES:
        module[name] = made[name]
