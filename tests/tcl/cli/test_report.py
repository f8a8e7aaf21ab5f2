"""The page about a search: whole, escaped, alone, and saying what happened."""

from __future__ import annotations

import base64
import itertools
import os
import re
import stat
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fake_search import CHECKED, INPUTS, MM, Event, Race, failing, search, take

import tcl.tuner
from tcl.backends.targets import CpuTarget
from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import Roofline
from tcl.codegen.loopir.cost import Cost
from tcl.common.files import write_whole
from tcl.html.charts import HALF, Axis, ChartDot, Ticks, of_times, times_chart
from tcl.html.markup import Markup, join, tag
from tcl.progress.state import SearchState
from tcl.report.data import Page, collect
from tcl.report.page import render, write_page
from tcl.report.search import KNOBS, point_kind
from tcl.tuner.cache.ranking import ranked
from tcl.tuner.cache.t4_format import from_t4

SVG = "{http://www.w3.org/2000/svg}"
YARDSTICK = Roofline(Cost(10_000_000, 1e7, 1000, 1000), Ceilings(1e10, 1e10, 1e12), 1 << 20)


class Reader(HTMLParser):
    """Checks that elements are closed in turn, and takes the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += attributes
        if name != "meta":
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_of(found: Iterator[Event], **more: object) -> Page:
    log = take(SearchState(), found)
    title = str(more.pop("title", "mm M=64"))
    return collect(MM, CHECKED, INPUTS, CpuTarget(1), log, title=title, yardstick=YARDSTICK, **more)  # type: ignore[arg-type]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def drawings(text: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(s) for s in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def test_the_legend_is_of_what_is_drawn() -> None:
    def kinds(found: Iterator[Event]) -> set[str | None]:
        section = render(page_of(found)).partition(">The search<")[2].partition("<figure")[0]
        shown = re.findall(r'<p class="legend">.*?</p>', section, re.DOTALL)
        return {i.get("class") for each in shown for i in ElementTree.fromstring(each).iter("i")}

    assert kinds(search(4, 20)) == {"best", "dot", "winner", "fail"}
    assert kinds(search(1, 2)) == {"best", "dot", "winner"}
    assert kinds(failing()) == set()  # there is no chart


def test_labels_below_a_chart_have_room() -> None:
    """As many as there is room for, the first among them."""
    for names in (["0 1 2 3 4 5 6", "6 5 4 3 2 1 0"] * 6, ["1"] * 40, ["1", "128"]):
        ticks = Ticks("knob", len(names) - 0.5, -0.5, names)
        dots = [ChartDot(float(k), 1e-3, "") for k in range(len(names))]
        chart = ElementTree.fromstring(times_chart("it", ticks, dots, size=HALF))
        placed = [
            (float(t.get("x", "")), t.text or "")
            for t in chart.iter(f"{SVG}text")
            if float(t.get("y", "")) == HALF.floor + 20
        ]
        assert placed[0][1] == names[0] and (len(names) > 2 or len(placed) == 2)
        for (one, left), (other, right) in itertools.pairwise(placed):
            assert other - one > 3.3 * (len(left) + len(right))


def test_page_says_what_happened() -> None:
    page = page_of(search(4, 20), facts=[("device", "a machine")], beside={"NumPy": 1.2})
    text = render(page)
    words = " ".join(" ".join(read(text).text).split())
    for expected in (
        "mm M=64",
        "81 candidates in 12 s",
        "timed in turns in the finals",
        "a machine",
        "10 MFLOP",
        "1 TFLOP/s",
        "of the roofline",
        "NumPy",
        "Best first reading so far, by evaluations",
        "Best first reading so far, by time",
        "Population by generation",
        "constraints",
        "it took more than 1 s",
        "knobs differ",
        "C(m, n) +=! A(m, k) * B(k, n)",
        "Loop program of the winner",
        "for s0.",
        "LLVM IR of the winner",
        "define ",
    ):
        assert expected in words, expected


def test_drawings_show_every_candidate() -> None:
    page = page_of(search(3, 20))
    charts = [d for d in drawings(render(page)) if (d.get("class") or "").startswith("chart")]
    tries = page.log.tries
    correct = [t for t in tries if t.best_time is not None]
    for chart in charts[:3]:
        assert len(chart.findall(f".//{SVG}circle")) == len(correct)
        failed = chart.find(f".//{SVG}g[@class='failed']")
        assert failed is not None
        assert len(failed) == len(tries) - len(correct)
        assert len(chart.findall(f".//{SVG}circle[@class='winner']")) == 1
        _, _, width, height = map(float, (chart.get("viewBox") or "").split())
        for circle in chart.findall(f".//{SVG}circle"):
            assert 0 < float(circle.get("cx", "")) <= width
            assert 0 < float(circle.get("cy", "")) <= height
    # The faster, the lower.
    circles = charts[0].findall(f".//{SVG}circle")
    by_place = sorted(circles, key=lambda c: float(c.get("cx", "")))
    heights = [float(c.get("cy", "")) for c in by_place]
    for a, b in zip(range(len(correct)), range(1, len(correct)), strict=False):
        faster = (correct[b].best_time or 0) < (correct[a].best_time or 0)
        assert faster == (heights[b] > heights[a])


def test_points_lead_to_their_options() -> None:
    """By pointer and by keyboard: a point is a link to its candidate's row, with its options."""
    page = page_of(search(3, 20))
    text = render(page)
    reader = read(text)
    rows = [value for name, value in reader.attributes if name == "id"]
    tries = page.log.tries
    assert rows == [f"c{k}" for k in range(1, len(tries) + 1)]
    charts = [d for d in drawings(text) if d.get("class") == "chart wide"]
    assert len(charts) == 3
    for chart in charts:
        links = chart.findall(f".//{SVG}a")
        assert sorted(a.get("href", "") for a in links) == sorted(f"#{row}" for row in rows)
        for link in links:
            (shape,) = link
            (title,) = shape.findall(f"{SVG}title")
            number = int(link.get("href", "")[2:])
            options = tries[number - 1].candidate.options.to_json()
            assert (title.text or "").endswith(f"\n{options}")
            assert options in text.replace("&quot;", '"')


