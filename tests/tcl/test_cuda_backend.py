"""CUDA as the tuner sees it: on an emulated GPU as a whole, and in parts on one that is made up."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import here, tcl
from cuda_modules import GATHERING, needs_nvrtc
from fake_cuda import FakeDriver
from places import EXAMPLES

from tcl.arrays.arguments import Array
from tcl.backends.cuda_backend import (
    SPILLS,
    CudaBackend,
    EmulatedBackend,
    Loadable,
    check_resources,
)
from tcl.backends.cuda_harness import Bound, CudaBench, Device, DeviceArray, DeviceGuarded
from tcl.backends.targets import CpuTarget, check_emulated, target
from tcl.cli.grid import tune_grid
from tcl.cli.grid_file import read_grid
from tcl.cli.grid_plan import make_plan
from tcl.cli.kernels import Work
from tcl.cli.tuned import TuneSession, Wishes
from tcl.codegen.common.envelope import seal, unseal
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.cuda.run.compile import Cubin, Resources
from tcl.codegen.devices.gpu import A100, H100, T4, GpuProfile
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, CompileError, OptionsError
from tcl.selection.best_options import known_options
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.correctness import Expected
from tcl.tuner.measure.evaluate import Evaluator
from tcl.tuner.measure.harness import Run
from tcl.tuner.measure.timing import MeasureSettings
from tcl.tuner.measure.verdict import Verdict
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.gpu.mapping import GpuMappingSpace

MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
GATHER = "def f(float(R) T, int32(N) I) -> (O) { O(n) = T(I(n)) + 1 }"
SHARED = MappingOptions("naive").with_nest(
    0, NestOptions(chunk=(16, 16), threads=(16, 16), tile=(0, 0, 8), stage=(2, 2))
)
needs_emulator = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def inputs() -> list[Array]:
    rng = np.random.default_rng(0)
    shapes = ((40, 24), (24, 36))
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


@pytest.fixture
def emulated(tmp_path: Path) -> EmulatedBackend:
    arrays = inputs()
    return EmulatedBackend.described(MATMUL, "f", arrays, A100).holding(arrays, str(tmp_path))


@dataclass(frozen=True, slots=True)
class WithoutBarriers(EmulatedBackend):
    """Makes kernels whose threads do not wait for each other."""

    def module(self, options: MappingOptions) -> CudaModule:
        made = EmulatedBackend.module(self, options)
        return replace(made, source=made.source.replace("__syncthreads();", ";"))


@needs_emulator
def test_a_whole_search(emulated: EmulatedBackend) -> None:
    space = GpuMappingSpace(emulated.program(), emulated.profile)
    config = TunerConfig().generations(2).population(3).threads(1).seed(1)
    timing = MeasureSettings(budget=0.01)
    result = Tuner(emulated, space, config=config, timing=timing).tune([MappingOptions("mlp")])
    assert result.best is not None
    verdicts = [c.outcome.verdict for c in result.history]
    assert len(verdicts) >= 5
    assert set(verdicts) == {Verdict.CORRECT}, [c.outcome.message for c in result.history]


@needs_emulator
@pytest.mark.usefixtures("searches_in_threads")
def test_what_races_is_no_candidate(emulated: EmulatedBackend) -> None:
    broken = WithoutBarriers(
        emulated.source, emulated.entry, emulated.inputs, emulated.folder, emulated.profile
    )
    space = GpuMappingSpace(broken.program(), broken.profile)
    config = TunerConfig().generations(1).population(2).threads(1).seed(1)
    result = Tuner(broken, space, config=config).tune([SHARED])
    assert result.history[0].outcome.verdict is Verdict.RUNTIME
    assert "EmulationError" in result.history[0].outcome.message


@needs_emulator
@pytest.mark.usefixtures("searches_in_threads")
def test_a_search_of_the_command_line(tmp_path: Path) -> None:
    """As ``tcl tune`` does it on a GPU: with a cache, from which the best is taken, and a page."""
    file = tmp_path / "mm.tc"
    file.write_text(MATMUL)
    cache, page = tmp_path / "tuning.sqlite", tmp_path / "page.html"
    work = Work.load(file, "f", "M=20,K=30,N=40", 0)
    where = target("cuda-emulated", 1)
    config = TunerConfig().generations(1).population(3).threads(1).seed(1)
    session = TuneSession(
        *(work, where, config, cache, page), threads=1, fixed={}, resume=False, as_json=False
    )
    ended = session.run(None, default=False)
    assert ended.exit_code == 0 and not ended.problems
    assert "CUDA C++" in page.read_text()
    query = where.query(work.sized, work.inputs)
    assert query.key.backend == "cuda-emulated" and "A100" in query.key.device
    found = known_options(TuningCache(cache), query)
    assert found is not None and found.preferred == ended.result.options
    others = CpuTarget(1).query(work.sized, work.inputs)
    assert known_options(TuningCache(cache), others) is None


@pytest.mark.usefixtures("searches_in_threads")
def test_a_grid_for_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its searches go to the GPU's part of the cache, where the next plan finds them."""
    monkeypatch.setattr(
        "tcl.cli.grid_plan.timed_target", lambda device, threads, here: target(device, threads)
    )
    (tmp_path / "mm.tc").write_text(MATMUL)
    grid, cache = tmp_path / "grid.toml", tmp_path / "tuning.sqlite"
    table = '[[tune]]\nfile = "mm.tc"\nsizes = { M = 4, K = 3, N = 40 }\n'
    grid.write_text(f'device = "cuda-emulated"\ngenerations = 1\npopulation = 3\njobs = 1\n{table}')
    wishes = Wishes(grid, {}, cache, None, "local", resume=True, as_json=False)
    assert tune_grid(read_grid(grid), wishes, dry_run=False) == 0
    assert "f M=4 K=3 N=40 (cuda-emulated)" in capsys.readouterr().out
    assert {s.key.backend for s in TuningCache(cache).list()} == {"cuda-emulated"}
    points, _ = make_plan(read_grid(grid), {}, str(tmp_path), TuningCache(cache))
    assert [p.done for p in points] == [True]


