"""pycsp's Configuration: settings of sockets and shared memory, which are stored and returned. Few
of them have an effect.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "PYCSP_HOST",
    "PYCSP_PORT",
    "SOCKETS_BIND_RETRY_DELAY",
    "SOCKETS_BIND_TIMEOUT",
    "SOCKETS_CONNECT_RETRY_DELAY",
    "SOCKETS_CONNECT_TIMEOUT",
    "SOCKETS_STRICT_MODE",
    "Configuration",
]

SOCKETS_CONNECT_TIMEOUT = 0
SOCKETS_CONNECT_RETRY_DELAY = 1
SOCKETS_BIND_TIMEOUT = 2
SOCKETS_BIND_RETRY_DELAY = 3
SOCKETS_STRICT_MODE = 4
PYCSP_PORT = 5
PYCSP_HOST = 6


class Configuration:
    """The one store of settings: all objects of this class share it."""

    _settings: dict[Any, Any] = {  # noqa: RUF012 - one for all, on purpose
        SOCKETS_CONNECT_TIMEOUT: 2,
        SOCKETS_CONNECT_RETRY_DELAY: 0.2,
        SOCKETS_BIND_TIMEOUT: 2,
        SOCKETS_BIND_RETRY_DELAY: 0.2,
        SOCKETS_STRICT_MODE: False,
        PYCSP_PORT: 0,
        PYCSP_HOST: "",
    }
    _one: Configuration | None = None

    def __new__(cls) -> Configuration:
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def get(self, conf_id: Any) -> Any:
        """Returns the value of a setting.

        Raises:
            KeyError: there is no such setting.
        """
        return self._settings[conf_id]

    def set(self, conf_id: Any, value: Any) -> None:
        """Stores the value of a setting."""
        self._settings[conf_id] = value
