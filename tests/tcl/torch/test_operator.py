"""Defs as operators of torch: values, arguments, names, threads, memory."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch_defs import MM, PICK, TYPES

import tcl
from tcl.executors.dispatch import Kernels, Settings
from tcl.torch import stub
from tcl.torch.registration import NAMESPACE, Registered


def dense(*shape: int) -> Any:
    return torch.rand(*shape)


def permuted(*shape: int) -> Any:
    return torch.rand(*reversed(shape)).permute(*reversed(range(len(shape))))


def sliced(*shape: int) -> Any:
    return torch.rand(*(2 * n + 1 for n in shape))[tuple(slice(1, None, 2) for _ in shape)]


def expanded(*shape: int) -> Any:
    return torch.rand(1, *shape[1:]).expand(*shape)


def unaligned(*shape: int) -> Any:
    values = torch.rand(*shape)
    memory = bytearray(b"\0" + values.numpy().tobytes())
    found = torch.frombuffer(memory, dtype=torch.float32, offset=1).reshape(*shape)
    assert found.data_ptr() % 4
    return found


def swapped(*shape: int) -> Any:
    """With the strides that torch gives dimensions of one element at will."""
    return torch.rand(*shape).as_strided(shape, (7,) * len(shape)) if 1 in shape else dense(*shape)


LAYOUTS = [dense, permuted, sliced, expanded, unaligned]


@pytest.mark.parametrize("make", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 4, 3), (1, 1, 1), (0, 4, 3), (5, 0, 3), (5, 4, 0)])
def test_values_for_all_layouts(make: Callable[..., Any], shape: tuple[int, int, int]) -> None:
    if make is unaligned and 0 in shape:
        pytest.skip("there is no memory that could lie so")
    m, k, n = shape
    mm = tcl.torch.op(MM, "mm")
    A, B = make(m, k), make(k, n)
    for _ in range(2):  # by Python, then by what it left
        C = mm(A, B)
        torch.testing.assert_close(C, A @ B)
        assert C.is_contiguous()
    torch.testing.assert_close(mm(B=B, A=A), A @ B)


def test_all_types_and_numbers() -> None:
    mix = tcl.torch.op(TYPES, "mix")
    n = 9
    X, Y = torch.rand(n).bfloat16(), torch.rand(n).half()
    Z, W = torch.arange(n, dtype=torch.uint8), torch.arange(n) % 2 == 0
    expected = torch.where(W, X.float() + Y.float() + Z.float(), torch.tensor(2.5))
    torch.testing.assert_close(mix(X, Y, Z, W, 2.5), expected)
    torch.testing.assert_close(mix(X, Y, Z, W, torch.tensor(2.5)), expected)


@pytest.mark.parametrize(
    ("type_", "number", "sentence"),
    [
        ("int32", 2.5, "input 's' of f is int32, which 2.5 is not a value of; pass int(x)"),
        ("uint8", 256, "input 's' of f is uint8, which 256 is not a value of"),
        ("uint8", -1, "input 's' of f is uint8, which -1 is not a value of"),
        (
            "float16",
            1e5,
            "input 's' of f is float16, which cannot hold a number as large as the given one",
        ),
        (
            "float",
            -1e300,
            "input 's' of f is float32, which cannot hold a number as large as the given one",
        ),
    ],
)
def test_numbers_that_a_type_has_not(type_: str, number: float, sentence: str) -> None:
    f = tcl.torch.op(f"def f(float(N) X, {type_} s) -> (O) {{ O(i) = X(i) * s }}", "f")
    assert f(torch.ones(2), 3).tolist() == [3, 3]
    compiled = torch.compile(f, fullgraph=True, backend="eager")
    assert compiled(torch.ones(2), 3).tolist() == [3, 3]
    with pytest.raises(tcl.ArgumentError) as caught:
        f(torch.ones(2), number)
    assert str(caught.value) == sentence


def test_numbers_of_numpy() -> None:
    f = tcl.torch.op("def f(float(N) A, float s) -> (B) { B(n) = A(n) * s }", "f")
    for number in (np.float32(2.5), np.float64(2.5)):
        assert f(torch.ones(2), number).tolist() == [2.5, 2.5]
    with pytest.raises(tcl.ArgumentError, match="cannot hold a number as large"):
        f(torch.ones(2), np.float64(1e300))


def test_infinite_numbers_are_numbers() -> None:
    f = tcl.torch.op("def f(float(N) X, float s) -> (O) { O(i) = X(i) * s }", "f")
    for run in (f, torch.compile(f, fullgraph=True, backend="eager")):
        assert run(torch.ones(2), float("-inf")).tolist() == [float("-inf")] * 2
        assert run(torch.ones(2), float("nan")).isnan().all()


def test_several_outputs_and_checked_subscripts() -> None:
    pick = tcl.torch.op(PICK, "pick")
    X, at = torch.arange(5.0), torch.tensor([0, 4], dtype=torch.int32)
    for _ in range(2):
        out, after = pick(X, at)
        assert out.tolist() == [0, 4] and after.tolist() == [1, 5]
        message = "index 5 is out of range for dimension 0 of tensor X"
        with pytest.raises(IndexError, match=message) as found:
            pick(X, at + 1)
        (note,) = found.value.__notes__
        assert "note: it is this subscript of pick" in note
    with pytest.raises(RuntimeError, match=message) as of_torch:
        pick.overload(X, at + 1)
    assert note in str(of_torch.value)


@pytest.mark.parametrize("native", [True, False])
def test_outputs_that_nobody_wants(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr("tcl.torch.registration.made_stub", lambda *_: None)
    text = f"{PICK}# {native}\ndef more(float(N) X) -> (A, B, C) {{ A(n) = X(n) + {int(native)}\n"
    text += "B(n) = 2 * A(n)\nC(n) = B(n) + 1 }"
    X = torch.arange(5.0)
    for wanted, expected in ((("C", "A"), "CA"), (["B"], "B"), ("C", "C"), (None, "ABC")):
        run = tcl.torch.op(text, "more", wanted=wanted)
        A = X + int(native)
        values = {"A": A, "B": 2 * A, "C": 2 * A + 1}
        for _ in range(3):
            found = run(X)
            found = found if isinstance(found, tuple) else (found,)
            assert [f.tolist() for f in found] == [values[name].tolist() for name in expected]
        torch.library.opcheck(run.overload, (X,))
    assert run.name == tcl.torch.op(text, "more", wanted=("A", "B", "C")).name
    for wrong, message in (
        (("c",), "more has no output 'c' to select with wanted; did you mean 'C'"),
        ((), "wanted names no output of more"),
        (("A", "A"), "wanted names the output 'A' of more twice"),
    ):
        with pytest.raises(tcl.ArgumentError, match=message):
            tcl.torch.op(text, "more", wanted=wrong)


A, B = torch.rand(2, 3), torch.rand(3, 4)
WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda f: f(A), "mm takes 2 inputs (A, B), but 1 argument was given: B is missing"),
    (lambda f: f(A, B, B), "mm takes 2 inputs (A, B), but 3 arguments were given"),
    (lambda f: f(A, C=B), "mm has no input 'C': that is an output"),
    (
        lambda f: f(A, B.double()),
        "input 'B' of mm is float32, but a tensor of torch.float64 was given; convert it with "
        ".to(torch.float32)",
    ),
    (
        lambda f: f(A, torch.quantize_per_tensor(B, 0.1, 0, torch.qint8)),
        "input 'B' of mm is float32, but a tensor of torch.qint8 was given; convert it with "
        ".dequantize().to(torch.float32)",
    ),
    (
        lambda f: f(A, B[0]),
        "input 'B' of mm has 2 dimensions (K, N), but an array of shape (4,) was given",
    ),
    (lambda f: f(A, A), "dimension 0 of 'B' is 2, but K is 3 from dimension 1 of 'A'"),
    (lambda f: f(A, B.numpy()), "input 'B' of mm has to be a torch tensor, not"),
    (lambda f: f(A, [1.0]), "input 'B' of mm has to be a torch tensor, not"),
    (lambda f: f(A, None), "input 'B' of mm has to be a torch tensor, not"),
    (lambda f: f(A, B.to_sparse()), "input 'B' of mm has to be a strided tensor, not one of"),
    (
        lambda f: f(A, torch.nested.nested_tensor([B, B])),
        "input 'B' of mm has to be a strided tensor, not a nested one; convert it with",
    ),
    (lambda f: f(A, B, outputs=A), "mm has no input 'outputs'; its inputs are A, B"),
    (lambda f: f(A, B.to("meta")), "input 'B' of mm is on meta, but 'A' on cpu; move it with"),
]


@pytest.mark.parametrize("k", range(len(WRONG)))
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_what_is_wrong_is_one_sentence(k: int) -> None:
    call, sentence = WRONG[k]
    mm = tcl.torch.op(MM, "mm")
    torch.testing.assert_close(mm(A, B), A @ B)
    with pytest.raises(tcl.ArgumentError) as caught:
        call(mm)
    assert str(caught.value).startswith(sentence)
    torch.testing.assert_close(mm(A, B), A @ B)  # nothing is left of it


def test_defs_that_no_operator_can_be() -> None:
    add = "def add(float(N) X) -> (S) { S += X(n) }"
    with (
        pytest.warns(tcl.TclWarning),
        pytest.raises(tcl.ArgumentError, match="adds to 'S', but an operator makes"),
    ):
        tcl.torch.op(add, "add")
    with pytest.raises(tcl.ArgumentError, match="has no inputs, but an operator runs on"):
        tcl.torch.op("def one() -> (O) { O = 1 }", "one")
    with pytest.raises(tcl.ArgumentError, match="there is no def 'mn'; there are: mm, mm_grad"):
        tcl.torch.op(MM, "mn")
    with pytest.raises(tcl.OptionsError, match="an options factory may tune or read values, which"):
        tcl.torch.op(MM, "mm", tcl.make_naive_options_factory())


def test_names_tell_defs_and_options_apart() -> None:
    """And are the same for the same, whatever the text looks like."""
    twice = MM.replace("A(m, k) * B(k, n)", "2 * A(m, k) * B(k, n)")
    spaced = MM.replace("+=!", " +=!  ")
    mm = tcl.torch.op(MM, "mm")
    assert mm.name == tcl.torch.op(spaced, "mm").name
    assert mm.overload is tcl.torch.op(spaced, "mm").overload
    others = [
        tcl.torch.op(twice, "mm"),
        tcl.torch.op(
            MM.replace("(M, K) A, float(K, N) B) ->", "(M, K) X, float(K, N) B) ->").replace(
                " A(m, k) * B(k, n)", " X(m, k) * B(k, n)"
            ),
            "mm",
        ),
        tcl.torch.op(MM, "mm", "naive"),
        tcl.torch.op(MM, "mm", threads=1),
        tcl.torch.op(MM, "mm", nearest=True),
        tcl.torch.op(MM, "mm", unchecked=True),
        tcl.torch.op(MM.replace("-> (C) {", "-> (C, D) { D(m) +=! A(m, k)\n"), "mm", wanted="C"),
        tcl.torch.op(MM, "mm", tcl.make_load_from_cache_options_factory("a.db")),
        tcl.torch.op(MM, "mm", tcl.make_load_from_cache_options_factory("b.db")),
    ]
    assert len({mm.name, *(o.name for o in others)}) == 1 + len(others)
    torch.testing.assert_close(others[0](A, B), 2 * (A @ B))
    torch.testing.assert_close(mm(A, B), A @ B)


def test_a_name_is_the_same_in_every_process() -> None:
    """What was kept by another process finds the operator by it."""
    assert tcl.torch.op(MM, "mm").name == "tcl::mm_288b69b65ce53baa"


def test_names_that_torch_would_not_take() -> None:
    name = "f" + "x" * 3000
    double = tcl.torch.op(f"def {name}(float(N) self) -> (out) {{ out(i) = 2 * self(i) }}", name)
    assert double(self=torch.ones(2)).tolist() == [2, 2]


def test_copies_are_the_same_operator() -> None:
    mm = tcl.torch.op(MM, "mm", "naive", backward="mm_grad", threads=1)
    for other in (copy.deepcopy(mm), pickle.loads(pickle.dumps(mm))):
        assert other.overload is mm.overload
        torch.testing.assert_close(other(A, B), A @ B)


def test_lazily_negated_tensors_and_subclasses() -> None:
    mm = tcl.torch.op(MM, "mm")
    negated = torch.imag(torch.conj(torch.complex(A, A)))
    assert negated.is_neg()
    torch.testing.assert_close(mm(negated, B), -(A @ B))

    class Mine(torch.Tensor):  # type: ignore[misc]
        pass

    torch.testing.assert_close(mm(A.as_subclass(Mine), B).as_subclass(torch.Tensor), A @ B)
    with torch.inference_mode():
        torch.testing.assert_close(mm(A, B), A @ B)


def test_a_tensor_whose_memory_was_given_back() -> None:
    mm = tcl.torch.op(MM, "mm")
    X = torch.rand(2, 3)
    torch.testing.assert_close(mm(X, B), X @ B)
    X.untyped_storage().resize_(0)
    for _ in range(2):
        with pytest.raises(tcl.ArgumentError, match="'A' of mm has no memory"):
            mm(X, B)


def many_calls(mm: Any, count: int) -> None:
    """What is expected is computed without torch's own threads, which do not survive a fork."""
    for k in range(count):
        X, Y = torch.full((1 + k % 40, 5), 2.0), torch.arange(3.0).expand(5, 3)
        assert mm(X, Y).tolist() == [[0, 10, 20]] * (1 + k % 40)
        with pytest.raises(tcl.ArgumentError, match="mm needs them to be equal"):
            mm(X, Y[:3])


