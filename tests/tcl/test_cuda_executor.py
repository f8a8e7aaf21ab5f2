"""Calls with arrays on a CUDA device, up to the launch: the driver is a stand-in.

The arrays are real ones of CuPy and torch on the host's memory (see ``cuda_arrays``), so what is
shown is what is read from them and what is asked of the driver, not what a GPU makes of it.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cpu_kernels import sized_of
from cuda_arrays import (
    STREAM,
    HostCupy,
    HostTorch,
    adding,
    cupy_array,
    on_host,
    torch_tensor,
)
from cuda_modules import ADDING, GATHERING
from fake_cuda import FakeDriver

import tcl
from tcl.arrays import cupy_arrays, foreign, torch_tensors
from tcl.arrays.libraries import shadow
from tcl.arrays.likeness import cupy_alike
from tcl.arrays.torch_tensors import TorchTensors
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.run import ready
from tcl.codegen.cuda.run.compile import Cubin
from tcl.codegen.cuda.run.ready import Machine
from tcl.codegen.devices.gpu import H200, GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError
from tcl.executors import machine as executing
from tcl.executors.cuda_executor import CudaExecutor
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import SCALAR_TYPES

pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")

ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"
GATHER = "def gather(float(R) A, int32(N) I) -> (C) { C(i) = A(I(i)) }"
GROW = "def add(float(N) A, float(N) B) -> (C) { C(i) += A(i) + B(i) }"
SCALE = "def scale(float(N) A, float s) -> (C) { C(i) = A(i) * s }"
SUMS = "def sums(float(M, N) A, float(M, N) B) -> (C, D) { C(i) +=! A(i, j)  D(j) +=! B(i, j) }"


@dataclass
class Rig:
    """A machine with a stand-in for its driver, and what was compiled for it."""

    driver: FakeDriver = field(
        default_factory=lambda: FakeDriver({"add": 3, "gather": 4, "free": 3, "two": 4})
    )
    emitted: list[tuple[GpuProfile, dict[str, ir.Layout], bool]] = field(default_factory=list)

    def emit(
        self,
        sized: SizedDef,
        options: MappingOptions,
        profile: GpuProfile,
        layouts: Mapping[str, ir.Layout],
        unchecked: bool,
    ) -> CudaModule:
        self.emitted.append((profile, dict(layouts), unchecked))
        name = sized.checked.name
        if name == "gather" and not unchecked:
            return GATHERING
        launch = replace(
            ADDING.launches[0], name={"gather": "free", "sums": "two"}.get(name, "add")
        )
        tensors = tuple(ir.Tensor(t, ir.Role.INPUT, layout) for t, layout in layouts.items())
        launch = replace(launch, tensors=tuple(layouts))
        return replace(ADDING, launches=(launch,), tensors=tensors)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig()
    adding(made.driver)
    machine = Machine(made.driver, lambda n: replace(H200, name=f"cuda:{n}"), made.emit)
    monkeypatch.setattr(executing, "this_machine", lambda: machine)
    host = HostCupy()
    monkeypatch.setattr(cupy_arrays, "cupy_arrays", lambda: host)
    if sys.modules.get("torch"):
        tensors = HostTorch()
        monkeypatch.setattr(torch_tensors, "torch_tensors", lambda: tensors)
    monkeypatch.setattr(ready, "cubin", lambda module, profile: Cubin(b"", ()))
    return made


KINDS = {"cupy": cupy_array, "torch": torch_tensor}
Make = Callable[..., Any]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Make:
    pytest.importorskip(request.param)
    return KINDS[request.param]


@pytest.fixture
def machine(make: Make, rig: Rig) -> Rig:
    """After torch is imported, if it is asked for."""
    return rig


def pair(make: Make, n: int = 1000, device: int = 0) -> tuple[Any, Any]:
    a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    return make(a, device), make(b, device)


EXPECTED = np.arange(1000, dtype=np.float32) + 0.5


def no_slow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.executors.calls.given_outputs", None)


def test_a_call(make: Make, machine: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    T = tcl.define(ADD)
    a, b = pair(make)
    c = T.add(a, b)
    assert type(c) is type(a) and c.shape == (1000,)
    np.testing.assert_array_equal(on_host(c), EXPECTED)
    launched = machine.driver.launched[0]
    assert launched.stream == (STREAM if make is cupy_array else 2 * STREAM)
    assert not machine.driver.waits
    no_slow_path(monkeypatch)
    other, _ = pair(make)
    again = T.add(other, b)
    assert again is not c
    np.testing.assert_array_equal(on_host(again), EXPECTED)
    assert len(machine.emitted) == 1


def test_outputs(make: Make, machine: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    T = tcl.define(ADD)
    a, b = pair(make)
    c = make(np.zeros(1000, np.float32))
    assert T.add(a, b, outputs=c) is c
    no_slow_path(monkeypatch)
    for outputs in ((c,), [c]):
        on_host(c)[...] = 0
        assert T.add(a, b, outputs=outputs) is c
        np.testing.assert_array_equal(on_host(c), EXPECTED)


@pytest.mark.parametrize("native", [True, False])
def test_which_calls_are_like_an_earlier_one(
    native: bool, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether compiled code reads CuPy's objects or Python does."""
    import cupy

    if not native:
        monkeypatch.setattr(cupy_arrays.CupyArrays, "reader", lambda self: None)
    (a, b), c = pair(cupy_array), cupy_array(np.zeros(1000, np.float32))
    executor = tcl.compile(ADD, "add", None, a, b)
    executor(a, b, outputs=(c,))
    repeat = executor.latest
    assert repeat is not None and (cupy_alike() is not None)
    values = np.zeros(1000, np.float32)
    others = [
        *(cupy_array(values.astype(kind)) for kind in (np.int32, np.float64, np.float16)),
        *(cupy_array(np.zeros(n, np.float32)) for n in (999, 1001, 0, 2000)),
        *(cupy_array(values.reshape(shape)) for shape in ((1000, 1), (1, 1000), (25, 40))),
        cupy_array(np.zeros((), np.float32)),
        cupy_array(values, strides=(8,)),
        cupy_array(values, device=1),
        cupy_array(values, offset=4),
        cupy_array(values).view(type("Own", (cupy.ndarray,), {})),
        *(values, None, 1.0),
    ]
    for place in range(3):
        for other in others:
            arrays = [a, b, c]
            arrays[place] = other
            assert repeat((*arrays[:2],), (arrays[2],)) is None
    for inputs, outputs in (((a,), (c,)), ((a, b, b), (c,)), ((a, b), (c, c)), ((), ())):
        assert repeat(inputs, outputs) is None
    whole = cupy_array(np.zeros(1064, np.float32))
    first, second = (cupy.ndarray((1000,), "f", whole.data + at) for at in (0, 256))
    for inputs, output in (((first, b), second), ((a, second), first), ((a, b), a), ((a, b), b)):
        assert repeat(inputs, (output,)) is None
    assert len(rig.driver.launched) == 1
    assert repeat((first, second), (c,)) is c
    places = (first.data.ptr, second.data.ptr, c.data.ptr)
    assert rig.driver.launched[1].arguments[:3] == places


