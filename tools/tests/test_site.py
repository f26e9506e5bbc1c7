"""Tests the documentation as one site: it is built and opened in a real browser, every link is
followed, each page is measured at three widths, and pictures are taken.

The browser is headless Chromium of the distribution. A page of the test runs in the browser. It
fetches every page of the site, and everything to which a page refers, on loopback, and lists what
is missing.
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import ROOT, VERSION

pytestmark = pytest.mark.soak  # these tests need a browser, and take half a minute

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
]

# Follows every link, starting from the first page. The result is the text of <pre id=found>.
CRAWLER = """<!doctype html><pre id="found"></pre><script>
(async () => {
  const pages = new Map(), wanted = [], broken = [], outside = new Set(), files = new Set()
  const queue = [new URL('/', location).href]
  const page = async url => {
    const answer = await fetch(url)
    if (!answer.ok) return null
    return new DOMParser().parseFromString(await answer.text(), 'text/html')
  }
  while (queue.length) {
    const url = queue.pop()
    if (pages.has(url)) continue
    const doc = await page(url)
    pages.set(url, doc && new Set([...doc.querySelectorAll('[id]')].map(e => e.id)))
    if (!doc) continue
    for (const e of doc.querySelectorAll('a[href], img[src], link[href], script[src]')) {
      const to = new URL(e.getAttribute('href') ?? e.getAttribute('src'), url)
      if (to.origin !== location.origin) { if (e.tagName !== 'A') outside.add(to.href); continue }
      const anchor = decodeURIComponent(to.hash.slice(1))
      to.hash = ''
      if (e.tagName === 'A' && (to.pathname.endsWith('/') || to.pathname.endsWith('.html'))) {
        wanted.push([url, to.href, anchor])
        queue.push(to.href)
      } else if (!files.has(to.href)) {
        files.add(to.href)
        if (!(await fetch(to.href, {method: 'HEAD'})).ok) broken.push(`${url} -> ${to.href}`)
      }
    }
  }
  for (const [from, to, anchor] of wanted) {
    const ids = pages.get(to)
    if (!ids) broken.push(`${from} -> ${to}`)
    else if (anchor && !ids.has(anchor)) broken.push(`${from} -> ${to}#${anchor}`)
  }
  const found = {pages: pages.size, links: wanted.length, files: files.size, broken, outside: [...outside]}
  document.getElementById('found').textContent = JSON.stringify(found)
})()
</script>"""


# Opens each page in a frame, and measures it at three widths. PAGES is replaced by their paths.
LOOKER = """<!doctype html><pre id="found"></pre><script>
(async () => {
  const faults = []
  let looked = 0
  const frame = document.createElement('iframe')
  frame.style.height = '900px'
  document.body.append(frame)
  for (const path of PAGES) {
    frame.style.width = '1280px'
    await new Promise(loaded => { frame.onload = loaded; frame.src = path })
    const page = frame.contentDocument
    const empty = cells => [...cells].every(c => !c.textContent.trim() && !c.querySelector('img'))
    for (const row of page.querySelectorAll('article tr'))
      if (empty(row.cells)) faults.push(`${path}: a row of a table is empty`)
    for (const image of page.querySelectorAll('article img')) {
      await image.decode().catch(() => faults.push(`${path}: ${image.src} cannot be drawn`))
    }
    for (const width of [390, 768, 1280]) {
      frame.style.width = `${width}px`
      const wide = page.documentElement.scrollWidth
      if (wide > width) {
        const causes = [...page.querySelectorAll('article *')]
          .filter(e => e.getBoundingClientRect().right > width && !e.closest('pre, table, .md-typeset__scrollwrap'))
          .map(e => `${e.tagName} ${e.textContent.trim().slice(0, 60)}`)
        faults.push(`${path}: ${wide} pixels in a window of ${width}: ${causes.slice(0, 2).join(' / ')}`)
      }
      looked += 1
    }
  }
  document.getElementById('found').textContent = JSON.stringify({looked, faults})
})()
</script>"""

# Shows one page in a frame, in the scheme of colours that its reader has chosen.
FRAME = """<!doctype html><style>html, body { margin: 0 } iframe { border: 0 }</style><script>
const [path, width, height, dark] = location.hash.slice(1).split(',')
localStorage.setItem('/.__palette', JSON.stringify({index: +dark, color: {
  media: '', scheme: ['default', 'slate'][+dark], primary: 'custom', accent: 'custom'}}))
document.write(`<iframe src="${path}" width="${width}" height="${height}"></iframe>`)
</script>"""
PICTURES = {"home": "/", "how-to": "/python/docs/", "performance": "/bench/RESULTS/"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and the test's own pages beside it."""

    own: ClassVar[dict[str, str]] = {"/crawler.html": CRAWLER, "/frame.html": FRAME}

    def do_GET(self) -> None:
        if self.path in self.own:
            body = self.own[self.path].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


