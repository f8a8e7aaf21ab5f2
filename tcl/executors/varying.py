"""Executors of a def whose sizes vary: those of a class of sizes share one kernel.

Sizes that no class holds (0, and those for which what is right depends on the value) have kernels
of their own, as all sizes have of which nobody said that they vary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tcl.arrays.arguments import Wanted
from tcl.arrays.given import Given
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher, address_of
from tcl.codegen.cpu.run.varying import ready_for_all
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.executors.calls import Calls, Strides
from tcl.executors.executor import Executor
from tcl.executors.other_sizes import OtherSizes
from tcl.executors.size_classes import ForAll
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.grammar.sizes.varying import calculator, formula


@dataclass(slots=True)
class Class:
    """Sizes that one kernel is for, and the kernel."""

    all_: ForAll
    options: MappingOptions
    threads: int
    asked: bool
    """Whether a caller gave the options."""
    _at: Callable[[Mapping[str, int]], tuple[Any, ...]] = field(init=False)
    """Gives all sizes, shapes and first indices of tensors, and strides of row-major arrays."""
    _codes: dict[bool, LoadedClass] = field(default_factory=dict)
    """By whether subscripts are unchecked."""

    def __post_init__(self) -> None:
        sized, checked = self.symbolic, self.symbolic.checked
        boxes = (
            {t: tuple(map(formula, box)) for t, box in found.items()}
            for found in (sized.shapes, sized.origins)
        )
        steps = tuple(
            tuple(map(formula, row_major(sized.shapes[t.name], t.type.itemsize)))
            for t in checked.inputs + checked.outputs
        )
        sizes = {name: formula(n) for name, n in sized.sizes.items()}
        self._at = calculator((sizes, *boxes, steps))

    @property
    def classes(self) -> Mapping[str, SizeClass]:
        """Those of the sizes that vary, by their names."""
        return self.all_.classes

    @property
    def symbolic(self) -> SizedDef:
        """The definition with formulas for sizes."""
        return self.all_.symbolic

    def sized(self, sizes: Mapping[str, int]) -> tuple[SizedDef, Strides]:
        """The def for some of the sizes, as far as a call needs it, and the strides of row-major
        arrays."""
        all_, shapes, origins, steps = self._at(sizes)
        return SizedDef(self.symbolic.checked, all_, shapes, origins, ()), steps

    def compile(self, sizes: Mapping[str, int]) -> None:
        """Make the kernel, whose first call is for these sizes."""
        self.launcher(sizes, unchecked=False)

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, others: OtherSizes | None
    ) -> Calls[Any]:
        """The executor for some of the sizes."""
        return VaryingExecutor(self, sizes, wanted, others)

    def code(self, *, unchecked: bool) -> LoadedClass | None:
        """The code for row-major arrays, if there is one."""
        return self._codes.get(unchecked)

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
            code = self._codes[unchecked] = LoadedClass(made, self.symbolic)
        return code.at(sizes)


class LoadedClass:
    """The code of a class in this process."""

    def __init__(self, code: KernelCode, symbolic: SizedDef) -> None:
        """``symbolic``: the def for all sizes. Raises ``CompileError`` for code that cannot be
        loaded."""
        checked = symbolic.checked
        self._latest = Launcher(code, [t.name for t in checked.inputs + checked.outputs])
        """At the sizes that came up last."""
        self._at = code.by_size()
        shapes = {name: tuple(map(formula, shape)) for name, shape in symbolic.shapes.items()}
        inputs = tuple(shapes[t.name] for t in checked.inputs)
        outputs = tuple(
            (["*", t.type.itemsize, *shapes[t.name]], shapes[t.name]) for t in checked.outputs
        )
        self.needs = calculator((inputs, outputs, *code.needs()))
        """For some of the sizes: the inputs' shapes, the outputs' bytes and shapes, and what
        ``run`` takes."""

    def at(self, sizes: Mapping[str, int]) -> Launcher:
        """What runs it. Whether that takes long is told by the last one, until its first call."""
        self._latest = found = self._latest.at(self._at(sizes))
        return found

    def run(
        self,
        sizes: Mapping[str, int],
        arrays: Sequence[Any],
        words: Sequence[int],
        scratch: Sequence[int],
    ) -> None:
        """Run at some of the sizes on row-major arrays, without a launcher for these sizes:
        ``words`` are the sizes as the code takes them, ``scratch`` the bytes of its arrays. Raises
        ``IndexError``, as the kernel does."""
        failed = self._latest.run([address_of(array) for array in arrays], words, scratch)
        if failed is not None:
            raise self.at(sizes).failed(failed)


def row_major(shape: Sequence[int], itemsize: int) -> list[int]:
    """The strides, in bytes, of an array that is not empty."""
    return [itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def lies_so(sized: SizedDef, strides: Strides, row_major: Strides) -> bool:
    """Whether arrays of these strides are row-major: those of single points do not matter."""
    tensors = sized.checked.inputs + sized.checked.outputs
    return strides == row_major or all(
        extent <= 1 or stride == step
        for tensor, given, steps in zip(tensors, strides, row_major, strict=True)
        for extent, stride, step in zip(sized.shapes[tensor.name], given, steps, strict=True)
    )


class OfClass:
    """An executor for some sizes of a class."""

    _sized: SizedDef

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        if not self._sized.statements:  # a call needs none of what takes longest to find out
            shapes = {t.name: self._sized.shapes[t.name] for t in self._sized.checked.inputs}
            self._sized = infer(self._sized.checked, shapes)
        return self._sized


class VaryingExecutor(OfClass, Executor):
    """As ``OfClass``, on the CPU."""

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
        self._tells = None if self._others is None else self._others.tells(sizes)
        # Sizes that vary may never come again.
        self._remembers = others is not None and others.come_again(sizes)

    def __reduce__(self) -> tuple[object, ...]:
        return Executor, (self.sized, self._chosen, self._most, self._wanted)

    @property
    def serves(self) -> ForAll:
        """What its kernel is for."""
        return self._class.all_

    def largest_of_kind(self, *, unchecked: bool) -> tuple[SizedDef, Launcher]:
        """The def, as far as calls need it, and the kernel at the largest sizes of the class that
        are of the same kind as these (``kind_of``)."""
        sizes = {}
        for name, size in self._sizes.items():
            class_ = self.serves.classes[name]
            most = min(class_.most, (1 << size.bit_length()) - 1)
            sizes[name] = most - most % class_.multiple
        return self._class.sized(sizes)[0], self._class.launcher(sizes, unchecked=unchecked)

    def at_other_sizes(self, inputs: tuple[Any, ...], outputs: Any, unchecked: object) -> Any:
        return None if self._others is None else self._others(inputs, outputs, unchecked)

    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        found = super()._first(given, outputs, unchecked, places)
        self._remembers = True
        if self._others is not None:
            self._others.called(self._sizes)
        return found

    def kernel(self, strides: Strides, *, unchecked: bool = False) -> Launcher:
        """The class's kernel for row-major arrays, one of their own for others."""
        if not lies_so(self._sized, strides, self._row_major):
            self._sized = self.sized
            return super().kernel(strides, unchecked=unchecked)
        return self._kept(
            self._kernels,
            (unchecked, strides),
            lambda _: self._class.launcher(self._sizes, unchecked=unchecked),
        )
