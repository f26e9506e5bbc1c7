"""Stands in for weft.compat, which the distribution weft-compat contains.

weft/__init__.py puts this folder last on the path of the package, so a weft/compat that is
installed beside weft is found before this module. A weft/compat that is installed elsewhere (weft
for the system, weft-compat for the user) is found by this module, which then serves as the package.

Raises:
    ModuleNotFoundError: weft-compat is not installed.
"""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

_found = PathFinder.find_spec("weft.compat", [str(Path(folder, "weft")) for folder in sys.path])
if _found is None:
    raise ModuleNotFoundError(
        "the names of PyCSP and aPyCSP are a package of their own: pip install 'weft-csp[compat]'",
        name="weft.compat",
    )
__path__ = list(_found.submodule_search_locations or [])
