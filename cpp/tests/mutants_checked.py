"""Mutants of the fibre points of a check: how thread processes run as fibres of the check, what
their operations report, and how the next process is taken from the run queue. Each mutant breaks one
line, and the tests of section 17 must notice that.

    python3 cpp/tests/mutants_checked.py DIRECTORY [NAME ...]     the last line: N passed, N failed

One copy of the library has all mutants (mutants_switched.py). The program prints a table that says
which test noticed each mutant; if the tests hang, the mutant is noticed too. `soak` runs the
program.
"""

from __future__ import annotations

import sys

from mutants_switched import either, run, unless

SOURCES = (
    "checked_points.cpp",
    "checked_threads.cpp",
    "checked_figures.cpp",
    "checked_polls.cpp",
    "doctest_main.cpp",
)
FLAGS = ("-DWEFT_CHECKED=1", "-DDOCTEST_CONFIG_SUPER_FAST_ASSERTS")

CALL = "runtime/checked_call.hpp"
THREAD_CALL = "thread_call.hpp"
FIBRE = "check/fibre.hpp"
DECIDING = "deciding.hpp"
CHECKER = "src/checker.cpp"
CHANNEL = "src/channel.cpp"
COMPOSE = "src/compose.cpp"
CHECK = "src/check.cpp"
RUN = "src/check/run.cpp"
LOCKS = "src/check_locks.cpp"

