"""./run thesis lf: runs the thesis's experiments as Lingua Franca programs (lf_programs.py), and
writes their figures, beside those of the thesis, to theses/lf/RESULTS.md. The drawings go to
theses/lf/plots/. The run takes some minutes; the figures are the same in each run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LF = Path(__file__).resolve().parent
ROOT = LF.parents[1]
sys.path += [str(ROOT / "lf" / "src"), str(ROOT / "lf" / "tests")]

import lf_programs as ex  # noqa: E402

from weft_lf.graph import draw  # noqa: E402

PLOTS = LF / "plots"
CHARTS = LF.parent / "experiments" / "src" / "plot.mjs"


def chart(name: str, kind: str, **what: object) -> str:
    """Draws a chart with plot.mjs of theses/experiments, and returns a line of Markdown that shows
    the chart."""
    script = f"import {{ {kind} }} from {json.dumps(str(CHARTS))}; process.stdout.write({kind}({json.dumps(what)}))"
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True
    )
    (PLOTS / f"{name}.svg").write_text(ran.stdout)
    return f"![{name}](plots/{name}.svg)"


def analyser(name: str, title: str, ran: ex.Ran, us: tuple[int, int]) -> str:
    """Draws two pins as a logic analyser shows them, and returns the Markdown."""
    wide, high, low, up = 720, 150, us[0] * 1000, us[1] * 1000
    parts = [f'<text x="20" y="18" font-size="12" font-weight="bold">{title}</text>']
    for row, pin in enumerate((2, 3)):
        base = 70 + 50 * row
        points, level = [f"60,{base}"], 0
        for ns, to in ran.edges[pin]:
            if not low <= ns <= up:
                continue
            x = 60 + (ns - low) * wide // (up - low)
            points += [f"{x},{base - 30 * level}", f"{x},{base - 30 * to}"]
            level = to
        points.append(f"{60 + wide},{base - 30 * level}")
        parts.append(f'<text x="12" y="{base - 8}" font-size="11">core {row}</text>')
        parts.append(f'<polyline fill="none" stroke="#1f6feb" points="{" ".join(points)}"/>')
    for us_at in range(us[0], us[1] + 1, 100):
        x = 60 + (us_at - us[0]) * wide // (us[1] - us[0])
        parts.append(f'<line x1="{x}" x2="{x}" y1="28" y2="126" stroke="#bbb"/>')
        parts.append(f'<text x="{x - 10}" y="142" font-size="10">{us_at} us</text>')
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 90}" height="{high}" font-family="sans-serif">'
    (PLOTS / f"{name}.svg").write_text("\n".join([svg, *parts, "</svg>"]) + "\n")
    return f"![{name}](plots/{name}.svg)"


def figure_8_5() -> str:
    """Draws, to scale, the hole and the ball's path in the disc's frame, with the room on each side
    of the ball, and returns the Markdown."""
    angle, room = ex.lateral_error()
    scale, left, top = 22, 60, 70
    thick, hole = 3.5 * scale, 18 * scale
    slant = 3.5 / ex.math.tan(angle) * scale
    path = 11 / ex.math.sin(angle) * scale
    a, b = left + room * scale, left + room * scale + path
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{hole + 330}" height="230" font-family="sans-serif" font-size="12">',
        f'<rect x="10" y="{top}" width="{left - 10}" height="{thick}" fill="#c9a36a"/>',
        f'<rect x="{left + hole}" y="{top}" width="120" height="{thick}" fill="#c9a36a"/>',
        f'<polygon points="{a},{top} {b},{top} {b + slant},{top + thick} {a + slant},{top + thick}" fill="#dce8f7" stroke="#1f6feb"/>',
        f'<text x="{left}" y="{top - 30}">the hole, w = 18 mm; the disc, t = 3.5 mm; the ball, d = 11 mm</text>',
        f'<text x="{left}" y="{top - 10}">e = {room:.2f} mm</text>',
        f'<text x="{left + hole - 60}" y="{top + thick + 18}">e = {room:.2f} mm</text>',
        f'<text x="{left}" y="{top + thick + 40}">angle {angle:.3f} rad (2.45 m/s down, 1.26 m/s across): t / tan + d / sin + 2 e = w</text>',
        "</svg>",
    ]
    (PLOTS / "figure-8-5.svg").write_text("\n".join(lines) + "\n")
    return "![figure 8.5](plots/figure-8-5.svg)"


# Figure 8.6: the actors of theses/device/firmware/lta.c and the events that they schedule.
ACTORS = """digraph lta { rankdir=LR; node [shape=box, style=rounded, fontname=Helvetica]; edge [fontname=Helvetica, fontsize=9];
  motor -> motor [label="motor_loop"]; motor -> main [label="main_loop (position)"]; main -> button [label="check_button"];
  main -> sensors [label="check_sensors"]; button -> main [label="button_pressed"];
  main -> motor [label="set_fast, set_target_position, set_target_time"]; sensors -> motor [label="set_target_time"];
  console -> console [label="console_loop"]; }
