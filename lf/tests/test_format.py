"""Tests of `weft lf format`: its result for a text, that the program stays the same, and that a
second pass changes nothing."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import syntax
from conftest import HERE, Write
from test_server import Client

from weft_lf import cli
from weft_lf.layouter import laid_out, meaning

UGLY = """// a program
target   C {
    timeout : 1 sec ,fast: true


}
reactor A( n:int=3 ){
output out:int
    state  x: int[] = {1,2,
       3}
  // before
  reaction ( startup )
-> out{=
        if (x) {
          lf_set(out, 1);   // kept
        }
#define X
  =}   // after
      }


main reactor {
a=new A( )
   /* a
      * block */
a.out,
a.out->a.in,a.in after 10   msec }
"""
NEAT = """// a program
target C {
  timeout: 1 sec, fast: true

}
reactor A(n: int = 3) {
  output out: int
  state x: int[] = {1, 2,
    3}
  // before
  reaction(startup)
    -> out {=
      if (x) {
        lf_set(out, 1);   // kept
      }
#define X
    =}   // after
}

main reactor {
  a = new A()
  /* a
   * block */
  a.out,
    a.out -> a.in, a.in after 10   msec }
"""


def test_a_layout() -> None:
    assert laid_out(UGLY, "x.lf") == NEAT
    assert laid_out("", "x.lf") == ""


def same(text: str, name: str) -> None:
    found = laid_out(text, name)
    assert meaning(found, name) == meaning(text, name)
    assert laid_out(found, name) == found, name


@pytest.mark.parametrize("folder", sorted((HERE / "programs").iterdir()), ids=lambda f: f.name)
def test_programs_stay_the_same(folder: Path) -> None:
    for path in sorted(folder.rglob("*.lf")):
        same(path.read_text(), str(path))


def test_random_texts_stay_the_same() -> None:
    for seed in range(20):
        same(syntax.text(seed).replace("\r\n", "\n"), f"seed {seed}")


@pytest.mark.soak
def test_more_random_texts_stay_the_same() -> None:
    for seed in range(20, 600):
        same(syntax.text(seed).replace("\r\n", "\n"), f"seed {seed}")


def test_the_command(
    write: Write, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with an error stays as it is; a byte order mark and the ends of lines are kept."""
    ugly, bad = write(UGLY, "Ugly.lf"), write("target C\nreactor {{", "Bad.lf")
    ugly.write_bytes(b"\xef\xbb\xbf" + UGLY.replace("\n", "\r\n").encode())
    before = ugly.read_bytes()
    assert cli.main(["format", "--check", str(ugly)]) == 1
    assert capsysbinary.readouterr().out == f"{ugly}\n".encode() and ugly.read_bytes() == before
    assert cli.main(["format", str(ugly.parent)]) == 1
    assert b"Bad.lf:2:10: error" in capsysbinary.readouterr().err
    assert bad.read_text() == "target C\nreactor {{"
    assert ugly.read_bytes() == b"\xef\xbb\xbf" + NEAT.replace("\n", "\r\n").encode()
    assert cli.main(["format", "--check", str(ugly)]) == 0
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(UGLY.encode())))
    assert cli.main(["format", "-"]) == 0
    assert capsysbinary.readouterr().out == NEAT.encode()
    bad.write_bytes(b"\xff")
    assert cli.main(["format", str(bad)]) == 1
    assert b"not text in UTF-8" in capsysbinary.readouterr().err


def test_an_editor(write: Write) -> None:
    client = Client(write(UGLY), UGLY)
    (edit,) = client.ask("textDocument/formatting")
    assert edit["newText"] == NEAT and edit["range"]["end"]["line"] > UGLY.count("\n")
    client.type(NEAT)
    assert client.ask("textDocument/formatting") == []
    client.type("target C {")
    assert client.ask("textDocument/formatting") == []
