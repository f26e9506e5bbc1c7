"""The package once more, for core 1 (weft.cores): `weft._twin._chan` is a second copy of _chan.py,
with a run queue and a run of its own.

Invariants
- The errors are one and the same on both cores.
- The core of this copy is the pure one: the native one's state is there once.
"""

import sys

_package = sys.modules[__name__.rpartition(".")[0]]
__path__ = _package.__path__  # this package's modules are the other's files

from .. import errors  # noqa: E402

sys.modules[__name__ + ".errors"] = errors

from . import _plain as _core  # noqa: E402

_core.time = None
sys.modules[__name__ + "._core"] = _core
