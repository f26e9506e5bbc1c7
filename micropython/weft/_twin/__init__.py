"""A second copy of the package's modules for core 1 (weft.cores). `weft._twin._chan` is loaded from
_chan.py like `weft._chan`, but this copy has a run queue and a run of its own.

Invariants
- Both copies share the classes of errors.
- This copy uses the core in Python, because the state of the native core exists only once.
"""

import sys

_package = sys.modules[__name__.rpartition(".")[0]]
__path__ = _package.__path__  # the modules of this package are loaded from weft's files

from .. import errors  # noqa: E402

sys.modules[__name__ + ".errors"] = errors

from . import _plain as _core  # noqa: E402

_core.time = None
sys.modules[__name__ + "._core"] = _core
