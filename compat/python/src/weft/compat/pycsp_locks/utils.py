"""PyCSP-locksharing's helpers for its benchmark programs."""

from weft.compat._arguments import argparser, avg, handle_common_args

__all__ = ["argparser", "avg", "handle_common_args"]