def test_several_devices(make: Make, machine: Rig) -> None:
    """Each has its kernels, and the current device is left as it was."""
    T = tcl.define(ADD)
    for device in (1, 0, 1, 2):
        for _ in range(2):
            np.testing.assert_array_equal(on_host(T.add(*pair(make, device=device))), EXPECTED)
    driver = machine.driver
    assert [each.device for each in driver.launched] == [1, 1, 0, 0, 1, 1, 2, 2]
    assert all((each.stream - each.device) % STREAM == 0 for each in driver.launched)
    assert [profile.name for profile, _, _ in machine.emitted] == ["cuda:1", "cuda:0", "cuda:2"]
    assert driver.here == 0


def test_compile(make: Make, machine: Rig) -> None:
    a, b = pair(make)
    executor = tcl.compile(ADD, "add", None, a, b)
    assert isinstance(executor, CudaExecutor) and executor.device == 0
    assert len(machine.emitted) == 1 and not machine.driver.launched
    np.testing.assert_array_equal(on_host(executor(a, b)), EXPECTED)
    assert len(machine.emitted) == 1
    with pytest.raises(ArgumentError, match=r"runs on cuda:0, but the inputs are on cuda:1"):
        executor(*pair(make, device=1))
    with pytest.raises(ArgumentError, match=r"has shape \(1000,\) in this executor, but .* \(7,\)"):
        executor(*pair(make, 7))
    with pytest.raises(ArgumentError, match="but the inputs are in the host's memory"):
        executor(np.zeros(1000, np.float32), np.zeros(1000, np.float32))


