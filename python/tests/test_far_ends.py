"""Channels between OS processes, as a look sees them (rule 14.10). The answers are made up."""

from __future__ import annotations

from typing import Any

from weft._watching import far_ends as _far_ends


def _process(holds: list[Any], **more: Any) -> dict[str, Any]:
    one = {"kind": "thread", "now": "due", "share": {"due": 1.0}, "for": 1.0, "waits": []}
    return {**one, "does": "read 'c' at x.py:3", "holds": holds, **more}


def _answer(*processes: dict[str, Any]) -> dict[str, Any]:
    keys = {key for one in processes for key, _ in one["holds"]}
    channels = {key: {"name": key[0], "reading": 0.0, "writing": 0.0} for key in keys}
    return {"processes": list(processes), "channels": channels, "seconds": 1.0}


def test_which_channels_lead_from_one_os_process_to_another() -> None:
    """`a` leads from 1 to 2. Each of the two has its own channel `b`. Only 1 has `c`."""
    one = _answer(_process([["a1", True], ["b1", True], ["b1", False], ["c1", True]]))
    two = _answer(_process([["a2", False], ["b2", True], ["b2", False]]))
    assert _far_ends.in_many({1: one, 2: two}) == {"a"}
    # A channel that has both sides in one OS process, and one side in another as well.
    both = _answer(_process([["a2", False], ["a2", True]]))
    assert _far_ends.in_many({1: one, 2: both}) == {"a"}


def test_a_thread_that_waits_for_a_channel_elsewhere_waits() -> None:
    reads = _process([["c1", False], ["d1", True]])
    writes = _process([["c1", True]], does="write 'c' at x.py:3")
    extended = _process([["c1", False]], does="extended read 'c' at x.py:3")
    answer = _answer(reads, writes, extended)
    _far_ends.count_as_waits(answer)
    assert [(one["now"], one["share"], one["waits"]) for one in answer["processes"]] == [
        ("reads", {"reads": 1.0}, [["c1", False]]),
        ("writes", {"writes": 1.0}, [["c1", True]]),
        ("reads", {"reads": 1.0}, [["c1", False]]),
    ]
    channels = answer["channels"]
    assert [channels[key]["reading"] for key in ("c1", "d1")] == [1.0, 0.0]
    assert channels["c1"]["writing"] == 1.0


def test_where_an_os_process_is_calm_each_moment_counts() -> None:
    """The answers of hosts tell how much the OS process computes."""
    now_due = _process([["c1", False]], share={"due": 0.8, "runs": 0.2})
    now_runs = _process([["d1", True]], now="runs", share={"due": 0.3, "writes": 0.7}, does="")
    both = _process([["e1", True], ["f1", False]], now="runs", share={"due": 1.0}, does="")
    answer = {**_answer(now_due, now_runs, both), "os": {"cpu": 0.1}}
    _far_ends.count_as_waits(answer)
    assert [(one["now"], one["share"]) for one in answer["processes"]] == [
        ("reads", {"runs": 0.2, "reads": 0.8}),
        ("runs", {"writes": 1.0}),
        ("runs", {"due": 1.0}),  # it is unknown at which of its two ends the process waited
    ]
    assert answer["channels"]["c1"]["reading"] == 0.8


def test_whoever_was_let_go_on_is_due() -> None:
    """A coroutine that waits for its scheduler is due, and so is a thread that has done more than
    wait."""
    for more in (
        {"kind": "coroutine"},
        {"for": 0.5},
        {"share": {"due": 0.8, "runs": 0.2}},
        {"does": "sleep at x.py:3"},
    ):
        answer = _answer(_process([["c1", False]], **more))
        _far_ends.count_as_waits(answer)
        assert answer["processes"][0]["now"] == "due" and not answer["processes"][0]["waits"]
