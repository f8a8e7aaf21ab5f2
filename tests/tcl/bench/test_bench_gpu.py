"""The GPU benchmark: everything but the device. Rehearsals drive it on the CPU."""

# The folder of the benchmarks is not where pytest looks by itself.

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("benchmarks are in the source tree only", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from gpu_fakes import Recorder, fake_cupy, fake_nvml, fake_torch

from benchmarks.gpu.clock import (
    CupyClock,
    DeviceForm,
    HostClock,
    Nvml,
    Run,
    Sample,
    Timed,
    TorchClock,
    schedule,
)
from benchmarks.gpu.command import describe_host, missing, select_device
from benchmarks.gpu.counted import counts_of
from benchmarks.gpu.peers import cupy_peer, ours
from benchmarks.gpu.profile import table
from benchmarks.gpu.report import (
    EITHER,
    THREADS,
    Bar,
    GpuEntry,
    GpuReport,
    Measured,
    bars,
    best_rates,
    ceilings,
    lines,
    own_bar,
)
from benchmarks.gpu.rows import GPU_ROWS, asked, gpu_rows, in_suite, rehearsed, streams
from benchmarks.gpu.run import (
    OWN,
    PEERS,
    Budget,
    GpuLanes,
    Settings,
    options_for,
    profile_of,
    run,
)
from tcl.backends.targets import target
from tcl.bench.contender import Contender, Spec
from tcl.bench.lanes import ExpectedResults, prepare
from tcl.bench.rows import SUITE, Row
from tcl.bench.run import as_result
from tcl.bench.summary import Result
from tcl.bench.task import DEFAULT, TUNED
from tcl.codegen.counters.prediction import predict
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError
from tcl.common.number_format import duration
from tcl.tuner.config import TunerConfig

# Samples.


@pytest.mark.parametrize(
    ("times", "launches", "wanted"),
    [
        ([], 1, False),
        ([1e-5] * 14, 1, False),  # steady, but too few
        ([1e-5] * 15, 1, True),
        ([1e-5, 2e-5] * 10, 1, False),  # spread
        ([1e-5, 2e-5] * 30, 1, True),  # as many as there may be
        ([1e-5, 2e-5] * 10, 1000, True),  # 0.3 s of the device
        ([2.0, *[1e-5] * 13], 1, False),  # one that waited makes no long calls
        ([0.5] * 4, 1, False),
        ([0.5, 0.9, 0.5, 0.9, 0.5], 1, True),  # long calls: five do
    ],
)
def test_when_samples_are_enough(times: list[float], launches: int, wanted: bool) -> None:
    assert GpuEntry("f", THREADS, tuple(times), launches=launches).enough is wanted


def test_samples_at_a_low_clock_do_not_count() -> None:
    found = GpuEntry("f", THREADS, (1.0, 2.0, 3.0), mhz=(1900, 1000, None), highest_mhz=2000)
    assert found.counted == (1.0, 3.0)
    assert found.seconds == 2.0
    assert replace(found, highest_mhz=None).counted == (1.0, 2.0, 3.0)
    slow = replace(found, mhz=(900, 1000, 1000))
    assert slow.counted == found.samples  # the device is never faster under this load


# Time.


def test_budget() -> None:
    now = 100.0
    budget = Budget(60.0, reserve=5.0, now=lambda: now)
    assert budget.fits()
    assert budget.left == 55
    assert budget.within(300.0) == 55
    now = 140.0
    assert not budget.fits()  # a row is taken to need 20 s
    budget.took(3.0)
    assert budget.fits()
    assert budget.within(300.0) == 20.0
    assert budget.within(3.0) == 3.0
    budget.took(16.0)
    assert not budget.fits()
    for _ in range(3):
        budget.took(1.0)  # the slow one is long ago
    assert budget.fits()
    now = 1000.0
    assert budget.left == 0
    assert budget.within(300.0) == 20.0
    assert Budget(None).fits()
    assert Budget(None).within(300.0) == 300.0


class FakeClock(HostClock):
    """A device on which a launch takes as long as it is told, and a replay 2 µs more."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def sample(self, timed: Timed) -> Sample:
        timed.play()
        return Sample(self.seconds + 2e-6 / timed.launches)


def a_form() -> tuple[DeviceForm, list[int]]:
    calls: list[int] = []

    def runs(count: int) -> Sequence[Run]:
        def of(number: int) -> Run:
            return lambda: calls.append(number)

        return [of(i) for i in range(count)]

    return DeviceForm(runs, lambda: []), calls


@pytest.mark.parametrize(
    ("seconds", "moved", "launches", "copies"),
    [
        (1e-3, 1 << 20, 1, 1),  # long enough alone
        (20e-6, 64 << 20, 10, 3),  # three sets of buffers are more than twice the L2
        (20e-6, 1 << 20, 10, 10),  # a set for every launch
        (1e-6, 32 << 20, 200, 5),
        (1e-9, 8, 256, 256),
    ],
)
def test_replays_are_long_and_leave_the_cache(
    seconds: float, moved: int, launches: int, copies: int
) -> None:
    form, calls = a_form()
    timed = schedule(FakeClock(seconds), form, moved, moved, 60 << 20)
    assert timed.copies == pytest.approx(copies, abs=1)
    assert timed.launches == pytest.approx(launches, rel=0.15)
    calls.clear()
    timed.play()
    assert calls == [i % timed.copies for i in range(timed.launches)]


def test_buffers_of_a_replay_are_bounded() -> None:
    form, _ = a_form()
    timed = schedule(FakeClock(2e-6), form, 1000, 1 << 30, 60 << 20)
    assert timed.copies == 4
    assert timed.launches > 50


# Clocks of devices, with devices that are not there.


def device_clock(
    kind: str, monkeypatch: pytest.MonkeyPatch, capture: str
) -> tuple[TorchClock | CupyClock, Recorder]:
    device = Recorder(capture=capture)
    fakes = {
        "torch": fake_torch(device),
        "cupy": fake_cupy(device),
        "pynvml": fake_nvml(now=1500),
    }
    monkeypatch.setattr("benchmarks.gpu.clock.import_module", fakes.__getitem__)
    made = TorchClock if kind == "torch" else CupyClock
    return made(60 << 20, "0000:01:00.0"), device


each_clock = pytest.mark.parametrize("kind", ["torch", "cupy"])


@each_clock
def test_device_clocks_capture_and_replay(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, device = device_clock(kind, monkeypatch, "works")
    timed = clock.timed([device.work("a"), device.work("b")], 5)
    assert (timed.captured, timed.launches, timed.copies) == (True, 5, 2)
    found = [entry for entry in device.log if entry.endswith((" a", " b")) or entry in ("a", "b")]
    assert found == [*"aaaab", *(f"captured {name}" for name in "ababa")]
    device.log.clear()
    sample = clock.sample(timed)
    assert sample.seconds == pytest.approx(3e-3 / 5)
    assert sample.mhz == 1500
    noted = [entry for entry in device.log if entry in ("flush", "event", "replay", "wait")]
    assert noted == ["flush", "event", "replay", "event", "wait"]
    assert not clock.spoiled


@each_clock
def test_a_replay_keeps_its_buffers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph has their addresses alone: in memory given back it would read what others write."""
    clock, device = device_clock(kind, monkeypatch, "works")
    run = device.work("a")
    held = weakref.ref(run)
    timed = clock.timed([run], 5)
    del run
    assert timed.captured and held() is not None
    del timed
    assert held() is None


@each_clock
@pytest.mark.parametrize("capture", ["refused", "breaks"])
def test_what_cannot_be_captured_is_launched(
    kind: str, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, device = device_clock(kind, monkeypatch, capture)
    timed = clock.timed([device.work("a"), device.work("b")], 3)
    assert not timed.captured
    device.log.clear()
    timed.play()
    assert device.log == ["a", "b", "a"]
    # CuPy refuses before anything is captured; after all else another process is safer.
    assert clock.spoiled == (kind == "torch" or capture == "breaks")


def test_clock_rates_are_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.gpu.clock.import_module", {}.__getitem__)
    assert Nvml("0000:01:00.0").mhz() is None
    assert Nvml("0000:01:00.0").held_down() == ()


def test_what_holds_a_clock_down(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = fake_nvml(1500)
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda device: 0x1 | 0x4 | 0x40
    monkeypatch.setattr("benchmarks.gpu.clock.import_module", {"pynvml": nvml}.__getitem__)
    assert Nvml("0000:01:00.0").held_down() == ("power cap", "heat, by hardware")
    entry = GpuEntry("f", THREADS, (1.0, 1.0), mhz=(900, 1500), held_down=(("power cap",), ()))
    made = result(named("matmul 1024"), 1.0)
    made = replace(made, entries={"tcl default": entry}, facts={"predicted_seconds": 3e-5})
    text = "\n".join(lines(report(made)))
    assert "matmul 1024, tcl default: clock held down by power cap in 1 of 2 samples" in text
    assert "clocks of the multiprocessors: 900 to 1500 MHz" in text
    assert f"  {duration(3e-5)}  " in text


def test_devices_that_are_known_are_predicted() -> None:
    assert profile_of(describe_host()) == H200
    about = {"name": "NVIDIA H200", "capability": "90", "multiprocessors": 132}
    assert profile_of(about) == H200
    assert profile_of({**about, "name": "NVIDIA Another"}) is None
    assert profile_of({}) is None


# Rows.


def test_rows() -> None:
    assert len({row.name for row in GPU_ROWS}) == len(GPU_ROWS)
    suite = [row for row in GPU_ROWS if in_suite(row)]
    assert {row.name for row in suite} == {row.name for row in SUITE}
    assert all(row.quick for row in suite)
    first = [asked(row) for row in GPU_ROWS]
    assert first == sorted(first, reverse=True)
    assert len(gpu_rows(None, True)) < len(gpu_rows(None, False)) == len(GPU_ROWS)
    assert next(r.name for r in gpu_rows("matmul 4096", True)) == "matmul 4096"
    with pytest.raises(ArgumentError, match="no row matches"):
        gpu_rows("nothing", False)


def test_rows_that_stream_are_large() -> None:
    names = {row.name for row in GPU_ROWS if streams(row)}
    assert {"softmax 16384x1024", "layernorm 16384x1024", "moments 1024x36864"} < names
    assert "bias+relu+scale 4096x4096" in names
    assert "softmax 4096x1024" not in names


def lenient(found: ExpectedResults) -> ExpectedResults:
    """What is asked of peers."""
    lanes = GpuLanes((), 0, Budget(None), None, print)
    return lanes.wanted(Contender(PEERS[0], 1, ()), found)


def named(name: str) -> Row:
    return next(row for row in GPU_ROWS if row.name == name)


@pytest.mark.parametrize("type_", ["float32", "float16", "bfloat16"])
def test_results_are_compared_with_the_reference(type_: str) -> None:
    if type_ == "bfloat16":
        pytest.importorskip("ml_dtypes")
    row = next(r for r in GPU_ROWS if r.entry == "matmul" and r.type == type_)
    ready = prepare(rehearsed(row), 3)
    a, b = ready.inputs.values()
    assert a.dtype.name == type_
    product = a.astype(np.float64) @ b.astype(np.float64)
    step = 2.0 ** {"float32": -23, "float16": -10, "bfloat16": -7}[type_]
    off = (100 if type_ == "float32" else 30) * step * np.sqrt(np.square(product).mean())
    for wrong, right in ((0.0, True), (off, False)):
        found = [(product + wrong).astype(np.float32)]
        assert (ready.expected.why_wrong(found) is None) == right
        assert lenient(ready.expected).why_wrong(found) is None
    found = [(product + 100 * off).astype(np.float32)]
    assert lenient(ready.expected).why_wrong(found) is not None


def test_tf32_is_found_out_in_peers() -> None:
    """Operands of 10 bits after the point, as tensor cores take them."""
    for row in (named("matmul 1024"), named("matmul 4096"), named("grouped conv C32@7")):
        row = replace(row, sizes=row.sizes.replace("M=4096,N=4096", "M=64,N=64"))
        ready = prepare(row, 0)
        a, b = (
            ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)
            for x in [*ready.inputs.values()][:2]
        )
        if row.entry == "matmul":
            found = a @ b
        else:
            windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(-2, -1))
            found = np.einsum("ngchwij,gfcij->ngfhw", windows, b, optimize=True)
            found += ready.inputs["B"][:, :, None, None]
        assert "differs" in (lenient(ready.expected).why_wrong([found.astype(np.float32)]) or "")


# Reports.


def entry(seconds: float) -> GpuEntry:
    return GpuEntry("f", THREADS, (seconds,) * 3, mhz=(None,) * 3, launches=1, captured=True)


def result(row: Row, ours: float | None, **peers: float) -> Result:
    entries = {name.replace("_", "."): entry(s) for name, s in peers.items()}
    wrong = GpuEntry("default", THREADS, (), error="it is wrong")
    entries[DEFAULT] = wrong if ours is None else entry(ours)
    return as_result(row, THREADS, entries, {})


PROBES = (
    Measured("a", "copy", 8_000, (2.0, 1.0, 4.0)),
    Measured("b", "copy", 1_000, (1.0,)),
    Measured("c", "float32", 100, (0.5,)),
    Measured("d", "float16", 100, (), "no memory"),
)


def report(*results: Result, **changes: Any) -> GpuReport:
    latencies = {"tcl": [3e-6, 2e-6], "CuPy RawKernel": [2e-6]}
    made = GpuReport("2030-01-01", describe_host(), {"torch": "2"}, {"quick": True},
                     {THREADS: (ceilings(best_rates(PROBES)),)}, results,
                     probes=PROBES, latencies=latencies)  # fmt: skip
    return replace(made, **changes)


def verdict(made: GpuReport, start: str) -> Bar:
    return next(bar for bar in bars(made) if bar.name.startswith(start))


def test_ceilings() -> None:
    made = report()
    assert made.rates == {"copy": 4000.0, "float32": 200.0}
    row = named("matmul 1024")
    slowest = max(2 * 1024**3 / 200.0, row.cost().bytes_moved / 4000.0)
    assert result(row, 1.0).share(1.0, made.ceiling(THREADS)) == pytest.approx(slowest)
    half = named("matmul 4096 float16")  # a rate that is not known limits nothing
    moving = half.cost().bytes_moved / 4000.0
    assert result(half, 1.0).share(1.0, made.ceiling(THREADS)) == pytest.approx(moving)
    assert result(row, 1.0).share(1.0, ceilings({})) is None


def test_ratios() -> None:
    one = result(named("matmul 1024"), 2.0, torch=3.0, CuPy=1.0, torch_compile=8.0)
    assert one.best_peer == ("CuPy", 1.0)
    assert one.fastest(EITHER) == ("torch", 3.0)
    assert (one.ratio(), one.ratio(peers=EITHER)) == (0.5, 1.5)
    wrong = result(named("matmul 1024"), None, torch=3.0)
    assert (wrong.ratio(), wrong.ours) == (None, None)


def test_product_bar_takes_the_worst_row() -> None:
    names = [f"matmul {n}" for n in (1024, 2048, 4096, 8192)]
    good = [result(named(n), 1.0, torch=0.9) for n in names]
    bar = verdict(report(*good), "float32 matmul")
    assert (bar.value, bar.met, bar.verdict) == (0.9, True, "met")
    bar = verdict(report(*good[:3], result(named(names[3]), 1.0, torch=0.7)), "float32 matmul")
    assert (bar.value, bar.met, bar.verdict) == (0.7, False, "not met")
    bar = verdict(report(*good[:3]), "float32 matmul")
    assert (bar.met, bar.verdict) == (None, "not all measured")
    bar = verdict(report(*(result(named(n), 1.0, torch=1.0) for n in names)), "float32 matmul")
    assert bar.verdict == "met, aim too"
    bar = verdict(report(*good[:3], result(named(names[3]), None, torch=0.7)), "float32 matmul")
    assert bar.verdict == "not all measured"


def test_bandwidth_bar() -> None:
    row = named("softmax 16384x1024")
    made = report(result(row, 1.0, torch=5.0), settings={"quick": False})
    moved = row.cost().bytes_moved
    made = replace(made, probes=(Measured("copy", "copy", moved, (0.93,)),))
    assert own_bar(made.results[0], made) == "0.93 of the copy bandwidth: met"
    bar = verdict(made, "pointwise")
    assert bar.verdict == "not all measured"
    assert "softmax 65536x1024" in bar.rows
    assert "softmax 65536x1024" not in verdict(report(), "pointwise").rows


def test_suite_bar() -> None:
    suite = [row for row in GPU_ROWS if in_suite(row)]
    made = report(*(result(row, 1.0, torch=1.2, torch_compile=3.0) for row in suite))
    bar = verdict(made, "whole suite")
    assert bar.value == pytest.approx(1.2)
    assert bar.verdict == "met"
    slow = result(suite[-1], 1.0, torch=0.5)
    bar = verdict(replace(made, results=(*made.results[:-1], slow)), "whole suite")
    assert bar.value is not None and bar.value > 1.15
    assert bar.verdict == "not met"
    assert suite[-1].name in bar.complaint


def test_overhead_bar() -> None:
    bar = verdict(report(), "launch overhead")
    assert (bar.value, bar.verdict) == (1.25, "met")
    assert verdict(report(latencies={}), "launch overhead").verdict == "not measured"


def test_grouped_bar_is_a_ratio() -> None:
    rows = [row for row in GPU_ROWS if row.entry == "group_convolution"]
    assert len(rows) == 4
    made = report(*(result(row, 1.0, torch=6.0, torch_compile=1.0) for row in rows))
    assert verdict(made, "grouped").verdict == "met, aim too"


def test_table_and_json() -> None:
    made = report(
        result(named("matmul 1024"), 2e-3, torch=1e-3),
        result(named("softmax 4096x1024"), None, torch=5e-6),
        left_out={"WaveNet cell": "the time was up"},
        absent={"Triton": "triton is not installed"},
    )
    text = "\n".join(lines(made))
    assert "0.50 of cuBLAS, tf32 off: not met" in text
    assert "softmax 4096x1024, tcl default: it is wrong" in text
    assert "not measured, the time was up: WaveNet cell" in text
    assert "without Triton: triton is not installed" in text
    assert "d: no memory" in text
    assert "clocks, and what holds them down, are not known" in text
    head, *body = [line for line in text.split("\n") if line.startswith(("work", "matmul", "soft"))]
    assert all(line[: len("softmax 4096x1024")].strip() in GPU_NAMES for line in body[:2])
    assert head.index("ratio") > head.index("torch")
    data = json.loads(made.text())
    assert data["schema"] == 1
    assert data["results"][0]["entries"]["torch"]["samples"] == [1e-3] * 3
    assert data["results"][0]["summary"]["ratio"] == 0.5
    assert {bar["verdict"] for bar in data["bars"]} >= {"not met", "met", "not measured"}
    assert "[0.001, 0.001, 0.001]" in made.text()


GPU_NAMES = {row.name for row in GPU_ROWS}


# The command.


def test_what_is_missing_is_said() -> None:
    assert missing(("json", "os")) is None
    text = missing(("json", "nosuchpackage", "cupy_that_is_not_there"))
    assert text is not None and text.startswith("nosuchpackage, cupy_that_is_not_there are not")
    assert "pip download --no-deps" in text and "\n" not in text


def test_devices_are_selected() -> None:
    assert select_device(1, {})["CUDA_VISIBLE_DEVICES"] == "1"
    assert select_device(1, {"CUDA_VISIBLE_DEVICES": "4, 7"})["CUDA_VISIBLE_DEVICES"] == "7"
    with pytest.raises(ValueError, match="names 2 devices; there is no 2"):
        select_device(2, {"CUDA_VISIBLE_DEVICES": "4,7"})


def command(*words: object, blocked: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "TCL_CACHE_DIR"}
    if blocked is not None:
        environment["PYTHONPATH"] = str(blocked)
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *map(str, words)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_command_refuses(tmp_path: Path) -> None:
    for words, reason in [
        (("--rehearse", "--rows", "nothing"), "no row matches"),
        (("--rehearse", "--peers", "abacus"), "there is no peer abacus"),
        (("--rehearse", "--budget", "-1"), "seconds have to be positive"),
    ]:
        done = command("--out", tmp_path / "out", *words)
        assert done.returncode == 2
        assert reason in done.stderr
        assert len(done.stderr.strip().split("\n")) == 1
    assert not (tmp_path / "out").exists()


def test_command_says_that_there_is_no_gpu(tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    if cupy.is_available():
        pytest.skip("there is one")
    done = command("--out", tmp_path / "out")
    assert done.returncode == 2
    assert "device 0 cannot be used" in done.stderr
    assert len(done.stderr.strip().split("\n")) == 1


def test_rehearsal_of_two_rows(tmp_path: Path) -> None:
    """On a machine as bare as it may be: no platformdirs, nothing that prints or parses options."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    for name in ("platformdirs", "rich", "click"):
        (blocked / f"{name}.py").write_text(f"raise ImportError('{name} is not here')")
    out = tmp_path / "out"
    rows = "matmul 512,softmax 4096x1024"
    done = command(
        "--out", out, "--rehearse", "--quick", "--rows", rows, "--peers", "cupy", blocked=blocked
    )
    assert done.returncode == 0, done.stderr
    assert [p.name for p in out.iterdir()] == ["gpu.json"]
    data = json.loads((out / "gpu.json").read_text())
    assert [r["name"] for r in data["results"]] == ["softmax 4096x1024", "matmul 512"]
    for found in data["results"]:
        assert set(found["entries"]) == {DEFAULT, "CuPy"}
        for each in found["entries"].values():
            assert each["error"] == ""
            assert len(each["samples"]) >= 15
            assert each["launches"] > 1
        assert found["summary"]["ratio"] > 0
        assert found["sizes"] != named(found["name"]).values
    assert data["ceilings"]["rates"]["copy"] > 0
    assert set(data["latencies"]) == {"CuPy RawKernel", "tcl"}
    assert {"python", "tcl", "numpy"} <= set(data["versions"])
    assert "MET: launch overhead" in done.stdout
    assert f"written: {out / 'gpu.json'}" in done.stdout


def rehearse(
    rows: str, *specs: Spec, cache: Path | None = None, **settings: Any
) -> tuple[GpuReport, list[GpuReport]]:
    seen: list[GpuReport] = []
    chosen = [rehearsed(row) for row in gpu_rows(rows, False)]
    say: Callable[[str], object] = lambda text: None  # noqa: E731
    found = run(
        chosen, Settings("cpu", **settings), describe_host(), say,
        specs=specs, cache=cache, finished=seen.append,
    )  # fmt: skip
    return found, seen


FAKE = Spec("fake", "gpu_fakes")


def test_what_contenders_do_wrong_costs_them_the_row_alone() -> None:
    rows = "layernorm 4096*,softmax 4096*,matmul 512,stencil*,row sum*,column sum*"
    found, seen = rehearse(rows, *OWN, FAKE, Spec("none", "gpu_fakes_that_are_not_there"))
    entries = {r.name: r.entries.get("fake") for r in found.results}
    errors = {name: e.error for name, e in entries.items() if e is not None}
    assert "process ended" in errors["softmax 4096x1024"]
    assert "ValueError: no such thing" in errors["layernorm 4096x1024"]
    assert "output C differs" in errors["matmul 512"]
    assert "the device failed: RuntimeError: an illegal" in errors["stencil 2048x2048"]
    assert errors["row sum 4096x4096"] == ""
    right = entries["row sum 4096x4096"]
    assert right is not None and right.seconds is not None
    assert right.form == "only"  # not the faster one
    assert "output R differs" in str(right.other_forms["careless"])
    assert entries["column sum 4096x4096"] is None  # it leaves that out
    assert all(r.entries[DEFAULT].seconds for r in found.results)
    assert "none" in found.absent
    assert [len(r.results) for r in seen] == [0, 1, 2, 3, 4, 5, 6, 6]
    assert found.latencies["fake"] == [1e-6, 2e-6, 3e-6]
    assert [p.error for p in found.probes] == ["", "ValueError: no memory"]


def test_a_device_that_no_contender_can_use_costs_no_traceback() -> None:
    """Described as a GPU, which is not there."""
    cupy = pytest.importorskip("cupy")
    if cupy.is_available():
        pytest.skip("there is one")
    rows = [rehearsed(named("row sum 4096x4096"))]
    device = {**describe_host(), "bus": "0000:01:00.0"}
    found = run(rows, Settings("cuda"), device, lambda text: None, specs=(*OWN, PEERS[2]))
    assert set(found.absent) == {DEFAULT, "CuPy"}
    assert all("InsufficientDriver" in reason for reason in found.absent.values())
    assert found.results[0].entries == {}
    assert any("failed" in line or "row sum" in line for line in lines(found))


def test_what_nobody_thought_of_costs_the_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = GpuLanes.measure

    def fails(lanes: GpuLanes, where: str, *others: Any, **more: Any) -> Any:
        if where.startswith("row sum"):
            raise MemoryError("no room")
        return measure(lanes, where, *others, **more)

    monkeypatch.setattr(GpuLanes, "measure", fails)
    found, seen = rehearse("row sum*,column sum*", *OWN)
    assert found.left_out == {"row sum 4096x4096": "it cannot be measured: MemoryError: no room"}
    assert [r.name for r in found.results] == ["column sum 4096x4096"]
    assert seen[1].left_out == found.left_out


def test_what_does_not_fit_is_skipped() -> None:
    found, _ = rehearse("row sum*,column sum*", *OWN, budget=1e-3)
    assert found.results == ()
    assert set(found.left_out) == {"row sum 4096x4096", "column sum 4096x4096"}


@pytest.mark.parametrize(
    ("rows", "least"),
    [
        ("matmul 4096*,argmin*,attention*,wavenet", 5),
        pytest.param("*", 12, marks=pytest.mark.slow),
    ],
)
def test_rows_can_be_rehearsed_with_the_peers_that_need_nothing(rows: str, least: int) -> None:
    """Ours and CuPy's formulations, through NumPy, in every type."""
    pytest.importorskip("ml_dtypes")
    found, _ = rehearse(rows, *OWN, PEERS[2])
    errors = [f"{r.name}: {e.error}" for r in found.results for e in r.entries.values() if e.error]
    assert errors == []
    assert not found.left_out
    assert sum("CuPy" in r.entries for r in found.results) >= least


@pytest.mark.slow
def test_torch_can_be_rehearsed_on_every_row() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    found, _ = rehearse("*", PEERS[0])
    errors = [f"{r.name}: {e.error}" for r in found.results for e in r.entries.values() if e.error]
    # CPUs may have no instruction for products of 16-bit floats.
    assert [text for text in errors if "not tried" not in text] == []
    assert all(r.entries for r in found.results)


@pytest.mark.slow
def test_compiled_torch_can_be_rehearsed() -> None:
    pytest.importorskip("torch")
    found, _ = rehearse("bias*4096x4096,matmul 512", PEERS[1], quick=True)
    assert all(r.entries["torch.compile"].seconds for r in found.results), found


def test_tuned_options_are_measured_beside_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    searched: list[tuple[str, float, int]] = []

    def found_for(row: Row, settings: Settings, cache: Path) -> str:
        searched.append((row.name, settings.tune, settings.seed))
        return MappingOptions("naive").to_json()

    monkeypatch.setattr("benchmarks.gpu.run.options_for", found_for)
    found, _ = rehearse("row sum*", *OWN, cache=tmp_path / "c.db", tune=2.5, seed=4)
    assert searched == [("row sum 4096x4096", 2.5, 4)]
    entries = found.results[0].entries
    assert {name: e.form for name, e in entries.items()} == {DEFAULT: "default", TUNED: "tuned"}
    assert all(e.seconds for e in entries.values())
    facts = found.results[0].facts
    assert [facts[form]["kernels"] for form in ("default", "tuned")] == [[], []]
    assert MappingOptions.from_json(facts["tuned"]["options"]) == MappingOptions("naive")


@pytest.mark.usefixtures("searches_in_threads")
def test_options_come_from_a_search_and_from_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For the GPU, which here is an emulated one."""
    small = TunerConfig(generations=1, population=2, threads=1, seed=0)
    monkeypatch.setattr("tcl.bench.run.TunerConfig", lambda **settings: small)
    emulated = target("cuda-emulated", 1)
    for module in ("tcl.tuning", "tcl.bench.run"):
        monkeypatch.setattr(f"{module}.target", lambda device, threads: emulated)
    row = rehearsed(gpu_rows("row sum*", quick=True)[0])
    cache = tmp_path / "c.db"
    assert options_for(row, Settings(), cache) == ""
    found = options_for(row, Settings(tune=1.0, seed=4), cache)
    assert MappingOptions.from_json(found)
    assert options_for(row, Settings(), cache) == found


@pytest.mark.parametrize(
    "source",
    [
        ours._KERNEL,
        ours._EMPTY,
        cupy_peer._COPY % {"each": 1},
        cupy_peer._COPY % {"each": 4},
    ],
)
def test_kernels_that_show_limits_can_be_compiled(source: str) -> None:
    pytest.importorskip("cupy")
    nvrtc: Any = import_module("cupy.cuda").nvrtc
    program = nvrtc.createProgram(source, "probe.cu", (), ())
    try:
        nvrtc.compileProgram(program, ("-arch=sm_90",))
    finally:
        nvrtc.destroyProgram(program)


def test_hardware_counters_beside_the_counts(tmp_path: Path) -> None:
    """Of a device that does exactly what is counted, but twice as many instructions."""
    row = named("matmul 512")
    counts = counts_of(row, H200)
    metrics: dict[str, list[Any]] = {
        "gpu__time_duration.sum": [2e9 * predict(c).seconds for c in counts],
        "smsp__issue_active.avg.pct_of_peak_sustained_active": [50.0] * len(counts),
        "sm__warps_active.avg.per_cycle_active": [8.0] * len(counts),
        "launch__registers_per_thread": [c.registers for c in counts],
        "smsp__inst_executed.sum": [2 * sum(c.instructions.values()) for c in counts],
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": [c.shared_wavefronts for c in counts],
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": [c.sectors for c in counts],
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": [0] * len(counts),
        "dram__bytes_read.sum": [c.dram_read for c in counts],
        "dram__bytes_write.sum": [c.dram_written for c in counts],
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": [0.5] * len(counts),
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": [0.7] * len(counts),
        "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": [1.0] * len(counts),
        **{f"other {k}": ["n/a"] * len(counts) for k in range(20)},
    }
    names = [f"matmul_{k}" for k in range(len(counts))]
    text = "==PROF== Connected to process 1, which has, so many, commas\n"
    text += ",".join(f'"{x}"' for x in ("ID", "Kernel Name", *metrics)) + "\n"
    text += ",".join(['""'] * (2 + len(metrics))) + "\n"
    for k, name in enumerate(names):
        cells = [k, name, *(values[k] for values in metrics.values())]
        text += ",".join(f'"{x:,}"' if isinstance(x, int) else f'"{x}"' for x in cells) + "\n"
    (tmp_path / "ncu.csv").write_text(text)
    order: dict[str, Any] = {
        "device": describe_host(),
        "rows": [{"row": row.name, "launches": names}],
    }
    (tmp_path / "order.json").write_text(json.dumps(order))
    lines_ = list(table(tmp_path, H200, [row]))
    assert [line["row"] for line in lines_] == [row.name] * len(counts)
    for line, own in zip(lines_, counts, strict=True):
        assert line["time"] == pytest.approx(2 * line["predicted"], rel=1e-3)
        assert line["instructions"] == 2 and line["registers"] == line["about"]
        assert {line["wavefronts"], line["sectors"], line["read"], line["written"]} <= {0.0, 1.0}
        assert line["wavefronts"] == (1.0 if own.shared_wavefronts else 0.0)
        assert list(line["waits"].items()) == [("barrier", 0.7), ("wait", 0.5)]
    order["rows"][0]["launches"] = ["another"]
    (tmp_path / "order.json").write_text(json.dumps(order))
    with pytest.raises(ValueError, match="has matmul_0 where order"):
        list(table(tmp_path, H200, [row]))