def test_strides_and_alignment_are_compiled_in(rig: Rig) -> None:
    T = tcl.define(ADD)
    values = np.ones(1000, np.float32)
    plain, b = pair(cupy_array)
    T.add(plain, b)
    T.add(cupy_array(values, strides=(8,)), b)
    T.add(cupy_array(values, offset=4), b)
    T.add(cupy_array(values, offset=8), b)  # as the last one
    T.add(cupy_array(values, offset=32), b)  # as the first one
    found = [layouts["A"] for _, layouts, _ in rig.emitted]
    assert [(f.strides, f.base) for f in found] == [((4,), 16), ((8,), 16), ((4,), 4)]
    assert all(layouts["C"].base == 16 for _, layouts, _ in rig.emitted)


def test_transposed_and_reversed(make: Make, machine: Rig) -> None:
    if make is cupy_array:
        a = cupy_array(np.ones((6, 4), np.float32), strides=(4, 24))
    else:
        a = torch_tensor(np.ones((4, 6), np.float32)).T
    b = make(np.ones((6, 4), np.float32))
    tcl.define(SUMS).sums(a, b)
    assert machine.emitted[0][1]["A"].strides == (4, 24)
    assert [len(each.arguments) for each in machine.driver.launched] == [4]


def test_outputs_that_nobody_wants(
    make: Make, machine: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their memory comes from the library, for each call: streams may run several at a time."""
    a, b = make(np.ones((6, 4), np.float32)), make(np.ones((6, 4), np.float32))
    T: Any = tcl.define(SUMS)
    every = T.sums(a, b)
    assert every._fields == ("C", "D")
    assert T.sums(a, b, wanted="D").shape == (4,)
    no_slow_path(monkeypatch)
    assert T.sums(a, b, wanted="D").shape == (4,)
    assert [len(each.arguments) for each in machine.driver.launched] == [4, 4, 4]
    first = machine.driver.launched[-1].arguments
    assert len(set(first)) == 4 and all(first)


def test_checks_of_data_dependent_subscripts(
    make: Make, machine: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctypes

    def fail(arguments: tuple[int, ...]) -> None:
        record = (ctypes.c_uint64 * 2).from_address(arguments[-1])
        record[0], record[1] = 1, 12

    T = tcl.define(GATHER)
    a, i = make(np.zeros(10, np.float32)), make(np.zeros(256, np.int32))
    T.gather(a, i)
    T.gather(a, i, unchecked=True)
    assert [unchecked for _, _, unchecked in machine.emitted] == [False, True]
    assert [each.kernel for each in machine.driver.launched] == ["gather", "free"]
    assert len(machine.driver.waits) == 1  # unchecked does not wait
    machine.driver.effects = {"gather": fail}
    no_slow_path(monkeypatch)
    message = "index 12 is out of range for dimension 0 of tensor A"
    with pytest.raises(IndexError, match=message) as found:
        T.gather(a, i)
    assert "it is this subscript of gather" in found.value.__notes__[0]
    T.gather(a, i, unchecked=True)


def test_numbers_are_moved_to_the_device(make: Make, machine: Rig) -> None:
    T = tcl.define(SCALE)
    a, _ = pair(make)
    machine.driver.effects = {}
    T.scale(a, 2.5)
    T.scale(a, np.float32(2.5))
    T.scale(a, make(np.full((), 2.5, np.float32)))
    assert len(machine.driver.launched) == 3
    with pytest.raises(ArgumentError, match="input 's' of scale is float32, which cannot hold"):
        T.scale(a, 1e300)


def wrong(make: Make) -> dict[str, tuple[tuple[Any, ...], str]]:
    a, b = pair(make)
    noun = "a CuPy array" if make is cupy_array else "a torch tensor"
    move = "cupy.asarray" if make is cupy_array else ".to('cuda:0')"
    convert = ".astype('float32')" if make is cupy_array else ".to(torch.float32)"
    wide = make(np.ones(1000))
    return {
        "count": ((a,), "add takes 2 inputs (A, B), but 1 argument was given"),
        "host": (
            (a, np.ones(1000, np.float32)),
            f"input 'B' of add is in host memory, but 'A' on cuda:0; move it with {move}",
        ),
        "list": ((a, [1.0]), f"input 'B' of add has to be {noun}, not list"),
        "number": ((a, 1.0), f"input 'B' of add has to be {noun}, not float"),
        "dtype": (
            (wide, b),
            f"input 'A' of add is float32, but {noun} of float64 was given; "
            f"convert it with {convert}",
        ),
        "rank": (
            (a, make(np.ones((10, 100), np.float32))),
            "input 'B' of add has 1 dimension (N), but an array of shape (10, 100) was given",
        ),
        "device": (
            (a, make(np.ones(1000, np.float32), 1)),
            "input 'B' of add is on cuda:1, but 'A' on cuda:0; "
            "all arrays of a call must be on one device",
        ),
        "size": ((a, make(np.ones(7, np.float32))), ""),
        "complex": ((make(np.ones(1000, np.complex64)), b), "complex64"),
    }


@pytest.mark.parametrize(
    "case",
    ["count", "host", "list", "number", "dtype", "rank", "device", "size", "complex"],
)
def test_inputs_that_do_not_fit(make: Make, machine: Rig, case: str) -> None:
    arguments, message = wrong(make)[case]
    with pytest.raises(tcl.TclError) as caught:
        tcl.define(ADD).add(*arguments)
    assert message in str(caught.value)
    assert not machine.driver.launched


@pytest.mark.parametrize("make", ["torch"], indirect=True)
def test_arrays_of_two_libraries(machine: Rig) -> None:
    a, b = cupy_array(np.ones(1000, np.float32)), torch_tensor(np.ones(1000, np.float32))
    T = tcl.define(ADD)
    for inputs, message in (
        ((a, b), "input 'B' of add is a torch tensor, but 'A' is a CuPy array"),
        ((b, a), "input 'B' of add is a CuPy array, but 'A' is a torch tensor"),
    ):
        with pytest.raises(ArgumentError, match=f"{message}; pass arrays of one library"):
            T.add(*inputs)
    with pytest.raises(ArgumentError, match=r"output .C. of add is a torch .*, but .A. is a CuPy"):
        T.add(a, a, outputs=(b,))


@pytest.mark.parametrize("warm", [False, True], ids=["first", "again"])
@pytest.mark.parametrize(
    "case", ["input", "device", "dtype", "shape", "host", "count", "kind", "part"]
)
def test_outputs_that_do_not_fit(make: Make, machine: Rig, case: str, warm: bool) -> None:
    T = tcl.define(ADD)
    a, b = pair(make)
    good = make(np.zeros(1000, np.float32))
    memory = make(np.zeros(1003, np.float32))
    outputs, message = {
        "input": (b, "output 'C' of add overlaps input 'B' in memory"),
        "part": ((memory[3:],), "output 'C' of add overlaps input 'A' in memory"),
        "device": ((make(np.zeros(1000, np.float32), 1),), "is on cuda:1, but 'A' on cuda:0"),
        "dtype": ((make(np.zeros(1000)),), "output 'C' of add is float32, but a"),
        "shape": ((make(np.zeros(999, np.float32)),), "has shape (1000,), but an array of (999,)"),
        "host": ((np.zeros(1000, np.float32),), "output 'C' of add is in host memory"),
        "count": ((good, good), "add has 1 output (C), but outputs= has 2"),
        "kind": (3, "outputs= has to be a tuple of arrays, here (C,), not int"),
    }[case]
    if case == "part":
        a = memory[:1000]
    if warm:
        T.add(a, b, outputs=(good,))
    with pytest.raises(ArgumentError) as caught:
        T.add(a, b, outputs=outputs)
    assert message in str(caught.value)
    assert len(machine.driver.launched) == warm


def test_a_def_that_adds_to_its_output_needs_it(make: Make, machine: Rig) -> None:
    with pytest.warns(tcl.TclWarning, match="but never initialised"):
        T = tcl.define(GROW)
    a, b = pair(make)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="without initialising it; pass outputs="):
            T.add(a, b)
        T.add(a, b, outputs=(make(np.zeros(1000, np.float32)),))


def test_arrays_that_are_not_aligned(rig: Rig) -> None:
    a, b = pair(cupy_array)
    with pytest.raises(ArgumentError, match="input 'A' of add is not aligned in memory; pass"):
        tcl.define(ADD).add(cupy_array(np.ones(1000, np.float32), offset=2), b)
    T = tcl.define(ADD)
    T.add(a, b)
    with pytest.raises(ArgumentError, match="not aligned"):
        T.add(cupy_array(np.ones(1000, np.float32), offset=2), b)


def test_empty_arrays(make: Make, machine: Rig) -> None:
    machine.driver.effects = {}
    T = tcl.define(ADD)
    for _ in range(2):
        assert T.add(*pair(make, 0)).shape == (0,)


def test_16_bit_floats(make: Make, machine: Rig) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    machine.driver.effects = {}
    T = tcl.define(ADD.replace("float(", "bfloat16("))
    if make is torch_tensor:
        torch = pytest.importorskip("torch")
        a = torch_tensor(np.ones(10, np.float32)).to(torch.bfloat16)
        a = a.as_subclass(type(torch_tensor(np.ones(1))))
        assert T.add(a, a).dtype == torch.bfloat16
        assert machine.emitted[0][1]["A"].type.name == "bfloat16"
    else:
        a = cupy_array(np.ones(10, bfloat16))
        assert T.add(a, a).dtype == bfloat16


@pytest.mark.parametrize("type_", ["bool", "uint16", "float16", "bfloat16", "float64"])
def test_numbers_become_tensors(type_: str) -> None:
    """Of every type; NumPy's bfloat16 is none that torch knows."""
    torch = pytest.importorskip("torch")
    library = TorchTensors()
    library._devices[0] = torch.device("cpu")
    found = library.filled(np.asarray(1.0, numpy_dtype(SCALAR_TYPES[type_])), 0)
    assert found.dtype == getattr(torch, type_) and found.shape == () and found.item() == 1


def test_tensors_that_are_negated_lazily(rig: Rig) -> None:
    torch = pytest.importorskip("torch")
    rig.driver.effects = {}
    a, b = pair(torch_tensor)
    T = tcl.define(ADD)
    both = torch.complex(a.as_subclass(torch.Tensor), b.as_subclass(torch.Tensor))
    plain, negated = (z.imag.as_subclass(type(a)) for z in (both, both.conj()))
    for _ in range(2):
        T.add(plain, b)
    assert negated.stride() == plain.stride() and negated.is_neg()
    with pytest.raises(ArgumentError, match=r"input 'A' of add is .*negated lazily"):
        T.add(negated, b)


def test_tensors_that_torch_would_follow(rig: Rig) -> None:
    torch = pytest.importorskip("torch")
    a, b = pair(torch_tensor)
    T = tcl.define(ADD)
    T.add(a, b)
    wanted = a.detach().clone().as_subclass(type(a)).requires_grad_()
    with pytest.raises(ArgumentError, match=r"input 'A' of add requires grad.*\.detach\(\)"):
        T.add(wanted, b)
    with torch.no_grad():
        T.add(wanted, b)
    with pytest.raises(ArgumentError, match="requires grad"):
        T.add(wanted, b)


@dataclass
class Foreign:
    """An array of another library, on a device."""

    array: Any
    __cuda_array_interface__: Any = None


@dataclass
class Exporting:
    array: Any

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: object) -> None: ...


