"""Scenarios: what every runtime must do, written once, run on every backend.

A scenario is an `async` function that stands for the rules it names; it asserts what they say. `load` compiles a
file of scenarios for one backend: for threads and greenlets the `await`s are left out (weft.styles), so that each backend runs
in its own style.

Invariants
- A scenario's run keeps virtual time (rule 8.6). So `await settle()` returns when nobody else can go on: it is how
  a scenario makes sure that somebody waits, and nothing here ever sleeps in real time.
- A scenario does not know its backend, and does not depend on the order in which runnable processes run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from weft import styles

BACKENDS = ("coroutines", "threads", "greenlets")
HERE = Path(__file__).parent
FILES = tuple(sorted(path.stem for path in HERE.glob("rules_*.py")))

F = TypeVar("F", bound=Callable[..., Any])


def scenario(*rules: str) -> Callable[[F], F]:
    """Marks the body of an outermost process (no arguments) as the scenario of these rules."""
    return _mark(rules, outermost=False)


def outermost(*rules: str) -> Callable[[F], F]:
    """Marks a plain function that starts the run itself, because the rules speak of what the run raises."""
    return _mark(rules, outermost=True)


def _mark(rules: tuple[str, ...], outermost: bool) -> Callable[[F], F]:
    def mark(function: F) -> F:
        function.__dict__.update(rules=rules, outermost=outermost)
        return function

    return mark


def load(name: str, backend: str) -> ModuleType:
    """The file `name` of this folder, compiled for a backend."""
    path = HERE / f"{name}.py"
    module = ModuleType(f"{name} on {backend}")
    module.__file__ = str(path)
    exec(styles.compile_for(backend, path.read_bytes(), str(path)), module.__dict__)
    return module


def collect(backend: str) -> dict[str, Callable[[], None]]:
    """All scenarios of a backend by name (`file.function`); calling one runs it."""
    found: dict[str, Callable[[], None]] = {}
    for name in FILES:
        module = load(name, backend)
        for function in list(vars(module).values()):
            if hasattr(function, "rules"):
                found[f"{name}.{function.__name__}"] = _runner(function, backend)
    return found


def _runner(function: Callable[..., Any], backend: str) -> Callable[[], None]:
    import importlib

    weft = importlib.import_module(f"weft.{backend}")

    def run() -> None:
        if function.outermost:  # type: ignore[attr-defined]
            function()
        else:
            weft.run(weft.process(function)(), clock="virtual")

    run.rules = function.rules  # type: ignore[attr-defined]
    return run
