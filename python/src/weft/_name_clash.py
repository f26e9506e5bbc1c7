"""Warns of another distribution named weft, whose files may have replaced some of Weft's.

Weft is the distribution weft-csp. On the package index the name weft belongs to another package,
which has the import name weft too. pip installs both packages into one folder, and the package that
was installed last has overwritten files of the other.
"""

from __future__ import annotations

import os
import sys


def tell_of_another(package: str) -> None:
    """Prints one line if another distribution named weft is installed beside the folder
    `package`.
    """
    beside = os.path.dirname(package)  # noqa: PTH120 (this would be the only use of pathlib)
    try:
        installed = os.listdir(beside)  # noqa: PTH208
    except OSError:  # the package is in an archive
        return
    # The files of weft-csp are in weft_csp-….dist-info.
    found = [name for name in installed if name.startswith("weft-") and name.endswith("-info")]
    if found:
        print(
            f"weft: another package named weft is installed in {beside} too ({found[0]}), and one "
            f"of the two has overwritten files of the other. What is loaded now is {package}. Do: "
            "pip uninstall weft weft-csp, then pip install weft-csp",
            file=sys.stderr,
        )
