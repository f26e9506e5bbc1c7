"""Sends values, functions and exceptions from one OS process to another, by pickle 5. A function
is sent by its name if the other OS process can import it.

A value is pickled by its writer and rebuilt by its reader, so an object that cannot be pickled is
an error at the write.
"""

from __future__ import annotations

import contextlib
import copyreg
import importlib
import io
import os
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

from weft._backends import shared as _shared
from weft._extension import native as _native
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft.errors import BadUse, Cancelled, PeerDied, Poisoned, Retired, WeftError

__all__ = [
    "Call",
    "Failure",
    "RemoteTraceback",
    "body_of",
    "dump_call",
    "dump_function",
    "dump_values",
    "dumps_apart",
    "end_of",
    "function_named",
    "load_call",
    "load_values",
    "name_of",
    "of_call",
    "of_numbers",
    "raised_at",
    "why_not",
]

_SHARED = "shared array "
# Objects of these classes are sent by a name, under which the other OS process finds them.
_GOES: Any = (_native.Reader, _native.Writer, _native.Barrier)

Name = tuple[str, str]  # module and qualified name
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


class _Aside:
    """A pickler that sends certain objects beside the pickle, mainly ends of channels. `_take`
    returns the name under which the other OS process finds an end.
    """

    # If this is None, the ends go within the value, so that the value moves them (WIRE.md 7.4).
    _take: Callable[[Any], str] | None
    shared: list[Any] | None  # collects the shared arrays; None: the arrays go with the pickle

    def persistent_id(self, obj: Any) -> str | None:
        if self.shared is not None and isinstance(obj, _native.Shared):
            self.shared.append(obj)
            return f"{_SHARED}{len(self.shared) - 1}"
        if self._take is not None and isinstance(obj, _GOES):
            return self._take(obj)
        if isinstance(obj, _native.Channel):
            raise BadUse(
                f"{obj!r} itself cannot go to another OS process: give it an end, reader() or writer()"
            )
        if isinstance(obj, _native.Process):
            raise BadUse(
                f"{obj!r} itself cannot go to another OS process: to tell of its end there, write to a channel after `p.wait()`"
            )
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Pickles arrays of a component that are parts of a value."""
        if type(obj) is memoryview and (numbers := of_numbers(obj)) is not None:
            return numbers.__reduce_ex__(5)
        above = getattr(super(), "reducer_override", None)
        return NotImplemented if above is None else above(obj)


class _Ends(_Aside, pickle.Pickler):
    pass


_pickler: Any = _Ends


def send_main_by_value() -> None:
    """Makes functions and classes of the main module go by value from now on, if cloudpickle is
    installed: no other OS process can import the main module.
    """
    global _pickler, _dumps_plainly
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return

    class EndsByValue(_Aside, cloudpickle.Pickler):  # type: ignore[misc, name-defined, unused-ignore]
        pass

    _pickler, _dumps_plainly = EndsByValue, cloudpickle.dumps
    _native._set_pickling(_dumps, cloudpickle.dumps, pickle.loads)


class _Found(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[str], Any]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, pid: str) -> Any:
        return self._find(pid)


def _no_matter(end: Any) -> str:
    return ""


def _pickled(
    what: str, value: Any, take: Callable[[Any], str] | None, shared: list[Any] | None = None
) -> bytes:
    file = io.BytesIO()
    try:
        pickler = _pickler(file, protocol=5)
        pickler._take, pickler.shared = take, shared
        pickler.dump(value)
    except (Exception, GeneratorExit) as error:
        # Any other exception, such as Ctrl-C, is meant for the writer, and is raised unchanged.
        raise _unpicklable(what, value, error)  # noqa: B904  # the exception has its cause
    return file.getvalue()


def _unpicklable(what: str, value: Any, error: BaseException) -> BaseException:
    """Returns the exception to raise after pickling the value has raised `error`."""
    kind = type(error)
    if issubclass(kind, MemoryError):
        return error
    if issubclass(kind, BadUse):
        wrong = BadUse(f"{what}: {_foreign_exceptions.message_of(error)}")
        wrong.__suppress_context__ = True
        return wrong
    is_ordinary = issubclass(kind, Exception) and not issubclass(kind, WeftError)
    why = (
        _foreign_exceptions.message_of(error) if is_ordinary else ""
    ) or _foreign_exceptions.text_of(error)
    from weft._hosts.pickling_advice import remedy

    kept = _foreign_exceptions.kind_of(value)
    instead = remedy(why, kept)
    wrong = BadUse(
        f"{what}: a value of type {kept} cannot go to another OS process, because it cannot be pickled ({why})"
        + (f": {instead}" if instead else "")
    )
    _foreign_exceptions.cause_set(wrong, error)
    return wrong


def _dumps(value: Any, channel: Any) -> bytes:
    """Pickles a value that plain pickle has refused. If this pickler refuses the value too, the
    error names the value and the channel for which it was meant.
    """
    return _pickled(f"write on channel {channel.name!r}", value, None)


def _end_found(number: int) -> Any:
    """Returns an end of a channel. pickle calls this in the OS process to which the end was
    sent.
    """
    return _native._end_found(number)


def _shared_found(*parts: Any) -> Any:
    """Returns a shared array. pickle calls this in the OS process to which the array was sent."""
    return _native._shared_found(*parts)


class _Numbers:
    """An array that is sent from a native channel (rule 16.7): its memory, and the type of its
    numbers.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _numbers, (pickle.PickleBuffer(self._view), self._view.format, self._view.shape)


