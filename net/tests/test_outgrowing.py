"""Tests that the programs of python/docs/outgrowing.md behave as the page describes: on one
machine, on two, and as a tree of farms; and that `weft` accepts the options of the page's commands.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "python/docs/outgrowing.md"
TEXT = PAGE.read_text(encoding="utf-8")
SQUARES, TWO, TOP, BELOW = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
HEAD, BODY = SQUARES.split('if __name__ == "__main__":\n')
SHOWN = f"{[[n, n * n] for n in range(8)]}\n"


def ended(child: subprocess.Popen[str]) -> str:
    printed, errors = child.communicate()
    assert (child.returncode, errors) == (0, "")
    return printed


def start(folder: Path, *command: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_on_the_laptop(tmp_path):
    (tmp_path / "squares.py").write_text(SQUARES)
    assert ended(start(tmp_path, "squares.py")) == SHOWN


@pytest.mark.parametrize("where", ['"gpu1"', "network.hosts()"])
def test_on_two_machines_and_on_a_cluster(where, server, keys, agent, tmp_path):
    """The program works whose last two lines are those of the page's second block."""
    assert f"square.on({where})" in TEXT
    imported, _, joined = TWO.partition("\n\n")
    channels = BODY.splitlines(keepends=True)[0]
    indented = "".join(f"    {line}" for line in joined.splitlines(keepends=True))
    program = imported + "\n" + HEAD + 'if __name__ == "__main__":\n' + channels + indented
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "squares.py").write_text(program.replace('"gpu1"', where))
    agent("gpu1", "--allow", "squares:square", folder=there)
    (tmp_path / "server" / "server").write_text(server.url)
    assert ended(start(here, "squares.py", WEFT_NET=str(tmp_path / "server"))) == SHOWN


@pytest.mark.soak
def test_a_tree_of_farms(server, keys, agent, tmp_path):
    """Whichever of the lower programs computed which batches, the sum is the same. A program that
    starts when the work is done waits for the name, as the page describes.
    """
    (tmp_path / "below.py").write_text(BELOW)
    for name in ("gpu1", "gpu2"):
        agent(name, "--hosts", "1", "--allow", "below:square", folder=tmp_path)
    (tmp_path / "server" / "server").write_text(server.url)
    folder = str(tmp_path / "server")
    below = [start(tmp_path, "below.py", name, WEFT_NET=folder) for name in ("gpu1", "gpu2")]
    top = start(tmp_path, "-c", TOP, WEFT_NET=folder)
    try:
        assert ended(top) == f"{sum(n * n for n in range(1000))}\n"
    finally:
        for child in below:
            child.terminate()
            child.communicate()


def commands() -> list[str]:
    """Returns each line of the page that calls weft, without the program that the line starts."""
    lines = re.findall(r"^(?:\$ )?(weft .*)$", TEXT, re.MULTILINE)
    inline = re.findall(r"`(weft [^`…]*)`", TEXT)
    return sorted({line.partition(" -- ")[0] for line in lines + inline})


def test_the_commands_of_the_page_are_there() -> None:
    found = commands()
    assert {line.split()[1] for line in found} == {"host", "net", "up"}
    for line in found:
        words = line.split()
        name = words[1:3] if words[1] == "net" else words[1:2]
        done = subprocess.run(
            [sys.executable, "-m", "weft.cli", *name, "--help"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        for option in re.findall(r"--[a-z-]+", line):
            assert option in done.stdout, f"{line}: no {option}"


def test_the_manifest_of_kubernetes_is_valid() -> None:
    """The page's Deployment is valid by the schemas of Kubernetes. No cluster has run it."""
    why = "kubernetes-validate is not installed: tools/requirements/net.txt has it"
    kubernetes = pytest.importorskip("kubernetes_validate", reason=why)
    yaml = pytest.importorskip("yaml", reason=why)  # kubernetes-validate installs it
    manifests = re.findall(r"^```yaml\n(apiVersion.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(manifests) == 1
    for manifest in manifests:
        fields = yaml.safe_load(manifest)
        kubernetes.validate(fields, "1.31", strict=True)
        fields["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
        with pytest.raises(kubernetes.ValidationError):
            kubernetes.validate(fields, "1.31", strict=True)
