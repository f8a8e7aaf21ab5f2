"""The CPU backend: every type, cast, operator and built-in."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import LANES, NAIVE, run
from strategies import numpy_type
from value_cases import Key, all_cases, check_outputs

from tcl.codegen.devices.cpu import host_cpu, narrowed


@pytest.mark.parametrize("key", [pytest.param(key, id=" ".join(key)) for key in all_cases()])
def test_values(key: Key) -> None:
    """Of lanes and of scalars, and where 16-bit floats are converted by instructions or without."""
    case, soft = all_cases()[key], narrowed(host_cpu(), "-f16c")
    for options, device in ((LANES, None), (NAIVE, soft), (LANES, soft), (NAIVE, None)):
        if device is None or key[0] in ("casts", "rounded"):
            check_outputs(key, run(case.text, *case.inputs, options=options, device=device))
        if key[0] == "domain":
            break


@pytest.mark.parametrize("native", [True, False], ids=["native", "software"])
def test_float16_bits_both_ways(native: bool) -> None:
    """All 65536 values survive; every float32 near a tie of two of them rounds as NumPy does."""
    device = host_cpu()
    if not native:
        device = narrowed(device, "-f16c")
    bits = np.arange(2**16, dtype=np.uint16)
    wide = "def f(float16(N) a) -> (O) { O(i) = float32(a(i)) }"
    narrow = "def f(float32(N) a) -> (O) { O(i) = float16(a(i)) }"
    (got,) = run(wide, bits.view(np.float16), options=LANES, device=device)
    expected = bits.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    finite = np.sort(expected[np.isfinite(expected)]).astype(np.float64)
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    infinity = np.float32(np.inf)
    near = np.concatenate([ties, np.nextafter(ties, infinity), np.nextafter(ties, -infinity)])
    with np.errstate(all="ignore"):
        want = near.astype(np.float16)
    (got,) = run(narrow, near, options=LANES, device=device)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_bfloat16_rounds_to_nearest_even() -> None:
    import ml_dtypes

    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 20000, dtype=np.uint32)
    values[::3] = (values[::3] & 0xFFFF0000) | 0x8000  # ties
    floats = values.view(np.float32)
    (got,) = run("def f(float32(N) a) -> (O) { O(i) = bfloat16(a(i)) }", floats, options=LANES)
    with np.errstate(all="ignore"):
        want = floats.astype(ml_dtypes.bfloat16)
    nan = np.isnan(floats)
    np.testing.assert_array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])
    assert np.isnan(got[nan].astype(np.float32)).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_sums_round_once(name: str) -> None:
    """Even when tiles of the reduction are outside of the loops over the result."""
    ones = np.full((3, 5000), 0.25).astype(numpy_type(name))
    text = f"def f({name}(M, N) a) -> (O) {{ O(m) +=! a(m, n) }}"
    for options in (NAIVE, LANES, NAIVE.tile(2, 64).order(1, 0), NAIVE.tile(0, 7).vectorize(2)):
        (got,) = run(text, ones, options=options)
        np.testing.assert_array_equal(got.astype(np.float64), 1250.0 if name == "float16" else 1248)
