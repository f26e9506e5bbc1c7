"""The plug-and-play processes as coroutines: see docs/toolkit.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.plugnplay._make import fill

if TYPE_CHECKING:
    from weft.plugnplay._source import *  # noqa: F403

fill("coroutines", globals())
