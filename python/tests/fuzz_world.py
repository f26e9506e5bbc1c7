"""The world of one program of fuzz_api.py: its objects (ends, processes and others), its random
choices, and objects that misbehave where the interpreter calls them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import sys
import threading
import types
from collections.abc import Callable
from typing import Any


class Bell(BaseException):
    """The exception that the handler of the alarm raises."""


# -------------------------------------------------------------------------- objects that misbehave


class Hostile:
    """An object that does what its world's dice decide wherever the interpreter calls it: it
    raises, collects, or calls the API again.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def _act(self) -> None:
        self.world.reenter()

    def __bool__(self) -> bool:
        self._act()
        return self.world.dice.random() < 0.5

    def __index__(self) -> int:
        self._act()
        return self.world.dice.choice([0, 1, -1, 3])

    def __float__(self) -> float:
        self._act()
        return self.world.dice.choice([0.0, 1e-4, -1.0, float("nan")])

    def __eq__(self, other: object) -> bool:
        self._act()
        return self.world.dice.random() < 0.5

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        self._act()
        return "<hostile>"

    def __iter__(self) -> Any:
        self._act()
        return iter([self.world.thing(), self.world.thing()])

    def __call__(self, *_: Any, **__: Any) -> Any:
        self._act()
        return self.world.thing()

    def __await__(self) -> Any:
        self._act()
        yield self.world.dice.choice([None, 1, self])

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._act()


# ----------------------------------------------------------------------------------------- a world


class World:
    """The objects of one program, and the actions on these objects."""

    DEPTH = 3  # how deeply calls may nest

    def __init__(
        self,
        seed: int,
        backend: str,
        only: set[int] | None,
        steps: int,
        actions: list[tuple[str, Callable[[World], Any]]],
    ) -> None:
        self.actions = actions
        self.seed = seed
        self.dice = random.Random(f"{seed} {backend}")
        self.backend = backend
        self.api = api_of(backend)
        self.only = only
        self.steps = steps
        self.count = 0
        self.depth = 0
        self.things: list[Any] = []
        # extended reads to which, as far as is known, other code refers
        self.blocks: list[Any] = []
        self.over = False
        self.trace = os.environ.get("FUZZ_TRACE") == "1"
        self.functions = functions_of(self)

    @property
    def awaits(self) -> bool:
        """Returns whether the calling code awaits operations; otherwise operations block, and are
        given a timer."""
        from weft._native import where

        return where() in (1, 4)

    # --- the arguments of calls

    def keep(self, thing: Any) -> None:
        if thing is None or isinstance(thing, (int, float, str, bool)):
            return
        if isinstance(thing, (list, tuple)):
            for one in thing[:4]:
                self.keep(one)
            return
        self.things.append(thing)
        if len(self.things) > 40:
            self.things.pop(self.dice.randrange(len(self.things)))

    def of(self, *kinds: type) -> Any:
        found = [t for t in self.things if isinstance(t, kinds)]
        return self.dice.choice(found) if found else None

    def thing(self) -> Any:
        d = self.dice
        pick = d.random()
        if pick < 0.5 and self.things:
            return d.choice(self.things)
        if pick < 0.6:
            return Hostile(self)
        return d.choice(
            [
                None,
                0,
                1,
                -1,
                2.5,
                0.0,
                "",
                "steady",
                "threads",
                [],
                (),
                {},
                10**30,
                float("inf"),
                object(),
            ]
        )

    def fitting(self, *kinds: type) -> Any:
        """Returns an object, usually of the wanted types, and sometimes of another type."""
        if self.dice.random() < 0.85:
            found = self.of(*kinds)
            if found is not None:
                return found
        return self.thing()

    def seconds(self) -> Any:
        return self.dice.choice([0, 1e-4, 1e-3, -1, True, Hostile(self)])

    # --- extended reads

    def block(self, extended: Any) -> Any:
        """Remembers an extended read, which is forgotten one call after other code has dropped
        it."""
        self.forget_blocks()
        self.blocks.append(extended)
        return extended

    def forget_blocks(self) -> None:
        ours = 3  # references: those of the list, the variable and the argument
        self.blocks[:] = [e for e in self.blocks if sys.getrefcount(e) > ours]

    def end_blocks(self) -> None:
        """Ends the extended reads that would otherwise be kept forever, for example because the
        value that they took refers to them, and is held by the writer that waits for their end
        (rule 1.6).
        """
        blocks, self.blocks = self.blocks, []
        for e in blocks:
            with contextlib.suppress(Exception):
                e.__exit__(None, None, None)

    # --- actions

    def reenter(self) -> None:
        d = self.dice
        what = d.random()
        if self.over or self.depth >= self.DEPTH or what < 0.4:
            return
        if what < 0.55:
            gc.collect(0)
        elif what < 0.7:
            raise d.choice([ValueError, RuntimeError, KeyError, StopIteration])("hostile")
        else:
            self.call()

    def call(self) -> Any:
        """Makes one call of the API, unless this program is a shrunk one that leaves the call
        out.
        """
        self.count += 1
        self.forget_blocks()
        n = self.count
        if n > self.steps or self.over:
            return None
        name, action = self.dice.choice(self.actions)
        dice = self.dice
        self.dice = random.Random(
            f"{self.seed} {self.backend} {n}"
        )  # leaving out one call must change no other call
        if self.only is not None and n not in self.only:
            self.dice = dice
            return None
        if self.trace:
            where = threading.current_thread().name
            print(f"{n}: {'  ' * self.depth}{name} [{where}]", file=sys.stderr, flush=True)
        self.depth += 1
        try:
            result = action(self)
            self.keep(result)
            return result
        except Bell:
            raise
        except BaseException as e:  # any exception may be raised here
            del e
            return None
        finally:
            self.depth -= 1
            self.dice = dice

    async def await_it(self, thing: Any) -> Any:
        try:
            return await thing
        except (GeneratorExit, asyncio.CancelledError, Bell):
            raise
        except self.api.Cancelled:
            return None
        except Exception as e:
            del e
            return None

    async def body(self, n: int) -> None:
        for _ in range(n):
            result = self.call()
            if (
                self.dice.random() < 0.7
                and hasattr(result, "__await__")
                and not isinstance(result, types.CoroutineType)
            ):
                await self.await_it(bounded(self, result))
            elif self.dice.random() < 0.2:
                await self.await_it(self.api.yield_())

    def calls(self, n: int) -> None:
        for _ in range(n):
            self.call()


