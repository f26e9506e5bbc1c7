"""The two programs of python/docs/network.md do what the page says, as it has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "python/docs/network.md"


def test_the_home_and_who_writes_to_it(server, tmp_path):
    home, writer = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert "offer(" in home and "network.writer(" in writer
    folder = tmp_path / "server"
    (folder / "server").write_text(server.url)  # as `weft net up` notes it
    where = {**os.environ, "WEFT_NET": str(folder)}
    children = [
        subprocess.Popen([sys.executable, "-c", text], env=where, stdout=subprocess.PIPE, text=True)
        for text in (home, writer)
    ]
    printed = [child.communicate()[0] for child in children]
    assert (printed, [child.returncode for child in children]) == (["0\n1\n4\n", ""], [0, 0])
