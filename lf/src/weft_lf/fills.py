"""Collects the contents of a generated program's tables, and writes them in C as initialisers or as
statements.

A fill stands for `array[index]path = value`, where the value is a template whose {} are numbers. A
small program gets static initialisers, which cost no time when it starts. A large program gets
statements in `weft_rx_wire`. There, a run of fills whose numbers grow evenly becomes a loop, so
that a bank of 5,000 needs as many lines as a bank of 4.

Invariants
- Each place is filled once. Initialisers and statements give the same contents.
- A loop writes exactly the values of its fills: a run ends as soon as one of its numbers does not
  grow by the same step as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FEWEST = 4  # a run with fewer fills is written as single statements


@dataclass
class Array:
    """A C array of the generated program."""

    name: str
    type: str
    size: int
    table: bool = False  # the array is const if it is filled statically
    fixed: bool = False  # the array is always filled statically, because its type is const
    public: bool = False  # other C files see the array; otherwise it is static

    @property
    def linkage(self) -> str:
        return "" if self.public else "static "


@dataclass
class Fills:
    """The arrays of a program, and the fills for them. `count` is the number of fills."""

    arrays: dict[str, Array] = field(default_factory=dict)
    groups: dict[tuple[str, str, str, str], list[tuple[int, ...]]] = field(default_factory=dict)
    count: int = 0

    def array(
        self,
        name: str,
        kind: str,
        size: int,
        *,
        table: bool = False,
        fixed: bool = False,
        public: bool = False,
    ) -> None:
        self.arrays[name] = Array(name, kind, size, table, fixed, public)

    def put(
        self, array: str, index: int, path: str, value: str, *numbers: int, cast: str = ""
    ) -> None:
        """Adds the fill `array[index]path = value`, with `numbers` for the value's {}. `cast` is
        the type that is written before a `{…}` in an assignment."""
        self.groups.setdefault((array, path, value, cast), []).append((index, *numbers))
        self.count += 1

    # --- static -----------------------------------------------------------------------------------

    def declarations(self) -> list[str]:
        """Returns declarations of the arrays, so that code before their definitions can name
        them.
        """
        return [
            f"static {'const ' * a.table}{a.type} {a.name}[{max(a.size, 1)}];"
            for a in self.arrays.values()
            if not a.public and a.size
        ]

    def static(self, fixed_alone: bool = False) -> list[str]:
        """Returns definitions of the arrays with their contents as initialisers; with
        `fixed_alone`, returns only those of the `fixed` arrays.
        """
        members: dict[str, dict[int, list[str]]] = {name: {} for name in self.arrays}
        for (name, path, value, _), rows in self.groups.items():
            for index, *numbers in rows:
                text = value.format(*numbers)
                members[name].setdefault(index, []).append(f"{path} = {text}" if path else text)
        lines = []
        for array in self.arrays.values():
            if (fixed_alone and not array.fixed) or not (array.size or array.public):
                continue
            inside = []
            for index in sorted(members[array.name]):
                parts = members[array.name][index]
                bare = "{" + ", ".join(parts) + "}" if parts[0].startswith(".") else parts[0]
                inside.append(f"  [{index}] = {bare}")
            body = " = {\n" + ",\n".join(inside) + "\n}" if inside else ""
            if not inside and array.table:
                body = " = {0}"
            const = "const " * (array.table and not fixed_alone)
            lines.append(
                f"{array.linkage}{const}{array.type} {array.name}[{max(array.size, 1)}]{body};"
            )
        return lines

    # --- by statements ----------------------------------------------------------------------------

    def plain(self) -> list[str]:
        """Returns definitions, without contents, of the arrays that `statements` fills."""
        return [
            f"{a.linkage}{a.type} {a.name}[{max(a.size, 1)}];"
            for a in self.arrays.values()
            if not a.fixed and (a.size or a.public)
        ]

    def statements(self) -> list[str]:
        lines = []
        for (array, path, value, cast), rows in self.groups.items():
            if array in self.arrays and self.arrays[array].fixed:
                continue
            for first, steps, count in _runs(rows):
                left = value if not cast else f"({cast}){value}"
                if count == 1:
                    lines.append(f"  {array}[{first[0]}]{path} = {left.format(*first[1:])};")
                    continue
                terms = [_term(a, s, count) for a, s in zip(first, steps, strict=False)]
                lines.append(
                    f"  for (size_t i = 0; i < {count}; i++) {array}[{terms[0]}]{path} = {left.format(*terms[1:])};"
                )
        return lines


def _term(start: int, step: int, count: int) -> str:
    if step == 0:
        return str(start)
    if abs(start) + abs(step) * count >= 1 << 31:  # A device's size_t has 32 bits.
        return f"{start}LL + {step}LL * (int64_t)i"
    scaled = "i" if step == 1 else f"{step} * i" if step > 0 else f"({step}) * (long)i"
    return f"{start} + {scaled}" if start else scaled


def _runs(rows: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Cuts the rows, in their order, where the steps from row to row change. Each run is (first
    row, steps, number of rows)."""
    found = []
    at = 0
    while at < len(rows):
        end = at + 1
        steps: tuple[int, ...] = ()
        if end < len(rows):
            steps = tuple(b - a for a, b in zip(rows[at], rows[end], strict=False))
            while end < len(rows) and all(
                b - a == s for a, b, s in zip(rows[end - 1], rows[end], steps, strict=False)
            ):
                end += 1
        if end - at >= FEWEST:
            found.append((rows[at], steps, end - at))
            at = end
        else:
            found.append((rows[at], (), 1))
            at += 1
    return found
