"""Arrays of every library: what a def gives for them is what it gives for NumPy's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import random_program

import tcl
from tcl.common.errors import ArgumentError

torch = pytest.importorskip("torch")

Array = np.ndarray[Any, np.dtype[Any]]

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SCALE = "def scale(float(N) A, float s) -> (C) { C(i) = A(i) * s }"
COPY = "def copy({0}(M, N) A) -> (B) {{ B(i, j) = A(i, j) }}"
ADD = "def grow(float(N) A) -> (C) { C(i) += A(i) }"


pytestmark = pytest.mark.usefixtures("own_cache")


def rand(*shape: int) -> Array:
    return np.random.default_rng(3).integers(-4, 5, shape).astype(np.float32)


def test_torch_in_torch_out() -> None:
    T = tcl.define(MM)
    a, b = rand(5, 6), rand(6, 7)
    A, B = torch.from_numpy(a), torch.from_numpy(b)
    for _ in range(3):
        C = T.mm(A, B)
        assert type(C) is torch.Tensor and C.device.type == "cpu" and C.dtype is torch.float32
        np.testing.assert_array_equal(C.numpy(), a @ b)
        out = torch.zeros(5, 7)
        for outputs in (out, (out,), [out]):
            out.zero_()
            assert T.mm(A, B=B, outputs=outputs) is out
            np.testing.assert_array_equal(out.numpy(), a @ b)
    executor = tcl.compile(MM, "mm", "naive", A, B=B)
    np.testing.assert_array_equal(executor(A, B).numpy(), a @ b)
    np.testing.assert_array_equal(executor(a, b), a @ b)  # its sizes are what counts


def layouts(tensor: Any) -> dict[str, Any]:
    wide = torch.zeros(2 * tensor.shape[0], 3 * tensor.shape[1], dtype=tensor.dtype)
    sliced = wide[::2, 1::3]
    sliced[...] = tensor
    raw = np.zeros(tensor.numel() * tensor.element_size() + 9, np.uint8)
    beyond = torch.frombuffer(raw.data, dtype=tensor.dtype, offset=1, count=tensor.numel() + 1)
    misaligned = beyond[:-1].reshape(tensor.shape)
    misaligned[...] = tensor
    row = tensor[:1].clone()
    return {
        "plain": tensor,
        "transposed": tensor.T.contiguous().T,
        "sliced": sliced,
        "misaligned": misaligned,
        "expanded": row.expand(tensor.shape),
    }


@pytest.mark.parametrize("shape", [(4, 6), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize(
    "type_",
    ["float", "double", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool"],
)
def test_types_and_layouts(type_: str, shape: tuple[int, int]) -> None:
    T = tcl.define(COPY.format(type_))
    dtype = getattr(torch, type_)
    tensor = torch.from_numpy(np.random.default_rng(1).integers(0, 9, shape)).to(dtype)
    for name, given in layouts(tensor).items():
        if given.shape != tensor.shape:
            continue
        for _ in range(2):
            found = T.copy(given)
            assert found.dtype is dtype and found.is_contiguous()
            assert torch.equal(found, given), name
            out = layouts(torch.zeros(shape, dtype=dtype))["sliced"]
            T.copy(given, outputs=(out,))
            assert torch.equal(out, given), name


def laid_out(array: Array, rng: np.random.Generator) -> Array:
    """The same values, with random steps between them, in a random order of the axes."""
    order = rng.permutation(array.ndim)
    steps = rng.integers(1, 3, array.ndim)
    sizes = [array.shape[axis] * steps[axis] for axis in order]
    wide = np.zeros(sizes, array.dtype).transpose(np.argsort(order))
    every: Any = (*(slice(None, None, step) for step in steps), ...)
    view: Array = wide[every]
    view[...] = array
    return view


def as_torch(array: Array) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def as_numpy(tensor: Any) -> Array:
    if isinstance(tensor, torch.Tensor):
        tensor = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return np.asarray(tensor)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.filterwarnings("ignore::tcl.common.errors.TclWarning")
def test_random_programs_on_random_layouts(seed: int) -> None:
    """Each kind of array has what NumPy's have, to the bit: it is the same kernel."""
    program, rng = random_program(seed), np.random.default_rng(seed)
    T = tcl.define(program.source, "naive", threads=1)
    run = T[program.entry]
    arrays = [laid_out(array, rng) for array in program.inputs(seed).values()]
    tensors = [as_torch(array) for array in arrays]
    names = [tensor.name for tensor in T.definition(program.entry).outputs]
    wanted = [str(name) for name in rng.permutation(names)]

    for _ in range(2):
        outputs: Any = run(*arrays)
        expected = outputs if isinstance(outputs, tuple) else (outputs,)
        by_name = dict(zip(names, expected, strict=True))
        found: Any = run(*tensors, wanted=wanted)
        for name, each in zip(wanted, found if len(names) > 1 else (found,), strict=True):
            assert isinstance(each, torch.Tensor)
            np.testing.assert_array_equal(
                as_numpy(each), by_name[name].astype(as_numpy(each).dtype)
            )
        into = tuple(as_torch(laid_out(np.zeros_like(each), rng)) for each in expected)
        run(*tensors, outputs=into)
        for name, each in zip(names, into, strict=True):
            np.testing.assert_allclose(
                as_numpy(each).astype("d"), by_name[name].astype("d"), rtol=1e-5, atol=1e-6
            )


