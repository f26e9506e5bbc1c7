"""Writes python/src/weft/_commands/portable_facts.json: what of CPython and Weft MicroPython has.

    .venv/bin/python micropython/tests/portable_facts.py            writes it
    .venv/bin/python micropython/tests/portable_facts.py --check    exit status 1 if not up to date

MicroPython's unix port answers (.build/micropython/micropython, from `./run setup micropython`):
which syntax it runs, which modules, names and attributes it has, and which keywords its functions
take. The names and parameters of Weft come from python/public.txt and from the stub of
micropython/weft/coroutines.py; the port answers which of the names can be imported there.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from weft._commands import portable_syntax

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "python/src/weft/_commands/portable_facts.json"
PORT = ROOT / ".build/micropython/micropython"
# Modules that do something when they are imported, or that no program imports.
NOT_ASKED = {"antigravity", "this", "idlelib", "turtledemo", "turtle", "lib2to3"}
# The modules of micropython-lib's folder python-stdlib, which `mip install` puts on a board.
MIP = (
    *("__future__", "abc", "argparse", "base64", "bisect", "cmd", "collections.defaultdict"),
    *("colorsys", "contextlib", "copy", "curses.ascii", "datetime", "fnmatch", "functools"),
    *("gzip", "hmac", "html", "inspect", "itertools", "keyword", "locale", "logging"),
    *("operator", "os.path", "pathlib", "pickle", "pkgutil", "pprint", "quopri", "shutil", "ssl"),
    *("stat", "string", "tarfile", "tempfile", "textwrap", "threading", "traceback", "types"),
    *("unittest", "uu", "uuid", "warnings", "zlib"),
)
# An object of each type whose attributes are compared.
OBJECTS = {
    "str": "''",
    "bytes": "b''",
    "bytearray": "bytearray()",
    "int": "1",
    "float": "1.5",
    "list": "[]",
    "tuple": "()",
    "dict": "{}",
    "set": "set()",
    "frozenset": "frozenset()",
    "memoryview": "memoryview(b'')",
    "an exception": "ValueError()",
    "a function": "(lambda: None)",
    "a class": "type('A', (), {})",
}
# Calls with a keyword, as `function(keyword=)`: the program fails where the keyword is lacking.
KEYWORDS = {
    "sum(start=)": "assert sum([1], start=1) == 2",
    "zip(strict=)": "assert list(zip([1], [2], strict=True)) == [(1, 2)]",
    "enumerate(start=)": "assert list(enumerate([1], start=1)) == [(1, 1)]",
    "sorted(key=)": "assert sorted([1, 2], key=lambda x: -x) == [2, 1]",
    "sorted(reverse=)": "assert sorted([1, 2], reverse=True) == [2, 1]",
    "min(key=)": "assert min([1, 2], key=lambda x: -x) == 2",
    "min(default=)": "assert min([], default=3) == 3",
    "max(key=)": "assert max([1, 2], key=lambda x: -x) == 1",
    "max(default=)": "assert max([], default=3) == 3",
    "int(base=)": "assert int('11', base=2) == 3",
    "round(ndigits=)": "assert round(1.25, ndigits=1) == 1.2",
    "pow(mod=)": "assert pow(2, 3, mod=5) == 3",
    "pow(exp=)": "assert pow(2, exp=3) == 8",
    "print(sep=)": "print('', '', sep='')",
    "print(end=)": "print('', end='')",
    "print(file=)": "import sys\nprint('', file=sys.stderr)",
    "print(flush=)": "print('', flush=True)",
    "str(encoding=)": "assert str(b'a', encoding='utf-8') == 'a'",
    "bytes(encoding=)": "assert bytes('a', encoding='utf-8') == b'a'",
    "dict(**)": "assert dict(a=1) == {'a': 1}",
    ".split(sep=)": "assert 'a b'.split(sep=' ') == ['a', 'b']",
    ".split(maxsplit=)": "assert 'a b c'.split(maxsplit=1) == ['a', 'b c']",
    ".splitlines(keepends=)": "assert 'a'.splitlines(keepends=True) == ['a']",
    ".encode(encoding=)": "assert 'a'.encode(encoding='utf-8') == b'a'",
    ".decode(encoding=)": "assert b'a'.decode(encoding='utf-8') == 'a'",
    ".sort(key=)": "[1].sort(key=lambda x: x)",
    ".sort(reverse=)": "[1].sort(reverse=True)",
    ".to_bytes(length=)": "assert (1).to_bytes(length=1, byteorder='big') == b'\\x01'",
    ".to_bytes(byteorder=)": "assert (1).to_bytes(1, byteorder='big') == b'\\x01'",
    ".to_bytes(signed=)": "assert (-1).to_bytes(1, 'big', signed=True) == b'\\xff'",
    ".from_bytes(byteorder=)": "assert int.from_bytes(b'1', byteorder='big') == 49",
    ".from_bytes(signed=)": "assert int.from_bytes(b'\\xff', 'big', signed=True) == -1",
}
# The program for the port: it reads a JSON object from stdin, and writes the answers to stdout.
ASK = """\
import json, sys
q = json.loads(sys.stdin.read())
a = {"version": sys.implementation[1][:3], "modules": {}, "attributes": {}, "star": {}}
for name, names in q["modules"].items():
    try:
        m = __import__(name, None, None, ("x",))
    except ImportError:
        continue
    there = []
    for n in names:
        try:
            if hasattr(m, n):
                there.append(n)
        except Exception:
            pass
    a["modules"][name] = there
