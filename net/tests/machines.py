"""The machines of a test: namespaces with a network each, and a switch between them that delays,
loses and cuts.

    with Machines(3, seed=1) as machines:                     10.77.0.1, 10.77.0.2, 10.77.0.3
        machines.configure(delay=0.02, loss=0.02)                  from now on, for each packet
        machines.configure(cut=[2])                                nothing to or from the second
        [*machines.inside(2), "python", …]                    a command, on the second

The tests do not use netem: not every kernel has it, and its losses cannot be counted from a test.
Instead each machine has a TUN device, whose packets go to the switch, a program of its own. TCP
resends the packets that the switch loses, as on any bad network.

Invariants
- A namespace exists as long as its holder, a `cat` whose input belongs to the test: when the test
  ends, all namespaces are removed.
- The switch chooses the lost packets by a seed, in the order in which packets arrive.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NETWORK = "10.77.0"
CLONE_NEWNET = 0x4000_0000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x4004_54CA, 1, 0x1000


def why_not() -> str:
    """Returns the reason why namespaces cannot be made on this system, or "" if they can."""
    if os.geteuid() != 0:
        return "namespaces with networks are for root: nothing was cut, delayed or lost"
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"there is no `{program}`: nothing was cut, delayed or lost"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun: nothing was cut, delayed or lost"
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces here: {tried.stderr!r}"


class Losses:
    """Draws losses: of every 1/loss packets exactly one is lost, at a random place. So a test that
    sends at least 1/loss packets knows that one was lost. If each packet were drawn independently,
    one run in ninety would lose no packet.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.left = self.at = 0

    def next(self, loss: float) -> bool:
        if not loss:
            self.left = 0  # restarts the count of losses
            return False
        if not self.left:
            self.left = round(1 / loss)
            self.at = self.random.randint(1, self.left)
        self.left -= 1
        return self.left + 1 == self.at


class Machines:
    port = 4222  # where the server of the tests listens
    loss = 0.02  # the loss of a bad network

    def __init__(self, n: int, seed: int) -> None:
        self.holders = [
            subprocess.Popen(
                ["unshare", "-n", "sh", "-c", "ip link set lo up && echo && exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for _ in range(n)
        ]
        for holder in self.holders:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"\n"  # the holder is in its namespace now
        pids = [str(h.pid) for h in self.holders]
        self.switch = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(seed), *pids],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read_counts()

    def _read_counts(self) -> dict[str, int]:
        assert self.switch.stdout is not None
        line = self.switch.stdout.readline()
        assert line, "the switch has ended"
        counts: dict[str, int] = json.loads(line)
        return counts

    def configure(self, **how: Any) -> dict[str, int]:
        """Sets how the switch treats packets from now on. Returns the counts so far: `passed`,
        `lost`, `cut`.

        Args:
            delay: seconds, each way.
            jitter: the largest random addition to the delay, in seconds, so that packets overtake
            each other.
            loss: a share of 1; Losses draws the packets. cut: the machines that cannot be reached,
            and that reach no other.
        """
        assert self.switch.stdin is not None
        self.switch.stdin.write(json.dumps(how) + "\n")
        self.switch.stdin.flush()
        return self._read_counts()

    def address(self, machine: int) -> str:
        return f"{NETWORK}.{machine}"

    def inside(self, machine: int) -> list[str]:
        """Returns the words to put before a command so that the command runs on this machine."""
        return ["nsenter", f"--net=/proc/{self.holders[machine - 1].pid}/ns/net", "--"]

    def reached(self, url: str, machine: int) -> str:
        """Returns the URL by which this machine reaches the server at `url`."""
        return url

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.switch, *self.holders):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait()
            process.stdout.close()


# --- the switch -----------------------------------------------------------------------------------


def _device(pid: str, machine: int) -> int:
    """Makes a TUN device, with its address, in the namespace of the OS process `pid`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as there, Path("/proc/self/ns/net").open() as here:
        if libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
        for command in (
            ["addr", "add", f"{NETWORK}.{machine}/24", "dev", "tun0"],
            ["link", "set", "tun0", "up"],
        ):
            subprocess.run(["ip", *command], check=True)
        if libc.setns(here.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    return device


class _Switch:
    def __init__(self, seed: int, pids: list[str]) -> None:
        self.devices = {i + 1: _device(pid, i + 1) for i, pid in enumerate(pids)}
        self.random = random.Random(seed)
        self.losses = Losses(seed)
        self.how: dict[str, Any] = {"delay": 0.0, "jitter": 0.0, "loss": 0.0, "cut": []}
        self.counts = {"passed": 0, "lost": 0, "cut": 0}
        self.due: list[tuple[float, int, int, bytes]] = []  # time, number, receiver and packet
        self.number = 0

    def came(self, machine: int, packet: bytes) -> None:
        # All other packets are IPv6 neighbour solicitations, and there are no neighbours.
        to = packet[19] if packet[0] >> 4 == 4 else 0
        if to not in self.devices:
            return
        if {machine, to} & set(self.how["cut"]):
            self.counts["cut"] += 1
        elif self.losses.next(self.how["loss"]):
            self.counts["lost"] += 1
        else:
            self.number += 1
            late = self.how["delay"] + self.random.random() * self.how["jitter"]
            heapq.heappush(self.due, (time.monotonic() + late, self.number, to, packet))

    def deliver(self) -> float | None:
        """Delivers the packets that are due. Returns the seconds until the next packet is due, or
        None.
        """
        while self.due:
            wait = self.due[0][0] - time.monotonic()
            if wait > 0:
                return wait
            _, _, to, packet = heapq.heappop(self.due)
            if to in self.how["cut"]:
                self.counts["cut"] += 1
                continue
            self.counts["passed"] += 1
            try:
                os.write(self.devices[to], packet)
            except BlockingIOError:  # the queue of the device is full
                self.counts["lost"] += 1
        return None

    def run(self) -> None:
        machines = {device: machine for machine, device in self.devices.items()}
        print(json.dumps(self.counts), flush=True)
        while True:
            ready, _, _ = select.select([0, *machines], [], [], self.deliver())
            for device in ready:
                if device == 0:
                    line = sys.stdin.readline()
                    if not line:
                        return
                    self.how.update(json.loads(line))
                    print(json.dumps(self.counts), flush=True)
                    continue
                with contextlib.suppress(BlockingIOError):
                    self.came(machines[device], os.read(device, 65536))


if __name__ == "__main__":
    _Switch(int(sys.argv[1]), sys.argv[2:]).run()
