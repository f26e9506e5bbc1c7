"""Builds a program: writes the C to src-gen/NAME/ and the executable to bin/NAME.

Invariants
- The build writes only to src-gen/ and bin/ of the project, or of the folder that the user asks
  for; and to include/ if the program has C files of its own. The project is the folder above the
  nearest `src`, or else the folder of the file.
- A program for this machine (target `host`) takes one call of the compiler, unless it has CMake
  code of its own (`cmake-include`).
- Messages of the C compiler about bodies are problems at lines of the `.lf` file; messages about
  generated code are shown only if nothing else makes the build fail.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft_lf import diagnostics, kept, protobufs
from weft_lf.braces import unmatched
from weft_lf.device import QUIET, CMake, Image, quoted, uses_sdk, write_changed
from weft_lf.emit import Options, emit
from weft_lf.errors import NOWHERE, LfError, Problem, Span, fail
from weft_lf.model import Model
from weft_lf.target import BUILD_TYPES
from weft_lf.ticks import check, tick_of

TARGETS = ("host", "rp2040", "an521")
# The folder in which programs expect the files that come with upstream's runtime.
UTILITIES = "/lib/c/reactor-c/"
DEVICES = {  # device → the compiler that checks the bodies without a build
    "rp2040": "arm-none-eabi-gcc -mcpu=cortex-m0plus -mthumb",
    "an521": "arm-none-eabi-gcc -mcpu=cortex-m33 -mthumb -ffreestanding",
}
IN_RULE = re.compile(r"(?:\\[^\n]|[^\s\\])+")  # a file name in a rule for make
Run = Callable[[list[str], Path], None]


class Refused(LfError):
    """Raised if a tool, such as the C compiler, ended with an error. `output` is the tool's
    output."""

    def __init__(self, output: str, configuring: bool = False) -> None:
        text, hint = "the C of this program does not compile", "the lines are those of the .lf file"
        if configuring:
            text, hint = (
                "CMake refuses this program",
                "mend its CMake code, or install what it needs",
            )
        super().__init__(Problem(NOWHERE, f"{text}:\n{output.strip()}", hint))
        self.output = output


@dataclass
class Wanted:
    """How to build a program."""

    target: str = ""  # one of TARGETS; empty: the program's platform, or host
    trace: bool = False
    flash: bool = False
    compile: bool = True
    table: bool = True  # use a static schedule, if the program's timing is known
    output: Path | None = None  # the folder of src-gen/ and bin/; None: the project
    clean: bool = False  # first remove everything that earlier builds made
    hierarchical: bool = False  # bin/ has the folders that the sources have in src/
    quiet: bool = False  # leave out the warnings of the C compiler
    quick: bool = False  # compile without optimisation, for tests that build many programs


@dataclass
class Built:
    """The files that a build has made; `program` is None if it did not compile."""

    source: Path
    program: Path | None
    # Warnings, for example about times that the target rounds.
    warnings: list[Problem] = field(default_factory=list)


def runtime() -> Path:
    """Returns the folder of weft_mcu: $WEFT_MCU if it is set, else beside this package or in the
    checkout.

    Raises:
        LfError: weft_mcu is missing.
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
    """Returns the root of the project, and the file's folder within its sources."""
    for folder in path.parents:
        if folder.name == "src":
            return folder.parent, path.parent.relative_to(folder)
    return path.parent, Path()


def find(name: str, span: Span, root: Path) -> Path:
    """Returns the path of a file that the target block names. The name is relative to the `.lf`
    file that contains it, or else to the project. A utility that comes with upstream's runtime is
    replaced by the one of this package.
    """
    if name.startswith(UTILITIES):
        own = Path(__file__).with_name("util")
        if (own / Path(name).name).is_file():
            return own / Path(name).name
        known = ", ".join(sorted(p.name for p in own.iterdir() if p.suffix != ".cmake"))
        raise fail(span, f"the utility '{name}' is not here", f"of upstream's there are: {known}")
    for base in (Path(span.file).parent, root, root / "src"):
        if (base / name).exists():
            return (base / name).resolve()
    raise fail(
        span,
        f"there is no file '{name}'",
        "the path is relative to the .lf file, or to the project",
    )


def target_of(model: Model, wanted: str) -> str:
    """Returns the target to build for: `wanted`, else the program's platform, else `host`."""
    return wanted or model.program.config.platform or "host"