def test_numbers_go_with_tensors() -> None:
    T = tcl.define(SCALE)
    a = rand(9)
    for number in (2, 2.0, np.float32(2), torch.tensor(2.0)):
        for _ in range(2):
            np.testing.assert_array_equal(T.scale(torch.from_numpy(a), number).numpy(), 2 * a)
    with pytest.raises(ArgumentError, match=r"input 's' of scale is a NumPy array, but 'A' is a"):
        T.scale(torch.from_numpy(a), np.array(2, np.float32))
    with pytest.raises(ArgumentError, match=r"input 'A' of scale is a NumPy array, but 's' is a"):
        T.scale(a, torch.tensor(2.0))


def refused() -> dict[str, tuple[Any, str]]:
    plain = torch.ones(3)
    sparse = plain.to_sparse()
    return {
        "numpy": (np.ones(3, np.float32), "input 'A' of"),
        "dtype": (plain.double(), r"a torch tensor of float64 .*\.to\(torch\.float32\)"),
        "complex": (plain.to(torch.complex64), "torch.complex64, which is not supported"),
        "rank": (torch.ones(3, 3), "has 1 dimension"),
        "list": ([1.0, 2.0, 3.0], "has to be a torch tensor, not list"),
        "sparse": (sparse, r"\.to_dense\(\)"),
        "quantised": (torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8), r"\.dequantize\(\)"),
        "meta": (torch.empty(3, device="meta"), "device 'meta', which has no values"),
        "grad": (torch.ones(3, requires_grad=True), r"requires grad.*\.detach\(\)"),
        "negative": (torch._neg_view(plain), r"resolve_neg\(\)"),
        "mkldnn": (plain.to_mkldnn(), r"\.to_dense\(\)"),
        "functional": (torch._to_functional_tensor(plain), "tcl.torch.op"),
    }


