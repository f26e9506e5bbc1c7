"""Reads targets.toml and the files in targets/, which define the measurements and their targets.

Invariant: a bench that load() returns is consistent: names are unique, every target names
candidates that exist, and every argument can be filled in. A definition that is not consistent
raises DefinitionError, whose message names the place.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # the back-port of tomllib
    import tomli as tomllib

KINDS = ("cpp", "go", "java", "py", "rust")
MEASURES = ("ns", "bytes", "create")


class DefinitionError(Exception):
    """targets.toml contains a definition that makes no sense; the message names the place and the
    fault."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One program that is measured."""

    name: str
    kind: str
    source: str
    args: tuple[str, ...]
    cpus: int
    samples: int
    per: int
    n: int = 0
    about: str = ""
    compiler: str = "g++"
    peer: bool = False
    needs: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    memory_mb: int = 0

    def arguments(self) -> list[str]:
        """Returns the program's arguments, filled in."""
        return [a.format(samples=self.samples, per=self.per, n=self.n) for a in self.args]


@dataclasses.dataclass(frozen=True)
class Target:
    """One figure that must be reached: `top` ÷ `bottom`, or `top` itself."""

    name: str
    top: str
    bottom: str | None
    of: str
    by: str
    reach: dict[str, float]
    was: float | None = None  # the least value ever agreed, if the target was loosened
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Headline:
    """One of the figures that RESULTS.md opens with."""

    what: str
    bench: str
    top: str
    bottom: str
    by: str
    of: str = "ns"


