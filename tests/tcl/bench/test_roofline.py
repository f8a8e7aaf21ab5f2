"""What the machine can do, as it is kept, and what a time is beside it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tcl.bench import roofline
from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import Roofline, failed_lately, kept_ceilings, measure_ceilings, quantity
from tcl.codegen.loopir.cost import Cost

MACHINE = Ceilings(read=10e9, copy=10e9, flops=100e9)
MEGA = 1_000_000


def measured(folder: Path, *samples: Ceilings) -> Ceilings | None:
    known = measure_ceilings(1, folder, lambda threads: list(samples))
    return None if known is None else known.ceilings


def test_measured_once_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert kept_ceilings(1, folder) is None
    slower = Ceilings(9.5e9, 9.6e9, 99e9)
    assert measured(folder, slower, MACHINE, slower) == MACHINE
    known = kept_ceilings(1, folder)
    assert known is not None
    assert known.ceilings == MACHINE
    assert abs(known.when - os.stat(folder / "ceilings.json").st_mtime) < 60
    assert kept_ceilings(2, folder) is None
    assert [p.name for p in folder.iterdir()] == ["ceilings.json"]


def test_best_of_all_times_counts(tmp_path: Path) -> None:
    measured(tmp_path, *[MACHINE] * 3)
    busy = Ceilings(20e9, 5e9, 50e9)
    assert measured(tmp_path, *[busy] * 3) == Ceilings(20e9, 10e9, 100e9)


def test_samples_that_do_not_agree_are_not_believed(tmp_path: Path) -> None:
    busy = replace(MACHINE, copy=1e9)
    assert measured(tmp_path, MACHINE, MACHINE, busy, busy, busy) is None
    assert measured(tmp_path) is None
    assert measured(tmp_path, MACHINE, MACHINE) is None
    assert kept_ceilings(1, tmp_path) is None


class FakeMeter:
    """A machine on which one sample of a few is undisturbed; also the module ``time``."""

    def __init__(self, one_of: int) -> None:
        self.one_of, self.samples, self.closed = one_of, 0, False

    def monotonic(self) -> float:
        return 0.1 * self.samples

    def sample(self) -> Ceilings:
        self.samples += 1
        if self.samples % self.one_of == 0:
            return MACHINE
        return replace(MACHINE, read=5e9 / self.samples)  # no two agree

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("one_of", "count", "agree"), [(1, 6, True), (4, 12, True), (8, 20, False)]
)
def test_samples_are_taken_until_a_few_agree(
    one_of: int, count: int, agree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = FakeMeter(one_of)
    monkeypatch.setattr(roofline, "Meter", lambda cores: meter)
    monkeypatch.setattr(roofline, "time", meter)
    found = roofline._sample(2)
    assert (len(found), roofline._agree(found)) == (count, agree)
    assert meter.closed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "[]",
        '{"machine": 3}',
    ],
)
def test_file_that_is_not_ours_is_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "ceilings.json").write_text(text)
    assert kept_ceilings(1, tmp_path) is None
    assert measured(tmp_path, *[MACHINE] * 3) == MACHINE
    assert kept_ceilings(1, tmp_path) is not None


@pytest.mark.parametrize("value", [0, -1, "x", None, float("nan"), float("inf")])
def test_rates_that_cannot_be_are_not_used(tmp_path: Path, value: object) -> None:
    measured(tmp_path, *[MACHINE] * 3)
    file = tmp_path / "ceilings.json"
    data = json.loads(file.read_text())
    (machine,) = data.values()
    machine["flops"] = value
    file.write_text(json.dumps(data))
    assert kept_ceilings(1, tmp_path) is None


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert measured(tmp_path / "file" / "folder", *[MACHINE] * 3) == MACHINE


def yardstick(
    operations: int, moved: int, ceilings: Ceilings | None = MACHINE, cached: int = 0
) -> Roofline:
    return Roofline(Cost(operations, float(operations), moved, 0), ceilings, cached)


def test_arithmetic_is_the_limit() -> None:
    product = yardstick(100 * MEGA, 4 * MEGA)  # 1 ms of arithmetic, 0.4 ms of memory
    assert not product.limited_by_memory
    assert product.share(2e-3) == pytest.approx(0.5)
    assert product.describe(2e-3) == "50 GFLOP/s, 50% of the roofline"


def test_memory_is_the_limit() -> None:
    copy = yardstick(MEGA, 10 * MEGA)
    assert copy.limited_by_memory
    assert copy.describe(4e-3) == "2.5 GB/s, 25% of the roofline"
    assert copy.share(0.5e-3) is None  # faster than memory
    assert copy.describe(0.5e-3) == "20 GB/s, from the caches"


def test_what_stays_in_the_caches_costs_no_memory() -> None:
    small = yardstick(MEGA, 10 * MEGA, cached=20 * MEGA)
    assert not small.limited_by_memory
    assert small.share(1e-4) == pytest.approx(0.1)
    none = yardstick(0, 10 * MEGA, cached=20 * MEGA)
    assert none.share(1e-4) is None
    assert none.describe(1e-3) == "10 GB/s, from the caches"


def test_faster_than_the_machine() -> None:
    product = yardstick(100 * MEGA, 4 * MEGA)
    assert not product.beaten(0.99e-3)
    assert product.share(0.99e-3) == 1.0
    assert product.beaten(0.5e-3)
    assert product.share(0.5e-3) is None
    assert product.describe(0.5e-3) == "200 GFLOP/s, more than the measured peak of this machine"


def test_without_a_measurement() -> None:
    product = yardstick(100 * MEGA, 4 * MEGA, None)
    assert product.share(1e-3) is None
    assert product.describe(1e-3) == "100 GFLOP/s"
    assert yardstick(MEGA, 4 * MEGA, None).describe(1e-3) == "4 GB/s"


def test_wide_numbers_take_longer() -> None:
    double = Roofline(Cost(MEGA, 2.0 * MEGA, 8, 8), MACHINE, 0)
    assert double.share(2e-5) == pytest.approx(1.0)
    assert double.rate(2e-5) == "50 GFLOP/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (2.5e9, "2.5 GB"), (3e15, "3e+03 TB")],
)
def test_quantities(value: float, text: str) -> None:
    assert quantity(value, "B") == text


def test_a_failure_is_remembered_for_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not failed_lately(1, tmp_path)
    assert measure_ceilings(1, tmp_path, lambda threads: []) is None
    assert failed_lately(1, tmp_path)
    assert not failed_lately(2, tmp_path)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 3700)
    assert not failed_lately(1, tmp_path)
    monkeypatch.undo()
    assert measure_ceilings(1, tmp_path, lambda threads: [MACHINE] * 8) is not None
    assert not failed_lately(1, tmp_path)
