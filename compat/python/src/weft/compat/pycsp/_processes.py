"""pycsp's processes over those of a backend: an `Implementation` is one of pycsp's modules.

A pycsp process becomes a native one when it is started. `_body` adds the differences from a native
process: an uncaught poison (retirement) poisons (retires) every end in the arguments, and the
process ends quietly; a process that returns retires nothing.

States of a process:   made ──_begin()──► running ──_body ends──► made (it may be started again)
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from weft.compat import _main
from weft.compat.pycsp._channels import Channel, ChannelEnd, ChannelEndRead
from weft.compat.pycsp._errors import ChannelPoisonException, ChannelRetireException, InfoException
from weft.errors import Cancelled

__all__ = ["BaseProcess", "Implementation"]

# A Spawn of more processes than this starts them in batches of this size. Thus a million processes
# that each read one value run in batches of some thousands.
_BATCH = 1000

_ids = itertools.count(1)
_ended = [0]  # approximately how many processes have ended; only for _start_all


class BaseProcess:
    """A process: a function with its arguments.

    Args:
        fn: the function that it runs; @process makes the function that makes the process.
        args, kwargs: the function's arguments. An uncaught poison or retirement spreads to the ends
            in them, including those in lists, tuples and dictionaries.
    Attributes:
        return_value: the result of the function; None before the process has ended, and if poison
        or retirement has ended it.
    """

    __slots__ = ("_id", "_running", "args", "fn", "kwargs", "return_value")

    _implementation: Implementation

    def __init__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.return_value: Any = None
        self._running = False
        self._id: str | None = None

    @property
    def id(self) -> str:
        """A name that identifies the process."""
        if self._id is None:
            self._id = f"{next(_ids)}.{self.name}"
        return self._id

    @property
    def name(self) -> str:
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def update(self, **kwargs: Any) -> BaseProcess:
        """Does nothing: a process within this OS process has no host and no port."""
        return self

    def __mul__(self, n: float) -> list[BaseProcess]:
        """Returns a list of this process and int(n) - 1 further processes like it, each with ends
        of its own."""
        more = int(n) - 1
        return [
            self,
            *(
                type(self)(
                    self.fn, *_own_ends(self.args), **_own_ends(self.kwargs), **self._settings()
                )
                for _ in range(more)
            ),
        ]

    __rmul__ = __mul__

    def _settings(self) -> dict[str, Any]:
        """Returns the settings that determine where the process runs, for another process like
        it.
        """
        return {}

    def __repr__(self) -> str:
        return f"<Process {self.name}>"

    def _begin(self, spawned: bool = False) -> Any:
        """Returns the native process, which is not started."""
        if self._running:
            raise InfoException(f"process {self.name} was started already and runs: make another")
        self._running = True
        make = self._implementation.spawned if spawned else self._implementation.native
        return make(self).named(self.name)


def _own_ends(args: Any) -> Any:
    """Returns a copy of `args` with a new end for every end in it, including those in lists, tuples
    and dictionaries."""
    if isinstance(args, ChannelEnd):
        return args.channel.reader() if isinstance(args, ChannelEndRead) else args.channel.writer()
    if type(args) in (list, tuple):
        return type(args)([_own_ends(a) for a in args])
    if type(args) is dict:
        return {_own_ends(k): _own_ends(v) for k, v in args.items()}
    return args


def _each_held(args: Any) -> Iterable[Any]:
    """Yields the objects in `args` that can be poisoned and retired."""
    for a in args:
        if isinstance(a, ChannelEnd):
            yield a
        elif type(a) in (list, tuple):
            yield from _each_held(a)
        elif type(a) is dict:
            yield from _each_held(a.keys())
            yield from _each_held(a.values())
        elif inspect.ismethod(getattr(a, "poison", None)) and inspect.ismethod(
            getattr(a, "retire", None)
        ):
            yield a  # ends that trace wraps, and similar objects


def _run(p: BaseProcess) -> Any:
    if not isinstance(p, _Apart):
        return p.fn(*p.args, **p.kwargs)
    from weft.compat.pycsp import _apart

    try:
        return _apart.run_apart(p)
    finally:
        if p._taken is not None:
            p._taken.close()


def _body(p: BaseProcess) -> Any:
    token = _main.current.set(p)
    try:
        p.return_value = _run(p)
    except ChannelPoisonException:
        for end in _each_held((p.args, p.kwargs)):
            end.poison()
    except ChannelRetireException:
        for end in _each_held((p.args, p.kwargs)):
            end.retire()
    finally:
        p._running = False
        _ended[0] += 1
        _main.current.reset(token)
    return p.return_value


def _spawned_body(p: BaseProcess) -> Any:
    """Does the same as `_body`, but reports a failure immediately, because the spawner might never
    reach the place where the failure would be raised.
    """
    try:
        return _body(p)
    except Exception:
        traceback.print_exc()
        raise


def _flat(plist: Iterable[Any], verb: str) -> list[BaseProcess]:
    flat: list[BaseProcess] = []
    for p in plist:
        if isinstance(p, list | tuple):
            flat.extend(_flat(p, verb))
        elif isinstance(p, BaseProcess):
            flat.append(p)
        else:
            raise InfoException(
                f"{verb} of {p!r}: it takes processes, made by a function with @process, and lists of them"
            )
    return flat


def _update(processes: list[BaseProcess], settings: dict[str, Any]) -> None:
    if settings:
        for p in processes:
            p.update(**settings)


class _Apart(BaseProcess):
    """A MultiProcess: a process in an interpreter of its own, with a GIL of its own.

    Args:
        fn, args, kwargs: as of a Process. `fn` is a function at the top level of a module, unless
            cloudpickle is installed; ends of channels among the arguments are passed as ends, all
            other arguments by pickle.
        pycsp_host, pycsp_port: the address of its channels, on this machine; not given to `fn`.
    """

    __slots__ = ("_address", "_place", "_taken")

    def __init__(
        self,
        fn: Callable[..., Any],
        *args: Any,
        pycsp_host: str = "",
        pycsp_port: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(fn, *args, **kwargs)
        self._address = (pycsp_host or "localhost", pycsp_port) if pycsp_port else None
        self._taken: Any = None
        self._place: Any = None  # None: on this machine

    def _begin(self, spawned: bool = False) -> Any:
        """Makes the native process, and binds the port at once, so that the second of two processes
        with the same port raises the error.

        Raises:
            ChannelBindException: the port is in use.
        """
        if self._address is not None and not self._running:
            from weft.compat.pycsp import _remote

            self._taken = _remote.bound(*self._address)
        return super()._begin(spawned)


def _maker(
    kind: Callable[..., BaseProcess], func: Callable[..., Any]
) -> Callable[..., BaseProcess]:
    if not callable(func) or inspect.iscoroutinefunction(func) or inspect.isgeneratorfunction(func):
        raise InfoException(
            f"@process on {func!r}: it takes a plain function (coroutines: weft.compat.apycsp)"
        )

    @functools.wraps(func)
    def make(*args: Any, **kwargs: Any) -> BaseProcess:
        return kind(func, *args, **kwargs)

    # Another OS process finds the function by its name.
    make._weft_body = func  # type: ignore[attr-defined]
    return make


class Implementation:
    """The names of one of pycsp's modules.

    Args:
        name: as in `version`.
        backend: `weft.threads`, or a module with its names whose processes are plain functions.
        io: runs a function that may block, so that other processes can run; None if they can run
        anyway.
    """

    def __init__(self, name: str, backend: Any, io: Callable[..., Any] | None = None) -> None:
        self.name = name
        self._backend = backend
        self.native = backend.process(_body)
        self.spawned = backend.process(_spawned_body)
        self._starter = backend.process(self._start_all)
        self._io = io
        self.Process: type[BaseProcess] = type(
            "Process",
            (BaseProcess,),
            {"__doc__": BaseProcess.__doc__, "__slots__": (), "_implementation": self},
        )
        self.MultiProcess: type[BaseProcess] = type(
            "MultiProcess",
            (_Apart, self.Process),
            {"__doc__": _Apart.__doc__, "__slots__": ()},
        )

    def away(self, kind: type[BaseProcess], name: str) -> tuple[Any, type[BaseProcess]]:
        """Returns the decorator, and the class, of processes that run on other machines
        (_ssh.py).
        """
        made: Any = type(name, (kind, self.Process), {"__doc__": kind.__doc__, "__slots__": ()})

        def decorate(func: Callable[..., Any] | None = None, **settings: Any) -> Any:
            made._check(settings)
            make = functools.partial(_maker, functools.partial(made, **settings))
            return make if func is None else make(func)

        decorate.__name__ = name.lower()
        decorate.__doc__ = kind.__doc__
        return decorate, made

    # --- making processes -------------------------------------------------------------------------

    def process(self, func: Callable[..., Any]) -> Callable[..., BaseProcess]:
        """Makes a function that makes processes: a call returns a process that is not started.

        Raises:
            InfoException: `func` is not a plain function.
        """
        return _maker(self.Process, func)

    def multiprocess(
        self, func: Callable[..., Any] | None = None, pycsp_host: str = "", pycsp_port: int = 0
    ) -> Any:
        """`@multiprocess`, optionally with `pycsp_host` and `pycsp_port`: each process runs in an
        interpreter of its own (MultiProcess).

        Raises:
            InfoException: the decorated object is not a plain function.
        """
        kind: Any = self.MultiProcess
        if pycsp_port:
            kind = functools.partial(kind, pycsp_host=pycsp_host, pycsp_port=pycsp_port)
        make = functools.partial(_maker, kind)
        return make if func is None else make(func)

    def io(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that lets other processes run while `func` blocks. It returns and
        raises the same as `func`.
        """
        return functools.wraps(func)(self._io(func)) if self._io else func

    def Io(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls `fn` as the function `io(fn)` would."""
        return self.io(fn)(*args, **kwargs)

    # --- running them -----------------------------------------------------------------------------

    def Parallel(self, *plist: Any, **settings: Any) -> list[Any]:
        """Runs the processes, and those in lists, together; returns their results in order when all
        have ended.

        Args:
            settings: for each of them, as its update() takes them.

        Raises:
            the failure of a process, after the others were cancelled; Deadlock; InfoException: an
            argument is not a process.
        """
        processes = _flat(plist, "Parallel")
        _update(processes, settings)
        try:
            return list(self._backend.Parallel([p._begin() for p in processes]))
        except Cancelled as error:
            _main.left_by(error)
            raise

    def Sequence(self, *plist: Any, **settings: Any) -> list[Any]:
        """Runs the processes, and those in lists, one after another; returns their results in
        order.

        Raises:
            the exceptions of Parallel; processes after a failure are not run.
        """
        processes = _flat(plist, "Sequence")
        return [result for p in processes for result in self.Parallel(p, **settings)]

    def Spawn(self, *plist: Any, **settings: Any) -> None:
        """Starts the processes and returns at once. `shutdown`, or the Parallel in which the
        spawner runs, waits for them.

        Raises:
            InfoException: an argument is not a process.
        """
        processes = _flat(plist, "Spawn")
        _update(processes, settings)
        if len(processes) <= _BATCH:
            _main.spawn(self._backend, [p._begin(spawned=True) for p in processes])
        else:
            _main.spawn(self._backend, [self._starter(processes).named("Spawn")])

    def _start_all(self, processes: list[BaseProcess]) -> None:
        """Starts a batch of processes. Starts the next batch when no process has ended for a while,
        because the running processes might be waiting for processes that have not started.
        """
        processes.reverse()
        with self._backend.Group() as group:
            while processes:
                for p in processes[-_BATCH:]:
                    group.start(p._begin(spawned=True))
                del p
                del processes[-_BATCH:]
                ended = -1
                while ended != _ended[0]:
                    ended = _ended[0]
                    self._backend.sleep(0.001)

    def shutdown(self) -> None:
        """Waits for the processes that the main program has spawned; afterwards other programs
        cannot find channels of this program. A program that does not call shutdown() does the same
        at its end.

        Raises:
            the failure of a process; Deadlock; InfoException: called by a process.
        """
        if _main.current.get() is not None:
            raise InfoException(
                "shutdown in a process: call it once, at the end of the main program"
            )
        _main.leave()
        # If this module was not imported, no other program has ever connected to this one.
        if remote := sys.modules.get("weft.compat.pycsp._remote"):
            remote.shut()

    @staticmethod
    def current_process_id() -> str:
        """Returns the id of the calling process; "__main__" in ordinary code."""
        p = _main.current.get()
        return "__main__" if p is None else p.id

    def publish(self, module: dict[str, Any]) -> None:
        """Makes this module the one that `weft.compat.pycsp.current` exports."""
        from weft.compat.pycsp import current

        current.__dict__.update({name: module[name] for name in module["__all__"]})
        current.__dict__["Channel"] = Channel
        current.__dict__["trace"] = False