def api_of(backend: str) -> Any:
    import weft.coroutines
    import weft.greenlets
    import weft.threads

    return {"threads": weft.threads, "greenlets": weft.greenlets, "plain": weft.threads}.get(
        backend, weft.coroutines
    )


def bounded(w: World, awaitable: Any) -> Any:
    """Awaits only for a moment: after that the driver withdraws an operation that has found no
    partner."""

    @types.coroutine
    def drive() -> Any:
        steps = awaitable.__await__()
        value = None
        rounds = w.dice.choice([1, 3, 8])
        for _ in range(rounds):
            try:
                waited = steps.send(value) if hasattr(steps, "send") else next(steps)
            except StopIteration as e:
                return e.value
            if waited is not None:  # a future, which may take long
                with contextlib.suppress(Exception):
                    steps.close()
                waited.cancel() if hasattr(waited, "cancel") else None
                return None
            if w.dice.random() < 0.5:
                how = w.dice.random()
                if how < 0.4 and hasattr(steps, "close"):
                    steps.close()
                elif how < 0.8 and hasattr(steps, "throw"):
                    with contextlib.suppress(ValueError):
                        steps.throw(ValueError("driver"))
                break
            yield
        return None

    return drive()


# --------------------------------------------------------------------------------------- processes


def functions_of(w: World) -> list[Any]:
    import weft.coroutines
    import weft.greenlets
    import weft.threads

    @weft.coroutines.process
    async def coroutine(*_: Any, **__: Any) -> Any:
        await w.body(w.dice.choice([0, 1, 2, 4]))
        if w.dice.random() < 0.15:
            raise ValueError("process")
        return w.thing()

    @weft.threads.process
    def thread(*_: Any, **__: Any) -> Any:
        w.calls(w.dice.choice([0, 1, 2]))
        return w.thing()

    @weft.greenlets.process
    def green(*_: Any, **__: Any) -> Any:
        w.calls(w.dice.choice([0, 1, 2, 4]))
        if w.dice.random() < 0.15:
            raise ValueError("process")
        return None

    return [coroutine, coroutine, green, thread, coroutine.on("threads")]
