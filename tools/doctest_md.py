"""Runs the code blocks of Markdown files, so that code copied from them works.

    .venv/bin/python tools/doctest_md.py README.md docs/tour.md

A fenced block runs if its info string is a language (python, sh, cpp) followed by `run`:

    ```python run                 run by .venv's Python
    ```sh run in=root             run by bash (-euo pipefail), at the checkout's root
    ```cpp run file=hello.cpp     saved under that name, compiled (C++20), linked with Weft, and run
    ```python run exit=1          must end with that status
    ```python save file=net.py    only saved, for a later block
    ```text                       right after a block that ran: the output that the block must have;
                                  a line `...` stands for any number of lines

Options come before the files:

    --language cpp                runs only blocks in this language

These options are for blocks in C++:

    --library cpp/src/weft.cpp    the source of the library that blocks are linked with, compiled
                                  once; this is the default
    --made FILE                   the library that blocks are linked with, already compiled; may be
                                  given several times
    --first weft/weft.hpp         parses this header once, which saves compile time; each block must
                                  still include a header of Weft
    --single                      compiles the blocks and the library with weft_single.hpp
                                  (tools/single.py) in place of <weft/…>, which is parsed once

All blocks of a file share one scratch folder, in which they run unless `in=root` is given.
`timeout=SECONDS` replaces the default of 280. Blocks whose info string contains neither `run` nor
`save` are ignored.

Invariants
- A file without a block marked `run` fails: a tour without tests must not seem tested.
- The last line on stdout is `N passed, N failed`; the exit status is 0 only if nothing failed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import progress
import single
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
SUFFIX = {"python": ".py", "sh": ".sh", "cpp": ".cpp"}
OPTIONS = {"file", "exit", "timeout", "in"}


class BadBlock(Exception):
    """Raised if an info string contains an unknown option. The text names the option."""


@dataclass
class Block:
    """One fenced block that takes part in the test. `line` is that of its opening fence, from 1."""

    line: int
    language: str
    code: str
    run: bool
    file: str
    exit: int = 0
    # The limit in seconds, less than the five minutes after which the runner reports a hang.
    timeout: float = 280.0
    at_root: bool = False
    expected: str | None = None


def parse_info(info: str, line: int) -> Block | None:
    """Returns the block that an info string describes, with no code yet, or None if the info string
    contains neither run nor save.
    """
    words = info.split()
    flags = {word for word in words[1:] if "=" not in word}
    options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    if not flags & {"run", "save"}:
        return None
    if flags - {"run", "save"} or options.keys() - OPTIONS:
        unknown = sorted(flags - {"run", "save"}) + sorted(options.keys() - OPTIONS)
        raise BadBlock(f"line {line}: unknown in the info string: {', '.join(unknown)}")
    if "run" in flags and words[0] not in SUFFIX:
        raise BadBlock(f"line {line}: cannot run '{words[0]}'; python, sh and cpp can be run")
    if "run" not in flags and "file" not in options:
        raise BadBlock(f"line {line}: save needs file=NAME")
    if options.get("in", "root") != "root":
        raise BadBlock(f"line {line}: in= takes root only")
    file = options.get("file", f"block{line}{SUFFIX.get(words[0], '')}")
    if Path(file).is_absolute() or ".." in Path(file).parts:
        raise BadBlock(f"line {line}: file={file} leaves the scratch folder")
    try:
        return Block(
            line=line,
            language=words[0],
            code="",
            run="run" in flags,
            file=file,
            exit=int(options.get("exit", "0")),
            timeout=float(options.get("timeout", "280")),
            at_root="in" in options,
        )
    except ValueError as error:
        raise BadBlock(f"line {line}: {error}") from error


def blocks_of(text: str) -> list[Block]:
    """Returns the blocks to run or save, in order, each together with the output block that follows
    it."""
    found: list[Block] = []
    previous: Block | None = None
    for token in MarkdownIt().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        line = token.map[0] + 1
        if token.info.split()[:1] == ["text"] and len(token.info.split()) == 1:
            if previous is not None and previous.run:
                previous.expected = token.content
            previous = None
            continue
        previous = parse_info(token.info, line)
        if previous is not None:
            previous.code = token.content
            found.append(previous)
    return found


def has_cpp(file: str) -> bool:
    """Returns whether the file has a C++ block that is marked `run`. A file that cannot be read is
    reported later.
    """
    try:
        return any(b.run and b.language == "cpp" for b in blocks_of(Path(file).read_text()))
    except (OSError, UnicodeDecodeError, BadBlock):
        return False


def matches(expected: str, actual: str) -> bool:
    """Compares line by line, except for spaces at line ends. A line `...` in `expected` stands for
    any number of lines.
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"[ \t]*\n"
        for line in expected.rstrip().splitlines()
    )
    return re.fullmatch(pattern, actual.rstrip() + "\n") is not None


def run_bounded(command: list[str], cwd: Path, timeout: float) -> tuple[int | None, str, str]:
    """Runs a command. Returns its exit status (None if it ran out of time), stdout and stderr.
    No process of the command's process group outlives this function.
    """
    python = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{python}:{os.environ.get('PATH', '')}", "WEFT_ROOT": str(ROOT)}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
        return process.returncode, stdout, stderr
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return None, stdout, stderr
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def compiling() -> list[str]:
    """Returns the C++ compiler and its options."""
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", f"-I{ROOT / 'cpp' / 'include'}", "-pthread"]
    return [*compiler, *flags, f"-I{ROOT / 'compat/cpp/include'}"]


