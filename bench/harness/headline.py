"""The beginning of RESULTS.md: the figures that most readers want, and a picture of them. In all
these figures smaller is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from .result import Result, figure_of, measured
from .targets import Headline, Targets

PICTURE = "plots/headline.svg"
WIDTH, ROW, LEFT, RIGHT = 960, 34, 510, 60
OURS, RULE, INK = "#1b6ca8", "#999999", "#222222"


def lines(
    all_: Targets, results: Mapping[str, Result]
) -> list[tuple[Headline, float, float, float]]:
    """Returns the headlines that were measured, each with Weft's figure, the other program's
    figure, and the ratio of the two.
    """
    found = []
    for h in all_.headlines:
        if h.bench in results:
            values, ratio = measured(results[h.bench], h), figure_of(results[h.bench], h)
            ours, other = values.get(h.top), values.get(h.bottom)
            if ours is not None and other is not None and ratio is not None:
                found.append((h, ours, other, ratio))
    return found


def picture(all_: Targets, results: Mapping[str, Result]) -> str | None:
    """Returns an SVG with a bar for each ratio, on a logarithmic scale; None if there are no
    ratios.
    """
    rows = lines(all_, results)
    if not rows:
        return None
    low = 10.0 ** math.floor(math.log10(min(ratio for *_, ratio in rows)))
    high = 10.0 ** math.ceil(math.log10(max(1.0, *(ratio for *_, ratio in rows))))
    low = min(low, high / 10)
    height = 70 + ROW * len(rows)

    def x(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / low) / math.log(high / low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="15" fill="{INK}">Weft ÷ the other: smaller is better, 1 is the same</text>',
    ]
    tick = low
    while tick <= high * 1.001:
        at = x(tick)
        wide = 2 if abs(tick - 1) < 1e-9 else 0.5
        out.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="34" y2="{height - 24}" stroke="{RULE}" stroke-width="{wide}"/>'
        )
        out.append(
            f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle" fill="{INK}">{tick:g}</text>'
        )
        tick *= 10
    for k, (h, _, _, ratio) in enumerate(rows):
        y = 40 + ROW * k
        ours, _, other = h.what.partition("; ")
        out.append(f'<text x="10" y="{y + 11}" fill="{INK}">{escape(ours)}</text>')
        out.append(f'<text x="10" y="{y + 25}" fill="{RULE}">÷ {escape(other)}</text>')
        out.append(
            f'<rect x="{LEFT}" y="{y + 4}" width="{max(x(ratio) - LEFT, 1):.1f}" height="{ROW - 14}" fill="{OURS}"/>'
        )
        out.append(f'<text x="{x(ratio) + 5:.1f}" y="{y + 19}" fill="{INK}">{ratio:.2g}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
