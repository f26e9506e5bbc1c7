"""Puts odd objects (odd_objects.py) wherever Weft touches a user's object (odd_world.py): no
program may crash or hang, and code that does not use the object must continue.

    python python/tests/fuzz_odd.py [--seed A[:B]] [--seconds N] [--cases N] [--only CASE…]

A seed makes a number of cases, each an odd object in a place; with `--only` only the given cases
are run. A child process runs the cases of a seed, and prints when each begins. If the child dies,
or prints nothing for HANG seconds, that case has failed: it is printed with its seed, and with
where the child was. The last line says how many cases passed and failed.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

LONG = 280.0  # seconds
HANG = float(
    os.environ.get("ODD_HANG", LONG)
)  # seconds of a case; its program may take LONG to start
# Up to 3.11 the interpreter ends a program in which these methods call themselves.
ENDS_PYTHON = ("meta.__subclasscheck__", "meta.__instancecheck__")


# --- the child: the cases of one seed -------------------------------------------------------------


def see_all() -> None:
    """Imports the modules that register places when they are imported."""
    import odd_away  # noqa: F401
    import odd_components  # noqa: F401
    import odd_places  # noqa: F401


def cases_of(seed: int, cases: int) -> Iterator[tuple[int, str, object]]:
    """Returns the cases of a seed: their numbers, places and objects."""
    from odd_objects import ACTS, BASES, METHODS, Odd
    from odd_world import AWAY, CALLED, DEAR, PLACES

    see_all()

    chance = random.Random(seed)
    for number in range(cases):
        kind = chance.choices((PLACES, AWAY, DEAR), (60, 38, 2))[0]
        where = chance.choice(list(kind))
        base, method = chance.choice(list(BASES)), chance.choice(METHODS)
        if chance.random() < 0.7:
            method = chance.choice(CALLED[where])
        if "fail" in where and chance.random() < 0.8:
            base = chance.choice(["exception", "base exception", "retired", "cancelled"])
        act = chance.choices(list(ACTS), (60, 20, 8, 8, 4))[0]
        more = chance.choice(ACTS[act])
        if act == "recurses" and method in ENDS_PYTHON:
            act, more = "raises", "RecursionError"
        yield number, where, Odd(base, method, act, more)


def child(seed: int, cases: int, only: set[int]) -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    from odd_world import AWAY, DEAR, PLACES, World

    see_all()

    world = World()
    places = {**PLACES, **AWAY, **DEAR}
    for number, where, odd in cases_of(seed, cases):
        if only and number not in only:
            continue
        print(f"case {number}: {where}: {odd}", flush=True)
        try:
            places[where](world, odd)  # type: ignore[arg-type]
        except AssertionError:  # the place asserts that the odd object has harmed no other
            raise
        except BaseException:
            pass
        if number % 20 == 0 or where in AWAY or where in DEAR:
            print(f"check after case {number}", flush=True)
            world.check()
        if number % 50 == 0:
            gc.collect()
    print("closes", flush=True)
    world.close()
    print("over", flush=True)


# --- the parent -----------------------------------------------------------------------------------


def run(seed: int, cases: int, only: list[int]) -> tuple[int, str]:
    """Runs a seed; returns how many cases have passed, and a text that describes the fault, if
    there is one.
    """
    command = [sys.executable, "-X", "faulthandler", __file__, "--child"]
    command += ["--seed", str(seed), "--cases", str(cases), "--only", *map(str, only)]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        env = {**os.environ, "ODD_FOLDER": folder}
        program = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            env=env,
            text=True,
        )
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_hear, args=(program, lines), daemon=True).start()
        done, last = 0, ""
        while True:
            try:
                line = lines.get(timeout=HANG if last else LONG)
            except queue.Empty:
                program.send_signal(signal.SIGUSR1)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(1)  # faulthandler prints where the program is
                program.kill()
                what = "hangs"
                break
            if line is None:
                program.wait()
                if last == "over" and program.returncode == 0:
                    return done, ""
                what = f"ends with status {program.returncode}"
                break
            last = line
            done += line.startswith("case ")
        errors.seek(0)
        output = errors.read()
        if len(output) > 8000:  # the beginning shows the fault, the end the places of other threads
            output = f"{output[:3000]}\n…\n{output[-5000:]}"
        return done, f"seed {seed}: {what}: {last or 'its start'}\n{output}"


def _hear(program: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    assert program.stdout is not None
    for line in program.stdout:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default="0")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--only", type=int, nargs="*", default=[])
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    first, _, end = given.seed.partition(":")
    if given.child:
        child(int(first), given.cases, set(given.only))
        return 0
    until = time.monotonic() + given.seconds
    passed = failed = 0
    for seed in range(int(first), int(end) if end else int(first) + 1):
        if time.monotonic() > until:
            break
        print(f"seed {seed}", flush=True)
        done, wrong = run(seed, given.cases, given.only)
        if wrong:
            print(f"FAILED: {wrong}", flush=True)
        passed, failed = passed + done - bool(wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
