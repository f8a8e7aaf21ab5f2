"""Arrays of NumPy's subclasses: kernels see the memory itself, whatever a class says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl

Array = np.ndarray[Any, np.dtype[Any]]

ADD = "def add(float(M, N) A, float(M, N) B) -> (C) { C(m, n) = A(m, n) + B(m, n) }"


class Lying(np.ndarray[Any, np.dtype[Any]]):
    """Says of itself what it is told to say."""

    lies: dict[str, Any] = {}  # noqa: RUF012

    def __getattribute__(self, name: str) -> Any:
        lies = object.__getattribute__(self, "lies")
        return lies[name] if name in lies else super().__getattribute__(name)


def lying(array: Array, **lies: Any) -> Array:
    liar = array.view(Lying)
    liar.lies = lies
    return liar


FAR = 1 << 40
LIES: list[dict[str, Any]] = [
    {"strides": (FAR, 4)},
    {"strides": (-FAR, -FAR)},
    {"strides": (0, 0)},
    {"__array_interface__": {"data": (FAR, False)}},
    {"ctypes": None},
    {"dtype": np.dtype(np.float64)},
    {"dtype": np.dtype(np.int32)},
    {"itemsize": 64},
    {"nbytes": 0},
    {"size": 0},
    {"ndim": 7},
    {"flags": None},
    {"shape": (50, 70)},
    {"base": None},
]


@pytest.mark.parametrize("lies", LIES, ids=lambda lies: "-".join(lies))
@pytest.mark.parametrize("position", [0, 1, 2])
def test_what_a_subclass_says_of_its_memory(lies: dict[str, Any], position: int) -> None:
    arrays = [np.full((5, 7), k + 1, np.float32) for k in range(3)]
    seen = [lying(a, **lies) if k == position else a for k, a in enumerate(arrays)]
    for add in (tcl.define(ADD).add, tcl.compile(ADD, "add", "naive", *arrays[:2])):
        for _ in range(2):
            arrays[2][...] = 0
            found = add(*seen[:2], outputs=(seen[2],))
            assert found is seen[2]
            assert (arrays[2] == 3).all()


def test_a_read_only_output_that_says_otherwise() -> None:
    A, C = np.ones((5, 7), np.float32), np.zeros((5, 7), np.float32)
    flags = C.flags
    frozen = C[...]
    frozen.flags.writeable = False
    with pytest.raises(tcl.ArgumentError, match="read-only"):
        tcl.define(ADD).add(A, A, outputs=(lying(frozen, flags=flags),))


def test_an_overlap_that_is_hidden() -> None:
    A = np.ones((5, 7), np.float32)
    with pytest.raises(tcl.ArgumentError, match="overlaps input 'A'"):
        tcl.define(ADD).add(A, A.copy(), outputs=(lying(A, strides=(FAR, FAR)),))


class StandIn:
    """``isinstance`` takes it for an array."""

    __class__ = np.ndarray  # type: ignore[assignment]

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self._array


def test_a_stand_in_for_an_array() -> None:
    A = np.ones((5, 7), np.float32)
    stand_in: Any = StandIn(A)
    result = tcl.define(ADD).add(stand_in, A)
    assert (np.asarray(result) == 2).all()
    with pytest.raises(tcl.ArgumentError, match="has to be a NumPy array, not StandIn"):
        tcl.define(ADD).add(A, A, outputs=(StandIn(A.copy()),))


def test_maps_of_files_and_matrices(tmp_path: Path) -> None:
    A = np.arange(35, dtype=np.float32).reshape(5, 7)
    A.tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.float32, "r", shape=(5, 7))
    target = np.memmap(tmp_path / "c", np.float32, "w+", shape=(5, 7))
    add = tcl.define(ADD).add
    assert add(mapped, A.view(np.matrix), outputs=(target,)) is target
    target.flush()
    np.testing.assert_array_equal(np.fromfile(tmp_path / "c", np.float32).reshape(5, 7), A + A)
    with pytest.raises(tcl.ArgumentError, match="read-only"):
        add(A, A, outputs=(mapped,))


@pytest.mark.parametrize("mask", [False, np.ma.nomask, True])
def test_a_mask_is_never_ignored(mask: Any) -> None:
    A = np.ones((5, 7), np.float32)
    masked = np.ma.masked_array(A.copy(), mask)
    for arguments, outputs in (((masked, A), None), ((A, A), (masked,)), ((A, A), masked)):
        with pytest.raises(tcl.ArgumentError, match="is a masked array"):
            tcl.define(ADD).add(*arguments, outputs=outputs)
