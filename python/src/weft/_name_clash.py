"""Warns of another distribution named weft, whose files may have replaced files of Weft.

Weft is the distribution weft-csp. On the package index the name weft belongs to another package,
whose import name is weft too. pip installs both packages into one folder, and the package that was
installed last has overwritten files of the other.
"""

from __future__ import annotations

import os
import sys

#: An environment variable that the OS processes of weft.processes inherit: the folder that was
#: reported.
TOLD = "_WEFT_TOLD_OF"
told = ""  #: the folder that this program has reported


def tell_of_another(package: str) -> None:
    """Prints one line to stderr if another distribution named weft is installed beside the folder
    `package`. A program and its OS processes print the line only once; without stderr nothing is
    printed.
    """
    global told
    beside = os.path.dirname(package)  # noqa: PTH120 (this would be the only use of pathlib)
    try:
        installed = os.listdir(beside)  # noqa: PTH208
    except OSError:  # the package is in an archive
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
            f"weft: another package named weft is installed in {beside} too ({found[0]}), and one "
            f"of the two has overwritten files of the other. What is loaded now is {package}. Do: "
            "pip uninstall weft weft-csp, then pip install weft-csp",
            file=sys.stderr,
        )
    except (OSError, ValueError):  # stderr is closed
        pass
