"""The arguments of a user's kernel while candidates run on them.

The kernel's arrays are the user's own. What they hold before is kept; the first run says what they
hold after, and every candidate has to do the same. In the end they hold what one run leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
from tcl.common.shown import shown
from tcl.tuner.measure.correctness import EPSILON, Array, Expected

_DEPTH = 100
"""Roundings, one after the other, that may differ from the first run: of sums in another order."""


class Arrays(Protocol):
    """What is done to arrays where they lie."""

    def is_array(self, value: object) -> bool:
        """Whether it is an array that the kernel takes the address of."""

    def interface(self, array: Any) -> dict[str, Any]:
        """How it lies in memory, as ``__array_interface__``."""

    def writable(self, array: Any) -> bool:
        """Whether it can be written to."""

    def copy(self, array: Any) -> Any:
        """Its contents, in the same memory."""

    def restore(self, array: Any, copy: Any) -> None:
        """Give it contents that were copied."""

    def fill(self, array: Any, value: float) -> None:
        """Give all elements one value."""

    def values(self, array: Any) -> Array:
        """Its contents in the host's memory, once all launches have ended."""


class Arguments:
    """Knows what one run makes of the arguments; gives them their contents again.

    ``outputs``: positions of the arrays that the kernel writes; None: those that the first run
    changes. ``tolerance``: relative difference from the first run that is allowed; None: what
    rounding explains after sums of some hundred terms in another order.
    """

    def __init__(
        self,
        values: Sequence[Any],
        arrays: Arrays,
        outputs: Sequence[int] | None,
        tolerance: float | None,
    ) -> None:
        self._arrays = arrays
        self._tolerance = tolerance
        self._own = {k: v for k, v in enumerate(values) if arrays.is_array(v)}
        for k, array in self._own.items():
            if has_gaps(arrays.interface(array)):
                raise ArgumentError(
                    f"argument {k} has gaps between its elements, or repeats some, so its "
                    "contents could not be restored after a kernel wrote to it; pass a copy "
                    "(ascontiguousarray), or the whole array that it is a part of"
                )
        if outputs is not None:
            for k in outputs:
                if k not in self._own or not arrays.writable(self._own[k]):
                    raise ArgumentError(
                        f"outputs names argument {k}, which is not a writable array; there "
                        f"{'is' if len(values) == 1 else 'are'} "
                        f"{plural(len(values), 'argument')}, counted from 0"
                    )
        self._named = None if outputs is None else frozenset(outputs)
        self._before = {k: arrays.copy(v) for k, v in self._own.items()}
        self._inputs: dict[int, Array] = {}
        self._expected: dict[int, Expected] = {}
        self._types: dict[int, np.dtype[Any]] = {}
        self._poisoned: list[int] = []
        self._restored: list[int] = []

    def learn(self, run: Callable[[], object]) -> None:
        """Run the kernel a few times, and see what it writes. ``run`` returns once that is done.
        Raises ``ArgumentError`` if it writes nothing, or what is not among the outputs."""
        before = {k: self._as_bytes(k) for k in self._own}
        run()
        after = {k: self._arrays.values(v).copy() for k, v in self._own.items()}
        self._types = {k: v.dtype for k, v in after.items()}
        changed = {k for k in self._own if not np.array_equal(_as_bytes(after[k]), before[k])}
        if self._named is None and not changed:
            changed = {k for k in self._own if self._overwrites(k, run)}
        written = sorted(changed if self._named is None else self._named)
        unnamed = sorted(changed.difference(written))
        if unnamed:
            raise ArgumentError(
                f"the first run changed argument {unnamed[0]}, which is not among outputs="
                f"{tuple(written)}; name all arrays that the kernel writes"
            )
        if not written:
            raise ArgumentError(
                "the first run changed none of the arguments, so the results of other "
                "candidates cannot be checked; name the arguments that the kernel writes, as "
                "outputs=(1,)"
            )
        self._inputs = {k: v for k, v in before.items() if k not in written}
        for k in written:
            whole = _comparable(after[k])
            expected = Expected.from_array(f"argument {k}", whole, _DEPTH, than="the first run")
            if self._tolerance is not None and expected.relative:
                expected = replace(expected, relative=self._tolerance)
            self._expected[k] = expected
        self._restored = written
        for k in written:
            if self._forgets(k, run):
                self._poisoned.append(k)
        self._restored = [k for k in written if k not in self._poisoned]

    def _holds_floats(self, position: int) -> bool:
        """Integers may be subscripts, and are not tried with what is none."""
        type_ = self._types[position]
        return type_.kind in "fc" or type_.name in EPSILON

    def _overwrites(self, position: int, run: Callable[[], object]) -> bool:
        """Whether a run writes to an array that held already what it writes."""
        array = self._own[position]
        if not self._holds_floats(position) or not self._arrays.writable(array):
            return False
        self.restore()
        self._arrays.fill(array, math.nan)
        before = self._as_bytes(position)
        run()
        changed = not np.array_equal(self._as_bytes(position), before)
        self.restore()
        return changed

    def _forgets(self, position: int, run: Callable[[], object]) -> bool:
        """Whether what an output held before makes no difference."""
        array = self._own[position]
        if not self._holds_floats(position):
            return False
        self.restore()
        self._arrays.fill(array, math.nan)
        run()
        return self.mismatch() is None

    @property
    def accumulates(self) -> bool:
        """Whether a run depends on what outputs held before: then they are restored before each."""
        return bool(self._restored)

    def restore(self) -> None:
        """What the arrays held at first."""
        for k, copy in self._before.items():
            if self._arrays.writable(self._own[k]):
                self._arrays.restore(self._own[k], copy)

    def ready(self) -> None:
        """Before a run that is compared: what outputs held that matters, and in the others poison,
        so that elements show that are not written."""
        self.restore()
        for k in self._poisoned:
            self._arrays.fill(self._own[k], math.nan)

    def renew(self) -> None:
        """Before a run that is timed."""
        for k in self._restored:
            self._arrays.restore(self._own[k], self._before[k])

    def mismatch(self) -> str | None:
        """What is wrong after one run, in a sentence; None if nothing is."""
        for k, bytes_ in self._inputs.items():
            if not np.array_equal(self._as_bytes(k), bytes_):
                return f"argument {k} was changed, but the first run does not change it"
        for k, expected in self._expected.items():
            wrong = expected.mismatch(_comparable(self._arrays.values(self._own[k])))
            if wrong is not None:
                return wrong
        return None

    def _as_bytes(self, position: int) -> Array:
        return _as_bytes(self._arrays.values(self._own[position])).copy()


def has_gaps(interface: dict[str, Any]) -> bool:
    """Whether there is memory between an array's elements, or some lie where others do. ``strides``
    of None are those of row-major arrays."""
    shape, strides = interface["shape"], interface.get("strides")
    if strides is None or 0 in shape:
        return False
    expected = int(interface["typestr"][2:])
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1 and stride != expected:
            return True
        expected *= extent
    return False


def _comparable(values: Array) -> Array:
    """Complex numbers as pairs."""
    if values.dtype.kind != "c":
        return values
    return np.ascontiguousarray(values).view(values.real.dtype)


def _as_bytes(values: Array) -> Array:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def positions(outputs: object, count: int) -> tuple[int, ...] | None:
    """Positions among so many arguments. Raises ``ArgumentError``."""
    if outputs is None:
        return None
    given = outputs if isinstance(outputs, tuple | list) else (outputs,)
    for each in given:
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < count:
            raise ArgumentError(
                f"outputs must be positions among the {plural(count, 'argument')}, counted from "
                f"0, not {shown(outputs)}"
            )
    return tuple(dict.fromkeys(given))
