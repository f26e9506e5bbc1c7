#!/usr/bin/env python3
"""Bad use that the compiler finds says what to do: each case below must fail to compile with its message, under g++ and clang++.

Every case is a function of one source, which is compiled once (-fsyntax-only, no limit on errors): a case has passed if its message is
among the errors that name its lines. One function is correct, and no error may name it. Last line: `N passed, N failed`.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"

# What is wrong, the statement, and what the compiler must say ("" : nothing, it is correct).
CASES = [
    (
        "a correct network",
        "weft::par{pnp::identity<int>(a, b), pnp::black_hole<int>(b), copy(a.reader(), b.writer())}();",
        "",
    ),
    (
        "a read of a writer end",
        "a.writer().read();",
        "this is a writer end, it cannot read: take a reader end",
    ),
    (
        "a write to a reader end",
        "a.reader().write(1);",
        "this is a reader end, it cannot write: take a writer end",
    ),
    (
        "a write of another type",
        'a.writer().write(std::string("x"));',
        "this value cannot be written to this channel",
    ),
    (
        "a call with another type",
        'a.writer()(std::string("x"));',
        "this value cannot be written to this channel",
    ),
    (
        "a copy of a mobile into a channel",
        "weft::Channel<weft::Mobile<int>> c; auto m = weft::make_mobile<int>(1); c.writer().write(m);",
        "say write(std::move(value))",
    ),
    ("a select over nothing", "(void)weft::select();", "select needs at least one guard"),
    (
        "a select over a writer",
        "auto w = a.writer(); (void)weft::select(w);",
        "a writer end becomes one by out(writer, value)",
    ),
    (
        "a thread on a local channel",
        "weft::Channel<int, weft::Local> c; c.reader()();",
        "a channel that threads use must be weft::Shared",
    ),
    (
        "an alternative that sends once",
        "auto w = s.writer(); weft::Alternative alt{weft::Mode::fair, weft::out(w, std::string())}; (void)alt.select();",
        "use out_with(writer, f)",
    ),
    (
        "no process in a block",
        "weft::par{3, 4};",
        "only processes, vectors of processes, blocks and functions",
    ),
    (
        "a process named twice",
        "auto p = copy(a.reader(), b.writer()); weft::par{p, copy(a.reader(), b.writer())}();",
        "a process is started once",
    ),
    (
        "the wrong arguments",
        "(void)weft::proc(&copy, 1, 2, 3);",
        "f cannot be called with these arguments",
    ),
    (
        "the wrong end",
        "(void)pnp::identity<int>(a.writer(), b);",
        "the process reads here, and this is a writer end",
    ),
    (
        "the wrong type of channel",
        "(void)pnp::identity<long>(a, b);",
        "the channel carries another type than the one named",
    ),
    ("gates of text", "(void)pnp::and_(s, s, s);", "are for whole numbers and bool"),
    (
        "stages that do not fit",
        "(void)sk::pipeline(sk::each([](int x) { return std::string(1, char(x)); }), sk::each([](int x) { return x; }));",
        "a stage must take what the stage before it gives",
    ),
    (
        "a feedback of another type",
        "(void)sk::feedback(1, sk::each([](int) { return std::string(); }), [](int) { return false; });",
        "what comes out must be what goes in",
    ),
    (
        "a farm that would tell of how many",
        "(void)sk::farm(sk::workers(2).told([](std::size_t, std::size_t) {}), sk::each([](int x) { return x; }));",
        "a farm does not know how many values will come",
    ),
    (
        "something else to tell",
        "(void)sk::workers(2).told([](std::string) {});",
        "told takes a function f(done, total), or f(done)",
    ),
    (
        "reads of several types",
        "auto r = a.reader(); auto t = s.reader(); (void)weft::par_read(r, t);",
        "put reads into weft::par",
    ),
]

HEAD = """#include <string>
#include <weft/plugnplay.hpp>
#include <weft/skeletons.hpp>
namespace pnp = weft::plugnplay;
namespace sk = weft::skeletons;
weft::Process copy(weft::Reader<int> r, weft::Writer<int> w) {
  while (auto v = co_await r.next()) co_await w.write(*v);
}
using C = const weft::Channel<int>&;
using S = const weft::Channel<std::string>&;
"""


def main() -> int:
    passed = failed = 0
    # Static assertions in what a case instantiates are reported once for each instantiation: each case is a type of its own by its tag.
    source = HEAD + "".join(
        f"void case_{i}([[maybe_unused]] C a, [[maybe_unused]] C b, [[maybe_unused]] S s) {{ {code} }}\n"
        for i, (_, code, _) in enumerate(CASES)
    )
    first = HEAD.count("\n") + 1
    with tempfile.TemporaryDirectory() as where:
        path = pathlib.Path(where) / "cases.cpp"
        path.write_text(source)
        for compiler, flags in (("g++", ["-fmax-errors=0"]), ("clang++", ["-ferror-limit=0"])):
            if not shutil.which(compiler):
                print(f"{compiler}: not here", file=sys.stderr)
                continue
            command = [compiler, "-std=c++20", "-fsyntax-only", *flags, f"-I{INCLUDE}", str(path)]
            text = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=300
            ).stderr
            # Each diagnostic with its notes: g++ puts "required from" before the error, clang puts notes after it.
            for i, (what, _, message) in enumerate(CASES):
                named = re.search(
                    rf"cases\.cpp:{first + i}:\d+: (error|note|  required)|cases\.cpp:{first + i}:\d+:   required",
                    text,
                )
                good = (message in text) if message else not named
                passed += good
                failed += not good
                if not good:
                    print(f"{compiler}: {what}: expected {message!r}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
