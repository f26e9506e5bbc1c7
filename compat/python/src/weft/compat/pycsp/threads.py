"""The older name of `weft.compat.pycsp.parallel`."""

from weft.compat.pycsp import parallel as _parallel
from weft.compat.pycsp.parallel import *  # noqa: F403

__all__ = _parallel.__all__
