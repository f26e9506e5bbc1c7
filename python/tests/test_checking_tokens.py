"""Tokens of schedules and options of a check: which of them are accepted, and how all others are
refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import BadUse
from weft._checking import options as _options
from weft._checking.tokens import ByNumber, Deviation, parse, sentence, text

_names = st.text(min_size=1, max_size=8).filter(lambda name: "/" not in name)
_parts = st.builds(
    lambda n, i: n if i is None else f"{n}[{i}]", _names, st.none() | st.integers(0, 99)
)
_paths = st.builds(
    lambda parts: "main/" + "/".join(parts), st.lists(_parts, min_size=1, max_size=3)
)
_odd_paths = st.sampled_from(
    ["main", "main[3]", "main/main", "main/main[2]/a", "other/a", "…/a[1]", "x"]
)
_any_path = _paths | _odd_paths
_steps = st.integers(0, 10_000)
_deviations = st.lists(
    st.builds(Deviation, _any_path, _steps, st.just("go"), _any_path, st.just(0))
    | st.builds(Deviation, _any_path, _steps, st.just("time"), st.just(""), st.just(0))
    | st.builds(
        Deviation,
        _any_path,
        _steps,
        st.sampled_from(["guard", "fault"]),
        st.integers(0, 20),
        st.integers(0, 5),
    ),
    max_size=5,
)


@given(_deviations)
def test_a_token_is_read_as_it_was_written(deviations: list[Deviation]) -> None:
    """Rule 17.8: a token names each deviation by process and step."""
    token = text(deviations)
    assert parse(token) == deviations
    assert text(parse(token)) == token  # type: ignore[arg-type]


@given(_deviations)
def test_a_token_needs_no_quotes_in_a_shell(deviations: list[Deviation]) -> None:
    assert not set(text(deviations)) & set(" \t\n'\"`$&|;<>()[]{}*?!#\\~^"), text(deviations)


def test_how_tokens_look() -> None:
    one = Deviation("main/hop[3]", 3, "go", "main/locker[1]")
    assert text([one]) == "w1:hop.3@3=locker.1"
    assert text([one, Deviation("main/merge", 2, "guard", 1)]) == "w1:hop.3@3=locker.1,merge@2+1"
    assert text([Deviation("main/a", 4, "time", "")]) == "w1:a@4="
    assert text([Deviation("main/a/b[1]", 3, "fault", 1)]) == "w1:a/b.1@3:1"
    assert text([Deviation("main/a", 3, "guard", 1, 2)]) == "w1:a@3.3+1"
    assert text([Deviation("main/a", 3, "fault", 1, 1)]) == "w1:a@3.2:1"
    assert text([]) == "w1" and parse("w1") == [] and parse("w1-0") == []


def test_numbers_are_accepted() -> None:
    assert parse("w1-31.2-40.1") == [ByNumber(31, 2), ByNumber(40, 1)]


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("", "is not a token"),
        ("hello", "is not a token"),
        ("w", "is not a token"),
        ("w1x", "is not a token"),
        ("w2:clerk@3=van", "another version"),
        ("w12-31.2", "another version"),
        ("w1:", "not a whole token"),
        ("w1:clerk", "not a whole token: 'clerk'"),
        ("w1:clerk@", "not a whole token: 'clerk@'"),
        ("w1:clerk@3", "not a whole token: 'clerk@3'"),
        ("w1:clerk@3=van,mer", "not a whole token: 'mer'"),
        ("w1:clerk@3=van,", "not a whole token"),
        ("w1:@3=van", "not a whole token"),
        ("w1:merge@2+", "not a whole token"),
        ("w1-31", "not a whole token: '31'"),
        ("w1-31.2-", "not a whole token"),
        ("w1-40.1-31.2", "must increase"),
    ],
)
def test_what_is_no_token_is_named(token: str, says: str) -> None:
    """Rule 17.8: half a token, a token of another version, another text: each is refused with a
    sentence."""
    with pytest.raises(BadUse, match=says) as error:
        parse(token)
    assert "\n" not in str(error.value)


def test_a_deviation_is_said_in_words() -> None:
    sentences = [
        sentence(Deviation("main/a", 3, "go", "main/b")),
        sentence(Deviation("main/a", 3, "time", "")),
        sentence(Deviation("main/a", 3, "guard", 1)),
        sentence(Deviation("main/a", 3, "fault", 1)),
        sentence(Deviation("main/a", 3, "guard", 1, 2)),
    ]
    assert sentences[0] == "after step 3 of main/a, main/b goes first"
    assert len(set(sentences)) == 5 and all("main/a" in sentence for sentence in sentences)


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"secnds": 1}, "no option 'secnds'; did you mean 'seconds'"),
        ({"seconds": 0}, "seconds=0: give a number of seconds above 0"),
        ({"seconds": float("inf")}, "seconds=inf"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"seconds": True}, "seconds=True"),
        ({"seconds": "2"}, "seconds='2'"),
        ({"schedules": 0}, "schedules=0"),
        ({"schedules": 1.5}, "schedules=1.5"),
        ({"search": "dpor"}, "no such search"),
        ({"search": "wlk"}, "did you mean 'walk'"),
        ({"time": "anytime"}, "did you mean 'any'"),
        ({"grain": "fine"}, "no such grain"),
        ({"jobs": 0}, "jobs=0"),
        ({"seed": -1}, "seed=-1"),
        ({"same": "yes"}, "write True or False"),
        ({"faults": "kil:1"}, "did you mean 'kill'"),
        ({"faults": "kill:x"}, "write kill:N"),
        ({"faults": "kill:0"}, "write kill:N"),
        ({"faults": "slow:2"}, "has no number"),
        ({"faults": 3}, "write a text"),
        ({"faults": "delay", "grain": "park"}, "use grain='operation'"),
        ({"stub": "send"}, "a module must stand before it"),
        ({"stub": "no_such_module.f"}, "no module of that name"),
        ({"stub": "os.no_such_function"}, "os has no function no_such_function"),
    ],
)
def test_an_option_that_cannot_be_is_named(given: dict[str, object], says: str) -> None:
    with pytest.raises(BadUse, match=says):
        _options.options(**given)


def test_faults_are_read_and_said() -> None:
    faults = _options.parse_faults("kill:2, delay,slow")
    assert faults == _options.Faults(kill=2, delay=True, slow=True)
    assert str(faults) == "kill:2,delay,slow" and _options.parse_faults("kill").kill == 1
    assert not _options.parse_faults("") and str(_options.Faults()) == ""
