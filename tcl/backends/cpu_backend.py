"""The CPU backend as the tuner sees it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.arrays.arguments import Array
from tcl.backends.program_backend import ProgramBackend, sized_once
from tcl.backends.sent import CpuRunner
from tcl.codegen.common.envelope import seal
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.cpu.emit.emit import emit
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.cpu.run.varying import scheduled_for_all
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.executors.size_classes import ForAll
from tcl.grammar.size_classes import SizeClass
from tcl.grammar.varying import Undecided
from tcl.tuner.measure.backend import Kernel


@dataclass(frozen=True, slots=True)
class CpuBackend(ProgramBackend):
    """One def on one set of inputs, on this CPU."""

    threads: int = 1
    """That kernels run on, at most."""
    classes: tuple[tuple[str, SizeClass], ...] = ()
    """Of the sizes that vary, with their names: kernels serve all of them, and run on these
    inputs."""

    @classmethod
    def create(
        cls, source: str, entry: str, arrays: Sequence[Array], folder: str, threads: int = 1
    ) -> CpuBackend:
        """A backend for these inputs, whose values are saved in ``folder``."""
        return cls.described(source, entry, arrays, threads).holding(arrays, folder)

    @property
    def device(self) -> CpuProfile:
        """This CPU, with that many threads."""
        return replace(host_cpu(), threads=self.threads)

    def for_all(self, classes: Mapping[str, SizeClass]) -> CpuBackend:
        """The same with kernels for all sizes of these classes."""
        return replace(self, classes=tuple(classes.items()))

    def layouts(self) -> dict[str, ir.Layout]:
        return cpu_layouts(self.sized, self.strides())

    def program(self) -> ir.Program:
        """The loop nests that options map, for the usual sizes of classes."""
        if not self.classes:
            return super(CpuBackend, self).program()
        return lower(self._all.query(self.device).sized)

    @property
    def _all(self) -> ForAll:
        shapes = tuple(i.shape for i in self.inputs)
        return _for_all(self.source, self.entry, shapes, self.classes)

    def compile(self, options: MappingOptions) -> bytes:
        """Object code and what else a run needs."""
        program, device = self._scheduled(options)
        source = emit(program, device)
        return seal(kernel_code(program, source, compile_object(source.text, device), device))

    def explained(self, options: MappingOptions) -> dict[str, str]:
        """What becomes of the def with these options, as texts by title."""
        program, device = self._scheduled(options)
        return {"Loop program": show(program), "LLVM IR": emit(program, device).text}

    def _scheduled(self, options: MappingOptions) -> tuple[ir.Built, CpuProfile]:
        if self.classes:
            symbolic = self._all.symbolic
            try:
                made, built = scheduled_for_all(symbolic, options, self.device, asked=False)
            except (Undecided, ir.IRError) as error:
                raise OptionsError(f"they cannot be for all of {self._all}: {error}") from None
            return built, made.target
        made = plan(self.sized, options, self.device, self.layouts(), all_threads=False)
        return made.scheduled(), made.target

    def load(self, code: bytes) -> Kernel:
        """The kernel in this process."""
        return self.runner().load(code)

    def runner(self) -> CpuRunner:
        """See ``tcl.tuner.measure.backend.BriefBackend``."""
        checked = self.sized.checked
        sizes = tuple((name, self.sized.sizes[name]) for name, _ in self.classes)
        names = tuple(t.name for t in checked.inputs + checked.outputs)
        return CpuRunner(self.sent(), names, self.source, self.entry, sizes)


@functools.lru_cache(maxsize=8)
def _for_all(
    source: str,
    entry: str,
    shapes: tuple[tuple[int, ...], ...],
    classes: tuple[tuple[str, SizeClass], ...],
) -> ForAll:
    sized = sized_once(source, entry, shapes)
    return ForAll.of(sized.checked, sized.sizes, dict(classes))
