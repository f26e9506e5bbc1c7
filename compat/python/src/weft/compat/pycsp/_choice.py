"""pycsp's choice over Weft's select.

Invariants
- An Alternation translates its guards once, for all its selects (a timeout starts again with each
  select).
- The guard that a select returns is the object that it was given: a channel end, a SkipGuard or a
  TimeoutGuard.
- Priority follows rule 5.4; all other choices are fair. Fairness depends on the process and the
  guards, not on the place of the select.
- An action that is a string is compiled and executed in the frame of the code that called this
  layer, as in pycsp.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from weft import threads as _weft
from weft.compat import _main
from weft.compat.pycsp._channels import READ, WRITE, ChannelEnd
from weft.compat.pycsp._errors import ChannelRetireException, InfoException
from weft.errors import BadUse, Cancelled

__all__ = [
    "AltSelect",
    "Alternation",
    "Choice",
    "FairSelect",
    "InputGuard",
    "OutputGuard",
    "PriSelect",
    "Skip",
    "SkipGuard",
    "Timeout",
    "TimeoutGuard",
    "choice",
]


class Choice:
    """An action with its arguments; a function that is decorated with @choice makes it."""

    def __init__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs

    def invoke_on_input(self, channel_input: Any) -> None:
        self.fn(*self.args, channel_input=channel_input, **self.kwargs)

    def invoke_on_output(self) -> None:
        self.fn(*self.args, **self.kwargs)


class _ChoiceFunction:
    """The object that @choice makes from a function: a call of the object returns a Choice. The
    object itself is not an action.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Choice:
        return Choice(self._fn, *args, **kwargs)


def choice(func: Callable[..., Any]) -> Callable[..., Choice]:
    """Makes `func` a maker of actions: `func(a, b)` is an action that calls `func(a, b,
    channel_input=value)` for an input and `func(a, b)` otherwise."""
    return _ChoiceFunction(func)


def _checked_action(action: Any) -> Any:
    if action is None or isinstance(action, Choice | str):
        return action
    if isinstance(action, _ChoiceFunction):
        raise InfoException(
            "@choice function is not instantiated. Please use action() and not just action"
        )
    if not callable(action):
        raise InfoException(
            f"the action {action!r} must be callable: use a function, an action of @choice, or None"
        )
    return action


def _execute_string(source: str, channel_input: tuple[Any, ...], outward: int) -> None:
    """Executes `source` in the frame that called this layer, or `outward` frames further out.
    `channel_input` holds the value of an input; it is empty for other guards."""
    package = __name__.rpartition(".")[0]
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(package):
        frame = frame.f_back
    for _ in range(outward):
        frame = frame.f_back or frame
    code = compile(source, f"{frame.f_code.co_filename} line {frame.f_lineno} in string", "exec")
    names = frame.f_locals
    if channel_input:
        names["channel_input"] = channel_input[0]
    exec(code, frame.f_globals, names)


class _Waits:
    """A guard that waits without a channel."""

    def __init__(self, native: Any, action: Any) -> None:
        self._native = native
        self.g = (self, _checked_action(action))


class SkipGuard(_Waits):
    """A guard that is always ready.

    Args:
        action: execute() calls it if this guard is chosen.
    """

    def __init__(self, action: Any = None) -> None:
        super().__init__(_weft.skip(), action)


class TimeoutGuard(_Waits):
    """A guard that is ready when `seconds` have passed since the select began; it may be reused.

    Args:
        seconds: the span.
        action: execute() calls it if this guard is chosen.
    """

    def __init__(self, seconds: float, action: Any = None) -> None:
        self.seconds = seconds
        super().__init__(_weft.after(seconds), action)


Skip = SkipGuard
Timeout = TimeoutGuard


def _checked_end(end: Any, op: int, guard: str, wanted: str) -> Any:
    if getattr(end, "_op", None) != op:
        raise InfoException(f"{guard} of {end!r}: it takes {wanted}")
    return end


class InputGuard:
    """A guard that is ready when the end can be read; the read is part of the choice.

    Args:
        ch_end_read: the end.
        action: execute() and the selects call it with the value, `channel_input`.
    Raises:
        InfoException: `ch_end_read` is not a reading end, or the action cannot be called.
    """

    def __init__(self, ch_end_read: Any, action: Any = None) -> None:
        end = _checked_end(ch_end_read, READ, "InputGuard", "a channel's reader()")
        self.g = (end, _checked_action(action))


class OutputGuard:
    """A guard that is ready when `msg` can be written; the write is part of the choice.

    Args:
        ch_end_write: the end.
        msg: the value.
        action: execute() and the selects call it, without arguments.
    Raises:
        InfoException: `ch_end_write` is not a writing end, or the action cannot be called.
    """

    def __init__(self, ch_end_write: Any, msg: Any, action: Any = None) -> None:
        end = _checked_end(ch_end_write, WRITE, "OutputGuard", "a channel's writer()")
        self.g = (end, msg, _checked_action(action))


