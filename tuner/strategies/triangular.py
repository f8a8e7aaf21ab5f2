"""The little linear algebra that a model needs.

Written with ``einsum``, which sums in one fixed order: the routines of a BLAS give other last
digits with another number of threads, and a search has to be the same wherever it is repeated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cholesky(matrix: Floats) -> Floats:
    """The lower triangle L with L Lᵀ = ``matrix``, which is symmetric and positive definite."""
    lower = np.tril(matrix)
    for j in range(len(lower)):
        lower[j:, j] -= np.einsum("ik,k->i", lower[j:, :j], lower[j, :j])
        lower[j:, j] /= np.sqrt(lower[j, j])
    return lower


def solve(lower: Floats, right: Floats) -> Floats:
    """X with L X = ``right``."""
    found = right.copy()
    for j in range(len(lower)):
        found[j] -= np.einsum("k,kq->q", lower[j, :j], found[:j])
        found[j] /= lower[j, j]
    return found


def inverse(lower: Floats) -> Floats:
    """The inverse of L Lᵀ."""
    half = solve(lower, np.eye(len(lower)))
    found: Floats = np.einsum("ki,kj->ij", half, half)
    return found
