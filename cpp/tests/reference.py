#!/usr/bin/env python3
"""Tests that every public name of the headers is in the documents: in cpp/docs/*.md or
cpp/README.md, as code. Last line `N passed, N failed`.

Names are public if include/weft/*.hpp declares them in namespace weft, or in its classes under
`public:`, except in namespaces detail, runtime and core, and except the machinery of co_await
(OPERATIONS below). Names are found by the layout of clang-format: one indentation for each
nesting, none for the body of a namespace.
"""

from __future__ import annotations

import pathlib
import re
import sys

CPP = pathlib.Path(__file__).resolve().parent.parent
PAGES = [CPP / "README.md", *sorted((CPP / "docs").glob("*.md"))]
# Headers whose names have pages of their own, by pattern; and machinery that programs use only
# through co_await or a call.
NOT_HERE = {"prim.hpp"}
OPERATIONS = re.compile(
    r".*Op$|Operation|Startable|Awaiter|Wait|Sync|Iterator|State"
    r"|promise_type|result_type|value_type|policy|Core|Handle|Base|Set"
)
MEMBERS = {
    "begin",
    "end",
    "core",
    "checked",
    "startable",
    "start",
    "bind",
    "carry",
    "bool",
    "await_ready",
    "await_suspend",
    "await_resume",
}

TYPE = re.compile(
    r"^(?:template <.*> ?)?(?:class|struct|enum class|concept)(?: \[\[.*?\]\])? (\w+)"
)
ALIAS = re.compile(r"^using (\w+) =")
FUNCTION = re.compile(
    r"^(?:\[\[.*?\]\] ?)?(?:inline |constexpr |explicit |static |virtual )*[\w:<>,&*. ]+? ?[&*]?(\b\w+)\((?!\*)"
)
WORDS = {
    "WEFT_POINT",  # a statement
    "converted",  # because clang-format 14 lays out a private member of blocks.hpp like a function
    "reserve",
    "if",
    "for",
    "while",
    "return",
    "switch",
    "requires",
    "static_assert",
    "template",
    "namespace",
    "throw",
    "else",
    "operator",
    "catch",
    "decltype",
    "do",
}


def public_names(text: str) -> set[str]:
    names: set[str] = set()
    inside: list[str] = []  # namespaces
    # The section of the present class: True if it is public, None outside a class.
    section: str | None = None
    owner = ""
    for line in text.replace("::inline WEFT_ABI", "").splitlines():
        if re.match(r"^namespace [\w:]+ \{.*\}", line):
            continue  # The line contains the whole definition.
        if m := re.match(r"^(?:inline )?namespace ?([\w:]*) ?(?:\{|$)", line):
            inside = [m[1]] if m[1].split("::")[0] == "weft" else [*inside, m[1]]
        elif (m := re.match(r"^\}  // namespace ?(.*)", line)) and m[1] != "weft":
            inside = inside[:-1]  # clang-format 14 writes "namespace weft" after some classes
        elif inside != ["weft"] or line.endswith("\\"):  # elsewhere, or in a macro
            continue
        elif m := TYPE.match(line):
            owner = m[1]
            names.add(owner)
            if line.rstrip().endswith("{"):
                section = (
                    "private" if re.search(r"\bclass\b", line) and "enum" not in line else "public"
                )
        elif line.startswith("};"):
            section = None
        elif section is None:
            if (m := ALIAS.match(line)) or (
                (m := FUNCTION.match(line))
                and m[1] not in WORDS
                and "::" not in line.split("(")[0].split()[-1]
            ):
                names.add(m[1])
        elif re.match(r"^ (public|private|protected):", line):
            section = line.strip(" :")
        elif (
            section == "public"
            and re.match(r"^  \w|^  \[\[", line)
            and not OPERATIONS.fullmatch(owner)
        ):
            member = line[2:]
            if (m := FUNCTION.match(member)) and m[1] not in WORDS | MEMBERS | {owner}:
                names.add(m[1])
    return {n for n in names if not OPERATIONS.fullmatch(n)}


def main() -> int:
    code = set()
    for page in PAGES:
        text = page.read_text()
        spans = re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL)
        code |= set(re.findall(r"\w+", " ".join(spans)))
    passed = failed = 0
    for header in sorted((CPP / "include/weft").glob("*.hpp")):
        if header.name in NOT_HERE:
            continue
        for name in sorted(public_names(header.read_text())):
            if name in code:
                passed += 1
            else:
                failed += 1
                print(f"FAIL {header.name}: {name} stands in no page of cpp/docs")
    if passed < 60:
        failed += 1
        print(f"FAIL only {passed} names were found: has the layout of the headers changed?")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