def build(model: Model, wanted: Wanted) -> Built:
    """Writes the C and compiles it.

    Raises:
        LfError: a file is missing, a time is beyond the range of the target's clock, or the C does
            not compile.
    """
    program = model.program
    config = program.config
    target = target_of(model, wanted.target)
    odd = re.search(r"[^\w.+-]" if target == "rp2040" else r'["\\\n]', program.name)
    if odd:  # The name goes into #line and into a makefile.
        where = Span(str(program.path))
        text = f"the name of the file has a {odd[0]!r}, which no tool accepts"
        raise fail(where, text, "rename it")
    config.check_for(target)
    tick = tick_of(config, target)
    warnings = check(model, tick)
    root, folder = project(program.path)
    out = wanted.output.resolve() if wanted.output else root
    place = out / "src-gen" / folder / program.name
    if wanted.clean and place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True, exist_ok=True)
    _copy_files(model, root, place)
    header = f"include/{program.name}/{program.name}.h"
    sdk = target == "rp2040" and uses_sdk(model)

    def found(name: str, span: Span) -> Path:
        return find(name, span, root)

    more = protobufs.make(config, found, place)
    headers = tuple(protobufs.headers(config, found))
    options = Options(target != "host", wanted.trace, tick, wanted.table, sdk, headers)
    warned = len(program.warnings)
    text, shared = emit(model, options, header)
    warnings += program.warnings[warned:]
    source = place / f"{program.name}.c"
    write_changed(source, text)
    if shared:
        (place / header).parent.mkdir(parents=True, exist_ok=True)
        write_changed(place / header, shared)
        _write_headers(model, place / header, [place, out])
    if not wanted.compile or config.no_compile:
        return Built(source, None, warnings)
    bin_folder = out / "bin" / (folder if wanted.hierarchical else "")
    bin_folder.mkdir(parents=True, exist_ok=True)
    messages: list[str] = []

    def run(command: list[str], cwd: Path) -> None:
        messages.append(run_tool(command, cwd))

    try:
        made = _compiled(model, [source, *more], bin_folder, wanted, target, sdk, run)
    except Refused as error:
        raise _error_in_bodies(model, error) from None
    if not wanted.quiet:
        warnings += diagnostics.problems(model, "\n".join(messages))
    return Built(source, made, warnings)


def _copy_files(model: Model, root: Path, place: Path) -> None:
    """Copies the files and folders that the target block names beside the generated C."""
    for name, span in model.program.config.files:
        source = find(name, span, root)
        if source.is_dir():
            shutil.copytree(source, place / source.name, dirs_exist_ok=True)
        else:
            shutil.copy(source, place / source.name)


def _write_headers(model: Model, header: Path, places: list[Path]) -> None:
    """Writes a header include/FILE/REACTOR.h for each reactor of FILE.lf, as upstream's compiler
    does. The header goes to the program's folder, and to the project, where C files look for it by
    `../`.
    """
    for place in places:
        for cls in model.classes:
            names = {Path(cls.file.tree.path).stem, model.program.name}
            for own in (place / "include" / name / f"{cls.name}.h" for name in sorted(names)):
                if own == header:
                    continue
                own.parent.mkdir(parents=True, exist_ok=True)
                write_changed(own, f'#include "{os.path.relpath(header, own.parent)}"\n')


def _error_in_bodies(model: Model, error: Refused) -> LfError:
    """Returns the error with the compiler's problems at their places, if the places are in
    bodies."""
    brackets = unmatched(model)
    placed = diagnostics.problems(model, error.output)
    if not any(p.severity == "error" for p in placed):
        placed = [_first_lines(p) for p in error.problems] if brackets else error.problems
    # When a compiler has missed a bracket, its later errors mean nothing.
    return LfError([*brackets, *(placed[:2] if brackets else placed)])


def _compiled(
    model: Model,
    sources: list[Path],
    bin_folder: Path,
    wanted: Wanted,
    target: str,
    sdk: bool,
    run: Run,
) -> Path:
    root, place = project(model.program.path)[0], sources[0].parent
    if target == "host" and not model.program.config.has_cmake:
        return _by_cc(model, sources, bin_folder, wanted, run)
    cmake = _cmake(model, root, place)
    if target == "host":
        return _by_cmake(model, sources, bin_folder, cmake, run)
    image = Image(model, place, bin_folder, runtime(), root, flags(model, place), cmake, run)
    if target == "an521":
        return image.for_an521()
    return image.with_sdk() if sdk else image.bare(wanted.flash)