for name, (text, names) in q["objects"].items():
    x = eval(text)
    a["attributes"][name] = [n for n in names if hasattr(x, n)]
a["objects"] = sorted({
    n for name in q["own"] for m in (__import__(name),)
    for thing in dir(m) for n in dir(getattr(m, thing, None))
})
for name in q["stars"]:
    scope = {}
    exec("from " + name + " import *", scope)
    a["star"][name] = sorted(n for n in scope if n[0] != "_")
print(json.dumps(a))
"""


def on_port(source: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MICROPYPATH": f"{ROOT / 'micropython'}:.frozen"}
    return subprocess.run(
        [PORT, "-X", "heapsize=16m", "-c", source],
        input=given,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def runs(source: str) -> bool:
    return on_port(source).returncode == 0


def public_names(module: str) -> list[str]:
    """Returns the public names of a module of CPython, [] if it cannot be imported here."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            found = importlib.import_module(module)
    except BaseException:
        return []
    return sorted({*getattr(found, "__all__", ()), *dir(found)} - {"__builtins__", "__cached__"})


# --- the parameters of Weft's callables -----------------------------------------------------------


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> dict[str, Any]:
    """Returns how the parameters of a function may be given: by their names, by their places (-1:
    any number of places).
    """
    a = node.args
    placed = [p.arg for p in (*a.posonlyargs, *a.args)][method:]
    named = [p.arg for p in a.args[method and not a.posonlyargs :]] + [p.arg for p in a.kwonlyargs]
    named = [n for n in named if not n.startswith("_")]
    return {"named": sorted(named), "places": -1 if a.vararg else len(placed)}


