"""The inline namespace of the C++ library lists the settings that change its layout, as
cpp/docs/building.md says.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

PAGE = (ROOT / "cpp/docs/building.md").read_text(encoding="utf-8")
FLAGS = {
    "checks": "-DWEFT_CHECKS=1",
    "checked": "-DWEFT_CHECKED=1",
    "no_futex": "-DWEFT_NO_FUTEX",
    "no_bias": "-DWEFT_NO_BIAS",
    "asan": "-fsanitize=address",
    "tsan": "-fsanitize=thread",
}


def name(compiler: str, *flags: str) -> str:
    """Returns the value of WEFT_ABI with this compiler and these flags."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is missing")
    command = [compiler, "-std=c++20", f"-I{ROOT / 'cpp/include'}", *flags, "-E", "-xc++", "-"]
    source = "#include <weft/config.hpp>\nWEFT_ABI\n"
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_each_flag_is_in_the_name(compiler: str) -> None:
    plain = name(compiler)
    assert re.fullmatch(r"v\d+_\d+" + ("_clang" if compiler == "clang++" else ""), plain)
    for word, flag in FLAGS.items():
        assert name(compiler, flag) == f"{plain}_{word}"


def test_the_page_explains_each_part_of_the_name() -> None:
    rows = re.search(r"\| in the name \|.*?\n\n", PAGE, re.DOTALL)
    assert rows
    words = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| ([^|]*) \|", rows[0], re.M))))
    assert words == {"v0_1", "clang", *FLAGS}
