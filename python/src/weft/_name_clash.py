"""Tells of another distribution named weft, whose files may have replaced some of Weft's.

Weft is the distribution weft-csp. On the package index the name weft belongs to somebody else, and
that package has the import name weft too. pip installs both into one folder, and what was installed
last has overwritten files of the other.
"""

from __future__ import annotations

import os
import re
import sys

_ANOTHER = re.compile(r"weft-[^-]+\.(dist|egg)-info")  # weft-csp is weft_csp-…


def tell_of_another(package: str) -> None:
    """Prints one line if another distribution named weft is installed beside the folder `package`."""
    beside = os.path.dirname(package)
    try:
        found = sorted(filter(_ANOTHER.fullmatch, os.listdir(beside)))
    except OSError:  # in an archive
        return
    if found:
        print(
            f"weft: another package named weft is installed in {beside} too ({found[0]}), and one of "
            f"the two has overwritten files of the other. What is loaded now is {package}. Do: "
            "pip uninstall weft weft-csp, then pip install weft-csp",
            file=sys.stderr,
        )
