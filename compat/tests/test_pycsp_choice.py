"""weft.compat.pycsp: Alternation and the selects, with their actions, over each backend."""

from __future__ import annotations

from typing import Any

import pytest

# ------------------------------------------------------------------------------------------ choice


def feed(p: Any, values: Any) -> Any:
    """Returns the reading end of a buffered channel that holds `values`."""
    channel = p.Channel(buffer=len(values) + 1)
    cout = channel.writer()
    for v in values:
        cout(v)
    return channel.reader()


def test_selects_give_the_end_and_the_value(p: Any) -> None:
    cin, empty = feed(p, [5]), p.Channel().reader()
    assert p.PriSelect(p.InputGuard(empty), p.InputGuard(cin)) == (cin, 5)
    skip = p.SkipGuard()
    assert p.AltSelect([p.InputGuard(empty), skip]) == (skip, None)
    channel = p.Channel(buffer=1)
    cout = channel.writer()
    assert p.FairSelect(p.OutputGuard(cout, 9)) == (cout, None)
    assert channel.reader()() == 9


def test_priority_and_fairness(p: Any) -> None:
    a, b = feed(p, range(10)), feed(p, range(10))
    assert [p.PriSelect(p.InputGuard(a), p.InputGuard(b))[0] is a for _ in range(6)] == [True] * 6
    a, b = feed(p, range(10)), feed(p, range(10))
    got = [p.FairSelect(p.InputGuard(a), p.InputGuard(b))[0] is a for _ in range(6)]
    assert got in ([True, False] * 3, [False, True] * 3)
    skip = p.SkipGuard()
    assert p.PriSelect(skip, p.InputGuard(a))[0] is skip


def test_forms_of_guards(p: Any) -> None:
    channel = p.Channel(buffer=4)
    cout, cin = channel.writer(), feed(p, "abcd")
    never = p.Channel().reader()
    done: list[Any] = []

    def got(channel_input: Any) -> None:
        done.append(channel_input)

    p.Alternation([{cin: got, never: None}]).execute()
    p.Alternation([(cin, got)]).execute()
    p.Alternation([(cout, 1, lambda: done.append("wrote"))]).execute()
    p.Alternation([{(cout, 2): None}]).execute()
    p.Alternation([((cout, 3), None)]).execute()
    assert p.Alternation([(cin, got)], ensurePriority=True).select() == (
        cin,
        "c",
    )  # select calls no action
    assert done == ["a", "b", "wrote"]
    assert [(+channel)() for _ in range(3)] == [1, 2, 3]


def test_choice_actions(p: Any) -> None:
    done: list[Any] = []

    @p.choice
    def action(what: str, channel_input: Any = None) -> None:
        """Appends its arguments to `done`."""
        done.append((what, channel_input))

    assert action.__name__ == "action"
    cin, channel = feed(p, [1, 2]), p.Channel(buffer=2)
    guard = p.InputGuard(cin, action=action("in"))
    p.PriSelect(guard)
    p.PriSelect(guard)
    p.PriSelect(p.OutputGuard(channel.writer(), 3, action=action("out")))
    p.PriSelect(p.SkipGuard(action=action("skip")))
    p.PriSelect(p.TimeoutGuard(seconds=0, action=action("late")))
    assert done == [("in", 1), ("in", 2), ("out", None), ("skip", None), ("late", None)]
    with pytest.raises(p.InfoException, match="not instantiated"):
        p.InputGuard(cin, action=action)


def test_a_timeout_guard_keeps_working(p: Any) -> None:
    never = p.Channel().reader()
    late = p.TimeoutGuard(seconds=0.001)
    alt = p.Alternation([{never: None}, {late: None}])
    assert [alt.select() for _ in range(3)] == [(late, None)] * 3
    assert p.AltSelect(p.InputGuard(never), late) == (late, None)


GOT: list[Any] = []


