"""Loads a program: parses the main file and the files that it imports, and finds the reactor that
each name means in each file.

Invariants
- A file is parsed once, however often it is imported. A cycle of imports is an error that shows the
  cycle.
- `Program.files` is in the order in which preambles must be emitted: a file comes after the files
  that it imports.
- The errors of all files are reported, not only the first.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weft_lf import parser, tree
from weft_lf.errors import LfError, Problem, Span, fail
from weft_lf.target import FILES, Config, configured
from weft_lf.tree import File, Reactor

Parse = Callable[[str, str], File]  # of a text, and the name of its file
NO_MAIN = "this file has no main reactor"
LONGEST = 10_000_000  # the limit on the characters of a file: a file such as /dev/zero never ends


@dataclass
class Loaded:
    """One file. `scope` maps each name in the file to its reactor, own or imported, and to the file
    that defines that reactor.
    """

    tree: File
    text: str = ""  # the text that was parsed
    scope: dict[str, tuple[Loaded, Reactor]] = field(default_factory=dict)


@dataclass
class Program:
    """A loaded program: its main reactor, all its files, and the settings of its target block."""

    name: str
    path: Path
    main: tree.Reactor
    main_file: Loaded
    files: list[Loaded]
    config: Config
    warnings: list[Problem]


class _Loader:
    def __init__(
        self, opened: Mapping[Path, str] | None = None, parse: Parse = parser.parse
    ) -> None:
        self.opened, self.parse = opened or {}, parse
        self.files: dict[Path, Loaded] = {}
        self.order: list[Loaded] = []
        self.open: list[Path] = []
        self.problems: list[Problem] = []

    def load(self, path: Path, asked: Span | None, text: str | None = None) -> Loaded | None:
        path = path.resolve()
        if path in self.files:
            return self.files[path]
        if path in self.open:
            names = [p.name for p in [*self.open[self.open.index(path) :], path]]
            assert asked is not None
            raise fail(
                asked, "these files import each other: " + " → ".join(names), "break the cycle"
            )
        if text is None:
            text = self.opened[path] if path in self.opened else self.read(path, asked)
        try:
            parsed = self.parse(text, str(path))
        except LfError as error:
            self.problems += error.problems
            return None
        self.open.append(path)
        loaded = Loaded(parsed, text)
        try:
            for reactor in parsed.reactors:
                name = reactor.name or (path.stem if reactor.main else "")
                if not name:
                    self.problems.append(Problem(reactor.span, "this reactor needs a name"))
                    continue
                reactor.name = name
                if name in loaded.scope:
                    again = f"a second reactor called '{name}'"
                    self.problems.append(Problem(reactor.span, again, "give it another name"))
                loaded.scope[name] = (loaded, reactor)
            for wanted in parsed.imports:
                try:
                    self.take(loaded, wanted, path)
                except LfError as error:
                    self.problems += error.problems
        finally:
            self.open.pop()
        self.files[path] = loaded
        self.order.append(loaded)
        return loaded

    def read(self, path: Path, asked: Span | None) -> str:
        where = asked or Span(str(path))
        try:
            with path.open(encoding="utf-8-sig") as file:  # Some editors write a byte order mark.
                text = file.read(LONGEST + 1)
            if len(text) > LONGEST:
                raise fail(where, f"{path} is longer than {LONGEST} characters", "split it")
            return text
        except UnicodeDecodeError:
            hint = "save it as UTF-8, if it is a program"
            raise fail(where, f"{path} is not text in UTF-8", hint) from None
        except OSError as error:
            what = "there is no such file" if not path.exists() else str(error.strerror)
            near = difflib.get_close_matches(
                path.name,
                [p.name for p in path.parent.glob("*.lf") if p != path]
                if path.parent.is_dir()
                else [],
                n=1,
            )
            hint = (
                f"did you mean '{near[0]}'?"
                if near
                else "the path is relative to the file that imports"
            )
            raise fail(where, f"{path}: {what}" if asked else what, hint if asked else "") from None

    def take(self, loaded: Loaded, wanted: tree.Import, path: Path) -> None:
        if "\0" in wanted.uri:
            raise fail(wanted.span, "this path contains a character 0", "remove it")
        found = _in_package(path, wanted) if wanted.package else path.parent / wanted.uri
        other = self.load(found, wanted.span)
        if other is None:
            return
        for there, here, span in wanted.names:
            if there not in other.scope:
                near = difflib.get_close_matches(there, list(other.scope), n=1)
                hint = (
                    f"did you mean '{near[0]}'?"
                    if near
                    else f"it has: {', '.join(other.scope) or 'none'}"
                )
                self.problems.append(Problem(span, f"{found.name} has no reactor '{there}'", hint))
            elif here in loaded.scope:
                self.problems.append(
                    Problem(
                        span, f"a second reactor called '{here}'", "import it 'as' another name"
                    )
                )
            else:
                loaded.scope[here] = other.scope[there]


def _in_package(path: Path, wanted: tree.Import) -> Path:
    """Returns the file that `<package/File.lf>` means: the file is under
    `build/lfc_include/package/` or `target/lfc_include/package/` in a folder above `path`, in
    `src/lib` or `src`.
    """
    package, _, file = wanted.uri.partition("/")
    for folder in path.parents:
        for build in ("build", "target"):
            for place in ("src/lib", "src"):
                found = folder / build / "lfc_include" / package / place / file
                if found.exists():
                    return found
    raise fail(
        wanted.span,
        f"the package '{package}' is not there",
        "put it under build/lfc_include/ of the project",
    )


def parts(
    path: Path, opened: Mapping[Path, str] | None = None
) -> tuple[Loaded | None, list[Problem]]:
    """Returns a file with the files that it imports, whether it is a program or not, and the
    problems in it. The file is None if it cannot be parsed.

    Raises:
        LfError: a file cannot be read, or files import each other.
    """
    loader = _Loader(opened)
    return loader.load(path, None), loader.problems


def load(
    path: Path,
    text: str | None = None,
    opened: Mapping[Path, str] | None = None,
    parse: Parse = parser.parse,
) -> Program:
    """Returns the program whose main file is `path`.

    Args:
        path: the main file.
        text: the contents of the main file, if they are not to be read from `path`.
        opened: the contents of files that are not to be read, by their resolved paths.
        parse: parses a file; parse_kept() does so more quickly if the file has not changed.

    Raises:
        LfError: the program has errors; the exception lists those of all files.
    """
    loader = _Loader(opened, parse)
    main_file = loader.load(path, None, text)
    if main_file is None:
        raise LfError(loader.problems)
    warnings: list[Problem] = []
    config = Config()
    try:
        config, warnings = configured(main_file.tree.target, str(path.resolve()))
    except LfError as error:
        loader.problems += error.problems
    mains = [r for r in main_file.tree.reactors if r.main]
    for reactor in mains:
        if reactor.federated:
            loader.problems.append(
                Problem(
                    reactor.span, "federated programs are not supported", "write 'main reactor'"
                )
            )
    if not mains:
        names = Span(str(path.resolve()), 1, 1)
        loader.problems.append(Problem(names, NO_MAIN, "write: main reactor { … }"))
    if len(mains) > 1:
        loader.problems.append(Problem(mains[1].span, "a second main reactor", "keep one"))
    for loaded in loader.order:
        if loaded is main_file or loaded.tree.target is None:
            continue
        try:
            theirs, _ = configured(loaded.tree.target, loaded.tree.path)
        except LfError as error:
            loader.problems += error.problems
            continue
        config.given = {**theirs.given, **config.given}
        for _, attribute in FILES.values():
            own = getattr(config, attribute)
            own += [item for item in getattr(theirs, attribute) if item not in own]
    errors = [p for p in loader.problems if p.severity == "error"]
    if errors:
        raise LfError(loader.problems)
    name = mains[0].name if mains[0].name else path.stem
    return Program(
        path.stem or name, path.resolve(), mains[0], main_file, loader.order, config, warnings
    )
