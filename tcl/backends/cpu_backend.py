"""The CPU backend as the tuner sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcl.arrays.arguments import Array
from tcl.backends.program_backend import Layout, ProgramBackend
from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
from tcl.codegen.common.errors import CompileError
from tcl.codegen.cpu.emit.emit import emit
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.kernel_bytes import decode, encode
from tcl.codegen.cpu.run.kernel import to_keep
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.tuner.cache.key import ArrayLayout


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

    @classmethod
    def described(
        cls, source: str, entry: str, arrays: Sequence[Array | ArrayLayout], threads: int = 1
    ) -> CpuBackend:
        """A backend that knows what these inputs are like and not their values: it can say how
        options map the def, and compile, but run nothing."""
        layouts_ = tuple(Layout(a.shape, a.strides) for a in arrays)
        return cls(source, entry, layouts_, "", threads)

    @property
    def device(self) -> CpuProfile:
        """This CPU, with that many threads."""
        return replace(host_cpu(), threads=self.threads)

    def program(self) -> ir.Program:
        """The loop nests that options map, before anything is done to them."""
        return lower(self.sized, self._layouts())

    def _layouts(self) -> dict[str, ir.Layout]:
        return cpu_layouts(self.sized, self.strides())

    def compile(self, options: MappingOptions) -> bytes:
        """Object code and what else a run needs."""
        program, device = self._scheduled(options)
        source = emit(program, device)
        return encode(to_keep(program, source, compile_object(source.text, device), device))

    def explained(self, options: MappingOptions) -> dict[str, str]:
        """What becomes of the def with these options, as texts by title."""
        program, device = self._scheduled(options)
        return {"Loop program": show(program), "LLVM IR": emit(program, device).text}

    def _scheduled(self, options: MappingOptions) -> tuple[ir.Program, CpuProfile]:
        device = self.device
        if self.threads > 1:
            device = with_threads_worth(self.program(), device)
        return schedule(self.sized, options, device, self._layouts()), device

    def load(self, code: bytes) -> _Kernel:
        """The kernel in this process."""
        kept = decode(code)
        if kept is None:
            raise CompileError("the kernel arrived damaged")
        checked = self.sized.checked
        return _Kernel(Launcher(kept, [t.name for t in checked.inputs + checked.outputs]))


class _Kernel:
    """Loaded code."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self._launcher((*inputs, *outputs))