def test_options_that_do_not_fit_are_refused(emulated: EmulatedBackend) -> None:
    with pytest.raises(OptionsError, match="more than the 1024 that a block"):
        emulated.compile(MappingOptions("mlp").threads(64, 64))


def test_what_travels_comes_back(emulated: EmulatedBackend) -> None:
    arrays = [np.ones(9, np.float32), np.zeros(5, np.int32)]
    for backend in (emulated, EmulatedBackend.described(GATHER, "f", arrays, H100)):
        module = backend.module(MappingOptions("mlp"))
        sent = Loadable(module, b"code")
        assert unseal(Loadable, seal(sent)) == sent
        assert unseal(CudaModule, seal(module)) == module
    with pytest.raises(CompileError, match="the kernel arrived damaged"):
        emulated.load(seal(module)[:-1])


def test_where_tensors_begin() -> None:
    backwards = np.zeros((8, 6), np.float32)[:, ::-1]
    backend = EmulatedBackend.described(MATMUL, "f", [backwards, np.zeros((6, 4), np.float32)], T4)
    bases = {n.name: n.layout.base for n in backend.program().tensors}
    assert bases == {"A": 4, "B": 16, "C": 16}


@needs_nvrtc
def test_machine_code_needs_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    backend = CudaBackend.described(MATMUL, "f", inputs(), A100)
    found = unseal(Loadable, backend.compile(MappingOptions("mlp")))
    assert found is not None
    assert found.code.startswith(b"\x7fELF") and found.module.launches
    assert [t.name for t in found.module.tensors][:3] == ["A", "B", "C"]


def resources(**changes: int) -> Resources:
    given = {"registers": 32, "shared": 0, "spill_stores": 0, "spill_loads": 0, "stack": 0}
    return Resources("f_0", **{**given, **changes})


