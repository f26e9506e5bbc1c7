"""Programs whose threads gevent or eventlet has replaced by greenlets (`monkey.patch_all()`).

In such a program Weft's helper threads would be greenlets of the very thread that waits for them in
native code, so that this thread would wait forever. Features that need helper threads are refused
in such a program.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["why_not"]

# The modules of Python that Weft uses and that gevent or eventlet replaces.
_USED = ("threading", "subprocess", "select", "socket", "os", "time", "queue", "signal")
_NAMES_OF_EVENTLET = ("thread", "socket", "select", "os", "time")


def _patched_by() -> str:
    gevent: Any = sys.modules.get("gevent.monkey")
    if gevent is not None and any(map(gevent.is_module_patched, _USED)):
        return "gevent"
    eventlet: Any = sys.modules.get("eventlet.patcher")
    if eventlet is not None and any(map(eventlet.is_monkey_patched, _NAMES_OF_EVENTLET)):
        return "eventlet"
    return ""


def why_not(what: str) -> str:
    """Returns why `what` cannot be used in this program, and what to do instead; "" if `what` can
    be used.
    """
    by = _patched_by()
    if not by:
        return ""
    return (
        f"{what} needs threads of the system, and {by} has replaced those of this program (monkey patching): use it in a "
        "program that is not patched (gunicorn -k gthread, celery -P threads or prefork)"
    )
