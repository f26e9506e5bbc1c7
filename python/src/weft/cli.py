"""The entry point of the command `weft` and of `python -m weft.cli`. The commands are in
`_commands`.

Invariant: this module needs only the core of the package. The other packages that the command line
needs are in the extra `weft-csp[cli]`; without these packages `weft` says so in one line and ends
with the status of bad use.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import sys
from collections.abc import Sequence

__all__ = ["EXIT", "main"]

EXIT = {"ok": 0, "failed": 1, "bad use": 2, "deadlock": 3, "interrupted": 130, "terminated": 143}
NEEDS = ("click", "rich")
# The errors that mean that the disk is full or fails.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status (see EXIT)."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(f"'{name}'" for name in missing)
        install = f"pip install {' '.join(missing)}"
        print(
            f"weft: the command line needs {needed}: {install} (weft-csp[cli] has them)",
            file=sys.stderr,
        )
        return EXIT["bad use"]
    try:  # the import takes some tenths of a second
        from weft._commands import main as _commands
    except KeyboardInterrupt:
        return EXIT["interrupted"]
    try:
        return _commands.main(arguments)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        what = error.filename or "the output, or the trace,"
        print(f"weft: {what} could not be written: {error.strerror}", file=sys.stderr)
        _drop_output()
        return EXIT["failed"]


def _drop_output() -> None:
    """Drops stdout if it cannot be written, since the interpreter would try again when it ends."""
    with contextlib.suppress(AttributeError):  # there is no stdout
        try:
            sys.stdout.flush()
            return
        except (OSError, ValueError):
            pass
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


if __name__ == "__main__":
    sys.exit(main())
