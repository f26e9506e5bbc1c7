#!/usr/bin/env python3
"""Tests that the compiler reports bad use with a message that says what to do. Each case below must
fail to compile with its message, under g++ and clang++, or under the compiler that is named as an
argument.

All cases are functions of one source file, each on a line of its own. The source is compiled once
(-fsyntax-only, no limit on errors), and a case passes if its message is in an error that names the
line of the case. The compiler only warns about a forgotten co_await and about a value that does not
fit: these cases are in a second source, with -Werror for those warnings. The warning for a value
that does not fit must be at the line of the program that gives the value. A warning in a header of
Weft would not be shown, since that may be a system header. Some functions of each source are
correct, and no error may name them. Last line: `N passed, N failed`.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import sys
import tempfile

CPP = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = CPP / "include"
NO_LIMIT = {"g++": "-fmax-errors=0", "clang++": "-ferror-limit=0"}  # the option for each compiler
sys.path.insert(0, str(CPP.parent / "tools"))

import progress  # noqa: E402

# The fault, the statement, and the message that the compiler must give. "" means no message,
# because the statement is correct.
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
        "a.writer()(std::vector<int>());",
        "this value cannot be written to this channel",
    ),
    (
        "a copy of a mobile into a channel",
        "weft::Channel<weft::Mobile<int>> c; auto m = weft::make_mobile<int>(1); c.writer().write(m);",
        "say std::move(value)",
    ),
    (
        "a copy of a mobile into a channel, in a thread",
        "weft::Channel<weft::Mobile<long>> c; auto m = weft::make_mobile<long>(1); c.writer()(m);",
        "say std::move(value)",
    ),
    (
        "a thread among processes",
        "std::vector<weft::Process> v; v.push_back(weft::thread([] {}));",
        "a thread(...) is not a weft::Process",
    ),
    (
        "a placed process among processes",
        "weft::Core core; std::vector<weft::Process> v; v.push_back(copy(a.reader(), b.writer()).on(core));",
        "p.on(...) and p.pinned(...) are not a weft::Process",
    ),
    (
        "a result that an AnyProcess would lose",
        "std::vector<weft::AnyProcess<>> v; v.push_back(weft::thread([] { return 1; }));",
        "an AnyProcess<R> is made of a process with the result R",
    ),
    (
        "a thread's function with other arguments",
        'weft::par{weft::thread([](int) {}, std::string("x"))}();',
        "thread(f, args...): f cannot be called with these arguments",
    ),
    (
        "processes of several kinds in one vector, threads with arguments",
        "weft::Core core; std::vector<weft::AnyProcess<>> v; v.push_back(copy(a.reader(), b.writer()).on(core)); "
        "v.push_back(weft::thread([](int) {}, 1)); v.push_back(weft::par{copy(a.reader(), b.writer())}); weft::par{std::move(v)}();",
        "",
    ),
    (
        "threads of one function",
        "auto f = [](int) { return weft::thread([] {}); }; std::vector<decltype(f(0))> v; v.push_back(f(1)); weft::par{std::move(v)};",
        "",
    ),
    ("a select over nothing", "(void)weft::select();", "select needs at least one guard"),
    (
        "a select over a writer",
        "auto w = a.writer(); (void)weft::select(w);",
        "for a writer end out(writer, value)",
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
        "a guard of a moved value that is kept",
        "auto w = s.writer(); std::string text; auto kept = weft::out(w, std::move(text)); (void)weft::select(kept);",
        "Offer",
    ),
    (
        "a guard of a temporary that is kept",
        'auto w = s.writer(); auto kept = weft::out(w, std::string("x"));',
        "Offer",
    ),
    (
        "a guard of a moved value that is moved",
        "auto w = s.writer(); std::string text; auto&& kept = weft::out(w, std::move(text)); auto again = std::move(kept);",
        "Offer",
    ),
    (
        "a select of a moved value that is kept",
        "auto w = s.writer(); std::string text; auto op = weft::select(weft::out(w, std::move(text)), weft::skip()); op();",
        "await it where it is made",
    ),
    (
        "a list of guards that is given away",
        "std::vector<weft::AnyGuard<std::string>> gs; (void)weft::select_among<std::string>(std::move(gs));",
        "keep the list",
    ),
    (
        "guards of moved values, of copies, of numbers",
        "auto w = s.writer(); auto v = a.writer(); std::string text; auto kept = weft::out(w, text); auto number = weft::out(v, 1); "
        "weft::select(std::move(kept), std::move(number), weft::skip())(); "
        "weft::select(weft::out(w, std::move(text)).when(true).ends(), weft::skip())(); "
        "std::vector<weft::AnyGuard<std::string>> gs; gs.push_back(weft::out(w, std::move(text)).ends()); "
        "gs.emplace_back(weft::out(w, text)); gs[0] = weft::out(w, std::move(text)); "
        "weft::select_among<std::string>(gs)(); auto op = weft::select_among<std::string>(gs); op(); "
        "std::vector<weft::AnyGuard<int>> is; is.push_back(weft::out(v, 1)); weft::select_among<int>(std::move(is))();",
        "",
    ),
    (
        "an output of another type",
        "auto w = a.writer(); (void)weft::out(w, std::vector<long>());",
        "this value cannot be written to this channel",
    ),
    (
        "no process to start",
        "weft::Group* g = nullptr; g->start(3.5);",
        "can stand for a process",
    ),
    (
        "a process started by name",
        "weft::Group* g = nullptr; auto p = weft::thread([] {}); g->start(p);",
        "a process is started once",
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
        "a vector that is awaited and not moved",
        "[](std::vector<weft::Process> v) -> weft::Process { co_await v; }({});",
        "move the vector, co_await std::move(v)",
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
        "the stage's results must have the type of its values",
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
        "a capacity with a fraction",
        "(void)weft::buffer(2.5);",
        "weft: expected a whole number",
    ),
    (
        "reads of several types",
        "auto r = a.reader(); auto t = s.reader(); (void)weft::par_read(r, t);",
        "put reads into weft::par",
    ),
]

HEAD = """#include <string>
#include <vector>
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


