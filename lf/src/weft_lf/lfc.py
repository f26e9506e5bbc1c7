"""The options of Lingua Franca's own compiler (upstream), for `weft lf build` and `weft lf run`: a
script that calls upstream's compiler can call `weft lf build` instead.

Invariants
- An option means what it means upstream, or is refused with its name (REFUSED), or has no effect
  and gives a warning (UNUSED).
- Programs are named as upstream: as arguments, in JSON, or on the standard input. Only one of these
  ways may be used at a time.
- If the command line is wrong, argparse ends the process with status 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_lf.errors import NOWHERE, Problem
from weft_lf.target import BUILD_TYPES, LOGGING, WORKERS, Config

REFUSED = {  # option → (its letter, whether a value follows, what to do)
    "--federated": ("-f", False, "federated programs are not supported"),
    "--rti": ("-r", True, "federated programs are not supported"),
    "--external-runtime-path": ("", True, "the runtime is weft_mcu; take the option away"),
    "--runtime-version": ("", True, "the runtime is weft_mcu; take the option away"),
    "--verify": ("", False, "nothing here makes verification models; take the option away"),
}
UNUSED = {  # option → (its letter, whether a value follows)
    "--scheduler": ("-s", True),
    "--print-statistics": ("", False),
    "--no-source-mapping": ("", False),
}
OTHER_NAMES = {"target-compiler": "compiler"}  # name in JSON → name on the command line


def _workers(text: str) -> int:
    if not text.isdigit() or int(text) > WORKERS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to {WORKERS}")
    return int(text)


class _Refuse(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        name = self.option_strings[-1]
        parser.error(f"{name} is not supported: {REFUSED[name][2]}")


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options that change how a program is built."""
    threads = command.add_mutually_exclusive_group()
    threads.add_argument("-w", "--workers", type=_workers, metavar="N", help="0: four, as upstream")
    threads.add_argument(
        "--single-threaded",
        action="store_true",
        default=None,
        help="one thread, and no lock",
    )
    command.add_argument("--build-type", type=str.lower, choices=BUILD_TYPES, metavar="TYPE")
    command.add_argument("--logging", type=str.lower, choices=LOGGING, metavar="LEVEL")
    command.add_argument("--compiler", metavar="CC", help="the C compiler of the host")
    command.add_argument(
        "-c", "--clean", action="store_true", help="first remove the earlier builds of this program"
    )
    command.add_argument(
        "-q", "--quiet", action="store_true", help="leave out the warnings of the C compiler"
    )
    command.add_argument(
        "--tracing",
        action="store_true",
        default=None,
        help="the program writes a trace, NAME.flight, for weft trace",
    )
    # The checks of upstream's `--lint` are always made, so this option changes nothing.
    command.add_argument("-l", "--lint", action="store_true", help=argparse.SUPPRESS)
    for name, (letter, valued) in UNUSED.items():
        names = [letter, name] if letter else [name]
        command.add_argument(
            *names,
            dest="unused",
            action="append" if valued else "append_const",
            help=argparse.SUPPRESS,
            **({"type": lambda _, name=name: name} if valued else {"const": name}),
        )
    for name, (letter, valued, _) in REFUSED.items():
        names = [letter, name] if letter else [name]
        command.add_argument(
            *names, action=_Refuse, nargs=None if valued else 0, help=argparse.SUPPRESS
        )


def add_sources(command: argparse.ArgumentParser) -> None:
    """Adds the names of the programs, and the options for several programs."""
    command.add_argument("files", type=Path, nargs="*", metavar="FILE.lf")
    command.add_argument(
        "--json",
        metavar="TEXT",
        help='{"src": FILE or [FILE, …], "out": FOLDER, "properties": {OPTION: VALUE}}',
    )
    command.add_argument("--json-file", type=Path, metavar="FILE", help="the same, in a file")
    command.add_argument("--stdin", action="store_true", help="the files' names come by stdin")
    command.add_argument(
        "--hierarchical-bin",
        action="store_true",
        help="give bin/ the folders that the sources have in src/",
    )


def completed(
    parser: argparse.ArgumentParser, given: argparse.Namespace, arguments: Sequence[str]
) -> argparse.Namespace:
    """Returns the arguments of `build`, in which `files` are the programs to build.

    Args:
        parser: the parser of `weft lf`.
        given: the result of parsing `arguments`.
        arguments: the command line, with the word `build`.

    Raises:
        SystemExit: no program is named, programs are named in two ways, or the JSON is wrong.
        OSError: the file with the JSON cannot be read.
    """
    ways = [bool(given.files), given.json is not None, given.json_file is not None, given.stdin]
    if sum(ways) != 1:
        several = "name the programs in one way: FILE.lf …, --json, --json-file or --stdin"
        parser.error(several if any(ways) else "which program? name a FILE.lf")
    if given.stdin:
        given.files = [Path(line.strip()) for line in sys.stdin if line.strip()]
        if not given.files:
            parser.error("--stdin: no file is named there")
    if not (given.json is None and given.json_file is None):
        try:
            text = given.json if given.json is not None else given.json_file.read_text("utf-8")
        except UnicodeDecodeError:
            parser.error(f"{given.json_file} is not text in UTF-8; save it as UTF-8")
        more = _from_json(parser, text)
        # The options of the JSON come last, and so they override those of the command line.
        given = parser.parse_args([*arguments, *more])
        if given.json is not None:
            given.json = None
    return given


def _from_json(parser: argparse.ArgumentParser, text: str) -> list[str]:
    """Returns the arguments of the command line that mean the same as the JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        parser.error(f"--json: {error}")
    if not isinstance(found, dict):
        parser.error("--json: expected an object")
    if odd := sorted(set(found) - {"src", "out", "properties"}):
        parser.error(f"--json: there is no '{odd[0]}'; there are src, out and properties")
    sources = found.get("src", [])
    sources = [sources] if isinstance(sources, str) else sources
    if not isinstance(sources, list) or not sources or not all(_name(s) for s in sources):
        parser.error("--json: 'src' is to be a file, or a list of files")
    made: list[str] = []
    if "out" in found:
        if not _name(found["out"]):
            parser.error("--json: 'out' is to be a folder")
        made += [f"--output-path={found['out']}"]
    properties = found.get("properties", {})
    if not isinstance(properties, dict):
        parser.error("--json: 'properties' is to be an object")
    for name, value in properties.items():
        option = f"--{OTHER_NAMES.get(name, name)}"
        if value is True or value in ("true", "True"):
            made.append(option)
        elif isinstance(value, (str, int)) and value not in (False, "false", "False"):
            made.append(f"{option}={value}")
        elif value is not False and not isinstance(value, str):
            parser.error(f"--json: the value of '{name}' is to be true, false, a text or a number")
    return [*made, "--", *sources]


def _name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def configure(config: Config, given: argparse.Namespace | None) -> list[Problem]:
    """Overrides properties of the target block by options of the command line. Returns warnings."""
    for name in ("workers", "single_threaded", "build_type", "logging", "compiler"):
        if getattr(given, name, None) is not None:
            setattr(config, name, getattr(given, name))
    if getattr(given, "tracing", None):
        config.tracing = True
        config.given.setdefault("tracing", NOWHERE)
    if getattr(given, "workers", None) is not None:
        config.single_threaded = False
    return [
        Problem(NOWHERE, f"'{option}' has no effect here", severity="warning")
        for option in dict.fromkeys(getattr(given, "unused", None) or [])
    ]


__all__ = ["add_options", "add_sources", "completed", "configure"]
