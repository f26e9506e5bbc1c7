"""The mutants of the extension (mutants.py): what each mutant breaks, and the test that must notice
it.

`old` is in its file exactly once; line breaks and spaces do not matter. All mutants are in one
build, and one is turned on when the program runs. So `new` has one of three forms: statements in
place of statements; an expression in place of an expression; or any text with an `@` in it. Such a
text always replaces `old`, and its `@` is true if this mutant is on.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    what: str
    file: str
    old: str
    new: str
    killer: str  # FILE::NAME of a test, or FILE; one failed test is enough


OPERATION = "channels/operation.cpp"
CHANNEL = "channels/channel.cpp"
CHOICE = "choice/choice.cpp"

MUTANTS: dict[str, Mutant] = {
    # --- channels: what is checked before an operation begins
    "read-end": Mutant(
        "a read does not check that its end is open",
        OPERATION,
        'check_end(end_of(end), "read") < 0',
        "false",
        "test_references.py::test_wrong_calls_are_refused",
    ),
    "write-end": Mutant(
        "a write does not check that its end is open when it is called",
        OPERATION,
        'if (check_end(end_of(end), "write") < 0) return nullptr;\n'
        "  if (is_awaited_here()) return new_write(end, v);",
        "if (is_awaited_here()) return new_write(end, v);",
        "test_references.py::test_wrong_calls_are_refused",
    ),
    "begin-end": Mutant(
        "an operation does not check again that its end is open when it begins",
        OPERATION,
        "check_end(end_of(o.target), verb_of(o.type)) < 0",
        "false",
        "test_references.py::test_an_end_that_is_closed_before_its_operation_begins",
    ),
    "write-ref": Mutant(
        "a write takes no reference of its value",
        OPERATION,
        "slot.o = Py_NewRef(value);\n    return 0;",
        "slot.o = value;\n    return 0;",
        "test_references.py::test_a_value_is_held_while_it_waits",
    ),
    "write-leak": Mutant(
        "a write takes two references of its value",
        OPERATION,
        "slot.o = Py_NewRef(value);\n    return 0;",
        "Py_INCREF(value);\n    slot.o = Py_NewRef(value);\n    return 0;",
        "test_versions.py::test_a_value_is_let_go_when_its_receiver_lets_it_go",
    ),
    "target-leak": Mutant(
        "an operation keeps its end for ever",
        OPERATION,
        "const Owned target(o->what.target);",
        "const Owned target(@ ? nullptr : o->what.target);",
        "test_references.py::test_an_end_goes_with_its_operation",
    ),
    "value-leak": Mutant(
        "an operation that is dropped keeps what it was to write",
        OPERATION,
        "Owned value(o->value.take());",
        "Owned value(@ ? (o->value.take(), nullptr) : o->value.take());",
        "test_references.py::test_an_operation_that_is_dropped_lets_go_of_its_value",
    ),
    "cancelled-first": Mutant(
        "an operation of a cancelled process is begun",
        OPERATION,
        "way.cancelled()",
        "false && way.cancelled()",
        "test_cancel.py",
    ),
    "never-awaited": Mutant(
        "there is no warning of an operation that is never awaited",
        OPERATION,
        "[[unlikely]]\n    warn_never_awaited(o);",
        "[[unlikely]] {\n    if (!@) warn_never_awaited(o);\n  }",
        "test_references.py::test_an_operation_that_nobody_awaits_says_so",
    ),
    "transit-lost": Mutant(
        "an end that was written stays open here",
        OPERATION,
        "take_transit(o, way.slot()).commit();",
        "take_transit(o, way.slot());",
        "test_received_ends.py",
    ),
    "refused-transit": Mutant(
        "an end that could not be written does not come back",
        OPERATION,
        "t.abandon(value.release());\n      value = std::move(original);",
        "static_cast<void>(value.release());\n      value = std::move(original);",
        "test_references.py::test_what_could_not_be_written_comes_back",
    ),
    "refused-value": Mutant(
        "the exception does not carry what a write was to send",
        OPERATION,
        "value.reset(unsent(way.slot().take()));",
        "Owned(unsent(way.slot().take())).reset();",
        "test_references.py::test_what_could_not_be_written_comes_back",
    ),
    "next-ends": Mutant(
        "iteration raises Retired at its end",
        OPERATION,
        "s == Status::retired && o.type == OpType_::next",
        "false",
        "test_channels.py",
    ),
    "barrier-empty": Mutant(
        "a sync on a barrier with nobody enrolled begins",
        OPERATION,
        "b.enrolled() == 0",
        "false",
        "test_references.py::test_wrong_calls_are_refused",
    ),
    "name-type": Mutant(
        "a channel's name may be anything",
        CHANNEL,
        "!PyUnicode_Check(name)",
        "false",
        "test_mistakes.py",
    ),
    "name-empty": Mutant(
        "a channel's name may be empty",
        CHANNEL,
        "PyUnicode_GET_LENGTH(name) == 0",
        "false",
        "test_references.py::test_wrong_calls_are_refused",
    ),
    "drop-no-buffer": Mutant(
        "a channel without a buffer may drop",
        CHANNEL,
        "to.capacity > 0 ||",
        "@ || to.capacity > 0 ||",
        "test_references.py::test_wrong_calls_are_refused",
    ),
    "immunity": Mutant(
        "a channel forgets its immunity",
        CHANNEL,
        "c->core.set_immunity(static_cast<std::uint8_t>(w.immunity));",
        ";",
        "test_references.py::test_a_channel_ignores_a_weak_poison",
    ),
    "channel-name-leak": Mutant(
        "a channel's name is leaked",
        CHANNEL,
        "c->core.~Engine();\n  Py_XDECREF(c->name);",
        "c->core.~Engine();",
        "test_references.py::test_a_channel_lets_go_of_its_name",
    ),
    "dropped-end": Mutant(
        "an end that is dropped is not retired",
        CHANNEL,
        "e->state == EndState::open && !only_one",
        "false",
        "test_extension_guards.py::test_an_end_that_is_dropped_is_retired",
    ),
    "stats-side": Mutant(
        "statistics take readers for writers",
        CHANNEL,
        "c.reader_ends(), c.writer_ends(), r,",
        "@ ? c.writer_ends() : c.reader_ends(), @ ? c.reader_ends() : c.writer_ends(), r,",
        "test_references.py::test_figures_are_of_their_side",
    ),
    "strength": Mutant(
        "the strength of a poison is not checked",
        CHANNEL,
        'whole_number(args[0], what.c_str(), "from 1 to 255", 1, 255, s)',
        'whole_number(args[0], what.c_str(), "from 1 to 255", 0, 1000, s)',
        "test_extension_guards.py::test_the_strength_of_a_poison_is_looked_at",
    ),
    "extended-never": Mutant(
        "there is no warning of an extended read that is never entered",
        "channels/extended.cpp",
        "!ext(o)->entered",
        "false",
        "test_extension_guards.py::test_an_extended_read_that_nobody_enters_says_so",
    ),
    "held-twice": Mutant(
        "an end that two processes hold is closed by the first that ends",
        "channels/held.cpp",
        "--e->holders == 0",
        "(--e->holders, true)",
        "test_extension_guards.py::test_an_end_stays_open_while_another_process_holds_it",
    ),
    "received-kept": Mutant(
        "a process keeps the ends that it has received",
        "channels/held.cpp",
        "if (is_held(e) && std::none_of(",
        "if (!@ && is_held(e) && std::none_of(",
        "test_received_ends.py",
    ),
    "returned-closed": Mutant(
        "an end that a process returns is closed",
        "channels/held.cpp",
        "[e](const auto& one) { return one == e; }",
        "[e](const auto& one) { return !@ && one == e; }",
        "test_received_ends.py",
    ),
    "poison-held": Mutant(
        "a poison is not passed on to the ends that its process holds",
        "channels/held.cpp",
        "p->held[i]->channel->core.poison(strength);",
        ";",
        "test_extension_guards.py::test_poison_goes_on_to_what_its_process_holds",
    ),
    "many-most": Mutant(
        "read_many takes one more than it may",
        "channels/many.cpp",
        "n < most && end_of(reader)->state == EndState::open",
        "n <= most && end_of(reader)->state == EndState::open",
        "test_extension_guards.py::test_read_many_takes_no_more_than_it_may",
    ),
    # --- choice
    "silent-kind": Mutant(
        "a bare writer is refused with the message for any other object",
        CHOICE,
        "if (is_writer(o))\n      bad_use(",
        "if (!@ && is_writer(o))\n      bad_use(",
        "test_extension_guards.py::test_a_guard_that_is_a_bare_writer",
    ),
    "both-ends": Mutant(
        "a choice may have both ends of a channel",
        CHOICE,
        "raise_fault(core::find_fault(guards_.get(), n_), verb) < 0",
        "false",
        "test_choice.py",
    ),
    "no-guard-on": Mutant(
        "a choice with no guard on begins",
        CHOICE,
        "enabled_ == 0",
        "false",
        "test_choice.py",
    ),
    "loud": Mutant(
        "a choice forgets that its guards are loud",
        CHOICE,
        "if (loud) guards_[i].ends = true;",
        ";",
        "test_extension_guards.py::test_a_select_may_be_loud_as_a_whole",
    ),
    "never-early": Mutant(
        "a tick that is late counts as one",
        CHOICE,
        "now < t->next ? 1 : 1 + (now - t->next) / t->period",
        "1",
        "test_references.py::test_ticks_that_were_missed_are_counted",
    ),
    "index": Mutant(
        "the exception of a choice does not say which guard it is of",
        CHOICE,
        'raise_end(status, c, "select", index, unsent);',
        'raise_end(status, c, "select", -1, unsent);',
        "test_choice.py",
    ),
    "select-leak": Mutant(
        "a choice keeps its guards",
        CHOICE,
        "for (PyObject* o : owners_) Py_XDECREF(o);",
        ";",
        "test_references.py::test_a_choice_lets_go_of_its_guards",
    ),
    "sent-leak": Mutant(
        "a choice keeps the values of its outputs",
        CHOICE,
        "for (PyObject* o : sent_) Py_XDECREF(o);",
        ";",
        "test_references.py::test_a_choice_lets_go_of_its_guards",
    ),
    "closed-alternative": Mutant(
        "a closed alternative is switched",
        "choice/alternative.cpp",
        '!alt_of(o)->choice) return bad_use("enable',
        '!@ && !alt_of(o)->choice) return bad_use("enable',
        "test_references.py::test_wrong_calls_are_refused",
    ),
    "nan": Mutant(
        "nan is a time",
        "choice/time.cpp",
        "std::isnan(s)",
        "false",
        "test_extension_guards.py::test_nan_is_no_time",
    ),
    "early": Mutant(
        "a time is rounded down",
        "choice/time.cpp",
        "std::ceil(s * 1e9)",
        "std::floor(s * 1e9)",
        "test_references.py::test_no_time_is_rounded_down",
    ),
    # --- processes
    "started-twice": Mutant(
        "a process may be started twice",
        "processes/process.cpp",
        "!before && inherit_context(p)",
        "inherit_context(p)",
        "test_composition.py",
    ),
    "claimed-kept": Mutant(
        "a refused list of processes keeps those before the wrong one claimed",
        "processes/process.cpp",
        "k < (before ? i : i + 1)",
        "k < 0",
        "test_composition.py",
    ),
    "context": Mutant(
        "a process does not inherit the context",
        "processes/process.cpp",
        "if (n > 0) p->context = PyContext_CopyCurrent();\n  return n == 0 || p->context;",
        "return true;",
        "test_extension_guards.py::test_a_process_inherits_the_context",
    ),
    "failure-quiet": Mutant(
        "a failure is taken for a quiet end",
        "processes/process.cpp",
        "p->how = Ending::failed;\n    if (!p->guest)",
        "p->how = @ ? Ending::cancelled : Ending::failed;\n    if (!p->guest)",
        "test_composition.py",
    ),
    "coroutine-returned": Mutant(
        "a plain process may return a coroutine",
        "processes/process.cpp",
        "!r || !PyCoro_CheckExact(r)",
        "true",
        "test_extension_guards.py::test_a_plain_process_returns_no_coroutine",
    ),
    "ends-in-sets": Mutant(
        "the ends in a set that is an argument are not held",
        "processes/function.cpp",
        "} else if (look_into_set(o, size) < 0) {",
        "} else if (!@ && look_into_set(o, size) < 0) {",
        "test_extension_guards.py::test_the_ends_in_a_set_are_held",
    ),
    "one-failure": Mutant(
        "a single failure is raised in a group",
        "processes/group.cpp",
        "PyList_GET_SIZE(list.get()) == 1",
        "false",
        "test_composition.py",
    ),
    "limit-order": Mutant(
        "an outer timeout may be left before the inner one",
        "processes/limit.cpp",
        "l->limit.lent() || !l->limit.innermost(*owner())",
        "false",
        "test_extension_guards.py::test_the_inner_timeout_is_left_first",
    ),
    "limit-others": Mutant(
        "a timeout takes another timeout's Cancelled for its own",
        "processes/limit.cpp",
        "l->mine = by == o;",
        "l->mine = by != nullptr;",
        "test_limits.py",
    ),
    "io-stop": Mutant(
        "a StopIteration of an io call looks like its result",
        "processes/io.cpp",
        "PyErr_ExceptionMatches(PyExc_StopIteration)) {",
        "!@ && PyErr_ExceptionMatches(PyExc_StopIteration)) {",
        "test_io.py",
    ),
    # --- components, watching, the wire, the interpreter
    "checked-component-unheld": Mutant(
        "a checked coroutine of a component is started and not held",
        "components/component_checked.cpp",
        "Py_INCREF(reinterpret_cast<PyObject*>(p));",
        ";",
        "test_checking_components.py::test_a_check_gives_back_each_component_process_that_a_run_has_taken",
    ),
    "able": Mutant(
        "a process that waits for children is taken for stuck",
        "rounds/partial.cpp",
        'one.state = "children";',
        'one.state = "places";',
        "test_stuck.py",
    ),
    "token-twice": Mutant(
        "a token that is closed is entered",
        "interpreter/outside.cpp",
        "if (!is_open(self_of(o)))\n    return bad_use",
        "if (!@ && !is_open(self_of(o)))\n    return bad_use",
        "test_outside.py",
    ),
    "later-retired": Mutant(
        "a writer end that is dropped and is to be retired later never is",
        "interpreter/pending.cpp",
        "r.channel->core.drop_writer();",
        ";",
        "test_extension_guards.py::test_an_end_that_is_dropped_is_retired",
    ),
    "plain-bytes": Mutant(
        "a small number loses its second byte on the wire",
        "wire/plain.cpp",
        "PyLong_FromLong(static_cast<long>(number(3, 2)))",
        "PyLong_FromLong(static_cast<long>(number(3, 1)))",
        "test_processes_values.py",
    ),
    "far-owner": Mutant(
        "a writer end in another program is not counted",
        "wire/far_channel.cpp",
        "c->core.another_writer();",
        ";",
        "test_ends_abroad.py",
    ),
    "given-away": Mutant(
        "an array that a view refers to is given away",
        "wire/places.cpp",
        "if (Py_REFCNT(base.get()) != 2) return {};",
        ";",
        "test_processes_given_away.py::test_who_has_another_reference_keeps_the_array",
    ),
    "given-away-call": Mutant(
        "an array that a tuple of arguments refers to is given away",
        "wire/places.cpp",
        "if (by_writer != 1 && !moves_now && !is_called_plainly()) return false;",
        ";",
        "test_processes_given_away.py::test_who_has_another_reference_keeps_the_array",
    ),
}
