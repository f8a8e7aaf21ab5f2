"""Defs as layers with parameters."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch_defs import MM

import tcl

LOOKUP = """
def lookup(float(N, D) T, int32(B) I, float(D) type) -> (O) { O(b, d) = T(I(b), d) + type(d) }
"""


def layer(weight: Any) -> Any:
    return tcl.torch.Module(MM, "mm", parameters={"B": weight}, backward="mm_grad")


def test_a_layer_learns() -> None:
    torch.manual_seed(0)
    X, target = torch.rand(16, 4), torch.rand(4, 2)
    mine = layer(torch.zeros(4, 2))
    assert dict(mine.named_parameters()).keys() == {"B"}
    steps = torch.optim.SGD(mine.parameters(), 0.2)
    for _ in range(400):
        steps.zero_grad()
        ((mine(X) - X @ target) ** 2).sum(1).mean().backward()
        steps.step()
    torch.testing.assert_close(mine.B.detach(), target, atol=1e-2, rtol=0)


def test_a_layer_is_saved_copied_and_compiled() -> None:
    X, weight = torch.rand(3, 4), torch.rand(4, 2)
    mine, other = layer(weight), layer(torch.zeros(4, 2))
    other.load_state_dict(mine.state_dict())
    torch.testing.assert_close(other(X), X @ weight)
    torch.testing.assert_close(copy.deepcopy(mine)(X), X @ weight)
    compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X), X @ weight)
    assert "mm(A, B) -> (C)" in repr(mine)


def test_tensors_that_are_not_learned_are_buffers() -> None:
    at = torch.tensor([1, 0], dtype=torch.int32)
    mine = tcl.torch.Module(LOOKUP, "lookup", parameters={"I": at})
    assert dict(mine.named_buffers()).keys() == {"I"}
    table = torch.rand(2, 3)
    torch.testing.assert_close(mine(table, torch.zeros(3)), table[[1, 0]])


def test_what_is_wrong_with_parameters() -> None:
    def made(**parameters: Any) -> Any:
        return tcl.torch.Module(LOOKUP, "lookup", parameters=parameters)

    with pytest.raises(tcl.ArgumentError, match=r"lookup has no input 'J'; its inputs are T, I"):
        made(J=torch.ones(1))
    with pytest.raises(
        tcl.ArgumentError, match=r"'T' of lookup has to be a torch tensor, not list"
    ):
        made(T=[1.0])
    unnamed: Any = [torch.ones(3)]
    with pytest.raises(tcl.ArgumentError, match=r"parameters= has to be a dict .* not list"):
        tcl.torch.Module(LOOKUP, "lookup", parameters=unnamed)
    with pytest.raises(tcl.ArgumentError, match=r"input .T. of lookup is float32, but a tensor of"):
        made(T=torch.ones(2, 3, dtype=torch.float64))
    with pytest.raises(tcl.ArgumentError, match="modules already have an attribute 'type'"):
        made(type=torch.ones(3))
    with pytest.raises(tcl.ArgumentError, match=r"takes 2 inputs \(I, type\), but 1 was given"):
        made(T=torch.ones(2, 3))(torch.ones(1))