def _flat(guards: Any) -> Any:
    """Yields tuples (input, action) and (output, msg, action), converted from pycsp's forms."""
    for g in guards:
        if isinstance(g, tuple):
            if g and isinstance(g[0], tuple):  # ((end, msg), action)
                yield (*g[0], *g[1:])
            else:
                yield g
        elif isinstance(g, dict):
            for of, action in g.items():
                yield (*of, action) if isinstance(of, tuple) else (of, action)
        elif hasattr(g, "g"):
            yield g.g
        else:
            raise InfoException(
                f"{g!r} is not a guard: use {{end: action}}, {{(end, msg): action}}, (end, action) or (end, msg, action)"
            )


class Alternation:
    """A choice between guards.

    Args:
        guards: a list of dictionaries `{input end or guard: action, (output end, msg): action}` and of tuples
            `(input end or guard, action)`, `(output end, msg, action)`.
        ensurePriority: whether the first ready guard is taken; otherwise the choice is fair.
    Raises:
        InfoException: one of them is not a guard, or its action is not a function, string or
        instantiated @choice function.
    """

    def __init__(self, guards: Any, ensurePriority: bool = False) -> None:
        self.guards = [(*g[:-1], _checked_action(g[-1])) for g in _flat(guards)]
        self._mode = "priority" if ensurePriority else "fair"
        self._ends = [g[0] for g in self.guards if isinstance(g[0], ChannelEnd)]
        self._natives = [self._native_of(g) for g in self.guards]
        self._outward = 0

    @staticmethod
    def _native_of(g: tuple[Any, ...]) -> Any:
        at = g[0]
        if len(g) == 3:
            end = _checked_end(at, WRITE, "the output guard", "a channel's writer()")
            return _weft.Output(end.channel._ends[WRITE], g[1])
        if isinstance(at, _Waits):
            return at._native
        end = _checked_end(
            at, READ, "the input guard", "a channel's reader(), or (writer(), msg) for an output"
        )
        return end.channel._ends[READ]

    def _choose(self) -> tuple[int, Any]:
        for end in self._ends:
            if end._closed or (end._op == WRITE and end.channel._draining):
                end._refuse()
        try:
            return _weft.select(*self._natives, mode=self._mode, ended="raise")  # type: ignore[arg-type]
        except ChannelRetireException as error:
            if error.guard is None:
                raise
            self.guards[error.guard][0]._failed(error)
            raise  # the channel has ended
        except BadUse:
            for end in self._ends:  # meanwhile another process might have closed an end
                if end._closed or (end._op == WRITE and end.channel._draining):
                    end._refuse()
            raise
        except Cancelled as error:
            _main.left_by(error)
            raise

    def select(self) -> tuple[Any, Any]:
        """Waits for a guard; returns the guard and, for an input, the value (else None).

        Raises:
            ChannelPoisonException, ChannelRetireException: a guard's channel has ended; Deadlock in the main program;
            BadUse: both ends of one channel, or no guard at all.
        """
        index, value = self._choose()
        return self.guards[index][0], value

    def execute(self) -> tuple[Any, Any]:
        """Does the same as select, and then performs the guard's action: calls a function, with
        `channel_input=value` for an input, or executes a string in the frame of the caller
        (`channel_input` is a variable there).

        Raises:
            the exceptions of select and of the action; SyntaxError: the string is not valid Python.
        """
        index, value = self._choose()
        guard = self.guards[index]
        action = guard[-1]
        if action is not None:
            is_input = len(guard) == 2
            if isinstance(action, Choice):
                if is_input:
                    action.invoke_on_input(value)
                else:
                    action.invoke_on_output()
            elif isinstance(action, str):
                _execute_string(action, (value,) if is_input else (), self._outward)
            elif is_input:
                action(channel_input=value)
            else:
                action()
        return guard[0], value

    def _set_execute_frame(self, steps: int) -> None:
        """Sets the frame in which a string is executed, `steps` frames further out than execute():
        1 (or -1), the default, is the caller of execute().
        """
        self._outward = abs(steps) - 1


def _select(guards: tuple[Any, ...], verb: str, priority: bool) -> tuple[Any, Any]:
    flat: list[Any] = []
    for item in guards:
        flat.extend(item if isinstance(item, list) else [item])
    for item in flat:
        if not hasattr(item, "g"):
            raise InfoException(
                f"Cannot use {item!r} as guard. Only use *Guard types for {verb}: InputGuard, OutputGuard, SkipGuard, "
                "TimeoutGuard"
            )
    return Alternation([item.g for item in flat], ensurePriority=priority).execute()


def PriSelect(*guards: Any) -> tuple[Any, Any]:
    """Chooses the first ready guard, and calls its action. Returns the end or guard and, for an
    input, the value.

    Raises:
        the exceptions of Alternation.execute; InfoException: an argument is not a guard.
    """
    return _select(guards, "PriSelect", True)


def AltSelect(*guards: Any) -> tuple[Any, Any]:
    """Does the same as PriSelect, but takes any ready guard; in this implementation the choice is
    fair."""
    return _select(guards, "AltSelect", False)


def FairSelect(*guards: Any) -> tuple[Any, Any]:
    """Does the same as PriSelect, but fairly: a guard that stays ready is chosen within N
    selects (rule 5.4)."""
    return _select(guards, "FairSelect", False)
