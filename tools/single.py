"""Makes weft_single.hpp: the C++ library in one header, for who wants no build system.

    python3 tools/single.py [FILE]     writes FILE, or weft_single.hpp here; `-` is the standard output

All files of a program include it in the place of <weft/…>, and exactly one of them defines
WEFT_IMPLEMENTATION before, as with doctest. In it are the headers of cpp/include/weft and the
sources that cpp/src/weft.cpp names. Not in it: components (they stand alone), the network (it wants
libraries), the names of C++CSP.

Each header stands where it is first included. So no header is first included under a condition that
does not hold for who includes it later: the programs of cpp/README.md, which the tests compile with
this file, would miss it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CPP = Path(__file__).resolve().parent.parent / "cpp"
HEADERS = CPP / "include/weft"
LEFT_OUT = re.compile(r"(component\w*|net)\.hpp|(net|compat)/")
OUT = "weft_single.hpp"
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<(weft/[^>]+)>|"([^"]+)")[^\n]*$', re.MULTILINE)

HEAD = """\
// Weft {version}: processes and channels in C++20, in one header. Made by tools/single.py: change the files
// that are named in it, and make it anew.
//
// Include it in every file. In exactly one, say before:
//
//   #define WEFT_IMPLEMENTATION
#pragma once
"""


def within(file: Path, included: re.Match[str]) -> Path | None:
    """The library's file that an #include names; None: it is another's."""
    by_root, beside = included.groups()
    path = HEADERS.parent / by_root if by_root else (file.parent / beside).resolve()
    return path if path.is_file() and path.is_relative_to(CPP) else None


def text_of(file: Path, seen: set[Path]) -> str:
    """The file, and in the place of each #include of the library's what has not been there yet."""
    seen.add(file)

    def there(included: re.Match[str]) -> str:
        path = within(file, included)
        if path is None:
            return included[0]
        return "" if path in seen else text_of(path, seen)

    body = INCLUDE.sub(there, file.read_text(encoding="utf-8").replace("#pragma once\n", ""))
    return f"// ---- {file.relative_to(CPP).as_posix()}\n{body.strip()}\n"


def single() -> str:
    version = (HEADERS / "version.hpp").read_text(encoding="utf-8")
    numbers = re.findall(r"#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", version)
    seen: set[Path] = set()
    parts = [HEAD.format(version=".".join(numbers))]
    for header in [HEADERS / "weft.hpp", *sorted(HEADERS.rglob("*.hpp"))]:
        if header not in seen and not LEFT_OUT.match(header.relative_to(HEADERS).as_posix()):
            parts.append(text_of(header, seen))
    parts += ["#if defined(WEFT_IMPLEMENTATION)\n", text_of(CPP / "src/weft.cpp", seen), "#endif\n"]
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-") and arguments[0] != "-"):
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    out = arguments[0] if arguments else OUT
    if out == "-":
        sys.stdout.write(single())
    else:
        Path(out).write_text(single(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
