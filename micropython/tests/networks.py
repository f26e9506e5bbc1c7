"""Plays random networks on a tier, and judges their histories by conformance/model.py:

.venv/bin/python -m micropython.tests.networks --on pure --seeds 0:1000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from conformance.driver import conform, verdict
from conformance.networks import DEFAULT, Net, generate, readable

from . import tiers


class MicroPythonDriver:
    """A driver whose OS process plays one network after another. If a network crashes that OS
    process, the history of that network ends, and a new OS process is started."""

    grain = "atomic"
    clock = "virtual"

    def __init__(
        self, tier: str, source: str = "", features: frozenset[str] = DEFAULT | {"cancel"}
    ) -> None:
        """`source` is a program that imports the player after what it does first."""
        self.name, self.tier, self.features = tier, tier, features
        self.program = ["-c", source] if source else [str(tiers.KIT / "player.py")]
        self.player: subprocess.Popen[str] | None = None

    def run(self, net: Net, seed: int) -> list[dict[str, Any]]:
        if self.player is None:
            self.player = subprocess.Popen(
                [*tiers.command(self.tier), *self.program],
                env=tiers.environment(self.tier),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert self.player.stdin and self.player.stdout and self.player.stderr
        try:
            self.player.stdin.write(json.dumps(net) + "\n")
            self.player.stdin.flush()
            line = self.player.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return list(json.loads(line))
        why = self.player.stderr.read()
        self.player = None
        print(f"{self.tier}: seed {seed}: the player broke:\n{why}", file=sys.stderr)
        return []

    def close(self) -> None:
        if self.player is not None:
            self.player.communicate("")
            self.player = None


def main() -> int:
    args = argparse.ArgumentParser(prog="micropython.tests.networks", description=__doc__)
    args.add_argument("--on", default="pure", choices=list(tiers.TIERS))
    args.add_argument("--seeds", default="0:100", metavar="A:B")
    args.add_argument("--seed", type=int, help="one network: shown with its history and verdict")
    args.add_argument("--size", type=int, default=4)
    given = args.parse_args()
    driver = MicroPythonDriver(given.on)
    if given.seed is not None:
        net = generate(given.seed, given.size, driver.features)
        judged, history = verdict(driver, net, given.seed)
        print(readable(net))
        print("\n".join(map(json.dumps, history)))
        print("conforms" if judged else judged.why)
        return 0 if judged else 1
    a, _, b = given.seeds.partition(":")
    passed, failed, unknown = conform(driver, range(int(a), int(b)), given.size)
    driver.close()
    print(f"{given.on}, seeds {given.seeds}: {unknown} undecided\n{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
