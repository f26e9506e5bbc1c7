"""Is the reduced search of `weft check` right (rule 17.7)? These tests run a slice of
conformance/checking.py and conformance/commuting.py; the soak runs 2,000 networks and all small states.
"""

from __future__ import annotations

import functools

import pytest

from conformance.checking import GROUPS, compare
from conformance.commuting import ACCESSES, Entry, look, needed, table

#: The entries that some pair of steps needs already before anything else has happened.
NEEDED = [
    ("read", "read"),
    ("read", "choice"),
    ("write", "write"),
    ("write", "choice"),
    ("choice", "choice"),
    ("choice", "choose_read"),
    ("choice", "choose_write"),
    ("choice", "close"),
    ("choice", "all"),
    ("close", "make"),
    ("close_other", "make"),
    ("make", "all"),
]
NEEDED_AT_BUFFERS = [
    ("write", "close"),
    ("write", "all"),
    ("choose_write", "close"),
    ("choose_write", "all"),
]


@functools.cache
def at_the_beginning() -> set[Entry]:
    looked = look(table, depth=0)
    assert [example for saying, example in looked.differing if not saying] == []
    assert looked.pairs > 1000
    return needed(looked)


@pytest.mark.parametrize(
    "entry",
    [(*pair, buffered) for pair in NEEDED for buffered in (False, True)]
    + [(*pair, True) for pair in NEEDED_AT_BUFFERS]
    + [("write", "quiet_choice", False)],
    ids=lambda entry: f"{entry[0]}-{entry[1]}{'-buffered' if entry[2] else ''}",
)
def test_each_entry_that_is_made_wrong_is_found(entry: Entry) -> None:
    """Some pair of steps differs by its order, and only this entry says that the two steps
    conflict."""
    assert entry in at_the_beginning()


def test_the_table_says_of_all_pairs_that_differ_that_they_conflict() -> None:
    """The same in some of the states after one step."""
    looked = look(table, depth=1, sample=2, seed=1)
    assert looked.pairs > 1500
    assert [example for saying, example in looked.differing if not saying] == []


def test_a_table_that_is_wrong_is_noticed() -> None:
    """The comparison can fail."""
    looked = look(
        lambda a, b, buffered: (a, b) != ("read", "read") and table(a, b, buffered), depth=0
    )
    assert any(not saying for saying, _ in looked.differing)
    assert "read" in ACCESSES


@pytest.mark.parametrize("seed", range(18))
def test_the_reduced_search_has_the_outcomes_of_all_schedules_and_no_others(seed: int) -> None:
    """Random networks of each group of features; a network with too many schedules shows
    nothing."""
    times, features = GROUPS[seed % len(GROUPS)]
    compared = compare(
        seed, features, size=2, times=times, most=600, seconds=2.0, model=times == "quiet"
    )
    assert compared.wrong == ""


def test_some_of_these_networks_are_compared() -> None:
    compared = [
        compare(seed, GROUPS[seed % len(GROUPS)][1], size=2, most=600, seconds=2.0).all
        for seed in range(6)
    ]
    assert len([x for x in compared if x is not None]) >= 2