@pytest.mark.parametrize(
    ("taken", "shared", "reason"),
    [
        (resources(), 0, None),
        (resources(spill_stores=SPILLS // 2, spill_loads=SPILLS // 2), 0, None),
        (resources(spill_stores=SPILLS, spill_loads=4), 0, "too few registers"),
        (resources(registers=255), 0, "more than a multiprocessor has"),
        (resources(), 1 << 20, "more than a multiprocessor has"),
    ],
)
def test_kernels_that_cannot_run_well_are_refused(
    taken: Resources, shared: int, reason: str | None
) -> None:
    module = CudaModule("", (Launch("f_0", 4, 512, shared, ()),), ())
    if reason is None:
        check_resources(module, Cubin(b"", (taken,)), A100)
    else:
        with pytest.raises(OptionsError, match=reason):
            check_resources(module, Cubin(b"", (taken,)), A100)


@needs_emulator
@pytest.mark.parametrize("profile", [A100, T4], ids=lambda p: p.name)
@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_what_is_copied_ahead_waits_for_who_made_it(profile: GpuProfile, buffers: int) -> None:
    """Of nests that share a kernel, one copies ahead of its loop what the one before has made."""
    text = """
    def f(float(N, D) I) -> (M, O) {
        M(n) max=! I(n, d)
        O(n, d) = I(n, d) - M(n)
    }
    """
    values = np.random.default_rng(0).standard_normal((7, 40)).astype(np.float32)
    row = NestOptions(chunk=(8,), threads=(8, 4))
    joined = NestOptions(fuse=True, chunk=(8, 0), threads=(2, 16), stage=(-1, 2), buffers=buffers)
    options = MappingOptions("naive", nests=(row, joined))
    backend = EmulatedBackend.described(text, "f", [values], profile)
    outputs = [np.zeros(7, np.float32), np.zeros((7, 40), np.float32)]
    backend.load(backend.compile(options))([values], outputs)
    assert np.array_equal(outputs[1], values - values.max(1, keepdims=True))


# A device that is made up: its memory is the host's.


class Block:
    """Memory."""

    def __init__(self, size: int) -> None:
        self.bytes = np.full(size, 0x55, np.uint8)
        self.ptr = int(self.bytes.ctypes.data)


@dataclass
class FakeDevice(Device):
    """Notes what is done; every launch takes ``each`` seconds."""

    each: float = 1e-3
    lost: bool = False
    captures: bool = True
    done: list[str] = field(default_factory=list)
    launched: int = 0
    stream: int = 0

    def allocate(self, size: int) -> Block:
        return Block(size)

    def upload(self, address: int, values: Array) -> None:
        ctypes.memmove(address, values.ctypes.data, values.nbytes)

    def download(self, address: int, values: Array) -> None:
        ctypes.memmove(values.ctypes.data, address, values.nbytes)

    def duplicate(self, to: int, of: int, size: int) -> None:
        ctypes.memmove(to, of, size)

    def flush(self) -> None:
        self.done.append("flush")

    def timed(self, launch: Run) -> float:
        self.done.append("timed")
        before = self.launched
        launch()
        return self.each * (self.launched - before)

    def graph(self, launches: Sequence[Run]) -> Run | None:
        self.done.append(f"graph of {len(launches)}")
        if not self.captures:
            return None

        def launch() -> None:
            for each in launches:
                each()

        return launch

    def check(self) -> None:
        if self.lost:
            raise RuntimeError("an illegal memory access was encountered")


def bench_of(device: FakeDevice, profile: GpuProfile = A100) -> CudaBench:
    return CudaBench(0, profile, lambda number, profile: device)


def floats(array: DeviceArray, count: int) -> Array:
    """The device's memory as the kernels of the fake see it."""
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(array.address))


def test_arrays_on_a_device() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::-1]
    held = bench_of(FakeDevice()).guarded(values, CudaBench.placements[0])
    held.hold(values)
    assert np.array_equal(held.values(), values) and held.values().strides == values.strides
    before = held.checksum()
    assert held.array.address % 256 == 20  # of the last in the first row, which lies behind five
    ctypes.c_float.from_address(held.array.address).value = 99.0
    assert held.values()[0, 0] == 99.0 and held.intact()
    assert held.checksum() != before
    ctypes.c_float.from_address(held.array.address + 3 * 24 + 4).value = 1.0
    held.values()
    assert not held.intact()
    held.poison()
    assert np.isnan(held.values()).all() and held.intact()


