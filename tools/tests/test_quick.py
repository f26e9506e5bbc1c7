"""Tests ./run quick: the tests in its table exist, and it runs and counts the requested tests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import quick  # noqa: E402

ROWS = quick.table()
SOURCES = re.compile(
    r"(cpp/(include|src|explorer)|python/(src|native)|compat|conformance|emulator|mcu|micropython|lf/src|theses|bench|examples|packaging|tools)"
    r"/(?!.*tests/).*\.(py|pyi|hpp|cpp|c|h|mjs|pml|sh)"
)


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "quick.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_each_source_file_has_tests() -> None:
    files = [f for f in quick.git("ls-files") if SOURCES.fullmatch(f)]
    assert len(files) > 500
    without = [f for f in files if not quick.tests_of(f, ROWS)]
    assert without == [], "a row of tools/quick.toml is to name their tests"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.paths[0])
def test_a_row_names_what_is_there(row: quick.Row) -> None:
    files = quick.git("ls-files", "--cached", "--others", "--exclude-standard")
    for pattern in row.paths:
        assert any(quick.fnmatch.fnmatch(f, pattern) for f in files), f"no file is {pattern}"
    for test in row.tests:
        found = quick.expanded(test)
        assert found, f"no test is {test}"
        for one in found:
            path, _, name = one.partition("::")
            assert (ROOT / path).is_file()
            there = name in (ROOT / path).read_text(encoding="utf-8")
            # The name can be that of one of several scripts.
            assert there or list((ROOT / path).parent.rglob(f"{name}*"))


def test_the_first_row_that_fits_decides() -> None:
    assert quick.tests_of("cpp/include/weft/core/one2one.hpp", ROWS) == [
        "cpp/tests/hosted_one2one.cpp"
    ]
    assert "cpp/tests/core_choice.cpp" in quick.tests_of("cpp/include/weft/core/select.hpp", ROWS)


def test_a_file_of_tests_is_run_itself() -> None:
    for path in ("python/tests/test_choice.py", "cpp/tests/hosted_time.cpp", "README.md"):
        assert quick.tests_of(path, ()) == [path]
    assert quick.tests_of("python/tests/parts.py", ()) == []


def test_a_case_is_found_by_its_name_in_every_room() -> None:
    found = json.loads(
        ask("--list", "--json", "rule 5.6: a guard whose channel is poisoned").stdout
    )
    assert found == [
        "cpp/tests/core_choice.cpp::rule 5.6: a guard whose channel is poisoned is ready with that end"
    ]
    scenario = "two_choices_meet_and_exactly_one_guard_commits"
    (found,) = json.loads(ask("--list", "--json", scenario).stdout)
    assert found.startswith("conformance/tests/test_scenarios.py::" + scenario)
    for part in ("host lta", "test_the_first_row_that_fits"):
        assert json.loads(ask("--list", "--json", part).stdout)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no test is called so"], "is not a file, and no test has it in its name"),
        (["/"], "is not in this checkout"),
        (["LICENSE"], "tools/quick.toml has no row for them"),
    ],
)
def test_what_cannot_be_run_is_refused_with_words(words: list[str], why: str) -> None:
    done = ask(*words)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stdout == ""


def test_help_and_list_run_nothing() -> None:
    assert "quick.toml" in ask("--help").stdout
    assert ask("--list", "lf/src/weft_lf/ticks.py").stdout == "lf/tests/test_ticks.py\n"


@pytest.mark.parametrize(
    ("body", "counts", "status"),
    [("assert True", "1 passed, 0 failed", 0), ("assert False", "0 passed, 1 failed", 1)],
)
def test_it_counts_what_a_room_says(
    body: str,
    counts: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "run").write_text(
        f"#!{sys.executable}\ntry: {body}\nexcept AssertionError: print('0 passed, 1 failed'); raise SystemExit(1)\n"
        "print('1 passed, 0 failed')\n"
    )
    (tmp_path / "run").chmod(0o755)
    monkeypatch.setattr(quick, "asked", lambda words, only: [str(tmp_path / "run")])
    monkeypatch.setattr(sys, "argv", ["quick"])
    assert quick.main() == status
    assert capfd.readouterr().out.splitlines()[-1] == counts


def test_a_test_program_that_crashes_or_says_nothing_has_failed() -> None:
    assert quick.closing(0, "no counts at all") == (0, 1)
    assert quick.closing(-11, "3 passed, 0 failed\n") == (3, 1)
    assert quick.closing(1, "3 passed, 2 failed\n") == (3, 2)
    assert quick.closing(0, "3 passed, 0 failed\n") == (3, 0)


def test_a_measurement_puts_the_line_back(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    with pytest.raises(KeyboardInterrupt), quick.touched(file):
        assert file.read_text() != "x = 1\n"
        raise KeyboardInterrupt
    assert file.read_text() == "x = 1\n"


def test_what_is_measured_has_tests() -> None:
    for path, _ in quick.MEASURED:
        assert (ROOT / path).is_file()
        assert quick.tests_of(path, ROWS)
