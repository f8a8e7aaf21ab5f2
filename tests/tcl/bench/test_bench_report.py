"""Results, what they come to, and reports as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from tcl.bench.ceilings import Ceilings
from tcl.bench.report import Report, bars
from tcl.bench.rows import TYPED
from tcl.bench.summary import (
    Entry,
    Result,
    Spread,
    geometric_mean,
    lines,
    mean,
    ratio,
    shift,
    summarise,
)
from tcl.bench.task import DEFAULT, TUNED
from tcl.common.errors import ArgumentError

# Reports.


def result(name: str, kind: str = "sums", **seconds: float) -> Result:
    entries = {n: Entry("f", 1, (s, s * 3, s / 2)) for n, s in seconds.items()}
    named = {"default": DEFAULT, "tuned": TUNED}
    entries = {named.get(n, n): e for n, e in entries.items()}
    facts = {"compile_seconds": [0.3, 0.1, 0.2]}
    return Result(name, kind, "f", "d", {"N": 1}, 1, 100, 10, 10, entries, facts)


def moved(result: Result, factor: float, **changes: Any) -> Result:
    """The same with times that are longer."""
    entries = {
        name: replace(entry, samples=tuple(factor * s for s in entry.samples))
        for name, entry in result.entries.items()
    }
    return replace(result, entries=entries, **changes)


def report(*results: Result) -> Report:
    samples = (Ceilings(10.0, 12.0, 90.0, {"int8": 1.0}), Ceilings(9.0, 16.0, 100.0))
    settings = {"cold": False, "rounds": 3}
    return Report("2020-01-01", {"cpu": "x"}, {"a": "1"}, settings, {1: samples}, results, {})


def test_ratios() -> None:
    one = result("a", slow=9.0, fast=2.0, default=4.0, tuned=1.0)
    assert one.best_peer == ("fast", 2.0)
    assert one.ours == (TUNED, 1.0)
    assert (one.ratio(), one.ratio(DEFAULT)) == (2.0, 0.5)
    untuned = result("b", fast=2.0, default=4.0)
    assert (untuned.ratio(), untuned.ours) == (0.5, (DEFAULT, 4.0))
    assert result("c", default=1.0).ratio() is None
    assert result("d", fast=1.0).ratio() is None
    assert one.share(2.0, Ceilings(10.0, 20.0, 100.0)) == 0.5
    assert one.compile_seconds == 0.2


def test_summaries() -> None:
    rows = [
        result("a", "sums", fast=2.0, default=4.0, tuned=1.0),
        result("b", "fused", fast=2.0, default=4.0),
        result("c", "fused", default=4.0),
        result("d", TYPED, fast=1.0, default=1.0),
    ]
    found = summarise(rows)["aligned"]
    means = {name: spread["median"] for name, spread in found["ratio"].items()}
    assert means == pytest.approx({"fused": 0.5, "sums": 2.0, TYPED: 1.0, "suite": 1.0, "all": 1.0})
    means = {name: spread["median"] for name, spread in found["ratio_default"].items()}
    assert (means["suite"], means["all"]) == pytest.approx((0.5, 0.25 ** (1 / 3)))
    assert found["default_over_tuned"]["all"]["median"] == pytest.approx(4.0)
    assert found["worst"] == {"row": "b", "ratio": 0.5}
    assert found["slower"] == {"b": 0.5}
    assert found["missing"] == ["c"]
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, None, 4.0]) == pytest.approx(2.0)


def test_placements_are_compared() -> None:
    one = result("a", fast=2.0, default=2.0, tuned=1.0)
    two = result("b", fast=2.0, default=1.0)
    rows = [one, moved(one, 1.5, placement="numpy"), two, moved(two, 0.5, placement="numpy")]
    found = summarise(rows)
    assert found["numpy"]["ratio"]["all"] == found["aligned"]["ratio"]["all"]
    assert found["numpy over aligned"]["mean"]["median"] == pytest.approx(math.sqrt(0.75))
    assert found["numpy over aligned"]["worst"] == {"row": "a", "ratio": pytest.approx(1.5)}
    # Options that are tuned on one placement alone say nothing about it: default ones do.
    untuned = {n: e for n, e in rows[1].entries.items() if n != TUNED}
    (line,) = lines([one, replace(rows[1], entries=untuned)])
    assert line.spread(shift) == Spread(1.5, 1.5, 1.5)


def test_the_median_of_runs_counts() -> None:
    first = result("a", fast=2.0, default=2.0)
    slower = {n: replace(e, samples=(e.samples[0] * 4,)) for n, e in first.entries.items()}
    entries = {**first.entries, "fast": slower["fast"]}
    runs = [first, replace(first, run=2), replace(first, run=3, entries=entries)]
    (line,) = lines(runs)
    assert line.spread(ratio("aligned")) == Spread(1.0, 1.0, 4.0)
    assert line.seconds("fast", "aligned") == 2.0
    assert mean([line], ratio("aligned")) == Spread(1.0, 1.0, 4.0)
    assert mean([line], ratio("numpy")) is None
    assert summarise(runs)["aligned"]["ratio"]["sums"] == {"median": 1.0, "low": 1.0, "high": 4.0}


def test_bars_say_which_rows_miss_them() -> None:
    good = result("good", fast=3.0, default=1.2, tuned=1.0)
    bad = result("bad", fast=0.9, default=1.0, tuned=1.1)
    narrow = result("x int8", TYPED, torch=0.5, default=1.0)
    rows = [good, bad, narrow, *(moved(r, 1.2, placement="numpy") for r in (good, bad))]
    found = {bar.what: bar for bar in bars(report(*rows), 1)}
    assert str(found["best peer / tuned, suite, aligned arrays"]).endswith(
        f"{math.sqrt(3 * 0.9 / 1.1):.2f}, at least 1.40: met"
    )
    every = found["best peer / tuned, every row, aligned arrays"]
    assert (every.met, [name for name, _ in every.worse]) == (False, ["bad"])
    assert str(every).endswith("0.82, at least 0.95: missed (bad 0.82)")
    assert not found["numpy / aligned arrays, every row"].met
    assert [n for n, _ in found["numpy / aligned arrays, every row"].worse] == ["good", "bad"]
    assert [n for n, _ in found["default / tuned, every row, aligned arrays"].worse] == ["bad"]
    torch = found["torch / tuned, each of these, aligned arrays"]
    assert torch.worse == (("x int8", 0.5),)
    assert bars(report(result("a", default=1.0)), 1) == []


def test_json_keeps_everything() -> None:
    first = report(result("a", fast=2.0, default=4.0), result("b", default=1.0))
    data = json.loads(first.text())
    assert Report.from_json(data) == first
    assert data["schema"] == 2
    row = data["results"][0]
    assert row["entries"]["fast"]["samples"] == [2.0, 6.0, 1.0]
    assert row["summary"]["ratio"] == 0.5
    assert row["summary"]["medians"] == {"fast": 2.0, DEFAULT: 4.0}
    summary = data["summary"]["1"]["aligned"]
    assert set(summary) >= {"ratio", "ratio_default", "worst", "slower", "compile_seconds"}
    rates = {"read": 10.0, "copy": 12.0, "flops": 90.0, "products": {"int8": 1.0}}
    assert data["ceilings"]["1"][0] == {**rates, "core_to_core": 0.0}
    with pytest.raises(ArgumentError, match="not a report of schema"):
        Report.from_json({"schema": 99})
    with pytest.raises(ArgumentError, match="not a report of schema"):
        Report.from_json([])
    damages: list[dict[str, object]] = [
        {"machine": 5},
        {"results": [5]},
        {"ceilings": []},
        {"ceilings": {"a": []}},
    ]
    for damage in damages:
        with pytest.raises(ArgumentError, match="damaged"):
            Report.from_json({**data, **damage})
    with pytest.raises(ArgumentError, match="damaged"):
        Report.from_json({"schema": 2})


def test_reports_of_the_first_schema_can_be_read() -> None:
    """They have no placements, runs or narrow types."""
    data = json.loads(report(result("a", fast=2.0, default=4.0)).text())
    data["schema"] = 1
    for row in data["results"]:
        for name in ("single", "products", "placement", "run"):
            del row[name]
    for sample in data["ceilings"]["1"]:
        del sample["products"]
    del data["left_out"], data["interrupted"]
    found = Report.from_json(data)
    assert (found.results[0].placement, found.results[0].run) == ("aligned", 1)
    assert found.results[0].share(2.0, found.ceiling(1)) == 0.625


def test_ceiling_is_the_best_of_each() -> None:
    assert report().ceiling(1) == Ceilings(10.0, 16.0, 100.0, {"int8": 1.0})
