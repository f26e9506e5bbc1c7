"""Tells of another distribution named weft, whose files may have replaced some of Weft's.

Weft is the distribution weft-csp. On the package index the name weft belongs to somebody else, and
that package has the import name weft too. pip installs both into one folder, and what was installed
last has overwritten files of the other.
"""

from __future__ import annotations

import os
import sys

#: An environment variable of OS processes of weft.processes: the folder of which their starter told.
TOLD = "_WEFT_TOLD_OF"
told = ""  #: the folder of which was told in this program


def tell_of_another(package: str) -> None:
    """Prints one line if another distribution named weft is installed beside the folder `package`;
    once in a program and its OS processes, and nothing if there is no stderr.
    """
    global told
    beside = os.path.dirname(package)  # noqa: PTH120 (pathlib would be imported for this alone)
    try:
        installed = os.listdir(beside)  # noqa: PTH208
    except OSError:  # in an archive
        return
    # The files of weft-csp are in weft_csp-….dist-info.
    found = [name for name in installed if name.startswith("weft-") and name.endswith("-info")]
    if not found or sys.stderr is None:  # print(file=None) would write to stdout
        return
    told = beside
    if os.environ.get(TOLD) == beside:
        return
    try:  # noqa: SIM105  # contextlib would be imported for this alone
        print(
            f"weft: another package named weft is installed in {beside} too ({found[0]}), and one of "
            f"the two has overwritten files of the other. What is loaded now is {package}. Do: "
            "pip uninstall weft weft-csp, then pip install weft-csp",
            file=sys.stderr,
        )
    except (OSError, ValueError):  # it is closed
        pass
