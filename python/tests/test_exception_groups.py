"""Rule 7.2 with built-in exception groups, and with the back-port on Python 3.10 (package
exceptiongroup)."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
{before}
from weft.{backend} import *
from weft import errors

{async_}def body(e):
    raise e
f = process(body)
try:
    run(f(ValueError("a")), f(KeyError("b")), f(TypeError("c")))
except BaseException as caught:
    group = caught
# Which of them were cancelled before they began is not said: with one failure there is no group.
def leaves(e):
    return [x for s in e.exceptions for x in leaves(s)] if hasattr(e, "exceptions") else [e]
names = [type(x).__name__ for x in leaves(group)]
print(type(group).__module__, names, isinstance(group, Exception))
print(errors._several([ValueError(), KeyError()]).__class__.__name__, errors._several([KeyboardInterrupt()]).__class__.__name__)
matched, rest = errors._several([ValueError(), KeyError()]).split(ValueError)
print(len(matched.exceptions), len(rest.exceptions))
"""

# Imitates an interpreter without exception groups: the name is not built in, and `sys.version_info`
# is that of 3.10.
WITHOUT = """
import builtins
sys.version_info = (3, 10, 9, "final", 0)
import types
class Base(BaseException):
    # The back-port's class, which the package itself does not make where there is a built-in one.
    def __new__(cls, message, exceptions):
        if cls is Base and all(isinstance(e, Exception) for e in exceptions):
            cls = Several
        self = BaseException.__new__(cls, message, exceptions)
        self.exceptions = tuple(exceptions)
        return self
    def split(self, kind):
        got = [[e for e in self.exceptions if isinstance(e, kind) is want] for want in (True, False)]
        return Base("split", got[0]), Base("split", got[1])
class Several(Base, Exception):
    pass
Base.__name__, Several.__name__, Base.__module__, Several.__module__ = "BaseExceptionGroup", "ExceptionGroup", "exceptiongroup", "exceptiongroup"
stand_in = types.ModuleType("exceptiongroup")
stand_in.BaseExceptionGroup, stand_in.ExceptionGroup = Base, Several
sys.modules["exceptiongroup"] = stand_in
for name in ("BaseExceptionGroup", "ExceptionGroup"):
    vars(builtins).pop(name, None)  # 3.10 has none
"""


@pytest.mark.parametrize("backend", ["coroutines", "threads"])
@pytest.mark.parametrize("built_in", [True, False])
def test_several_failures(backend: str, built_in: bool) -> None:
    """Rule 7.2: several failures are raised as a group, of the built-in class or of the
    back-port's."""
    program = PROGRAM.format(
        backend=backend,
        before="" if built_in else WITHOUT,
        async_="async " if backend == "coroutines" else "",
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first.split(" ", 1)[1].startswith("['ValueError'") and first.endswith("True")
    if "," in first:
        module = "builtins" if built_in and sys.version_info >= (3, 11) else "exceptiongroup"
        assert first.startswith(module)
    assert second == "ExceptionGroup BaseExceptionGroup"
    assert third == "1 1"


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="there it is built in")
def test_the_back_port_itself() -> None:
    from exceptiongroup import BaseExceptionGroup

    from weft import errors

    assert isinstance(errors._several([ValueError()]), BaseExceptionGroup)
