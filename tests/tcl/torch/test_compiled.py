"""Operators under torch's checks and transformations: opcheck, compile, export, vmap, autocast."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from places import ROOT
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_defs import MM, PICK, SOFT

import tcl


@pytest.fixture(autouse=True)
def _afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "torch"))
    torch._dynamo.reset()


def permuted(*shape: int) -> Any:
    return torch.rand(*reversed(shape)).permute(*reversed(range(len(shape))))


def sliced(*shape: int) -> Any:
    return torch.rand(*(2 * n for n in shape))[tuple(slice(None, None, 2) for _ in shape)]


@pytest.mark.parametrize("make", [torch.rand, permuted, sliced])
@pytest.mark.parametrize("m", [0, 3])
def test_opcheck(make: Callable[..., Any], m: int) -> None:
    at = torch.arange(m, dtype=torch.int32)
    for operator, inputs in (
        (tcl.torch.op(MM, "mm"), (make(m, 4), make(4, 5))),
        (tcl.torch.op(MM, "mm_grad"), (make(m, 4), make(4, 5), make(m, 5))),
        (tcl.torch.op(PICK, "pick"), (make(m + 1), at)),
        (tcl.torch.op(SOFT, "soft"), (make(m),)),
    ):
        torch.library.opcheck(operator.overload, inputs)


def test_fake_outputs_are_laid_out_as_real_ones() -> None:
    mm = tcl.torch.op(MM, "mm")
    real = mm(permuted(3, 4), sliced(4, 5))
    with FakeTensorMode() as mode:
        fake = mm(*(mode.from_tensor(a) for a in (permuted(3, 4), sliced(4, 5))))
    assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)
    assert fake.device == real.device


def test_mistakes_are_told_when_a_program_is_traced() -> None:
    mm = tcl.torch.op(MM, "mm")
    with FakeTensorMode() as mode:
        A, B = (mode.from_tensor(torch.rand(3, 4)) for _ in range(2))
        with pytest.raises(tcl.ArgumentError, match=r"^dimension 0 of 'B' is 3, but K is 4 from"):
            mm(A, B)
        with pytest.raises(
            tcl.ArgumentError, match=r"^input 'A' of mm is float32, but a tensor of"
        ):
            mm(A.double(), B)
    compiled = torch.compile(mm, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="dimension 0 of 'B' is 3, but K is 4 from"):
        compiled(torch.rand(3, 4), torch.rand(3, 4))


def test_an_operator_is_not_made_while_tracing() -> None:
    compiled = torch.compile(
        lambda A, B: tcl.torch.op(MM, "mm")(A, B), fullgraph=True, backend="eager"
    )
    with pytest.raises(Exception, match=r"call tcl\.torch\.op first"):
        compiled(torch.rand(3, 4), torch.rand(4, 3))


def test_two_versions_of_one_def_compiled_by_inductor() -> None:
    """The same program but for the operator's hash, with torch's caches on disk between them."""
    A, B = torch.rand(6, 4), torch.rand(4, 5)
    for factor in (1, 3, 1):
        mm = tcl.torch.op(MM.replace("A(m, k) * B(k, n)", f"{factor} * A(m, k) * B(k, n)"), "mm")
        torch._dynamo.reset()
        compiled = torch.compile(lambda A, B, mm=mm: mm(A.t(), B), fullgraph=True)
        torch.testing.assert_close(compiled(A.t(), B), factor * (A @ B))


SIZES = """
def conv(float(N, C, H, W) X, float(M, C, KH, KW) K) -> (Y) {
    Y(n, m, h, w) +=! X(n, c, 2 * h + kh, w + kw) * K(m, c, kh, kw)
}
def padded(float(N) X) -> (Y) {
    Y(i) = (i >= 1 && i < N + 1) ? X(i - 1) : 0.0 where i in 0:N+2
}
def some(float(N) X, float(M) Z) -> (Y) { Y(i, j) = X(N - 1 - i) * Z(j) where i in 0:N%3+1 }
"""


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("conv", [[(2, 3, 9, 8), (4, 3, 5, 6)], [(3, 2, 13, 12), (5, 2, 4, 7)]]),
        ("padded", [[(4,)], [(9,)], [(5,)]]),
        ("some", [[(7,), (4,)], [(8,), (9,)], [(11,), (3,)]]),
    ],
)
def test_one_program_for_all_sizes(name: str, shapes: list[list[tuple[int, ...]]]) -> None:
    """Sizes of outputs are expressions of torch's symbols."""
    operator = tcl.torch.op(SIZES, name)
    programs = []

    def backend(graph: Any, inputs: Any) -> Any:
        programs.append(graph)
        return graph.forward

    compiled = torch.compile(
        lambda *inputs: operator(*inputs) + 1, fullgraph=True, dynamic=True, backend=backend
    )
    for each in shapes:
        inputs = [torch.rand(shape) for shape in each]
        torch.testing.assert_close(compiled(*inputs), operator(*inputs) + 1)
    assert len(programs) == 1
    (node,) = (n for n in programs[0].graph.nodes if n.target is operator.overload)
    assert any(isinstance(n, torch.SymInt) for n in node.meta["example_value"].shape)


