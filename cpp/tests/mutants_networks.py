#!/usr/bin/env python3
"""Mutants of rule 5.6, guards that retire while their select goes on: random networks must notice
each of them.

    python3 cpp/tests/mutants_networks.py DIRECTORY [NAME ...]      the last line: N passed, N failed

Each mutant is built by g++ -O0 from a copy of the library, as the program that must notice it: the
twin, whose networks of the shape `retiring` the model judges, or `networks`, whose relays check
the outcomes of their selects. The program prints a table that says which test noticed each mutant.
`soak` runs the program.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

from mutants import CPP, Text, each_dies, mutate, progress

STILL = 60  # seconds without a sign of life
SEEDS = "0:400"
MESSAGES = "400000"


def judged(name: str, what: str, file: str, old: str, new: str) -> Text:
    """Makes a mutant that is killed by the model's verdict on the twin's histories."""
    return Text(name, what, file, old, new, "twin/main.cpp")


def told(name: str, what: str, file: str, old: str, new: str) -> Text:
    """Makes a mutant that is killed by a relay, a checksum or a deadlock in `networks`."""
    return Text(name, what, file, old, new, "networks.cpp")


RETIRED = "    if (x.node.status != Status::retired || x.ends) return chosen(i, x.node.status);"
COUNTED = "      for (std::uint32_t i = 0; i < n_; ++i) count -= g_[i].silent && keep_.has(g_[i]);"
HELD = "  const bool held = outputs && inputs && seen.off(Kind::output) && open_though_off(g, n, Kind::output);"
NAMED = "return chosen(keep_.decides(g_[i]) ? i : first_decider(), Status::retired);"
CLAIMED = """last_gone()) return false;
  }
  return Free{}.with(n) == Claim::won;"""
LAST = "static_cast<KeptChoice*>(n->choice_)->last_gone()) return false;"
ALL_GONE = "    if (!all_gone()) return none;\n    const int at = over(g_, n_);"

MUTANTS = [
    judged(
        "r1",
        "a guard that has retired ends the whole select",
        "select.hpp",
        RETIRED,
        "    return chosen(i, x.node.status);",
    ),
    told(
        "r2",
        "the same, and relays check it",
        "select.hpp",
        RETIRED,
        "    return chosen(i, x.node.status);",
    ),
    judged(
        "r3",
        "a guard with ends() falls silent like any other",
        "select.hpp",
        RETIRED,
        "    if (x.node.status != Status::retired) return chosen(i, x.node.status);",
    ),
    told(
        "r4",
        "guards that are silent already are counted among those that keep a select open",
        "select.hpp",
        COUNTED,
        "      (void)0;",
    ),
    judged(
        "r5",
        "an output that is off holds nothing open",
        "guard.hpp",
        HELD,
        "  const bool held = false;",
    ),
    judged(
        "r6",
        "an input that only held the select open is named as what ended it",
        "select.hpp",
        NAMED,
        "return chosen(i, Status::retired);",
    ),
    told(
        "r7",
        "a guard that retires in line ends the select at once, whatever else is open",
        "waiter.hpp",
        LAST,
        "(static_cast<KeptChoice*>(n->choice_)->last_gone(), false)) return false;",
    ),
    told(
        "r8",
        "a value that a blocked writer or a buffer holds is lost when its last end goes",
        "notifier.hpp",
        "      if (!(state_ & B::kWritersGone) ||\n"
        "          (ring && (ring->size > 0 || ring->reserved > 0 || ring->kept > 0)) || blocked(writer_queue_)) return false;",
        "      if (!(state_ & B::kWritersGone) || blocked(writer_queue_)) return false;",
    ),
    told(
        "r9",
        "a value that a select has taken is lost if its other guard retires before it goes on",
        "waiter.hpp",
        CLAIMED,
        CLAIMED.replace("return Free{}.with(n) == Claim::won", "Free{}.with(n);\n  return true"),
    ),
    told(
        "r10",
        "a standing alternative is over with the first of its inputs that is",
        "standing.hpp",
        ALL_GONE,
        "    const int at = i;",
    ),
]


def killed_by(m: Text, work: pathlib.Path) -> str:
    """Returns what detected the mutant, or "" if nothing did."""
    copy = mutate(m, work)
    exe = work / f"mutant_{m.name}"
    source = CPP / "tests" / m.killer
    command = [
        "g++",
        "-std=c++20",
        "-O0",
        f"-I{copy}/include",
        str(source),
        str(copy / "src/weft.cpp"),
        "-o",
        str(exe),
        "-pthread",
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        return "(it does not compile)"
    if "twin" in m.killer:
        judge = [sys.executable, "-m", "conformance.driver", "--on", f"program:{exe}"]
        judge += ["--grain", "atomic", "--shape", "retiring", "--seeds", SEEDS, "--first"]
    else:
        judge = [str(exe), "--messages", MESSAGES, "--quiet", "--seed", "1"]
    run = progress.run(judge, name=f"networks of mutant {m.name}", still=STILL, cwd=CPP.parent)
    if run.hung:
        return "(it hangs)"
    if run.status == 0:
        return ""
    if run.status < 0:
        return f"(it crashed: signal {-run.status})"
    lines = [line for line in run.output.splitlines() if " fail" in line or "sent " in line]
    return lines[0].replace(str(work), "")[:120] if lines else "(it failed)"


if __name__ == "__main__":
    sys.exit(each_dies(__doc__, MUTANTS, killed_by))
