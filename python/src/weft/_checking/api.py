"""`weft.check`. Called with a function it checks the function; as a decorator it makes a test of
the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from weft._checking.options import options
from weft._checking.report import CheckFailed, Report
from weft._checking.tokens import parse
from weft.errors import BadUse

P = ParamSpec("P")
R = TypeVar("R")


class Checked(Generic[P, R]):
    """A function that is checked when it is called. `__wrapped__` is the function itself.

    Attributes:
        given: the options of `@weft.check(…)`; None if only tokens are replayed.
        tokens: the tokens of `@weft.check.replay(…)`, which are run before the search.
    """

    #: Set by the pytest plugin: options that replace those of the test, or "off" to call the
    #: function once, unchecked.
    override: dict[str, Any] | str | None = None

    __name__: str

    def __init__(
        self, function: Callable[P, R], given: dict[str, Any] | None, tokens: tuple[str, ...]
    ) -> None:
        self.given = given
        self.tokens = tokens
        functools.update_wrapper(self, function)
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **named: P.kwargs) -> None:
        # pytest shows no line of this frame, since the report names the place of the failure
        __tracebackhide__ = True
        over = Checked.override
        if over == "off":
            from weft._checking.functions import run_plainly

            run_plainly(functools.partial(self.__wrapped__, *args, **named))
            return
        report = self.report(*args, **named)
        if report.failed:
            raise CheckFailed(report)

    def report(self, *args: P.args, **named: P.kwargs) -> Report:
        """Checks the function with these arguments."""
        from weft._checking.checker import check_function

        function = functools.partial(self.__wrapped__, *args, **named)
        over = Checked.override
        changed = dict(over) if isinstance(over, dict) else {}
        only = changed.pop("replay", None)
        chosen = options(**{**(self.given or {}), **changed})
        replays = (only,) if only else self.tokens
        search = not only and self.given is not None
        return check_function(function, chosen, replays, search=search)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Makes a checked method of a test class from the function."""
        if instance is None:
            return self
        bound = Checked(functools.partial(self.__wrapped__, instance), self.given, self.tokens)
        return functools.update_wrapper(bound, self.__wrapped__)


class Check:
    """The type of the object `weft.check`."""

    @overload
    def __call__(self, function: Callable[[], Any], /, **given: Any) -> Report: ...
    @overload
    def __call__(
        self, function: None = None, /, **given: Any
    ) -> Callable[[Callable[P, R]], Checked[P, R]]: ...
    def __call__(self, function: Any = None, /, **given: Any) -> Any:
        """Runs `function` in one order after the other, and returns a :class:`Report` of the
        failures.

        Without a function it is a decorator: a function under `@weft.check(seconds=2)` is checked
        when it is called, and the call raises :class:`CheckFailed` if an order fails.

        Args:
            function: a function that builds and runs a network, a process function without
                arguments, or an `async def`. It may be called some thousand times.
            seconds: how long to search; 10 by default.
            schedules: how many schedules to run at most.
            search: "auto", "all", "walk", "pct" or "few".
            time: "quiet": a time comes only when no process can run; "any": it may come earlier.
            faults: the faults that may happen to processes on hosts, such as "kill:1,delay" (also
                "partition", "slow").
            same: results, and how each process ends, must be the same in all schedules.
            strict: findings that are otherwise only reported count as a failure.
            grain: "operation", or "park": a process is stopped only where it waits.
            all: it is a failure if not every schedule was run.
            seed: the seed of all random choices.
            keep_going: whether to search for other failures after the first.
            jobs: how many OS processes search.
            stub: names of functions, `module.function`, that are not called.
            replay: a token; only its schedule is run.
        Raises:
            BadUse: there is no such option, or the token cannot be read.
            CheckFailed: the decorated function raises it.
        """
        if function is None:
            replay = given.pop("replay", None)
            options(**given)
            tokens = () if replay is None else self._tokens((replay,))
            return lambda f: _checked(f, given, tokens)
        if not callable(function):
            raise BadUse(
                f"weft.check: {function!r} must be callable: give a function that builds and runs a network"
            )
        replay = given.pop("replay", None)
        if isinstance(function, Checked):
            given = {**(function.given or {}), **given}
            function = function.__wrapped__
        chosen = options(**given)
        from weft._checking.checker import check_function

        tokens = () if replay is None else self._tokens((replay,))
        return check_function(function, chosen, tokens, search=replay is None)

    def replay(self, *tokens: str) -> Callable[[Callable[P, R]], Checked[P, R]]:
        """Returns a decorator. Each call of the decorated function runs these schedules first,
        before any search. So a schedule that once failed stays a test after the fault has been
        mended.

        Args:
            tokens: the texts that reports show after `--replay`.
        Raises:
            BadUse: one of the texts is not a token.
        """
        kept = self._tokens(tokens)
        return lambda f: _checked(f, None, kept)

    def _tokens(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        if not tokens:
            raise BadUse(
                "weft.check.replay needs a token: copy the text after --replay from a report"
            )
        for token in tokens:
            if not isinstance(token, str):
                raise BadUse(
                    f"weft.check.replay({token!r}): a token is a text, such as 'w1:clerk@3=van'"
                )
            parse(token)
        return tokens

    def __repr__(self) -> str:
        return "weft.check"


def _checked(f: Any, given: dict[str, Any] | None, tokens: tuple[str, ...]) -> Any:
    if not callable(f):
        raise BadUse(f"weft.check: {f!r} is not a function: write the decorator above a def")
    if isinstance(f, Checked):
        merged = (
            {**(f.given or {}), **(given or {})}
            if f.given is not None or given is not None
            else None
        )
        return Checked(f.__wrapped__, merged, (*tokens, *f.tokens))
    return Checked(f, given, tokens)


check = Check()
