"""Tests that the stubs agree with the modules, by mypy's stubtest over the backends, except for
facts that stubtest cannot know.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="mypy is not installed (./run setup lint)")

MODULES = ("weft.coroutines", "weft.threads", "weft.greenlets")  # the modules that have stubs

# The differences that are intended, and their reasons.
KNOWN = (
    # Names that only the type stubs need.
    r"\.(T|V|R|P|T_co|T_contra|Mode|Overflow|WhenEnded|AnyGuard) is not present at runtime$",
    # Types of the extension are made by __new__, whose parameters inspect cannot see.
    # test_keywords.py calls these types.
    r"\.__init__ is inconsistent, runtime does not have (\*args )?parameter",
    r"is a disjoint base at runtime",
    # The stubs take these arguments by position only, so that their names are free to change.
    r"stub parameter \"(first|function|channel)\" should be positional or keyword",
    # timeout() and similar functions make a limit, whose own parameters are not for programs.
    r"\.Timeout\.__init__ is inconsistent, stub does not have parameter",
    # The class Generic adds __class_getitem__ to the stubs.
    r"\.__class_getitem__ is not present in stub$",
    # Attributes that exist to report a mistake (test_mistakes.py).
    r"\.(Channel\.(read|write|retire)|Reader\.write|Writer\.read) is not present in stub$",
    # Methods of the other style (awaited or blocking): one object serves both styles.
    r"\.(Group|Timeout)\.__a?(enter|exit)__ is not present in stub$",
    r"\.Reader\.__a?(iter|next)__ is not present in stub$",
    # At run time a reader accepts any arguments, in order to refuse them with an error of Weft.
    r"\.Reader\.__call__ is inconsistent, stub does not have \*args parameter",
)


def differences(*modules: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", *modules],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "error:" not in done.stderr, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("weft")]
    assert lines or done.returncode == 0, done.stdout + done.stderr
    return lines


def test_the_stubs_say_what_is_there() -> None:
    found = differences(*MODULES)
    assert found, "what is known to differ has gone from stubtest's words: look again"
    assert [line for line in found if not any(re.search(known, line) for known in KNOWN)] == []
