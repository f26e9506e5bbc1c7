"""Tests what the digest of a call covers: the function's module, and the modules that it imports
from its folder (WIRE-NETWORKS.md 17.9).
"""

from __future__ import annotations

import ast
import json
import os
import py_compile
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from weft import processes as ps
from weft import threads as th
from weft._hosts import sources as _sources
from weft._net import calls as _net_calls
from weft._net import foreign_json as _foreign_json
from weft.errors import BadUse


def written(folder: Path, **files: str) -> Path:
    """Writes the modules `files`. In their names `__` stands for `/`. Returns the folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def covered(folder: Path, module: str = "job", file: str = "job.py") -> set[str]:
    return set(_sources.found(module, folder / file))


# Each case has the text of job.py, the other modules of its folder, and the names of those that the
# digest covers; None stands for all of them.
KINDS = {
    "import": ("import helper", {"helper": ""}, {"helper"}),
    "from": ("from helper import f", {"helper": "f = 1"}, {"helper"}),
    "over another": ("import one", {"one": "import two", "two": "import three", "three": ""}, None),
    "a circle": ("import one", {"one": "import two", "two": "import one, job"}, None),
    "in a function": ("def f():\n    import helper", {"helper": ""}, {"helper"}),
    "in a branch": ("if 0:\n    import helper", {"helper": ""}, {"helper"}),
    "by its name": ("import importlib as i\ni.import_module('helper')", {"helper": ""}, {"helper"}),
    "a namespace": ("import space.one", {"space__one": "", "space__two": ""}, {"space.one"}),
    "a module of one": ("from space import one", {"space__one": ""}, {"space.one"}),
    "not of the folder": ("import os, numpy, nowhere", {"helper": ""}, set()),
    "a syntax error": ("import helper", {"helper": "def f(:", "two": ""}, {"helper"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_covered(tmp_path, kind):  # wire 17.9
    text, others, wanted = KINDS[kind]
    written(tmp_path, job=text, **others)
    names = set(others) if wanted is None else wanted
    assert covered(tmp_path) == {"job", *names}


def test_packages(tmp_path):  # wire 17.9
    """The `__init__` of a package runs before the package's modules, so the digest covers
    `__init__` too."""
    folder = tmp_path / "src"
    for name, text in {
        "pack/__init__.py": "from .two import x",
        "pack/two.py": "x = 1",
        "pack/sub/__init__.py": "",
        "pack/sub/job.py": "from .. import three\nfrom ...beyond import x\nfrom .near import y",
        "pack/sub/near.py": "import pack.four",
        "pack/three.py": "",
        "pack/four.py": "",
        "pack/unused.py": "",
        "beyond.py": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = covered(folder, "pack.sub.job", "pack/sub/job.py")
    assert found == {
        *("pack", "pack.two", "pack.sub", "pack.sub.job", "pack.sub.near"),
        *("pack.three", "pack.four"),
    }
    found = covered(folder, "pack", "pack/__init__.py")
    assert found == {"pack", "pack.two"}


def test_an_installed_package_covers_itself_alone(tmp_path):  # wire 17.9
    folder = tmp_path / "site-packages"
    written(folder, pack__job="import pack.two, other", pack__two="", other="")
    assert covered(folder, "pack.job", "pack/job.py") == {"pack.job", "pack.two"}


def test_each_edit_changes_the_digest(tmp_path):  # wire 17.9
    """Each edit counts, even if it keeps the size of the file and happens in the same tick of the
    file system's clock. It also counts if only the compiled file of a helper is left, or if a
    helper is removed.
    """
    written(tmp_path, job="import helper", helper="x = 0")

    def digest() -> str:
        return _sources.digest(_sources.found("job", tmp_path / "job.py"))

    seen = [digest()]
    for i in range(1, 5):
        (tmp_path / "helper.py").write_text(f"x = {i}")
        seen.append(digest())
    py_compile.compile(str(tmp_path / "helper.py"), str(tmp_path / "helper.pyc"))
    assert digest() == seen[-1]  # Python uses the source
    (tmp_path / "helper.py").unlink()
    seen.append(digest())
    (tmp_path / "helper.pyc").unlink()
    seen.append(digest())
    assert len(set(seen)) == len(seen)
    assert seen[-1] == _sources.digest_of(tmp_path / "job.py")
    (tmp_path / "job.py").unlink()
    with pytest.raises(OSError, match=r"job\.py"):
        digest()


def test_a_file_that_rests_is_read_once(tmp_path, monkeypatch):
    """A program is not read again for each call, but an edit is noticed."""
    written(tmp_path, job="x = 1")
    job = tmp_path / "job.py"
    monkeypatch.setattr(_sources, "SETTLED", -1e9)
    first = _sources.found("job", job)
    with monkeypatch.context() as without:
        without.setattr(Path, "read_bytes", None)
        assert _sources.found("job", job) == first
    job.write_text("x = 23")
    assert _sources.found("job", job) != first


def test_a_fault_of_the_parser_is_passed_over(tmp_path, monkeypatch):
    """CPython 3.11 wrongly raises SystemError while it parses such a file; the file counts
    nevertheless."""
    written(tmp_path, job="import helper", helper="")
    faults = iter([SystemError("AST constructor recursion depth mismatch (before=24, after=19)")])
    parse = ast.parse

    def parse_later(source: bytes) -> ast.AST:
        for fault in faults:
            raise fault
        return parse(source)

    monkeypatch.setattr(ast, "parse", parse_later)
    assert covered(tmp_path) == {"job", "helper"}


def test_a_script_by_a_symbolic_link(tmp_path):  # wire 17.9
    written(tmp_path / "real", job="import helper", helper="")
    (tmp_path / "job.py").symlink_to(tmp_path / "real/job.py")
    assert covered(tmp_path) == {"job", "helper"}


def test_the_first_message_stays_small(tmp_path):  # wire 17.2, 17.9
    """If a program has very many modules, the message has only the digest of all of them."""
    names = [f"m{i:03}" for i in range(200)]
    written(tmp_path, job=f"import {', '.join(names)}", **dict.fromkeys(names, ""))
    many = _sources.found("job", tmp_path / "job.py")
    assert len(many) == 201 and _sources.told(many) == {}
    short = dict.fromkeys(names[:50], "0" * 64)
    asked = _net_calls.Asked("m", "f", "0" * 64, modules=_sources.told(short))
    assert len(asked.modules) == 50
    assert len(json.dumps(asked.request())) < _foreign_json.MAX_BYTES - 1000


@pytest.mark.parametrize("odd", [None, 7, [], {}, "x", [["job", "0"]]])
def test_any_digests_of_a_caller_are_taken(odd):
    assert _sources.difference({"job": "0" * 64}, odd) is None


def test_a_malformed_digest_is_a_difference():
    found = _sources.difference({"job": "0" * 64}, {"job": ["x" * 1000]})
    assert found is not None and found[0] == "job" and len(found[2]) <= _sources.SHOWN


def test_an_edited_helper_is_never_the_old_one(agent, network, tmp_path, monkeypatch):  # wire 17.9
    """If the caller has edited a helper, its calls are refused as long as the host has the old
    helper. Once the host has the new helper, OS processes that have imported the old helper run no
    more calls.
    """
    job = "import ours\n\n\ndef g(n):\n    return ours.f(n)\n"
    there = written(tmp_path / "there", jobs_of_ours=job, ours="def f(n):\n    return n * n\n")
    here = tmp_path / "here"
    shutil.copytree(there, here)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    agent("gpu1", "--hosts", "1", "--allow", "jobs_of_ours:g", folder=there)
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import jobs_of_ours  # type: ignore[import-not-found]

    with ps.Executor(on="gpu1") as pool:
        assert list(pool.map(jobs_of_ours.g, range(3))) == [0, 1, 4]
    cubes = "def f(n):\n    return n * n * n\n"
    (here / "ours.py").write_text(cubes)
    says = (
        r"module 'ours', which 'jobs_of_ours' imports, is not the same on gpu1: "
        r"SHA-256 \w+… in .*ours\.py there, \w+… here"
    )
    with pytest.raises(BadUse, match=says):
        th.run(ps.process(jobs_of_ours.g).on("gpu1")(2))
    with ps.Executor(on="gpu1") as pool, pytest.raises(BadUse, match=says):
        pool.submit(jobs_of_ours.g, 2).result()
    (there / "ours.py").write_text(cubes)
    assert th.run(ps.process(jobs_of_ours.g).on("gpu1")(3)) == 27
    with ps.Executor(on="gpu1") as pool:
        assert list(pool.map(jobs_of_ours.g, range(3))) == [0, 1, 8]
    sums = cubes.replace("*", "+")
    for folder in (here, there):  # Python itself would use the file that it compiled from `cubes`
        about = (folder / "ours.py").stat()
        (folder / "ours.py").write_text(sums)
        os.utime(folder / "ours.py", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert th.run(ps.process(jobs_of_ours.g).on("gpu1")(3)) == 9
    (there / "ours.py").unlink()
    with pytest.raises(BadUse, match=r"module 'ours', which .* on gpu1: none there, \w+… here"):
        th.run(ps.process(jobs_of_ours.g).on("gpu1")(3))


def test_a_module_in_an_archive(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("of_archive.py", "def f():\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path / "app.zip"))
    import of_archive  # type: ignore[import-not-found]

    with pytest.raises(BadUse, match="of_archive is in an archive"):
        _net_calls.asked_of(of_archive.f)
    assert _net_calls.sources_here("of_archive") is None