def of_numbers(view: memoryview) -> Any:
    """Returns an object that is pickled as this memoryview. Returns None if the memoryview does not
    contain contiguous numbers.
    """
    return _Numbers(view) if view.c_contiguous and len(view.format) == 1 else None


def _numbers(memory: Any, format: Any, shape: Any) -> memoryview:
    """Returns an array that _Numbers has pickled, in memory of the reader's own. The result is
    writable if the array was.
    """
    flat = memoryview(memory).cast("B").cast(format)
    return flat if len(shape) == 1 or 0 in shape else flat.cast("B").cast(format, shape)


_native._set_pickling(_dumps, pickle.dumps, pickle.loads)
_native._set_numbers(_Numbers)
_native._set_shared_found(_shared_found)
_native._set_end_found(_end_found)
for _end in _GOES:
    copyreg.pickle(_end, _native._reduce_end)


def why_not(what: str, value: Any, take: Callable[[Any], str] = _no_matter) -> BaseException | None:
    """Returns why a value cannot be sent to another OS process, or None if it can be sent."""
    try:
        _pickled(what, value, take, [])
    except BaseException as error:
        if _foreign_exceptions.is_ctrl_c(error):
            raise
        return error if type(error) is BadUse else _unpicklable(what, value, error)
    return None


_dumps_plainly: Callable[..., bytes] = pickle.dumps


def dumps_apart(what: str, value: Any, buffers: list[pickle.PickleBuffer]) -> bytes:
    """Pickles a value that is a part of a message, and returns the pickle. The ends in the value go
    with the message. The value's buffers are appended to `buffers`.

    Raises:
        BadUse, MemoryError: the value cannot be pickled.
    """
    try:
        try:
            return _dumps_plainly(value, 5, buffer_callback=buffers.append)
        except Exception:
            # Weft's own pickler can pickle more values, and its error says what is wrong
            buffers.clear()
            return _pickled(what, value, None)
    except BaseException as error:
        if type(error) is BadUse or _foreign_exceptions.is_ctrl_c(error):
            raise
        raise _unpicklable(what, value, error)  # noqa: B904  # the exception has its cause


# --- functions ------------------------------------------------------------------------------------


