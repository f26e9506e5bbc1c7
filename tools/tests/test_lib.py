"""Tests the functions that the tasks share: retry, steps, stamps, and packages that are installed
only when they are missing.

These tests fake apt-get, dpkg-query, sudo, pip and npm: nothing is installed, and every call is
recorded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import House, plain_signals

# Fails as often as the file `failures` specifies, then succeeds. Records each call.
FLAKY = """
echo "$(basename "$0") $*" >> calls
left=$(cat failures 2>/dev/null || echo 0)
if ((left > 0)); then echo $((left - 1)) > failures; echo 'no network' >&2; exit 9; fi
"""

# Knows the packages in the file `installed`. Prints the requested packages, and fails if one of
# them is missing.
DPKG_QUERY = """
status=0
for word; do
  case $word in -*) continue ;; esac
  if grep -qx -- "$word" installed; then echo "ii  $word"; else status=1; fi
done
exit $status
"""

# `install` adds its arguments to the file `installed`.
APT_GET = (
    FLAKY
    + """
case " $* " in *" install "*) for word; do case $word in [a-z]*) echo "$word" >> installed ;; esac; done ;; esac
"""
)


def calls(house: House) -> list[str]:
    path = house.path / "calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(house: House) -> House:
    """Makes a checkout on a machine whose packages are in a file. sudo needs no password."""
    (house.path / "installed").write_text("bash\ngit\n")
    house.script("fake-bin/dpkg-query", DPKG_QUERY)
    house.script("fake-bin/apt-get", APT_GET)
    house.script(
        "fake-bin/sudo",
        'echo "sudo $*" >> calls\n'
        "while [[ ${1:-} == -* ]]; do [[ $1 == -- ]] && shift && break; shift; done\n"
        '"$@"\n',
    )
    return house


# --- retry and step -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "tries", "status"), [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 3, 9)]
)
def test_retry_tries_three_times(house: House, failures: int, tries: int, status: int) -> None:
    house.script("flaky", FLAKY)
    (house.path / "failures").write_text(f"{failures}\n")
    result = house.bash("retry ./flaky 'a b' || exit $?")
    assert result.returncode == status
    assert calls(house) == ["flaky a b"] * tries
    assert result.stderr.count("trying again") == tries - 1


def test_retry_waits_longer_each_time(house: House) -> None:
    house.script("flaky", FLAKY)
    house.script("fake-bin/sleep", 'echo "sleep $1" >> calls')
    (house.path / "failures").write_text("3\n")
    house.bash("retry ./flaky", WEFT_RETRY_DELAY="2")
    assert calls(house) == ["flaky ", "sleep 2", "flaky ", "sleep 6", "flaky "]


def test_a_step_says_what_it_does_and_keeps_its_output_to_itself(house: House) -> None:
    result = house.bash("step 'weaving cloth' bash -c 'echo out; echo err >&2'; echo next")
    assert result.stdout == "next\n"
    lines = result.stderr.splitlines()
    assert lines[0] == "weft: weaving cloth"
    assert lines[1].startswith("weft: weaving cloth: done (")
    assert (house.path / ".build/logs/weaving-cloth.log").read_text() == "out\nerr\n"


def test_a_step_that_fails_shows_why(house: House) -> None:
    result = house.bash("step 'weaving' bash -c 'echo the thread broke; exit 4' || exit $?")
    assert result.returncode == 4
    assert "weaving: failed (status 4); the end of .build/logs/weaving.log:" in result.stderr
    assert "    the thread broke" in result.stderr


def test_a_step_that_fails_ends_the_task(house: House) -> None:
    result = house.bash("step 'weaving' false; echo not reached")
    assert (result.returncode, result.stdout) == (1, "")


# --- stamps -------------------------------------------------------------------------------------


def test_stamped_work_is_done_once_per_key(house: House) -> None:
    house.script("flaky", FLAKY)
    script = "stamped it 'key 1' ./flaky a; stamped it 'key 1' ./flaky b"
    assert house.bash(script).returncode == 0
    assert calls(house) == ["flaky a"]
    house.bash("stamped it 'key 2' ./flaky c; stamped other 'key 2' ./flaky d")
    assert calls(house) == ["flaky a", "flaky c", "flaky d"]
    house.bash("stamped it 'key 1' ./flaky e")  # the stamp now says key 2
    assert calls(house)[-1] == "flaky e"


def test_work_that_failed_leaves_no_stamp(house: House) -> None:
    house.script("flaky", FLAKY)
    (house.path / "failures").write_text("1\n")
    assert house.bash("stamped it key ./flaky || exit $?").returncode == 9
    assert house.bash("stamped it key ./flaky").returncode == 0
    assert house.bash("stamped it key ./flaky").returncode == 0
    assert len(calls(house)) == 2


def test_a_new_key_that_fails_takes_the_old_stamp_with_it(house: House) -> None:
    house.script("flaky", FLAKY)
    house.bash("stamped it old ./flaky")
    (house.path / "failures").write_text("1\n")
    house.bash("stamped it new ./flaky || true; stamped it old ./flaky")
    assert len(calls(house)) == 3


def test_a_tree_hash_sees_names_and_contents(house: House) -> None:
    def tree_hash() -> str:
        return house.bash("tree_hash sources missing").stdout

    file = house.path / "sources/deep/a file.hpp"
    file.parent.mkdir(parents=True)
    file.write_text("one")
    first = tree_hash()
    assert len(first.strip()) == 64
    assert tree_hash() == first
    file.write_text("two")
    second = tree_hash()
    file.rename(file.with_name("b file.hpp"))
    third = tree_hash()
    (house.path / "sources/new.cpp").write_text("")
    assert len({first, second, third, tree_hash()}) == 4
    before = tree_hash()
    (house.path / "sources/deep/x.pyc").write_text("made by running")
    assert tree_hash() == before
    assert len(house.bash("tree_hash missing").stdout.strip()) == 64


# --- system packages ----------------------------------------------------------------------------


def with_euid(house: House, euid: int, text: str) -> subprocess.CompletedProcess[str]:
    """Runs a script over lib.sh as the user with this number would; bash's EUID itself cannot be
    set."""
    library = house.path / "tools/lib.sh"
    library.write_text(re.sub(r"\bEUID\b", "FAKE_EUID", library.read_text()))
    return house.bash(f"FAKE_EUID={euid}; {text}")


def as_root(house: House, text: str) -> subprocess.CompletedProcess[str]:
    return with_euid(house, 0, text)


def as_user(house: House, text: str) -> subprocess.CompletedProcess[str]:
    return with_euid(house, 1000, text)


def test_what_is_installed_is_left_alone(machine: House) -> None:
    result = as_root(machine, "need_apt bash git")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert calls(machine) == []


def test_only_what_is_missing_is_installed_after_one_update(machine: House) -> None:
    result = as_root(machine, "need_apt bash cmake g++; need_apt spin; need_apt cmake spin")
    assert result.returncode == 0, result.stderr
    update, first, second = calls(machine)
    assert update.endswith(" update")
    assert first.split()[-3:] == ["--no-install-recommends", "cmake", "g++"]
    assert second.split()[-2:] == ["--no-install-recommends", "spin"]
    assert "sudo" not in update + first + second
    assert "installing system packages: cmake g++" in result.stderr


def test_a_failed_download_is_tried_again_with_fresh_lists(machine: House) -> None:
    as_root(machine, "need_apt cmake")
    (machine.path / "calls").unlink()
    (machine.path / "failures").write_text("1\n")
    result = as_root(machine, "need_apt spin")
    assert result.returncode == 0, result.stderr
    assert [line.split()[3] for line in calls(machine)] == ["install", "update", "install"]


def test_a_download_that_keeps_failing_says_what_to_do(machine: House) -> None:
    (machine.path / "failures").write_text("1000\n")
    result = as_root(machine, "need_apt cmake; echo not reached")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "weft: could not install cmake; is the network there? Then run the same again."
    )


def test_a_user_gets_it_by_sudo(machine: House) -> None:
    result = as_user(machine, "need_apt cmake")
    assert result.returncode == 0, result.stderr
    assert [line.split()[0] for line in calls(machine)] == [
        "sudo",
        "sudo",
        "apt-get",
        "sudo",
        "apt-get",
    ]
    assert "--preserve-env=DEBIAN_FRONTEND" in calls(machine)[1]


def only_these_commands(house: House, *names: str) -> str:
    """Returns a PATH that contains only the fakes and the commands with these names."""
    for name in names:
        path = shutil.which(name)
        assert path is not None
        (house.bin / name).symlink_to(path)
    return str(house.bin)


BASICS = (
    "bash",
    "dirname",
    "grep",
    "sed",
    "cat",
    "head",
    "mkdir",
    "sha256sum",
    "cut",
    "tr",
    "find",
    "basename",
    "rm",
)


def test_a_user_without_sudo_is_told_the_command(machine: House) -> None:
    (machine.bin / "sudo").unlink()
    path = only_these_commands(machine, *BASICS)
    result = as_user(machine, f"PATH={path}; need_apt bash cmake spin")
    assert result.returncode == 1
    assert result.stderr == "weft: not root and no sudo; as root: apt-get install cmake spin\n"
    assert calls(machine) == []


def test_without_apt_it_says_what_is_needed_and_goes_on(house: House) -> None:
    path = only_these_commands(house, *BASICS)
    result = house.bash(f"PATH={path}; need_apt cmake; echo reached")
    assert result.stdout == "reached\n"
    assert "no apt here" in result.stderr
    assert "cmake" in result.stderr


def test_a_command_from_elsewhere_is_good_enough(machine: House) -> None:
    machine.script("fake-bin/weavenpm", "")
    assert as_root(machine, "need_command weavenpm npm").returncode == 0
    assert calls(machine) == []
    as_root(machine, "need_command weavenothing npm")
    assert calls(machine)[-1].endswith("npm")


# Prints the machine's mirror, and fetches a package that is a tar of a tree. Fails as often as
# FLAKY does.
APT_GET_DEB = (
    """
