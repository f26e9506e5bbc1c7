"""Builds the firmware of a board for placeable sources in C++ (rule 21.10).

    compiled(source) ──► one object for each source ──► linked(objects) ──► NAME.elf

Everything is kept in the cache of components (weft._components.build), under names that are made
from the input: the sources, Weft's files, the compiler's version and the options.

Invariant: a file in the cache is complete. It is written to another file, which is then renamed.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from weft._boards import emulators as _emulators
from weft._components.build import cache_dir, run_compiler
from weft.errors import BadUse

__all__ = ["Compiled", "compiled", "linked"]

CXX, CC = "arm-none-eabi-g++", "arm-none-eabi-gcc"
# The options of mcu/csp/csp.mk that the port's own options (mcu/ports/rp2040/options) lack.
_CXX = "-std=c++20 -fno-exceptions -fno-rtti -fno-threadsafe-statics -DWEFT_PLACED_BOARD=1"
_BOTH = "-Wall -DWEFT_DEBUG=1"
_PORT = "mcu/ports/rp2040"
_INCLUDE = ("mcu/include", _PORT, "mcu/csp/include", "cpp/include")
_WEFT = ("mcu/src", "mcu/ports/freestanding", "mcu/ports/cortex_m", "mcu/csp/board", *_INCLUDE)
# Weft's own sources: those of mcu/Makefile, the board's program, and the link's UART.
_OF_PORT = ("port.c", "start.c", "board.c", "link_uart.c", "vectors.S", "boot2.S")
_SOURCES = (
    "mcu/src/*.c",
    *(f"{_PORT}/{name}" for name in _OF_PORT),
    "mcu/ports/freestanding/*.c",
    "mcu/csp/board/*.cpp",
)


class Compiled(NamedTuple):
    """A source that was compiled for the board. It also serves as the source of a call."""

    path: Path  #: the source
    object: Path  #: the object file
    processes: tuple[str, ...]  #: the names of its processes
    files: dict[str, str]  #: for each included file that is not Weft's: name → path

    @property
    def size(self) -> int:
        """The number of bytes of the source."""
        return self.path.stat().st_size


class _Tools(NamedTuple):
    root: Path  #: the checkout of Weft
    key: str  #: the digest of Weft's files, the compilers and the options
    machine: list[str]  #: options for every compilation
    link: list[str]  #: options for linking
    include: list[str]

    def command(self, source: Path, to: Path) -> list[str | Path]:
        kind = [CXX, *_CXX.split()] if source.suffix in (".cpp", ".cc", ".cxx", ".C") else [CC]
        c11 = ["-std=c11"] if source.suffix == ".c" else []
        # As in mcu/Makefile, because the code in the first block of the flash must be small.
        small = ["-Os"] if source.name in ("start.c", "board.c") else []
        return [
            *kind,
            *c11,
            *self.machine,
            *small,
            *_BOTH.split(),
            *self.include,
            "-c",
            source,
            "-o",
            to,
        ]


def _tools() -> _Tools:
    root = _emulators.checkout()
    if root is None:
        raise BadUse(
            "bare: the runtime for microcontrollers is in a checkout of Weft: run the program in "
            "one, or set WEFT_CHECKOUT to its path"
        )
    for tool in (CXX, CC):
        if shutil.which(tool) is None:
            raise BadUse(
                f"bare: there is no {tool}, which compiles for the board: `./run setup mcu` in {root} "
                "installs it (on Debian: apt install gcc-arm-none-eabi libnewlib-arm-none-eabi "
                "libstdc++-arm-none-eabi-newlib)"
            )
    machine, link = (root / _PORT / "options").read_text(encoding="utf-8").splitlines()
    version = subprocess.run([CXX, "--version"], capture_output=True, check=False).stdout
    its = hashlib.sha256(version + b"\0" + Path(__file__).read_bytes())  # this file has options
    for folder in sorted(set(_WEFT)):
        for file in sorted((root / folder).rglob("*")):
            if file.is_file():
                its.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    include = [f"-I{root / folder}" for folder in _INCLUDE]
    return _Tools(root, its.hexdigest()[:20], machine.split(), link.split(), include)


def _kept(name: str) -> Path:
    return cache_dir() / "boards" / name


def _make(to: Path, command: Sequence[str | Path], source: Path, warns: bool = True) -> None:
    """Runs a command that writes the file `to`. The word TO in the command stands for its path."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=to.parent) as beside:
            made = Path(beside) / to.name
            words = [str(made) if str(word) == "TO" else str(word) for word in command]
            run_compiler(words, source, warns)
            made.replace(to)
    except OSError as error:
        raise BadUse(
            f"bare: cannot write to {to.parent} ({error.strerror or error}): set WEFT_CACHE to a folder "
            "that can be written to"
        ) from None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compiled(source: Path, flags: tuple[str, ...], processes: tuple[str, ...]) -> Compiled:
    """Compiles a source for the board, if it or a file that it includes has changed.

    Args:
        flags: further options for the compiler.
        processes: the names of the processes that the source declares.
    Raises:
        BadUse: there is no compiler, or the source does not compile (the message contains the
            compiler's message).
    """
    tools = _tools()
    source = source.resolve()
    text = source.read_bytes()
    if b"WEFT_PLACEABLE" not in text:
        raise BadUse(
            f"{source}: a board runs processes that are declared by WEFT_PLACEABLE, and this source "
            "declares none (cpp/docs/anywhere.md)"
        )
    key = hashlib.sha256(
        b"\0".join([tools.key.encode(), str(source).encode(), " ".join(flags).encode(), text])
    ).hexdigest()[:20]
    made, noted = _kept(f"{source.stem}-{key}.o"), _kept(f"{source.stem}-{key}.json")
    files = _noted(noted) if made.exists() else None
    if files is None:
        depend = _kept(f"{source.stem}-{key}.{os.getpid()}.d")
        command = [*tools.command(source, Path("TO")), *flags, "-MMD", "-MF", str(depend)]
        _make(made, command, source)
        names = depend.read_text(encoding="utf-8").replace("\\\n", " ").partition(":")[2].split()
        depend.unlink()
        weft = str(tools.root / "mcu"), str(tools.root / "cpp")
        files = {name: _digest(Path(name)) for name in names if not name.startswith(weft)}
        noted.write_text(json.dumps(files), encoding="utf-8")
    return Compiled(source, made, processes, {Path(name).name: name for name in files})


