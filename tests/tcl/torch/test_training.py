"""The network of ``examples/train_network.py`` learns as that of torch's layers does."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from places import EXAMPLES


@pytest.mark.slow
def test_200_steps() -> None:
    spec = importlib.util.spec_from_file_location("network", EXAMPLES / "train_network.py")
    assert spec is not None and spec.loader is not None
    network = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    mine, other = (network.learn(run, 200, 8, 64) for run in (network.ours(), network.theirs))
    np.testing.assert_allclose(mine, other, atol=1e-4)
    assert mine[-1] < 0.1 < 1 < mine[0]