def test_eight_threads() -> None:
    """Whose calls meet new sizes, known ones, and mistakes at the same time."""
    mm = tcl.torch.op(MM, "mm", "naive")
    problems: list[BaseException] = []

    def work() -> None:
        try:
            many_calls(mm, 120)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_forked() -> None:
    mm = tcl.torch.op(MM, "mm", "naive")
    many_calls(mm, 5)
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(60)
        try:
            many_calls(mm, 60)  # with sizes that the parent did not see
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_inputs_are_not_kept_and_may_go_in_flight() -> None:
    """The outputs own nothing of the inputs, and an input may lose its last name in a call."""
    mm = tcl.torch.op(MM, "mm")
    held = []

    def fresh(*shape: int) -> Any:
        array = torch.rand(*shape)
        held.append(StorageWeakRef(array.untyped_storage()))
        return array

    mm(fresh(6, 6), fresh(6, 6))  # compiles, which takes long while others look for garbage
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            gc.collect()

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        for _ in range(8):
            C = mm(fresh(6, 6), fresh(6, 6))
            assert C.isfinite().all()
    finally:
        stop.set()
        thread.join()
    with pytest.raises(tcl.ArgumentError):
        mm(fresh(6, 6), fresh(5, 5))
    gc.collect()
    assert all(each.expired() for each in held)


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["some", "million"]
)
def test_memory_is_flat(count: int) -> None:
    mm, pick = tcl.torch.op(MM, "mm"), tcl.torch.op(PICK, "pick")
    X, at = torch.arange(5.0), torch.tensor([0, 4], dtype=torch.int32)

    def calls(times: int) -> None:
        for k in range(times):
            mm(A, B)
            pick(X, at)
            if k % 100 == 0:
                with pytest.raises(IndexError):
                    pick(X, at + 1)

    calls(2000)
    before = resident()
    calls(count // 2)
    assert resident() - before < 1 << 20


def test_a_torch_without_the_functions_that_calls_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python does it all."""
    monkeypatch.setattr(stub, "_library", lambda: object())
    mm = tcl.torch.op(MM.replace("A(m, k) * B", "4 * A(m, k) * B"), "mm")
    torch.testing.assert_close(mm(A, B), 4 * (A @ B))
    with pytest.raises(tcl.ArgumentError, match="dimension 0 of 'B' is 2"):
        mm(A, A)


@pytest.fixture(params=[True, False], ids=["native", "python"])
def implementation(request: pytest.FixtureRequest) -> Any:
    """The operator of ``mm`` by the one implementation, or by the other."""
    kernels = Kernels(MM, Settings())
    name = f"test_mm_{request.param}"
    packet = getattr(getattr(torch.ops, NAMESPACE), name, None)
    if packet is None:
        made = Registered(name, kernels, kernels.definition("mm"), native=request.param)
        _KEPT.append(made)
        packet = getattr(getattr(torch.ops, NAMESPACE), name)
    return packet.default


_KEPT: list[Registered] = []


def test_both_implementations_agree(implementation: Any) -> None:
    for make in (*LAYOUTS, swapped):
        for _ in range(2):
            X, Y = make(5, 4), make(4, 3)
            torch.testing.assert_close(implementation(X, Y), X @ Y)
    with pytest.raises((RuntimeError, tcl.ArgumentError), match="but K is 3 from dimension 1"):
        implementation(A, A)
