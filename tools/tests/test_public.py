"""Tests that the stored lists of public names agree with the sources, that no private name is in
them, and that a change is shown and fails the check.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import public as tool

public: Any = tool
CTAGS = pytest.mark.skipif(shutil.which("ctags") is None, reason="ctags is not installed")


@CTAGS
def test_the_public_names_are_those_that_are_stored() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/public.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_list_of_python_has_every_export_and_its_members() -> None:
    lines = set(public.python())
    for line in (
        "weft.coroutines: class Reader(Generic[T_co])",
        "weft.coroutines: Reader.read(self) -> Awaitable[T_co]",
        "weft.coroutines: Reader.property closed(self) -> bool",
        "weft.coroutines: BlockedProcess.path: str",
        "weft.plugnplay.coroutines: mult = times",
        "weft.observe: class Hog(NamedTuple)",
    ):
        assert line in lines, line
    assert not [line for line in lines if "._" in line and ".__" not in line]


HEADER = """
namespace weft::inline WEFT_ABI {
namespace detail { struct Hidden { void hidden(); }; }
class Shown {
 public:
  int seen(int x = f(1, 2), char c = 'x') const;
 private:
  int unseen();
  int field_;
};
template <class T, class P = Shared> Shown make(T t, bool b = a == c);
namespace core { void below(); }
}
namespace weft::inline WEFT_ABI::runtime { void under(); }
namespace other { void foreign(); }
"""


@CTAGS
def test_the_list_of_cpp_has_what_is_public_alone(tmp_path: Path) -> None:
    (tmp_path / "a.hpp").write_text(HEADER)
    assert list(public.cpp(tmp_path)) == [
        "class weft::Shown",
        "function weft::Shown::seen (int x,char c) const",
        "function weft::make <class T,class P=Shared> (T t,bool b)",
    ]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("(int x = 1)", "(int x)"),
        ("(int x = f(1, {2, 3}),int y)", "(int x,int y)"),
        ("(std::function<void ()> f = [](int) { return 1; })", "(std::function<void ()> f)"),
        ("()", "()"),
    ],
)
def test_defaults_are_left_out(given: str, kept: str) -> None:
    assert public.without_defaults(given).replace(" ,", ",") == kept


def test_a_change_is_shown_and_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(public, "LISTS", {"python": tmp_path / "python.txt"})
    assert public.main([]) == public.main(["--check"]) == 0
    path = tmp_path / "python.txt"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Barrier.sync", "Barrier.snyc"), encoding="utf-8")
    assert public.main(["--check"]) == 1
    errors = capsys.readouterr().err
    assert "-weft.coroutines: Barrier.snyc" in errors and "+weft.coroutines: Barrier.sync" in errors
    assert "if on purpose, python3 tools/public.py and a line in CHANGELOG.md" in errors
    assert public.main(["--chekc"]) == 2


def test_without_ctags_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert public.main(["--check"]) == 1
    assert "./run setup cpp" in capsys.readouterr().err
