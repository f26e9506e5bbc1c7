"""Abuses the whole public API at random: nothing may crash the interpreter, and nothing may hang
(rules 11.1, 12.1).

    python python/tests/fuzz_api.py [--seed A[:B]] [--seconds N] [--backend NAME] [--shrink]
                                    [--steps N]

Each seed is a program of calls (fuzz_actions.py) with wrong and right arguments, among them objects
that raise, collect or re-enter where the interpreter calls them (fuzz_world.py), in wrong orders,
with signals that raise. Programs run in child processes. A program that dies, or that makes no
progress for a while, is run again alone, shrunk to the calls that are needed, and printed with its
seed. The last line says how many passed and failed.

A program that makes no progress is not necessarily wrong: by the rules a writer waits as long as an
extended read holds its value, whether or not the writer is cancelled (1.6), and a network waits
while a thread that may hold its ends exists (10.3). So such a program is woken, and then made to
release its objects:

    HANG seconds without progress: SIGUSR1 wakes it, no more.
      It goes on or ends: FAILED, it had missed something.
      GRACE seconds later: SIGUSR2 makes it release all its objects.
        It ends: it waited, and rightly; it is counted separately.
        HANG seconds later: FAILED, it hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz_actions import ACTIONS
from fuzz_world import Bell, World

from weft import _native

BACKENDS = ("coroutines", "threads", "greenlets", "tasks", "guest", "plain")
HANG = float(os.environ.get("FUZZ_HANG", "12"))  # seconds: a program has some dozens of calls
GRACE = HANG / 4
PATIENCE = 20  # how often a program that runs, or waits for a CPU, gets more time
EACH = 25  # programs in one child


# ------------------------------------------------------------------------------------- one program


def on_alarm(*_: Any) -> None:
    raise Bell


lost: list[str] = []  # the exceptions that left the loop's callbacks, as the loop reports them


def say_where() -> None:
    """Reports where the program waits without progress. If this is a failure, the reports of its
    loop go to the log.
    """
    with contextlib.suppress(RuntimeError):
        for task in asyncio.all_tasks(asyncio.get_running_loop()):
            print(task, file=sys.stderr)
            task.print_stack(file=sys.stderr)
    with contextlib.suppress(Exception):
        _native._say_where()
    print("the loop told:", *lost, sep="\n", file=sys.stderr, flush=True)


def told(loop: Any, context: dict[str, Any]) -> None:
    e = context.get("exception")
    at = "".join(traceback.format_exception(e)[-6:]) if e else ""
    lost.append(f"{context.get('message')} {context.get('handle')} {at}")


def let_go(w: World) -> None:
    """Releases all objects that the program keeps. Afterwards the program begins no more calls."""
    say_where()
    os.write(1, b"let go\n")
    w.over = True
    w.things.clear()
    gc.collect()
    w.end_blocks()
    # An end that is under way in its own channel exists until the writer of that channel is
    # cancelled.
    for p in gc.get_objects():
        if isinstance(p, _native.Process):
            p.cancel()


def play(seed: int, backend: str, only: set[int] | None, steps: int) -> None:
    w = World(seed, backend, only, steps, ACTIONS)
    lost.clear()
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"woken\n"))
    signal.signal(signal.SIGUSR2, lambda *_: let_go(w))

    def until_quiet(step: Callable[[], Any]) -> None:
        with contextlib.suppress(BaseException):
            step()

    rounds = steps // 4
    if backend == "plain":
        for _ in range(steps):
            until_quiet(w.call)
    elif backend == "tasks":

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(told)
            await asyncio.wait(
                [asyncio.ensure_future(w.body(rounds)) for _ in range(3)], timeout=HANG / 8
            )

        until_quiet(lambda: asyncio.run(main()))
    elif backend == "guest":

        async def hosts() -> None:
            asyncio.get_running_loop().set_exception_handler(told)
            network = [
                asyncio.ensure_future(
                    w.api.run_async([w.api.process(w.body)(rounds) for _ in range(3)])
                )
            ]
            await asyncio.wait(network, timeout=HANG / 8)
            # One request raises one Cancelled (rule 6.1), and the body of a process continues after
            # that. So the body must begin no more calls.
            w.over = True
            network[0].cancel()
            await network[0]

        until_quiet(lambda: asyncio.run(hosts()))
    elif backend == "coroutines":
        until_quiet(lambda: w.api.run([w.api.process(w.body)(rounds) for _ in range(3)]))
    else:
        until_quiet(lambda: w.api.run([w.api.process(w.calls)(rounds) for _ in range(3)]))
    signal.setitimer(signal.ITIMER_REAL, 0)
    w.over = True
    until_quiet(w.things.clear)
    until_quiet(gc.collect)


# ---------------------------------------------------------------------------------------- children


def child(seeds: range, backend: str, only: set[int] | None, steps: int) -> None:
    """Runs programs. Prints each program's seed before it runs, so that the parent knows at which
    program the child died.
    """
    faulthandler.enable()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    for seed in seeds:
        print(seed, flush=True)
        try:
            play(seed, backend, only, steps)
        except Bell:  # the alarm arrived between two programs, where Weft's code does not run
            signal.setitimer(signal.ITIMER_REAL, 0)
    print("done", flush=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that programs have left behind are not tested


def start(
    seeds: range, backend: str, steps: int, only: set[int] | None = None, trace: bool = False
) -> Any:
    given = [
        sys.executable,
        __file__,
        "--child",
        f"{seeds.start}:{seeds.stop}",
        "--backend",
        backend,
    ]
    given += ["--steps", str(steps)]
    if only is not None:
        given += ["--only", ",".join(map(str, sorted(only)))]
    env = {**os.environ, "FUZZ_TRACE": "1" if trace else "0", "PYTHONHASHSEED": "0"}

    def ignores_signals() -> (
        None
    ):  # a child ignores both signals until its first program sets handlers
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)

    return subprocess.Popen(
        given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=env,
        preexec_fn=ignores_signals,
    )


def busy(pid: int) -> bool:
    """Returns whether a thread of the process runs, or waits for a CPU."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has just ended
            if (task / "stat").read_text().rpartition(")")[2].split()[0] != "S":
                return True
    return False