# Forgotten co_awaits: the statement in a coroutine, and the text that the warning must contain (""
# for no warning).
FORGOTTEN = [
    (
        "all of them awaited",
        "co_await out.write(1); co_await in.read(); co_await in.next(); co_await weft::sleep(1ms); co_await timer.tick(); "
        "co_await handle.write(1); { auto x = co_await in.extended(); } co_await copy(in, out);",
        "",
    ),
    ("a write", "out.write(1);", "nothing is written until it is awaited: co_await w.write(v)"),
    ("a write of a name", "out.write(value);", "nothing is written until it is awaited"),
    (
        "a write that moves",
        "texts.write(std::move(text));",
        "nothing is written until it is awaited",
    ),
    (
        "a write of a handle",
        "handle.write(1);",
        "nothing is written until it is awaited: co_await w.write(v)",
    ),
    ("a read", "in.read();", "nodiscard"),
    ("a next", "in.next();", "nodiscard"),
    ("an extended read", "in.extended();", "nodiscard"),
    ("a read of a handle", "handle.read();", "nodiscard"),
    ("a next of a handle", "handle.next();", "nodiscard"),
    ("a sleep", "weft::sleep(1ms);", "nodiscard"),
    ("a sleep until", "weft::sleep_until(1);", "nodiscard"),
    ("a tick", "timer.tick();", "nodiscard"),
    ("a yield", "weft::yield();", "nodiscard"),
    ("a sync", "barrier.sync();", "nodiscard"),
    ("a wait for a group", "group.wait();", "nodiscard"),
    ("a process", "copy(in, out);", "nodiscard"),
    ("a block", "weft::par(copy(in, out));", "a block does nothing until it runs"),
    (
        "a block of a vector",
        "weft::par(std::vector<weft::Process>());",
        "a block does nothing until it runs",
    ),
    ("a sequence", "weft::seq(copy(in, out));", "a block does nothing until it runs"),
    ("a select", "weft::select(in);", "nodiscard"),
    ("a blocking call", "weft::blocking([] {});", "nodiscard"),
    ("parallel reads", "weft::par_read(in, in);", "nodiscard"),
    ("parallel writes", "weft::par_write(std::pair(out, 1));", "nodiscard"),
]

WARNED_HEAD = (
    """#include <weft/component_tasks.hpp>
#include <weft/wire/end.hpp>
#include <weft/wire/select.hpp>
"""
    + HEAD
    + """using namespace std::chrono_literals;
namespace tasks = weft::native::tasks;
namespace wire = weft::wire;
"""
)