def merged(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a function that has several signatures."""
    if one is None:
        return other
    places = (one["places"], other["places"])
    return {
        "named": sorted({*one["named"], *other["named"]}),
        "places": -1 if -1 in places else max(places),
    }


def on_cpython() -> dict[str, Any]:
    """Returns the names of weft.coroutines on CPython: `NAME` and `CLASS.MEMBER`, with the
    parameters of those that can be called.
    """
    found: dict[str, Any] = {}
    for line in (ROOT / "python/public.txt").read_text(encoding="utf-8").splitlines():
        module, _, text = line.partition(": ")
        if module not in ("weft.coroutines", "weft.errors"):
            continue
        for word in ("class ", "property ", "async "):
            text = text.replace(word, "", 1)
        name = text.partition("(")[0].partition(":")[0]
        if line.partition(": ")[2].startswith("class "):
            bases = text.rpartition("(")[2].rstrip(")").split(", ")
            found.setdefault(name, {})["bases"] = [b.partition("[")[0] for b in bases]
            continue
        called = " property " not in f" {line}" and "(" in text
        signature = None
        if called:
            rest = text[len(name) :]
            node = ast.parse(f"def f{rest}: ...").body[0]
            assert isinstance(node, ast.FunctionDef)
            signature = parameters(node, "." in name)
        owner, _, member = name.partition(".")
        if member in ("__init__", "__new__"):
            name = owner
        entry = found.setdefault(name, {})
        if signature:
            entry["call"] = merged(entry.get("call"), signature)
    return found


def on_micropython() -> dict[str, Any]:
    """Returns the same for MicroPython, from the stub of weft.coroutines."""
    found: dict[str, Any] = {}
    tree = ast.parse((ROOT / "micropython/weft/coroutines.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = {"call": parameters(node, False)}
        if not isinstance(node, ast.ClassDef):
            continue
        found[node.name] = {"bases": [ast.unparse(b).partition("[")[0] for b in node.bases]}
        for item in node.body:
            if isinstance(item, ast.AnnAssign):
                found[f"{node.name}.{ast.unparse(item.target)}"] = {}
            elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                entry = {"call": parameters(item, True)}
                if item.name in ("__init__", "__new__"):
                    found[node.name].update(entry)
                else:
                    found[f"{node.name}.{item.name}"] = entry
    return found


def facts() -> dict[str, Any]:
    here, there = on_cpython(), on_micropython()
    tops = sorted({n for n in (*here, *there) if "." not in n})
    stdlib = {
        name: public_names(name)
        for name in sorted({*sys.stdlib_module_names, "os.path", "collections.abc"})
        if name not in NOT_ASKED and (not name.startswith("_") or name == "__future__")
    }
    # The last words of this text are "Plus any modules on the filesystem".
    own = {m.split("/")[0] for m in on_port("help('modules')").stdout.split()[:-6]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objects = {k: (text, sorted(dir(eval(text)))) for k, text in OBJECTS.items()}
    asked = {
        "modules": {**stdlib, "builtins": dir(builtins), "weft.coroutines": tops},
        "objects": objects,
        "stars": ["weft", "weft.coroutines", "weft.threads"],
        "own": sorted(own - {"__main__"}),
    }
    asked["modules"]["weft.threads"] = asked["modules"]["weft.errors"] = tops
    done = on_port(ASK, json.dumps(asked))
    if done.returncode:
        raise SystemExit(f"MicroPython's unix port failed: {done.stderr}")
    answer = json.loads(done.stdout)
    modules = answer["modules"]
    attributes = answer["attributes"]
    any_there = {*answer["objects"], *(n for names in attributes.values() for n in names)}
    return {
        "version": ".".join(map(str, answer["version"])),
        "syntax": sorted(p.name for p in portable_syntax.PROBES if not runs(p.snippet)),
        "strings": sorted(
            name for name, text in portable_syntax.STRING_SNIPPETS.items() if not runs(text)
        ),
        "modules": {m: names for m, names in modules.items() if m in stdlib},
        "builtins": sorted(
            {n for n in dir(builtins) if n[0] != "_"}
            - {*modules["builtins"], "True", "False", "None"}
        ),
        "only_there": sorted(own - {*stdlib, *sys.stdlib_module_names, "__main__"}),
        "attributes": {name: sorted({*objects[name][1]} - {*attributes[name]}) for name in OBJECTS},
        "attributes_there": sorted(any_there),
        "keywords": sorted(k for k, text in KEYWORDS.items() if not runs(text)),
        "mip": sorted(MIP),
        "weft": {
            "importable": {m: modules[f"weft.{m}"] for m in ("coroutines", "threads", "errors")},
            "star": answer["star"],
            "private": sorted(p.stem for p in (ROOT / "micropython/weft").glob("_[!_]*")),
            "CPython": here,
            "MicroPython": there,
        },
    }


def main() -> int:
    text = json.dumps(facts(), indent=1, sort_keys=True) + "\n"
    if "--check" not in sys.argv[1:]:
        FACTS.write_text(text, encoding="utf-8")
        return 0
    if FACTS.read_text(encoding="utf-8") == text:
        return 0
    print(
        f"{FACTS.relative_to(ROOT)} is out of date: .venv/bin/python micropython/tests/portable_facts.py"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
