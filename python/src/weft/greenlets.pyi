"""Types of weft.greenlets: those of weft.threads."""

from weft.threads import *  # noqa: F403
from weft.threads import __all__ as __all__
