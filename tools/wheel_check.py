"""Tries a wheel in an environment without other packages: tools/wheel_check.py INTERPRETER WHEEL
COMPAT FOLDER
or: tools/wheel_check.py --pure INTERPRETER WHEEL FOLDER

First the core is tried alone, then all extras. COMPAT is the wheel of weft-compat. FOLDER is made
anew, and everything runs in it, far from any checkout. With --pure the wheel has no extension
module: the program runs, and so do the scenarios of conformance/ that such a wheel should pass. If
something does not work, the text names the fault, and the exit status is 1.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """\
import weft

@weft.process
async def numbers(out, n):
    for i in range(n):
        await out.write(i)

@weft.process
async def total(source):
    return sum([value async for value in source])

c = weft.Channel()
print(weft.run(numbers(c.writer(), 4), total(c.reader())))
"""
OLD_NAMES = "from weft.compat import pycsp_locks; print(pycsp_locks.__file__)"
BLINK = """\
target C { timeout: 1 sec, fast: true }
main reactor {
  timer t(0, 500 msec)
  reaction(t) {= lf_print("tick"); =}
}
"""
RELATIVE = re.compile(r"\]\((?!https?://|mailto:|#)([^)]*)\)")


class Wrong(Exception):
    """Raised when a part of the wheel does not work. The text names the part."""


def links_that_lead_nowhere(metadata: str) -> list[str]:
    """Returns the links in a wheel's description that lead to files of the repository."""
    return RELATIVE.findall(str(Parser().parsestr(metadata).get_payload()))


def call(*command: str | Path, status: int = 0) -> str:
    """Returns the command's standard output and error, together. Raises Wrong for another exit
    status.
    """
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WEFT", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean, check=False
    )
    output = " ".join(map(str, command)) + "\n" + done.stdout
    print(output, flush=True)
    if done.returncode != status:
        raise Wrong(f"status {done.returncode} in place of {status}: {output}")
    return done.stdout


def environment(interpreter: str) -> tuple[Path, Path]:
    """Makes an empty environment. Returns its Python, and its command `weft`. The pip that a
    distribution brings for its own Python may not run on a newer one, so pip comes from the index.
    """
    call(interpreter, "-m", "venv", "--without-pip", "venv")
    python = Path("venv/bin/python")
    quiet = ("--disable-pip-version-check", "install", "-q", "pip")
    call(sys.executable, "-m", "pip", "--python", python, *quiet)
    return python, Path("venv/bin/weft")


def expect(text: str, message: str) -> None:
    if text not in message:
        raise Wrong(f"no {text!r} in {message!r}")


def check(interpreter: str, wheel: Path, compat: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        bad = links_that_lead_nowhere(archive.read(name).decode())
    if bad:
        raise Wrong(f"the description links to {bad}")
    python, weft = environment(interpreter)
    Path("program.py").write_text(PROGRAM, encoding="utf-8")
    Path("Blink.lf").write_text(BLINK, encoding="utf-8")

    call(python, "-m", "pip", "-q", "install", "--disable-pip-version-check", wheel)
    listed = call(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
    more = [
        line
        for line in listed.split()
        if not re.match(r"(pip|setuptools|wheel|weft-csp)[= ]", line)
    ]
    if [
        line
        for line in more
        if not line.startswith(("exceptiongroup=", "typing_extensions=", "typing-extensions="))
    ]:
        raise Wrong(f"the core needs {more}")
    expect("[None, 6]", call(python, "program.py"))
    expect("pip install 'weft-csp[compat]'", call(python, "-c", "import weft.compat", status=1))
    call(python, "-m", "pip", "-q", "install", "--disable-pip-version-check", "--no-index", compat)
    expect("compat/pycsp_locks", call(python, "-c", OLD_NAMES))
    expect("weft-csp[cli]", call(weft, "--version", status=2))

    call(python, "-m", "pip", "-q", "install", "--disable-pip-version-check", f"{wheel}[cli,lf]")
    expect("weft-csp[greenlets]", call(weft, "run", "program.py", "--on", "greenlets", status=2))
    call(python, "-m", "pip", "-q", "install", "--disable-pip-version-check", f"{wheel}[greenlets]")
    for backend in ("coroutines", "threads", "greenlets"):
        expect("[None, 6]", call(weft, "run", "program.py", "--on", backend))
    expect("weft ", call(weft, "--version"))
    expect("tick", call(weft, "lf", "run", "Blink.lf"))


def check_pure(interpreter: str, wheel: Path) -> None:
    """Tries a wheel without the extension module, for every Python and platform."""
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise Wrong("its name says that it is not for every platform")
    with zipfile.ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if name.endswith(".so")]
    if compiled:
        raise Wrong(f"it should have no compiled files, but contains {compiled}")
    python, _ = environment(interpreter)
    Path("program.py").write_text(PROGRAM, encoding="utf-8")
    call(python, "-m", "pip", "-q", "install", "--disable-pip-version-check", "--no-index", wheel)
    output = call(python, "program.py")
    expect("weft: no extension module", output)
    expect("[None, 6]", output)
    call(python, "-m", "pip", "-q", "install", "--disable-pip-version-check", "pytest>=9,<10")
    # The scenarios are the checkout's; the folder has no package of Weft beside them.
    Path("conformance").symlink_to(ROOT / "conformance")
    for backend in ("coroutines", "threads"):
        output = call(python, "-m", "conformance.pure", backend)
        outcomes = json.loads(output[output.index("{") :])
        wrong = {name: what for name, what in outcomes.items() if what != "ok"}
        if wrong or not outcomes:
            raise Wrong(f"of {len(outcomes)} scenarios on {backend} these failed: {wrong}")


def main(arguments: list[str]) -> int:
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    pure = arguments[0] == "--pure"
    if pure:
        arguments = arguments[1:]
    interpreter, wheel, *compat = (arguments[0], *(Path(a).resolve() for a in arguments[1:-1]))
    folder = Path(arguments[-1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    try:
        if pure:
            check_pure(interpreter, wheel)
        else:
            check(interpreter, wheel, *compat)
    except Wrong as wrong:
        print(f"wheel_check: {wheel.name}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
