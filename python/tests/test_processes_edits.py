"""Hosts that continue to run, and modules that are edited (rule 9.6)."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft import threads as th
from weft._hosts import edits as _edits
from weft._hosts import sources as _sources
from weft.processes import Channel, Hosts, process

JOB = """
import os
import helper_edited

def job(n):
    return helper_edited.f(n), os.getpid()

def takes(begun, reader):
    begun.write("here")
    return reader.read(), *job(3)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "job_edited.py").write_text(JOB)
    (tmp_path / "helper_edited.py").write_text("def f(n):\n    return n * n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("job_edited", "helper_edited"):
        sys.modules.pop(name, None)


def edited(folder: Path, text: str) -> None:
    """Edits the helper without changing its times, so that Python itself would still use the
    compiled file."""
    file = folder / "helper_edited.py"
    about = file.stat()
    file.write_text(f"def f(n):\n    return {text}\n")
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_an_edited_helper_is_never_the_old_one(folder):
    """Rule 9.6: after an edit a new OS process runs the call, and the old one runs only its running
    call."""
    jobs = importlib.import_module("job_edited")
    job, takes = process(jobs.job), process(jobs.takes)
    with Hosts(1) as hosts:
        first = th.run(job.on(hosts)(3))
        assert first[0] == 9 and th.run(job.on(hosts)(3)) == first
        edited(folder, "n + n")
        second = th.run(job.on(hosts)(3))
        assert second[0] == 6 and second[1] != first[1]
        (folder / "data.txt").write_text("x")  # a file that no module imports
        assert th.run(job.on(hosts[0])(3)) == second
        # A running call is not disturbed: its host ends after the call.
        begun, c = Channel("begun"), Channel("c")
        here, writer = begun.reader(), c.writer()

        @th.process
        def edits() -> Any:
            here.read()
            edited(folder, "n - n")
            found = hosts.call(jobs.job, (3,), {})
            writer.write("go on")
            return found

        old, new = th.run(takes.on(hosts)(begun.writer(), c.reader()), edits())
        assert tuple(old) == ("go on", *second) and new[0] == 0 and new[1] != second[1]
        assert hosts.pids == [new[1]]
        (folder / "helper_edited.py").unlink()
        with pytest.raises(ModuleNotFoundError, match="helper_edited"):
            th.run(job.on(hosts)(3))


def test_what_is_looked_at(folder, monkeypatch):
    """Rule 9.6: unedited files are not read again, and functions without a file are not stale."""
    monkeypatch.setattr(_sources, "SETTLED", -1e9)
    jobs = importlib.import_module("job_edited")
    edits = _edits.Edits()
    assert edits.stale(jobs.job) == []
    with monkeypatch.context() as without:
        without.setattr(Path, "read_bytes", None)
        assert edits.stale(jobs.job) == []
    monkeypatch.setattr(_sources, "SETTLED", 1e9)
    edited(folder, "n + n")
    assert edits.stale(jobs.takes) == [str(folder / "helper_edited.py")]
    assert _edits.Edits().stale(jobs.job) == []
    (folder / "job_edited.py").write_text("import more_edited" + JOB)
    (folder / "more_edited.py").write_text("")
    assert str(folder / "more_edited.py") in edits.stale(jobs.job)
    for odd in (len, None, 3, pytest.fixture, Hosts.call):
        assert edits.stale(odd) == []