def _first_lines(problem: Problem) -> Problem:
    """Returns the problem with only the first lines of its message: when a compiler has missed a
    bracket, its later errors mean nothing.
    """
    lines = problem.message.split("\n")
    rest = [f"… and {len(lines) - 8} lines more"] if len(lines) > 9 else lines[8:]
    return replace(problem, message="\n".join([*lines[:8], *rest]))


def flags(model: Model, place: Path) -> list[str]:
    """Returns the compiler options that the program asks for; `place` is where its C and its files
    are.
    """
    config = model.program.config
    found = list(BUILD_TYPES[config.build_type or "relwithdebinfo"])
    found += [
        f"-D{name}={value}" if value else f"-D{name}" for name, value in config.definitions.items()
    ]
    root, _ = project(model.program.path)
    found.append(f'-DLF_SOURCE_DIRECTORY="{model.program.path.parent}"')
    found.append(f'-DLF_PACKAGE_DIRECTORY="{root}"')
    found += [f'-D{n}="{place}"' for n in ("LF_SOURCE_GEN_DIRECTORY", "LF_TARGET_FILES_DIRECTORY")]
    found.append('-DLF_FILE_SEPARATOR="/"')
    return [*found, *config.c_flags]


def includes(place: Path) -> list[str]:
    mcu = runtime()
    folders = [place, mcu / "include", mcu / "ports" / "posix"]
    return [*(f"-I{f}" for f in folders), f"-idirafter{Path(__file__).with_name('include')}"]


def run_tool(command: list[str], cwd: Path) -> str:
    """Runs a tool, and returns its output. The output is English, because diagnostics.py reads it.

    Raises:
        LfError: the tool is not installed.
        Refused: the tool ended with an error.
    """
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        ran = subprocess.run(
            command, cwd=cwd, capture_output=True, encoding="utf-8", errors="replace", env=env
        )
    except FileNotFoundError:
        raise LfError(
            Problem(
                NOWHERE,
                f"{command[0]} is not installed",
                "install it; in a checkout ./run setup lf does so",
            )
        ) from None
    if ran.returncode:
        configuring = command[:2] == ["cmake", "-S"]
        # CMake's errors are in stderr; what it has found is in stdout, and would hide them.
        raise Refused(ran.stderr + (ran.stdout if not configuring else ""), configuring)
    return ran.stderr + ran.stdout


def _cc(model: Model) -> list[str]:
    return shlex.split(model.program.config.compiler or os.environ.get("CC") or "cc")


def check_bodies(model: Model, wanted: str) -> list[Problem] | None:
    """Returns the problems that the C compiler finds in the program's bodies, without building
    anything. None if only CMake knows how the bodies are compiled, or if protoc-c makes their
    headers. The problems are kept in the user's cache.

    Raises:
        LfError: a file that the target block names is missing.
    """
    config, target = model.program.config, target_of(model, wanted)
    if config.has_cmake or config.protobufs or (target == "rp2040" and uses_sdk(model)):
        return None
    mcu, root = runtime(), project(model.program.path)[0]
    options = Options(target != "host", False, tick_of(config, target))
    texts = emit(model, options, "shared.h")
    others = [find(name, span, root) for name, span in config.files]
    folders = [f for one in others for f in (one.parent, one)]
    if target == "host":
        command, given, rest = _cc(model), flags(model, root), includes(root)
    else:
        command = [*DEVICES[target].split(), *QUIET.split()]
        given = [f for f in flags(model, root) if f.startswith("-D")] + config.c_flags
        rest = [f"-I{mcu / 'include'}", f"-I{mcu / 'ports' / target}"]
    command += ["-std=gnu11", "-fsyntax-only", *given, *rest, *(f"-I{f}" for f in folders)]
    if shutil.which(command[0]) is None:
        return None
    return diagnostics.problems(model, _said_of_bodies(command, *texts))


def _said_of_bodies(command: list[str], text: str, shared: str) -> str:
    """Returns the compiler's messages about a program. The messages are taken from the user's cache
    if the compiler and all headers that it has read are unchanged since then.
    """
    tools = itertools.takewhile(lambda word: not word.startswith("-"), command)
    key = (text, shared, command, kept.stamps(filter(None, map(shutil.which, tools))))
    content = kept.read("lf-bodies", key)
    if content is not None:
        found = json.loads(content)
        if found["headers"] == kept.stamps(found["headers"]):
            return str(found["messages"])
    messages, headers = _check_syntax(command, text, shared)
    stamps = kept.stamps(headers)
    if headers and len(stamps) == len(headers):
        made = json.dumps({"headers": stamps, "messages": messages})
        kept.keep("lf-bodies", key, made.encode())
    return messages


