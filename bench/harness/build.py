"""Makes each candidate runnable: checks that everything that the candidate needs is installed, and
builds its program.

Invariants: only requested candidates are built. A peer that is not installed on this machine is
Missing (it is skipped); a program that does not build is Broken (an error). Programs are built in
.build/bench, in a folder for each compiler.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .targets import Candidate

# The Debian packages to install when a command is missing.
PACKAGES = {
    "go": "golang-go",
    "g++": "g++",
    "clang++": "clang",
    "cmake": "cmake",
    "cargo": "cargo",
    "javac": "default-jdk-headless",
}
# NAME of a need "header:NAME" → the Debian package that contains this header of a peer.
HEADERS = {
    "asio.hpp": "libasio-dev",
    "boost/fiber/all.hpp": "libboost-fiber-dev",
    "openssl/ssl.h": "libssl-dev",
    "zmq.hpp": "cppzmq-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
}
BUILD_TIMEOUT = 600.0


class Missing(Exception):
    """The candidate cannot run here; the message names the package to install."""


class Broken(Exception):
    """The candidate's program does not build; the message carries the compiler's last lines."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A candidate ready to run."""

    argv: list[str]
    env: dict[str, str]


def need(what: str) -> None:
    """Checks that `module:NAME`, `header:NAME` or a command is installed. Raises Missing, whose
    message names the package to install.
    """
    kind, _, name = what.rpartition(":")
    if kind == "module":
        if importlib.util.find_spec(name) is None:
            raise Missing(f"the Python module {name} is not installed (pip install {name})")
    elif kind == "header":
        if not any((Path(root) / name).exists() for root in ("/usr/include", "/usr/local/include")):
            raise Missing(f"{name} is not here (apt-get install {HEADERS.get(name, name)})")
    elif shutil.which(name) is None:
        raise Missing(f"{name} is not installed (apt-get install {PACKAGES.get(name, name)})")


