"""PyCSP-locksharing's helpers for its benchmark programs."""

from .._arguments import avg, handle_common_args  # noqa: F401
