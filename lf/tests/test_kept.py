"""Tests of the user's cache of syntax trees: a tree that comes from it is the tree that the parser
makes, and no file of the cache can make a result wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import syntax

from weft_lf import kept, parser
from weft_lf.errors import LfError

TEXT = syntax.text(3)


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "weft" / "lf-trees"


def test_the_second_time_nothing_is_parsed(trees: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = kept.parse(TEXT, "a.lf")
    assert repr(made) == repr(parser.parse(TEXT, "a.lf"))
    monkeypatch.setattr(parser, "parse", None)
    assert repr(kept.parse(TEXT, "a.lf")) == repr(made)
    with pytest.raises(TypeError):  # Another file has other places.
        kept.parse(TEXT, "b.lf")
    assert len(list(trees.iterdir())) == 1


def test_a_damaged_file_counts_as_not_there(trees: Path) -> None:
    made = kept.parse(TEXT, "a.lf")
    (file,) = trees.iterdir()
    whole = file.read_bytes()
    for content in (b"", b"rubbish", whole[:100], b"\x80\x04K\x07."):
        file.write_bytes(content)
        assert repr(kept.parse(TEXT, "a.lf")) == repr(made)
        assert file.read_bytes() == whole


def test_errors_are_not_kept(trees: Path) -> None:
    for _ in range(2):
        with pytest.raises(LfError):
            kept.parse("target C\nmain reactor {", "a.lf")
    assert list(trees.iterdir()) == []


def test_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert repr(kept.parse(TEXT, "a.lf")) == repr(parser.parse(TEXT, "a.lf"))


def test_only_the_newest_stay(trees: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FILES", 3)
    for n in range(5):
        kept.parse(f"target C\nmain reactor M{n} {{ }}\n", "a.lf")
    assert len(list(trees.iterdir())) == 3


def test_a_folder_to_which_others_may_write_is_not_used(trees: Path) -> None:
    trees.mkdir(parents=True)
    trees.chmod(0o777)
    assert repr(kept.parse(TEXT, "a.lf")) == repr(parser.parse(TEXT, "a.lf"))
    assert not list(trees.iterdir())
