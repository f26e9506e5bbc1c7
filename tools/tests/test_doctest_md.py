"""Tests how the code blocks of documents are run: which blocks are run, how they are run, and which
outcomes count as wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT


def run(*files: Path | str) -> tuple[int, str, list[str]]:
    """Returns exit status, last line, and the lines before it. Most blocks in these tests need no
    library, so the library is empty unless a test asks for another one.
    """
    if files and not {"--library", "--single"} & set(files):
        files = ("--library", os.devnull, *files)
    result = subprocess.run(
        [sys.executable, ROOT / "tools/doctest_md.py", *files], capture_output=True, text=True
    )
    lines = (result.stdout + result.stderr).splitlines()
    return result.returncode, lines[-1], lines[:-1]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_blocks_marked_run_are_run_and_no_others(page: Path) -> None:
    page.write_text(
        "# Tour\n\n"
        "```python\nraise SystemExit('not marked')\n```\n\n"
        "```python run\nprint('one')\n```\n\n"
        "1. A step:\n\n   ```sh run\n   echo two\n   ```\n\n"
        "~~~~cpp run\n#include <weft/version.hpp>\nint main() { return weft::version.major; }\n~~~~\n"
    )
    status, last, lines = run(page)
    assert (status, last) == (0, "3 passed, 0 failed")
    assert lines == [f"ok   {page}:7 python", f"ok   {page}:13 sh", f"ok   {page}:17 cpp"]


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("```python run\n1 / 0\n```", "ZeroDivisionError"),
        ("```sh run\necho before\nfalse\necho after\n```", "exit status 1, expected 0"),
        ("```sh run\necho $UNSET_NAME_OF_NOTHING\n```", "exit status 1"),
        ("```sh run\nfalse | true\n```", "exit status 1"),
        ("```cpp run\nint main() { retrun 0; }\n```", "retrun"),
        ("```cpp run\nint main() { return 3; }\n```", "exit status 3, expected 0"),
        ("```python run exit=2\nraise SystemExit(3)\n```", "exit status 3, expected 2"),
        ("```python run timeout=0.2\nwhile True: pass\n```", "not done after 0.2 s"),
        ("```sh run timeout=0.2\ntail -f /dev/null & wait\n```", "not done after 0.2 s"),
    ],
)
def test_a_block_that_goes_wrong_is_shown(page: Path, block: str, message: str) -> None:
    page.write_text(f"{block}\n\n```sh run\necho the next one still runs\n```\n")
    status, last, lines = run(page)
    assert (status, last) == (1, "1 passed, 1 failed")
    assert f"FAIL {page}:1 " in "\n".join(lines)
    assert message in "\n".join(lines)


@pytest.mark.parametrize(
    ("expected", "passes"),
    [
        ("a\nb\nc", True),
        ("a\n...\nc", True),
        ("...\nc", True),
        ("a\n...", True),
        ("a\n...\nb\nc", True),  # `...` stands for no line at all
        ("a  \nb\nc\n\n", True),  # blanks at the ends do not count
        ("a\nb", False),
        ("b\nc", False),
        ("a\n...\nd", False),
        ("a\n.\nc", False),
        ("", False),
    ],
)
def test_the_output_must_be_what_the_text_says(page: Path, expected: str, passes: bool) -> None:
    page.write_text(f"```sh run\nprintf 'a\\nb\\nc\\n'\n```\n\n```text\n{expected}\n```\n")
    status, last, _ = run(page)
    assert (status, last) == ((0, "1 passed, 0 failed") if passes else (1, "0 passed, 1 failed"))


def test_a_text_block_belongs_to_the_block_right_before_it(page: Path) -> None:
    page.write_text("```sh run\necho a\n```\n\n```sh\necho b\n```\n\n```text\nb\n```\n")
    assert run(page)[1] == "1 passed, 0 failed"


def test_blocks_of_a_file_share_a_folder_and_find_the_checkout(page: Path) -> None:
    page.write_text(
        "```python save file=net.py\nprint('from net')\n```\n\n"
        '```sh run\npython net.py; test ! -e run; test -x "$WEFT_ROOT/run"\n```\n\n'
        "```text\nfrom net\n```\n\n"
        "```sh run in=root\ntest -x run\n```\n\n"
        "```python run exit=3\nraise SystemExit(3)\n```\n"
    )
    assert run(page)[:2] == (0, "3 passed, 0 failed")
    other = page.with_name("other.md")
    other.write_text("```sh run\ntest ! -e net.py\n```\n")
    assert run(page, other)[:2] == (0, "4 passed, 0 failed")


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ("python run exit", "unknown in the info string: exit"),
        ("python run color=red", "unknown in the info string: color"),
        ("python run exit=one", "invalid literal"),
        ("python run in=there", "in= takes root only"),
        ("python run file=../x", "leaves the scratch folder"),
        ("python run file=/x", "leaves the scratch folder"),
        ("rust run", "cannot run 'rust'; python, sh and cpp can be run"),
        ("python save", "save needs file=NAME"),
    ],
)
def test_a_bad_info_string_is_a_failure(page: Path, info: str, message: str) -> None:
    page.write_text(f"text\n\n```{info}\n```\n")
    status, last, lines = run(page)
    assert (status, last) == (1, "0 passed, 1 failed")
    assert "line 3" in lines[0]
    assert message in lines[0]


def test_a_page_in_which_nothing_runs_does_not_look_tested(page: Path) -> None:
    page.write_text("```python\npass\n```\n")
    assert run(page) == (1, "0 passed, 1 failed", [f"FAIL {page}: no block is marked `run`"])


def test_a_page_that_is_not_there_is_a_failure(page: Path) -> None:
    status, last, lines = run(page)
    assert (status, last) == (1, "0 passed, 1 failed")
    assert "cannot be read" in lines[0]


def test_a_header_that_is_parsed_once_for_all(page: Path) -> None:
    """A block must still include a header of Weft."""
    block = "```cpp run\n{}int main() {{ return weft::version.major; }}\n```\n\n"
    page.write_text(block.format("#include <weft/version.hpp>\n") + block.format(""))
    status, last, lines = run("--first", "weft/version.hpp", page)
    assert (status, last) == (1, "1 passed, 1 failed")
    assert lines == [f"ok   {page}:1 cpp", f"FAIL {page}:6 cpp: it includes nothing of Weft's"]
    status, last, lines = run("--first", "weft/nothing.hpp", page)
    assert (status, last) == (1, "0 passed, 1 failed")
    assert "weft/nothing.hpp" in lines[0]


def test_blocks_in_one_language_alone(page: Path) -> None:
    page.write_text("```python run\nraise SystemExit(1)\n```\n\n```sh run\ntrue\n```\n")
    assert run(page)[:2] == (1, "1 passed, 1 failed")
    assert run("--language", "sh", page)[:2] == (0, "1 passed, 0 failed")
    assert run("--language", "cpp", page)[:2] == (1, "0 passed, 1 failed")


def test_a_source_that_all_blocks_are_linked_with(page: Path, tmp_path: Path) -> None:
    """The source is compiled once."""
    source = tmp_path / "answer.cpp"
    source.write_text("int answer() { return 42; }\n")
    block = "```cpp run exit={}\nint answer();\n{}int main() {{ return answer(); }}\n```\n\n"
    page.write_text(block.format(42, "#include <weft/version.hpp>\n"))
    assert run("--library", source, page)[:2] == (0, "1 passed, 0 failed")
    assert run("--library", source, "--first", "weft/version.hpp", page)[:2] == (
        0,
        "1 passed, 0 failed",
    )
    source.write_text("int answer() { return nowhere; }\n")
    status, last, lines = run("--library", source, page)
    assert (status, last) == (1, "0 passed, 1 failed")
    assert "answer.cpp" in lines[0]


def test_libraries_that_are_made_already(page: Path, tmp_path: Path) -> None:
    for name, source in (
        ("a", "int b(); int a() { return b(); }\n"),
        ("b", "int b() { return 9; }\n"),
    ):
        (tmp_path / f"{name}.cpp").write_text(source)
        made = ["-c", tmp_path / f"{name}.cpp", "-o", tmp_path / f"{name}.o"]
        subprocess.run(["g++", *made], check=True)
    head = "#include <weft/version.hpp>\nint a();\n"
    page.write_text(f"```cpp run exit=9\n{head}int main() {{ return a(); }}\n```\n")
    both = ("--made", tmp_path / "a.o", "--made", tmp_path / "b.o")
    # The source in --library is not compiled.
    assert run("--library", tmp_path / "none.cpp", *both, page)[:2] == (0, "1 passed, 0 failed")
    status, last, lines = run("--library", tmp_path / "none.cpp", *both[:2], page)
    assert (status, last) == (1, "0 passed, 1 failed")
    assert any("b()" in line for line in lines)


@pytest.mark.soak
def test_the_library_in_one_header(page: Path) -> None:
    page.write_text(
        "```cpp run exit=3\n#include <weft/weft.hpp>\n"
        "#ifndef WEFT_ABI\n#error\n#endif\n"
        "weft::Process write(weft::Writer<int> w) { co_await w.write(3); }\n"
        "int main() {\n  weft::Channel<int> c;\n  int got = 0;\n"
        "  auto read = [&](weft::Reader<int> r) -> weft::Process { got = co_await r.read(); };\n"
        "  weft::run(write(c.writer()), read(c.reader()));\n  return got;\n}\n```\n"
    )
    assert run("--single", page)[:2] == (0, "1 passed, 0 failed")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--first", "weft/version.hpp"]])
def test_its_use_is_explained(arguments: list[str]) -> None:
    status, last, _ = run(*arguments)
    assert status == 2
    assert last.startswith("usage: doctest_md.py FILE…")