class Builder:
    """Builds candidates of `bench` into `build`; configures each CMake folder once, and builds each
    target once.
    """

    def __init__(self, bench: Path, build: Path, say: Callable[[str], None]) -> None:
        self._bench = bench
        self._build = build
        self._say = say
        self._configured: set[Path] = set()
        self._built: dict[tuple[str, str], Path] = {}
        # Builds that have failed, which are not tried again.
        self._broken: dict[tuple[str, str, str], Broken] = {}

    def program(self, candidate: Candidate) -> Program:
        """Returns the candidate as a program, built if need be. Raises Missing or Broken."""
        helpers = {}  # the programs that the candidate starts itself, in its environment
        for what in candidate.needs:
            kind, _, source = what.partition(":")
            if kind == "program":
                name = "BENCH_" + Path(source).stem.upper()
                helpers[name] = self._cpp(dataclasses.replace(candidate, source=source))[0]
            else:
                need(what)
        if not (self._bench / candidate.source).exists():
            raise Broken(f"bench/{candidate.source} does not exist")
        make = {
            "cpp": self._cpp,
            "go": self._go,
            "java": self._java,
            "py": self._python,
            "rust": self._rust,
        }[candidate.kind]
        key = (candidate.kind, candidate.compiler, candidate.source)
        if key in self._broken:
            raise self._broken[key]
        try:
            argv = [*make(candidate), *candidate.arguments()]
        except Broken as error:
            self._broken[key] = error
            raise
        return Program(
            argv,
            {
                "PYTHONPATH": os.pathsep.join(
                    filter(None, (str(self._bench / "py"), os.environ.get("PYTHONPATH")))
                ),
                "PYTHONUNBUFFERED": "1",
                **helpers,
                **dict(candidate.env),
            },
        )

    def _python(self, candidate: Candidate) -> list[str]:
        if not candidate.peer and importlib.util.find_spec("weft") is None:
            raise Broken("the package weft is not installed for this Python (./run demo builds it)")
        return [sys.executable, str(self._bench / candidate.source)]

    def _go(self, candidate: Candidate) -> list[str]:
        need("go")
        key = ("go", candidate.source)
        if key not in self._built:
            output = self._build / "go" / Path(candidate.source).name
            output.parent.mkdir(parents=True, exist_ok=True)
            self._say(f"building {candidate.source} with go")
            self._run(
                ["go", "build", "-o", str(output), "."],
                self._bench / candidate.source,
                {"GOTOOLCHAIN": "local"},
            )
            self._built[key] = output
        return [str(self._built[key])]

    def _rust(self, candidate: Candidate) -> list[str]:
        """Builds a crate with one program. `./run setup` has fetched its dependencies; nothing is
        fetched here.
        """
        need("cargo")
        key = ("rust", candidate.source)
        if key not in self._built:
            target = self._build / "rust"
            self._say(f"building {candidate.source} with cargo")
            manifest = str(self._bench / candidate.source / "Cargo.toml")
            argv = ["cargo", "build", "--release", "--offline", "--quiet"]
            argv += ["--manifest-path", manifest, "--target-dir", str(target)]
            try:
                self._run(argv, self._bench, {})
            except Broken as error:
                if any(word in str(error) for word in ("offline", "no matching package")):
                    raise Missing("its crates are not here (./run setup peers)") from error
                raise
            self._built[key] = target / "release" / Path(candidate.source).name
        return [str(self._built[key])]

    def _java(self, candidate: Candidate) -> list[str]:
        """Compiles one source file against the libraries that `./run setup` put into
        .build/bench/java.
        """
        need("javac")
        libraries = sorted((self._build / "java").glob("*.jar"))
        if not libraries:
            raise Missing("its library is not here (./run setup peers)")
        classes = self._build / "java/classes"
        path = ":".join(map(str, [*libraries, classes]))
        key = ("java", candidate.source)
        if key not in self._built:
            self._say(f"building {candidate.source} with javac")
            source = str(self._bench / candidate.source)
            self._run(["javac", "-cp", path, "-d", str(classes), source], self._bench, {})
            self._built[key] = classes
        return ["java", "-cp", path, Path(candidate.source).stem]

    def _cpp(self, candidate: Candidate) -> list[str]:
        need(candidate.compiler)
        need("cmake")
        if not candidate.peer and not (self._bench.parent / "cpp/include/weft/weft.hpp").exists():
            raise Broken("cpp/include/weft/weft.hpp does not exist")
        key = (candidate.compiler, candidate.source)
        if key not in self._built:
            folder = self._build / candidate.compiler
            if folder not in self._configured:
                self._say(f"configuring with {candidate.compiler}")
                compiler = f"-DCMAKE_CXX_COMPILER={candidate.compiler}"
                self._run(
                    ["cmake", "-S", str(self._bench), "-B", str(folder), compiler], self._bench, {}
                )
                self._configured.add(folder)
            target = candidate.source.removesuffix(".cpp").replace("/", "-")
            self._say(f"building {candidate.source} with {candidate.compiler}")
            self._run(["cmake", "--build", str(folder), "--target", target], self._bench, {})
            self._built[key] = folder / target
        return [str(self._built[key])]

    def _run(self, argv: list[str], cwd: Path, env: dict[str, str]) -> None:
        try:
            done = subprocess.run(
                argv,
                cwd=cwd,
                env={**os.environ, **env},
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Broken(
                f"{' '.join(argv[:2])} did not end within {BUILD_TIMEOUT:.0f} s"
            ) from error
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            errors = [line for line in lines if "error" in line.lower()][:3] or lines[-3:]
            raise Broken(
                f"{' '.join(argv[:2])} failed: "
                + " | ".join(self._relative(line) for line in errors)
            )

    def _relative(self, line: str) -> str:
        """Returns a line of the compiler with paths relative to the checkout, since results are
        kept and shown elsewhere.
        """
        return line.strip().replace(f"{self._bench.parent}/", "").replace("bench/../", "")
