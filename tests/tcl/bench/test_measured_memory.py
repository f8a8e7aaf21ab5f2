"""What memory and caches are like: measured, kept, and asked when options are chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nests import sized

from tcl.bench.ceilings import measure_memory, streamed_from
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import forget_host, host_cpu
from tcl.codegen.devices.cpu_profile import CpuProfile
from tcl.codegen.devices.measured_memory import NEVER, MeasuredMemory, keep_memory, kept_memory
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.cpu.prefetch import SOON
from tcl.codegen.schedule.cpu import plan, schedule

ROWS = "float(M, N) A, float(M) X) -> (O) { O(m, n) = A(m, n) * X(m) }"


def cpu(name: str) -> CpuProfile:
    found = known_cpus.find(name)
    assert found is not None
    return found


def test_measuring() -> None:
    found = measure_memory()
    assert found.streamed_from == NEVER or 2 << 20 <= found.streamed_from <= 32 << 20
    assert 0.1 < found.boundary_gain < 10
    assert host_cpu().l2_bytes < found.cached_bytes <= 256 << 20
    assert found.bytes_per_cycle > 0


def test_results_are_streamed_from_where_that_begins_to_gain() -> None:
    def found(*gains: float) -> float:
        asked = iter(gains)
        bytes_ = streamed_from((mb, next(asked)) for mb in (32, 16, 8, 4, 2))
        return bytes_ / (1 << 20)

    assert found(1.5, 1.44, 1.0) == pytest.approx(8 * 2**0.5), "half of the way"
    assert found(1.5, 1.44, 1.19) == pytest.approx(8.2, abs=0.2), "not 16, where 1.44 is lost"
    assert found(1.5, 1.4, 1.25, 0.78) == pytest.approx(7.5, abs=0.1)
    assert found(1.5, 1.5, 1.5, 1.5, 1.2) == 2
    assert found(1.04) == NEVER / (1 << 20)


@pytest.mark.parametrize(
    ("kept", "gain_at_32", "gain_at_16", "streamed"),
    [
        (32 << 20, 1.3, 1.15, 13_400_000),  # what caches do not keep is worth less ...
        (8 << 20, 1.3, 1.15, 13_000_000),  # ... but something
        (8 << 20, 1.3, 1.0, 19_000_000),
        (8 << 20, 1.15, 1.15, 13_000_000),
        (8 << 20, 1.04, 1.15, NEVER),
        (128 << 20, 1.3, 1.15, 21_300_000),  # what they keep is not
    ],
)
def test_what_caches_do_not_keep_is_streamed_for_less(
    kept: int, gain_at_32: float, gain_at_16: float, streamed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gains = {32: gain_at_32, 16: gain_at_16, 8: 0.9, 4: 0.8, 2: 0.7}
    monkeypatch.setattr("tcl.bench.ceilings._reading", lambda device: (kept, 8.0))
    monkeypatch.setattr(
        "tcl.bench.ceilings._gain",
        lambda rows, columns, device, stream: gains[round(4000 * rows / 2**20)] if stream else 1.0,
    )
    assert measure_memory().streamed_from == pytest.approx(streamed, rel=0.05)


def test_what_was_measured_is_kept_by_processor(tmp_path: Path) -> None:
    zen, rapids = cpu("znver4"), cpu("sapphirerapids")
    assert kept_memory(zen, tmp_path) is None
    keep_memory(zen, MeasuredMemory(4 << 20, 1.5, 9 << 20, 8.0), tmp_path / "new")
    keep_memory(rapids, MeasuredMemory(NEVER, 0.9, 9 << 20, 8.0), tmp_path / "new")
    assert kept_memory(zen, tmp_path / "new") == MeasuredMemory(4 << 20, 1.5, 9 << 20, 8.0)
    assert kept_memory(rapids, tmp_path / "new") == MeasuredMemory(NEVER, 0.9, 9 << 20, 8.0)
    assert kept_memory(cpu("znver3"), tmp_path / "new") is None


@pytest.mark.parametrize(
    "memory",
    [
        '"large"',
        "[]",
        '{"streamed_from": 1}',
        '{"streamed_from": 9, "boundary_gain": 1}',
        '{"streamed_from": -1, "boundary_gain": 1, "cached_bytes": 9, "bytes_per_cycle": 1}',
        '{"streamed_from": 1e999, "boundary_gain": 1, "cached_bytes": 9, "bytes_per_cycle": 1}',
        '{"streamed_from": 9, "boundary_gain": null, "cached_bytes": 9, "bytes_per_cycle": 1}',
        '{"streamed_from": 9, "boundary_gain": 1, "cached_bytes": 0, "bytes_per_cycle": 1}',
        '{"streamed_from": 9, "boundary_gain": 1, "cached_bytes": 9, "bytes_per_cycle": NaN}',
    ],
)
def test_what_is_no_measurement_counts_for_nothing(memory: str, tmp_path: Path) -> None:
    device = cpu("znver4")
    keep_memory(device, MeasuredMemory(1, 1.0, 1, 1.0), tmp_path)
    file = tmp_path / "memory.json"
    whole = file.read_text()
    file.write_text(whole[: whole.index("{", 1)] + memory + "}")
    assert kept_memory(device, tmp_path) is None
    file.write_text(whole[:-5])
    assert kept_memory(device, tmp_path) is None


@pytest.mark.parametrize("name", ["znver4", "sapphirerapids", "neoverse-v2"])
def test_measured_memory_decides(name: str) -> None:
    device = cpu(name)

    def streams(rows: int, memory: MeasuredMemory | None) -> bool:
        given = sized(ROWS, (rows, 1024), (rows,))
        chosen = schedule(given, MappingOptions("mlp"), replace(device, memory=memory))
        return "past the caches" in show(chosen)

    assert streams(8192, None) == (name != "neoverse-v2")
    assert not streams(8192, MeasuredMemory(NEVER, 1.0, 16 << 20, 8.0))
    assert streams(512, MeasuredMemory(1 << 20, 1.0, 16 << 20, 8.0))


def test_what_caches_keep_is_not_asked_for_past_them() -> None:
    given = sized("float(M, N) A) -> (O) { O(n) +=! A(m, n) }", (3072, 1024))
    device = replace(cpu("znver4"), threads=1)

    def ahead(cached: int) -> object:
        memory = MeasuredMemory(NEVER, 1.0, cached, 8.0)
        chosen = plan(given, MappingOptions("mlp"), replace(device, memory=memory)).options
        return chosen["s0"].prefetch

    assert ahead(64 << 20) == ()
    assert ahead(4 << 20) == (SOON,)


@pytest.mark.parametrize(("rows", "ahead"), [(40_000, ()), (100_000, (64,))])
def test_rows_of_half_the_last_cache_are_asked_for(rows: int, ahead: tuple[int, ...]) -> None:
    """Rows that data select, although a core was measured to keep all of that cache."""
    text = "float(E, D) T, int32(B, L) I) -> (O) { O(b, d) +=! T(I(b, l), d) }"
    memory = MeasuredMemory(NEVER, 1.0, 32 << 20, 10.0)
    device = replace(cpu("znver5"), threads=1, memory=memory)
    given = sized(text, (rows, 64), (128, 50))
    assert (plan(given, MappingOptions("mlp"), device).options["s0"].prefetch or ()) == ahead


def test_the_register_tile_follows_from_the_rate_of_memory() -> None:
    text = "float(M, K) A, float(N, K) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }"
    given = sized(text, (4, 2048), (4096, 2048))

    def register(rate: float) -> tuple[int, ...] | None:
        memory = MeasuredMemory(NEVER, 1.0, 16 << 20, rate)
        device = replace(cpu("skylake-avx512"), memory=memory)
        return plan(given, MappingOptions("mlp"), device).options["s0"].register

    assert register(0.5) != register(8.0)


def test_a_measured_machine_is_known_to_new_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = host_cpu()
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    try:
        keep_memory(before, MeasuredMemory(3 << 20, 1.0, 9 << 20, 8.0))
        assert host_cpu() == before, "not in the middle of a process"
        forget_host()
        assert host_cpu().memory == MeasuredMemory(3 << 20, 1.0, 9 << 20, 8.0)
    finally:
        forget_host()
