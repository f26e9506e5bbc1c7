"""Log records of a child, on their way to its parent (see _hosts/child_output.py).

Only a program that imports `logging` pays for this: a child has no `logging` until some code in it
imports the module. From then on its records go to the parent.

    begin(): logging is imported already ──► _install()
             else a finder waits ──`import logging`, anywhere──► the module is loaded ──► _install()
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["as_here", "begin", "pass_on"]

# The logging levels of a program that has not set any: the root's level is WARNING.
_AS_IT_COMES: dict[str, Any] = {"root": 30, "disable": 0, "named": {}}

# Sends a record's fields; returns False if they are too long.
Send = Callable[[dict[str, Any]], bool]
LONG = 30_000  # the number of characters to which a text is cut if it is too long for a datagram


# --- in the parent --------------------------------------------------------------------------------


def as_here() -> dict[str, Any]:
    """Returns the logging levels of this OS process. They are passed to a child, so that the child
    does not send records that would be dropped here.
    """
    if "logging" not in sys.modules:
        return _AS_IT_COMES
    import logging

    named = {
        name: logger.level
        for name, logger in list(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET
    }
    return {"root": logging.root.level, "disable": logging.root.manager.disable, "named": named}


def pass_on(fields: dict[str, Any]) -> None:
    """Gives a child's record to the logger of the same name."""
    import logging

    record = logging.makeLogRecord(fields)
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


# --- in the child ---------------------------------------------------------------------------------


def begin(send: Send, as_there: dict[str, Any]) -> None:
    """Makes the records of this OS process go to its parent through `send`. `as_there` contains the
    parent's levels.
    """
    if "logging" in sys.modules:
        _install(send, as_there)
    else:
        sys.meta_path.insert(0, _Finder("logging", lambda: _install(send, as_there)))


class _Finder:
    """Finds one module, once, in the same way as the finders that follow this one in sys.meta_path.
    `then` is called when the module is loaded.

    The finder stays in sys.meta_path, because another thread may be iterating over that list.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        self._name = ""
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._then)
                return spec
        return None


class _Loader:
    """Loads a module with `loader`, then calls `then`."""

    def __init__(self, loader: Any, then: Callable[[], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


def _install(send: Send, as_there: dict[str, Any]) -> None:
    import logging

    class ToParent(logging.Handler):
        """Sends each record to the parent's logger of the same name."""

        def emit(self, record: logging.LogRecord) -> None:
            try:
                fields = dict(record.__dict__, msg=record.getMessage(), args=None, exc_info=None)
                if record.exc_info and not record.exc_text:
                    fields["exc_text"] = logging.Formatter().formatException(record.exc_info)
                if not send(fields):
                    fields = {k: _cut(v) if isinstance(v, str) else v for k, v in fields.items()}
                    if not send(fields):
                        raise ValueError(f"a record of {record.name} is too long for the parent")
            except Exception:
                self.handleError(record)

    _without_handlers()
    logging.root.addHandler(ToParent())
    logging.root.setLevel(as_there["root"])
    logging.disable(as_there["disable"])
    for name, level in as_there["named"].items():
        logging.getLogger(name).setLevel(level)


def _cut(text: str) -> str:
    """Returns the text. If it is too long for the parent, returns its beginning, with a note that
    says so.
    """
    if len(text) <= LONG:
        return text
    return f"{text[:LONG]}… ({len(text):,} characters: an OS process sends {LONG:,} of them)"


def _without_handlers() -> None:
    """Removes the handlers that this OS process has inherited by a fork, or that a preloaded module
    has added, since the parent calls its own handlers.
    """
    import logging

    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            for handler in list(logger.handlers):
                logger.removeHandler(handler)
            logger.propagate = True
