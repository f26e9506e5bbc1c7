"""Starts threads for weft.threads and weft.cores, and raises NoRoom where the port has no thread
left."""

import sys

try:
    from _thread import allocate_lock, get_ident, stack_size, start_new_thread  # noqa: F401
except ImportError:
    raise ImportError("weft.threads, weft.cores: this port has no threads; use weft.coroutines")

from .errors import NoRoom

try:
    from time import sleep_ms as pause
except ImportError:
    from time import sleep as _seconds

    def pause(n):
        _seconds(n / 1000)


LIMIT = 1 if sys.platform == "rp2" else 1 << 30  # limit on threads besides the main program
TRIES = 10 if LIMIT == 1 else 1  # attempts to start a thread, a millisecond apart


def begin(body):
    """Runs body() on a thread of its own. Returns None, or the error if there is no thread."""
    e = None
    for _ in range(TRIES):
        try:
            start_new_thread(body, ())
            return None
        except OSError as error:  # on rp2 the previous thread might still be on core 1
            e = error
            pause(1)
        except (MemoryError, RuntimeError) as error:
            return error
    return e


def again(work, path):
    """Tries once more to start an io call for which there was no thread: on rp2 the previous thread
    might have ended by now. Raises NoRoom."""
    e = begin(work)
    if e is not None:
        raise NoRoom(
            "process %s: io: this port has no thread left for the call (%r); make fewer at a time"
            % (path, e)
        )


def refuse(path, e):
    """Raises NoRoom for the process `path`. `e` is the port's error; None means that all threads
    are in use."""
    raise NoRoom(
        "process %s: this port has %s; use weft.coroutines for more processes"
        % (
            path,
            "one thread besides the main program, so at most two processes at a time"
            if LIMIT == 1
            else "no room for one more thread (%r)" % (e,),
        )
    )
