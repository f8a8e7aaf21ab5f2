"""Functions of ``tcl.define`` in programs that torch traces: called as they are, or refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

import tcl

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
A, B = torch.rand(3, 4), torch.rand(4, 5)
REMEDY = "register the def as an operator with tcl.torch.op"


@pytest.fixture(autouse=True)
def _afresh() -> None:
    torch._dynamo.reset()


def fake(f: Any) -> Any:
    with FakeTensorMode() as mode:
        return f(mode.from_tensor(A), mode.from_tensor(B))


def beside_fake(f: Any) -> Any:
    with FakeTensorMode():
        return f(A, B)


class Program(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f = f

    def forward(self, a: Any, b: Any) -> Any:
        return self.f(a, b)


def program(f: Any) -> Any:
    return lambda a, b: f(a + 1, b) * 2


TRACERS: dict[str, Callable[[Any], Any]] = {
    "make_fx": lambda f: make_fx(program(f))(A, B),
    "make_fx before dispatch": lambda f: make_fx(program(f), pre_dispatch=True)(A, B),
    "make_fx on fake tensors": lambda f: make_fx(program(f), tracing_mode="fake")(A, B),
    "make_fx with symbols": lambda f: make_fx(program(f), tracing_mode="symbolic")(A, B),
    "make_fx of constants": lambda f: make_fx(lambda a: a + f(A, B).sum())(A),
    "make_fx into outputs": lambda f: make_fx(
        lambda a, b: f(a, b, **{"out" if f is called else "outputs": torch.empty(3, 5)})
    )(A, B),
    "jit.trace": lambda f: torch.jit.trace(program(f), (A, B)),
    "fx": lambda f: torch.fx.symbolic_trace(lambda a, b: f(a, b)),
    "fake tensors": fake,
    "beside fake tensors": beside_fake,
    "export": lambda f: torch.export.export(Program(program(f)), (A, B)),
    "vmap": lambda f: torch.vmap(f, (0, None))(A[None], B),
    "grad": lambda f: torch.func.grad(lambda a: f(a, B).sum())(A),
    "jvp": lambda f: torch.func.jvp(lambda a: f(a, B), (A,), (A,)),
    "functionalize": lambda f: torch.func.functionalize(f)(A, B),
}


def called(*given: Any, **more: Any) -> Any:
    return tcl.einsum("mk,kn->mn", *given, **more)


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "def": lambda: tcl.define(MM).mm,
    "executor": lambda: tcl.compile(MM, "mm", None, A, B),
    "einsum": lambda: called,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of its own tracers
@pytest.mark.parametrize("tracer", TRACERS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_call_that_a_tracer_does_not_see_is_refused(tracer: str, function: str) -> None:
    f = FUNCTIONS[function]()
    for _ in range(2):  # then after a call that went well, which others like it repeat
        with pytest.raises(tcl.ArgumentError, match=REMEDY):
            TRACERS[tracer](f)
        torch.testing.assert_close(f(A, B), A @ B)
        torch.testing.assert_close(f(A + 1, B), (A + 1) @ B)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_torch_compile_calls_it_as_it_is(function: str) -> None:
    f, programs = FUNCTIONS[function](), []

    def backend(graph: Any, _: Any) -> Any:
        programs.append([str(n.target) for n in graph.graph.nodes if n.op.startswith("call")])
        return graph.forward

    compiled = torch.compile(lambda a, b: f(a + 1, b) * 2, backend=backend)
    for a in (A, 2 * A):
        torch.testing.assert_close(compiled(a, B), (a + 1) @ B * 2)
    assert len(programs) == 2 and all(len(calls) == 1 for calls in programs)
    torch.testing.assert_close(torch.compile(f, backend="eager")(A, B), A @ B)
    in_one: list[Callable[[], Any]] = [
        lambda: torch.compile(program(f), fullgraph=True, backend="eager")(A, B),
        lambda: torch.export.export(Program(program(f)), (A, B), strict=True),
    ]
    for whole in in_one:
        torch._dynamo.reset()
        with pytest.raises(Exception, match=f"calls of tcl cannot be traced; {REMEDY}"):
            whole()


def test_nothing_that_a_first_call_does_is_traced() -> None:
    seen = []

    def factory(*_: Any) -> tcl.MappingOptions:
        """In the place of a search."""
        seen.append((get_eval_frame_callback(), torch.compiler.is_compiling()))
        return tcl.MappingOptions("naive")

    mm = tcl.define(MM, factory).mm
    compiled = torch.compile(program(mm), backend="eager")
    for n in (3, 4):
        torch.testing.assert_close(compiled(A[:n], B), (A[:n] + 1) @ B * 2)
    assert seen == [(None, False)]


BEFORE = """
import sys, tcl
T = tcl.define("def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }")
assert "torch" not in sys.modules
import torch
programs = []
def backend(graph, _):
    programs.append(graph)
    return graph.forward
A = torch.rand(5)
found = torch.compile(lambda a: T.twice(a + 1) - 1, backend=backend)(A)
torch.testing.assert_close(found, 2 * A + 1)
assert len(programs) == 2, len(programs)
"""


def test_a_def_that_is_older_than_torch() -> None:
    command = [sys.executable, "-c", BEFORE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inside_an_operator_of_somebody_else() -> None:
    mm = tcl.define(MM).mm

    operator = torch.library.custom_op(
        "tcl_tests::mm", mm, mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor"
    )
    operator.register_fake(lambda a, b: a.new_empty(a.shape[0], b.shape[1]))
    run = program(operator)
    for traced in (
        make_fx(run)(A, B),
        torch.jit.trace(run, (A, B)),
        torch.compile(run, fullgraph=True, backend="aot_eager"),
    ):
        torch.testing.assert_close(traced(2 * A, B), (2 * A + 1) @ B * 2)


def test_a_mode_that_records_no_program() -> None:
    mm = tcl.define(MM).mm
    for _ in range(2):
        with FlopCounterMode(display=False):
            torch.testing.assert_close(mm(A, B), A @ B)
        with torch.device("cpu"):
            torch.testing.assert_close(mm(A, B), A @ B)


def test_a_tangent_is_not_lost() -> None:
    mm = tcl.define(MM).mm
    for _ in range(3):
        with forward_ad.dual_level():
            torch.testing.assert_close(mm(A, B), A @ B)
            with pytest.raises(tcl.ArgumentError, match="'A' of mm has a tangent, but this"):
                mm(forward_ad.make_dual(A, A), B)
        torch.testing.assert_close(mm(A, B), A @ B)
