"""The longer built-ins of float64: errors where their formulas change, and all numbers of lanes."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import oracles
import pytest
from cpu_kernels import NAIVE, run

from tcl.codegen.options.options import MappingOptions

Array = np.ndarray[Any, np.dtype[Any]]

RANGES: dict[str, list[tuple[float, float]]] = {
    "cyl_bessel_i0": [(-20, 20), (7.9, 8.1), (690, 712)],
    "cyl_bessel_i1": [(-20, 20), (7.9, 8.1), (690, 712)],
    "erfc": [(-6, 6), (0, 0.1), (20, 27.2)],
    "erfcinv": [(0, 2), (0, 1e-3), (9.6e-4, 9.7e-4), (0.99, 1.01), (1.999, 2)],
    "erfcx": [(-5, 5), (-26, 30), (1e3, 1e7)],
    "erfinv": [(-1, 1), (0.99, 1), (0.999, 0.9991)],
    "j0": [(-20, 20), (7.9, 8.1), (0, 2e6)],
    "j1": [(-20, 20), (7.9, 8.1), (0, 2e6)],
    "lgamma": [(0, 10), (0.4, 0.6), (0.99, 1.01), (1.99, 2.01), (2.9, 3.1), (7.9, 8.1), (8, 1e4)],
    "normcdf": [(-38, 9), (-1.1, -0.9), (-0.1, 0.1)],
    "normcdfinv": [(0, 1), (0, 1e-3), (0.49, 0.51), (0.999, 1)],
    "tgamma": [(0, 3), (0.99, 1.01), (100, 171.62), (-5, 0), (-170, -150)],
    "y0": [(0, 20), (0.8, 1), (7.9, 8.1), (0, 2e6)],
    "y1": [(0, 20), (2.1, 2.3), (7.9, 8.1), (0, 2e6)],
}  # fmt: skip
TINY = 2.0 ** -np.arange(0, 1020, 7.3)


@pytest.mark.parametrize("name", sorted(RANGES))
def test_errors_and_lanes(name: str) -> None:
    """Also of the smallest numbers, and of special ones; where lanes take different ways."""
    generator = np.random.default_rng(8)
    columns = [generator.uniform(low, high, 120) for low, high in RANGES[name]]
    x = generator.permutation(np.concatenate([*columns, TINY]))
    special = np.array(oracles.SPECIAL[name])[:, 0]
    x = np.concatenate([x, np.full(-(len(x) + len(special)) % 16, 0.25), special])
    text = f"def f(double(N) X) -> (O) {{ O(i) = {name}(X(i)) }}"
    (found,) = run(text, x, options=NAIVE)
    for lanes in (4, 8, 16):
        (other,) = run(text, x, options=MappingOptions().vectorize(lanes))
        same = (other.view(np.uint64) == found.view(np.uint64)) | (
            np.isnan(other) & np.isnan(found)
        )
        assert same.all(), f"{lanes} lanes: {name}({x[~same][0]!r})"
    with mp.workprec(oracles.PRECISION):
        worst, where = oracles.worst_error(name, [x[: -len(special)]], found)
    assert worst <= oracles.ORACLES[name].ulps[1], where


def test_the_logarithm_of_gamma_is_right_beside_its_zeros() -> None:
    step = 2.0 ** -np.arange(1, 53)
    x = np.concatenate([1 + step, 1 - step, 2 + step[:-1], 2 - step])
    (found,) = run("def f(double(N) X) -> (O) { O(i) = lgamma(X(i)) }", x)
    with mp.workprec(oracles.PRECISION):
        exact = [mp.loggamma(mp.mpf(float(v))) for v in x]
        errors = [abs(mp.mpf(float(g)) / e - 1) for g, e in zip(found, exact, strict=True)]
        assert max(errors) < 3 * 2.0**-53


def test_results_that_are_subnormal_or_overflow() -> None:
    x = np.array([171.62437695630271, 171.6243769563028, -175.5, -180.25, -183.9, -184.5, 5.6e-309])
    (found,) = run("def f(double(N) X) -> (O) { O(i) = tgamma(X(i)) }", x)
    with mp.workprec(oracles.PRECISION):
        exact = [float(mp.gamma(mp.mpf(float(v)))) for v in x]
    np.testing.assert_allclose(found, exact, rtol=1e-14, atol=2e-323)
    assert (np.signbit(found) == np.signbit(exact)).all()
    (found,) = run("def f(double(N) X) -> (O) { O(i) = erfcinv(X(i)) }", np.array([5e-324, 1e-310]))
    with mp.workprec(oracles.PRECISION):
        back = [mp.log(mp.erfc(mp.mpf(float(y)))) for y in found]
    np.testing.assert_allclose([float(b) for b in back], np.log([5e-324, 1e-310]), rtol=1e-14)