@pytest.mark.parametrize("offset", [0, 4, 16, 40])
def test_arrays_begin_where_they_do_in_cudas_memory(offset: int) -> None:
    """Wherever they lie in the host's: kernels are not to be timed on vectors that straddle."""
    raw = np.zeros(256 + 64 + 96, np.uint8)
    start = -raw.ctypes.data % 256 + offset
    values = raw[start : start + 96].view(np.float32)
    bench = bench_of(FakeDevice())
    held = bench.guarded(values, CudaBench.placements[0])
    assert held.array.address % 256 == 0
    assert held.another().array.address % 256 == 0
    backwards = bench.guarded(values[::-1], CudaBench.placements[0]).array.address
    assert (backwards - values.nbytes + 4) % 256 == 0


@dataclass
class CupyStream:
    """A stream that notes what is done on it."""

    said: list[tuple[object, ...]]
    ptr: int = 7

    def __enter__(self) -> None:
        self.said.append(("on",))

    def __exit__(self, *_: object) -> None:
        self.said.append(("off",))

    def synchronize(self) -> None:
        self.said.append(("wait",))

    def begin_capture(self) -> None:
        self.said.append(("capture",))

    def end_capture(self) -> object:
        self.said.append(("captured",))
        return SimpleNamespace(launch=lambda stream: self.said.append(("replay", stream.ptr)))


class Bindings:
    """CuPy, as far as a device uses it: notes calls in their order."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []
        stream = CupyStream(self.said)
        self.cuda = SimpleNamespace(
            Stream=lambda non_blocking: stream,
            Event=lambda: None,
            runtime=SimpleNamespace(
                setDevice=lambda number: None,
                memcpyHostToDevice=1,
                memcpyDeviceToHost=2,
                memcpyDeviceToDevice=3,
                memcpyAsync=lambda *a: self.said.append(("copy", *a)),
            ),
            MemoryPool=lambda: SimpleNamespace(malloc="a pool"),
            using_allocator=self.allocator,
        )

    def zeros(self, count: int, kind: str) -> object:
        return SimpleNamespace(sum=lambda out: self.said.append(("read", count, kind)))

    def empty(self, shape: tuple[int, ...], kind: str) -> object:
        return "total"

    @contextmanager
    def allocator(self, malloc: str) -> Iterator[None]:
        self.said.append(("memory of", malloc))
        yield
        self.said.append(("memory of", "all"))


def test_copies_take_their_turn_on_the_stream_of_the_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is on its way to the device when ``memcpy`` returns would come after the kernel, on a
    stream that does not wait for it."""
    bindings = Bindings()
    monkeypatch.setitem(sys.modules, "cupy", bindings)
    device = Device(0, replace(A100, l2_bytes=50_000, memory_bytes_per_second=1e9))
    values = np.zeros(5, np.uint8)
    place = values.ctypes.data
    device.upload(0x2000, values)
    device.download(0x2000, values)
    device.duplicate(0x3000, 0x2000, 5)
    assert bindings.said == [
        *(("copy", 0x2000, place, 5, 1, 7), ("wait",)),
        *(("copy", place, 0x2000, 5, 2, 7), ("wait",), ("copy", 0x3000, 0x2000, 5, 3, 7)),
    ]
    del bindings.said[:]
    device.flush()
    # 200 µs of a memory of 1 GB/s, by reads of twice the cache
    assert bindings.said == [("on",), *[("read", 25_000, "float32")] * 2, ("off",)]


def test_launches_of_a_graph_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As calls one after the other do; kernels are loaded, and that is allocated, before."""
    bindings = Bindings()
    monkeypatch.setitem(sys.modules, "cupy", bindings)
    device = Device(0, replace(A100, l2_bytes=100, memory_bytes_per_second=1e9))
    graph = device.graph([partial(bindings.said.append, (name,)) for name in "ab"])
    assert graph is not None
    graph()
    assert bindings.said == [
        *(("memory of", "a pool"), ("a",), ("capture",), ("a",), ("b",), ("captured",)),
        *(("memory of", "all"), ("replay", 7)),
    ]


def test_checks_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed, or captured, are the kernels."""
    driver = FakeDriver({"gather": 4})
    machine = SimpleNamespace(driver=driver)
    monkeypatch.setattr("tcl.executors.machine.this_machine", lambda: machine)
    backend = CudaBackend.described(GATHER, "f", [np.ones(10), np.zeros(256)], A100)
    kernel = backend.load(seal(Loadable(GATHERING, b"code")))
    arrays = [DeviceArray(FakeDevice(), address) for address in (16, 32, 48)]
    kernel(arrays[:2], arrays[2:])
    assert driver.launched[0].arguments[:3] == (16, 32, 48) and not driver.waits


