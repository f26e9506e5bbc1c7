"""Scenarios: the required behaviour of every runtime, written once and run on every backend.

A scenario is an `async` function that names rules and asserts what these rules require.
`load` compiles a file of scenarios for one backend. For threads and greenlets it leaves the
`await`s out (weft.styles), so that each backend runs in its own style. On "tasks" the scenario, and
the body of each process in it, is a task of asyncio (task_names.py).

Invariants
- A scenario's run keeps virtual time (rule 8.6). So `await settle()` returns when no other process
can continue; a scenario uses it to make sure that a process waits. No scenario sleeps in real time.
- A scenario does not know its backend, and does not depend on the order in which runnable processes
  run.
- A scenario names the features it needs that some backends lack (`needs`); LACKS lists the features
  that each backend lacks, and why.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from weft import styles

BACKENDS = ("coroutines", "threads", "greenlets", "tasks")
HERE = Path(__file__).parent
PARTS = "conformance.scenarios.parts"
TASKS = "conformance.task_names"
FILES = tuple(sorted(path.stem for path in HERE.glob("rules_*.py")))

F = TypeVar("F", bound=Callable[..., Any])


# The features that scenarios can need and that a backend lacks: for each backend, the feature and
# the reason.
LACKS: dict[str, dict[str, str]] = {
    "tasks": {
        "a deadlock": "Weft declares none where tasks of the loop may wake anybody (rules 10.4, 13.6)",
        "a cancellation at once": "asyncio cancels a task when it next suspends, which an operation that commits at once does not (6.6)",
        "a path": "a task is no process: it has no path, and errors cannot name it (rule 13.7)",
        "a run": "a task belongs to no run: there is none to which it could spawn (rules 7.4, 13.7)",
        "the order of equal deadlines": "their timers are the loop's, which keeps none among equals (rule 13.7)",
        "again": "a task is asked once, as asyncio does it (rule 7.18)",
        "Cancelled.value": "what cancels a task is asyncio's own exception, which carries no value (rule 13.4)",
    },
    "a block": {"a path": "ordinary code has no process object, and its path is `main` (rule 7.5)"},
}


def scenario(*rules: str, needs: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Marks the body of an outermost process (without arguments) as the scenario of these rules."""
    return _mark(rules, needs, outermost=False)


def outermost(*rules: str, needs: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Marks a plain function that starts the run itself, because the rules are about the exceptions
    of the run.
    """
    return _mark(rules, needs, outermost=True)


def _mark(rules: tuple[str, ...], needs: tuple[str, ...], outermost: bool) -> Callable[[F], F]:
    def mark(function: F) -> F:
        function.__dict__.update(rules=rules, needs=needs, outermost=outermost)
        return function

    return mark


def load(name: str, backend: str) -> ModuleType:
    """Compiles the file `name` of this folder for a backend and returns it as a module."""
    path = HERE / f"{name}.py"
    module = ModuleType(f"{name} on {backend}")
    module.__file__ = str(path)
    source = path.read_text(encoding="utf-8")
    if f"from {PARTS} import" in source:  # the parts are compiled for the same backend
        own = f"{PARTS}_on_{backend}"
        if own not in sys.modules:
            sys.modules[own] = load("parts", backend)
        source = source.replace(f"from {PARTS} import", f"from {own} import")
    style = backend
    if backend == "tasks":
        style, source = "coroutines", source.replace("from weft import", f"from {TASKS} import")
    exec(styles.compile_for(style, source, str(path)), module.__dict__)
    return module


def collect(backend: str, block: bool = False) -> dict[str, Callable[[], None]]:
    """Returns all scenarios of a backend by name (`file.function`); calling one runs it. With
    `block` a scenario runs in the block of a Group in ordinary code (rule 7.5) instead of a
    process.
    """
    found: dict[str, Callable[[], None]] = {}
    for name in FILES:
        module = load(name, backend)
        for function in list(vars(module).values()):
            if hasattr(function, "rules"):
                found[f"{name}.{function.__name__}"] = _runner(function, backend, block)
    return found


def _runner(function: Callable[..., Any], backend: str, block: bool = False) -> Callable[[], None]:
    names = importlib.import_module(TASKS if backend == "tasks" else f"weft.{backend}")

    def run() -> None:
        if function.outermost:  # type: ignore[attr-defined]
            function()
        elif backend == "tasks":
            names.run_task(function())
        elif block:
            with names.Group(clock="virtual"):
                function()
        else:
            names.run(
                names.process(function)(), clock="virtual"
            )  # the run raises the exception that leaves the process (7.1)

    run.rules = function.rules  # type: ignore[attr-defined]
    run.needs = function.needs  # type: ignore[attr-defined]
    return run
