"""Stub files of native components, for type checkers and editors: the declarations of a component
with Python's annotations.

Invariant: a stub declares what the component's module contains, with the names of
`weft.coroutines`. It is made from the module alone.
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import math
import re
from types import ModuleType
from typing import Any

__all__ = ["stub_of"]

_SIMPLE = (bool, int, float, str, bytes, type(None))


def _default(value: Any) -> str:
    """Returns the default as source text: "..." for a value that has no literal, such as inf and
    nan.
    """
    writable = math.isfinite(value) if isinstance(value, float) else isinstance(value, _SIMPLE)
    return repr(value) if writable else "..."


def _annotation(parameter: inspect.Parameter) -> str:
    """Returns the annotation of a parameter. A parameter that is an array accepts any object that
    lends its memory; Any is the only annotation for such objects.
    """
    text = str(parameter.annotation)
    return re.sub(r"\bmemoryview\b", "Any", text) if not text.startswith("Writer[") else text


def _function(name: str, function: Any) -> list[str]:
    signature = inspect.signature(function)
    parts, starred = [], False
    for p in signature.parameters.values():
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        default = "" if p.default is p.empty else f" = {_default(p.default)}"
        parts.append(f"{p.name}: {_annotation(p)}{default}")
    lines = [f"def {name}({', '.join(parts)}) -> Process[None]:"]
    return [*lines, *_docstring(inspect.getdoc(function) or ""), ""]


def _docstring(text: str, indent: str = "    ") -> list[str]:
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    first, *rest = text.split("\n")
    if not rest:
        return [f'{indent}"""{first}"""']
    return [
        f'{indent}"""{first}',
        *(f"{indent}{line}".rstrip() for line in rest),
        f'{indent}"""',
    ]


def _aggregate(cls: type) -> list[str]:
    """Returns the lines for an aggregate's class. The class is imported if another module can
    import it; a class of the main program, or a nested one, is written out.
    """
    if cls.__module__ not in ("weft.native", "__main__") and "." not in cls.__qualname__:
        return [f"from {cls.__module__} import {cls.__qualname__} as {cls.__name__}", ""]
    if dataclasses.is_dataclass(cls):
        fields = [(f.name, f.type) for f in dataclasses.fields(cls)]
        head = ["@dataclass", f"class {cls.__name__}:"]
    else:
        fields = list(inspect.get_annotations(cls).items())
        head = [f"class {cls.__name__}(NamedTuple):"]
    told = [
        f"    {n}: {t if isinstance(t, str) else inspect.formatannotation(t)}" for n, t in fields
    ]
    return [*head, *(told or ["    pass"]), ""]


def stub_of(component: ModuleType) -> str:
    """Returns the text of the stub file of a loaded component."""
    aggregates = [
        value
        for name, value in vars(component).items()
        if isinstance(value, type) and name == value.__name__ and not keyword.iskeyword(name)
    ]
    lines = [
        *_docstring(component.__doc__ or component.__name__, ""),
        "",
        "# Written by weft.native.write_stub: write it again when the component has changed.",
        "",
        "from dataclasses import dataclass",
        "from typing import Any, NamedTuple",
        "",
        "from weft._hosts.hosts import OneHost",
        "from weft.coroutines import Barrier, Process, Reader, Writer",
        "from weft.processes import Hosts, Supervisor",
        "",
        "path: str",
        "compiler: str",
        "processes: tuple[str, ...]",
        "",
    ]
    for cls in aggregates:
        lines += _aggregate(cls)
    for name in component.processes:
        lines += _function(name, getattr(component, name))
    return "\n".join(lines).rstrip() + "\n"