@pytest.mark.parametrize("kind", [Foreign, Exporting])
def test_other_libraries(kind: Any, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are seen as CuPy's arrays on the same memory, which CuPy makes; here a stand-in."""
    package = SimpleNamespace(
        asarray=lambda foreign: foreign.array, from_dlpack=lambda foreign: foreign.array
    )
    monkeypatch.setattr(foreign, "cupy", lambda what: package)
    a, b = pair(cupy_array)
    c = kind(cupy_array(np.zeros(1000, np.float32)))
    T = tcl.define(ADD)
    for _ in range(2):
        np.testing.assert_array_equal(on_host(T.add(kind(a), kind(b))), EXPECTED)
        on_host(c.array)[...] = 0
        assert T.add(kind(a), b, outputs=(c,)) is c
        np.testing.assert_array_equal(on_host(c.array), EXPECTED)


def test_memory_of_the_host_by_dlpack_is_not_cudas(rig: Rig) -> None:
    host = SimpleNamespace(__dlpack_device__=lambda: (1, 0))
    with pytest.raises(ArgumentError, match="has to be a NumPy array"):
        tcl.define(ADD).add(host, host)


def test_copies_compile_anew(rig: Rig) -> None:
    sized = sized_of(ADD, *(np.zeros(1000, np.float32),) * 2)
    executor = CudaExecutor(sized, MappingOptions("naive"), 0)
    executor(*pair(cupy_array))
    again = copy.copy(executor)
    assert again.options == executor.options and again.device == 0
    np.testing.assert_array_equal(on_host(again(*pair(cupy_array))), EXPECTED)
    assert len(rig.emitted) == 2


def test_an_options_factory_sees_the_arrays(rig: Rig) -> None:
    seen: list[Any] = []

    def factory(source: str, entry: str, *inputs: Any) -> MappingOptions:
        seen.extend(inputs)
        return MappingOptions("naive")

    a, b = pair(cupy_array)
    executor, _ = tcl.define(ADD, factory).executor("add", (a, b))
    assert seen == [a, b] or (seen[0] is a and seen[1] is b)
    assert executor.options == MappingOptions("naive")


def test_what_stands_for_an_array_is_not_read() -> None:
    """The address is nobody's: reading it would end the process."""
    standing = shadow(0x10, (3, 4), (16, 4), np.dtype(np.float32))
    assert repr(standing) == str(standing) == "<memory of a device: float32 of shape (3, 4)>"
    assert f"{standing}" and standing[1:].ctypes.data == 0x20
    for read in (
        lambda: standing + 1,
        lambda: np.sum(standing),
        lambda: standing.copy(),
        lambda: pickle.dumps(standing),
        lambda: copy.deepcopy(standing),
        lambda: standing.tolist(),
    ):
        with pytest.raises(TypeError):
            read()


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    a = Foreign(None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    executing.this_machine.cache_clear()
    with pytest.raises(ArgumentError, match="needs the package CuPy"):
        tcl.define(ADD).add(a, a)
