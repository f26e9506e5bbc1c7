"""`weft portable FILE…`: says for each process of a file whether CPython and MicroPython both run
it, and if not, why.

Invariants
- No file is imported, run or changed.
- The answer goes to stdout. For a mistake on the command line one sentence goes to stderr.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from weft._commands import portable_list as _list
from weft._commands.bad_use import BadUse
from weft._commands.portable_names import MICROPYTHON, facts
from weft._commands.portable_source import Finding, Judged, judge
from weft._commands.program import read_program

EXIT_HELP = """\b
Exit status:
  0  every file runs on both, as far as its text says
  1  one of the two does not run something in a file
  2  bad use: stderr says what to do
"""


@click.command(
    "portable", epilog=EXIT_HELP, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="Print how Weft's own names differ between CPython and MicroPython, with reasons.",
)
@click.argument("files", metavar="[FILE]...", nargs=-1)
def portable_command(as_json: bool, listed: bool, files: tuple[str, ...]) -> int:
    """Say whether a file runs on CPython and, unchanged, on MicroPython.

    \b
    Examples:
      weft portable filter.py
      weft portable filter.py sensor.py --json
      weft portable --list

    For each process the answer names what does not run in the process, and in what the process
    uses: the line, the name, the reason, and what to write instead. Modules beside the file are
    read too. Nothing is run.
    """
    if listed == bool(files):
        raise BadUse(
            "give files or --list, not both" if listed else "give the path of a Python file"
        )
    if listed:
        click.echo(json.dumps(_differences()) if as_json else _list_as_text())
        return 0
    judged = [_judge(name) for name in files]
    if as_json:
        report = {"micropython": facts()["version"], "files": [_as_dict(j) for j in judged]}
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        click.echo("\n".join(_as_text(j) for j in judged))
    return int(any(j.findings for j in judged))


def _judge(name: str) -> Judged:
    text = read_program(name)
    try:
        return judge(Path(name), text)
    except SyntaxError as error:
        at = f" (line {error.lineno}: {error.msg})" if error.lineno else f" ({error.msg})"
        file = error.filename or name
        raise BadUse(f"{file} is not Python{at}; correct it or give another file") from None
    except (ValueError, RecursionError) as error:
        raise BadUse(f"{name} is not Python ({error}); give a Python file") from None
    except OSError as error:
        raise BadUse(f"cannot read {error.filename}: {error.strerror}") from None


# --- the answer -----------------------------------------------------------------------------------


def _as_text(judged: Judged) -> str:
    lines = [f"{judged.file} {_verdict(judged)}"]
    told: set[Finding] = set()
    for name, line, findings in judged.processes:
        on = "runs on both" if not findings else f"not on {_sides(findings)}"
        lines.append(f"  {name} (line {line}): {on}")
        lines += [f"    {_sentence(f, judged.file)}" for f in findings]
        told.update(findings)
    rest = [f for f in judged.findings if f not in told]
    if rest:
        lines.append("  in no process:")
        lines += [f"    {_sentence(f, judged.file)}" for f in rest]
    return "\n".join(lines)


def _verdict(judged: Judged) -> str:
    version = f"MicroPython {facts()['version']}"
    if judged.findings:
        return f"does not run on {_sides(judged.findings)}:"
    return f"runs on CPython and on {version}, as far as its text says"


def _sides(findings: list[Finding]) -> str:
    return " and ".join(sorted({f.lacks for f in findings}))


def _sentence(finding: Finding, of: Path) -> str:
    where = f"line {finding.line}"
    if finding.file != of:
        where = f"{finding.file}, {where}"
    lacks = "" if finding.lacks == MICROPYTHON else f" (not on {finding.lacks})"
    return f"{where}: {finding.name}{lacks}: {finding.reason}; {finding.instead}"


def _as_dict(judged: Judged) -> dict[str, Any]:
    return {
        "file": str(judged.file),
        "portable": not judged.findings,
        "processes": [
            {
                "name": name,
                "line": line,
                "portable": not findings,
                "findings": [judged.findings.index(f) for f in findings],
            }
            for name, line, findings in judged.processes
        ],
        "findings": [
            {
                "file": str(f.file),
                "line": f.line,
                "name": f.name,
                "lacks": f.lacks,
                "reason": f.reason,
                "instead": f.instead,
            }
            for f in judged.findings
        ],
    }


def _differences() -> list[dict[str, Any]]:
    return [
        {"names": list(d.keys), "lacks": d.lacks, "reason": d.reason, "instead": d.instead}
        for d in (*_list.NAMES, *_list.MODULES)
    ] + [
        {"names": [name], "lacks": MICROPYTHON, "reason": reason, "instead": ""}
        for name, reason in _list.BEHAVIOUR.items()
    ]


def _list_as_text() -> str:
    lines = []
    for side in (MICROPYTHON, "CPython"):
        lines.append(f"Not on {side}:")
        for d in _differences():
            if d["lacks"] == side:
                instead = f"; {d['instead']}" if d["instead"] else ""
                lines.append(f"  {', '.join(d['names'])}: {d['reason']}{instead}")
    return "\n".join(lines)
