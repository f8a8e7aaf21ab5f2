"""Executors of a def whose sizes vary: those of a class of sizes share one kernel.

Sizes that no class holds (0, and those for which what is right depends on the value) have kernels
of their own, as all sizes have of which nobody said that they vary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tcl.arrays.arguments import Wanted
from tcl.arrays.given import Given
from tcl.arrays.libraries import HOST
from tcl.codegen.compiler import Device
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher, address_of
from tcl.codegen.cpu.run.varying import ready_for_all
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.lazy import Lazy
from tcl.executors.calls import Calls, Strides
from tcl.executors.executor import Executor
from tcl.executors.other_sizes import OtherSizes
from tcl.executors.size_classes import NOT_FOR_ALL, ForAll, tell
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass, classes_of
from tcl.grammar.sizes.varying import calculator, formula
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.suggested_options import DEFAULT, Chosen, applied

if TYPE_CHECKING:
    from tcl.executors import cuda_executor
else:
    cuda_executor = Lazy("tcl.executors.cuda_executor")


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
    _codes: dict[tuple[bool, tuple[bool, ...]], Any] = field(default_factory=dict)
    """By whether subscripts are unchecked, and which arrays begin at multiples of ``WIDEST``, where
    kernels depend on that: what gives the kernel at some sizes; None where no kernel can be for
    all of them."""

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

    def compile(self) -> None:
        """Make the kernel for new arrays. Raises one of ``NOT_FOR_ALL``."""
        key = False, self._new()
        self._codes[key] = self._ready(*key)

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, others: OtherSizes | None
    ) -> Calls[Any]:
        return VaryingExecutor(self, sizes, wanted, others)

    def code(self, *, unchecked: bool) -> LoadedClass | None:
        """The code for row-major arrays, if there is one."""
        return self._codes.get((unchecked, ()))

    def launcher(
        self, sizes: Mapping[str, int], *, unchecked: bool, aligned: tuple[bool, ...] = ()
    ) -> Any:
        """The kernel for some of the sizes and row-major arrays; None if there is none."""
        key = unchecked, aligned
        if key not in self._codes:
            try:
                self._codes[key] = self._ready(*key)
            except NOT_FOR_ALL as reason:
                tell(self.symbolic.checked, self.classes, reason)
                self._codes[key] = None
        code = self._codes[key]
        return None if code is None else code(sizes)

    def _new(self) -> tuple[bool, ...]:
        """Which of new arrays begin so."""
        return ()

    def _ready(self, unchecked: bool, aligned: tuple[bool, ...]) -> Any:
        made = ready_for_all(
            self.symbolic,
            self.options,
            unchecked=unchecked,
            threads=self.threads,
            asked=self.asked,
        )
        return LoadedClass(made, self.symbolic)


class LoadedClass:
    """The code of a class in this process."""

    def __init__(self, code: KernelCode, symbolic: SizedDef) -> None:
        """``symbolic``: the def for all sizes. Raises ``CompileError`` for code that cannot be
        loaded."""
        checked = symbolic.checked
        names = [t.name for t in checked.inputs + checked.outputs]
        self._latest = Launcher(code, names, sized=symbolic)
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

    def __call__(self, sizes: Mapping[str, int]) -> Launcher:
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
        latest = self._latest
        if not latest.sizes:
            latest = self(sizes)  # another thread has only begun with this code
        failed = latest.run([address_of(array) for array in arrays], words, scratch)
        if failed is not None:
            raise self(sizes).failed(failed)


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
        if lies_so(self._sized, strides, self._row_major):
            found = self._kernels.get((unchecked, strides))
            found = found or self._class.launcher(self._sizes, unchecked=unchecked)
            if found is not None:
                return self._kept(self._kernels, (unchecked, strides), lambda _: found)
        self._sized = self.sized
        return super().kernel(strides, unchecked=unchecked)


class Family:
    """The classes of one def that agree in all sizes that do not vary."""

    def __init__(
        self,
        definition: CheckedDef,
        varying: Sequence[str],
        device: Device,
        number: int,
        *,
        asked: bool,
        strict: bool,
    ) -> None:
        """``device``: what kernels are for, and its number, or ``HOST``; ``asked``: whether a
        caller gives the options; ``strict``: whether all sizes have to be looked at."""
        self._definition, self._varying, self._asked = definition, varying, asked
        self._device, self._number = device, number
        quick = number == HOST and not strict
        self._others = OtherSizes(definition, varying, self._found) if quick else None
        self._classes: dict[tuple[SizeClass, ...], Class | None] = {}
        """By the class of each size that varies; None where no kernel can be for all of them."""

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, choose: Callable[[ForAll], Chosen]
    ) -> Calls[Any] | None:
        """The executor for some sizes; None if they have to have a kernel of their own. ``choose``
        gives the options for a new class."""
        for classes in classes_of(sizes, self._varying):
            key = tuple(classes.values())
            if key not in self._classes:
                self._classes[key] = self._make_class(sizes, classes, choose)
            found = self._classes[key]
            if found is not None:
                values = {name: sizes[name] for name in classes}
                return found.executor(values, wanted, self._others)
        return None

    def _found(self, values: Mapping[str, int]) -> Class | None:
        """The class of these sizes, if it has a kernel."""
        classes = (tuple(each.values()) for each in classes_of(values, self._varying))
        found = (self._classes.get(each) for each in classes)
        return next((each for each in found if each is not None), None)

    def _make_class(
        self,
        sizes: Mapping[str, int],
        classes: Mapping[str, SizeClass],
        choose: Callable[[ForAll], Chosen],
    ) -> Class | None:
        try:
            all_ = ForAll.for_sizes(self._definition, sizes, classes)
            # Before anything is looked up for them, or measured.
            if not self._asked:
                all_.check(self._device)
        except NOT_FOR_ALL as reason:
            tell(self._definition, classes, reason)
            return None
        chosen = choose(all_)  # which refuses sizes that no kernel can be for

        def make_with(options: MappingOptions) -> Class:
            about = all_, options, self._device.threads or 1, self._asked
            found = (
                Class(*about)
                if self._number == HOST
                else cuda_executor.CudaClass(*about, device=self._number)
            )
            with all_.refusing():  # other options may be for all of them
                found.compile()
            return found

        for options in (chosen,) if self._asked or chosen == DEFAULT else (chosen, DEFAULT):
            try:
                return applied(options, make_with)[1]
            except NOT_FOR_ALL as reason:
                tell(self._definition, classes, reason)
        return None