# Values that may not fit (rule 1.9): a title, and a statement of a coroutine. True means that the
# compiler must warn at that line; False means that the value fits, and there must be no warning.
NARROWED = [
    ("written to int", "co_await i.write(3.7);", True),
    ("a long one, written to int", "co_await i.write(5'000'000'000LL);", True),
    ("written to unsigned char", "co_await c.write(300);", True),
    ("written to unsigned", "co_await u.write(-1);", True),
    ("a float of a variable", "co_await i.write(x);", True),
    ("written in a thread", "i(3.7);", True),
    ("written to a local channel", "co_await local.write(3.7);", True),
    ("written to a one-to-one channel", "co_await one.write(3.7);", True),
    ("written by a handle", "co_await handle.write(3.7);", True),
    ("written by a handle in a thread", "handle(3.7);", True),
    ("an output", "(void)weft::out(i, 1e30);", True),
    ("an output among others", "co_await weft::select(r, weft::out(u, -1), weft::skip());", True),
    ("an output of a local channel", "(void)weft::out(local, x);", True),
    ("parallel writes of two", "co_await weft::par_write(i, 3.7, i, 1);", True),
    ("parallel writes of one value", "co_await weft::par_write_all(all, 3.7);", True),
    ("a prefix", "(void)pnp::prefix<int>(3.7, r, i);", True),
    ("a prefix of the channels' type", "(void)pnp::prefix(3.7, r, i);", True),
    ("what is generated", "(void)pnp::generate<int>(i, 3.7);", True),
    ("what is generated, of the channel's type", "(void)pnp::generate(u, -1);", True),
    ("a substitute", "(void)pnp::substitute<int>(r, i, 3.7);", True),
    ("a factor", "(void)pnp::mult<int>(3.7, r, i);", True),
    ("what comes regularly", "(void)pnp::regular<int>(i, 3.7, 1s);", True),
    ("a result", "(void)[]() -> weft::ProcessOf<int> { co_return 3.7; };", True),
    ("in place of a result", "(void)weft::Result<int>().value_or(3.7);", True),
    ("a result of a component", "(void)[]() -> tasks::Task<int> { co_return 3.7; };", True),
    ("written to another program", "co_await far.write(3.7);", True),
    ("written to another program in a thread", "far(3.7);", True),
    ("an output to another program", "wire::FarSelect().out(far, 3.7);", True),
    ("written by an end of either kind", "co_await either.write(3.7);", True),
    ("written by a component", "native.write(3.7);", True),
    ("an output of a component", "(void)weft::native::output(native, 3.7);", True),
    ("written by a coroutine of a component", "(void)task.write(3.7);", True),
    ("an output of a coroutine of a component", "(void)tasks::output(task, 3.7);", True),
    # The compiler warns of the following values in a header of Weft, and names the line of the
    # program.
    (
        "parallel writes of pairs",
        "co_await weft::par_write(std::pair(i, x), std::pair(i, 1));",
        "conver",
    ),
    (
        "an output's function",
        "co_await weft::select(weft::out_with(i, [] { return 3.7; }), r);",
        "conver",
    ),
    (
        "an output's function in a component",
        "(void)weft::native::select(weft::native::output(native, [] { return 3.7; }));",
        "conver",
    ),
    (
        "values that fit",
        "co_await i.write(1); co_await u.write(1); co_await c.write('x'); i(2); co_await far.write(1); native.write(1); "
        "(void)task.write(1); (void)weft::native::output(native, 1); "
        "(void)[]() -> weft::ProcessOf<long> { co_return 3; };",
        False,
    ),
    (
        "values of other types that fit",
        'co_await texts.write("x"); texts("x"); co_await weft::select(weft::out(texts, "x"), weft::out(i, short(1)), weft::skip()); '
        "co_await handle.write(short(1)); handle(short(1)); co_await weft::par_write(i, short(1), i, 1);",
        False,
    ),
    (
        "values in braces",
        'co_await texts.write({}); co_await texts.write({"x", 1}); co_await i.write({1}); texts({"x", 1}); '
        '(void)weft::out(texts, {"x", 1}); (void)[]() -> weft::ProcessOf<std::string> { co_return {"x", 1}; };',
        False,
    ),
]
NARROWED_PARAMETERS = (
    "weft::Writer<int> i, weft::Writer<unsigned char> c, weft::Writer<unsigned> u, weft::Reader<int> r, double x, "
    "weft::Writer<int, weft::Local> local, weft::Writer<int, weft::OneToOne> one, weft::ChannelHandle<int> handle, "
    "std::vector<weft::Writer<int>> all, weft::Writer<std::string> texts, wire::FarWriter<int> far, wire::WriterEnd<int> either, "
    "weft::native::Writer<std::int64_t> native, tasks::Writer<std::int64_t> task"
)

