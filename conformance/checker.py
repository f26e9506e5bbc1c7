"""Decides whether a recorded history was possible: compares what a runtime did with the model.

A history is a list of records in the order in which they were made (README.md, "Histories"). An
operation takes effect at some instant between its `call` and its `ret`; the checker searches for
instants at which the model does the same.

Sound: the history of a correct runtime is never flagged. The search follows every step that the
model allows, in every order, and flags a history only when it has tried all of them. When it runs
out of its budget, the verdict is `unknown`, which is not a failure. Strong: the whole observable
behaviour is
compared: every outcome of every operation with its value, guard, exception and the exception's
attributes, virtual times, results of groups, dropped counts, the deadlock's report. So no run of
the model explains a lost, doubled or reordered value, an early end, a wrong exception or an
impossible choice. Such a history is flagged, with the record that no run explains.

  grain "atomic"  one scheduler: an operation starts at its `call` record, before any other record.
                  These choices are open: which ready guard a select takes (checked for fairness and
                  priority, 5.4), and when ends are released, timers fire and cancellations arrive.
                  yield_ is checked (7.7).
  grain "cores"   threads: an operation starts at any moment after its `call`; a select examines
                  its guards one by one. Fairness, priority and yield_ are not judged: between cores
                  they cannot be seen from records alone.

The search is depth-first and remembers the states that it has visited. A branch ends as soon as an
operation commits to something other than its recorded outcome.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .explore import frozen, uncollected
from .interp import Code, Record, Sim


class Verdict(NamedTuple):
    """The checker's answer.

    ok: the history is possible. unknown: the budget ran out. why, at: the mistake, and the record
    that no run explains. states: how many states were searched.
    """

    ok: bool
    why: str = ""
    at: int = -1
    states: int = 0
    unknown: bool = False

    def __bool__(self) -> bool:
        return self.ok


def audit(history: list[Record]) -> Verdict:
    """Makes the checks that need no model, and so can give simple messages: the form of the
    records, values that no process wrote, values that were read twice.
    """
    open_call: dict[int, str] = {}
    written: set[Any] = set()
    seen: dict[Any, int] = {}
    for k, r in enumerate(history):
        e, p = r.get("e"), r.get("p", -1)
        if e == "call":
            if p in open_call:
                return Verdict(
                    False,
                    f"process {p} calls {r['op'][0]} while its {open_call[p]} has not returned",
                    k,
                )
            open_call[p] = r["op"][0]
            if r["op"][0] in ("write", "select"):
                written.update(r["op"][1:])
        elif e == "ret":
            kind = open_call.pop(p, None)
            if kind is None:
                return Verdict(False, f"process {p} returns from nothing", k)
            if kind in ("read", "ext", "select") and r["out"][0] == "ok" and len(r["out"]) > 1:
                value = r["out"][-1]
                if isinstance(value, str) and value != "end":
                    if value not in written:
                        return Verdict(
                            False, f"process {p} got {value!r}, which nobody had begun to write", k
                        )
                    if value in seen:
                        return Verdict(
                            False,
                            f"value {value!r} was delivered twice, first in record {seen[value]} (6.4)",
                            k,
                        )
                    seen[value] = k
        elif e == "end":
            if p in open_call:
                return Verdict(False, f"process {p} ended inside its {open_call[p]}", k)
        elif e not in ("run", "stat"):
            return Verdict(False, f"a record of unknown kind {e!r}", k)
    if not history or not any(r.get("e") == "run" for r in history):
        return Verdict(
            False,
            "the history has no record of the run's end: the network hung or the driver stopped",
            len(history),
        )
    return Verdict(True)


def matches(model: Record, seen: Record) -> bool:
    """Returns whether the record `seen` is what the model would record. Details that the runtime
    did not record are not compared.
    """
    if model.get("p") != seen.get("p") or model["e"] != seen["e"]:
        return False
    if "t" in seen and "t" in model and seen["t"] is not None and model["t"] != seen["t"]:
        return False
    if model["e"] == "call":
        return model["op"] == list(seen["op"])
    return _same_out(model["out"], list(seen["out"]))


def _same_out(model: list[Any], seen: list[Any]) -> bool:
    if not seen or model[0] != seen[0]:
        return False
    m_rest = [x for x in model[1:] if not isinstance(x, dict)]
    s_rest = [x for x in seen[1:] if not isinstance(x, dict)]
    if frozen(m_rest) != frozen(s_rest):
        return False
    m_more = next((x for x in model[1:] if isinstance(x, dict)), {})
    s_more = next((x for x in seen[1:] if isinstance(x, dict)), {})
    if model[0] == "Deadlock":
        if "blocked" in s_more and not set(m_more["blocked"]) <= set(s_more["blocked"]):
            return False
        return "knot" not in s_more or sorted(s_more["knot"]) in m_more["knots"]
    return all(k in m_more and frozen(m_more[k]) == frozen(v) for k, v in s_more.items())


@uncollected()
def check(
    net: dict[str, Any],
    history: list[Record],
    grain: str = "atomic",
    budget: int = 50_000,
    clock: str = "virtual",
) -> Verdict:
    """Returns the verdict on whether `history` is a possible history of the network `net`.

    Args:
        budget: the largest number of states that are searched.
        clock: with "real", timers may go off at any moment, and times in the history are not
        compared.
    """
    first = audit(history)
    if not first:
        return first
    records = [{**r, "t": None} if clock == "real" else r for r in history if r["e"] != "stat"]
    stat = next((r for r in history if r["e"] == "stat"), None)
    promised = _promises(records)
    start = Sim(Code(net), grain, clock=clock)
    todo: list[tuple[Sim, int]] = [(start, 0)]
    seen: set[int] = set()
    furthest, offers = -1, ""
    while todo:
        sim, h = todo.pop()
        steps = sim.steps()
        if not steps:
            dropped = [c.dropped for c in sim.chans]
            if h == len(records) and (stat is None or list(stat["dropped"]) == dropped):
                return Verdict(True, states=len(seen))
            if h >= furthest:
                furthest = h
                offers = f"the run is over with dropped = {dropped}, recorded were {stat['dropped'] if stat else '–'}"
            continue
        if h > furthest:
            furthest, offers = h, ""
        if h == len(records):
            continue
        record = records[h]
        if grain == "atomic" and h > 0 and records[h - 1]["e"] == "call":
            mine = [s for s in steps if s[0] == "arrive" and s[1] == records[h - 1]["p"]]
            steps = mine or steps
        silent, loud = [], []
        for s in steps:
            if s[0] in ("go", "ret", "run"):
                if (s[0] == "run" and record["e"] == "run") or (
                    s[0] != "run" and s[1] == record.get("p")
                ):
                    loud.append(s)
            else:
                silent.append(s)
        ways = silent + loud  # the last entry of `ways` is tried first
        for k, s in enumerate(ways, 1):
            # The last entry changes the state in place: nothing uses the state afterwards.
            new = sim if k == len(ways) else sim.clone()
            made = new.apply(s)
            if made is not None:
                if not matches(made, record):
                    if h == furthest:
                        offers = f"the model would say {_in_words(made)}"
                    continue
                state = (new, h + 1)
            else:
                state = (new, h)
                if not _keeps(new, promised[h]):
                    continue
            mark = hash((state[1], new.key()))
            if mark not in seen:
                if len(seen) >= budget:
                    return Verdict(
                        True,
                        f"not decided within {budget} states, at record {furthest}",
                        furthest,
                        len(seen),
                        True,
                    )
                seen.add(mark)
                todo.append(state)
    at = min(furthest, len(records) - 1)
    why = f"record {at} has no explanation: {_in_words(records[at])}"
    if furthest == len(records):
        why = "the history has no explanation at its end"
    return Verdict(False, why + (f"; {offers}" if offers else ""), furthest, len(seen))


def _promises(records: list[Record]) -> list[dict[int, list[Any]]]:
    """Returns, for each position in the records, the outcome in each process's next `ret`."""
    table: list[dict[int, list[Any]]] = [{} for _ in records]
    current: dict[int, list[Any]] = {}
    for k in range(len(records) - 1, -1, -1):
        if records[k]["e"] == "ret":
            current = {**current, records[k]["p"]: list(records[k]["out"])}
        table[k] = current
    return table


def _keeps(sim: Sim, promised: dict[int, list[Any]]) -> bool:
    """Returns whether every operation that has committed has the outcome that its `ret` will
    record.
    """
    for p in sim.procs.values():
        op = sim.ops.get(p.pid)
        out = (
            op.out
            if op is not None and op.state != "waiting"
            else p.out
            if p.st == "decided"
            else None
        )
        if out is None:
            continue
        promise = promised.get(p.pid)
        if promise is None:
            return False
        name = "Retired" if promise[0] == "stop" else promise[0]
        if out[0] != name:
            return False
        if name == "ok" and op is not None:
            if op.kind == "select" and promise[1] != out[1]:
                return False
            if len(out) > 2 and promise[-1] != ("end" if isinstance(out[2], tuple) else out[2]):
                return False
    return True


def _in_words(r: Record) -> str:
    who = f"process {r['p']}" if "p" in r else "the run"
    if r["e"] == "call":
        return f"{who} calls {' '.join(map(str, r['op']))}"
    verb = "returns" if r["e"] == "ret" else "ends with"
    return f"{who} {verb} {r['out']}" + (f" at time {r['t']}" if r.get("t") else "")