def timing(each: float, *, captures: bool = True) -> tuple[CudaBench, FakeDevice, Run, list[int]]:
    device = FakeDevice(each, captures=captures)
    bench = bench_of(device, replace(A100, l2_bytes=4000))
    seen: list[int] = []

    def kernel(inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray]) -> None:
        device.launched += 1
        seen.append(inputs[0].address)

    arrays = [bench.guarded(np.zeros(100, np.float32), CudaBench.placements[0]) for _ in range(2)]
    return bench, device, bench.bound(kernel, arrays[:1], arrays[1:]), seen


def test_a_cold_call_is_timed_by_events() -> None:
    bench, device, run, _ = timing(1e-3)
    assert bench.seconds(run, 1) == pytest.approx(1e-3)
    assert device.done == ["flush", "timed"]


def test_short_kernels_are_timed_in_graphs_over_several_sets_of_arrays() -> None:
    bench, device, run, seen = timing(1e-6)
    assert bench.seconds(run, 4) == pytest.approx(1e-6)
    assert device.done == ["graph of 4", "flush", "timed"]
    assert len(set(seen)) >= 4  # of about 2 KiB each, twice the cache's 4000 bytes
    bench.seconds(run, 4)
    assert device.done.count("graph of 4") == 1  # made once


def test_what_cannot_be_captured_is_timed_call_by_call() -> None:
    bench, device, run, _ = timing(1e-6, captures=False)
    assert bench.seconds(run, 3) == pytest.approx(1e-6)
    assert device.done == ["graph of 4"] + ["flush", "timed"] * 3


def test_a_lost_device_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    bench_of(FakeDevice()).failed(ValueError("no"))  # fails at the first use of nothing: not lost
    assert not ended
    bench_of(FakeDevice(lost=True)).failed(ValueError("an illegal\nmemory access"))
    assert ended == [70]
    assert capsys.readouterr().err == "an illegal memory access\n"


@dataclass(frozen=True, slots=True)
class OnFake(EmulatedBackend):
    """Kernels are names of functions on the fake's memory."""

    device_: FakeDevice = field(default_factory=FakeDevice)

    def load(self, code: bytes) -> Callable[..., object]:
        def kernel(given: Sequence[DeviceArray], made: Sequence[DeviceArray]) -> None:
            self.device_.launched += 1
            a, b = floats(given[0], 40 * 24), floats(given[1], 24 * 36)
            c = a.reshape(40, 24) @ b.reshape(24, 36)
            if code == b"wrong":
                c[3, 4] += 1
            if code == b"raises":
                raise RuntimeError("launch failed")
            out = floats(made[0], 40 * 36 + (code == b"stray"))
            out[: 40 * 36] = c.ravel()
            if code == b"stray":
                out[-1] = 5

        return kernel

    def bench(self):  # type: ignore[no-untyped-def]
        return bench_of(self.device_)


@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [
        (b"right", Verdict.CORRECT, ""),
        (b"wrong", Verdict.CORRECTNESS, "output C differs"),
        (b"stray", Verdict.CORRECTNESS, "wrote outside output C"),
        (b"raises", Verdict.RUNTIME, "launch failed"),
    ],
)
def test_verdicts_on_a_device(tmp_path: Path, code: bytes, verdict: Verdict, said: str) -> None:
    arrays = inputs()
    backend = OnFake.described(MATMUL, "f", arrays, A100).holding(arrays, str(tmp_path))
    expected = Expected.from_array("C", arrays[0] @ arrays[1], 8)
    evaluator = Evaluator(backend, [expected], MeasureSettings(budget=0.05))
    outcome = evaluator.evaluate(code, None)
    assert outcome.verdict is verdict and said in outcome.message
    if verdict is Verdict.CORRECT:
        assert outcome.time == pytest.approx(1e-3)
        times = evaluator.race([code, code])
        for ((name, each),) in times:
            assert name == "at_256_bytes"
            assert each == pytest.approx([1e-3] * len(each))


