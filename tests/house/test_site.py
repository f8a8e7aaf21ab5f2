"""The site builds without a warning, its links resolve, and it fetches nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from places import ROOT
from sphinx.cmd.build import main

import tcl

if not (ROOT / "website").exists():
    pytest.skip("runs in the source tree only", allow_module_level=True)

LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src", "object": "data"}
"""Elements that load something without a click, but ``link``, and the attribute that says what."""


class _Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that links can name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.names.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loads.append(given["href"])
        elif tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])


def broken(pages: dict[Path, _Page]) -> list[str]:
    """Links within the site that lead nowhere: to no file, or to no place in a page."""
    found = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            names = pages[target].names if target in pages else set()
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in names):
                found.append(f"{path.name}: {link}")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site").resolve()
    configuration = str(ROOT / "website")
    # In this process, which may have imported torch and JAX for another test already.
    assert main(["-q", "-W", "--keep-going", "-c", configuration, str(ROOT), str(folder)]) == 0
    return folder


@pytest.mark.filterwarnings("ignore:'myst_parser")
def test_the_site(site: Path) -> None:
    pages = {path: _Page(path) for path in site.rglob("*.html")}
    assert broken(pages) == []
    elsewhere = {load for page in pages.values() for load in page.loads if urlsplit(load).netloc}
    assert elsewhere == set()
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", styles) == []

    names = pages[site / "website/api.html"].names
    assert [name for name in tcl.__all__ if f"tcl.{name}" not in names] == ["__version__"]
    index = (site / "searchindex.js").read_text("utf-8")
    assert "softmax" in index
    named = {path.relative_to(site).with_suffix("").as_posix() for path in pages}
    written = {p.relative_to(ROOT).with_suffix("").as_posix() for p in ROOT.glob("docs/**/*.md")}
    assert written and written <= named


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    one.write_text('<a href="two.html#there"></a><a href="two.html#no"></a><a href="no.html"></a>')
    two.write_text('<p id="there"><a href="https://example.org/#x"></a><a href="#nor"></a>')
    pages = {path: _Page(path) for path in (one, two)}
    assert broken(pages) == ["one.html: two.html#no", "one.html: no.html", "two.html: #nor"]
