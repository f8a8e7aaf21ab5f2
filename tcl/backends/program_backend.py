"""What the backends of all machines are to the tuner: one def on one set of inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tcl.arrays.arguments import Array
from tcl.backends.sent import CpuRunner, Like, SentProblem, file_of
from tcl.backends.sized import sized_once
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.envelope import seal
from tcl.codegen.common.rounding import Rounding
from tcl.codegen.compiler import Compiler, CpuCompiler
from tcl.codegen.cpu.run.kernel import compiled
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.plan import Plan
from tcl.common.lazy import Lazy
from tcl.executors.size_classes import ForAll
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.selection.best_options import array_layouts
from tcl.tuner.cache.key import ArrayLayout
from tcl.tuner.measure.backend import CompiledKernel, Problem, Runner
from tcl.tuner.measure.correctness import accumulation_depths
from tcl.tuner.measure.harness import Bench

if TYPE_CHECKING:
    from tcl.codegen import reference
    from tcl.codegen.reference import ComputedElements
    from tcl.codegen.schedule.plan import Plan
else:
    reference = Lazy("tcl.codegen.reference")

_T = TypeVar("_T")
_B = TypeVar("_B", bound="ProgramBackend")


@dataclass(frozen=True, slots=True)
class ProgramBackend:
    """One def on one set of inputs. Small, as it travels with every task: the inputs lie in
    files of a folder, which has to outlive the tuning run, or, for another machine, in here."""

    source: str
    entry: str
    inputs: tuple[ArrayLayout, ...]
    folder: str

    values: tuple[bytes, ...] = field(default=(), repr=False, kw_only=True)
    """Of the inputs, if they are not in the folder."""
    classes: tuple[tuple[str, SizeClass], ...] = field(default=(), kw_only=True)
    """Of the sizes that vary, with their names: kernels serve all of them, and run on these
    inputs."""

    @classmethod
    def described(
        cls: type[_B], source: str, entry: str, arrays: Sequence[Array | ArrayLayout], *device: Any
    ) -> _B:
        """A backend that knows what these inputs are like and not their values: it can say how
        options map the def, and compile, but run nothing. ``device``: the class's own fields."""
        return cls(source, entry, array_layouts(arrays), "", *device)

    def holding(self: _B, arrays: Sequence[Array], folder: str) -> _B:
        """The same with these inputs' values, which are saved in ``folder``."""
        for position, array in enumerate(arrays):
            stored = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            np.save(file_of(folder, position), stored)
        return replace(self, folder=folder)

    @property
    def sized(self) -> SizedDef:
        return sized_once(self.source, self.entry, tuple(i.shape for i in self.inputs))

    def for_all(self: _B, classes: Mapping[str, SizeClass]) -> _B:
        """The same for all sizes of these classes; for its own sizes where there are none."""
        return replace(self, classes=tuple(classes.items()))

    @property
    def all_(self) -> ForAll:
        """What kernels are for, where sizes vary."""
        shapes = tuple(i.shape for i in self.inputs)
        return _for_all(self.source, self.entry, shapes, self.classes)

    @property
    def compiler(self) -> Compiler:
        """What makes the kernels."""
        raise NotImplementedError

    def built(self, options: MappingOptions, make: Callable[[Plan[Any], ir.Built], _T]) -> _T:
        """What is made of the plan for these options and of its kernels. Raises
        ``OptionsError``."""
        if not self.classes:
            layouts = self.compiler.layouts(self.sized, self.strides())
            return self.compiler.built(self.sized, options, make, layouts)
        all_ = self.all_
        with all_.refusing():
            return self.compiler.built(all_.symbolic, options, make)

    def explained(self, options: MappingOptions) -> dict[str, str]:
        """What becomes of the def with these options, as texts by title."""
        compiler = self.compiler

        def texts(plan: Plan[Any], program: ir.Built) -> dict[str, str]:
            source = compiler.source(plan, program)
            return {"Loop program": show(program), compiler.language: source}

        return self.built(options, texts)

    def program(self) -> ir.Program:
        """The loop nests that options map, before anything is done to them; for the representative
        sizes of classes."""
        if not self.classes:
            return lower(self.sized, self.compiler.layouts(self.sized, self.strides()))
        representative, _ = self.all_.representative()
        return lower(representative, self.compiler.layouts(representative))

    def strides(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs, by name."""
        inputs = self.sized.checked.inputs
        return {t.name: i.strides for t, i in zip(inputs, self.inputs, strict=True)}

    def problem(self) -> Problem:
        """The inputs, read from their files, and outputs to write to."""
        return self.sent().on(self.bench())

    def bench(self) -> Bench:
        """Where kernels run, and how they are timed."""
        raise NotImplementedError

    def sent(self) -> SentProblem:
        """What runs kernels has to know of it."""
        sized = self.sized
        checked = sized.checked
        depths = accumulation_depths(sized)
        return SentProblem(
            inputs=tuple(
                Like(layout.shape, layout.strides, numpy_dtype(tensor.type))
                for tensor, layout in zip(checked.inputs, self.inputs, strict=True)
            ),
            outputs=tuple(
                Like(sized.shapes[t.name], (), numpy_dtype(t.type)) for t in checked.outputs
            ),
            names=tuple(t.name for t in checked.outputs),
            initialised=tuple(t.name in checked.uninitialised for t in checked.outputs),
            depths=tuple(depths[t.name] for t in checked.outputs),
            folder=self.folder,
            values=self.values,
        )

    def load(self, code: bytes) -> CompiledKernel:
        """See ``tcl.tuner.measure.backend.Runner``."""
        raise NotImplementedError

    def runner(self) -> Runner:
        """See ``tcl.tuner.measure.backend.Backend``."""
        return self

    def portable(self: _B) -> _B:
        """See ``tcl.tuner.measure.backend.Backend``."""
        sent = self.sent()
        values = tuple(sent.stored(position).tobytes() for position in range(len(self.inputs)))
        return replace(self, folder="", values=values)

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> ComputedElements:
        """Compute the outputs with the reference backend, of large ones a sample."""
        computed = reference.compute(self.sized, inputs, outputs)
        small = sum(o.nbytes for o in outputs) <= _KEPT
        _results[:] = [(self, outputs)] if computed.whole and small else []
        return computed

    def roundings(self, inputs: Sequence[Array], *, briefly: bool) -> Sequence[Rounding]:
        """See ``tcl.tuner.measure.backend.Runner``."""
        known = next((outputs for backend, outputs in _results if backend == self), None)
        if not briefly:
            _results.clear()
        begun = self.problem().outputs
        return reference.roundings(self.sized, inputs, begun, known, briefly=briefly)

    def brief_reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        """``reference`` of a small sample, in a tenth of a second and without Numba; None if that
        cannot be done."""
        return reference.compute_briefly(self.sized, inputs, outputs)


_KEPT = 1 << 26
"""Bytes of results that a process keeps: more are computed in less time than roundings take."""
_results: list[tuple[ProgramBackend, Sequence[Array]]] = []
"""What this process has computed with the reference, for ``roundings``."""


@functools.lru_cache(maxsize=8)
def _for_all(
    source: str,
    entry: str,
    shapes: tuple[tuple[int, ...], ...],
    classes: tuple[tuple[str, SizeClass], ...],
) -> ForAll:
    sized = sized_once(source, entry, shapes)
    return ForAll.for_sizes(sized.checked, sized.sizes, dict(classes))


@dataclass(frozen=True, slots=True)
class CpuBackend(ProgramBackend):
    """One def on one set of inputs, on this CPU."""

    threads: int = 1
    """That kernels run on, at most."""

    def bench(self) -> Bench:
        return Bench(one_thread=self.threads == 1)

    @property
    def device(self) -> CpuProfile:
        """This CPU, with that many threads."""
        return replace(host_cpu(), threads=self.threads)

    @property
    def compiler(self) -> CpuCompiler:
        return CpuCompiler(self.device, asked=False)

    def compile(self, options: MappingOptions) -> bytes:
        """Object code and what else a run needs."""
        return self.built(options, lambda plan, built: seal(compiled(built, plan.target)))

    def load(self, code: bytes) -> CompiledKernel:
        return self.runner().load(code)

    def runner(self) -> CpuRunner:
        """See ``tcl.tuner.measure.backend.Backend``."""
        checked = self.sized.checked
        sizes = tuple((name, self.sized.sizes[name]) for name, _ in self.classes)
        names = tuple(t.name for t in checked.inputs + checked.outputs)
        return CpuRunner(self.sent(), names, self.source, self.entry, self.bench(), sizes)