def name_of(function: Any) -> Name | None:
    """Returns the name under which another OS process finds the function that `@process` has
    decorated, or None if it has no global name.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not module or "<" in name or (module == "__main__" and main_is_typed()):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is function or body_of(found) is function else None


def _told_name(function: Any) -> Name | None:
    """Returns the function's name. Warns of variables of the main module that the function will
    lack."""
    name = name_of(function)
    if name is not None and name[0] == "__main__":
        from weft._hosts import main_globals  # most functions are of another module

        main_globals.warn_of(body_of(function))
    return name


def main_is_typed() -> bool:
    """Returns whether the main module cannot be imported: an interactive interpreter, a notebook,
    `python -c`, the standard input.
    """
    from pathlib import Path

    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None) or ""
    # the children of a frozen program run the same executable, so they have the main module
    if getattr(sys, "frozen", False):
        return False
    return getattr(main, "__spec__", None) is None and not Path(file).is_file()


def body_of(found: Any) -> Any:
    """Returns the function that `@process` of any backend has decorated."""
    if isinstance(found, _native.ProcessFunction):
        found = getattr(found, "__wrapped__", found)
    return getattr(found, "_weft_body", found)


def _found(name: Name) -> Any:
    token = _shared.imported_for_call.set(name[0])
    try:
        found: Any = importlib.import_module(name[0])
    finally:
        _shared.imported_for_call.reset(token)
    for part in name[1].split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            if name[0] not in ("__main__", "__mp_main__"):
                raise
            raise AttributeError(
                f"the main module has no {name[1]!r} when an OS process imports it: define it at its top level, "
                'not below `if __name__ == "__main__"`, nor below what starts OS processes'
            ) from error
    return body_of(found)


def _by_value(function: Any) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        typed = getattr(function, "__module__", "") == "__main__" and main_is_typed()
        why = (
            "was defined in an interactive interpreter, by -c or on the standard input"
            if typed
            else "is not a global name of a module"
        )
        raise BadUse(
            f"{_foreign_exceptions.name_of(function)} {why}, so another OS process cannot import it: "
            f"move it to {'a file' if typed else 'the top of its module'}, or install cloudpickle, which sends it by value "
            "(pip install 'weft-csp[processes]')"
        ) from None
    return bytes(cloudpickle.dumps(function))


def dump_function(function: Any) -> bytes:
    """Pickles a function for load_function() in another OS process: by its name, or by value.

    Raises:
        BadUse: the function can be neither imported nor sent.
    """
    if isinstance(function, (types.FunctionType, types.BuiltinFunctionType)):
        name = _told_name(function)
        return pickle.dumps(name) if name is not None else _by_value(function)
    try:
        return pickle.dumps(function, 5)
    except Exception as error:
        raise BadUse(f"{function!r} cannot go to another OS process ({error})") from error


def load_function(packed: bytes) -> Any:
    function = pickle.loads(packed)
    return _found(function) if isinstance(function, tuple) else function


# A pickle, or a pickle with the list of the shared arrays among the arguments.
Packed = bytes | tuple[bytes, list[Any]]


def dump_call(
    function: Any, args: tuple[Any, ...], keywords: dict[str, Any], take: Callable[[Any], str]
) -> Packed:
    """Pickles the call of a process function for load_call() in another OS process. `take` gives an
    end to that OS process and returns its name there.

    Raises:
        BadUse: something in the call cannot be pickled, or the function can be neither imported nor
            sent.
    """
    name = _told_name(function)
    what = name if name is not None else _by_value(function)
    shared: list[Any] = []
    called = f"process {_foreign_exceptions.name_of(function)}"
    try:
        packed = _pickled(called, (what, args, keywords), take, shared)
    except BadUse:
        for parameter, value in _arguments(function, args, keywords).items():
            wrong = why_not(f"{called}: argument {parameter}", value, _no_matter)
            if wrong is not None:
                raise wrong from wrong.__cause__
        raise
    return (packed, shared) if shared else packed


def _arguments(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments by the names of their parameters; if the names are not known, by their
    positions.
    """
    import inspect

    with contextlib.suppress(TypeError, ValueError):
        return inspect.signature(function).bind(*args, **keywords).arguments
    return {**{str(i): value for i, value in enumerate(args)}, **keywords}


def load_call(packed: Packed, find: Callable[[str], Any]) -> Call:
    shared: list[Any] = []
    if isinstance(packed, tuple):
        packed, shared = packed

    def found(name: str) -> Any:
        return shared[int(name[len(_SHARED) :])] if name.startswith(_SHARED) else find(name)

    what, args, keywords = _Found(io.BytesIO(packed), found).load()
    function = pickle.loads(what) if isinstance(what, bytes) else _found(what)
    return function, args, keywords


def dump_values(what: str, value: Any, take: Callable[[Any], str]) -> bytes:
    """Pickles values of a call for load_values() in another OS process. `take` is as for
    dump_call().

    Raises:
        BadUse: something in the values cannot be pickled.
    """
    return _pickled(what, value, take)


def load_values(packed: bytes, find: Callable[[str], Any]) -> Any:
    return _Found(io.BytesIO(packed), find).load()


def function_named(module: str, name: str) -> Any:
    """Returns the function of this name without its `@process`. Imports the module."""
    return _found((module, name))


# --- failures -------------------------------------------------------------------------------------


