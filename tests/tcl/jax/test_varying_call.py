"""``tcl.jax.call`` of a def whose sizes vary."""

from __future__ import annotations

import pickle

import jax
import numpy as np
import pytest

import tcl
from tcl.jax import call

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


def test_programs_of_a_class_share_a_kernel() -> None:
    mm = call(MM, "mm", varying=("M",), threads=1, relax="clock")
    rng = np.random.default_rng(0)
    b = rng.standard_normal((8, 24), np.float32)
    for m in (0, 1, 16, 17, 255):
        a = rng.standard_normal((m, 8), np.float32)
        np.testing.assert_allclose(mm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    stack = rng.standard_normal((3, 20, 8), np.float32)
    found = jax.vmap(pickle.loads(pickle.dumps(mm)), in_axes=(0, None))(stack, b)
    np.testing.assert_allclose(found, stack @ b, rtol=1e-4, atol=1e-4)


def test_unknown_sizes_are_refused() -> None:
    with pytest.raises(tcl.ArgumentError) as refused:
        call(MM, "mm", varying=("Q",))
    assert str(refused.value) == "varying: no def has a size 'Q'; there are: M, K, N"
