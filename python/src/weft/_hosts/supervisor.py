"""Workers that are started again when they die (rules 7.13, 7.16, 7.17):
`worker.on(Supervisor(...))`.

    call(): an attempt ──it ends──► its result, or what it raised
        ├─it is recycled──► the next attempt
        └─its OS process dies──► lives.py decides ──► a pause ──► the next attempt
             │                         └──no restart is left──► its death is raised
             └─the call was cancelled before──► Cancelled is raised

Invariants
- The supervisor holds the call's ends during each attempt, so that the ends survive the death of
  the attempt: see SupervisedPort in native/wire/far.hpp. There is one exception: if an attempt is
  known from its beginning to be the last, it alone holds the ends, as a call without a supervisor
  does.
- Before the death of an attempt is known here, any value that it held is back in its channel or is
  in the attempt's lists.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import host as _host
from weft._hosts import hosts as _hosts
from weft._hosts import lives as _lives
from weft._hosts import loops as _loops
from weft._hosts.attempt import Attempt, Terms
from weft._watching import deaths as _deaths
from weft._watching import supervision as _supervision
from weft.errors import _WROTE, BadUse, ProcessDied

__all__ = ["Health", "Supervisor"]


def _unpacked(value: Any) -> Any:
    try:
        return _native._unpacked(value)
    except Exception as error:  # the death and the remaining values must still be reported
        return error


def _log(level: str, text: str, *args: object) -> None:
    import logging  # imported late: each OS process of a program imports this module

    getattr(logging.getLogger("weft"), level)(text, *args)


class Health(NamedTuple):
    """The state of a supervised process."""

    process: str  #: its path
    state: str  #: "runs", "waits" for its next life, or "starts"
    life: int  #: 1 for its first life
    restarts: int  #: how often the process was started again after a death
    age: float  #: seconds since this life began, by the run's clock
    pid: int | None  #: its OS process; None: the process has none at this moment, or runs on Hosts


class Supervisor:
    """A place for processes that are started again when their OS process dies:
    `worker.on(Supervisor(restarts=3, within=60))(…)`.

    A process there has an OS process of its own, or runs on `hosts`. Its ends stay open until it
    has ended for good, so that the other sides of its channels learn of no death before that. Each
    time, the process starts from the beginning, with the same arguments.

    If the worker dies inside a block `with reader.extended() as value:`, that value is the next to
    be read, before those written later; or the value is passed to `report`. A value that a plain
    read has taken is lost with the worker, and a warning names it. With `redeliver=True` the loop
    `for job in reader` reads as such blocks do, and no job is lost. But a job may be done twice, if
    the worker dies after its work and before the end of the block.

    Args:
        hosts: Hosts, or one host of them. With None each attempt has an OS process of its own.
        restarts: how often a process is started again; None means always.
        within: the seconds in which `restarts` restarts are allowed. With None, `restarts` is the
            number in all.
        backoff: seconds before the first restart. The time doubles with each death in a row, up to
            10 seconds.
        healthy: after a life of so many seconds the back-off starts over.
        strategy: which processes are started again when one dies. "one for one": the process that
            has died. "one for all": all processes of this supervisor, which share one count. "rest
            for one": the process that has died, and the processes that were placed on this
            supervisor later (by `.on()`); these share one count, too.
        under: the supervisor above. When this supervisor has no restart left, all its processes are
            started again as a restart of the supervisor above, and its own count begins anew.
        redeliver: whether `for job in reader` holds each job until the loop asks for the next.
        max_values, max_age, max_memory: the number of values of `for` loops, of seconds, and of
            bytes of memory at which a process ends in its loop between two values (Cancelled is
            raised there), and is started again. This does not count as a death.
        memory_limit: bytes of address space of each process (RLIMIT_AS). A MemoryError that leaves
            the process is a death.
        report: called with the ProcessDied and the list of values that were in hand, after the last
            death too. These values do not go back. For a value that cannot be unpickled here, the
            list contains the error that says why. An exception that `report` raises ends the
            supervision.
        name: the supervisor's name in events and in the log.
    Raises:
        BadUse: an argument makes no sense.
    """

    def __init__(
        self,
        hosts: _hosts.Elsewhere | None = None,
        *,
        restarts: int | None = 3,
        within: float | None = None,
        backoff: float = 0.1,
        healthy: float = 60.0,
        strategy: str = "one for one",
        under: Supervisor | None = None,
        redeliver: bool = False,
        max_values: int | None = None,
        max_age: float | None = None,
        max_memory: int | None = None,
        memory_limit: int | None = None,
        report: Callable[[ProcessDied, list[Any]], object] | None = None,
        name: str = "supervisor",
    ) -> None:
        if hosts is not None and not isinstance(hosts, _hosts.Elsewhere):
            raise BadUse(f"Supervisor({hosts!r}): give it Hosts, one of them, or nothing")
        if hosts is not None and hosts._way == "fork":
            raise BadUse(
                "Supervisor: Hosts(start='fork') cannot start a host again, because there are "
                "threads by then: use start='forkserver'"
            )
        _hosts.whole("Supervisor: restarts", restarts, 0)
        if within is not None:
            _hosts.seconds("Supervisor: within", within)
            if within == 0:
                raise BadUse("Supervisor: within must be more than 0 seconds")
        _hosts.seconds("Supervisor: backoff", backoff)
        _hosts.seconds("Supervisor: healthy", healthy)
        if strategy not in _lives.STRATEGIES:
            raise BadUse(
                f"Supervisor: strategy must be one of {', '.join(_lives.STRATEGIES)}, "
                f"not {strategy!r}"
            )
        if under is not None and not isinstance(under, Supervisor):
            raise BadUse(f"Supervisor: under must be a Supervisor, not {under!r}")
        _hosts.whole("Supervisor: max_values", max_values, 1)
        if max_age is not None:
            _hosts.seconds("Supervisor: max_age", max_age)
        _hosts.whole("Supervisor: max_memory", max_memory, 1)
        _hosts.whole("Supervisor: memory_limit", memory_limit, 1)
        if report is not None and not callable(report):
            raise BadUse(f"Supervisor: report must be a function, not {report!r}")
        self._terms = Terms(bool(redeliver), max_values, max_age, max_memory)
        if hosts is not None and not hosts._stops:
            alone = {
                "strategy": strategy != "one for one",
                "under": under is not None,
                "memory_limit": memory_limit is not None,  # Hosts have a memory limit of their own
                "max_values, max_age or max_memory": self._terms.loops & 1,
                "redeliver": redeliver and hosts._way == "network",
            }
            if wrong := [what for what, given in alone.items() if given]:
                raise BadUse(
                    f"Supervisor(hosts): {wrong[0]} is for processes that have an OS process "
                    "each, which can end alone: leave hosts out"
                )
        if hosts is None:
            setting = _host.Setting(memory_limit=memory_limit)
            self._run: Any = functools.partial(_host.run_away, setting=setting)
        else:
            self._run = hosts.call
        self._way = "spawn" if hosts is None else hosts._way
        self._report, self.name = report, str(name)
        above = None if under is None else under._node
        self._node: _lives.Node = _lives.Node(restarts, within, backoff, healthy, strategy, above)
        # Only in this case is it known at the beginning of an attempt that it is the last one.
        simple = within is None and strategy == "one for one" and self._terms.loops & 1 == 0
        self._known = simple and above is None
        self._restarts = restarts

    def __repr__(self) -> str:
        often = "always" if self._restarts is None else f"{self._restarts} times"
        within = "" if self._node.within is None else f" within {self._node.within:g} s"
        return f"<a Supervisor that restarts {often}{within}>"

    def health(self) -> list[Health]:
        """Returns the state of each process of this supervisor and of the supervisors below it."""
        now = _native.now()
        with self._node.lock:
            return [
                Health(
                    m.path,
                    m.state,
                    m.life,
                    m.restarts,
                    now - m.began,
                    None if m.attempt is None else m.attempt.pid,
                )
                for m in self._node.members()
            ]

    def placed(self) -> Callable[..., Any]:
        """Returns the function that runs calls for one `.on()` of this supervisor."""
        return functools.partial(self._call, self._node.place())

    def call(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Runs function(*args, **keywords) until the call ends, or no restart is left after a
        death.

        Raises:
            What the function raised; the last ProcessDied; Cancelled; BadUse; what `report`
            raised.
        """
        return self.placed()(function, args, keywords)

    def _call(
        self, position: int, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        me = _native.current_process()
        path = _foreign_exceptions.name_of(function) if me is None else me.path
        member = _lives.Member(path, position, self._node)
        self._node.enter(member)
        try:
            value = self._run_attempts(member, function, args, keywords)
        except BaseException as error:
            if member.state != "given up":
                self._tell(member, "ended", error=error)
            raise
        finally:
            self._node.leave(member)
        self._tell(member, "ended")
        return value

    def _run_attempts(
        self, member: _lives.Member, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        while True:
            last = self._known and member.deaths.total == self._restarts
            in_hand: list[Any] | None = None if self._report is None else []
            attempt = Attempt(last, in_hand, self._terms)
            if not self._begins(member, attempt):
                continue
            try:
                try:
                    return self._run(function, args, keywords, attempt)
                finally:
                    # A plan that has been made meanwhile waits for the end of this attempt.
                    self._node.over(member)
            except _loops.Recycled:
                self._recycled(member)
            except ProcessDied as error:
                # the OS process that died is another one, which the function has started
                if not attempt.died:
                    raise
                self._died(member, attempt, error, in_hand)

    def _begins(self, member: _lives.Member, attempt: Attempt) -> bool:
        """Makes the attempt the member's next life, unless there is a plan for the member; then
        waits for the plan. Returns whether the attempt has begun.

        Raises:
            ProcessDied: the process has been given up meanwhile.
        """
        with self._node.lock:
            if member.plan is None:
                member.attempt, member.state = attempt, "runs"
                member.life += 1
                member.began = _native.now()
                member.ended, member.death = attempt, None
        if member.attempt is None:
            if (plan := self._node.await_plan(member)) is not None:
                if plan.gives_up:  # the plan was made while this member had no life to end
                    if member.ended is not None:
                        member.ended.give_up()
                    error = member.death or plan.death
                    assert error is not None
                    self._give_up(member, error, ())
                self._pause(member, plan.pause)
            return False
        self._tell(member, "began")
        return True

    def _recycled(self, member: _lives.Member) -> None:
        member.state = "waits"
        self._tell(member, "recycled")
        _log("info", "%s is recycled: it begins anew", member.path)

    def _died(
        self,
        member: _lives.Member,
        attempt: Attempt,
        error: ProcessDied,
        in_hand: list[Any] | None,
    ) -> None:
        """Waits until the next life of the member may begin.

        Raises:
            ProcessDied: there is no next life. Cancelled: the member was asked to end. What
                `report` raises.
        """
        member.state, member.death = "waits", error
        first = str(error).partition("\n")[0].rstrip(":").removesuffix(_WROTE)
        lost = tuple(
            (name, "a value with ends" if value is ... else _unpacked(value))
            for name, value in attempt.lost()
        )
        if lost:
            import reprlib

            these = ", ".join(f"{reprlib.repr(v)} of channel {name!r}" for name, v in lost)
            _log("warning", "%s; what it had read last is lost: %s", first, these)
        if self._report is not None:
            self._report(error, [_unpacked(value) for value in in_hand or ()])
        if attempt.last:
            self._give_up(member, error, lost)
        if attempt.cancelled is not None:  # the process was asked to end, and it has ended
            raise attempt.cancelled from error
        with self._node.lock:
            stopped = member.plan is not None
            plan = member.plan or self._node.decide(member, _native.now(), error)
        if not plan.gives_up:
            member.restarts += 1
            _deaths.note("restarts")
            self._tell(
                member, "stopped" if stopped else "died", pause=plan.pause, error=error, lost=lost
            )
            if stopped:
                _log("info", "%s was ended together with others, and is started again", member.path)
            else:
                _log("warning", "%s; it is started again (%s)", first, plan.count)
        plan = self._node.await_plan(member) or plan
        if plan.gives_up:
            attempt.give_up()
            self._give_up(member, error, lost)
        self._pause(member, plan.pause)

    def _pause(self, member: _lives.Member, seconds: float) -> None:
        if seconds > 0:
            _native.sleep(seconds)

    def _give_up(
        self,
        member: _lives.Member,
        error: ProcessDied,
        lost: tuple[tuple[str, Any], ...],
    ) -> None:
        member.state = "given up"
        _log("warning", "%s is given up by its supervisor", member.path)
        self._tell(member, "given up", error=error, lost=lost)
        raise error

    def _tell(self, member: _lives.Member, event: Any, **more: Any) -> None:
        _supervision.tell(
            _supervision.Supervised(event, member.path, self.name, member.life, **more)
        )