WARNINGS = [
    f"-Werror={w}"
    for w in (
        "unused-result",
        "unused-value",
        "conversion",
        "sign-conversion",
        "float-conversion",
        "overflow",
    )
]
# Matches an error at the line of the case.
HERE = re.compile(r"cases\.cpp:\d+:\d+: error: .*conver")

# The three patterns match a diagnostic, a note that follows a diagnostic, and a line that g++
# prints before a diagnostic.
ERROR = re.compile(r": (?:fatal )?error: ")
WARNING = re.compile(r": warning: ")
NOTE = re.compile(r": note: ")
BEFORE = re.compile(
    r"^In file included|^ +from |: In |: At global scope|: +required (?:from|by)|: +recursively required"
)


def diagnostics(text: str) -> list[str]:
    """Returns each error with its notes: g++ puts "required from" before an error, clang++ puts
    notes after it."""
    found: list[list[str]] = []
    before: list[str] = []
    for line in text.splitlines():
        if ERROR.search(line) or WARNING.search(line):
            found.append([*before, line])
            before = []
        elif BEFORE.search(line) or (before and not NOTE.search(line)):
            before.append(line)
        elif found:
            found[-1] += [*before, line]
            before = []
    return ["\n".join(lines) for lines in found if any(ERROR.search(line) for line in lines)]


def errors_of(compiler: str, flags: list[str], head: str, functions: list[str]) -> list[str]:
    """Returns the errors about each function, which is one line of the source: all errors that name
    the function, joined into one text."""
    with tempfile.TemporaryDirectory() as where:
        path = pathlib.Path(where) / "cases.cpp"
        path.write_text(head + "".join(f + "\n" for f in functions))
        command = [compiler, "-std=c++20", "-fsyntax-only", *flags, f"-I{INCLUDE}", str(path)]
        name = f"{len(functions)} functions, {compiler}"
        text = progress.run(
            command, name=name, still=None, env={**os.environ, "LC_ALL": "C"}
        ).output
    all_of_them = diagnostics(text)
    first = head.count("\n") + 1
    return [
        "\n".join(d for d in all_of_them if f"cases.cpp:{first + i}:" in d)
        for i in range(len(functions))
    ]


def coroutines(name: str, parameters: str, bodies: list[str]) -> list[str]:
    """Returns each body as a process with these parameters."""
    return [
        f"weft::Process {name}_{i}({parameters}) {{ {body} co_return; }}"
        for i, body in enumerate(bodies)
    ]


def main() -> int:
    passed = failed = 0
    # A static assertion is reported once for each instantiation, so no two cases may instantiate
    # the same template.
    wrong = [
        f"void case_{i}([[maybe_unused]] C a, [[maybe_unused]] C b, [[maybe_unused]] S s) {{ {code} }}"
        for i, (_, code, _) in enumerate(CASES)
    ]
    parameters = (
        "weft::Reader<int> in, weft::Writer<int> out, weft::ChannelHandle<int> handle, weft::Timer timer, weft::Barrier barrier, "
        "weft::Group& group, int value, weft::Writer<std::string> texts, std::string text"
    )
    warned = coroutines("forgotten", parameters, [code for _, code, _ in FORGOTTEN])
    warned += coroutines("narrowed", NARROWED_PARAMETERS, [code for _, code, _ in NARROWED])
    for compiler in sys.argv[1:] or NO_LIMIT:
        no_limit = NO_LIMIT[compiler]
        if not shutil.which(compiler):
            print(f"{compiler}: not here", file=sys.stderr)
            continue
        flags = [no_limit, "-Wall", "-Wextra", *WARNINGS]
        messages = errors_of(compiler, [no_limit], HEAD, wrong)
        messages += errors_of(compiler, flags, WARNED_HEAD, warned)
        for (what, _, wanted), errors in zip(CASES + FORGOTTEN + NARROWED, messages, strict=True):
            if isinstance(wanted, bool):
                good = bool(HERE.search(errors)) if wanted else not errors
            else:
                good = wanted in errors if wanted else not errors
            passed += good
            failed += not good
            if not good:
                print(f"{compiler}: {what}: expected {wanted!r}, not {errors!r}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