# Devices by name.


def test_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert target("cpu", 2).cores == 2
    with pytest.raises(ArgumentError, match="there is no device cuda:99 here"):
        target("cuda:99", 1)
    with pytest.raises(ArgumentError, match="there is no device 'cuda:\u0660' here"):
        target("cuda:\u0660", 1)
    with pytest.raises(ArgumentError, match="there is no device gpu here"):
        target("gpu", 1)
    with pytest.raises(ArgumentError, match="there is no device '' here"):
        target("", 1)
    with pytest.raises(ArgumentError, match=r"device h200 here; .* tcl show --device h200 shows"):
        target("h200", 1)
    monkeypatch.setattr("tcl.codegen.cuda.emulator.why_not", lambda: "a compiler is missing")
    with pytest.raises(ArgumentError, match="a compiler is missing"):
        target("cuda-emulated", 1)


def test_too_large_to_be_emulated() -> None:
    large = np.zeros((512, 512), np.float32)
    with pytest.raises(ArgumentError, match=r"has 134,217,728 points .* at most 20,000,000"):
        check_emulated(EmulatedBackend.described(MATMUL, "f", [large, large], A100).sized)


@pytest.mark.parametrize("step", [1, -1, 2])
def test_other_arrays_have_the_same_contents(step: int) -> None:
    values = np.arange(60, dtype=np.float32)[::step]
    held = bench_of(FakeDevice()).guarded(values, CudaBench.placements[0])
    assert isinstance(held, DeviceGuarded)
    held.hold(values)
    other = held.another()
    assert other.array.address != held.array.address
    assert np.array_equal(other.values(), values)


def test_a_call_on_other_arrays_is_the_same_call() -> None:
    bench, _, run, seen = timing(1e-6)
    assert isinstance(run, Bound)
    for each in run.sets():
        each()
    assert len(set(seen)) == len(seen)
    assert isinstance(bench.guarded(np.zeros(3), CudaBench.placements[0]), DeviceGuarded)


@needs_emulator
@pytest.mark.parametrize(("file", "entry"), [("matmul", "matmul"), ("layers", "copy")])
def test_run_on_an_emulated_gpu(file: str, entry: str, tmp_path: Path) -> None:
    path = EXAMPLES / f"{file}.tc"
    done = here("run", path, "-e", entry, "-s", "test", "--device", "cuda-emulated", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "agrees with the reference" in done.stdout
    assert "every access was checked on an emulated A100" in done.stdout


@needs_emulator
@pytest.mark.parametrize("sizes", ["M=0,K=3,N=4", "M=5,K=0,N=4", "M=0,K=0,N=0"])
def test_run_on_tensors_without_elements(sizes: str, tmp_path: Path) -> None:
    """Nothing at all is launched if there are no results."""
    given = ("-e", "matmul", "-s", sizes, "--device", "cuda-emulated")
    done = here("run", EXAMPLES / "matmul.tc", *given, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "agrees with the reference" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        (("run", "-s", "M=9999,K=99,N=999"), {}, "at most 20,000,000 are emulated"),
        (("run", "-s", "test"), {"CXX": "", "PATH": ""}, "needs a C++ compiler"),
        (("tune", "-s", "test"), {}, "times of emulated kernels have no"),
    ],
)
def test_what_is_not_done_on_an_emulated_gpu(
    arguments: tuple[str, ...],
    variables: dict[str, str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    command, *others = arguments
    path = EXAMPLES / "matmul.tc"
    given = ["-e", "matmul", *others, "--device", "cuda-emulated"]
    run = tcl if variables else here  # this process knows its compiler
    done = run(command, path, *given, cache=tmp_path)
    assert done.returncode == 1 and sentence in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout
