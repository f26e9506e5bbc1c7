"""A call from another machine: the messages between the caller, the agent and the agent's OS
processes (WIRE-NETWORKS.md 17.9 to 17.11), also for a series of calls (17.14).

    caller: asked_of(function) ──first message──► agent: fault() ──""──► serve(), in an OS process
            packed(args) ──by `orders`──► the OS process: _unpacked(), then the call runs
            exception_of() ◄──by `result`── _failure_fields(failure), if the call has failed

Invariants
- Only functions that the agent allowed run: the caller's bytes name no function.
- Bytes from a peer that is not trusted are not unpickled. The only objects that they can make are
  plain values, and exceptions of Python's own or of the function's module.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import inspect
import os
import platform
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from weft import _helper_threads
from weft._backends import shared as _shared
from weft._distributed_deadlock import at_work as _at_work
from weft._distributed_deadlock import call_names as _call_names
from weft._extension import native as _native
from weft._hosts import child as _child
from weft._hosts import feeding as _feeding
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import pickling as _pickling
from weft._hosts import sources as _sources
from weft._hosts import user_values as _user_values
from weft._net import foreign_json as _foreign_json
from weft._net import kill_points as _net_steps
from weft._net import parcels as _net_parcels
from weft._net.values import module_of
from weft.errors import BadUse, Cancelled, ChannelEnd, Retired

__all__ = [
    "Asked",
    "asked_of",
    "checked_allow",
    "exception_of",
    "fault",
    "packed",
    "parted_run",
    "serve",
    "serve_on",
    "unfit",
]

TOKEN = 32 + 1 + 10  # how many bytes serve() sends first
LONGEST = 200  # characters of MODULE:FUNCTION
# A number in place of a call's number. It means all calls of the list that have no result yet.
ALL = -1


class Asked(NamedTuple):
    """A function that a caller asks an agent to run."""

    module: str  #: the name by which another machine imports it
    name: str
    digest: str
    here: Any = None  #: the module object in this program
    many: bool = False  #: whether the function is for a series of calls (17.14)
    #: the first digits of the digest of each module that the digest covers
    modules: _sources.Sources = {}  # noqa: RUF012  # nothing changes it
    #: the source, which is sent along if the host accepts it; None for a module of an installed
    #: package
    parcel: _net_parcels.Parcel | None = None

    @property
    def run(self) -> str:
        return f"{self.module}:{self.name}"

    def request(self) -> dict[str, Any]:
        more = {"many": True} if self.many else {}
        covered = {"modules": self.modules} if self.modules else {}
        source: dict[str, Any] = {}
        if self.parcel is not None:
            source["source"] = self.parcel.digest
            if self.parcel.folder:
                source["folder"] = True
        return {"run": self.run, "digest": self.digest, **versions(), **covered, **source, **more}

    def runs_on(self, allow: list[str]) -> bool:
        """Returns whether a host with these words after --allow runs the function."""
        if self.parcel is not None and _net_parcels.SOURCE in allow:
            return True
        return self.run in allow and (self.parcel is None or not self.parcel.folder)


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "weft": _native.version}


#: what each agent runs, whatever it allows (WIRE-NETWORKS.md 17.9)
OBSERVER = "weft._commands.host_observed:tells_observer"


def parted_run(run: Any) -> tuple[str, str]:
    """Splits "module:function" into module and function.

    Raises:
        BadUse: `run` is not of that form.
    """
    module, colon, name = run.partition(":") if isinstance(run, str) else ("", "", "")
    parts = [*module.split("."), *name.split(".")]
    if not colon or len(run) > LONGEST or not all(p.isidentifier() for p in parts):
        raise BadUse(f"what a host runs must be MODULE:FUNCTION, as 'fractal:compute', not {run!r}")
    return module, name


def checked_allow(run: Any) -> None:
    """Checks a word of --allow.

    Raises:
        BadUse: `run` is neither "source" nor "module:function".
    """
    if run != _net_parcels.SOURCE:
        parted_run(run)


def asked_of(function: Any, working_dir: Any = None) -> Asked:
    """Returns the description of a function by which a caller asks an agent for it. If
    `working_dir` is a folder, all its files go along; if it is None, the modules go along.

    Raises:
        BadUse: another machine cannot find the function by a name, or cannot compare its source; or
            the working folder cannot go along.
        OSError: the source cannot be read any more.
    """
    called = _foreign_exceptions.name_of(function)
    found = _pickling.name_of(function)
    main = sys.modules["__main__"]
    if found is None or (found[0] == "__main__" and getattr(main, "__file__", None) is None):
        raise BadUse(
            f"{called} cannot run on another machine, which finds a function by its name: put it at the top of a module that is there too"
        )
    module, name = found
    file = getattr(sys.modules[module], "__file__", None)
    module = module_of(module)
    if file is None or not file.endswith(".py"):
        raise BadUse(
            f"{called} cannot run on another machine: module {module} has no source in Python whose digest could be compared"
        )
    try:
        files = _sources.files(module, Path(file))
    except NotADirectoryError:
        raise BadUse(
            f"{called} cannot run on another machine: module {module} is in an archive, and its source cannot be compared: unpack it"
        ) from None
    sources = {name: its.digest for name, its in files.items()}
    if working_dir is None:
        parcel = _net_parcels.of_modules(module, Path(file), files)
    else:
        parcel = _net_parcels.of_folder(working_dir, module, Path(file))
    asked = Asked(
        module,
        name,
        _sources.digest(sources),
        sys.modules[found[0]],
        modules=_sources.told(sources),
        parcel=parcel,
    )
    parted_run(asked.run)
    return asked


# --- the agent ------------------------------------------------------------------------------------


def source_of(module: str) -> Path | None:
    """Returns the path of the module's source, or None. This function imports nothing."""
    path: Any = None
    spec = None
    importlib.invalidate_caches()
    for i, _ in enumerate(parts := module.split(".")):
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    origin = spec.origin if spec is not None else None
    return Path(origin) if origin and origin.endswith(".py") else None


def unfit(allow: list[str]) -> list[str]:
    """Imports all functions of `allow`, in an OS process of the agent. Returns the functions that
    cannot be run, each with the reason.
    """
    wrong = []
    for run in allow:
        module, name = parted_run(run)
        why = ""
        try:
            # Stdout is reserved for the agent's own output.
            with contextlib.redirect_stdout(sys.stderr):
                if source_of(module) is None:
                    why = f"there is no module {module!r}, or none in Python, in {Path.cwd()}"
                elif not callable(_pickling.function_named(module, name)):
                    why = "it is not a function"
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
        if why:
            wrong.append(f"{run} ({why})")
    return wrong


def sources_here(module: str) -> _sources.Sources | None:
    """Returns the module and what it imports from its folder, or None if there is no source."""
    source = source_of(module)
    try:
        return None if source is None else _sources.found(module, source)
    except OSError:  # the source is in an archive, or was just deleted
        return None


def forget_compiled(module: str) -> None:
    """Removes the compiled files of the module and of what it imports from its folder."""
    found = [source_of(name) for name in sources_here(module) or ()]
    _sources.forget_compiled(source for source in found if source is not None)


def fault(host: str, run: str, answer: dict[str, Any]) -> str:
    """Returns how the module that the caller asks for, or a module that it imports, differs from
    the one here; "" if they are the same.
    """
    module, _ = parted_run(run)
    sources = sources_here(module)
    if sources is None:
        return f"there is no module {module!r} on {host}, or none in Python: start its agent where it can be imported"
    here, callers = _sources.digest(sources), str(answer.get("digest"))
    if here == callers:
        return ""
    differs = _sources.difference(sources, answer.get("modules"))
    name, mine, its = differs or (module, here, callers)
    digits = _sources.SHOWN
    shown = _foreign_json.shown(name, LONGEST)
    by = "" if name == module else f", which {module!r} imports,"
    what = f"module {shown!r}{by} is not the same on {host}"
    at = source_of(name) if mine else None
    there = f"SHA-256 {mine[:digits]}…{f' in {at}' if at else ''} there" if mine else "none there"
    callers_one = f"{_foreign_json.shown(its, digits)}… here" if its else "none here"
    own = versions()
    theirs = {v: str(answer.get(v))[:20] for v in own}
    return (
        f"{what}: {there}, {callers_one} "
        f"(Python {own['python']} and Weft {own['weft']} there, {theirs['python']} and {theirs['weft']} here). "
        "Bring the same source to both machines"
    )


# --- arguments ------------------------------------------------------------------------------------


def packed(called: str, args: Any, keywords: Any, take: Callable[[Any], str], trusted: bool) -> Any:
    """Returns the arguments for `_unpacked` on the other machine. `take` gives an end to the other
    machine, and returns the end's name there.

    Raises:
        BadUse: something in the arguments cannot be sent.
    """
    if trusted:
        return _pickling.dump_values(f"process {called}", (args, keywords), take)
    ends: list[Any] = []

    def without(value: Any, path: list[Any]) -> Any:
        if isinstance(value, (_native.Reader, _native.Writer)):
            ends.append([path, take(value)])
            return None
        if isinstance(value, _native.Channel):
            raise BadUse(
                f"process {called}: {value!r} itself cannot go to another machine: give it an end, reader() or writer()"
            )
        if type(value) in (list, tuple) and len(path) < 14:
            return type(value)(without(v, [*path, i]) for i, v in enumerate(value))
        if type(value) is dict and len(path) < 14:
            return {k: without(v, [*path, k]) for k, v in value.items()}
        return value

    return [without(list(args), [0]), without(dict(keywords), [1]), ends]


def _unpacked(
    fields: Any, take: Callable[[str], Any], trusted: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a call.

    Raises:
        BadUse: the message does not hold the arguments of a call.
    """
    if trusted:
        args, keywords = _pickling.load_values(fields, take)
        return args, keywords
    try:
        args, keywords, ends = fields
        for path, name in ends:
            at: Any = [args, keywords]
            for step in (*path[:-1], path[-1]):  # before the end is taken, which can wait
                at = at[step]
            args, keywords = _placed([args, keywords], path, take(str(name)))
        if isinstance(args, list) and isinstance(keywords, dict):
            return args, keywords
    except (TypeError, ValueError, LookupError):
        pass
    raise BadUse("the arguments of a call are malformed: has the caller another version of Weft?")


def _placed(value: Any, path: list[Any], end: Any) -> Any:
    """Returns the value with an end at its place."""
    if not path:
        return end
    if not isinstance(value, (list, tuple, dict)):  # incoming values nest at most 64 deep
        raise TypeError(f"an end in {type(value).__name__}")
    step, *rest = path
    new = _placed(value[step], rest, end)
    if isinstance(value, tuple):
        return (*value[:step], new, *value[step + 1 :])
    value[step] = new
    return value


# --- failures -------------------------------------------------------------------------------------


def _plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, (list, tuple)):
        return depth < 8 and all(_plain(v, depth + 1) for v in value)
    return value is None or type(value) in (bool, int, float, str, bytes)


def _failure_fields(failure: _pickling.Failure) -> dict[str, Any]:
    """Returns the failure as plain values."""
    error = failure.exception()
    kind = type(error)
    args = _foreign_exceptions.args_of(error)
    return {
        "module": str(kind.__module__),
        "type": str(kind.__qualname__),
        "args": list(args) if _plain(args) else None,
        "text": failure.text,
        "brief": failure.brief,
        "end": failure.end,
        "strength": failure.strength,
        "met": failure.met,
        "at": failure.at,
    }


_ENDS = ("Retired", "Poisoned", "PeerDied", "Cancelled")


def exception_of(failure: Any, asked: Asked) -> BaseException:
    """Returns the exception that the caller must raise.

    Raises:
        TypeError: `failure` is not a failure.
    """
    if isinstance(failure, _pickling.Failure):  # both peers trust each other
        return failure.exception()
    if not isinstance(failure, dict):
        raise TypeError(f"a malformed failure has come: {failure!r:.100}")
    brief, kind = str(failure.get("brief")), failure.get("type")
    args, strength = failure.get("args"), failure.get("strength")
    error: BaseException | None = None
    met = failure.get("met", True) is True  # an older program does not send this field
    if kind == "Cancelled":
        error = Cancelled()
    elif kind == "BadUse" and failure.get("module") == "weft":
        error = BadUse(*args) if isinstance(args, list) and args else BadUse(brief)
    elif isinstance(kind, str) and isinstance(args, list):
        where = failure.get("module")
        if where in ("builtins", asked.module):
            found = getattr(builtins if where == "builtins" else asked.here, kind, None)
            if isinstance(found, type) and issubclass(found, Exception):
                # code of the class can raise any exception
                with contextlib.suppress(BaseException):
                    error = found(*args)
    if isinstance(error, ChannelEnd):
        error.met = met
    if error is None and (end := failure.get("end")) in _ENDS:
        strength = strength if isinstance(strength, int) and 0 < strength < 256 else 1
        error = _pickling.end_of(end, brief.partition(": ")[2] or brief, strength, met)
    if error is None or not issubclass(type(error), (Exception, Cancelled)):
        error = RuntimeError(brief)
    return _pickling.raised_at(error, str(failure.get("at", "")), str(failure.get("text")))


# --- in an OS process of the agent ----------------------------------------------------------------


def serve(path: str, token: str, run: str, trusted: bool, many: bool) -> None:
    """Runs a call from another machine. An agent calls this in one of its OS processes.

    Args:
        path: a socket of the agent, which passes bytes on between this OS process and the caller.
        token: identifies, for the agent, the call for which this OS process has connected.
        run: the function, as "module:function".
        trusted: whether both peers trust each other.
        many: whether the session is for a series of calls (17.14).
    """
    own = socket.socket(socket.AF_UNIX)
    own.connect(path)
    own.sendall(f"{token} {os.getpid():>10}".encode())
    _net_steps.at("call.here")
    serve_on(own.detach(), run, trusted, many, token)


def serve_on(
    descriptor: int, run: str, trusted: bool, many: bool = False, call: str | None = None
) -> None:
    """Does what serve() does, over a stream that leads to the caller. `call` is the name with which
    the OS process can be asked where the call is.
    """
    _native._outside(True)
    link = _native._Link(
        descriptor, f"python {os.getpid()}", False, False, 0, 0, 0, 2 if trusted else 1
    )
    # In the agent's run only this thread is a process. The call has its own run, which the caller
    # can cancel.
    target = _serve_many if many else _serve
    args = link, run, trusted, call or run
    thread = threading.Thread(target=target, args=args, name="weft: a call")
    try:
        thread.start()
        thread.join()
    finally:
        link.close("it has ended")
        _native._outside(False)


def _serve(link: Any, run: str, trusted: bool, call: str) -> None:
    orders, result = link.take("orders"), link.take("result")
    if orders is None or result is None:  # the caller left before its call could begin
        return
    _net_steps.at("call.ends")
    _import_for(run)
    with contextlib.suppress(ChannelEnd):  # the caller leaves, or no longer waits
        request, wrong = _read_orders(orders)
        _net_steps.at("call.runs")

        def load() -> _pickling.Call:
            if wrong is not None:
                raise wrong
            args, keywords = _unpacked(request, lambda name: _child.taken(link, name), trusted)
            return _pickling.function_named(*parted_run(run)), tuple(args), keywords

        _at_work.at_work(1)
        try:
            value, failure = _child.run_call(load, orders, call)
        finally:
            _at_work.at_work(-1)
        _net_steps.at("call.result")
        _child.answer(lambda v, f: _write(result, v, f, trusted), value, failure)
        _net_steps.at("call.told")
        result.retire()


def _import_for(run: str) -> None:
    """Imports the function's module before the arguments arrive, since the module decides which
    classes are accepted.
    """
    with contextlib.suppress(BaseException):  # the call itself will raise the exception again
        _pickling.function_named(*parted_run(run))


def _read_orders(orders: Any) -> tuple[Any, BaseException | None]:
    """Returns the caller's next orders, or the reason why they are refused.

    Raises:
        ChannelEnd: there are no more orders.
        Cancelled: the process that reads has been asked to end.
    """
    try:
        return orders.read(), None
    except (ChannelEnd, Cancelled):
        raise
    except BaseException as error:  # the exception was raised by a class that this program accepts
        return None, _user_values.not_rebuilt("arguments", error)


def _write(result: Any, value: Any, failure: _pickling.Failure | None, trusted: bool) -> None:
    result.write([result_sent(value, trusted), _sent(failure, trusted)])


def as_sent(args: tuple[Any, ...], keywords: dict[str, Any], trusted: bool) -> list[Any]:
    """Returns one call of a batch in the form in which it is sent."""
    if trusted:
        return [_user_values.call_apart(_feeding.ARGUMENTS, args, keywords)]
    return [list(args), keywords]


def result_sent(value: Any, trusted: bool) -> Any:
    """Returns the result in the form in which it is sent: pickled separately if both peers trust
    each other (_hosts/user_values.py).
    """
    return _user_values.apart(_feeding.RESULT, value) if trusted else value


def _sent(failure: _pickling.Failure | None, trusted: bool) -> Any:
    """Returns the failure in the form in which it is sent: pickled if both peers trust each other,
    otherwise as plain values.
    """
    return failure if trusted or failure is None else _failure_fields(failure)


class _Caller:
    """The program that waits for results. When that program leaves, the process that computes for
    it is cancelled.
    """

    def __init__(self, link: Any, process: Any) -> None:
        self._link, self._process, self.gone = link, process, False
        threading.Thread(target=self._wait, name="weft: obeys", daemon=True).start()

    def _wait(self) -> None:
        _helper_threads.add()
        # BadUse means that the link was closed in this OS process, because the call has ended.
        with contextlib.suppress(BadUse):
            self._link.wait()
        self.gone = True
        self._process.cancel()
        _helper_threads.remove()  # another thread can have the same identifier later


def _serve_many(link: Any, run: str, trusted: bool, name: str) -> None:
    """Runs a series of calls (17.14), and sends each result, until the caller has no more calls. As
    in any Executor, a process computes the calls, so that they can be cancelled, and their places
    can be reported.
    """
    orders, result = link.take("orders"), link.take("result")
    if orders is None or result is None:
        return

    def write(done: list[tuple[int, Any, _pickling.Failure | None]]) -> None:
        result.write([[n, v, _sent(failure, trusted)] for n, v, failure in done])

    @_shared.process
    def computes() -> None:
        me = _native.current_process()
        caller = _Caller(link, me)

        def call(*given: Any) -> Any:
            if caller.gone:
                raise Cancelled
            args, keywords = _user_values.opened(given[0]) if trusted else given
            return result_sent(_called(run, args, keywords), trusted)

        with _call_names.running(me, name), contextlib.suppress(Retired):
            while True:
                calls, wrong = _read_orders(orders)
                if wrong is None and not isinstance(calls, list):
                    wrong = BadUse("the message is not a list of calls")
                if wrong is None:
                    _feeding.in_order(calls, call, lambda done: _feeding.send_each(write, done))
                    calls = None  # no arguments are kept while this process waits for more calls
                else:
                    result.write([[ALL, None, _sent(_pickling.Failure(wrong), trusted)]])

    _import_for(run)
    with contextlib.suppress(ChannelEnd, Cancelled):  # the caller leaves, or no longer waits
        _shared.run(computes().named(parted_run(run)[1]))
        result.retire()


def _called(run: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Calls the function.

    Raises:
        What the function raises; BadUse, if it is a coroutine function.
    """
    function = _pickling.function_named(*parted_run(run))
    if inspect.iscoroutinefunction(function):
        raise BadUse(
            f"{run} is a coroutine function, and an Executor calls plain ones: "
            "run it as a process, with .on(…)"
        )
    return function(*args, **keywords)