def test_candidates_can_be_saved_as_t4() -> None:
    page = page_of(search(3, 20), run="it")
    (data,) = (v for n, v in read(render(page)).attributes if n == "href" and v and "data:" in v)
    text = base64.b64decode(data.partition(",")[2]).decode()
    (found,) = from_t4(text, "page", lambda key, options: options)
    assert (found.key, found.entry) == (page.key, "mm")
    tries, raced = page.log.tries, page.log.raced
    assert len(found.records) == len(tries) + len(raced)
    best = page.log.decision.winner
    assert best is not None
    assert ranked(found.records)[0].options == best.options.to_json()
    assert ranked(found.records)[0].time == pytest.approx(best.time)


def test_every_knob_is_in_the_glossary() -> None:
    page = page_of(search())
    text = render(page)
    for knob in page.space.knobs:
        assert KNOBS[point_kind(knob.name)] in text
    # Those of other defs and of GPUs, by the names that the sources give them.
    folder = Path(tcl.tuner.__file__).parent
    sources = (folder / "space").rglob("*.py")
    named = [re.findall(r'f"\{[^}]+\}\.([a-z_]+)', file.read_text()) for file in sources]
    kinds = {kind for names in named for kind in names}
    assert {"mma", "steps"} <= kinds <= KNOBS.keys()
    assert {"tile", "prefetch"} <= KNOBS.keys()


def test_axes_are_in_microseconds() -> None:
    """However slow the slowest candidate: the fastest matter."""
    text = render(page_of(search(start=0.5)))
    assert "first reading, µs (log scale)" in text
    assert "first reading, ms" not in text


