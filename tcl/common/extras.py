"""The packages that only some users need, and how to get them."""

from __future__ import annotations

from typing import Literal

Extra = Literal[
    "bench",
    "bfloat16",
    "cuda",
    "cuda12",
    "cuda13",
    "distributed",
    "docs",
    "einsum",
    "examples",
    "jax",
    "plot",
    "test",
    "torch",
]
"""The extras of the distribution ``tensorcomp``, as ``setup.cfg`` declares them."""


def installing(extra: Extra) -> str:
    """What to type. It names no package index: ``tcl`` on it is another project."""
    return f"pip install '.[{extra}]' in a checkout of tensorcomp"
