"""Mutants of the points of thread processes in a check (rule 17.2): at each place where an
operation of a thread lets other processes go first, and at each place where its stack is exchanged.

    python3 cpp/tests/mutants_checked.py DIRECTORY [NAME ...]      the last line: N passed, N failed

One copy of the library has all mutants (mutants_switched.py). The program prints a table that says
which test noticed each mutant; if the tests hang or crash, the mutant is noticed too. `soak` runs
the program.
"""

from __future__ import annotations

import sys

from mutants import Text
from mutants_switched import either, switched, try_all, unless

SOURCES = ("checked_threads.cpp", "checked_points.cpp", "doctest_main.cpp")

CALL = "runtime/checked_call.hpp"
CHECKER = "src/checker.cpp"
FIBRE = "check/fibre.hpp"


def no_points(
    name: str, what: str, file: str, before: str, call: str = "detail::ThreadCall"
) -> Text:
    """Makes a mutant in which an operation has no points; `before` stands before its call."""
    return switched(
        name,
        f"{what} has no points",
        file,
        f"{before} «const {call} call(self, at);»",
        f"std::optional<{call}> call; if (!({{mutant}})) call.emplace(self, at);",
    )


MUTANTS = [
    # --- an operation -----------------------------------------------------------------------------
    either("c1", "no process goes before an operation", CALL, "points->pauses(p, yields)", "false"),
    unless(
        "c2",
        "a process that is to wait for its turn goes on",
        CALL,
        "lets_go(p);",
    ),
    unless("c3", "an operation is taken for the one before it", CALL, "points->begins(p);"),
    either(
        "c4",
        "no process goes after an operation that is over at once",
        CALL,
        "points->begun(p_, raised ? Begun::raised : Begun::done)",
        "false",
    ),
    unless(
        "c5",
        "a process that is to wait after its operation goes on",
        CALL,
        "lets_go(p_);",
    ),
    either(
        "c6",
        "an operation that has raised counts as done",
        CALL,
        "«raised» ? Begun::raised",
        "false",
    ),
    unless(
        "c7",
        "the check is not told that an operation parks",
        CALL,
        "if (!std::exchange(parked_, true)) «points->begun(p_, Begun::parked);»",
    ),
    unless(
        "c8",
        "an operation that parks does not leave its stack",
        CALL,
        "points->parks(p_);",
    ),
    unless(
        "c9",
        "an operation that has parked has a point when it is over",
        CALL,
        "if (parked_) return;",
    ),
    unless("c10", "an operation stays the one in which its process is", CALL, "p_.call = outer_;"),
    unless(
        "c11",
        "a process that waits for its turn is in no operation",
        CALL,
        "p.waits_in(&paused_op);",
    ),
    unless(
        "c12",
        "a process that has waited for its turn stays in its operation",
        CALL,
        "p.waits_in(nullptr);",
    ),
    either(
        "c13",
        "an operation in the course of an exception counts as raised",
        CALL,
        "std::uncaught_exceptions() > leaving_",
        "std::uncaught_exceptions() > 0",
    ),
    # --- each kind of operation -------------------------------------------------------------------
    no_points("c14", "a read", "include/weft/channel.hpp", 'detail::blocking_caller("reader()");'),
    no_points(
        "c15", "a write", "include/weft/channel.hpp", 'detail::blocking_caller("writer(value)");'
    ),
    no_points("c16", "a select", "alt.hpp", 'detail::blocking_caller("select(…)()");'),
    no_points(
        "c17",
        "a select of an Alternative",
        "alt.hpp",
        'blocking_caller("select()()");',
        "ThreadCall",
    ),
    no_points("c18", "a wait for a group", "compose.hpp", 'detail::blocking_caller("wait()");'),
    no_points(
        "c19", "an extended read", "extended.hpp", 'detail::blocking_caller("extended()()");'
    ),
    no_points("c20", "a wait for an end", "ended.hpp", 'detail::blocking_caller("ended()");'),
    no_points("c21", "a sync", "time.hpp", 'detail::blocking_caller("sync()");'),
    switched(
        "c22",
        "a sleep has no points",
        "time.hpp",
        "const detail::ThreadCall call(self, at, past);",
        "std::optional<detail::ThreadCall> call; if (!({mutant})) call.emplace(self, at, past);",
    ),
    switched(
        "c23",
        "a yield has no points",
        "compose.hpp",
        "const detail::ThreadCall call(self, at, true);",
        "std::optional<detail::ThreadCall> call; if (!({mutant})) call.emplace(self, at, true);",
    ),
    switched(
        "c24",
        "a network in a thread has no points",
        "src/compose.cpp",
        "const ThreadCall call(self, Here::nowhere());",
        "std::optional<ThreadCall> call; if (!({mutant})) call.emplace(self, Here::nowhere());",
    ),
    switched(
        "c25",
        "a read or write of a thread does not say where it arrives",
        "thread_call.hpp",
        "runtime::points->arrives(self, *c,",
        "if (!({mutant})) {part}",
    ),
    either(
        "c26",
        "a read of a thread arrives as a write",
        "thread_call.hpp",
        "S == core::Side::in ? runtime::Access::read : runtime::Access::write",
        "runtime::Access::write",
    ),
    either(
        "c27",
        "a thread does not yield where it yields",
        CALL,
        "points->pauses(p, «yields»)",
        "false",
    ),
    # --- the beginning and the end of a thread, and its stack -------------------------------------
    either(
        "c28",
        "no process goes before the end of a thread",
        "src/compose.cpp",
        "runtime::points && runtime::points->ends_later(me)",
        "false",
    ),
    unless(
        "c29",
        "a thread that is to wait before its end goes on",
        "src/compose.cpp",
        "runtime::CheckedCall::lets_go(me);",
    ),
    unless(
        "c30",
        "a thread process is not put into the queue",
        CHECKER,
        "p.runs_by(thread_ops);\n  «executor_of(p).post(&p);»",
    ),
    unless(
        "c31", "a thread takes up the context of the one before it", CHECKER, "c.context = nullptr;"
    ),
    unless(
        "c32",
        "a thread that goes on is not the thread's process",
        CHECKER,
        "ThreadProcess::become(&p);",
    ),
    unless(
        "c33",
        "a thread that goes on has the context of the check",
        CHECKER,
        "this_context = c.context;",
    ),
    unless(
        "c34",
        "the check stays the process that has left its stack",
        CHECKER,
        "ThreadProcess::become(outer);",
    ),
    unless(
        "c35", "the check keeps the context of a thread", CHECKER, "this_context = outer_context;"
    ),
    unless(
        "c36",
        "the context of a thread that parks is not kept",
        CHECKER,
        "c.context = this_context;",
    ),
    either(
        "c37",
        "exceptions of one stack are handled on another",
        FIBRE,
        "std::exchange(handling(), handled_)",
        "handling()",
    ),
    unless(
        "c38",
        "a thread loses the exceptions that it handles",
        FIBRE,
        "handled_ = std::exchange(handling(), mine);",
        "handling() = mine;",
    ),
]


if __name__ == "__main__":
    sys.exit(try_all(__doc__, MUTANTS, SOURCES, ("-DWEFT_CHECKED=1", "-include", "optional")))
