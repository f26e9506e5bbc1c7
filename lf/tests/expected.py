"""Shows or writes the traces of the programs in programs/: the lines `//= TIME MICROSTEP NAME` at
the end of each program.

    .venv/bin/python lf/tests/expected.py [--write] [--compiled] [WORDS…]

shows the trace that the oracle, or with --compiled the compiled program, gives for each program.
With --write it adds the trace to the programs that have none. A person checks each trace against
SEMANTICS.md before it is committed: the trace must be the one that the rules demand, and not just
the trace of the program.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from weft_lf import minic  # noqa: E402
from weft_lf.cli import model_of  # noqa: E402
from weft_lf.errors import LfError, rendered  # noqa: E402
from weft_lf.oracle import Oracle  # noqa: E402

PROGRAMS = HERE / "programs"
MARK = "//= "


def programs() -> list[Path]:
    """Returns the paths of all programs; the files in lib/ are imported by programs, and are left
    out.
    """
    return sorted(p for p in PROGRAMS.rglob("*.lf") if "lib" not in p.parts)


def expected(path: Path) -> list[str]:
    return [line[len(MARK) :] for line in path.read_text().splitlines() if line.startswith(MARK)]


def by_oracle(path: Path) -> list[str]:
    """Returns the trace that the interpreter gives.

    Raises:
        minic.Unsupported: a body uses C that the interpreter does not know.
    """
    trace = Oracle(model_of(path)).run()
    return [f"{f.time} {f.microstep} {f.name}{'!' * f.missed}" for f in trace]


def by_program(path: Path) -> list[str]:
    """Returns the trace that the compiled program gives."""
    from conftest import run

    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(path.parent, Path(place) / "p")
        return run(Path(place) / "p" / path.name)[1]


def main() -> None:
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    for path in programs():
        if words and not any(w in str(path) for w in words):
            continue
        try:
            trace = by_program(path) if "--compiled" in sys.argv else by_oracle(path)
        except minic.Unsupported as error:
            print(f"{path.name}: not for the oracle: {error}")
            continue
        except LfError as error:
            print("\n".join(rendered(p) for p in error.problems))
            continue
        except Exception as error:
            print(f"{path.name}: {error!r}")
            continue
        known = expected(path)
        state = "new" if not known else "same" if known == trace else "DIFFERENT"
        print(f"{path.relative_to(PROGRAMS)}: {state}")
        if state != "same":
            print("".join(f"    {line}\n" for line in trace), end="")
        if state == "new" and "--write" in sys.argv:
            path.write_text(
                path.read_text().rstrip() + "\n\n" + "".join(f"{MARK}{line}\n" for line in trace)
            )


if __name__ == "__main__":
    main()
