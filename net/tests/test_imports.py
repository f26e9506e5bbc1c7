"""Checks that a program imports some modules only when it uses them, so that it starts quickly."""

from __future__ import annotations

import subprocess
import sys


def test_sessions_do_without_what_makes_keys_and_what_speaks_to_servers(keys):
    """wire 17.1, 17.2: existing certificates and an address are enough for a session."""
    program = (
        "import sys; from weft import net\n"
        f"net.listen(keys={str(keys)!r}).close()\n"
        "print({m.partition('.')[0] for m in sys.modules} & {'cryptography', 'nats'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "set()"
