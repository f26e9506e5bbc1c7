"""The entry point of the command `weft` and of `python -m weft.cli`; the commands are in
`_commands`.

Invariant: this module needs only the core of the package. What the command line needs besides is in
the extra `weft[cli]`; without it `weft` says so in one line and ends with the status of bad use.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

__all__ = ["EXIT", "main"]

EXIT = {"ok": 0, "failed": 1, "bad use": 2, "deadlock": 3, "interrupted": 130, "terminated": 143}
NEEDS = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (see EXIT)."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(f"'{name}'" for name in missing)
        install = f"pip install {' '.join(missing)}"
        print(
            f"weft: the command line needs {needed}: {install} (weft[cli] has them)",
            file=sys.stderr,
        )
        return EXIT["bad use"]
    from weft import _commands

    return _commands.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
