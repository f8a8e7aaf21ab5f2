"""Defs as functions of JAX arrays.

    mm = tcl.jax.call(source, "mm", backward="mm_grad")
    C = jax.jit(lambda A, B: jax.nn.relu(mm(A, B)))(A, B)

Inside this package ``import jax`` is JAX itself.
"""

from __future__ import annotations

from importlib.util import find_spec

from tcl.common.extras import installing

if find_spec("jax") is None:
    raise ImportError(f"tcl.jax needs the package jax; install it with {installing('jax')}")

from tcl.jax.function import Function as Function
from tcl.jax.function import call as call

__all__ = ["Function", "call"]