def test_a_string_is_executed_where_execute_is_called(p: Any) -> None:
    outward, back = p.Channel(), p.Channel()
    got: list[Any] = []
    GOT.clear()

    @p.process
    def partner(cout: Any, cin: Any) -> int:
        cout(1)
        cout(2)
        return cin()  # type: ignore[no-any-return]

    @p.process
    def chooser(cin: Any, cout: Any, got: list[Any]) -> None:
        alt = p.Alternation([{cin: "got.append(channel_input); GOT.append(got)"}])
        alt.execute()
        assert alt.select() == (cin, 2)  # select calls no action
        p.Alternation([{(cout, 3): "got.append('written')"}]).execute()
        p.Alternation([{p.SkipGuard(): "got.append('skipped')"}]).execute()

    assert (
        p.Parallel(
            partner(outward.writer(), back.reader()), chooser(outward.reader(), back.writer(), got)
        )[0]
        == 3
    )
    assert got == [1, "written", "skipped"]
    assert [got] == GOT


@pytest.mark.parametrize("name", ["PriSelect", "AltSelect", "FairSelect"])
def test_a_string_is_executed_where_the_select_is_called(p: Any, name: str) -> None:
    got: list[Any] = []
    select = getattr(p, name)
    select(p.SkipGuard(action="got.append('skip')"))
    select(p.TimeoutGuard(seconds=0, action="got.append('late')"))
    select([p.SkipGuard(action="got.append('in a list')")])
    assert got == ["skip", "late", "in a list"]


def test_a_string_at_the_top_of_a_program_may_assign(p: Any) -> None:
    names: dict[str, Any] = {"__name__": "program", "p": p}
    exec("p.PriSelect(p.SkipGuard(action='x = 42'))", names)
    assert names["x"] == 42


def test_a_string_is_executed_further_out_if_that_is_asked_for(p: Any) -> None:
    def helper() -> None:
        got = ["the helper's"]
        alt = p.Alternation([{p.SkipGuard(): "got.append(1)"}])
        alt._set_execute_frame(-2)
        alt.execute()
        assert got == ["the helper's"]

    got: list[Any] = []
    helper()
    assert got == [1]


def test_what_a_string_raises_is_raised_and_names_the_line(p: Any) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        p.PriSelect(p.SkipGuard(action="1 / 0"))
    assert "test_pycsp_choice.py line" in str(raised.traceback[-1].path)
    with pytest.raises(SyntaxError, match="in string"):
        p.PriSelect(p.SkipGuard(action="this is no Python"))


def test_what_cannot_be_called_is_no_action(p: Any) -> None:
    with pytest.raises(p.InfoException, match="must be callable"):
        p.SkipGuard(action=3)


def test_bad_guards_are_refused(p: Any) -> None:
    channel = p.Channel()
    cin, cout = channel.reader(), channel.writer()
    for make in (
        lambda: p.InputGuard(cout),
        lambda: p.InputGuard(channel),
        lambda: p.OutputGuard(cin, 1),
        lambda: p.Alternation([cin]),
        lambda: p.Alternation([{cout: None}]),
        lambda: p.PriSelect(cin),
    ):
        with pytest.raises(p.InfoException):
            make()


def test_a_select_at_an_ended_channel_raises(p: Any) -> None:
    channel = p.Channel()
    cin, other = channel.reader(), channel.reader()
    cout = channel.writer()
    other.retire()
    with pytest.raises(p.ChannelRetireException):
        p.AltSelect(p.InputGuard(other))
    cout.retire()
    with pytest.raises(p.ChannelRetireException):
        p.AltSelect(p.InputGuard(cin))


def test_select_meets_select(p: Any) -> None:
    a, b = p.Channel(), p.Channel()

    @p.process
    def side(cin: Any, cout: Any) -> Any:
        got = 0
        for i in range(50):
            _, value = p.Alternation([{(cout, i): None}, {cin: None}]).select()
            got += value is not None
        return got

    assert sum(p.Parallel(side(+a, -b), side(+b, -a))) == 50  # two selects that meet pass one value
