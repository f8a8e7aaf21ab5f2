"""Executors of a def whose sizes vary: those of a class of sizes share one kernel.

A class has as many sizes as one kernel serves well: those of a bucket, in which sizes are alike
enough for the same options, and that are multiples of what vectors ask for, or any. Sizes that no
class holds (0, and those for which what is right depends on the value) have kernels of their own,
as all sizes have of which nobody said that they vary.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcl.arrays.arguments import Wanted
from tcl.arrays.given import Given
from tcl.arrays.random_inputs import input_shape
from tcl.codegen.common.errors import ArgumentError, CompileError, OptionsError
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.varying import ready_for_all
from tcl.codegen.loopir.ir import IRError
from tcl.codegen.options.options import MappingOptions
from tcl.executors.calls import Strides
from tcl.executors.executor import Executor
from tcl.executors.other_sizes import OtherSizes
from tcl.grammar.checked import CheckedDef
from tcl.grammar.closest import closest
from tcl.grammar.errors import SourceError
from tcl.grammar.log import logger
from tcl.grammar.ranges import infer
from tcl.grammar.shown import shown
from tcl.grammar.sized import SizedDef
from tcl.grammar.varying import Size, Undecided, calculator, formula
from tcl.selection.suggested_options import Chosen, applied

_log = logger("executors")

_BUCKETS = (1, 1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 31)
"""Where buckets begin and the last one ends. Options that are good for a size are good for others
of the same order of magnitude; a finer division would compile more and gain little."""

_MULTIPLE = 16
"""Sizes that this divides have no ragged ends: it is what the widest vectors of floats hold, and
a line of the cache."""


def check_varying(varying: object, defs: Collection[CheckedDef]) -> tuple[str, ...]:
    """Names of sizes that vary; ``ArgumentError`` for one that no def of the text has."""
    if isinstance(varying, str) or not isinstance(varying, Sequence):
        raise ArgumentError(
            f'varying has to be names of sizes, as in varying=("N",), not {shown(varying)}'
        )
    known = dict.fromkeys(name for definition in defs for name in definition.sizes)
    for name in varying:
        if name not in known:
            near = closest(name, known) if isinstance(name, str) else None
            hint = f"did you mean '{near}'?" if near else f"there are: {', '.join(known) or 'none'}"
            raise ArgumentError(f"varying: no def has a size {shown(name)}; {hint}")
    return tuple(dict.fromkeys(varying))


@dataclass(slots=True)
class Class:
    """Sizes that one kernel is for, and the kernel."""

    symbolic: SizedDef
    options: MappingOptions
    threads: int
    asked: bool
    """Whether a caller gave the options."""
    _at: Callable[[Mapping[str, int]], tuple[Any, ...]] = field(init=False)
    """Gives all sizes, shapes and first indices of tensors, and strides of row-major arrays."""
    _codes: dict[bool, Code] = field(default_factory=dict)
    """By whether subscripts are unchecked."""

    def __post_init__(self) -> None:
        sized, checked = self.symbolic, self.symbolic.checked
        boxes = (
            {t: tuple(map(formula, box)) for t, box in found.items()}
            for found in (sized.shapes, sized.origins)
        )
        steps = tuple(
            tuple(map(formula, _row_major(sized.shapes[t.name], t.type.itemsize)))
            for t in checked.inputs + checked.outputs
        )
        sizes = {name: formula(n) for name, n in sized.sizes.items()}
        self._at = calculator((sizes, *boxes, steps))

    def sized(self, sizes: Mapping[str, int]) -> tuple[SizedDef, Strides]:
        """The def for some of the sizes, as far as a call needs it, and the strides of row-major
        arrays."""
        all_, shapes, origins, steps = self._at(sizes)
        return SizedDef(self.symbolic.checked, all_, shapes, origins, ()), steps

    def known(self, sizes: Mapping[str, int], *, unchecked: bool) -> Launcher | None:
        """The kernel for some of the sizes and row-major arrays, if there is one."""
        code = self._codes.get(unchecked)
        return None if code is None else code.at(sizes)

    def launcher(self, sizes: Mapping[str, int], *, unchecked: bool) -> Launcher:
        """The kernel for some of the sizes and row-major arrays."""
        code = self._codes.get(unchecked)
        if code is None:
            made = ready_for_all(
                self.symbolic,
                self.options,
                unchecked=unchecked,
                threads=self.threads,
                asked=self.asked,
            )
            checked = self.symbolic.checked
            code = Code(made, [t.name for t in checked.inputs + checked.outputs])
            self._codes[unchecked] = code
        return code.at(sizes)


class Code:
    """The code of a class in this process."""

    def __init__(self, code: KernelCode, names: Sequence[str]) -> None:
        """``names`` are those of the arguments. Raises ``CompileError`` for code that cannot be
        loaded."""
        self._latest = Launcher(code, names)
        """At the sizes that came up last."""
        self._at = code.by_size()

    def at(self, sizes: Mapping[str, int]) -> Launcher:
        """What runs it. Whether that takes long is told by the last one, until its first call."""
        self._latest = found = self._latest.at(self._at(sizes))
        return found


def _row_major(shape: Sequence[int], itemsize: int) -> list[int]:
    """The strides, in bytes, of an array that is not empty."""
    return [itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


class VaryingExecutor(Executor):
    """The executor for some sizes of a class."""

    def __init__(
        self,
        class_: Class,
        sizes: Mapping[str, int],
        wanted: Wanted,
        others: OtherSizes | None,
    ) -> None:
        """``others`` does calls at other sizes; None if all of them have to be looked at."""
        sized, self._row_major = class_.sized(sizes)
        super().__init__(sized, class_.options, class_.threads, wanted)
        self._class, self._sizes = class_, sizes
        self._others = others if wanted is None else None
        # Sizes that vary may never come again.
        self._remembers = others is not None and others.latest == sizes

    def __reduce__(self) -> tuple[object, ...]:
        return Executor, (self.sized, self._chosen, self._most, self._wanted)

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        if not self._sized.statements:  # a call needs none of what takes longest to find out
            shapes = {t.name: self._sized.shapes[t.name] for t in self._sized.checked.inputs}
            self._sized = infer(self._sized.checked, shapes)
        return self._sized

    def at_other_sizes(self, inputs: tuple[Any, ...], outputs: Any, unchecked: object) -> Any:
        return None if self._others is None else self._others(inputs, outputs, unchecked)

    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        found = super()._first(given, outputs, unchecked, places)
        self._remembers = True
        if self._others is not None:
            self._others.latest = self._sizes
        return found

    def kernel(self, strides: Strides, *, unchecked: bool = False) -> Launcher:
        """The class's kernel for row-major arrays, one of their own for others."""
        if strides != self._row_major and not self._lies_so(strides):
            self._sized = self.sized
            return super().kernel(strides, unchecked=unchecked)
        return self._kept(
            self._kernels,
            (unchecked, strides),
            lambda _: self._class.launcher(self._sizes, unchecked=unchecked),
        )

    def _lies_so(self, strides: Strides) -> bool:
        """Whether arrays of these strides are row-major: those of single points do not matter."""
        checked = self._sized.checked
        return all(
            extent <= 1 or stride == step
            for tensor, given, steps in zip(
                checked.inputs + checked.outputs, strides, self._row_major, strict=True
            )
            for extent, stride, step in zip(
                self._sized.shapes[tensor.name], given, steps, strict=True
            )
        )