def build(folder: Path, **variables: str) -> None:
    """Builds the site into the folder."""
    python = ROOT / ".venv/bin/python"
    command = [python, "-m", "mkdocs", "build", "--strict", "-f", "tools/site/mkdocs.yml"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **variables}
    done = subprocess.run(
        [*command, "-d", folder], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


def result(dom: str) -> Any:
    """Returns what a page of the test has found."""
    match = re.search(r'<pre id="found">(.+?)</pre>', dom, re.DOTALL)
    assert match, dom[:500]
    return json.loads(html.unescape(match[1]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yields the address where the site is served, and the folder where it was built."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def browser(tmp_path: Path) -> list[str]:
    chromium = shutil.which("chromium")
    assert chromium, "./run setup site installs it"
    return [chromium, *QUIET, f"--user-data-dir={tmp_path / 'profile'}"]


def test_every_link_leads_somewhere(site: tuple[str, Path], browser: list[str]) -> None:
    """Links to pages, pictures, styles and anchors have targets, and nothing is loaded from other
    servers.
    """
    url, _ = site
    command = [*browser, "--virtual-time-budget=600000", "--dump-dom", f"{url}/crawler.html"]
    dom = subprocess.run(command, capture_output=True, text=True).stdout
    found = result(dom)
    assert found["broken"] == [] and found["outside"] == []
    pages = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert found["pages"] >= len(pages), "every page of the checkout is reached by links"
    assert found["links"] > found["pages"] and found["files"] > 5


def test_no_page_is_wider_than_its_window_and_no_row_is_empty(
    site: tuple[str, Path], browser: list[str]
) -> None:
    """The widths are those of a telephone, a tablet and a desktop screen."""
    url, folder = site
    pages = sorted(f"/{p.parent.relative_to(folder)}/" for p in folder.rglob("index.html"))
    assert len(pages) > 100
    Quiet.own["/looker.html"] = LOOKER.replace("PAGES", json.dumps(pages))
    command = [*browser, "--virtual-time-budget=600000", "--dump-dom", f"{url}/looker.html"]
    found = result(subprocess.run(command, capture_output=True, text=True).stdout)
    assert found["faults"] == []
    assert found["looked"] == 3 * len(pages)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_pictures(
    site: tuple[str, Path], browser: list[str], name: str, scheme: str, width: int
) -> None:
    """The pictures are kept as out/site/*.png, for a person to inspect."""
    url, _ = site
    out = ROOT / "out/site"
    out.mkdir(parents=True, exist_ok=True)
    picture = out / f"{name}-{width}-{scheme}.png"
    picture.unlink(missing_ok=True)
    hash_ = f"{PICTURES[name]},{width},1400,{int(scheme == 'dark')}"
    subprocess.run(
        [
            *browser,
            f"--window-size={width},1400",
            "--virtual-time-budget=10000",
            f"--screenshot={picture}",
            f"{url}/frame.html#{hash_}",
        ],
        capture_output=True,
        check=True,
    )
    assert picture.stat().st_size > 20_000  # an empty page of that size has some 5 kB


def test_the_first_page_has_programs_in_tabs_and_figures(site: tuple[str, Path]) -> None:
    _, folder = site
    home = (folder / "index.html").read_text(encoding="utf-8")
    tabs = ["Python", "C++", "MicroPython", "Microcontroller"]
    assert re.findall(r'<label for="__tabbed_1_\d">(.*?)</label>', home) == tabs
    assert home.count("<strong>") >= 3 and 'class="weft-figures"' in home
    assert "pip install weft-csp" in re.sub("<[^>]*>", "", home)
    assert f"Weft {VERSION}" in home and "assets/logo.svg" in home


def test_links_lead_into_the_repository_if_its_address_is_known(tmp_path: Path) -> None:
    build(tmp_path, WEFT_REPOSITORY="https://forge.example/weft/weft.git")
    page = (tmp_path / "python/docs/processes/index.html").read_text(encoding="utf-8")
    assert 'href="https://forge.example/weft/weft"' in page
    assert 'href="https://forge.example/weft/weft/edit/main/python/docs/processes.md"' in page
    by_a_tool = (tmp_path / "python/docs/reference/index.html").read_text(encoding="utf-8")
    assert "/edit/main/" not in by_a_tool


def test_the_search_finds_a_rule(site: tuple[str, Path]) -> None:
    """The index that the browser searches contains the words of SEMANTICS.md."""
    _, folder = site
    index = json.loads((folder / "search/search_index.json").read_text())
    hits = [d["location"] for d in index["docs"] if "exactly one of its guards" in d["text"]]
    assert any(place.startswith("SEMANTICS/") for place in hits), hits
