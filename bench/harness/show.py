"""Output for people: the table of a bench, the progress bar, and RESULTS.md. Without the package
`rich` the output is plain text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from . import headline
from .result import Result
from .targets import Bench, Headline, Targets

try:
    import rich.console
    import rich.progress
    import rich.table

    RICH = True
except ImportError:
    RICH = False

Rows = list[list[str]]


def number(value: float | None) -> str:
    """Returns a figure as it is shown: with three significant digits, and with thousands
    separated.
    """
    if value is None:
        return "–"
    return (
        f"{value:,.0f}"
        if abs(value) >= 1000
        else f"{value:.3g}"
        if abs(value) < 100
        else f"{value:.0f}"
    )


def candidate_rows(bench: Bench, result: Result) -> tuple[list[str], Rows]:
    head = ["program", "min ns", "p50", "p99"]
    more = [measure for measure in ("bytes", "create") if result[measure]]
    head.extend(more)
    rows = []
    for c in bench.candidates:
        row = [
            c.name + (" (peer)" if c.peer else ""),
            *(number(result[k].get(c.name)) for k in ("ns", "p50", "p99")),
        ]
        row.extend(number(result[measure].get(c.name)) for measure in more)
        rows.append(row)
    return head, rows


def target_rows(bench: Bench, result: Result) -> tuple[list[str], Rows]:
    rows = []
    for t in bench.targets:
        figure, reach = result["ratio"].get(t.name), result["reach"].get(t.name)
        verdict = (
            "not asked"
            if reach is None
            else "not measured"
            if figure is None
            else "met"
            if figure <= reach
            else "NOT MET"
        )
        asked = "–" if reach is None else f"≤ {reach:g}"
        if t.was is not None:
            asked += f" (was ≤ {t.was:g})"
        rows.append([t.name, t.by, number(figure), asked, verdict])
    return ["must be reached", "by", "figure", "reach", "verdict"], rows


def notes(result: Result) -> list[str]:
    return [f"{name}: {why}" for name, why in result["reasons"].items()]


def verdict(result: Result) -> str:
    quick = " (quick run: figures are not for comparing)" if result["quick"] else ""
    return f"{result['bench']}: reach of {result['milestone']} {'met' if result['met'] else 'NOT MET'}{quick}"


def table(bench: Bench, result: Result) -> None:
    """Prints the candidates and the targets of a bench on stdout."""
    parts = [candidate_rows(bench, result), target_rows(bench, result)]
    if RICH:
        console = rich.console.Console(highlight=False)
        for k, (head, rows) in enumerate(parts):
            grid = rich.table.Table(
                title=f"{bench.name}: {bench.title}" if k == 0 else None,
                title_justify="left",
                box=None,
            )
            for i, name in enumerate(head):
                grid.add_column(name, justify="left" if i in (0, 3 * k) else "right")
            for row in rows:
                grid.add_row(*row, style="red" if "NOT MET" in row else None)
            console.print(grid)
            console.print()
        for line in notes(result):
            console.print("  " + line, markup=False, soft_wrap=True)
        console.print(
            verdict(result), style="green" if result["met"] else "red", markup=False, soft_wrap=True
        )
        return
    print(f"{bench.name}: {bench.title}")
    for head, rows in parts:
        print(plain(head, rows))
    for line in notes(result):
        print("  " + line)
    print(verdict(result))


def plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[str], None]]:
    """Shows a progress bar on stderr. The block receives a function that shows which program runs
    next, and counts it.

    If stderr is not a terminal, plain text is printed instead: one line for each bench.
    """
    if RICH and sys.stderr.isatty():
        console = rich.console.Console(stderr=True)
        columns = (
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
        )
        # The bar is redrawn four times a second, by a thread on another CPU than the programs', if
        # there is one.
        with rich.progress.Progress(
            *columns, console=console, transient=True, refresh_per_second=4
        ) as bar:
            task = bar.add_task(title, total=total)
            started = False

            def step(what: str) -> None:
                nonlocal started
                bar.update(task, description=f"{title}: {what}", advance=1 if started else 0)
                started = True

            yield step
        return
    print(f"{title}: {total} runs", file=sys.stderr, flush=True)
    yield lambda what: None


def listing(targets: Targets) -> str:
    lines = []
    for bench in targets.benches.values():
        lines.append(f"{bench.name}: {bench.title}")
        for t in bench.targets:
            reach = ", ".join(f"≤ {value:g} ({milestone})" for milestone, value in t.reach.items())
            loosened = f"; was ≤ {t.was:g}: {t.why}" if t.was is not None else ""
            lines.append(f"    {t.name} (by {t.by}): {reach or 'for comparison'}{loosened}")
    return "\n".join(lines)


def report(targets: Targets, results: Mapping[str, Result]) -> str:
    """Returns RESULTS.md, from the result of each bench that was measured: the picture and the
    figures that most readers want, then each bench. The targets of the benches are on a page of
    their own (`asked`), for developers of Weft.
    """
    commits = sorted({result["commit"] for result in results.values()})
    out = [WRITTEN, "# Results", "", *_headline_lines(targets, results)]
    out += [
        "Measured at "
        + (
            f"commit {commits[0]}."
            if len(commits) == 1
            else f"{len(commits)} commits; each bench below names its own."
        ),
    ]
    for name, bench in targets.benches.items():
        if name in results:
            out += ["", *_section(bench, results[name])]
    return "\n".join(out) + "\n"


WRITTEN = (
    "<!-- `./run bench --report` writes this page from the result of each bench: do not edit. -->"
)

OPENING = """\
How fast is Weft beside what you use? A bar that ends at 0.1 means that Weft takes a tenth of what
the other program takes. The other program does the same work, on the same CPUs, in the same run.

