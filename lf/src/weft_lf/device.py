"""Builds images for devices: for the RP2040, bare or with the pico-sdk, and for the MPS2 board with
AN521 (in QEMU).

Invariants
- A program uses the pico-sdk if a preamble includes one of the SDK's headers (`hardware/…`,
  `pico/…`), or if it needs something that only the SDK provides: a board, CMake code of its own, or
  C's printf and <stdio.h>, unless a preamble includes "board.h". The program is linked with the
  libraries of these headers.
- Every property of the target block is obeyed in each form, or refused by Config.check_for.
- The build takes place in the program's folder of src-gen/. NAME.elf, and for an RP2040 also
  NAME.uf2 and NAME.bin, go to bin/. With the pico-sdk NAME.hex does too.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weft_lf import tree
from weft_lf.errors import NOWHERE, LfError, Problem, Span, fail
from weft_lf.model import Model
from weft_lf.target import BUILD_TYPES

SDK_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](hardware|pico)/(\w+)", re.M)
AN521 = (
    "-std=gnu11 -mcpu=cortex-m33 -mthumb -O2 -g -ffreestanding -fno-tree-loop-distribute-patterns "
    "-ffunction-sections -fdata-sections -nostdlib -Wl,--gc-sections -Wl,--no-warn-rwx-segments"
)


QUIET = "-Wno-all -Wno-extra"  # only the warnings that the compiler gives by default
CMAKE_TYPES = {
    "debug": "Debug",
    "release": "Release",
    "relwithdebinfo": "RelWithDebInfo",
    "minsizerel": "MinSizeRel",
    "test": "Debug",
}
STDIO = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<stdio\.h>|(?<!\w)printf[ \t]*\(", re.M)
BARE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]board\.h", re.M)


@dataclass
class CMake:
    """The program's own CMake code: lines for before and after its target is declared, and
    arguments of cmake."""

    before: list[str]
    after: list[str]
    arguments: list[str]


def write_changed(path: Path, text: str) -> None:
    """Writes the file unless it has this text, because make and CMake compile a file that was
    written again."""
    content = text.encode()
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def _codes(model: Model) -> Iterator[str]:
    for loaded in model.program.files:
        yield from (one.code.text for one in loaded.tree.preambles)
    for cls in model.classes:
        for placed in cls.of(tree.Preamble):
            assert isinstance(placed.decl, tree.Preamble)
            yield placed.decl.code.text


def sdk_libraries(model: Model) -> list[str]:
    """Returns the SDK's libraries for the headers that preambles include: hardware_gpio for
    hardware/gpio.h.
    """
    found = (f"{a}_{b}" for code in _codes(model) for a, b in SDK_HEADER.findall(code))
    return list(dict.fromkeys(found))


def why_sdk(model: Model) -> str:
    """Returns the reason why the program needs the pico-sdk; the text is empty if it needs no
    SDK."""
    config = model.program.config
    if libraries := sdk_libraries(model):
        return f"it includes headers of {libraries[0]}"
    if config.has_cmake or config.board:
        return "it names a board" if config.board else "it has CMake code or arguments"
    if any(BARE.search(code) for code in _codes(model)):
        return ""
    reactions = (p.decl for cls in model.classes for p in cls.of(tree.Reaction))
    bodies = (d.code.text for d in reactions if isinstance(d, tree.Reaction) and d.code)
    if any(STDIO.search(code) for code in (*_codes(model), *bodies)):
        return "it uses printf or includes <stdio.h>"
    return ""


def refuse_to_run(model: Model) -> None:
    """Raises an LfError if the program is for a board, and only the pico-sdk can build it."""
    config = model.program.config
    if not config.board and not sdk_libraries(model):
        return
    path = model.program.path
    why = "it names a board" if config.board else why_sdk(model)
    raise LfError(
        Problem(
            Span(str(path)),
            f"this program runs on a board, not on this machine: {why}",
            f"weft lf build {path.name} --target rp2040 makes {path.stem}.uf2 for the board",
        )
    )


def uses_sdk(model: Model) -> bool:
    return bool(why_sdk(model))


def sdk_folder(why: str, root: Path) -> Path:
    """Returns the folder of the pico-sdk: $PICO_SDK_PATH, or `pico-sdk` in the project (`root`),
    where templates have it as a submodule, or the folder where `./run setup mcu` puts the SDK.

    Raises:
        LfError: the SDK is missing.
    """
    given = os.environ.get("PICO_SDK_PATH")
    here = Path(__file__).resolve()
    own = [root / "pico-sdk", *(p / ".build" / "pico-sdk" for p in here.parents)]
    for place in [Path(given)] if given else own:
        if (place / "pico_sdk_init.cmake").exists():
            return place
    raise LfError(
        Problem(
            NOWHERE,
            f"the program needs the pico-sdk, which is not found: {why}",
            "put it into pico-sdk/ of the project (git submodule update --init), or set "
            "PICO_SDK_PATH to its folder; in a checkout ./run setup mcu fetches it",
        )
    )


@dataclass
class Image:
    """Builds an image of `model`. `place` is the folder of the generated C, `bin` that of the
    image, `mcu` that of weft_mcu, and `root` that of the project. `run` runs a command in a folder,
    and raises an LfError if the command fails."""

    model: Model
    place: Path
    bin: Path
    mcu: Path
    root: Path
    flags: list[str]
    cmake: CMake
    run: Callable[[list[str], Path], None]

    @property
    def name(self) -> str:
        return self.model.program.name

    @property
    def options(self) -> list[str]:
        """Returns the compiler's options. The flags for the host's default build type are left out,
        because each form of a device has flags of its own.
        """
        if self.model.program.config.build_type:
            return self.flags
        host = BUILD_TYPES["relwithdebinfo"]
        return self.flags[len(host) :]

    def write(self, name: str, lines: list[str]) -> None:
        write_changed(self.place / name, "\n".join(lines) + "\n")

    def keep(self, made: Path) -> Path:
        for kind in ("elf", "uf2", "bin", "hex"):
            if kind != "hex" or (made / f"{self.name}.hex").exists():
                shutil.copy(made / f"{self.name}.{kind}", self.bin / f"{self.name}.{kind}")
        return self.bin / f"{self.name}.elf"

    def bare(self, flash: bool) -> Path:
        """Builds for an RP2040 without the SDK, by weft_mcu's own make rules."""
        lines = [
            f"PROGRAM = {self.name}",
            f"SOURCES = {self.name}.c",
            f"CFLAGS = {QUIET} -std=gnu11 -I. {' '.join(_shell(f) for f in self.options)}",
            f"include {self.mcu}/program.mk",
        ]
        self.write("Makefile", lines)
        self.run(["make", "-s", f"FLASH={'1' if flash else ''}"], self.place)
        return self.keep(self.place / "build" / ("rp2040-flash" if flash else "rp2040"))

    def with_sdk(self) -> Path:
        """Builds for an RP2040 with the pico-sdk, in flash. Output goes to the SDK's stdio: to UART
        0, or to what `board` asks for."""
        name, config = self.name, self.model.program.config
        libraries = " ".join(sdk_libraries(self.model))
        board, _, asked = config.board.partition(":")
        sdk = sdk_folder(why_sdk(self.model), self.root)
        # As upstream, a board has both kinds unless the program asks for one: a robot may lack a
        # UART.
        stdio = {"usb": asked == "usb" or bool(board and not asked), "uart": asked != "usb"}
        if asked == "usb" and not (sdk / "lib" / "tinyusb" / "src" / "tusb.h").exists():
            text = f"board {config.board!r} needs TinyUSB, which {sdk} does not have"
            hint = f"git -C {sdk} submodule update --init lib/tinyusb fetches it"
            raise fail(config.given["board"], text, hint)
        boards = " ".join(quoted(str(p)) for p in (self.model.program.path.parent, self.root))
        lines = [
            "cmake_minimum_required(VERSION 3.13)",
            *self.cmake.before,
            *(
                [f"set(PICO_BOARD {board})", f"set(PICO_BOARD_HEADER_DIRS {boards})"]
                if board
                else []
            ),
            f"include({sdk}/pico_sdk_init.cmake)",
            f"project({name} C CXX ASM)",
            "set(CMAKE_C_STANDARD 11)",
            "pico_sdk_init()",
            f"set(LF_MAIN_TARGET {name})",
            f"add_subdirectory({self.mcu} weft_mcu)",
            f"add_executable({name} {name}.c)",
            f"set_source_files_properties({name}.c PROPERTIES COMPILE_OPTIONS {_items([*QUIET.split(), *self.options])})",
            f"target_compile_definitions({name} PUBLIC {' '.join(quoted(f[2:]) for f in self.options if f.startswith('-D'))})",
            f"target_include_directories({name} PRIVATE ${{CMAKE_CURRENT_SOURCE_DIR}})",
            f"target_link_libraries({name} PUBLIC pico_stdlib weft_mcu)",
            f"foreach(one {libraries})",
            "  if(TARGET ${one})",
            f"    target_link_libraries({name} PUBLIC ${{one}})",
            "  endif()",
            "endforeach()",
            *(f"pico_enable_stdio_{kind}({name} {int(on)})" for kind, on in stdio.items()),
            f"pico_add_hex_output({name})",
            *self.cmake.after,
        ]
        self.write("CMakeLists.txt", lines)
        made = self.place / "build-sdk"
        kind = CMAKE_TYPES[config.build_type or "release"]
        options = ["-DPICO_NO_PICOTOOL=1", f"-DCMAKE_BUILD_TYPE={kind}", *self.cmake.arguments]
        self.run(["cmake", "-S", str(self.place), "-B", str(made), *options], self.place)
        self.run(["cmake", "--build", str(made), "-j2"], self.place)
        kinds = [str(made / f"{name}.{kind}") for kind in ("elf", "uf2", "bin")]
        self.run([sys.executable, str(self.mcu / "tools" / "image.py"), *kinds], self.place)
        return self.keep(made)

    def for_an521(self) -> Path:
        """Builds for the two Cortex-M33 of AN521, by one call of the compiler."""
        port, program = self.mcu / "ports" / "an521", self.bin / f"{self.name}.elf"
        # The port's `options`: a line for the compiler, and a line of sources (cortex_m/program.mk).
        machine, ported = (port / "options").read_text(encoding="utf-8").splitlines()[:2]
        parts = ["ports/freestanding/memory.c", *ported.split()]
        sources = [f"{self.name}.c", *(str(self.mcu / part) for part in parts)]
        folders = [f"-I{self.place}", f"-I{self.mcu / 'include'}", f"-I{port}"]
        command = ["arm-none-eabi-gcc", *AN521.split(), *machine.split(), *self.options, *folders]
        command += sources
        command += ["-T", str(port / "an521.ld"), "-lgcc", "-o", str(program)]
        self.run(command, self.place)
        return program


def _items(texts: list[str]) -> str:
    """Returns a list for CMake, as one quoted argument."""
    return quoted(";".join(t.replace(";", "\\;") for t in texts))


def quoted(text: str) -> str:
    """Returns the text as a quoted argument for CMake."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


__all__ = [
    "CMake",
    "Image",
    "quoted",
    "sdk_folder",
    "sdk_libraries",
    "uses_sdk",
    "why_sdk",
    "write_changed",
]
