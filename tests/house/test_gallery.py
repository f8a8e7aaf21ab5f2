"""The gallery: its pages tell the committed times and show the programs as they are."""

from __future__ import annotations

import re

import pytest
from places import EXAMPLES, ROOT

if not (ROOT / "README.md").exists():
    pytest.skip("runs in the source tree only", allow_module_level=True)

from benchmarks import gallery, gallery_pictures

PAGES = gallery.PAGES
each = pytest.mark.parametrize("name", gallery.PROGRAMS)


@each
def test_a_page_has_the_committed_times_and_the_program(name: str) -> None:
    """If this fails: ``python -m benchmarks.gallery --pages``."""
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert gallery.PART.findall(page) == ["figures", "program"]
    assert page == gallery.filled(name, page, gallery.newest_result())


@each
def test_a_page_has_its_picture_and_some_lines(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text("utf-8")
    (picture,) = re.findall(r"!\[[^]]{20,}\]\((pictures/[^)]+)\)", page)
    assert picture == f"pictures/{name}.png"
    assert 1000 < (PAGES / picture).stat().st_size < 100_000
    said = page.partition(")\n")[2].partition("<!--")[0]
    assert 5 <= len([line for line in said.splitlines() if line]) <= 15


def test_all_are_in_the_index() -> None:
    index = (PAGES / "index.md").read_text("utf-8")
    linked = re.findall(r"\[[^]!]+\]\((\w+)\.md\)", index)
    assert linked == list(gallery.PROGRAMS) == list(gallery_pictures.PICTURES)
    shown = re.findall(r"\[!\[[^]]+\]\(pictures/(\w+)\.png\)\]\((\w+)\.md\)", index)
    assert shown == [(name, name) for name in gallery.PROGRAMS]
    assert {p.stem for p in PAGES.glob("*.md")} == {*gallery.PROGRAMS, "index"}
    assert all((EXAMPLES / f"{name}.py").exists() for name in gallery.PROGRAMS)


def test_tcl_is_first_and_has_a_peer() -> None:
    result = gallery.newest_result()
    for name in gallery.PROGRAMS:
        for times in result["programs"][name]:
            first, *others = times
            assert first.startswith("tcl")
            assert any(other.startswith(("NumPy", "torch")) for other in others)


def test_a_table_has_each_contender_beside_the_first() -> None:
    times = [{"tcl": 2e-3, "torch": 3e-3}, {"tcl, all": 1.0, "NumPy": 0.5}]
    result = {
        "machine": "one",
        "date": "2026-01-02",
        "load": [1.5],
        "programs": {"own_kernel": times},
    }
    assert gallery.figures("own_kernel", result).splitlines() == [
        "| 2 threads | time per call | relative time |",
        "|---|---|---|",
        "| tcl | 2.00 ms | 1.00 × |",
        "| torch | 3.00 ms | 1.50 × |",
        "",
        "| 2 threads | time per call | relative time |",
        "|---|---|---|",
        "| tcl, all | 1.00 s | 1.00 × |",
        "| NumPy | 500 ms | 0.50 × |",
        "",
        "(one; 2026-01-02; medians of rounds in turns; load average at the end 1.5)",
    ]
