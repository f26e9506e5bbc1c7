"""weft.compat.pycsp.common: plugNplay, toolkit and trace, each over the module of pycsp that was
imported last."""

from __future__ import annotations

import ast
import importlib
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from networks import implementations, load


@pytest.fixture(params=implementations())
def p(request: pytest.FixtureRequest) -> Any:
    module = load(request.param)
    for name in ("plugNplay", "toolkit", "trace"):
        sys.modules.pop(f"weft.compat.pycsp.common.{name}", None)
    yield module
    module.shutdown()


def common(name: str) -> Any:
    return importlib.import_module(f"weft.compat.pycsp.common.{name}")


def first(p: Any, count: int) -> Any:
    @p.process
    def first(cin: Any, *more: Any) -> list[Any]:
        got = [cin() for _ in range(count)]
        p.poison(cin, *more)
        return got

    return first


def test_fibonacci_by_plug_and_play(p: Any) -> None:
    play = common("plugNplay")
    a, b, c, d, out = p.Channel() * 5
    results = p.Parallel(
        play.Prefix(+b, -a, prefix=0),
        play.Prefix(+c, -b, prefix=1),
        play.Pairs(+d, -c),
        play.Delta2(+a, -d, -out),
        first(p, 12)(+out),
    )
    assert results[-1] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_the_other_plugs(p: Any) -> None:
    play = common("plugNplay")
    a, b, c, d, e = p.Channel() * 5
    results = p.Parallel(
        play.Prefix(+b, -a, prefix=0),
        play.Successor(+c, -b),
        play.Delta2(+a, -c, -d),
        play.Tail(+d, -e),
        first(p, 3)(+e),
        play.SkipProcess(),
    )
    assert results[-2] == [1, 2, 3]
    one, two, out, copied = p.Channel(buffer=1), p.Channel(buffer=1), p.Channel(), p.Channel()
    (-one)(1)
    (-two)(2)
    results = p.Parallel(
        play.Mux2(+one, +two, -out), play.Identity(+out, -copied), first(p, 2)(+copied, +one, +two)
    )
    assert sorted(results[-1]) == [1, 2]


def test_files_as_processes(p: Any, tmp_path: Path) -> None:
    toolkit = common("toolkit")
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("one\ntwo\n--\nlast")
    lines = p.Channel()
    p.Parallel(toolkit.file_r(-lines, str(source)), toolkit.file_w(+lines, str(target)))
    assert target.read_text() == "one\ntwo\n--\nlast"

    @p.process
    def pieces(cin: Any) -> list[Any]:
        got = []
        try:
            while True:
                got.append(cin())
        except p.ChannelRetireException:
            return got

    lines = p.Channel()
    results = p.Parallel(
        toolkit.file_r(-lines, io.StringIO(source.read_text()), sep="--"), pieces(+lines)
    )
    assert results[1] == [["one\n", "two\n", "--\n"], ["last"]]


def test_commands_as_processes(p: Any) -> None:
    toolkit = common("toolkit")
    assert toolkit.which("sh")
    assert toolkit.which("no such command") is None
    commands, words, out, errors = p.Channel(), p.Channel(), p.Channel(), p.Channel()

    @p.process
    def sender(words: Any) -> None:
        for w in (b"b\n", b"a\n"):
            words(w)
        p.retire(words)

    @p.process
    def ask(commands: Any, words: Any, out: Any, errors: Any) -> None:
        commands((["sh", "-c", "sort; echo oops >&2"], words, out, errors))
        p.retire(commands)

    @p.process
    def everything(cin: Any) -> Any:
        got = []
        try:
            while True:
                got += cin()
        except p.ChannelRetireException:
            return got

    results = p.Parallel(
        ask(-commands, +words, -out, -errors),
        toolkit.runner(+commands),
        sender(-words),
        everything(+out),
        everything(+errors),
    )
    assert results[3:] == [[b"a\n", b"b\n"], [b"oops\n"]]
    assert p.Parallel(toolkit.execute(["sh", "-c", "exit 3"])) == [3]
    with pytest.raises(OSError):
        p.Parallel(toolkit.execute(["no such command"]))


def test_a_trace_tells_what_happened(p: Any, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec("from weft.compat.pycsp.common.trace import *", names)
    t: Any = type("Names", (), {k: staticmethod(v) if callable(v) else v for k, v in names.items()})
    file = tmp_path / "trace"
    t.TraceInit(str(file), stdout=True)

    @t.process
    def source(out: Any) -> None:
        out(1)
        out.retire()

    @t.process
    def sink(cin: Any) -> None:
        alt = t.Alternation([{cin: lambda channel_input: t.TraceMsg(channel_input)}])
        alt.execute()
        cin()

    channel = t.Channel("traced")
    assert t.Parallel(source(-channel), [sink(+channel)]) == [None, None]
    t.Sequence(source(-t.Channel("more", buffer=1)))
    t.Spawn(source(-t.Channel(buffer=1)))
    p.shutdown()
    print("printed")
    t.TraceQuit()
    t.TraceMsg("after the end")
    events = [ast.literal_eval(line) for line in file.read_text().splitlines()]
    kinds = [e["type"] for e in events]
    assert kinds[:3] == ["Channel", "ChannelEndWrite", "ChannelEndRead"]
    assert kinds[-1] == "TraceQuit"
    for kind, count in (
        ("BlockOnParallel", 1),
        ("DoneParallel", 1),
        ("BlockOnSequence", 1),
        ("DoneSequence", 1),
        ("Spawn", 1),
        ("StartProcess", 4),
        ("QuitProcess", 4),
        ("BlockOnWrite", 3),
        ("DoneWrite", 3),
        ("BlockOnRead", 1),
        ("DoneRead", 0),
        ("Alternation", 1),
        ("BlockOnAlternation.execute", 1),
        ("DoneAlternation.execute", 1),
        ("Retire", 4),  # three sources, and the sink, which did not catch a retirement
        ("Msg", 1),
    ):
        assert kinds.count(kind) == count, kind
    done = events[kinds.index("DoneAlternation.execute")]
    assert done["guard"] == {"type": "ReadGuard", "chan_name": "traced"}
    started = next(e for e in events if e["type"] == "BlockOnParallel")
    assert [q["func_name"] for q in started["processes"]] == ["source", "sink"]
    assert any(e["type"] == "Output" and "printed" in e["msg"] for e in events)
    for select in (t.PriSelect, t.AltSelect, t.FairSelect):
        guard = t.SkipGuard()
        assert select([guard]) == (guard, None)
