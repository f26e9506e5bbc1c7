"""Mutants of the layers above the hosted layer (skeletons, blocks), of outputs that are not chosen,
and of rounds between real programs. Each mutant breaks one line, and the tests must notice it.

    python3 cpp/tests/mutants_library.py DIRECTORY [NAME ...]      the last line: N passed, N failed

Each mutant is built by g++ -O0 from a copy of the library, with the tests of its header alone, and
run; a mutant that hangs is noticed too. The program prints a table
that says which test noticed each mutant. `soak` runs the program.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

from mutants import CPP, Text, each_dies, mutate, progress, what_failed

TESTS = CPP / "tests"
STILL = 60  # seconds without a sign of life; the tests of one mutant take two


def skeletons(name: str, what: str, old: str, new: str) -> Text:
    return Text(name, what, "skeletons.hpp", old, new, "library_skeletons.cpp")


def blocks(name: str, what: str, old: str, new: str) -> Text:
    return Text(name, what, "blocks.hpp", old, new, "library_blocks.cpp")


def outputs(name: str, what: str, old: str, new: str) -> Text:
    return Text(name, what, "guards.hpp", old, new, "hosted_offers.cpp")


# Makes the mutant with this number in conformance/models/MUTANTS.md, which no exploration tries.
def rounds(number: int, what: str, file: str, old: str, new: str) -> Text:
    return Text(f"r{number}", what, file, old, new, "wire_rounds.cpp")


MUTANTS = [
    rounds(
        128,
        "rounds: an open meeting point is nobody outside",
        "wire/meeting.hpp",
        "const Outside outside_{Outside::due};",
        "const Outside outside_{Outside::link};",
    ),
    rounds(
        133,
        "rounds: who runs says that it waits",
        "src/wire/rounds.cpp",
        "  me.waits = rest;\n",
        "",
    ),
    skeletons(
        "s1",
        "a farm that keeps order takes results as they come from the first worker",
        "T v = co_await from[*i].read();",
        "T v = co_await from[*i * 0].read();",
    ),
    skeletons(
        "s2",
        "a farm that keeps order says the wrong worker",
        "co_await order.write(static_cast<std::size_t>(c.index));",
        "co_await order.write((static_cast<std::size_t>(c.index) + 1) % to.size());",
    ),
    skeletons(
        "s4",
        "a farm has one worker only",
        "for (unsigned i = 0; i < ws.n; ++i) crew.push_back(ws.start(s(in, out)));",
        "for (unsigned i = 0; i < 1; ++i) crew.push_back(ws.start(s(in, out)));",
    ),
    skeletons(
        "s5",
        "feedback: what is to go round again is done",
        "(again(*c.value) ? todo : done).push_back",
        "(again(*c.value) ? done : done).push_back",
    ),
    skeletons(
        "s6",
        "feedback: more values than its width",
        "inside + todo.size() + done.size() < width",
        "inside + todo.size() + done.size() < width + 1000",
    ),
    skeletons(
        "s7",
        "feedback: an end elsewhere is taken for that of the input",
        "if (e.guard != 3) throw;",
        "",
    ),
    skeletons(
        "s8",
        "feedback: ends with the input, whatever is inside",
        "open || inside + todo.size() + done.size() > 0;",
        "open;",
    ),
    skeletons(
        "s9",
        "map: results in the order of being done",
        "r[v.index].emplace(std::move(v.data));",
        "r[done].emplace(std::move(v.data));",
    ),
    skeletons(
        "s10",
        "progress is not told of the last",
        "    if (progress)\n",
        "    if (progress && done + 1 < total)\n",
    ),
    skeletons(
        "s11",
        "a search goes on when it has found",
        "if (enough(*r[v.index])) break;",
        "",
    ),
    skeletons(
        "s12",
        "map_reduce: parts combined in the wrong order",
        "init = op(std::move(init), std::move(s));",
        "init = op(std::move(s), std::move(init));",
    ),
    skeletons(
        "s13",
        "map_reduce: within a part in the wrong order",
        "sum.emplace(op(std::move(*sum), f(std::move(v))));",
        "sum.emplace(op(f(std::move(v)), std::move(*sum)));",
    ),
    skeletons(
        "s14",
        "map_reduce: an item is in the wrong part",
        "runs[i * parts / n].push_back",
        "runs[i % parts].push_back",
    ),
    skeletons(
        "s15",
        "divide and conquer: leaves numbered from one",
        "return {{}, leaves.size() - 1};",
        "return {{}, leaves.size() % std::max<std::size_t>(1, wanted)};",
    ),
    skeletons(
        "s16",
        "divide and conquer: a split into nothing is not refused",
        '  if (parts.empty()) weft::detail::bad_use("divide_and_conquer: split made no parts of a problem that is no base case");\n',
        "",
    ),
    skeletons(
        "s17",
        "divide and conquer: nothing is given to workers apart",
        "if (wanted <= 1 || base(std::as_const(p))) {",
        "if (true) {",
    ),
    skeletons(
        "s18",
        "no workers are let through",
        'if (many == 0) weft::detail::bad_use("workers: at least one");',
        "",
    ),
    skeletons(
        "s19",
        "feedback of width nought is let through",
        'if (most == 0) weft::detail::bad_use("feedback: width is 0, it must be 1 or more (values in the stage at a time)");',
        "",
    ),
    skeletons(
        "s20",
        "a farm with Order::any keeps order",
        "return order == Order::kept ?",
        "return true || order == Order::kept ?",
    ),
    skeletons(
        "s21",
        "a stage that is started elsewhere is left here",
        "co_await par(start(s(std::move(in), std::move(out))));",
        "co_await par(s(std::move(in), std::move(out)));",
    ),
    Text(
        "b1",
        "a closure's process that is poisoned leaves its captures to retire",
        "src/errors.cpp",
        "    p.under_way();\n",
        "",
        "hosted_results.cpp",
    ),
    blocks(
        "b3",
        "seq runs its processes at once",
        "Process one_by_one(Ps... ps) { (co_await Par<Ps>(std::move(ps)), ...); }",
        "Process one_by_one(Ps... ps) { co_await Par<Ps...>(std::move(ps)...); }",
    ),
    blocks(
        "b4",
        "seq of a vector runs the first only",
        "  for (P& p : ps) co_await Par<P>(std::move(p));\n",
        "  for (P& p : ps) {\n    co_await Par<P>(std::move(p));\n    break;\n  }\n",
    ),
    blocks(
        "b5",
        "proc binds a channel in place of its end",
        "struct BoundFor<F, A...> : std::type_identity<typename Parameters<F>::Bound> {\n};",
        "struct BoundFor<F, A...> {\n  using type = std::tuple<std::decay_t<A>...>;\n};",
    ),
    blocks(
        "b6",
        "par_for leaves out the last",
        "for (; first != last; ++first) ps.push_back",
        "for (bool skip = true; first != last; ++first)\n    if (std::exchange(skip, false) == false) ps.push_back",
    ),
    blocks(
        "b7",
        "thread(process) runs nothing",
        "auto f = [p = std::move(p)]() mutable { return run(std::move(p)); };",
        "auto f = [p = std::move(p)]() mutable {\n    if constexpr (!std::is_void_v<R>) return run(std::move(p));\n  };",
    ),
    outputs(
        "o1",
        "an offered value is moved as the select begins",
        "    fill_of_channel<T, P, core::Side::out>(g, *this, from);",
        "    fill_of_channel<T, P, core::Side::out>(g, *this, from = new T(std::move(*from)));",
    ),
    outputs(
        "o2",
        "an offered value that a buffer has dropped is still there",
        "    static_cast<void>(T(std::move(*from)));\n",
        "",
    ),
    outputs(
        "o3",
        "a value in a list that was sent may be sent again",
        "  void sent() noexcept { spent = !repeatable; }",
        "  void sent() noexcept {}",
    ),
    outputs(
        "o4",
        "a list's value goes with the exception",
        "      if constexpr (requires { g.value; } && repeatable) {\n"
        '        throw_end_with(g.c, s, "select", g.value, static_cast<int>(i));\n',
        "      if constexpr (requires { g.value; }) {\n"
        '        throw_end_with(g.c, s, "select", std::move(g.value), static_cast<int>(i));\n',
    ),
    Text(
        "o5",
        "a choice over several programs keeps what it has not sent here",
        "src/wire/span.cpp",
        "    take_back(*keep);\n",
        "",
        "wire_select.cpp",
    ),
]


def killed_by(m: Text, work: pathlib.Path) -> str:
    """Returns what detected the mutant, or "" if nothing did."""
    copy = mutate(m, work)
    exe = work / f"mutant_{m.name}"
    # wire_rounds.cpp starts itself again, and has a main() of its own.
    sources = [m.killer] if m.killer == "wire_rounds.cpp" else [m.killer, "doctest_main.cpp"]
    built = subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O0",
            f"-I{copy}/include",
            f"-I{TESTS}",
            *(str(TESTS / source) for source in sources),
            str(copy / "src/weft.cpp"),
            "-o",
            str(exe),
            "-pthread",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        return "(it does not compile)"
    run = progress.run([str(exe)], name=f"tests of mutant {m.name}", still=STILL)
    return what_failed(run)


if __name__ == "__main__":
    sys.exit(each_dies(__doc__, MUTANTS, killed_by))
