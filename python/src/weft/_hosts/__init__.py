"""OS processes that run processes of this program.

Invariant: nothing here is imported into a program whose threads are greenlets (weft._patched).
"""

from weft import _patched

if _why := _patched.why_not("weft.processes"):
    raise ImportError(_why)
