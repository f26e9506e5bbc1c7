"""Starts agents of a network on this machine, for the benches that run something on them."""

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

from sampler import fail

from weft import net
from weft._net import server as _net_server

HERE = Path(__file__).resolve().parent
SERVER = HERE.parents[1] / ".build/net/bin/nats-server"


@contextlib.contextmanager
def agents(names, allow):
    """Starts a server, and for each name an agent with one OS process, which is allowed to run
    `allow` ("module:function"). Yields the server's URL, and the folder of the keys.
    """
    with contextlib.ExitStack() as left:
        folder = left.enter_context(tempfile.TemporaryDirectory())
        keys = net.make_keys(Path(folder) / "keys")
        server = left.enter_context(_net_server.Server(keys, "127.0.0.1:0", [SERVER]))
        for name in names:
            command = [sys.executable, "-m", "weft.cli", "host", "--join", server.url, "--json"]
            command += ["--keys", str(keys), "--name", name, "--hosts", "1", "--allow", allow]
            agent = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=HERE)
            left.callback(agent.wait)
            left.callback(agent.terminate)
            if not agent.stdout.readline():
                fail(f"net_there: the agent {name} has ended")
        yield server.url, keys
