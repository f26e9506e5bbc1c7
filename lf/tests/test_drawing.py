"""Tests of `weft lf graph --html`: the data that the page draws; in the soak, what a browser shows,
also after a click."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Write, model

from weft_lf import cli
from weft_lf.drawing import drawing

TEXT = """target C
reactor Inner {
  input in: int
  output out: int
  reaction(in) -> out {= =}
}
reactor A(n: int = 2) {
  input in: int
  output[2] out: int
  inner = new[n] Inner()
  (in)+ -> inner.in
  reaction(inner.out) -> out {= =} deadline(1 msec) {= =}
}
main reactor {
  timer t(0, 1 sec)
  logical action act(5 msec)
  a = new A()
  reaction(t) -> a.in, act {= =}
  reaction(a.out, act) {= /* </script> */ =}
  initial mode One { watchdog w(1 sec) {= =} reaction(startup) -> w {= =} }
}
"""
LOOP = """target C
reactor A { input in: int  output out: int
  reaction(in) {= =}
  reaction(startup) -> out {= =} }
reactor B { a = new A()  a.out -> a.in }
main reactor { bs = new[3] B() }
"""


def written(path: Path, status: int = 0) -> tuple[str, dict[str, Any]]:
    """Returns the page of a program, and the data in it."""
    assert cli.main(["graph", "--html", str(path)]) == status
    text = path.with_suffix(".html").read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return text, json.loads(found[1])


def test_what_is_drawn(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    text, data = written(write(TEXT))
    assert capsys.readouterr().out.endswith("Main.html\n")
    root, (file,) = data["root"], data["files"]
    assert file["lines"] == TEXT.split("\n")
    a = root["children"][0]
    assert [(p["name"], p["input"], p["width"]) for p in a["ports"]] == [
        ("in", True, None),
        ("out", False, 2),
    ]
    inner = a["children"][0]
    assert (inner["id"], inner["width"], inner["of"]) == ("Main.a.inner", 2, "Inner")
    parts = {p["id"]: p for p in [*root["parts"], *a["parts"], *inner["parts"]]}
    assert parts["Main.t"]["text"] == "0, 1 s" and parts["Main.act"]["text"] == "logical, 5 ms"
    assert parts["Main.a#0"]["text"] == "deadline 1 ms" and parts["Main.a#0"]["levels"] == [2, 2]
    assert parts["Main.One/w"]["kind"] == "watchdog" and parts["Main!startup"]["kind"] == "event"
    assert file["lines"][parts["Main#1"]["at"][1] - 1].lstrip().startswith("reaction(a.out, act)")
    edges = {(e["from"], e["to"], e["kind"]) for e in [*root["edges"], *a["edges"]]}
    assert {
        ("Main.t", "Main#0", "trigger"),
        ("Main#0", "Main.a.in", "effect"),
        ("Main.a.in", "Main.a.inner.in", "connection"),
        ("Main#2", "Main.One/w", "effect"),
    } <= edges
    assert data["causes"]["Main.a.inner#0"] == ["Main.a#0"]
    assert data["causes"]["Main#0"] == ["Main#1", "Main.a.inner#0"]
    assert data["loop"] is None
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<link|<img|@import|url\((?!#)", text)


def test_a_program_with_a_loop_is_drawn(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    _, data = written(write(LOOP), status=1)
    assert "causality loop" in capsys.readouterr().err
    loop = data["loop"]
    assert loop["reactions"] == ["Main.bs.a#0", "Main.bs.a#1"]
    assert loop["edges"] == [
        ["Main.bs.a#0", "Main.bs.a#1"],
        ["Main.bs.a#1", "Main.bs.a.out"],
        ["Main.bs.a.out", "Main.bs.a.in"],
        ["Main.bs.a.in", "Main.bs.a#0"],
    ]
    assert data["root"]["children"][0]["children"][0]["parts"][1]["levels"] == []
    path = write("target C\nmain reactor { a = new B() }\n")
    assert cli.main(["graph", "--html", str(path)]) == 1


def test_levels_of_a_bank_are_a_range(write: Write) -> None:
    path = write(
        TEXT.replace("(in)+ -> inner.in", "inner[0].in").replace(
            "inner[0].in", "in, inner.out -> inner.in"
        )
    )
    inner = drawing(model(path))["root"]["children"][0]["children"][0]
    assert inner["parts"][0]["levels"] == [1, 2]


CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


def shown(path: Path, script: str = "", height: int = 800) -> str:
    """Returns the page's elements as a browser has them after `script` ran."""
    page = path.with_suffix(".html")
    text = page.read_text().replace("</body>", f"<script>{script}</script></body>")
    page.write_text(text)
    line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    line += [f"--window-size=1400,{height}", page.as_uri()]
    done = subprocess.run(line, capture_output=True, text=True, timeout=280)
    return done.stdout[: done.stdout.index("<script")] if "<script" in done.stdout else done.stdout


def click(what: str) -> str:
    """Returns the script that clicks the element with these attributes."""
    return f"document.querySelector('{what}').dispatchEvent(new MouseEvent('click', {{bubbles: true}}));"


@pytest.mark.soak
def test_the_page_in_a_browser(write: Write) -> None:
    """A click shows the source line and marks what comes before and after; a reactor folds."""
    path = write(TEXT)
    written(path)
    body = shown(path, click('[data-id="Main.a.inner#0"] path'))
    assert "3 reactors, 5 levels" in body
    assert re.search(r'class="place">Main\.lf:5<', body)
    assert re.search(r'class="here">\s*5\s+reaction\(in\) -&gt; out', body)
    assert re.search(r'class="part reaction before" data-id="Main#0"', body)
    assert re.search(r'class="part reaction after" data-id="Main.a#0"', body)
    assert "level 1" in body and "deadline 1 ms" in body
    written(path)
    body = shown(path, click('[data-fold="Main.a"]'))
    assert 'data-id="Main.a.inner"' not in body and 'class="reactor folded"' in body
    assert 'data-from="Main#0" data-to="Main.a.in"' in body
    written(path)
    body = shown(path, click('[data-from="Main.t"] .touch'))
    assert re.search(r"<h2>Main.t → Main#0</h2>", body)


@pytest.mark.soak
def test_a_loop_in_a_browser(write: Write) -> None:
    path = write(LOOP)
    written(path, status=1)
    body = shown(path)
    assert 'role="alert">a causality loop' in body
    assert 'class="part reaction loop" data-id="Main.bs.a#0"' in body
    assert 'class="link connection loop" data-from="Main.bs.a.out"' in body
    assert 'class="link order loop" data-from="Main.bs.a#0" data-to="Main.bs.a#1"' in body
    written(path, status=1)
    body = shown(path, click('[data-fold="Main.bs"]'))
    assert 'class="reactor folded loop" data-id="Main.bs"' in body


@pytest.mark.soak
def test_a_large_program_begins_folded(write: Write) -> None:
    text = "target C\nreactor L { reaction(startup) {= =} }\nreactor M {\n"
    text += "".join(f"  l{n} = new L()\n" for n in range(60)) + "}\n"
    path = write(
        text + "main reactor {\n" + "".join(f"  m{n} = new M()\n" for n in range(6)) + "}\n"
    )
    written(path)
    body = shown(path)
    assert body.count('class="reactor folded"') == 360
