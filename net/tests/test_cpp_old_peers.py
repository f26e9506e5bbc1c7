"""A program in C++ asks a program of another version of Weft for an end (WIRE-NETWORKS.md 17.6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_old_peers import FRAMES, offered

from weft import net


def test_another_version(
    server: Any, network: net.Network, keys: Path, cpp: Callable[..., Any]
) -> None:
    """Wire 2.3, 17.6: the program in C++ gets BadUse with both versions, as one in Python does."""
    with offered(network, keys, "lab/numbers", FRAMES["no common version"]):
        p = cpp("tries", server.url, keys, "lab/numbers", "reader", "10")
        how, why = p.next_report()
    assert how == "BadUse"
    assert "old has another version of Weft (no common version: this space speaks 1 to 1" in why
    assert why.endswith("install the same version on both machines")