def _check_syntax(command: list[str], text: str, shared: str) -> tuple[str, set[str]]:
    """Returns the compiler's messages about a program, without generating code, and the headers
    that the compiler has read. No headers are returned if the compiler does not name them, for
    example because it has not found one.
    """
    with tempfile.TemporaryDirectory(prefix="weft-lf-") as folder:
        place = Path(folder)
        write_changed(place / "program.c", text)
        write_changed(place / "shared.h", shared)
        rule = place / "headers.d"
        asked = ["-MD", "-MF", str(rule), f"-I{place}", str(place / "program.c")]
        try:
            messages = run_tool([*command, *asked], place)
        except Refused as error:
            messages = error.output
        named = rule.read_text(encoding="utf-8", errors="surrogateescape") if rule.exists() else ""
        names = (re.sub(r"\\(.)", r"\1", n) for n in IN_RULE.findall(named.partition(":")[2]))
        return messages, {n.replace("$$", "$") for n in names if not n.startswith(folder)}


def libraries(model: Model) -> list[str]:
    """Returns the libraries that a host's program is linked with, beside that of threads."""
    return ["m", *([protobufs.LIBRARY] if model.program.config.protobufs else [])]


def _by_cc(model: Model, sources: list[Path], bin_folder: Path, wanted: Wanted, run: Run) -> Path:
    place = sources[0].parent
    program = bin_folder / model.program.name
    command = [*_cc(model), "-std=gnu11", *flags(model, place), *includes(place)]
    command += [*map(str, sources), str(runtime() / "ports" / "posix" / "port.c")]
    command += ["-o", str(program), "-pthread", *(f"-l{name}" for name in libraries(model))]
    if wanted.quick:
        command += ["-O0", "-g0"]
    run(command, place)
    return program


def _cmake(model: Model, root: Path, place: Path) -> CMake:
    """Returns the program's own CMake code. Its files are copied to `place`."""
    config = model.program.config

    def included(files: list[tuple[str, Span]]) -> list[str]:
        # Several files of a program can name one file: each file is included once.
        sources = list(dict.fromkeys(find(text, span, root) for text, span in files))
        for found in sources:
            shutil.copy(found, place / found.name)
        return [f"include(${{CMAKE_CURRENT_LIST_DIR}}/{found.name})" for found in sources]

    arguments = [f"-D{name}={value}" for name, value in config.cmake_args.items()]
    if config.compiler:
        arguments.append(f"-DCMAKE_C_COMPILER={config.compiler}")
    return CMake(included(config.cmake_init), included(config.cmake_include), arguments)


def _by_cmake(model: Model, sources: list[Path], bin_folder: Path, cmake: CMake, run: Run) -> Path:
    """Builds a program that has CMake code of its own. LF_MAIN_TARGET is the name of CMake's
    target, as upstream."""
    name, place = model.program.name, sources[0].parent
    compiled = [*sources, runtime() / "ports" / "posix" / "port.c"]
    lines = [
        "cmake_minimum_required(VERSION 3.13)",
        *cmake.before,
        f"project({name} C)",
        "set(CMAKE_C_STANDARD 11)",
        "set(CMAKE_C_EXTENSIONS ON)",
        f"set(LF_MAIN_TARGET {name})",
        "find_package(Threads REQUIRED)",
        f"add_executable(${{LF_MAIN_TARGET}} {' '.join(map(str, compiled))})",
        f"target_compile_options(${{LF_MAIN_TARGET}} PRIVATE {' '.join(quoted(f) for f in [*flags(model, place), *includes(place)])})",
        "target_link_libraries(${LF_MAIN_TARGET} PRIVATE "
        f"{' '.join(['Threads::Threads', *libraries(model)])})",
        f"set_target_properties(${{LF_MAIN_TARGET}} PROPERTIES RUNTIME_OUTPUT_DIRECTORY {bin_folder})",
    ]
    lines += cmake.after
    write_changed(place / "CMakeLists.txt", "\n".join(lines) + "\n")
    run(["cmake", "-S", str(place), "-B", str(place / "build"), *cmake.arguments], place)
    run(["cmake", "--build", str(place / "build"), "-j2"], place)
    return bin_folder / name