@pytest.mark.parametrize("warm", [False, True], ids=["first", "again"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_tensor_may_not_be(warm: bool) -> None:
    T = tcl.define("def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }")
    if warm:
        T.add(torch.ones(3), torch.ones(3))
    for name, (tensor, sentence) in refused().items():
        with pytest.raises(ArgumentError, match=sentence):
            T.add(tensor, torch.ones(3))
        if name in ("numpy", "sparse", "meta", "grad", "negative", "dtype"):
            with pytest.raises(ArgumentError, match=sentence.replace("input 'A'", "output 'C'")):
                T.add(torch.ones(3), torch.ones(3), outputs=(tensor,))
    for transform in (torch.vmap, torch.func.grad):
        with pytest.raises(ArgumentError, match=r"'A' of add is a placeholder .*tcl\.torch\.op"):
            transform(lambda x: T.add(x, torch.ones(3)).sum())(torch.ones(2, 3)[0:2])


def test_a_tensor_without_memory() -> None:
    double = tcl.define("def double_(float(N) X) -> (O) { O(i) = 2 * X(i) }").double_
    X, out = torch.rand(4), torch.empty(4)
    for _ in range(2):
        double(X, outputs=out)
    X.untyped_storage().resize_(0)
    with pytest.raises(tcl.ArgumentError, match="input 'X' of double_ has no memory"):
        double(X, outputs=out)
    with pytest.raises(tcl.ArgumentError, match="output 'O' of double_ has no memory"):
        double(torch.rand(4), outputs=X)
    assert double(X[:0]).shape == (0,)


def test_parameters_under_no_grad() -> None:
    T = tcl.define(SCALE)
    weight = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        for _ in range(2):
            assert T.scale(weight, 3.0).tolist() == [3, 3, 3]
        T.scale(torch.ones(3), 5.0, outputs=(weight,))
    assert weight.tolist() == [5, 5, 5]
    with pytest.raises(ArgumentError, match="requires grad"):
        T.scale(weight, 3.0)


def test_a_tensor_that_was_saved_for_a_backward_pass_is_found_changed() -> None:
    T = tcl.define(SCALE)
    for _ in range(2):
        weight, x = torch.ones(3, requires_grad=True), torch.ones(3)
        y = (weight * x).sum()
        T.scale(torch.ones(3), 5.0, outputs=(x,))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


@pytest.mark.filterwarnings("ignore::tcl.common.errors.TclWarning")
def test_outputs_that_are_added_to() -> None:
    T = tcl.define(ADD)
    total = torch.zeros(3)
    for _ in range(3):
        T.grow(torch.ones(3), outputs=(total,))
    assert total.tolist() == [3, 3, 3]
    with pytest.raises(ArgumentError, match="pass outputs="):
        T.grow(torch.ones(3))


def test_overlaps() -> None:
    T = tcl.define(MM)
    memory = torch.ones(4, 4)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="output 'C' of mm overlaps input 'B' in memory"):
            T.mm(torch.ones(4, 4), memory, outputs=(memory,))
        with pytest.raises(ArgumentError, match="overlaps itself"):
            T.mm(torch.ones(4, 4), memory, outputs=(torch.ones(1, 4).expand(4, 4),))
        T.mm(torch.ones(4, 4), torch.ones(4, 4), outputs=(memory,))


@pytest.mark.usefixtures("searches_in_threads")
def test_tuning_on_tensors(tmp_path: Path) -> None:
    """What is found for them is found for the same NumPy arrays."""
    a, b = rand(8, 9), rand(9, 5)
    tensors = (torch.from_numpy(a), torch.from_numpy(b))
    file = tmp_path / "tuned.db"
    config = tcl.TunerConfig().generations(1).pop_size(2).threads(1)
    best = tcl.autotune(
        MM, "mm", *tensors, tuner_config=config, cache_filename=file, store_to_cache=True
    )
    for inputs in ((a, b), tensors):
        assert tcl.MappingOptionsCache(file).load(MM, "mm", inputs) == [best]
        T = tcl.define(MM, tcl.make_load_from_cache_options_factory(file))
        assert T.executor("mm", inputs)[0].options == best


def test_kinds_and_layouts_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is looked at closely once."""
    T = tcl.define(MM)
    a, b = rand(6, 6), rand(6, 6)
    each = [(a, b), (a.T, b), (torch.from_numpy(a), torch.from_numpy(b))]
    for arguments in each:
        T.mm(*arguments)
    monkeypatch.setattr("tcl.executors.calls.given_outputs", None)
    for _ in range(2):
        for x, y in each:
            found = T.mm(x, y)
            assert type(found) is type(x)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(x) @ np.asarray(y))
