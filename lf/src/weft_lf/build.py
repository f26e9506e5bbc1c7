"""Builds a program: writes the C to src-gen/NAME/ and the executable to bin/NAME.

Invariants
- The build writes only to src-gen/ and bin/ of the project. The project is the folder above the
  nearest `src`, or else the folder of the file.
- A program for this machine (target `host`) takes one call of the compiler, unless it has CMake
  code of its own (`cmake-include`).
- Messages of the C compiler name the `.lf` file and its lines.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft_lf.braces import unmatched
from weft_lf.device import Image, quoted, uses_sdk
from weft_lf.emit import Options, emit
from weft_lf.errors import NOWHERE, LfError, Problem, Span, fail
from weft_lf.model import Model
from weft_lf.target import BUILD_TYPES
from weft_lf.ticks import check, tick_of

TARGETS = ("host", "rp2040", "an521")


class Refused(LfError):
    """A tool, such as the C compiler, ended with an error."""


@dataclass
class Wanted:
    """How to build a program."""

    target: str = ""  # one of TARGETS; empty: the program's platform, or host
    trace: bool = False
    flash: bool = False
    compile: bool = True
    table: bool = True  # use a static schedule, if the program's timing is known
    quick: bool = False  # compile without optimisation, for tests that build many programs


@dataclass
class Built:
    """The files that a build has made; `program` is None if it did not compile."""

    source: Path
    program: Path | None
    warnings: list[Problem] = field(default_factory=list)  # such as times that the target rounds


def runtime() -> Path:
    """The folder of weft_mcu: $WEFT_MCU if it is set, else beside this package or in the checkout.

    Raises:
        LfError: weft_mcu is not there.
    """
    given = os.environ.get("WEFT_MCU")
    here = Path(__file__).resolve()
    for place in (
        [Path(given)] if given else [here.parent / "mcu", *(p / "mcu" for p in here.parents)]
    ):
        if (place / "include" / "weft_mcu" / "lf.h").exists():
            return place
    raise LfError(
        Problem(NOWHERE, "weft_mcu is not found", "set WEFT_MCU to the folder mcu/ of Weft")
    )


def project(path: Path) -> tuple[Path, Path]:
    """The root of the project, and the file's folder within its sources."""
    for folder in path.parents:
        if folder.name == "src":
            return folder.parent, path.parent.relative_to(folder)
    return path.parent, Path()


def find(name: str, span: Span, root: Path) -> Path:
    """The path of a file that the target block names. The name is relative to the `.lf` file that
    contains it, or else to the project."""
    for base in (Path(span.file).parent, root, root / "src"):
        if (base / name).exists():
            return (base / name).resolve()
    raise fail(
        span,
        f"there is no file '{name}'",
        "the path is relative to the .lf file, or to the project",
    )


def target_of(model: Model, wanted: str) -> str:
    """The target to build for: `wanted`, else the program's platform, else `host`."""
    return wanted or model.program.config.platform or "host"


def build(model: Model, wanted: Wanted) -> Built:
    """Writes the C and compiles it.

    Raises:
        LfError: a file is missing, a time is beyond what the target counts, or the C does not compile.
    """
    program = model.program
    config = program.config
    target = target_of(model, wanted.target)
    odd = re.search(r"[^\w.+-]" if target == "rp2040" else r'["\\\n]', program.name)
    if odd:  # the name goes into #line and into a makefile
        where = Span(str(program.path))
        text = f"the name of the file has a {odd[0]!r}, which no tool accepts"
        raise fail(where, text, "rename it")
    tick = tick_of(config, target)
    warnings = check(model, tick)
    root, folder = project(program.path)
    place = root / "src-gen" / folder / program.name
    place.mkdir(parents=True, exist_ok=True)
    for name, span in config.files:
        source = find(name, span, root)
        if source.is_dir():
            shutil.copytree(source, place / source.name, dirs_exist_ok=True)
        else:
            shutil.copy(source, place / source.name)
    header = f"include/{program.name}/{program.name}.h"
    sdk = target == "rp2040" and uses_sdk(model)
    options = Options(target != "host", wanted.trace, tick, wanted.table, sdk)
    told = len(program.warnings)
    text, shared = emit(model, options, header)
    warnings += program.warnings[told:]
    source = place / f"{program.name}.c"
    _write(source, text)
    if shared:
        (place / header).parent.mkdir(parents=True, exist_ok=True)
        _write(place / header, shared)
    if not wanted.compile:
        return Built(source, None, warnings)
    bin_folder = root / "bin"
    bin_folder.mkdir(exist_ok=True)
    try:
        return Built(source, _compiled(model, source, bin_folder, wanted, target, sdk), warnings)
    except Refused as error:
        brackets = unmatched(model)
        if not brackets:
            raise
        raise LfError([*brackets, *(_beginning(p) for p in error.problems)]) from None