def outcome(
    seeds: range, backend: str, steps: int, only: set[int] | None = None, trace: bool = False
) -> Any:
    """Returns how a child ended, or None; at which seed; its output; and the seeds whose programs
    waited, and were right to wait.
    """
    p = start(seeds, backend, steps, only, trace)
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(p.stderr))
    reader.start()
    slow = 4 if os.environ.get("WEFT_SANITIZED") else 1
    phases = [
        (HANG * slow, signal.SIGUSR1),
        (GRACE * slow, signal.SIGUSR2),
        (HANG * slow, signal.SIGABRT),  # faulthandler prints where the child is
        (5 * slow, signal.SIGKILL),
    ]
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen() -> None:
        for line in p.stdout:
            lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    seed, phase, waited, done = seeds.start, 0, set(), False
    missed, patience = False, PATIENCE
    while True:
        try:
            line = lines.get(timeout=phases[phase][0])
        except queue.Empty:
            patience -= 1
            if phase < 2 and patience > 0 and busy(p.pid):
                continue
            p.send_signal(phases[phase][1])
            phase = min(phase + 1, len(phases) - 1)
            continue
        if line is None:
            break
        if line == "let go":
            waited.add(seed)
        elif line != "woken":
            missed = missed or phase == 1  # the program continued only because the signal woke it
            if missed:
                p.kill()
                break
            phase, patience = 0, PATIENCE
            done = line == "done"
            seed = seed if done else int(line)
    p.wait()
    reader.join()
    if done:
        return None, None, "", waited
    if missed:
        how = "hang until a signal woke it"
    elif phase > 0:
        how = "hang"
    else:
        how = f"signal {-p.returncode}" if p.returncode < 0 else f"status {p.returncode}"
    return how, seed, "".join(errors), waited - {seed}


def shrink(seed: int, backend: str, steps: int, how: str, seconds: float) -> set[int] | None:
    """Returns the calls that the program needs to fail in this way, found by halving; None if the
    program does not fail when it is run again.
    """
    until = time.monotonic() + seconds
    kept = sorted(range(1, steps + 1))

    def fails(calls: list[int]) -> bool:
        ended, _, _, _ = outcome(range(seed, seed + 1), backend, steps, set(calls))
        return ended is not None and (ended == how or ended.startswith("signal"))

    if not fails(kept):
        return None
    size = len(kept) // 2
    while size >= 1 and time.monotonic() < until:
        at = 0
        while at < len(kept) and time.monotonic() < until:
            fewer = kept[:at] + kept[at + size :]
            if fewer and fails(fewer):
                kept = fewer
            else:
                at += size
        size //= 2
    return set(kept)


def fuzz(
    seeds: range, backends: list[str], seconds: float, steps: int, shrinking: float
) -> tuple[int, int]:
    passed = failed = 0
    end = time.monotonic() + seconds
    at = dict.fromkeys(backends, seeds.start)
    while time.monotonic() < end and any(at[b] < seeds.stop for b in backends):
        for backend in backends:
            some = range(at[backend], min(at[backend] + EACH, seeds.stop))
            if not some or time.monotonic() >= end:
                continue
            how, seed, report, waited = outcome(some, backend, steps)
            for one in sorted(waited):
                print(f"waited: fuzz_api.py --seed {one} --backend {backend} --steps {steps}")
            if how is None:
                passed += len(some)
                at[backend] = some.stop
                continue
            passed += seed - some.start
            failed += 1
            at[backend] = seed + 1
            print(f"FAILED: {how}: fuzz_api.py --seed {seed} --backend {backend} --steps {steps}")
            print("\n".join(report.splitlines()[-90:]))
            if shrinking and (kept := shrink(seed, backend, steps, how, shrinking)):
                _, _, trace, _ = outcome(range(seed, seed + 1), backend, steps, kept, trace=True)
                print(f"shrunk to --only {','.join(map(str, sorted(kept)))}")
                print("\n".join(trace.splitlines()[:60]))
            sys.stdout.flush()
    return passed, failed


def main() -> int:
    say = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    say.add_argument("--seed", default="0:1000000000", help="one, or A:B")
    say.add_argument("--seconds", type=float, default=30.0)
    say.add_argument("--backend", default="all", help=f"{', '.join(BACKENDS)}, or all")
    say.add_argument("--steps", type=int, default=60, help="calls in a program")
    say.add_argument(
        "--shrink", type=float, default=0.0, help="seconds to spend on shrinking each failure"
    )
    say.add_argument("--only", default=None, help="the calls of a shrunk program")
    say.add_argument("--child", default=None, help=argparse.SUPPRESS)
    given = say.parse_args()
    first, _, last = (given.child or given.seed).partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    only = {int(n) for n in given.only.split(",")} if given.only else None
    if given.child:
        child(seeds, given.backend, only, given.steps)
    backends = list(BACKENDS) if given.backend == "all" else [given.backend]
    if only is not None:
        how, _, report, _ = outcome(seeds, given.backend, given.steps, only, trace=True)
        print(report, how or "fine", sep="\n")
        return int(how is not None)
    passed, failed = fuzz(seeds, backends, given.seconds, given.steps, given.shrink)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