class Family:
    """The classes of one def that agree in all sizes that do not vary."""

    def __init__(
        self,
        definition: CheckedDef,
        varying: Sequence[str],
        threads: int,
        *,
        asked: bool,
        strict: bool,
    ) -> None:
        """``asked``: whether a caller gives the options; ``strict``: whether all sizes have to be
        looked at."""
        self._definition, self._varying, self._threads = definition, varying, threads
        self._asked = asked
        self._others = None if strict else OtherSizes(definition, varying, self._found)
        self._classes: dict[tuple[tuple[int, int, int], ...], Class | None] = {}
        """By multiple, least and most of each size that varies; None where no kernel can be for
        all of them."""

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, choose: Callable[[], Chosen]
    ) -> VaryingExecutor | None:
        """The executor for some sizes; None if they have to have a kernel of their own. ``choose``
        gives the options for a new class."""
        values = {name: sizes[name] for name in self._varying}
        for limits in _classes(values):
            if limits not in self._classes:
                self._classes[limits] = self._made(sizes, limits, choose)
            found = self._classes[limits]
            if found is not None:
                return VaryingExecutor(found, values, wanted, self._others)
        return None

    def _found(self, values: Mapping[str, int]) -> Class | None:
        """The class of these sizes, if it has a kernel."""
        found = (self._classes.get(limits) for limits in _classes(values))
        return next((each for each in found if each is not None), None)

    def _made(
        self,
        sizes: Mapping[str, int],
        limits: Sequence[tuple[int, int, int]],
        choose: Callable[[], Chosen],
    ) -> Class | None:
        chosen = choose()  # which refuses sizes that no kernel can be for
        symbols = {
            name: Size.of(
                name, multiple=multiple, least=least, most=most, value=_usual(multiple, least, most)
            )
            for name, (multiple, least, most) in zip(self._varying, limits, strict=True)
        }
        shapes = {t.name: input_shape(t, {**sizes, **symbols}) for t in self._definition.inputs}
        try:
            symbolic = infer(self._definition, shapes)

            def made(options: MappingOptions) -> Class:
                found = Class(symbolic, options, self._threads, self._asked)
                found.launcher({n: int.__pos__(s) for n, s in symbols.items()}, unchecked=False)
                return found

            return applied(chosen, made)[1]
        except (Undecided, SourceError, OptionsError, CompileError, IRError) as reason:
            # Whatever is in the way, a kernel for the sizes at hand can be made, or says what is
            # wrong with them.
            _log.info("%s: no kernel for all of %s: %s", self._definition.name, limits, reason)
            return None


def _classes(values: Mapping[str, int]) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """The classes in which sizes may be, by the limits of each: larger ones first."""
    if all(_BUCKETS[0] <= value < _BUCKETS[-1] for value in values.values()):
        for narrow in (False, True):
            yield tuple(_limits(value, narrow=narrow) for value in values.values())


def _limits(value: int, *, narrow: bool) -> tuple[int, int, int]:
    """What the sizes of a class are multiples of, the least and the most; ``narrow``: within a
    factor of two."""
    multiple = _MULTIPLE if value % _MULTIPLE == 0 else 1
    if narrow:
        least = 1 << (value.bit_length() - 1)
        return multiple, least, 2 * least - 1
    place = bisect_right(_BUCKETS, value)
    return multiple, _BUCKETS[place - 1], _BUCKETS[place] - 1


def _usual(multiple: int, least: int, most: int) -> int:
    """The size by which the options of a class are chosen: in its middle, and no more regular than
    all others of the class."""
    middle = 1 << ((least.bit_length() + most.bit_length()) // 2)
    return middle + multiple if least < middle + multiple <= most else least