def test_page_needs_nothing_else() -> None:
    reader = read(render(page_of(search())))
    assert not {"script", "link", "img", "iframe", "object", "image", "use"} & set(reader.tags)
    for name, value in reader.attributes:
        assert name not in ("src", "onload", "onclick")
        if name == "href":  # places of the page, and the file that is in it
            assert (value or "").startswith(("#c", "data:application/json;base64,"))
        elif name != "xmlns":
            assert "http" not in (value or "") or name == "http-equiv"
    policy = dict(reader.attributes)
    assert policy["content"] is not None
    text = render(page_of(search()))
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert "url(" not in text
    assert "@import" not in text


def test_everything_is_escaped() -> None:
    evil = "</code></pre><script>alert('&')</script>\x00\ud800<img src=x onerror=\"x\">"
    page = page_of(search(message=evil), title=evil, facts=[(evil, evil)], beside={evil: 1.2})
    text = render(page)
    text.encode("utf-8")
    reader = read(text)
    assert "script" not in reader.tags
    assert "img" not in reader.tags
    assert "<script>alert('&')</script>" in " ".join(reader.text)
    assert "\x00" not in text
    drawings(text)


@pytest.mark.parametrize(
    ("found", "beside", "expected"),
    [
        (
            search(race=Race.NONE),
            {},
            ("ended early by SIGINT", "candidate was timed once during the search"),
        ),
        (
            failing(),
            {},
            ("no candidate worked", "killed by SIGSEGV", "only 0 of 1 candidates work"),
        ),
        (iter(()), {}, ("it ended before a candidate was timed",)),
        (search(start=None), {}, ("constraints: it took more than 1 s",)),
        (search(1, 10), {}, ("measured configurations are too few",)),
        (
            search(),
            {"NumPy": 0.9, "naive options": 2.0},
            ("Faster than the result of the search: NumPy.",),
        ),
    ],
    ids=["interrupted", "found nothing", "never began", "start fails", "few", "slower"],
)
def test_page_of_a_search_that(
    found: Iterator[Event], beside: dict[str, float], expected: tuple[str, ...]
) -> None:
    text = render(page_of(found, beside=beside))
    words = " ".join(read(text).text)
    assert all(each in words for each in expected)
    drawings(text)


def test_log_takes_the_finals_times() -> None:
    log = take(SearchState(), search())
    assert log.decision.in_finals
    assert log.decision.start is not None and log.decision.start.outcome.message.startswith(
        "in the finals"
    )
    assert log.decision.winner is not None and log.decision.winner.outcome.message.startswith(
        "in the finals"
    )


# Files.


def test_page_is_written_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("old")
    write_page(page_of(failing()), file)
    assert file.read_text("utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "none" / "page.html", "x")


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "page.html"
    file.write_text("old")

    def fail(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    write_whole(Path(os.devnull), "text")
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


# Pieces.


def test_markup() -> None:
    assert (
        tag("p", "a < b", tag("b", "&"), None, ["c", Markup("<i>")])
        == "<p>a &lt; b<b>&amp;</b>c<i></p>"
    )
    assert (
        tag("p", class_="a", data_x='"', hidden=True, lang=None)
        == '<p class="a" data-x="&quot;" hidden></p>'
    )
    assert tag("meta", name="x") == '<meta name="x">'
    assert tag("line", x1=1.0, y1=0.333333) == '<line x1="1" y1="0.33"></line>'
    assert join(["<", ">"]) == "&lt;&gt;"


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"),
    [
        (1e-6, 1e-3, True),
        (1e-4, 1.5e-4, False),
        (3e-5, 2e-4, True),
        (1e-9, 10.0, True),
        (5e-5, 5e-5, False),
    ],
)
def test_axes(low: float, high: float, logarithmic: bool) -> None:
    axis = of_times([low, high], 200.0, 0.0)
    assert axis.logarithmic == logarithmic
    assert 0 <= axis.position(high) <= axis.position(low) <= 200
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 8
    assert all(axis.low * 0.999 <= t <= axis.high * 1.001 for t in ticks)


def test_axis_of_small_numbers() -> None:
    assert Axis(0.0, 2.0, 0, 100).ticks() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert Axis(0.0, 100.0, 0, 100).position(1e9) == 100