![Weft ÷ the other, for each of the cases below]({picture})

{cases}

Each time is the least of many samples; where several programs contend or wait for each other, it is
the median. A ratio tells more than a time: times move by half between machines and hours
([how it is measured](README.md)).

How does it grow? A select over a thousand times as many channels takes hardly longer:

![StressedAlt: ns a select over 64 to 65,536 channels](../theses/plots/stressedalt.svg)

A process in Python may be a coroutine, a greenlet, a thread or a process of the operating system.
The kind decides what a communication costs; how many processes there are hardly matters for
coroutines:

![A token in a ring of N processes: µs a communication](../theses/plots/pycsp-ring.svg)

More curves: [the experiments of the C++CSP paper](../theses/CPPCSP.md), [those of the PyCSP
paper](../theses/PYCSP.md), and [a thesis on compiled components](../theses/COMPONENTS.md).
"""


def _headline_lines(targets: Targets, results: Mapping[str, Result]) -> list[str]:
    """Returns the picture, and the figures that most readers want, in words."""
    rows = headline.lines(targets, results)
    if not rows:
        return []
    cases = [_case(h, ours, other, ratio) for h, ours, other, ratio in rows]
    measured = [h for h, *_ in rows]
    cases += [f"- Not measured: {h.what}." for h in targets.headlines if h not in measured]
    return [OPENING.format(picture=headline.PICTURE, cases="\n".join(cases))]


def _case(h: Headline, ours: float, other: float, ratio: float) -> str:
    """Returns one figure as a sentence."""
    what, _, peer = h.what.partition("; ")
    more = "as much" if h.of == "bytes" else "as long"
    times = number(1 / ratio if ratio <= 1 else ratio)
    beside = f"{times} times {more}" if ratio <= 1 else f"Weft {times} times {more}"
    figures = f"{amount(ours, h.of)}; {peer}: {amount(other, h.of)}, {beside}"
    return f"- {what}: {figures}" + (" (median)." if h.by == "p50" else ".")


def amount(value: float, of: str) -> str:
    """Returns a figure with its unit."""
    if of == "bytes":
        return f"{number(value)} bytes"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value)} ns"


def asked(targets: Targets, results: Mapping[str, Result]) -> str:
    """Returns TARGETS.md: the targets, and whether each is reached."""
    rows: Rows = []
    for name, bench in targets.benches.items():
        if name in results:
            rows += [[name, *row] for row in target_rows(bench, results[name])[1]]
        else:
            rows.append([name, "not measured", "–", "–", "–", "–"])
    met = sum(row[-1] == "met" for row in rows)
    missed = [f"{row[0]}, {row[1]}" for row in rows if row[-1] == "NOT MET"]
    out = [
        WRITTEN,
        "# What must be reached",
        "",
        "For those who work on Weft: what is asked of the benches of [RESULTS.md](RESULTS.md), and "
        "whether it is reached.",
        "",
        "Smaller is better: ns, bytes, or Weft ÷ the other. "
        f"{met} figures are within what was asked; {len(missed)} are not"
        + (f": {'; '.join(missed)}." if missed else "."),
        "",
        "| bench | must be reached | by | figure | reach | verdict |",
        "|---|---|---|---:|---:|---|",
    ]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def _section(bench: Bench, result: Result) -> list[str]:
    head, rows = candidate_rows(bench, result)
    out = [
        f"## {bench.name}: {bench.title}",
        "",
        f"`{result['command']}`",
        "",
        f"Counted: {bench.counts}.",
        "",
    ]
    out += [f"Features on: {bench.features}. {result['rounds']} interleaved rounds.", ""]
    out += ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    out += ["| " + " | ".join(row) + " |" for row in rows]
    about = [f"- {c.name}: {c.about}" for c in bench.candidates if c.about]
    if about:
        out += ["", *about]
    if result["reasons"]:
        out += ["", "Noted: " + "; ".join(notes(result)) + "."]
    out += [
        "",
        f"Commit: {result['commit']}.",
        "",
        "Machine: " + _joined_items(result["machine"]) + ".",
        "",
        "Versions: " + _joined_items(result["versions"]) + ".",
    ]
    return out


def _joined_items(table_: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in table_.items() if value is not None)
