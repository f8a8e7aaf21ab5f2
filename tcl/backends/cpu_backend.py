"""The CPU backend as the tuner sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.arrays.arguments import Array
from tcl.backends.program_backend import ProgramBackend
from tcl.backends.sent import CpuRunner
from tcl.codegen.common.envelope import seal
from tcl.codegen.cpu.emit.emit import emit
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.cpu.run.varying import scheduled_for_all
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.measure.backend import Kernel
from tcl.tuner.measure.harness import Bench


@dataclass(frozen=True, slots=True)
class CpuBackend(ProgramBackend):
    """One def on one set of inputs, on this CPU."""

    threads: int = 1
    """That kernels run on, at most."""

    @classmethod
    def create(
        cls, source: str, entry: str, arrays: Sequence[Array], folder: str, threads: int = 1
    ) -> CpuBackend:
        """A backend for these inputs, whose values are saved in ``folder``."""
        return cls.described(source, entry, arrays, threads).holding(arrays, folder)

    def bench(self) -> Bench:
        return Bench(one_thread=self.threads == 1)

    @property
    def device(self) -> CpuProfile:
        """This CPU, with that many threads."""
        return replace(host_cpu(), threads=self.threads)

    def layouts(
        self, sized: SizedDef, strides: Mapping[str, tuple[int, ...]] | None = None
    ) -> dict[str, ir.Layout]:
        return cpu_layouts(sized, strides)

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
            all_ = self.all_
            with all_.refusing():
                made, built = scheduled_for_all(all_.symbolic, options, self.device, asked=False)
            return built, made.target
        layouts = self.layouts(self.sized, self.strides())
        made = plan(self.sized, options, self.device, layouts, all_threads=False)
        return made.scheduled(), made.target

    def load(self, code: bytes) -> Kernel:
        """The kernel in this process."""
        return self.runner().load(code)

    def runner(self) -> CpuRunner:
        """See ``tcl.tuner.measure.backend.BriefBackend``."""
        checked = self.sized.checked
        sizes = tuple((name, self.sized.sizes[name]) for name, _ in self.classes)
        names = tuple(t.name for t in checked.inputs + checked.outputs)
        return CpuRunner(self.sent(), names, self.source, self.entry, self.bench(), sizes)