case " $* " in *" indextargets "*) echo "http://mirror.example/debian/"; exit; esac
"""
    + FLAKY.replace("calls", '"$HOUSE/calls"').replace("failures", '"$HOUSE/failures"')
    + """
case " $* " in *" download "*)
  mkdir -p made/usr/src/thing && echo "from $(tail -n 1 sources.list)" > made/usr/src/thing/file
  tar -c -C made -f thing_1_all.deb ./usr ;;
esac
"""
)


def test_a_package_of_another_suite_is_unpacked_once_and_nothing_installed(machine: House) -> None:
    machine.script("fake-bin/apt-get", APT_GET_DEB)
    machine.script("fake-bin/dpkg-deb", 'cat "$2"')
    house = str(machine.path)
    (machine.path / "failures").write_text("1\n")
    script = 'need_deb trixie thing usr/src/thing "$ROOT/.build/thing"'
    result = machine.bash(script, HOUSE=house)
    assert result.returncode == 0, result.stderr
    text = (machine.path / ".build/thing/file").read_text()
    assert "http://mirror.example/debian/ trixie main" in text
    done = calls(machine)
    assert [line.split()[-1] for line in done] == ["update", "update", "thing"]
    assert not any(" install " in line for line in done)
    assert not (machine.path / ".build/thing.fetch").exists()
    assert machine.bash(script, HOUSE=house).returncode == 0
    assert calls(machine) == done
    shutil.rmtree(machine.path / ".build/thing")
    assert machine.bash(script, HOUSE=house).returncode == 0
    assert (machine.path / ".build/thing/file").exists()


def test_a_package_that_cannot_be_fetched_says_what_to_do(machine: House) -> None:
    machine.script("fake-bin/apt-get", APT_GET_DEB)
    machine.script("fake-bin/dpkg-deb", 'cat "$2"')
    (machine.path / "failures").write_text("1000\n")
    result = machine.bash(
        'need_deb trixie thing usr/src/thing "$ROOT/.build/thing"; echo not reached',
        HOUSE=str(machine.path),
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "weft: could not fetch thing of Debian trixie; is the network there? Then run the same again."
    )


# --- Python, node, Go ---------------------------------------------------------------------------


def fake_python(house: House, version: str) -> None:
    header = house.path / "Python.h"
    house.script(
        "fake-bin/python3",
        f'echo "python3 $*" >> calls\n[[ $1 != -c ]] || printf "%s\\n" "{version}" "{header}"\n',
    )


# Makes the source package that pip is asked for, or fails if there is a file `gone`.
PIP_DOWNLOAD = """
echo "pip $*" >> "$HOUSE/calls"
[[ ! -f $HOUSE/gone ]] || exit 1
while [[ $1 != --dest ]]; do shift; done
mkdir -p made/thing-1.2/c && echo "of $3" > made/thing-1.2/c/file
tar -cz -C made -f "$2/thing-1.2.tar.gz" thing-1.2
"""


def test_the_source_of_a_python_package_is_unpacked_once(house: House) -> None:
    fake_python(house, "3 11")
    house.script(".venv/bin/python", "")
    house.script(".venv/bin/pip", PIP_DOWNLOAD)
    place, script = str(house.path), 'need_sdist thing 1.2 c "$ROOT/.build/thing"'
    for _ in range(2):
        result = house.bash(script, HOUSE=place)
        assert result.returncode == 0, result.stderr
    assert (house.path / ".build/thing/file").read_text() == "of thing==1.2\n"
    assert not (house.path / ".build/thing.fetch").exists()
    asked = [line for line in calls(house) if line.startswith("pip")]
    assert len(asked) == 1
    assert "--no-deps --no-binary thing" in asked[0]
    shutil.rmtree(house.path / ".build/thing")
    (house.path / "gone").touch()
    result = house.bash(f"{script}; echo not reached", HOUSE=place, WEFT_RETRY_DELAY="0")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "weft: could not fetch the source of thing 1.2; is the network there? Then run the same again."
    )


@pytest.mark.parametrize(
    ("version", "asked", "status"),
    [
        ("3 9", "", 1),
        ("3 10", "", 0),
        ("3 13", "", 0),
        ("3 10", "11", 1),
        ("3 11", "11", 0),
        ("4 0", "", 1),
    ],
)
def test_a_python_that_is_too_old_is_refused(
    house: House, version: str, asked: str, status: int
) -> None:
    fake_python(house, version)
    result = house.bash(f"need_python {asked}")
    assert result.returncode == status
    if status:
        assert (
            f"is Python {version.replace(' ', '.')}; this needs Python 3.{asked or 10}"
            in result.stderr
        )


def test_python_is_asked_once_until_it_changes(house: House) -> None:
    fake_python(house, "3 11")
    house.bash("need_python; need_python")
    house.bash("need_python")
    assert len(calls(house)) == 1
    fake_python(house, "3 12")
    os.utime(house.bin / "python3", (2e9, 2e9))
    house.bash("need_python 12")
    assert len(calls(house)) == 2


def test_the_headers_are_those_of_the_python_in_use(machine: House) -> None:
    fake_python(machine, "3 11")
    result = as_root(machine, "need_python_headers")
    assert result.returncode == 1
    # The package would be installed, although it lacks this Python's headers.
    assert calls(machine)[-1].endswith("python3-dev")
    assert "Python.h is missing: install the development files" in result.stderr
    (machine.path / "Python.h").write_text("")
    (machine.path / "calls").unlink()
    assert as_root(machine, "need_python_headers").returncode == 0
    assert calls(machine) == []


def fake_venv(house: House) -> None:
    house.script(".venv/bin/python", "")
    house.script(".venv/bin/pip", FLAKY)
    (house.path / ".venv/pyvenv.cfg").write_text("version = 3.11.2\n")
    (house.path / "wanted.txt").write_text("# why\nweave>=1 # and this\n\nloom\n")


def test_python_packages_are_installed_once_per_list(house: House) -> None:
    fake_venv(house)
    result = house.bash("need_pip it wanted.txt; need_pip it wanted.txt")
    assert result.returncode == 0, result.stderr
    assert calls(house) == ["pip install --progress-bar off -r wanted.txt"]
    assert "installing Python packages: weave>=1 loom\n" in result.stderr
    (house.path / "wanted.txt").write_text("weave>=2\n")
    house.bash("need_pip it wanted.txt")
    assert len(calls(house)) == 2
    # This .venv belongs to another Python.
    (house.path / ".venv/pyvenv.cfg").write_text("version = 3.12.0\n")
    house.bash("need_pip it wanted.txt")
    assert len(calls(house)) == 3


def test_pip_is_retried_and_its_failure_is_clear(house: House) -> None:
    fake_venv(house)
    (house.path / "failures").write_text("2\n")
    assert house.bash("need_pip it wanted.txt").returncode == 0
    (house.path / "failures").write_text("3\n")
    result = house.bash("need_pip other wanted.txt")
    assert result.returncode == 1
    assert "could not install the Python packages of wanted.txt" in result.stderr


def test_a_venv_whose_python_is_gone_is_made_anew(house: House) -> None:
    fake_venv(house)
    fake_python(house, "3 11")
    house.bash("need_pip it wanted.txt")
    (house.path / ".venv/bin/python").unlink()
    (house.path / ".venv/bin/python").symlink_to("/nowhere/python3")
    result = house.bash("need_venv")
    assert result.returncode == 0, result.stderr
    assert any("-m venv --clear" in call for call in calls(house))
    assert not (house.path / ".build/stamps/pip-it").exists()


def test_node_packages_are_those_of_the_lock_file(house: House) -> None:
    house.script("fake-bin/node", "echo v18.0.0\n")
    house.script("fake-bin/npm", FLAKY + 'mkdir -p "$2/node_modules"\n')
    result = house.bash("need_npm emulator")
    assert result.returncode == 1
    assert "package-lock.json is missing" in result.stderr
    lock = house.path / "emulator/package-lock.json"
    lock.parent.mkdir()
    lock.write_text("{}")
    house.bash("need_npm emulator; need_npm emulator")
    assert calls(house) == ["npm --prefix emulator ci --no-audit --no-fund"]
    shutil.rmtree(house.path / "emulator/node_modules")
    house.bash("need_npm emulator")
    lock.write_text('{"lockfileVersion": 3}')
    house.bash("need_npm emulator")
    assert len(calls(house)) == 3


def test_without_go_its_benches_are_skipped_with_a_message(machine: House) -> None:
    library = machine.path / "tools/lib.sh"
    library.write_text(library.read_text().replace("/usr/local/go", "/nowhere"))
    (machine.path / "failures").write_text("1000\n")
    path = only_these_commands(machine, *BASICS, "tail", "sleep", "touch")
    result = as_root(machine, f"PATH={path}; need_go || echo skipped")
    assert result.stdout == "skipped\n"
    assert "benches against Go are skipped" in result.stderr
    machine.script("fake-bin/go", "")
    assert as_root(machine, "need_go").returncode == 0


# --- set-up as a whole --------------------------------------------------------------------------


def test_set_up_names_its_parts(house: House) -> None:
    result = house.run("setup")
    assert result.returncode == 2
    assert (
        "parts: native cpp portability model python python-debug examples bench peers mcu lf "
        "micropython micropython-soak net view lint types docs site packaging wheels library weft"
        in result.stdout
    )
    result = house.run("setup", "native", "loom")
    assert result.returncode == 1
    assert "there is no part 'loom'" in result.stderr


@pytest.mark.parametrize("task", ["build", "demo", "bench"])
def test_a_task_whose_room_is_missing_says_so(house: House, task: str) -> None:
    result = house.run(task)
    assert result.returncode == 1
    assert result.stderr.endswith("is missing: is this a whole checkout?\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("task", "word"), [("clean", "everything"), ("lint", "quick")])
def test_a_task_refuses_what_it_does_not_know(house: House, task: str, word: str) -> None:
    result = house.run(task, word)
    assert result.returncode == 1
    assert f"'{word}' is unknown; ./run {task} or ./run {task} --" in result.stderr


def test_clean_removes_what_was_built_and_nothing_else(house: House) -> None:
    made = [".build/x", "out/x", "a/__pycache__/x", ".ruff_cache/x"]
    kept = ["a/source.py", ".venv/lib/__pycache__/x", "a/node_modules/x"]
    for name in made + kept:
        (house.path / name).parent.mkdir(parents=True, exist_ok=True)
        (house.path / name).write_text("")
    assert house.run("clean").returncode == 0
    assert [name for name in made if (house.path / name).exists()] == []
    assert [name for name in kept if not (house.path / name).exists()] == []
    assert house.run("clean", "--all").returncode == 0
    assert [name for name in kept if (house.path / name).exists()] == ["a/source.py"]


@pytest.fixture
def other_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_one_set_up_waits_for_another(house: House, other_folder: Path) -> None:
    fifo = other_folder / "fifo"
    os.mkfifo(fifo)
    first = subprocess.Popen(
        [
            "bash",
            "-c",
            f"source tools/lib.sh; take_lock; echo held > {fifo}; read -r; echo first >> order",
        ],
        cwd=house.path,
        env=house.env(),
        stdin=subprocess.PIPE,
        text=True,
        preexec_fn=plain_signals,
    )
    assert fifo.read_text() == "held\n"
    second = subprocess.Popen(
        ["bash", "-c", "source tools/lib.sh; take_lock; take_lock; echo second >> order"],
        cwd=house.path,
        env=house.env(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    first.communicate("go on\n")
    second.communicate()
    assert (house.path / "order").read_text() == "first\nsecond\n"