def test_mistakes_have_numbers_where_sizes_are_symbols() -> None:
    mm = tcl.torch.op(MM, "mm")
    compiled = torch.compile(mm, fullgraph=True, dynamic=True, backend="eager")
    with pytest.raises(Exception, match="dimension 0 of 'B' is 3, but K is 4 from"):
        compiled(torch.rand(5, 4), torch.rand(3, 6))


_LOADS = """
import sys, torch, tcl
sys.path.insert(0, {support!r})
from torch_defs import MM
tcl.torch.op(MM, "mm")
program = torch.export.load({file!r})
A, B = torch.rand(3, 4), torch.rand(4, 5)
torch.testing.assert_close(program.module()(A, B), (A @ B).relu())
print("as expected")
"""


def test_exported_and_loaded_by_another_process(tmp_path: Path) -> None:
    class Program(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.mm = tcl.torch.op(MM, "mm")

        def forward(self, A: Any, B: Any) -> Any:
            return self.mm(A, B).relu()

    file = str(tmp_path / "program.pt2")
    torch.export.save(torch.export.export(Program(), (torch.rand(3, 4), torch.rand(4, 5))), file)
    text = _LOADS.format(support=str(ROOT / "tests/support"), file=file)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "as expected\n", done.stderr


def test_autocast_converts_to_the_declared_types() -> None:
    mm, pick = tcl.torch.op(MM, "mm"), tcl.torch.op(PICK, "pick")
    A, B = torch.rand(3, 4).bfloat16(), torch.rand(4, 5).double()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        C = mm(A, B)
        assert C.dtype == torch.float32
        values, _ = pick(B[0], torch.tensor([1], dtype=torch.int32))
        with pytest.raises(tcl.ArgumentError, match="'I' of pick is int32, but a tensor of"):
            pick(B[0], torch.tensor([1]))
    torch.testing.assert_close(C, A.float() @ B.float())
    torch.testing.assert_close(values, B[0, 1:2].float())
    with pytest.raises(tcl.ArgumentError, match="'A' of mm is float32, but a tensor of"):
        mm(A, B)


@pytest.mark.parametrize("dims", [(0, None), (None, 2), (1, 0)])
def test_vmap_is_a_call_for_each_element(dims: tuple[Any, Any]) -> None:
    mm = tcl.torch.op(MM, "mm")
    A, B = torch.rand(3, 4), torch.rand(4, 5)
    many = [a if d is None else torch.stack([a, 2 * a, a + 1], d) for a, d in zip((A, B), dims)]  # noqa: B905
    found = torch.vmap(mm, in_dims=dims)(*many)
    torch.testing.assert_close(found, torch.vmap(torch.matmul, in_dims=dims)(*many))
    compiled = torch.compile(torch.vmap(mm, in_dims=dims), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*many), found)


def test_vmap_inside_vmap_and_of_several_outputs() -> None:
    soft = tcl.torch.op(SOFT, "soft")
    X = torch.rand(2, 3, 4)
    values, sums = torch.vmap(torch.vmap(soft))(X)
    torch.testing.assert_close(values, X.softmax(-1))
    torch.testing.assert_close(sums, X.exp().sum(-1))
