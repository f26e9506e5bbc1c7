"""The oracle: an interpreter of programs, small and slow on purpose, with which tests compare the
runtime.

The oracle follows SEMANTICS.md, part III, rule by rule, and shares nothing with the runtime. It has
no levels, only the order of reactions, and its queue is a list. Time is logical (`fast`): physical
time does not advance. Therefore the oracle does not support physical actions and connections, and
only a deadline of 0 is missed. A watchdog expires when logical time reaches its expiry, as in a
program that waits for physical time and whose reactions take none.

Invariants
- `Oracle.run` returns the trace: (time since the start in ns, microstep, name, missed) for each
  reaction that ran. `printed` contains the output of the bodies.
- A body must be in the subset of C of minic.py; other code raises `Unsupported`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from weft_lf import minic, tree
from weft_lf.minic import Unsupported
from weft_lf.model import (
    ActionOf,
    Channel,
    Delay,
    Instance,
    Model,
    ModeOf,
    ReactionOf,
    TimerOf,
    Value,
    WatchdogOf,
    driver,
)
from weft_lf.parser import FOREVER
from weft_lf.values import MACROS, number, resolved

Tag = tuple[int, int]


class Fired(NamedTuple):
    """One entry of a trace: a reaction ran, or its deadline handler if the deadline was missed."""

    time: int
    microstep: int
    name: str
    missed: bool


@dataclass
class Event:
    """A timer, an action, a watchdog or a delayed connection that will be present at `tag`, with its
    value."""

    tag: Tag
    what: TimerOf | ActionOf | WatchdogOf | Delay
    value: int | None = None


@dataclass
class Frozen:
    """The events that a mode keeps while it is not active, and the tag at which the mode was
    left."""

    events: list[Event] = field(default_factory=list)
    left: Tag = (0, 0)


def name_of(one: ReactionOf) -> str:
    """Returns the name of a reaction in traces: the path of its reactor, then its name. A reaction
    without a name has its number, counted from 1.
    """
    return f"{one.instance.path}.{one.decl.name or one.number + 1}"


class Oracle:
    """Interprets one program. `timeout` (in ns) and `keepalive` replace the program's own, if they
    are given; with `keepalive` the program runs until its timeout even if no event is left."""

    def __init__(
        self, model: Model, timeout: int | None = None, keepalive: bool | None = None
    ) -> None:
        self.model = model
        config = model.program.config
        self.timeout = config.timeout if timeout is None else timeout
        self.keepalive = bool(config.keepalive) if keepalive is None else keepalive
        self.queue: list[Event] = []
        self.now: Tag = (0, 0)
        self.stop: Tag = (self.timeout, 0) if self.timeout is not None else (FOREVER, 0)
        self.end = self.stop  # the timeout: an event after this time is not put into the queue (R8)
        self.trace: list[Fired] = []
        self.printed: list[str] = []
        self.states: dict[Instance, dict[str, Any]] = {}
        self.shown: dict[Channel, dict[str, Any]] = {}
        self.carried: dict[ActionOf, dict[str, Any]] = {}
        self.last: dict[ActionOf, int] = {}  # the time of the event that was scheduled last
        self.newest: dict[ActionOf, Event] = {}  # the event that was scheduled last
        self.readers: dict[object, list[ReactionOf]] = {}
        self.delayed: dict[Channel, list[Delay]] = {}
        self.active: dict[Instance, ModeOf] = {}
        self.entered: set[ModeOf] = set()
        self.begun: set[ModeOf] = set()  # modes whose timers have begun, since the last reset
        self.frozen: dict[ModeOf, Frozen] = {}
        self.changes: dict[Instance, tuple[ModeOf, str]] = {}
        self.due: dict[ModeOf, str] = {}  # modes to enter when the mode around is active again
        self.bodies: dict[int, minic.Node] = {}
        self.handling = False  # whether the handler of a watchdog runs
        self.set_up()

    # --- the program ------------------------------------------------------------------------------

    def set_up(self) -> None:
        for made in self.model.instances:
            self.states[made] = self.first_state(made, None)
            for port in made.ports.values():
                for channel in port.channels:
                    self.shown[channel] = {"value": 0, "is_present": 0}
            for action in made.actions.values():
                self.carried[action] = {"value": 0, "is_present": 0, "has_value": 0}
            for mode in made.modes.values():
                if mode.decl.initial:
                    self.active[made] = mode
        for one in self.model.reactions:
            for trigger in one.triggers:
                key = driver(trigger) if isinstance(trigger, Channel) else trigger
                if not isinstance(key, str):
                    self.readers.setdefault(key, []).append(one)
        for delay in self.model.delays:
            if delay.physical:
                raise Unsupported("a physical connection")
            self.delayed.setdefault(driver(delay.source), []).append(delay)

    def first_state(self, made: Instance, only: set[str] | None) -> dict[str, Any]:
        """Returns the parameters and the initial values of the state variables; with `only`, the
        initial values of these state variables alone.
        """
        state: dict[str, Any] = {}
        if only is None:
            for name, value in made.values.items():
                state[name] = self.literal(value)
        for placed in made.cls.of(tree.State):
            decl = placed.decl
            assert isinstance(decl, tree.State)
            if decl.type is not None and decl.type.array is not None and decl.init is None:
                raise Unsupported("an array without first values")
            if only is None or decl.name in only:
                first: Any = 0 if decl.init is None else self.literal(Value(decl.init, made))
                plain = decl.type is None or (decl.type.array is None and not decl.type.stars)
                one = plain and isinstance(first, list) and len(first) == 1
                state[decl.name] = first[0] if one else first
        return state

    def literal(self, value: Value) -> Any:
        found = number(value)
        if found is not None:
            return found
        value = resolved(value.expr, value.scope, value.index)
        expr = value.expr
        if isinstance(expr, tree.Code):
            raise Unsupported(f"the code {expr.text.strip()!r}")
        if isinstance(expr, tree.Listing):
            return [self.literal(Value(item, value.scope, value.index)) for item in expr.items]
        if isinstance(expr, tree.Literal):
            if expr.kind == "bool":
                return int(expr.text == "true")
            if expr.kind == "float":
                raise Unsupported(f"the number {expr.text}")
            return expr.text.strip("\"'")
        return 0

    # --- modes ------------------------------------------------------------------------------------

    def is_active(self, mode: ModeOf | None) -> bool:
        """Returns whether a mode is active (R16): its reactor is in the mode, and the mode around
        the reactor is active.
        """
        while mode is not None:
            if self.active[mode.instance] is not mode:
                return False
            mode = mode.instance.within()
        return True

    def mode_around(
        self, what: ReactionOf | TimerOf | ActionOf | WatchdogOf | Delay
    ) -> ModeOf | None:
        return what.mode if what.mode is not None else what.instance.within()

    def inside(self, what: Any, mode: ModeOf) -> bool:
        """Returns whether the reaction, timer, action or delay `what` is inside the mode, at any
        depth.
        """
        at = self.mode_around(what)
        while at is not None:
            if at is mode:
                return True
            at = at.instance.within()
        return False

    def enter_tag_modes(self) -> list[ReactionOf]:
        """Makes the changes of mode at the beginning of a tag (R16 to R18). Returns the reactions
        that these changes trigger by startup and reset."""
        triggered: list[ReactionOf] = []
        changes, self.changes = self.changes, {}
        renewed: list[ModeOf] = []  # the modes that this tag enters by reset
        for made in self.model.instances:
            if made not in changes or any(self.instance_inside(made, m) for m in renewed):
                continue  # After a reset, the modes inside are as at the start.
            mode, how = changes[made]
            old = self.active[made]
            if how == "reset":
                renewed.append(mode)
            if not self.is_active(old):  # The mode around the reactor has just been left.
                self.change_inactive(made, mode, how)
                continue
            kept = Frozen(left=self.now)
            for event in [
                e
                for e in self.queue
                if self.inside(e.what, old) and self.is_active(self.mode_around(e.what))
            ]:
                self.queue.remove(event)
                kept.events.append(event)
            self.frozen[old] = kept
            self.active[made] = mode
            triggered += self.enter(mode, how)
        return triggered

    def change_inactive(self, made: Instance, mode: ModeOf, how: str) -> None:
        """Changes the mode of a reactor that is inside a mode which this tag has left. The new mode
        is entered when the mode around is active again (R16)."""
        around = made.within()
        while around is not None and around not in self.frozen:
            around = around.instance.within()
        assert around is not None, "no mode around was left"
        store, old = self.frozen[around], self.active[made]
        inside = [e for e in store.events if self.inside(e.what, old)]
        store.events = [e for e in store.events if e not in inside]
        self.frozen[old] = Frozen(inside, store.left)
        self.active[made] = mode
        self.due[mode] = how

    def enter(self, mode: ModeOf, how: str) -> list[ReactionOf]:
        triggered: list[ReactionOf] = []
        self.due.pop(mode, None)
        kept = self.frozen.pop(mode, Frozen())
        if how == "history" and mode in self.begun:
            shift = self.now[0] - kept.left[0]
            for event in sorted(kept.events, key=lambda e: e.tag):
                time = event.tag[0] + shift
                event.tag = (
                    (time, 0)
                    if time > self.now[0]
                    else (time, max(self.now[1], event.tag[1] - kept.left[1] + self.now[1]))
                )
                self.put(event)
            for inner in self.model.instances:
                if self.instance_inside(inner, mode) and inner.modes:
                    within = self.active[inner]
                    if within in self.due and self.is_active(within):
                        triggered += self.enter(within, self.due[within])
        else:
            for inner in self.model.instances:
                if inner is not mode.instance and self.instance_inside(inner, mode) and inner.modes:
                    for within in inner.modes.values():
                        self.frozen.pop(within, None)
                        self.due.pop(within, None)
                        self.begun.discard(within)
                        if within.decl.initial:
                            self.active[inner] = within
            self.start_timers(mode)
            inside = (m for m in self.active.values() if self.instance_inside(m.instance, mode))
            self.begun.update({mode}, (m for m in inside if self.is_active(m)))
        if how == "reset":
            self.reset_states(mode)
            for one in self.model.reactions:
                if (
                    "reset" in one.triggers
                    and self.inside(one, mode)
                    and self.is_active(self.mode_around(one))
                ):
                    triggered.append(one)
        return triggered + self.first_time()

    def instance_inside(self, made: Instance, mode: ModeOf) -> bool:
        at = made.within()
        while at is not None:
            if at is mode:
                return True
            at = at.instance.within()
        return False

    def start_timers(self, mode: ModeOf | None) -> None:
        for made in self.model.instances:
            for timer in made.timers.values():
                place = self.mode_around(timer)
                inside = place is None if mode is None else self.inside(timer, mode)
                if (
                    inside
                    and self.is_active(place)
                    and not any(e.what is timer for e in self.queue)
                ):
                    base = self.now[0] + timer.offset
                    self.queue.append(Event((base, self.now[1] if timer.offset == 0 else 0), timer))

    def reset_states(self, mode: ModeOf) -> None:
        for made in self.model.instances:
            names = set()
            for placed in made.cls.of(tree.State):
                decl = placed.decl
                assert isinstance(decl, tree.State)
                own = made is mode.instance and placed.mode == mode.decl.name
                if decl.reset and (own or self.instance_inside(made, mode)):
                    names.add(decl.name)
            if names:
                self.states[made].update(self.first_state(made, names))

    def first_time(self) -> list[ReactionOf]:
        """Returns the startup reactions of modes that are active for the first time (R18)."""
        triggered = []
        fresh = [m for m in self.active.values() if self.is_active(m) and m not in self.entered]
        for mode in fresh:
            self.entered.add(mode)
            triggered += [
                r
                for r in self.model.reactions
                if "startup" in r.triggers and self.mode_around(r) is mode
            ]
        return triggered

    # --- running ----------------------------------------------------------------------------------

    def run(self, tags: int = 100_000) -> list[Fired]:
        """Runs the program, for at most `tags` tags after the first, and returns the trace.

        Raises:
            Unsupported: a body uses C that minic.py does not know.
        """
        first = [
            r
            for r in self.model.reactions
            if "startup" in r.triggers and self.mode_around(r) is None
        ]
        first += self.first_time()
        self.start_timers(None)
        for mode in list(self.active.values()):
            if self.is_active(mode):
                self.start_timers(mode)
                self.begun.add(mode)
        self.tag(first)
        for _ in range(tags):
            if self.now >= self.stop:
                break
            if self.changes:
                following: Tag = (self.now[0], self.now[1] + 1)
            elif any(self.keepalive or not isinstance(e.what, WatchdogOf) for e in self.queue):
                following = min(e.tag for e in self.queue)
            elif self.keepalive and self.stop[0] == FOREVER:
                break
            elif self.keepalive:
                following = self.stop
            else:
                following = (self.now[0], self.now[1] + 1)
                self.stop = min(self.stop, following)
            self.now = min(following, self.stop)
            self.tag(self.enter_tag_modes() if self.changes else [])
        return self.trace

    def tag(self, triggered: list[ReactionOf]) -> None:
        """Runs one tag (R2 to R4): runs the reactions `triggered`, the reactions that the events
        now due trigger, and the reactions that these trigger in turn."""
        pending = {r.order: r for r in triggered}
        self.expire()
        due = [e for e in self.queue if e.tag <= self.now]
        self.queue = [e for e in self.queue if e.tag > self.now]
        present: list[dict[str, Any]] = []
        sent: set[Channel] = set()

        def wake(key: object) -> None:
            for one in self.readers.get(key, []):
                if self.is_active(self.mode_around(one)):
                    pending[one.order] = one

        def show(channel: Channel, value: Any) -> None:
            shown = self.shown[channel]
            shown.update(value=value, is_present=1)
            present.append(shown)
            sent.add(channel)
            wake(channel)

        for event in due:
            what = event.what
            if isinstance(what, WatchdogOf):
                wake(what)
            elif isinstance(what, TimerOf):
                if what.period > 0:
                    self.queue.append(Event((event.tag[0] + what.period, 0), what))
                wake(what)
            elif isinstance(what, ActionOf):
                carried = self.carried[what]
                carried.update(is_present=1, has_value=int(event.value is not None))
                carried["value"] = event.value if event.value is not None else 0
                present.append(carried)
                wake(what)
            else:
                for sink in what.sinks:
                    show(sink, event.value)
        if self.now == self.stop:
            for one in self.model.reactions:
                place = self.mode_around(one)
                if "shutdown" in one.triggers and (place is None or place in self.entered):
                    pending[one.order] = one
        done = -1
        while pending:
            order = min(pending)
            one = pending.pop(order)
            assert order > done, "a reaction woke one that stands before it"
            done = order
            self.fire(one, show)
        for channel in sent:
            for delay in self.delayed.get(channel, []):
                if self.is_active(self.mode_around(delay)):
                    self.send(delay, self.shown[channel]["value"])
        for shown in present:
            shown["is_present"] = 0

    def expire(self) -> None:
        """Runs the handlers of the watchdogs that expire now (R25). The events that they schedule
        can be due at this very tag."""
        for event in [e for e in self.queue if e.tag <= self.now]:
            if isinstance(event.what, WatchdogOf):
                dog = event.what
                refs = [tree.Ref(dog.decl.name), *dog.decl.effects]
                head = tree.Reaction("", refs, [], [], None, None, None, [], dog.decl.span)
                self.handling = True
                names = _Names(self, ReactionOf(dog.instance, head, 0, dog.mode), None)
                minic.Frame(names).run(minic.parse(dog.decl.code.text))
                self.handling = False

    def watch(self, dog: WatchdogOf, extra: int) -> None:
        """Starts a watchdog, which might already be started (R25)."""
        self.unwatch(dog)
        time = self.now[0] + dog.timeout + extra
        self.put(Event((time, 0) if time > self.now[0] else self.after(0), dog))

    def unwatch(self, dog: WatchdogOf) -> None:
        """Stops a watchdog, unless it has expired at this tag."""
        self.queue = [e for e in self.queue if e.what is not dog or e.tag <= self.now]

    def fire(self, one: ReactionOf, show: Any) -> None:
        missed = one.deadline == 0
        if one.forward is not None:
            source = driver(one.forward.source)
            show(one.forward.sink, self.shown[source]["value"])
            return
        self.trace.append(Fired(*self.now, name_of(one), missed))
        code = one.decl.deadline_code if missed else one.decl.code
        if code is None:
            return
        if id(code) not in self.bodies:
            self.bodies[id(code)] = minic.parse(code.text)
        minic.Frame(_Names(self, one, show)).run(self.bodies[id(code)])

    def send(self, delay: Delay, value: Any) -> None:
        """Sends a value into a delayed connection (R10)."""
        self.put(Event(self.after(delay.interval), delay, value))

    def after(self, interval: int) -> Tag:
        return (
            (min(self.now[0] + interval, FOREVER), 0)
            if interval > 0
            else (self.now[0], self.now[1] + 1)
        )

    def put(self, event: Event) -> None:
        """Puts an event into the queue, at the first microstep that is free (R7)."""
        while any(e.what is event.what and e.tag == event.tag for e in self.queue):
            event.tag = (event.tag[0], event.tag[1] + 1)
        if event.tag <= self.end:
            self.queue.append(event)

    def schedule(self, action: ActionOf, extra: int, value: int | None) -> int:
        """Schedules an action (R6 to R8, R13). Returns 1, or 0 if there is no new event."""
        if self.now >= self.stop:
            return 0
        delay = action.delay + max(0, extra)
        tag = (self.now[0] + delay, 0) if self.handling else self.after(delay)
        spacing = action.spacing or 0
        newest = self.newest.get(action)
        waits = newest if any(e is newest for e in self.queue) else None
        early = spacing > 0 and action in self.last and tag[0] < self.last[action] + spacing
        if action.spacing == 0 and action.policy != "defer":
            early = waits is not None and tag[0] == self.last[action]
        if early:
            if action.policy == "drop":
                return 0
            if action.policy == "replace" and waits is not None:
                waits.value = value
                return 0
            if action.policy == "update" and waits is not None:
                self.queue = [e for e in self.queue if e is not waits]
            else:
                tag = (self.last[action] + spacing, 0)
        event = Event(tag, action, value)
        self.last[action], self.newest[action] = tag[0], event
        self.put(event)  # After an update, the event's tag can already have an event of the action.
        return 1

    def request_stop(self) -> None:
        self.stop = min(self.stop, (self.now[0], self.now[1] + 1))


class _Names:
    """Gives the meaning of the names in the body of one reaction."""

    def __init__(self, oracle: Oracle, one: ReactionOf, show: Any) -> None:
        self.oracle, self.one, self.show = oracle, one, show

    def __call__(self, name: str) -> Any:
        made = self.one.instance
        if name == "self":
            return self.oracle.states[made]
        if name in MACROS:
            return lambda n: MACROS[name] * n
        method = getattr(self, "do_" + name, None)
        if method is not None:
            return method
        if name == "true" or name == "false":
            return int(name == "true")
        if name in made.ports:
            return self.port(made.ports[name])
        for key in (f"{self.one.mode.decl.name}/{name}" if self.one.mode else name, name):
            if key in made.actions:
                return {"action": made.actions[key], **self.oracle.carried[made.actions[key]]}
            if key in made.watchdogs:
                return made.watchdogs[key]
        if name in made.modes:
            return made.modes[name]
        if name in made.children:
            members = [self.fields(c) for c in made.children[name]]
            return (
                members[0]
                if made.children[name] and made.children[name][0].index is None
                else members
            )
        width = re.fullmatch(r"(\w+)_width", name)
        if width and width.group(1) in made.ports:
            return len(made.ports[width.group(1)].channels)
        if width and width.group(1) in made.children:
            return len(made.children[width.group(1)])
        raise Unsupported(f"the name '{name}'")

    def fields(self, made: Instance) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for port in made.ports.values():
            found[port.decl.name] = self.port(port)
            found[port.decl.name + "_width"] = len(port.channels)
        return found

    def port(self, port: Any) -> Any:
        shown = []
        for channel in port.channels:
            at = driver(channel)
            shown.append({"channel": at, **self.oracle.shown[at]})
        return shown if port.multi else shown[0]

    def do_lf_set(self, port: Any, value: Any) -> None:
        self.show(port["channel"], minic.wrapped(value))

    def do_lf_schedule(self, action: Any, extra: int) -> int:
        return self.oracle.schedule(action["action"], extra, None)

    def do_lf_schedule_int(self, action: Any, extra: int, value: int) -> int:
        return self.oracle.schedule(action["action"], extra, value)

    def do_lf_watchdog_start(self, dog: WatchdogOf, extra: int) -> None:
        self.oracle.watch(dog, extra)

    def do_lf_watchdog_stop(self, dog: WatchdogOf) -> None:
        self.oracle.unwatch(dog)

    def do_lf_request_stop(self) -> None:
        self.oracle.request_stop()

    def do_lf_set_mode(self, mode: ModeOf) -> None:
        how = next((h for m, h in self.one.moves if m is mode), "reset")
        self.oracle.changes[mode.instance] = (mode, how)

    def do_lf_time_logical_elapsed(self) -> int:
        return self.oracle.now[0]

    do_lf_time_logical = do_lf_time_logical_elapsed  # The program starts at time 0.

    def do_lf_time_start(self) -> int:
        return 0

    def do_lf_tag(self) -> dict[str, int]:
        return {"time": self.oracle.now[0], "microstep": self.oracle.now[1]}

    def do_printf(self, text: str, *values: Any) -> None:
        given = iter(values)
        text = text.encode().decode("unicode_escape")
        self.oracle.printed.append(
            re.sub(
                r"%(?:lld|ld|llu|zu|d|u|i|s|%)",
                lambda m: "%" if m.group() == "%%" else str(next(given)),
                text,
            )
        )

    def do_lf_print(self, text: str, *values: Any) -> None:
        self.do_printf(text + "\\n", *values)

    def do_lf_print_error_and_exit(self, text: str, *values: Any) -> None:
        raise AssertionError(f"the body gives up: {text} {values}")