"""


def diagrams() -> None:
    with tempfile.TemporaryDirectory() as place:
        for name in ("Ball", "BallPio"):
            draw(ex.model(LF / f"{name}.lf"), Path(place) / f"{name}.svg")
            (PLOTS / f"{name}.svg").write_text((Path(place) / f"{name}.svg").read_text())
    ran = subprocess.run(["dot", "-Tsvg"], input=ACTORS, capture_output=True, text=True, check=True)
    (PLOTS / "figure-8-6.svg").write_text(ran.stdout)


def row(*cells: object) -> str:
    return "| " + " | ".join(str(c) for c in cells) + " |"


def table(head: list[str], rows: list[list[object]]) -> list[str]:
    return [row(*head), row(*["---"] + ["---:"] * (len(head) - 1)), *(row(*r) for r in rows), ""]


def chapter_7(place: Path) -> list[str]:
    lines = ["## Timing (chapter 7)", ""]
    lines += [
        "Two interleaved 10 kHz tasks of a number of loops. `weft lf` finds that they share nothing and gives each an enclave and a core; the",
        "thesis's Lingua Franca could not run them at once, so it measured one. Flash and conflicts: the work in flash, bus conflicts modelled.",
        "",
    ]
    for loops, name, us in ((100, "figure-7-3", 1000), (250, "figure-7-4", 1000)):
        image = ex.built(
            place, f"Wave{loops}", ex.TASKS.format(loops=ex.LOOPS, count=loops, target="")
        )
        ran = ex.run(image, 3000, "2,3")
        title = f"Figure {name[7:].replace('-', '.')}: {loops} loops"
        lines += [analyser(name, title, ran, (1500, 1500 + us)), ""]
    both = {"conflicts": True, "flash": True}
    ways: list[tuple[str, dict[str, bool]]] = [
        ("both cores, SRAM", {}),
        ("both cores, flash, conflicts", both),
        ("one core, SRAM", {"one_core": True}),
    ]
    rows: list[list[object]] = []
    for name, how in ways:
        for loops in (250, 300):
            one = max(ex.tasks(place, loops, **how), key=lambda t: t.total)  # type: ignore[arg-type]
            us = one.total - one.execution
            rows.append(
                [
                    f"{name}, {loops} loops",
                    f"{one.execution:.2f}",
                    f"{one.total:.2f}",
                    f"{us:.2f}",
                    one.overhead,
                ]
            )
    rows += [
        ["thesis: LF, one task, 250 loops", "90.0", "122.0", "32.0", 4000],
        ["thesis: LTA, 250 loops", "103.9", "112.5", "8.6", 1075],
        ["thesis: FreeRTOS, 250 loops", "103.9", "128.6", "24.7", 3088],
    ]
    lines += [
        "Figure 7.5 and Table 7.1. Where 10 kHz are held (total 100) the rest is idle; the overhead is what is left at"
        " saturation. On one core it has the other task.",
        "",
    ]
    lines += table(["", "task, us", "total, us", "rest, us", "most cycles between"], rows)
    series, low, high = [], [], []
    for name, how in ways[:2]:
        points = []
        for loops in (10, 60, 110, 160, 170, 180, 190, 200, 210, 230, 250, 270):
            one = max(ex.tasks(place, loops, us=8000, **how), key=lambda t: t.deviation)  # type: ignore[arg-type]
            points.append((loops, one.execution))
            target = low if loops < 160 else high
            target.append(
                [
                    f"{name}, {loops}",
                    f"{one.execution:.2f}",
                    f"{one.deviation:.3f}",
                    "yes" if one.holds else "no",
                ]
            )
        series.append({"name": name, "points": points})
    lines += ["Figure 7.6: the task's own time.", ""]
    lines += [
        chart("figure-7-6", "lines", title="Task execution time", x="loops", y="us", series=series),
        "",
    ]
    lines += [
        "Figure 7.7: start deviation at low loops (thesis, 10 loops: LF 4.3 us, LTA and FreeRTOS almost 0).",
        "",
    ]
    lines += table(["", "task, us", "deviation, us", "10 kHz held"], low)
    lines += [
        "Figure 7.8: start deviation at high loops (thesis: LF holds up to 190, LTA up to 220).",
        "",
    ]
    lines += table(["", "task, us", "deviation, us", "10 kHz held"], high)
    most = [[name, ex.most_loops(place, 180, 290, **how)] for name, how in ways[:2]]
    lines += table(
        ["10 kHz held up to", "loops"],
        [*most, ["thesis: LF (one task)", 190], ["thesis: LTA", 220]],
    )
    return lines


def chapters_4_5(place: Path) -> list[str]:
    lines = ["## Listings 4.1 and 4.2", ""]
    lines += [
        "Listing 4.1's two loops post `print` and `increment` to one actor at the same times: which is first is left open.",
        "Listing 4.2's reactor has an order. Compiled by `weft lf`, on one core and, with delays, over both,",
        "it printed 0, 1, 2, … 19 (`theses/tests/test_lf.py` asserts it).",
        "",
        "## Memory (chapter 5)",
        "",
    ]
    apart = ex.bytes_each(place, 4000, 8000, True)
    equal = ex.bytes_each(place, 4000, 20_000, False)
    lines += table(
        ["bytes a minimal reactor: a timer and a reaction", "bytes", "as many were run"],
        [
            ["`weft lf`, a bank of one timer, as the thesis has it", f"{equal:.1f}", "20,000"],
            [
                "`weft lf`, every one with a time of its own (of this 4 in the heap)",
                f"{apart:.1f}",
                "8,000",
            ],
            ["thesis: LF", 360, 681],
            ["thesis: LTA actor", 25, "10,068"],
            ["thesis: FreeRTOS thread with 128 bytes of stack", 272, 892],
        ],
    )
    points = []
    for count in (100, 2000, 4000, 6000, 8000):
        image = ex.built(place, f"Heap{count}", ex.bank(count, True))
        points.append((count, ex.static_bytes(image) / 1024))
    thesis = [(n, 13.3 + 360 * n / 1024) for n in (100, 681)]
    lines += ["Figure 5.1: memory of a bank, KB.", ""]
    series = [
        {"name": "weft lf", "points": points},
        {"name": "thesis: LF", "points": thesis, "dashed": True},
    ]
    lines += [
        chart(
            "figure-5-1",
            "lines",
            title="Memory of a bank of reactors",
            x="reactors",
            y="KB",
            series=series,
        ),
        "",
    ]
    sizes: list[list[object]] = []
    blink = 'target C { platform: rp2040 }\npreamble {= #include "board.h" =}\n'
    blink += "main reactor { timer t(0, 500 msec)\n  reaction(startup) {= pin_out(25); =}\n  reaction(t) {= pin_toggle(25); =} }\n"
    image = ex.built(place, "Blink", blink, flash=True)
    sizes.append(["blink", image.with_suffix(".bin").stat().st_size, "96,100"])
    for name in ("Ball", "BallPio"):
        example = LF / f"{name}.lf"
        text = example.read_text().replace(
            "../device", str(LF.parent / "device")
        )  # The build takes place in another folder.
        program = ex.built(place, name, text, flash=True)
        sizes.append(
            [
                f"{name}.lf",
                program.with_suffix(".bin").stat().st_size,
                "39,800 (its LTA version)" if name == "Ball" else "",
            ]
        )
    lines += table(["image in flash, start-up included", "bytes", "thesis"], sizes)
    return lines


def chapter_6(place: Path) -> list[str]:
    lines = ["## Core interference (chapter 6)", ""]
    lines += [
        "fib(15) and two products of 10 × 10 in reactions, 30 runs each, conflicts modelled. `loop`: a reaction on core 1 never returns.",
        "",
    ]
    rows: list[list[object]] = []
    for call, period in (("fib(15)", 1000), ("matrices(2)", 900)):
        for flash in (True, False):
            found = {
                core1: ex.interference(place, call, period, core1, 30, flash) for core1 in ex.OTHERS
            }
            for core1, (mean, deviation) in found.items():
                more = 100 * (mean / found["same"][0] - 1)
                rows.append(
                    [
                        f"{call}, {'flash' if flash else 'SRAM'}, core 1: {core1}",
                        f"{mean:.2f}",
                        f"{more:+.1f} %",
                        f"{deviation:.3f}",
                    ]
                )
    lines += table(["", "mean, us", "against the same", "deviation, us"], rows)
    lines += [
        "Figures 6.2 to 6.8 in full (thread stacks on two heaps) are actors', in experiments/RESULTS.md. Thesis: a loop costs 20 %.",
        "",
    ]
    return lines


def chapter_8() -> list[str]:
    diagrams()
    lines = ["## The tunnelling ball (chapter 8)", ""]
    rows: list[list[object]] = [
        ["`Ball.lf`: every step a reaction, 62.5 us", "100 of 100", "0.568, constant"],
        ["`BallPio.lf`: steps by PIO", "100 of 100", "0, to the cycle"],
        ["thesis: LF", "not at full speed: 200 us a toggle", ""],
        ["thesis: LF with PIO", "at full speed", ""],
    ]
    lines += table(["controller", "drops that pass (falls ±2000 us)", "steps late by, us"], rows)
    lines += [
        "`theses/tests/soak` repeats the drops (seed 11; the table's were seed 1: `./run thesis ball --image bin/Ball.elf --drops 100`).",
        "",
    ]
    lines += ["Figure 8.5, to scale (thesis: 1.92 mm):", "", figure_8_5(), ""]
    lines += [
        "Figure 8.6, the actors of theses/device/firmware/lta.c:",
        "",
        "![figure 8.6](plots/figure-8-6.svg)",
        "",
    ]
    lines += [
        "Figure 8.7, `weft lf graph Ball.lf`, and with PIO:",
        "",
        "![Ball](plots/Ball.svg)",
        "",
        "![BallPio](plots/BallPio.svg)",
        "",
    ]
    wanted = {
        16: "0.049, 0.0032",
        8: "0.098, 0.013",
        4: "0.19, 0.052",
        2: "0.37, 0.21",
        1: "0.57, 0.57",
    }
    steps: list[list[object]] = []
    for n, thesis in wanted.items():
        absolute, total = ex.step_error(n)
        steps.append([f"1/{n}" if n > 1 else "1", f"{absolute:.3f}, {total:.4f}", thesis])
    lines += ["Table 8.1, by the thesis's formula:", ""]
    lines += table(["step", "absolute, total error", "thesis"], steps)
    return lines


def main() -> None:
    PLOTS.mkdir(exist_ok=True)
    head = [
        "# The thesis's experiments in Lingua Franca",
        "",
        "Written by `./run thesis lf`: programs compiled by `weft lf` on the emulated RP2040 at 125 MHz, exact and the same each time.",
        "The thesis's figures are from a board, with upstream's compiler of its time. What actors of the same runtime do is in",
        "[experiments/RESULTS.md](../experiments/RESULTS.md).",
        "",
    ]
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        parts = [chapters_4_5(place), chapter_6(place), chapter_7(place), chapter_8()]
    (LF / "RESULTS.md").write_text(
        "\n".join([*head, *(line for part in parts for line in part)]).rstrip() + "\n"
    )


if __name__ == "__main__":
    main()
