"""Runs the scenarios on `weft._pure`, which is `weft` without its extension module: `WEFT_PURE=1
python -m conformance.pure BACKEND`.

Prints a JSON object with the outcome of each scenario that is not left out: "ok", or what went
wrong. LACKS lists the features that the pure package lacks, with the reasons; LEFT_OUT names the
scenarios that need them.
"""

from __future__ import annotations

import json
import sys
import traceback

from .micropython import LACKS as _LACKS
from .micropython import LEFT_OUT as _LEFT_OUT
from .scenarios import collect

BACKENDS = ("coroutines", "threads")

# MicroPython's package lacks most of these features too. But on CPython the package knows which
# process holds an end, even without finalisers.
LACKS = {
    "finalisers": "an end that is merely dropped is not noticed: no class of the pure package has a finaliser",
    "line numbers": _LACKS["line numbers"],
    "again": "a timeout of the pure package asks once (rule 7.12)",
    "every operation": _LACKS["every operation"],
    "kinds": "on(backend) is the extension module's: coroutines and threads do not meet in one network",
    "where": "the scenario asks the extension module where a process runs",
    "outside the lock": "a value is let go where it is, under the lock of threads",
}
_REST, _WHERE = "rules_09_12_the_rest", "rules_15_where"
_HERE = {"finalisers", "line numbers", "kinds", "every operation", "again"}
LEFT_OUT: dict[str, str] = {
    **{name: why for name, why in _LEFT_OUT.items() if why in _HERE},
    f"{_REST}.a_dropped_value_is_released_outside_the_lock": "outside the lock",
    f"{_WHERE}.a_cancelled_io_call_is_waited_for_no_longer": "where",
    f"{_WHERE}.one_scheduler_runs_its_processes_one_at_a_time": "where",
}


def outcomes(backend: str) -> dict[str, str]:
    found = {}
    for name, run in collect(backend).items():
        if name in LEFT_OUT:
            continue
        try:
            run()
            found[name] = "ok"
        except BaseException:
            found[name] = traceback.format_exc()
    return found


if __name__ == "__main__":
    json.dump(outcomes(sys.argv[1]), sys.stdout)