@dataclass(frozen=True)
class Made:
    """The files that are made once for all C++ blocks.

    Attributes: before, after: the compiler's arguments before and after a block. single: whether
    blocks include the one header. wrong: the files that could not be made, and why.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    single: bool = False
    wrong: str = ""


def make(
    first: str | None, library: str, folder: Path, one: bool = False, ready: Sequence[str] = ()
) -> Made:
    """Compiles the source `library`, or weft_single.hpp, unless a compiled library is given as
    `ready`. Parses the header `first` if it is given.
    """
    before: list[str] = []
    after = [str(ROOT / file) for file in ready] or [str(folder / "library.o")]
    source = ROOT / library
    if one:
        before = [f"-I{folder}"]
        library, source = single.OUT, folder / "single.cpp"
        (folder / single.OUT).write_text(single.single(), encoding="utf-8")
        source.write_text(f'#define WEFT_IMPLEMENTATION\n#include "{single.OUT}"\n')
        first = single.OUT
    todo = []
    if not ready:
        todo.append((library, [*before, "-x", "c++", "-c", str(source), "-o", *after]))
    if first:
        own = folder / "first.hpp"
        own.write_text(f"#include <{first}>\n")
        parsed = own.with_suffix(".hpp.gch")  # clang++ finds the file by this name too
        todo.append((first, [*before, "-x", "c++-header", str(own), "-o", str(parsed)]))
        before += ["-include", str(own)]
    for what, arguments in todo:
        progress.begin(f"compiling {what}")
        status, stdout, stderr = run_bounded([*compiling(), *arguments], folder, 280.0)
        progress.end(f"compiling {what}", 0, 0)
        if status != 0:
            return Made(wrong=f"{what}: exit status {status}:\n{stdout}{stderr}")
    return Made(tuple(before), tuple(after), one)


def commands_of(block: Block, scratch: Path, made: Made) -> list[list[str]]:
    path = scratch / block.file
    if block.language == "python":
        return [[sys.executable, str(path)]]
    if block.language == "sh":
        return [["bash", "-euo", "pipefail", str(path)]]
    program = str(path.with_suffix(""))
    compiler = [*compiling(), *made.before, str(path), *made.after, "-o", program]
    return [compiler, [program]]


def check(block: Block, scratch: Path, made: Made) -> str | None:
    """Runs one block. Returns None if the block passes, otherwise the fault and the output of the
    block.
    """
    cwd = ROOT if block.at_root else scratch
    if made.before and block.language == "cpp" and "#include <weft/" not in block.code:
        return "it includes nothing of Weft's"
    commands = commands_of(block, scratch, made)
    for index, command in enumerate(commands):
        status, stdout, stderr = run_bounded(command, cwd, block.timeout)
        last = index == len(commands) - 1
        wanted = block.exit if last else 0
        shown = "".join(f"    {line}\n" for line in (stdout + stderr).splitlines())
        if status is None:
            return f"not done after {block.timeout:g} s; so far:\n{shown}"
        if status != wanted:
            return f"exit status {status}, expected {wanted}:\n{shown}"
        if last and block.expected is not None and not matches(block.expected, stdout):
            wants = "".join(f"    {line}\n" for line in block.expected.splitlines())
            return f"another output than the text after it:\n{shown}  expected:\n{wants}"
    return None


def test_file(path: Path, made: Made, language: str | None = None) -> tuple[int, int]:
    """Runs the blocks of one file in order, or only those in one language. Returns how many passed
    and how many failed.
    """
    try:
        blocks = blocks_of(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        print(f"FAIL {path}: cannot be read: {error}")
        return 0, 1
    except BadBlock as error:
        print(f"FAIL {path}: {error}")
        return 0, 1
    for block in blocks:
        block.run = block.run and language in (None, block.language)
    if not any(block.run for block in blocks):
        print(f"FAIL {path}: no block is marked `run`")
        return 0, 1
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="weft-md-") as folder:
        scratch = Path(folder)
        for block in blocks:
            target = scratch / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            code = block.code
            if made.single and block.language == "cpp":
                code = re.sub(r"#include <weft/[^>]*>", f'#include "{single.OUT}"', code)
            target.write_text(code)
            if not block.run:
                continue
            name = f"{path}:{block.line} {block.language}"
            progress.begin(name)
            problem = check(block, scratch, made)
            progress.end(name, int(problem is None), int(problem is not None))
            if problem is None:
                passed += 1
                print(f"ok   {name}", flush=True)
            else:
                failed += 1
                print(f"FAIL {name}: {problem}", flush=True)
    return passed, failed


def main(arguments: list[str]) -> int:
    given: dict[str, str] = {}
    ready: list[str] = []
    files = arguments
    options = ("--first", "--library", "--made", "--language", "--single")
    while len(files) > 1 and files[0] in options:
        taken = 1 if files[0] == "--single" else 2
        given[files[0]], files = files[taken - 1], files[taken:]
        if "--made" in given:
            ready.append(given.pop("--made"))
    if not files or files[0].startswith("-"):
        print(
            "usage: doctest_md.py FILE…    (runs the blocks marked `run`; see the head of the file)",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="weft-md-") as folder:
        made = Made()
        if given.get("--language", "cpp") == "cpp" and any(map(has_cpp, files)):
            library = given.get("--library", "cpp/src/weft.cpp")
            one = "--single" in given
            made = make(given.get("--first"), library, Path(folder), one, ready)
        if made.wrong:
            print(f"FAIL {made.wrong}\n0 passed, 1 failed")
            return 1
        counts = [test_file(Path(file), made, given.get("--language")) for file in files]
    passed = sum(count[0] for count in counts)
    failed = sum(count[1] for count in counts)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
