"""The tables of the thesis on compiled components, measured here: mean, variance, deviation and range of the seconds of a run,
its first run, and the mean of the seconds that CPUs worked for it.

    thesis_table.py [--runs 10] [--full] [--json] [WORKLOAD…]

Without --full the counts are small; with it they are the thesis's, which takes about an hour.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "peers" / "py"
COUNTS = {  # messages to each worker: small; the thesis's
    "messaging": ((5_000,), (100_000, 500_000)),
    "light": ((5_000,), (100_000, 500_000)),
    "heavy": ((1_000,), (1_000, 5_000)),
    "recursive": ((10, 22), (10, 40)),
    "alloc": ((2_000,), (100_000, 500_000)),
}
PROGRAMS = {
    "control": lambda w, n, runs: [PEERS / "thesis_control.py", w, n, runs],
    "design": lambda w, n, runs: [PEERS / "thesis_design.py", w, n, runs, "pinned"],
    "weft": lambda w, n, runs: [
        HERE / "on.py",
        "coroutines",
        "native_thesis",
        w,
        n,
        runs,
        1,
        "pinned",
    ],
    "weft, blocks of 64": lambda w, n, runs: [
        HERE / "on.py",
        "coroutines",
        "native_thesis",
        w,
        n,
        runs,
        64,
        "pinned",
    ],
}


def seconds(argv, messages):
    """The first run, the others, and the CPUs' time of those."""
    done = subprocess.run(
        [sys.executable, *map(str, argv)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE), "THESIS_FIRST": "1"},
    )
    if done.returncode != 0:
        raise SystemExit(f"{Path(argv[0]).name} failed:\n{done.stderr}")
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    scale = messages * 2 / 1e9
    runs, cpu = ([float(v) * scale for v in lines[key].split()] for key in ("ns", "cpu"))
    return float(lines["first"]) * scale, runs, cpu


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("workload", nargs="*", choices=[*COUNTS, []], help="; ".join(COUNTS))
    options.add_argument("--runs", type=int, default=10, help="runs of each, beside the first (10)")
    options.add_argument("--full", action="store_true", help="the thesis's counts")
    options.add_argument("--json", action="store_true", help="one JSON object as the last line")
    given = options.parse_args()
    rows = []
    print(
        "| workload | messages | who | mean s | variance | deviation | range | first run | CPU s |"
    )
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    for workload in given.workload or COUNTS:
        for messages in COUNTS[workload][given.full]:
            for who, argv in PROGRAMS.items():
                first, runs, cpu = seconds(argv(workload, messages, given.runs), messages)
                row = {
                    "workload": workload,
                    "messages": messages,
                    "who": who,
                    "mean": statistics.mean(runs),
                    "variance": statistics.variance(runs) if len(runs) > 1 else 0.0,
                    "deviation": statistics.stdev(runs) if len(runs) > 1 else 0.0,
                    "range": max(runs) - min(runs),
                    "first": first,
                    "cpu": statistics.mean(cpu),
                }
                rows.append(row)
                figures = " | ".join(
                    f"{row[k]:.4g}"
                    for k in ("mean", "variance", "deviation", "range", "first", "cpu")
                )
                print(f"| {workload} | {messages:,} | {who} | {figures} |", flush=True)
    if given.json:
        print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
