"""Tests of the user's cache, for each kind of result that it keeps: a result from the cache equals
the result that is made without it, and no file of the cache can make a result wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import syntax
from conftest import HERE, Write, model

from weft_lf import build, kept, parser
from weft_lf.errors import LfError

TEXT = syntax.text(3)
WARNS = 'reaction(startup) {= int x = "text"; (void)x; =}'
KINDS = ("lf-tables", "lf-trees", "lf-bodies")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weft"


@pytest.fixture
def result(root: Path, write: Write) -> Callable[[str], str]:
    """Returns a function that makes the result of a kind, as a new process would."""
    path = write(f"target C\nmain reactor {{ {WARNS} }}\n")

    def of(kind: str) -> str:
        if kind == "lf-trees":
            return repr(parser.parse_kept(TEXT, "a.lf"))
        if kind == "lf-tables":
            parser._lark.cache_clear()
            return repr(parser.parse(TEXT, "a.lf"))
        return repr(build.check_bodies(model(path), "host"))

    return of


def file_of(root: Path, kind: str) -> Path:
    (file,) = (root / kind).iterdir()
    return file


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_counts_as_not_there(
    root: Path, result: Callable[[str], str], kind: str
) -> None:
    made = result(kind)
    file = file_of(root, kind)
    whole = file.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    contents = (flipped, b"", b"\xff" * 99, b"rubbish", whole[:40], whole[:-1], whole + b" ")
    for content in contents[: 2 if kind == "lf-tables" else None]:  # Tables take long to make.
        file.write_bytes(content)
        assert result(kind) == made
        assert file.read_bytes() != content  # A new file is in its place.


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_time_comes_from_the_cache(
    root: Path, result: Callable[[str], str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = result(kind)
    monkeypatch.setattr(parser.Lark, "__init__", None)
    monkeypatch.setattr(build, "_check_syntax", None)
    if kind == "lf-trees":
        monkeypatch.setattr(parser, "parse", None)
    assert result(kind) == made


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_cannot_be_used(root: Path, result: Callable[[str], str], kind: str) -> None:
    """There may be a file in the place of the folder, or others may write to the folder."""
    root.mkdir(parents=True)
    (root / kind).write_text("a file")
    made = result(kind)
    (root / kind).unlink()
    (root / kind).mkdir()
    (root / kind).chmod(0o777)
    assert result(kind) == made
    assert not list((root / kind).iterdir())


def test_a_folder_in_which_nothing_can_be_written(
    root: Path, result: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(kept.tempfile, "NamedTemporaryFile", refused)
    for kind in KINDS:
        assert result(kind) == result(kind)
        assert not list((root / kind).iterdir())


def test_a_full_disk_leaves_no_rest(
    root: Path, result: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(kept.Path, "replace", full)
    assert result("lf-trees") == result("lf-trees")
    assert not list((root / "lf-trees").iterdir())


def test_nobody_knows_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(kept.Path, "home", nowhere)
    kept.keep("x", "key", b"content")
    assert kept.read("x", "key") is None


def test_another_version_has_another_key(
    root: Path, result: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("lf-tables", "lf-trees"):
        made = result(kind)
        with monkeypatch.context() as patch:
            patch.setattr(parser, "VERSIONS", (sys.version, "9.9"))
            assert result(kind) == made
        assert len(list((root / kind).iterdir())) == 2
    with pytest.raises(TypeError):  # Another file has another key.
        monkeypatch.setattr(parser, "parse", None)
        parser.parse_kept(TEXT, "b.lf")


def test_two_processes_at_once(root: Path) -> None:
    """Processes that write and read the same results at once see whole results only."""
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(HERE.parent / 'src')!r})\n"
        "from weft_lf import kept\n"
        "kept.FILES = 3\n"
        "for n in range(150):\n"
        "    made = bytes([n % 5]) * 70_000\n"
        "    found = kept.read('k', n % 5)\n"
        "    assert found in (None, made)\n"
        "    kept.keep('k', n % 5, made)\n"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, messages = process.communicate()
        assert process.returncode == 0, messages.decode()
    assert len(list((root / "k").iterdir())) <= 4


def test_errors_are_not_kept(root: Path) -> None:
    for _ in range(2):
        with pytest.raises(LfError):
            parser.parse_kept("target C\nmain reactor {", "a.lf")
    assert list((root / "lf-trees").iterdir()) == []


def test_only_the_newest_stay(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FILES", 3)
    (root / "lf-trees" / "folder").mkdir(parents=True)
    (root / "lf-trees").chmod(0o700)
    os.utime(root / "lf-trees" / "folder", (1, 1))
    for n in range(6):
        parser.parse_kept(f"target C\nmain reactor M{n} {{ }}\n", "a.lf")
    assert len([p for p in (root / "lf-trees").iterdir() if p.is_file()]) == 3


def test_a_changed_header_is_read_again(root: Path, write: Write, tmp_path: Path) -> None:
    """If a header changes, or a missing header is written, the messages are new."""
    include = 'preamble {=\n#include "own.h"\n=}\n'
    text = f'target C {{ cflags: "-I{tmp_path}" }}\n{include}main reactor {{ BODY }}\n'
    path = write(text.replace("BODY", "reaction(startup) {= own(1); =}"))
    told = []
    for header in (None, "static void own(int n) {}", "static void own(char *n) {}", ""):
        if header is not None:
            (tmp_path / "own.h").write_text(header)
        found = build.check_bodies(model(path), "host")
        assert found is not None
        told.append([p.message for p in found])
    assert "No such file" in told[0][0] and told[1] == []
    assert "makes pointer from integer" in told[2][0] and "implicit" in told[3][0]


def test_another_compiler_is_asked_again(
    root: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(f"target C\nmain reactor {{ {WARNS} }}\n")
    compiler = tmp_path / "own-cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert build.check_bodies(model(path), "host")
    compiler.write_text('#!/bin/sh\nexec cc -w "$@"\n')
    assert build.check_bodies(model(path), "host") == []


def test_the_users_language_does_not_matter(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints are made from the compiler's English messages."""
    path = write("target C\nmain reactor { output o: int reaction(startup) {= lf_set(o, 1); =} }")
    monkeypatch.setenv("LC_ALL", "C")
    (found,) = build.check_bodies(model(path), "host") or []
    assert found.hint.startswith("it is an output")


def test_generated_files_that_are_damaged_are_written_again(write: Write) -> None:
    path = write("target C\nmain reactor { reaction(startup) {= =} }\n")
    wanted = build.Wanted(compile=False)
    made = build.build(model(path), wanted).source
    whole = made.read_bytes()
    made.write_bytes(b"\xff\xfe" + whole[:50])
    assert build.build(model(path), wanted).source.read_bytes() == whole