class RemoteTraceback(Exception):
    """The traceback of an exception that was raised in another OS process. In this OS process it is
    the cause of that exception.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"in another OS process:\n{self.text}"


def _stayed(end: str) -> None:
    """Takes the place of an end in an exception that arrives in another OS process, since the end
    stays with the process that holds it.
    """


# The exceptions that announce an end. If one cannot be pickled, its text is sent.
_ENDS = (Retired, Poisoned, PeerDied, Cancelled)


class Failure:
    """An exception on its way from one OS process to another, without the ends of channels in it."""

    def __init__(self, error: BaseException) -> None:
        kind = type(error)
        self.text = _foreign_exceptions.traceback_of(error)
        self.brief = _foreign_exceptions.text_of(error)
        self.end = next((end.__name__ for end in _ENDS if issubclass(kind, end)), "")
        self.strength = _strength_of(error) if self.end else 1
        self.met = _is_met(error)  # rule 3.5
        self.at = _place(error) if self.end else ""
        self.packed: bytes | None = None
        if kind is not Retired and kind is not Poisoned:
            try:
                packed = _pickled("an exception", error, _no_matter)
                _Found(io.BytesIO(packed), _stayed).load()
                self.packed = packed
            except BaseException:  # the user's exception cannot be pickled, so its text is sent
                self.packed = None

    def exception(self) -> BaseException:
        """Returns the exception, for the OS process that has received it to raise."""
        error: Any = None
        why = "pickled"
        if self.packed is not None:
            try:
                error = _Found(io.BytesIO(self.packed), _stayed).load()
            except BaseException:
                why = "rebuilt here"
            if not self._may_be(type(error)):
                error, why = None, "rebuilt here"
        if error is None and self.end:
            error = end_of(self.end, self.message, self.strength, self.met)
        if error is None:
            error = RuntimeError(f"{self.brief} (an exception that cannot be {why})")
        return raised_at(error, self.at, self.text)

    def _may_be(self, kind: type) -> bool:
        """Returns whether the exception may be rebuilt as an instance of this class. A class whose
        exceptions end a process quietly is allowed only if the exception ended the other process
        quietly.
        """
        return issubclass(kind, BaseException) and (
            self.end != "" or not issubclass(kind, (Cancelled, Retired, Poisoned))
        )

    @property
    def message(self) -> str:
        return self.brief.partition(": ")[2]


def end_of(kind: str, message: str, strength: int, met: bool) -> BaseException:
    """Returns an exception of _ENDS, given by the name of its class, to be raised in this OS
    process.
    """
    if kind == "Cancelled":
        return Cancelled()
    end = next(end for end in (Retired, Poisoned, PeerDied) if end.__name__ == kind)
    return end(message, None, None, None, strength, met)


def raised_at(error: BaseException, at: str, text: str) -> BaseException:
    """Records in the exception that it was raised at `at` in another OS process, with the traceback
    `text`. Returns the exception.
    """
    if at and issubclass(type(error), _ENDS):
        with contextlib.suppress(BaseException):  # the user's class can raise any exception
            error.__dict__["_at"] = at
    _foreign_exceptions.cause_set(error, RemoteTraceback(text))
    return error


def of_call(came_to: BaseException, asked: Cancelled | None) -> BaseException:
    """Returns the exception that a call raises when the other OS process reports the exception
    `came_to`. `asked` is the request to end that the call has passed on. If that request ended the
    process, the result is `asked`.
    """
    if asked is None or not issubclass(type(came_to), Cancelled):
        return came_to
    with contextlib.suppress(BaseException):
        asked._at = came_to._at  # type: ignore[attr-defined]
    return asked


def _strength_of(error: BaseException) -> int:
    with contextlib.suppress(BaseException):
        return min(255, max(1, int(error.strength)))  # type: ignore[attr-defined]
    return 1


def _is_met(error: BaseException) -> bool:
    with contextlib.suppress(BaseException):
        return getattr(error, "met", False) is True
    return False


def _place(error: BaseException) -> str:
    """Returns FILE:LINE where the exception was raised, or "" if that is not known."""
    from weft._watching import quiet_ends as _quiet_ends  # imported late: it is seldom needed

    with contextlib.suppress(BaseException):
        if at := getattr(error, "_at", None):
            return str(at)
        file, line = _quiet_ends.place_of(error)
        return f"{file.rpartition(os.sep)[2]}:{line}" if line else ""
    return ""
