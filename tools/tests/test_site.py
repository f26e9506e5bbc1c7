"""Tests the documentation as one site: it is built and opened in a real browser, every link is
followed, and a picture is taken.

The browser is headless Chromium of the distribution. A page of the test runs in the browser. It
fetches every page of the site, and everything to which a page refers, on loopback, and lists what
is missing.
"""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

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


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and the crawler beside it."""

    def do_GET(self) -> None:
        if self.path == "/crawler.html":
            body = CRAWLER.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yields the address where the site is served, and the folder where it was built."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            ROOT / ".venv/bin/python",
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "-f",
            "tools/site/mkdocs.yml",
            "-d",
            folder,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
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
    match = re.search(r'<pre id="found">(.+?)</pre>', dom, re.DOTALL)
    assert match, dom[:500]
    found = json.loads(html.unescape(match[1]))
    assert found["broken"] == [] and found["outside"] == []
    pages = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert found["pages"] >= len(pages), "every page of the checkout is reached by links"
    assert found["links"] > found["pages"] and found["files"] > 5


def test_a_picture_of_the_first_page(
    site: tuple[str, Path], browser: list[str], tmp_path: Path
) -> None:
    """The picture is kept as out/site.png, for a person to look at. It shows the page, and the
    picture in the page.
    """
    url, _ = site
    picture = tmp_path / "site.png"
    subprocess.run(
        [
            *browser,
            "--window-size=1280,1400",
            "--virtual-time-budget=10000",
            f"--screenshot={picture}",
            url,
        ],
        capture_output=True,
        check=True,
    )
    assert picture.stat().st_size > 50_000  # an empty page of that size has some 5 kB
    (ROOT / "out").mkdir(exist_ok=True)
    shutil.copy(picture, ROOT / "out" / "site.png")


def test_the_search_finds_a_rule(site: tuple[str, Path]) -> None:
    """The index that the browser searches contains the words of SEMANTICS.md."""
    _, folder = site
    index = json.loads((folder / "search/search_index.json").read_text())
    hits = [d["location"] for d in index["docs"] if "exactly one of its guards" in d["text"]]
    assert any(place.startswith("SEMANTICS/") for place in hits), hits
