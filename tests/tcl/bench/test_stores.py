"""How results are best written on a machine: measured, kept, and asked when options are chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nests import sized

from tcl.bench.ceilings import measure_stores
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import forget_host, host_cpu
from tcl.codegen.devices.cpu_profile import CpuProfile
from tcl.codegen.devices.measured_stores import NEVER, MeasuredStores, keep_stores, kept_stores
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

ROWS = "float(M, N) A, float(M) X) -> (O) { O(m, n) = A(m, n) * X(m) }"


def cpu(name: str) -> CpuProfile:
    found = known_cpus.find(name)
    assert found is not None
    return found


def test_measuring() -> None:
    found = measure_stores()
    assert found.streamed_from == NEVER or found.streamed_from in {
        n << 20 for n in (2, 4, 8, 16, 32)
    }
    assert 0.1 < found.boundary_gain < 10


def test_what_was_measured_is_kept_by_processor(tmp_path: Path) -> None:
    zen, rapids = cpu("znver4"), cpu("sapphirerapids")
    assert kept_stores(zen, tmp_path) is None
    keep_stores(zen, MeasuredStores(4 << 20, 1.5), tmp_path / "new")
    keep_stores(rapids, MeasuredStores(NEVER, 0.9), tmp_path / "new")
    assert kept_stores(zen, tmp_path / "new") == MeasuredStores(4 << 20, 1.5)
    assert kept_stores(rapids, tmp_path / "new") == MeasuredStores(NEVER, 0.9)
    assert kept_stores(cpu("znver3"), tmp_path / "new") is None


@pytest.mark.parametrize(
    "stores",
    [
        '"large"',
        "[]",
        '{"streamed_from": 1}',
        '{"streamed_from": -1, "boundary_gain": 1}',
        '{"streamed_from": 1e999, "boundary_gain": 1}',
        '{"streamed_from": 9, "boundary_gain": null}',
    ],
)
def test_what_is_no_measurement_counts_for_nothing(stores: str, tmp_path: Path) -> None:
    device = cpu("znver4")
    keep_stores(device, MeasuredStores(1, 1.0), tmp_path)
    file = tmp_path / "stores.json"
    whole = file.read_text()
    file.write_text(whole[: whole.index("{", 1)] + stores + "}")
    assert kept_stores(device, tmp_path) is None
    file.write_text(whole[:-5])
    assert kept_stores(device, tmp_path) is None


@pytest.mark.parametrize("name", ["znver4", "sapphirerapids", "neoverse-v2"])
def test_measured_stores_decide(name: str) -> None:
    device = cpu(name)

    def streams(rows: int, stores: MeasuredStores | None) -> bool:
        given = sized(ROWS, (rows, 1024), (rows,))
        chosen = schedule(given, MappingOptions("mlp"), replace(device, stores=stores))
        return "past the caches" in show(chosen)

    assert streams(8192, None) == (name != "neoverse-v2")
    assert not streams(8192, MeasuredStores(NEVER, 1.0))
    assert streams(512, MeasuredStores(1 << 20, 1.0))


def test_a_measured_machine_is_known_to_new_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = host_cpu()
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    try:
        keep_stores(before, MeasuredStores(3 << 20, 1.0))
        assert host_cpu() == before, "not in the middle of a process"
        forget_host()
        assert host_cpu().stores == MeasuredStores(3 << 20, 1.0)
    finally:
        forget_host()
