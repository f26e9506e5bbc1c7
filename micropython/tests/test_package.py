"""What is delivered: package.json, sizes, the package compiled."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from . import tiers

MPY_CROSS = tiers.MADE / "mpy-cross"
LINK = {"link.py", "_line.py", "_frames.py", "_cbor.py"}
BUDGETS = {  # bytes of .mpy
    "what a program of coroutines loads": 30_500,
    "all but the link to a PC": 56_500,
    "the link to a PC": 17_000,
}


def test_package_json_is_what_the_folder_holds() -> None:
    done = subprocess.run([sys.executable, tiers.HERE / "mkpackage.py", "--check"], check=False)
    assert done.returncode == 0, "run micropython/mkpackage.py"


def test_every_file_of_the_package_is_there() -> None:
    package = json.loads((tiers.HERE / "package.json").read_text(encoding="utf-8"))
    assert all((tiers.HERE / source).is_file() for _, source in package["urls"])


def compiled(names: list[str], folder: object) -> int:
    total = 0
    for name in names:
        out = f"{folder}/{name.replace('/', '.')}.mpy"
        source = tiers.HERE / "weft" / name
        subprocess.run(
            [MPY_CROSS, "-march=armv7m", "-O2", "-s", name, "-o", out, source], check=True
        )
        with open(out, "rb") as file:
            total += len(file.read())
    return total


def loaded() -> list[str]:
    """The files of weft/ that a program of coroutines really loads."""
    said = tiers.snippet(
        "pure",
        "import sys, weft.coroutines as c\n"
        "c.run(c.process(lambda: c.sleep_ms(0))())\n"
        "for m in sys.modules.values():\n"
        "    if m.__name__.split('.')[0] == 'weft': print(m.__file__)\n",
    )
    return sorted(f.rpartition("/weft/")[2] for f in said.split())


def test_it_stays_as_small_as_its_page_says(tmp_path: object) -> None:
    assert {"__init__.py", "_chan.py", "_plain.py", "coroutines.py"} <= set(loaded())
    core = compiled(loaded(), tmp_path)
    files = sorted(p.relative_to(tiers.HERE / "weft") for p in (tiers.HERE / "weft").rglob("*.py"))
    link = compiled(sorted(LINK), tmp_path)
    every = compiled([f.as_posix() for f in files if f.as_posix() not in LINK], tmp_path)
    print(f"coroutines {core} bytes of .mpy, the link to a PC {link}, everything else {every}")
    assert core <= BUDGETS["what a program of coroutines loads"]
    assert link <= BUDGETS["the link to a PC"]
    assert every <= BUDGETS["all but the link to a PC"]


@pytest.mark.parametrize("tier", tiers.MICROPYTHONS)
def test_it_runs_compiled_by_mpy_cross_from_a_lib_folder(tier: str, tmp_path: object) -> None:
    lib = tmp_path / "lib" / "weft"  # type: ignore[operator]
    for source in (tiers.HERE / "weft").rglob("*.py"):
        to = lib / source.relative_to(tiers.HERE / "weft").with_suffix(".mpy")
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([MPY_CROSS, "-o", to, source], check=True)
    script = tmp_path / "main.py"  # type: ignore[operator]
    script.write_text(
        "import sys\n"
        f"sys.path[:] = [{str(lib.parent)!r}] + [p for p in sys.path if p.endswith('x64')] + ['.frozen']\n"
        "from weft.coroutines import *\n"
        "@process\nasync def put(w):\n    await w.write(42)\n"
        "@process\nasync def get(r):\n    return await r.read()\n"
        "c = Channel('c')\n"
        "print(run(put(-c), get(+c)))\n"
        "import weft\nprint(weft.__file__.endswith('.mpy'))\n",
        encoding="utf-8",
    )
    assert tiers.run(tier, script) == "[None, 42]\nTrue\n"
