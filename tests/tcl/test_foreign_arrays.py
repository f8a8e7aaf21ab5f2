"""JAX's arrays, and those of whatever hands its memory over by DLPack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.common.errors import ArgumentError

Array = np.ndarray[Any, np.dtype[Any]]

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
TWO = "def two({0}(N) X) -> (Y, Z) {{ Y(i) = X(i)  Z(i) = X(i) }}"


def rand(*shape: int) -> Array:
    return np.random.default_rng(3).integers(-4, 5, shape).astype(np.float32)


class Exported:
    """An array of another library: DLPack is all that it knows."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **settings: Any) -> Any:
        return self.array.__dlpack__(**settings)


class Spaced(Exported):
    """One of a library with a namespace."""

    def __array_namespace__(self, **_: object) -> Any:
        return SPACE


SPACE: Any = SimpleNamespace(
    __name__="space", from_dlpack=lambda array: Spaced(np.from_dlpack(array))
)


def test_dlpack_in_numpy_out() -> None:
    T = tcl.define(MM)
    a, b = rand(5, 6), rand(6, 7)
    out = np.zeros((5, 7), np.float32)
    for _ in range(3):
        for given in ((Exported(a), Exported(b)), (a, Exported(b)), (Exported(a[:, ::-1]), b)):
            found = T.mm(*given)
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, np.from_dlpack(given[0]) @ b)
        written = Exported(out)
        assert T.mm(Exported(a), b, outputs=(written,)) is written
        np.testing.assert_array_equal(out, a @ b)
        out[...] = 0


def test_dlpack_with_a_namespace_goes_back_there() -> None:
    T = tcl.define(MM)
    a, b = rand(5, 6), rand(6, 7)
    out = np.zeros((5, 7), np.float32)
    for _ in range(2):
        found = T.mm(Spaced(a), Spaced(b))
        assert type(found) is Spaced
        np.testing.assert_array_equal(found.array, a @ b)
        written = Spaced(out)
        assert T.mm(Spaced(a), Spaced(b), outputs=written) is written
        np.testing.assert_array_equal(out, a @ b)
        with pytest.raises(ArgumentError, match="'A' of mm is a NumPy array, but 'B' is an"):
            T.mm(a, Spaced(b))


def test_dlpack_that_does_not_fit() -> None:
    T = tcl.define(MM)
    a, b = rand(5, 6), rand(6, 7)
    frozen = np.zeros((5, 7), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="output 'C' of mm is read-only"):
        T.mm(a, b, outputs=(Exported(frozen),))
    far = Exported(a)
    far.__dlpack_device__ = lambda: (8, 0)  # type: ignore[method-assign]
    with pytest.raises(ArgumentError, match="'A' of mm lies on a device of a kind"):
        T.mm(far, b)
    with pytest.raises(ArgumentError, match="'A' of mm does not provide its memory by DLPack"):
        T.mm(Exported(None), b)
    with pytest.raises(ArgumentError, match="'A' of mm is float32, but an array of float64"):
        T.mm(Exported(a.astype("d")), b)


@pytest.mark.parametrize("type_", ["float", "float16", "bfloat16", "uint8", "bool", "int32"])
@pytest.mark.parametrize("size", [0, 1, 100])
def test_jax_in_jax_out(type_: str, size: int) -> None:
    jax = pytest.importorskip("jax")
    T: Any = tcl.define(TWO.format(type_))
    dtype = {"float": "float32", "bool": "bool_"}.get(type_, type_)
    x = jax.numpy.arange(size).astype(dtype)
    for _ in range(3):
        found = T.two(x)
        for each in (*found, T.two(x, wanted="Z")):
            assert isinstance(each, jax.Array) and each.dtype == x.dtype
            assert each.devices() == x.devices()
            assert (each == x).all()
        assert found._fields == ("Y", "Z")
    if size == 100:
        assert all(each.unsafe_buffer_pointer() % 64 == 0 for each in found)


def test_jax_with_numbers_and_strides() -> None:
    jax = pytest.importorskip("jax")
    T = tcl.define("def scale(float(M, N) A, float s) -> (C) { C(i, j) = A(i, j) * s }")
    x = jax.numpy.arange(6.0).reshape(2, 3)
    for number in (2, 2.0, np.float32(2), jax.numpy.float32(2)):
        assert (T.scale(x.T, number) == 2 * x.T).all()


def test_what_a_jax_array_may_not_be() -> None:
    jax = pytest.importorskip("jax")
    T = tcl.define(TWO.format("float"))
    x = jax.numpy.ones(3)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"'Y' of two is a JAX array.*leave out outputs="):
            T.two(x, outputs=(x, x))
        with pytest.raises(
            ArgumentError, match=r"'X' of two is a placeholder .*use tcl\.jax\.call"
        ):
            jax.jit(lambda a: T.two(a))(x)
        with pytest.raises(ArgumentError, match=r"a JAX array of int32 was given.*\.astype\("):
            T.two(x.astype("int32"))
        with pytest.raises(ArgumentError, match="output 'Y' of two is a NumPy array, but 'X' is a"):
            T.two(x, outputs=(np.ones(3, np.float32),) * 2)
        T.two(x)
    gone = jax.numpy.ones(3)
    gone.delete()
    with pytest.raises(ArgumentError, match="input 'X' of two was deleted"):
        T.two(gone)
    with pytest.raises(ArgumentError, match="input 'X' of two has no memory that can be read"):
        T.two(jax.random.key(0))
    wide = tcl.define("def f(float(N) X) -> (Y) { Y(i) = double(X(i)) }")
    with pytest.raises(
        ArgumentError, match="output 'Y' of f is float64, which JAX supports only after"
    ):
        wide.f(x)


_DEVICES = """
import jax, numpy as np, tcl
T = tcl.define("def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }")
one, other = jax.devices()
a, b = (jax.device_put(np.ones(4, np.float32), d) for d in (one, other))
assert T.add(b, b).devices() == {other} and T.add(b, b)[0] == 2
mesh = jax.sharding.Mesh(np.array([one, other]), "x")
spread = jax.device_put(a, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))
for arguments in ((a, b), (spread, a)):
    try:
        T.add(*arguments)
    except tcl.ArgumentError as error:
        print(error)
"""


def test_devices_of_jax(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-c", _DEVICES],
        env={
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
            "TCL_CACHE_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    first, second = done.stdout.splitlines() or [done.stderr, ""]
    assert "input 'B' of add is on cpu:1, but 'A' on cpu:0; all arrays" in first
    assert "input 'A' of add is on several devices" in second and "jax.device_put" in second


_LIGHT = """
import sys, numpy as np, tcl
T = tcl.define("def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }")
for _ in range(3):
    T.add(np.ones(4, "f"), np.ones(4, "f"))
try:
    T.add([1.0], object())
except tcl.ArgumentError:
    pass
print([name for name in ("torch", "jax", "cupy", "opt_einsum") if name in sys.modules])
"""


def test_libraries_are_not_imported_for_arrays_of_others(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIGHT],
        env={"TCL_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