MUTANTS = [
    either(
        "fp1",
        "no other process goes first before an operation of a thread",
        CALL,
        "points->pauses(p, yields)",
        "false",
    ),
    either(
        "fp2",
        "a yield of a thread is a point as any other",
        CALL,
        "points->pauses(p, «yields»)",
        "false",
    ),
    unless("fp3", "a thread's operation does not say that it begins", CALL, "points->begins(p);"),
    either(
        "fp4",
        "no other process goes first after an operation of a thread",
        CALL,
        "points->begun(p_, raised ? Begun::raised : Begun::done)",
        "false",
    ),
    either(
        "fp5",
        "an operation that raises counts as done",
        CALL,
        "const bool raised = «std::uncaught_exceptions() > leaving_»;",
        "false",
    ),
    either(
        "fp6",
        "an operation within the handling of an exception counts as one that raises",
        CALL,
        "leaving_ = «std::uncaught_exceptions()»;",
        "0",
    ),
    unless(
        "fp7",
        "an operation that waits does not say so",
        CALL,
        "if (!std::exchange(parked_, true)) «points->begun(p_, Begun::parked);»",
    ),
    either(
        "fp8",
        "an operation that has waited is told again as it ends",
        CALL,
        "!std::exchange(parked_, true)",
        "true",
    ),
    unless(
        "fp9",
        "a thread that lets others go first does not stop",
        CALL,
        "p.waits_in(&paused_op);\n    «points->parks(p);»",
    ),
    either(
        "fp11",
        "a thread's operation does not note its line",
        THREAD_CALL,
        "runtime::CheckedCall((«waits_at(p, at), p»), yields)",
        "p",
    ),
    either(
        "fp12",
        "a yield of a thread does not say that it yields",
        THREAD_CALL,
        "«yields») {}",
        "false",
    ),
    either(
        "fp13",
        "a thread's write arrives as a read",
        THREAD_CALL,
        "S == core::Side::in ? runtime::Access::read : runtime::Access::write",
        "runtime::Access::read",
    ),
    either(
        "fp14",
        "a thread that is not Weft's may use a channel of the check",
        THREAD_CALL,
        "place.in_check && !runtime::points",
        "false",
    ),
    unless(
        "fp15",
        "an operation that blocks in ordinary code is not refused",
        THREAD_CALL,
        "if (runtime::points) «return checked_caller(what);»",
    ),
    unless(
        "fp17",
        "the check does not learn that a foreign thread was refused",
        CHANNEL,
        "runtime::used_from_outside = true;",
    ),
    either(
        "fp19",
        "a thread process leaves the run as if it had a thread of its own",
        COMPOSE,
        "const bool has_thread = «!runtime::points»;",
        "true",
    ),
    either(
        "fp20",
        "no other process goes first before a thread closes its ends",
        COMPOSE,
        "runtime::points && runtime::points->ends_later(me)",
        "false",
    ),
    unless(
        "fp21",
        "a thread process does not say that it has ended",
        COMPOSE,
        "WEFT_POINT(ended(&group, how));",
    ),
    unless(
        "fp22",
        "a network in a thread process may have an executor of its own",
        COMPOSE,
        "const StartOf& start) {\n  «refuse_executors(o);»\n  const ThreadCall call",
    ),
    unless(
        "fp24",
        "a network in a thread process is not waited for",
        COMPOSE,
        "if (!all.begin()) «self.block(wait_op);»",
    ),
    either(
        "fp25",
        "a network in a thread process has a scheduler of its own",
        COMPOSE,
        "runtime::points && t->checked >= 0",
        "false",
    ),
    unless(
        "fp26",
        "a fibre that runs is still in the list of those that are free",
        CHECKER,
        "«idle_.pop_back();»\n  c.context = nullptr;",
    ),
    either(
        "fp28",
        "a thread process that goes on is not the current one",
        CHECKER,
        "if («c.context») {",
        "static_cast<Context*>(nullptr)",
    ),
    unless(
        "fp29",
        "a thread process that goes on has no context",
        CHECKER,
        "ThreadProcess::become(&p);\n    «this_context = c.context;»",
    ),
    unless(
        "fp31",
        "the context of a thread process stays when it waits",
        CHECKER,
        "this_context = outer_context;",
    ),
    unless(
        "fp32",
        "a thread process that waits forgets its context",
        CHECKER,
        "c.context = this_context;",
    ),
    either(
        "fp33",
        "a fibre handles the exceptions of the one before",
        FIBRE,
        "std::exchange(handling(), handled_)",
        "handling()",
    ),
    unless(
        "fp34",
        "a fibre that has left leaves its exceptions behind",
        FIBRE,
        "handled_ = std::exchange(handling(), mine);",
    ),
    unless(
        "fp36",
        "a fibre begins as the one that was entered first",
        FIBRE,
        "entered() = this;",
        "if (!entered()) entered() = this;",
    ),
    unless("fp37", "a lock that is never free is not refused", LOCKS, "points->stands_at_lock();"),
    unless(
        "fp38",
        "who stood aside and goes later is not in the list of ready processes",
        DECIDING,
        "links_.back() = &w->next;\n    ready_.back() = n;\n    «seen_ = queue.end();»",
        "ready_.pop_back(); links_.pop_back(); seen_ = queue.end();",
    ),
    unless(
        "fp39",
        "the list of ready processes keeps one that has left",
        DECIDING,
        "links_.pop_back();\n      ready_.pop_back();",
    ),
    either(
        "fp42",
        "a process that yields goes on first, as after any other operation",
        CHECKER,
        "yields ? Deciding::yields(*core::current_run_queue, &p, p.checked) : another_goes(p)",
        "another_goes(p)",
    ),
    unless(
        "fp43",
        "a process that polls goes on and on",
        RUN,
        "«goes_until(steps);»  // let_others_run() is called in the next decision",
    ),
    either(
        "fp44",
        "no time comes while the ready processes poll",
        RUN,
        "timer && idle_ >= kPolls * ready.size() && !ready.empty()",
        "false",
    ),
    either(
        "fp45",
        "with the grain park a process goes on and on",
        CHECKER,
        "run.has_gone_on_for_long()",
        "false",
    ),
    either(
        "fp46",
        "each operation counts as a poll",
        CHECKER,
        "run.begun(«of(p.checked).polls»);",
        "true",
    ),
    either(
        "fp47",
        "a time that came because of polls is no bound",
        CHECK,
        "r.polls_cut",
        "false",
    ),
    unless(
        "fp48",
        "a process goes on after 1,000 operations at once",
        RUN,
        "if (steps >= until_) let_others_run(ready);",
    ),
]


if __name__ == "__main__":
    sys.exit(run(__doc__, MUTANTS, SOURCES, FLAGS))
