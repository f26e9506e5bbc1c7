"""Components under the sanitizers, in a program without CPython (rule 16.1); the soak runs
components with CPython under AddressSanitizer."""

from __future__ import annotations

import subprocess

import pytest
from components import HERE, needs_compiler

import weft.native
from weft._components.build import compiler

pytestmark = needs_compiler


def builds(folder, *flags: str) -> bool:
    (folder / "empty.cpp").write_text("int main() {}\n")
    command = [*compiler(), *flags, str(folder / "empty.cpp"), "-o", str(folder / "empty")]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        return False
    return subprocess.run([folder / "empty"], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "sanitizer", ["thread", pytest.param("address,undefined", marks=pytest.mark.soak)]
)
def test_components_on_many_threads(tmp_path, sanitizer):  # rule 16.1
    level = "-O1" if sanitizer == "thread" else "-O0"  # g++ takes half the time with -O0
    flags = ["-std=c++20", level, "-g1", f"-fsanitize={sanitizer}", "-pthread"]
    if not builds(tmp_path, *flags):
        pytest.skip(f"no -fsanitize={sanitizer} here")
    program = tmp_path / "alone"
    source = HERE / "component_alone.cpp"
    made = subprocess.run(
        [*compiler(), *flags, f"-I{weft.native.include_dir()}", str(source), "-o", str(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    done = subprocess.run([program], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) == 4 * 2 * sum(range(200))
