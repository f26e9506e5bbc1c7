"""Writes the public names and signatures as lists that change only on purpose: python/public.txt,
cpp/public.txt and compat/public.txt.

    python3 tools/public.py            writes them
    python3 tools/public.py --check    exit status 1, and the differences, if they are out of date

Python: the declarations in the stub of weft.coroutines (tools/names.py makes those of threads and
greenlets from it), and the names in `__all__` of the other modules that a program imports. C++: the
names that ctags finds in namespace weft (for compat: csp), except those that are private, in a
namespace `detail`, or in the namespaces of the layers below (core, runtime, prim, checking), which
a program does not name.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/src"
HEADERS = ROOT / "cpp/include/weft"
OLD_NAMES = ROOT / "compat/cpp/include/weft"
LISTS = {room: ROOT / room / "public.txt" for room in ("python", "cpp", "compat")}
HEAD = "# Public names and signatures. python3 tools/public.py writes this; a change here is a change for users: CHANGELOG.md.\n"
MODULES = (
    "weft.boards",
    "weft.coroutines",
    "weft.errors",
    "weft.native",
    "weft.net",
    "weft.metrics",
    "weft.observe",
    "weft.plugnplay.coroutines",
    "weft.processes",
    "weft.serial",
    "weft.styles",
    "weft.toolkit",
)


class Missing(Exception):
    """Raised if a tool that makes the lists is missing. The text names the tool."""


# --- Python ---------------------------------------------------------------------------------------


def file_of(module: str) -> Path:
    """Returns the module's stub, or else its source."""
    base = PACKAGE / module.replace(".", "/")
    found = [base.with_suffix(".pyi"), base.with_suffix(".py"), base / "__init__.py"]
    return next(path for path in found if path.exists())


def exports(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def header(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Returns name, parameters and result."""
    word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{word}{node.name}({ast.unparse(node.args)}){result}"


def members(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if item.name.startswith("_") and not item.name.startswith("__"):
                continue
            decorators = {ast.unparse(d) for d in item.decorator_list}
            yield f"property {header(item)}" if "property" in decorators else header(item)
        elif isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
            yield ast.unparse(item)


def definitions(module: str, name: str) -> Iterator[str]:
    """Yields the lines about one name, wherever in the package it is defined."""
    tree = ast.parse(file_of(module).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield header(node)
        elif isinstance(node, ast.ClassDef) and node.name == name:
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            yield f"class {name}({bases})"
            yield from (f"{name}.{line}" for line in members(node))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            yield f"{name} = {ast.unparse(node.value)}"
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("weft"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    yield from definitions(str(node.module), alias.name)


def python() -> Iterator[str]:
    for module in MODULES:
        tree = ast.parse(file_of(module).read_text(encoding="utf-8"))
        for name in sorted(exports(tree)):
            lines = list(definitions(module, name))
            assert lines, f"{module}.{name} is defined nowhere"
            yield from (f"{module}: {line}" for line in lines)


# --- C++ ------------------------------------------------------------------------------------------

LOWER = {"detail", "core", "runtime", "prim", "checking"}
KINDS = "cdefgmpstuv"


def plain(text: str) -> str:
    """Returns a header that ctags can read: ctags does not know inline namespaces within others."""
    return re.sub(r"\bnamespace weft::inline WEFT_ABI", "namespace weft", text)


def without_defaults(signature: str) -> str:
    """Returns the parameters without their defaults, even if a default contains brackets."""
    kept, depth, skipping = "", 0, 0
    for at, c in enumerate(signature):
        if skipping and ((c == "," and depth == skipping) or (c in ")]}" and depth == skipping)):
            skipping = 0
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif (
            c == "="
            and not skipping
            and signature[at : at + 2] != "=="
            and signature[at - 1] not in "=!<>"
        ):
            skipping = depth
        if not skipping:
            kept += c
    return kept.replace(" ,", ",").replace(" )", ")")


def tags(headers: Path) -> Iterator[dict[str, Any]]:
    if shutil.which("ctags") is None:
        raise Missing("universal-ctags is not installed: ./run setup cpp")
    with tempfile.TemporaryDirectory() as folder:
        for file in headers.rglob("*.hpp"):
            copy = Path(folder) / file.relative_to(headers)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(plain(file.read_text(encoding="utf-8")), encoding="utf-8")
        command = ["ctags", "--options=NONE", "--langmap=C++:.hpp", "--languages=C++", "-R"]
        command += [f"--kinds-C++={KINDS}", "--fields=+aiksSt", "--fields-C++=+{template}"]
        command += ["--extras=-F", "--output-format=json", "-f", "-", folder]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        tag = json.loads(line)
        if tag["_type"] == "tag":
            yield tag


def cpp(headers: Path = HEADERS) -> Iterator[str]:
    found = set()
    for tag in tags(headers):
        scope = re.sub(r"<.*>", "", tag.get("scope", "")).split("::")
        anonymous = any(part.startswith("__anon") for part in [*scope, tag["name"]])
        if scope[0] not in ("weft", "csp") or LOWER & {*scope, tag["name"]} or anonymous:
            continue
        if tag.get("access", "public") != "public" or tag["name"].startswith("~"):
            continue
        if tag["kind"] in ("member", "variable") and tag["name"].endswith("_"):
            continue
        kind = {"prototype": "function"}.get(tag["kind"], tag["kind"])
        signature = re.sub(r"\s+", " ", tag.get("signature", ""))
        signature = without_defaults(signature)  # only the declaration has defaults
        template = re.sub(r"\s+", " ", tag.get("template", ""))
        found.add(
            f"{kind} {'::'.join(scope)}::{tag['name']}{template and ' ' + template}{signature and ' ' + signature}"
        )
    yield from sorted(found)


# --- both -----------------------------------------------------------------------------------------


def text(language: str) -> str:
    headers = OLD_NAMES if language == "compat" else HEADERS
    lines = python() if language == "python" else cpp(headers)
    return HEAD + "".join(f"{line}\n" for line in lines)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: public.py [--check]", file=sys.stderr)
        return 2
    status = 0
    for language, path in LISTS.items():
        try:
            now = text(language)
        except Missing as missing:
            print(f"public: {missing}", file=sys.stderr)
            return 1
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if not arguments:
            path.write_text(now, encoding="utf-8")
        elif before != now:
            status = 1
            name = path.name if ROOT not in path.parents else str(path.relative_to(ROOT))
            changes = difflib.unified_diff(
                before.splitlines(),
                now.splitlines(),
                f"{name} as committed",
                f"{name} as it would be",
                n=0,
                lineterm="",
            )
            print("\n".join(changes), file=sys.stderr)
    if status:
        print(
            "public names have changed: if on purpose, python3 tools/public.py and a line in CHANGELOG.md",
            file=sys.stderr,
        )
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
