"""Makes weft_single.hpp: the C++ library in one header, for programs without a build system.

    python3 tools/single.py [FILE]     writes FILE, or weft_single.hpp here; `-` is the standard output

All files of a program include weft_single.hpp in place of <weft/…>. Exactly one file defines
WEFT_IMPLEMENTATION before the include, as with doctest. The header contains the headers of
cpp/include/weft and the sources that cpp/src/weft.cpp includes. It does not contain components
(their headers need no other header of Weft), the network (which needs other libraries) or the names
of C++CSP.

The text of each header is put where the header is first included. So no header may be included
first inside an #if that may be false where a later file needs the header. The tests compile the
programs of cpp/README.md with weft_single.hpp, and fail in that case.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CPP = Path(__file__).resolve().parent.parent / "cpp"
HEADERS = CPP / "include/weft"
LEFT_OUT = re.compile(r"(asio|(anywhere_)?component\w*|net|tls)\.hpp|net/")
OUT = "weft_single.hpp"
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<(weft/[^>]+)>|"([^"]+)")[^\n]*$', re.MULTILINE)

HEAD = """\
// Weft {version}: processes and channels in C++20, in one header. tools/single.py made this file:
// to change it, change the files that it names, and make it again.
//
// Include it in every file. In exactly one file, define before the include:
//
//   #define WEFT_IMPLEMENTATION
#pragma once
"""


def within(file: Path, included: re.Match[str]) -> Path | None:
    """Returns the file of Weft that an #include names, or None if the file is not Weft's."""
    by_root, beside = included.groups()
    path = HEADERS.parent / by_root if by_root else (file.parent / beside).resolve()
    return path if path.is_file() and path.is_relative_to(CPP) else None


def left_out(file: Path) -> bool:
    inside = file.is_relative_to(HEADERS)
    return inside and LEFT_OUT.match(file.relative_to(HEADERS).as_posix()) is not None


def text_of(file: Path, seen: set[Path]) -> str:
    """Returns the text of the file, with each #include of a file of Weft replaced by that file's
    text, or by nothing if that text has been inserted before.
    """
    seen.add(file)

    def there(included: re.Match[str]) -> str:
        path = within(file, included)
        if path is None or left_out(path):
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
        if header not in seen and not left_out(header):
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
