"""Reads the target block: checks its properties and their values, and makes a `Config` of them.

Invariants
- A property that this compiler cannot honour gives an error that names the property. A property
  that upstream has, but that has no effect here, gives a warning. Properties that only some targets
  can honour are in ELSEWHERE; such a property is refused when a program is built for another
  target.
- The case of a property's name does not matter, as upstream.
- A value of the wrong kind is an error at the value.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from weft_lf import tree
from weft_lf.errors import NOWHERE, LfError, Problem, Span, fail

LOGGING = ("error", "warn", "info", "log", "debug")
BUILD_TYPES = {
    "debug": ["-O0", "-g"],
    "release": ["-O2"],
    "relwithdebinfo": ["-O2", "-g"],
    "minsizerel": ["-Os"],
    "test": ["-O1", "-g"],
}
TAKEN = [
    "timeout",
    "fast",
    "keepalive",
    "workers",
    "single-threaded",
    "logging",
    "build-type",
    "files",
    "compile-definitions",
    "platform",
    "cflags",
    "no-compile",
    "protobufs",
    "tracing",
]
REFUSED = {
    "docker": "run the built program in a container of your own",
}
# property → the targets that cannot honour it, and the remedy on these targets
ELSEWHERE = {
    "cmake-include": (("an521",), "no CMake builds for an521; take it out"),
    "cmake-init-include": (("an521",), "no CMake builds for an521; take it out"),
    "cmake-args": (("an521",), "no CMake builds for an521; take it out"),
    "compiler": (("rp2040", "an521"), "the device's compiler is arm-none-eabi-gcc; take it out"),
    "protobufs": (("rp2040", "an521"), "Protocol Buffers need a host; take it out"),
    "tracing": (("rp2040", "an521"), "a board has a recorder of its own: mcu/FLIGHT.md"),
    "board": (("host", "an521"), "only the pico-sdk knows boards; take it out"),
}
# property that names files, also by its name in earlier versions → its name, the field of Config
FILES = {
    "files": ("files", "files"),
    "cmake-include": ("cmake-include", "cmake_include"),
    "cmake": ("cmake-include", "cmake_include"),
    "cmake-init-include": ("cmake-init-include", "cmake_init"),
    "cmake-init": ("cmake-init-include", "cmake_init"),
    "protobufs": ("protobufs", "protobufs"),
}
RENAMED = {"compiler-flags": "cflags"}  # property that upstream no longer has → its name today
UNUSED = [
    "auth",
    "build",
    "clock-sync",
    "clock-sync-options",
    "coordination",
    "coordination-options",
    "tracing-federated",
    "dnet",
    "edition",
    "export-dependency-graph",
    "export-to-yaml",
    "external-runtime-path",
    "no-runtime-validation",
    "no-source-mapping",
    "print-statistics",
    "runtime-version",
    "rust-include",
    "scheduler",
    "trace-plugin",
    "tracing-plugin",
    "verify",
    "compile-verbose",
    "single-file-project",
    "sst",
    "cargo-dependencies",
    "cargo-features",
    "hierarchical-bin",
    "ros2",
    "ros2-dependencies",
    "python-version",
    "trust-on-first-use",
    "msgspec",
    "no-inline",
    "comm-type",
    "verbose",
    "rti",
]
WORKERS = 1024  # the limit on workers; the option -w of a built program has the same limit
PLATFORMS = {
    "native": "host",
    "linux": "host",
    "posix": "host",
    "rp2040": "rp2040",
    "an521": "an521",
}


@dataclass
class Config:
    """The settings of the target block."""

    name: str = "C"
    timeout: int | None = None  # in ns
    fast: bool = False
    keepalive: bool | None = None
    workers: int | None = None
    single_threaded: bool = False
    logging: str = "info"
    build_type: str = ""
    platform: str = ""
    files: list[tuple[str, Span]] = field(default_factory=list)
    cmake_include: list[tuple[str, Span]] = field(default_factory=list)
    protobufs: list[tuple[str, Span]] = field(default_factory=list)
    definitions: dict[str, str] = field(default_factory=dict)
    c_flags: list[str] = field(default_factory=list)
    cmake_init: list[tuple[str, Span]] = field(default_factory=list)
    cmake_args: dict[str, str] = field(default_factory=dict)
    compiler: str = ""
    board: str = ""  # its name in the pico-sdk; after a colon, the kind of stdio: uart or usb
    no_compile: bool = False
    tracing: bool = False
    trace_file: str = ""  # the trace's file without its ending; empty: the program's name
    given: dict[str, Span] = field(default_factory=dict)  # property of ELSEWHERE → its place
    span: Span = NOWHERE
    timeout_span: Span = NOWHERE

    @property
    def threads(self) -> int:
        """The number of workers for which the program is built: by default 1, and 4 for `workers:
        0`."""
        if self.single_threaded or self.workers is None:
            return 1
        return self.workers or 4

    @property
    def has_own_c(self) -> bool:
        """Whether C files of the program's own may be compiled, besides the files that come with
        the runtime.
        """
        own = (n for n, _ in (*self.files, *self.cmake_include) if not n.startswith("/lib/c/"))
        return any(n.endswith((".c", ".cmake", ".txt")) for n in own)

    @property
    def has_cmake(self) -> bool:
        """Whether the program is built by CMake: it has CMake code or arguments of its own."""
        return bool(self.cmake_include or self.cmake_init or self.cmake_args)

    def check_for(self, target: str) -> None:
        """Checks that `target` honours every property.

        Raises:
            LfError: the target cannot honour a property; the message names the property.
        """
        for name, span in self.given.items():
            targets, hint = ELSEWHERE[name]
            if target in targets:
                raise fail(span, f"'{name}' is not supported for the target {target}", hint)


def _bool(value: tree.Value) -> bool:
    if isinstance(value, tree.Literal) and value.text.lower() in ("true", "false"):
        return value.text.lower() == "true"
    raise fail(value.span, "expected true or false")


def _int(value: tree.Value) -> int:
    if isinstance(value, tree.Literal) and value.kind == "int":
        return int(value.text)
    raise fail(value.span, "expected a whole number")


def _text(value: tree.Value) -> str:
    if isinstance(value, tree.Literal) and value.kind in ("string", "int", "float", "bool"):
        text = value.text
        return text[1:-1] if text.startswith('"') else text
    raise fail(value.span, "expected a word or a text")


def _texts(value: tree.Value) -> list[tuple[str, Span]]:
    items = value.items if isinstance(value, tree.Values) else [value]
    return [(_text(item), item.span) for item in items]


def _paths(value: tree.Value) -> list[tuple[str, Span]]:
    for item in value.items if isinstance(value, tree.Values) else [value]:
        if isinstance(item, tree.Literal) and item.text.lower() in ("true", "false"):
            raise fail(item.span, "expected the name of a file")
    return _texts(value)


def _definitions(value: tree.Value) -> dict[str, str]:
    if not isinstance(value, tree.Pairs):
        raise fail(value.span, "expected definitions", "write { NAME: value }")
    return {p.name: _text(p.value) for p in value.pairs}


def _time(value: tree.Value) -> int:
    if isinstance(value, tree.Time):
        return value.ns
    if isinstance(value, tree.Literal) and value.text == "0":
        return 0
    raise fail(value.span, "expected a time", "write a number and a unit: 10 msec")


def _one_of(value: tree.Value, known: tuple[str, ...], what: str) -> str:
    text = _text(value).lower()
    if text not in known:
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise fail(value.span, f"there is no {what} '{text}'", f"{hint}one of: {', '.join(known)}")
    return text


def configured(target: tree.Target | None, file: str) -> tuple[Config, list[Problem]]:
    """Returns the settings of the target block, and warnings about it.

    Args:
        target: the target block, or None if the file has none.
        file: the file's path, for errors.

    Raises:
        LfError: there is no target, or its language is not C, or a property is not known, is not
            supported, or has a wrong value.
    """
    config = Config()
    if target is None:
        raise fail(Span(file, 1, 1), "this file has no target", "begin it with: target C")
    if target.name not in ("C", "CCpp"):
        raise fail(target.span, f"target {target.name} is not supported", "only target C is")
    if target.name == "CCpp":
        raise fail(target.span, "target CCpp is not supported", "write target C; bodies are C then")
    config.span = target.span
    problems: list[Problem] = []
    seen: set[str] = set()
    for pair in target.config.pairs:
        if pair.name.lower() in seen:
            problems.append(Problem(pair.span, f"'{pair.name}' stands here twice", "keep one"))
        seen.add(pair.name.lower())
        try:
            problems += _take(config, pair)
        except LfError as error:
            problems += error.problems
    if any(p.severity == "error" for p in problems):
        raise LfError(problems)
    return config, problems


def _take(config: Config, pair: tree.Pair) -> list[Problem]:
    name, value = pair.name.lower(), pair.value
    if name == "timeout":
        config.timeout = _time(value)
        config.timeout_span = value.span
    elif name == "fast":
        config.fast = _bool(value)
    elif name == "keepalive":
        config.keepalive = _bool(value)
    elif name == "workers":
        config.workers = _workers(value)
    elif name == "single-threaded":
        config.single_threaded = _bool(value)
    elif name == "threading":
        config.single_threaded = not _bool(value)
    elif name == "logging":
        config.logging = _one_of(value, LOGGING, "level of logging")
    elif name == "build-type":
        config.build_type = _one_of(value, tuple(BUILD_TYPES), "build type")
    elif name in FILES:
        own, attribute = FILES[name]
        getattr(config, attribute).extend(_paths(value))
        if own in ELSEWHERE:
            config.given[own] = pair.span
    elif name == "cmake-args":
        config.cmake_args.update(_definitions(value))
        config.given["cmake-args"] = pair.span
    elif name == "compiler":
        config.compiler = _text(value)
        config.given["compiler"] = pair.span
    elif name == "no-compile":
        config.no_compile = _bool(value)
    elif name in ("cflags", "flags"):
        config.c_flags += [t for text, _ in _texts(value) for t in text.split()]
    elif name == "tracing":
        _tracing(config, pair)
    elif name == "compile-definitions":
        config.definitions.update(_definitions(value))
    elif name == "platform":
        return _platform(config, value)
    elif name in REFUSED:
        raise fail(pair.span, f"'{name}' is not supported", REFUSED[name])
    elif name in UNUSED:
        return [Problem(pair.span, f"'{name}' has no effect here", severity="warning")]
    else:
        known = [*UNUSED, *REFUSED, *ELSEWHERE, *TAKEN]
        near = [RENAMED[name]] if name in RENAMED else difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "lf/README.md lists the properties"
        raise fail(pair.span, f"there is no target property '{pair.name}'", hint)
    return []


def _tracing(config: Config, pair: tree.Pair) -> None:
    """Reads `tracing`: true, false, or the options of a trace, which mean true."""
    config.tracing = True
    if isinstance(pair.value, tree.Pairs):
        for option in pair.value.pairs:
            if option.name.lower() != "trace-file-name":
                text = f"there is no option '{option.name}' of a trace"
                raise fail(option.span, text, 'write tracing: { trace-file-name: "NAME" }')
            config.trace_file = _text(option.value)
            if not re.fullmatch(r'[^"\\\x00-\x1f]+', config.trace_file):
                raise fail(option.value.span, "this is no name of a file")
    else:
        config.tracing = _bool(pair.value)
    if config.tracing:
        config.given["tracing"] = pair.span


def _workers(value: tree.Value) -> int:
    number = _int(value)
    if number < 0:
        raise fail(value.span, "workers cannot be negative", "0 lets the program choose")
    if number > WORKERS:
        hint = f"at most {WORKERS}, and no more than the machine has cores are of use"
        raise fail(value.span, f"{number} workers are too many", hint)
    return number


def _platform(config: Config, value: tree.Value) -> list[Problem]:
    problems: list[Problem] = []
    if isinstance(value, tree.Pairs):
        named = [p for p in value.pairs if p.name.lower() == "name"]
        for pair in value.pairs:
            if pair.name.lower() == "board":
                config.board = _text(pair.value)
                config.given["board"] = pair.span
            elif pair.name.lower() != "name":
                text = f"'{pair.name}' of a platform has no effect here"
                problems.append(Problem(pair.span, text, severity="warning"))
        if not named:
            raise fail(value.span, "which platform?", "write platform: { name: rp2040 }")
        value = named[0].value
    text = _text(value)
    if text.lower() not in PLATFORMS:
        raise fail(
            value.span,
            f"platform '{text}' is not supported",
            "one of: host (Native, Linux), rp2040, an521",
        )
    config.platform = PLATFORMS[text.lower()]
    return problems


__all__ = ["BUILD_TYPES", "Config", "configured"]
