"""What tests of the original's interface share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import tcl.tensor_comprehensions as tc


@pytest.fixture
def quiet() -> Iterator[None]:
    """The same random tensors in every run, and nothing told of compiling and tuning."""
    torch.manual_seed(0)
    tc.SILENT = True
    yield
    tc.SILENT = False