@dataclasses.dataclass(frozen=True)
class Bench:
    """One bench: candidates measured in interleaved rounds, and targets over them."""

    name: str
    title: str
    counts: str
    features: str
    cpus: int
    rounds: int
    timeout: float
    candidates: tuple[Candidate, ...]
    targets: tuple[Target, ...]

    def quick(self) -> Bench:
        """Returns the same bench with a fraction of the samples, to check that everything runs; its
        figures are not comparable.
        """
        fewer = tuple(
            dataclasses.replace(c, samples=max(2, c.samples // 10)) for c in self.candidates
        )
        return dataclasses.replace(self, rounds=1, candidates=fewer)

    def with_rounds(self, rounds: int) -> Bench:
        return dataclasses.replace(self, rounds=rounds)

    def with_per(self, per: int) -> Bench:
        """Returns the bench with another amount of work for each candidate, and with more time in
        proportion.
        """
        least = min(c.per for c in self.candidates)
        changed = tuple(dataclasses.replace(c, per=per) for c in self.candidates)
        timeout = self.timeout * max(1.0, per / least)
        title = f"{self.title} (of work {per}, in place of {least})"
        return dataclasses.replace(self, title=title, candidates=changed, timeout=timeout)


STRICTEST = "strictest"  # a milestone that requires the least value of all milestones


def reach_at(reach: dict[str, float], milestone: str) -> float | None:
    """Returns the value that `milestone` requires of a target with these reaches; None if it
    requires none.
    """
    if milestone == STRICTEST:
        return min(reach.values(), default=None)
    return reach.get(milestone)


@dataclasses.dataclass(frozen=True)
class Targets:
    """All benches, targets and headlines that are defined."""

    milestone: str
    benches: dict[str, Bench]
    headlines: tuple[Headline, ...] = ()


def load(path: Path) -> Targets:
    """Reads and checks `path` and the files that it names. Raises DefinitionError."""
    document = _read(path)
    if not isinstance(document.get("milestone"), str):
        raise DefinitionError(f'{path}: needs milestone = "…" at the top')
    tables = _benches(path, document)
    benches = {
        name: _bench(name, _inherited(name, table, tables)) for name, table in tables.items()
    }
    if not benches:
        raise DefinitionError(f"{path}: defines no [bench.NAME]")
    headlines = tuple(_headline(benches, h) for h in document.get("headline", []))
    return Targets(document["milestone"], benches, headlines)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise DefinitionError(f"{path}: {error}") from error


def _benches(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Returns the benches of `path` itself, then those of its `files`, which are in the folder of
    the same name.
    """
    tables = dict(document.get("bench", {}))
    folder = path.with_suffix("")
    files = document.get("files", [])
    for other in sorted({file.stem for file in folder.glob("*.toml")} - set(files)):
        raise DefinitionError(f"{path}: files = {files} lacks {other!r}, which is in {folder}")
    for name in files:
        part = folder / f"{name}.toml"
        found = _read(part)
        for key in found.keys() - {"bench"}:
            raise DefinitionError(
                f"{part}: {key} stands in {path.name}; here are [bench.NAME] only"
            )
        for twice in sorted(tables.keys() & found.get("bench", {}).keys()):
            raise DefinitionError(f"{part}: bench.{twice} is defined twice")
        tables |= found.get("bench", {})
    return tables


def _headline(benches: dict[str, Bench], table: dict[str, Any]) -> Headline:
    where = f"headline {table.get('what', '?')}"
    texts: dict[str, type] = dict.fromkeys(("what", "bench", "top", "bottom", "by"), str)
    headline = Headline(**_checked_entries(where, table, texts, {"of": str}))
    if headline.bench not in benches:
        raise DefinitionError(f"{where}: there is no bench {headline.bench!r}")
    candidates = [c.name for c in benches[headline.bench].candidates]
    _check_measured(where, candidates, headline)
    return headline


def _check_measured(where: str, candidates: list[str], figure: Target | Headline) -> None:
    """Checks that both sides are candidates, and that the measure and its statistic exist."""
    if figure.of not in MEASURES:
        raise DefinitionError(f"{where}: of = {figure.of!r} is none of {', '.join(MEASURES)}")
    of_this = {"ns": ("min", "p50", "p99"), "bytes": ("max",), "create": ("min",)}[figure.of]
    if figure.by not in of_this:
        raise DefinitionError(
            f"{where}: by = {figure.by!r}, but {figure.of} is judged by {' or '.join(of_this)}"
        )
    for side, name in (("top", figure.top), ("bottom", figure.bottom)):
        if name is not None and name not in candidates:
            raise DefinitionError(f"{where}: {side} = {name!r} is not a candidate of this bench")


def _checked_entries(
    where: str, table: dict[str, Any], required: dict[str, Any], optional: dict[str, Any]
) -> dict[str, Any]:
    """Checks that no required entry of a table is missing, that none is unknown, and that each has
    its type. Returns the entries.
    """
    for key in required:
        if key not in table:
            raise DefinitionError(f"{where}: {key} is missing")
    for key, value in table.items():
        kind = required.get(key) or optional.get(key)
        if kind is None:
            raise DefinitionError(f"{where}: unknown entry {key}")
        if not isinstance(value, kind) or (isinstance(value, int) and kind is int and value < 1):
            raise DefinitionError(
                f"{where}: {key} = {value!r} should be {'at least 1' if kind is int else kind.__name__}"
            )
    return dict(table)


def _one_per_number(where: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns one entry for each number of an entry whose n is a list, in whose names {n} is
    replaced.
    """
    n = entry.get("n")
    if not isinstance(n, list):
        return [entry]
    if not n or not all(type(k) is int for k in n):
        raise DefinitionError(f"{where}: n should be a number or a list of numbers")
    if "{n}" not in str(entry.get("name")):
        raise DefinitionError(f"{where}: n is a list, but the name has no {{n}}")
    names = {key: entry[key] for key in ("name", "about", "top", "bottom") if key in entry}
    return [
        entry | {key: str(text).replace("{n}", str(k)) for key, text in names.items()} | {"n": k}
        for k in n
    ]


def _inherited(name: str, table: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """Returns the table of a bench. If the bench is `like` another bench, fields that it does not
    give are taken from the table of the other bench.
    """
    if "like" not in table:
        return table
    other = tables.get(table["like"], {})
    if "candidate" not in other:
        raise DefinitionError(
            f"bench.{name}: like = {table['like']!r} must be a bench with candidates of its own"
        )
    return other | {key: value for key, value in table.items() if key != "like"}


def _bench(name: str, table: dict[str, Any]) -> Bench:
    where = f"bench.{name}"
    what = name.rpartition("-")[2]
    numbers: dict[str, type] = {
        "cpus": int,
        "rounds": int,
        "samples": int,
        "per": int,
        "timeout": int,
    }
    texts: dict[str, type] = {"title": str, "counts": str, "features": str}
    lists: dict[str, type] = {"candidate": list, "target": list}
    shared: dict[str, type] = {"kind": str, "source": str, "args": list, "needs": list}
    entries = _checked_entries(where, table, {**texts, **numbers, **lists}, shared)
    candidates = tuple(
        _candidate(where, what, entries, c)
        for x in entries["candidate"]
        for c in _one_per_number(where, x)
    )
    names = [c.name for c in candidates]
    targets = tuple(
        _target(where, names, t)
        for x in entries["target"]
        for t in _one_per_number(where, _named(x))
    )
    for kind, list_ in (("candidate", names), ("target", [t.name for t in targets])):
        if len(set(list_)) != len(list_) or not list_:
            raise DefinitionError(f"{where}: needs at least one {kind}, each with its own name")
    picked = {key: entries[key] for key in ("title", "counts", "features", "cpus", "rounds")}
    return Bench(
        name=name,
        timeout=float(entries["timeout"]),
        candidates=candidates,
        targets=targets,
        **picked,
    )


def _named(target: dict[str, Any]) -> dict[str, Any]:
    """Returns the target with its name, which is "top ÷ bottom" unless another is given."""
    if "top" in target and "bottom" in target:
        return {"name": f"{target['top']} ÷ {target['bottom']}"} | target
    return target


def _candidate(where: str, what: str, bench: dict[str, Any], table: dict[str, Any]) -> Candidate:
    where = f"{where}.candidate {table.get('name', '?')}"
    given = {key: bench[key] for key in ("kind", "source", "args", "needs") if key in bench}
    table = given | table
    required: dict[str, type] = {"name": str, "kind": str, "source": str, "args": list}
    optional: dict[str, type] = {
        "about": str, "compiler": str, "peer": bool, "needs": list, "env": dict,
        "memory_mb": int, "cpus": int, "samples": int, "per": int, "n": int,
    }  # fmt: skip
    entries = _checked_entries(where, table, required, optional)
    if entries["kind"] not in KINDS:
        raise DefinitionError(f"{where}: kind {entries['kind']!r} is none of {', '.join(KINDS)}")
    for key in ("cpus", "samples", "per"):
        entries.setdefault(key, bench[key])
    entries["args"] = tuple(str(a).replace("{what}", what) for a in entries["args"])
    entries["needs"] = tuple(entries.get("needs", ()))
    entries["env"] = tuple(sorted(entries.get("env", {}).items()))
    candidate = Candidate(**entries)
    try:
        candidate.arguments()
    except (KeyError, IndexError, ValueError) as error:
        raise DefinitionError(
            f"{where}: args may name {{samples}}, {{per}} and {{n}} only ({error})"
        ) from error
    if any("{n}" in a for a in candidate.args) and not candidate.n:
        raise DefinitionError(f"{where}: args name {{n}}, but n is missing")
    return candidate


def _target(where: str, candidates: list[str], table: dict[str, Any]) -> Target:
    where = f"{where}.target {table.get('name', '?')}"
    table = {key: value for key, value in table.items() if key != "n"}  # n has been filled in
    entries = _checked_entries(
        where,
        table,
        {"name": str, "top": str, "by": str, "reach": dict},
        {"bottom": str, "of": str, "was": (int, float), "why": str},
    )
    for milestone, value in entries["reach"].items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise DefinitionError(f"{where}: reach of {milestone} should be a number above 0")
    entries.setdefault("bottom", None)
    entries.setdefault("of", "ns")
    target = Target(**entries)
    _check_measured(where, candidates, target)
    if (target.was is None) != (not target.why):
        raise DefinitionError(f"{where}: was and why go together")
    least = min(target.reach.values(), default=None)
    if target.was is not None and least is not None and least <= target.was:
        raise DefinitionError(f"{where}: was = {target.was}, but it is not loosened: {least}")
    return target
