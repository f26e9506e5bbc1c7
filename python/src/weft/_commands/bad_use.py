"""The error for a wrong command line. Its message says what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import click

from weft.cli import EXIT


class BadUse(click.ClickException):
    """The command line asks for something that cannot be done. The message says what to do
    instead.
    """

    exit_code = EXIT["bad use"]


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Returns `; did you mean 'x'?` for the nearest of `known`, or "" if none is near."""
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""