def _noted(noted: Path) -> dict[str, str] | None:
    """Returns the files that an object in the cache was made from; None if one has changed."""
    try:
        files: dict[str, str] = json.loads(noted.read_text(encoding="utf-8"))
        same = all(_digest(Path(name)) == digest for name, digest in files.items())
    except (OSError, ValueError):
        return None
    return files if same else None


def linked(sources: list[Compiled], flash: bool = False) -> tuple[Path, list[str]]:
    """Returns the firmware with the processes of these sources, and the names of the processes in
    the order of the board's table.

    Args:
        flash: whether the firmware is for the board's flash (a .uf2 file, which picotool and the
            boot loader accept); otherwise it is for its RAM.
    Raises:
        BadUse: two sources have a process of one name; or the firmware has no room on the board.
    """
    tools = _tools()
    names: list[str] = []
    for source in sources:
        for name in source.processes:
            if name in names:
                raise BadUse(
                    f"bare: two sources for one board have a process {name!r}, one of them "
                    f"{source.path}: rename one"
                )
            names.append(name)
    parts = [tools.key, str(flash), *names, *(s.object.name for s in sources)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    made = _kept(f"firmware-{key}.elf")
    if not made.exists():
        table = _kept(f"table-{key}.o")
        text = _kept(f"table-{key}.cpp")
        text.write_text(_table(names), encoding="utf-8")
        _make(table, tools.command(text, Path("TO")), text)
        script = tools.root / _PORT / ("flash.ld" if flash else "sram.ld")
        objects = [table, *(s.object for s in sources), *_runtime(tools)]
        command: list[str | Path] = [
            CC,
            *tools.machine,
            *tools.link,
            "-T",
            script,
            *objects,
            "-lgcc",
            "-o",
            "TO",
        ]
        try:
            _make(made, command, text)
        except BadUse as error:
            if over := re.search(r"region `(\w+)' overflowed by (\d+) bytes", str(error)):
                raise BadUse(
                    f"bare: the firmware has no room in the {over[1]} of the rp2040: {over[2]} bytes too "
                    f"many, of {', '.join(names)}"
                ) from error
            raise
    if flash:
        elf, made = made, made.with_suffix(".uf2")
        if not made.exists():
            script = tools.root / "mcu/tools/image.py"
            _make(made, [sys.executable, script, elf, "TO", elf.with_suffix(".bin")], elf)
    return made, names


def _table(names: list[str]) -> str:
    entries = "".join(f"extern const weft::board::Entry weft_board_{n};\n" for n in names)
    table = ", ".join(f"&weft_board_{n}" for n in names)
    return (
        f'#include <weft/anywhere.hpp>\nextern "C" {{\n{entries}'
        "extern const weft::board::Entry* const weft_board_entries[];\n"
        "extern const std::uint32_t weft_board_count;\n"
        f"const weft::board::Entry* const weft_board_entries[] = {{{table}}};\n"
        f"const std::uint32_t weft_board_count = {len(names)};\n}}\n"
    )


def _runtime(tools: _Tools) -> list[Path]:
    """Returns the object files of Weft's own sources, after compiling those that are missing."""
    folder = _kept(f"runtime-{tools.key}")
    sources = [file for pattern in _SOURCES for file in sorted(tools.root.glob(pattern))]
    objects = [folder / f"{file.parent.name}-{file.stem}.o" for file in sources]
    missing = [(s, o) for s, o in zip(sources, objects, strict=True) if not o.exists()]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        made = [
            threads.submit(_make, to, tools.command(source, Path("TO")), source)
            for source, to in missing
        ]
        for one in made:
            one.result()
    return objects
