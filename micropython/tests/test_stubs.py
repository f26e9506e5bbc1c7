"""Tests that the type stubs and the modules have the same names, parameters and members; on
CPython."""

from __future__ import annotations

import ast
import json

import pytest

from . import tiers

WEFT = tiers.HERE / "weft"
STUBS = sorted(p.stem for p in WEFT.glob("*.pyi"))
# Classes that the modules do not export, and how to get an object of each.
PROBES = {
    "Reader": "Channel().reader()",
    "Writer": "Channel().writer()",
    "Stats": "Channel().stats()",
    "Guard": "after(1)",
    "Limit": "timeout(1)",
    "Core1": "core1",
    "Line": "core1.to_main()",
    "There": "core1.Channel()",
    "Thread": "process(lambda: None)()",
    "End": "process(lambda: None)().ended()",
    "Ended": "Ended('returned', None, None)",
}
# Names of a module that are meant for other modules of the package only.
INSIDE = {
    "threads": {"REQ", "bare", "wrap"},
    "watchdog": {"BadUse"},
    "flight": {"BadUse", "PeerDied", "Poisoned", "Retired"},
    "cores": {
        "BadUse",
        "Cancelled",
        "ChannelEnd",
        "Deadlock",
        "NoRoom",
        "Ring",
        "begin",
        "core1",  # a name of the class Core1, which the module has
        "resume",
    },
    "link": {
        "BadUse",
        "FLIGHT",
        "Line",
        "NOTHING",
        "PeerDied",
        "Poisoned",
        "Retired",
        "begin",
        "cancelled",
        "fail",
        "resume",
    },
}
LOOK = """\
import inspect, json, sys
name, names, probes = json.loads(sys.argv[1])
if name == "cores":  # what only MicroPython has
    import time, types, weft.coroutines, weft._time
    sys.modules["micropython"] = types.SimpleNamespace(heap_lock=len, heap_unlock=len)
    time.sleep_us = time.ticks_add = time.ticks_diff = time.ticks_ms = len
module = __import__("weft." + name, fromlist=["x"])
from weft._ended import Ended
scope = {**vars(module), "Ended": Ended}

def shape(f):
    try:
        return [[p.name, p.kind.name, p.default is not p.empty] for p in inspect.signature(f).parameters.values()]
    except (TypeError, ValueError):
        return None

def look(x):
    # The members and their parameters, without self; of a class also the names in its __init__.
    members = {n: shape(getattr(x, n)) for n in dir(x)}
    if isinstance(x, type):
        for n, said in members.items():
            if said and inspect.isfunction(getattr(x, n)):
                members[n] = said[1:]
        for k in x.__mro__:
            code = getattr(vars(k).get("__init__"), "__code__", None)
            members.update((n, None) for n in (code.co_names if code else ()) if n not in members)
            code = getattr(vars(k).get("__getattr__"), "__code__", None)  # it handles these names
            members.update((n, None) for n in (code.co_consts if code else ()) if isinstance(n, str))
        members["__init__"] = shape(x)
    return members

public = [n for n, x in vars(module).items() if n[0] != "_" and not inspect.ismodule(x)
          and (getattr(x, "__module__", "") or "weft").startswith("weft")]
if hasattr(module, "__getattr__"):
    for n in names:
        try:
            scope[n] = getattr(module, n)
        except AttributeError:
            continue
        public.append(n)
found = {}
for n in names:
    probed = n in probes and (n == "Ended" or n not in vars(module))
    x = eval(probes[n], scope) if probed else scope.get(n)
    if x is not None:
        found[n] = {"shape": shape(x), "members": look(x)}
print(json.dumps({"public": public, "found": found}))
"""


def stub(name: str) -> dict[str, ast.stmt]:
    """Returns the declarations of a stub, including those that it imports from another stub."""
    declared: dict[str, ast.stmt] = {}
    for node in ast.parse((WEFT / f"{name}.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            declared.update(
                {a.asname: stub(str(node.module))[a.name] for a in node.names if a.asname}
            )
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            declared[node.name] = node
    return declared


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> list[list[object]]:
    a = node.args
    plain = a.args[method:]
    first_default = len(plain) - len(a.defaults)
    listed: list[list[object]] = [
        [p.arg, "POSITIONAL_OR_KEYWORD", i >= first_default] for i, p in enumerate(plain)
    ]
    if a.vararg:
        listed.append([a.vararg.arg, "VAR_POSITIONAL", False])
    return listed + [
        [p.arg, "KEYWORD_ONLY", default is not None]
        for p, default in zip(a.kwonlyargs, a.kw_defaults, strict=True)
    ]


def differs(stub: list[list[object]], there: list[list[object]] | None) -> bool:
    """Returns whether two lists of parameters differ. `*error` in a stub matches any parameters;
    private parameters of the module may have any name.
    """
    if there is None or [p[1] for p in stub] == ["VAR_POSITIONAL"]:
        return False
    named = [
        [p[0] if not str(q[0]).startswith("_") else q[0], *p[1:]]
        for p, q in zip(stub, there, strict=False)
    ]
    return len(stub) != len(there) or named != there


def wrong(name: str) -> list[str]:
    declared = stub(name)
    asked = json.dumps([name, list(declared), PROBES])
    seen = json.loads(tiers.run("cpython", "-c", LOOK, asked))
    errors = [
        f"{n}: not in the stub"
        for n in sorted({*seen["public"]} - {*declared} - INSIDE.get(name, set()))
    ]
    for n, node in declared.items():
        here = seen["found"].get(n)
        if here is None:
            errors.append(f"{n}: not in the module")
        elif not isinstance(node, ast.ClassDef):
            if differs(parameters(node, False), here["shape"]):
                errors.append(f"{n}: {here['shape']}")
        else:
            for member in node.body:
                if isinstance(member, ast.AnnAssign):
                    member_name = member.target.id  # type: ignore[union-attr]
                elif isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    member_name = member.name
                else:
                    continue
                if member_name not in here["members"]:
                    errors.append(f"{n}.{member_name}: not in the module")
                elif not isinstance(member, ast.AnnAssign) and differs(
                    parameters(member, True), here["members"][member_name]
                ):
                    errors.append(f"{n}.{member_name}: {here['members'][member_name]}")
    return errors


@pytest.mark.parametrize("name", STUBS)
def test_a_stub_says_what_its_module_has(name: str) -> None:
    assert wrong(name) == []


def test_a_stub_of_threads_awaits_nothing() -> None:
    text = (WEFT / "threads.pyi").read_text(encoding="utf-8")
    assert "async" not in text and "Await" not in text