def _compiled(
    model: Model, source: Path, bin_folder: Path, wanted: Wanted, target: str, sdk: bool
) -> Path:
    if target == "host" and model.program.config.cmake_include:
        return _by_cmake(model, source.parent, bin_folder, project(model.program.path)[0])
    if target == "host":
        return _by_cc(model, source, bin_folder, wanted)
    image = Image(model, source.parent, bin_folder, runtime(), flags(model), run_tool)
    if target == "an521":
        return image.for_an521()
    return image.with_sdk() if sdk else image.bare(wanted.flash)


def _beginning(problem: Problem) -> Problem:
    """The problem with only the first lines of its message: once a compiler has missed a bracket,
    its later errors mean nothing."""
    lines = problem.message.split("\n")
    rest = [f"… and {len(lines) - 8} lines more"] if len(lines) > 9 else lines[8:]
    return replace(problem, message="\n".join([*lines[:8], *rest]))


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def flags(model: Model) -> list[str]:
    """The compiler options that the program asks for."""
    config = model.program.config
    found = list(BUILD_TYPES[config.build_type or "relwithdebinfo"])
    found += [
        f"-D{name}={value}" if value else f"-D{name}" for name, value in config.definitions.items()
    ]
    root, _ = project(model.program.path)
    found.append(f'-DLF_SOURCE_DIRECTORY="{model.program.path.parent}"')
    found.append(f'-DLF_PACKAGE_DIRECTORY="{root}"')
    found.append('-DLF_FILE_SEPARATOR="/"')
    return [*found, *config.c_flags]


def includes(place: Path) -> list[str]:
    mcu = runtime()
    folders = [place, mcu / "include", mcu / "ports" / "posix"]
    return [*(f"-I{f}" for f in folders), f"-idirafter{Path(__file__).with_name('include')}"]


def run_tool(command: list[str], cwd: Path) -> None:
    try:
        ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace")
    except FileNotFoundError:
        raise LfError(
            Problem(
                NOWHERE,
                f"{command[0]} is not installed",
                "install it; in a checkout ./run setup lf does so",
            )
        ) from None
    if ran.returncode:
        text = (ran.stderr + ran.stdout).strip()
        raise Refused(
            Problem(
                NOWHERE,
                f"the C of this program does not compile:\n{text}",
                "the lines are those of the .lf file",
            )
        )


def _by_cc(model: Model, source: Path, bin_folder: Path, wanted: Wanted) -> Path:
    mcu = runtime()
    program = bin_folder / model.program.name
    command = [
        *shlex.split(os.environ.get("CC") or "cc"),
        "-std=gnu11",
        "-w",
        *flags(model),
        *includes(source.parent),
        str(source),
    ]
    command += [str(mcu / "ports" / "posix" / "port.c"), "-o", str(program), "-pthread", "-lm"]
    if wanted.quick:
        command += ["-O0", "-g0"]
    run_tool(command, source.parent)
    return program


def _by_cmake(model: Model, place: Path, bin_folder: Path, root: Path) -> Path:
    """Builds a program that has CMake code of its own. LF_MAIN_TARGET is the name of CMake's
    target, as upstream."""
    name, config = model.program.name, model.program.config
    lines = [
        "cmake_minimum_required(VERSION 3.13)",
        f"project({name} C)",
        "set(CMAKE_C_STANDARD 11)",
        "set(CMAKE_C_EXTENSIONS ON)",
        f"set(LF_MAIN_TARGET {name})",
        "find_package(Threads REQUIRED)",
        f"add_executable(${{LF_MAIN_TARGET}} {name}.c {runtime() / 'ports' / 'posix' / 'port.c'})",
        f"target_compile_options(${{LF_MAIN_TARGET}} PRIVATE -w {' '.join(quoted(f) for f in [*flags(model), *includes(place)])})",
        "target_link_libraries(${LF_MAIN_TARGET} PRIVATE Threads::Threads m)",
        f"set_target_properties(${{LF_MAIN_TARGET}} PROPERTIES RUNTIME_OUTPUT_DIRECTORY {bin_folder})",
    ]
    for text, span in config.cmake_include:
        found = find(text, span, root)
        shutil.copy(found, place / found.name)
        lines.append(f"include(${{CMAKE_CURRENT_SOURCE_DIR}}/{found.name})")
    _write(place / "CMakeLists.txt", "\n".join(lines) + "\n")
    run_tool(["cmake", "-S", str(place), "-B", str(place / "build")], place)
    run_tool(["cmake", "--build", str(place / "build"), "-j2"], place)
    return bin_folder / name
