"""What makes kernels for a device, from options to source: the one place that knows the kinds of
devices. What belongs to a kind is imported when it is first asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.lazy import Lazy
from tcl.common.recursion import with_room
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.varying import symbols_of

if TYPE_CHECKING:
    from tcl.codegen.cpu.emit import emit as cpu_emit
    from tcl.codegen.cpu.object_code import compile as cpu_compile
    from tcl.codegen.cpu.run import varying as cpu_varying
    from tcl.codegen.cuda.emit import emit as cuda_emit
    from tcl.codegen.cuda.emit.module import CudaModule
    from tcl.codegen.cuda.run import compile as cuda_compile
    from tcl.codegen.cuda.run import ready as cuda_ready
    from tcl.codegen.devices.cpu import CpuProfile
    from tcl.codegen.devices.gpu import GpuProfile
    from tcl.codegen.schedule import cpu as cpu_schedule
    from tcl.codegen.schedule import gpu as gpu_schedule
    from tcl.codegen.schedule.plan import Plan
else:
    cpu_emit = Lazy("tcl.codegen.cpu.emit.emit")
    cpu_compile = Lazy("tcl.codegen.cpu.object_code.compile")
    cpu_varying = Lazy("tcl.codegen.cpu.run.varying")
    cuda_emit = Lazy("tcl.codegen.cuda.emit.emit")
    cuda_compile = Lazy("tcl.codegen.cuda.run.compile")
    cuda_ready = Lazy("tcl.codegen.cuda.run.ready")
    cpu_schedule = Lazy("tcl.codegen.schedule.cpu")
    gpu_schedule = Lazy("tcl.codegen.schedule.gpu")

Device: TypeAlias = "CpuProfile | GpuProfile"
"""What a kernel is for; of a CPU, with as many threads as it may use."""
_T = TypeVar("_T")
_Make: TypeAlias = "Callable[[Plan[Any], ir.Built], _T]"
_Strides: TypeAlias = Mapping[str, tuple[int, ...]] | None
_Layouts: TypeAlias = Mapping[str, ir.Layout] | None


@dataclass(frozen=True, slots=True)
class Compiler(ABC):
    """For one device."""

    device: Any
    asked: bool = True
    """Whether options were given, and are honoured or refused; of others, what cannot be for all
    sizes of a class is left off."""

    @property
    @abstractmethod
    def language(self) -> str:
        """Of the source."""

    @abstractmethod
    def layouts(self, sized: SizedDef, strides: _Strides = None) -> dict[str, ir.Layout]:
        """How all tensors lie in memory, of inputs with these strides in bytes."""

    @abstractmethod
    def plan(self, sized: SizedDef, options: MappingOptions, layouts: _Layouts = None) -> Plan[Any]:
        """What these options come to, of sizes that are numbers. ``layouts``: of all tensors, if
        they are not row-major. Raises ``OptionsError`` for options that cannot be planned."""

    @abstractmethod
    def built(
        self, sized: SizedDef, options: MappingOptions, make: _Make[_T], layouts: _Layouts = None
    ) -> _T:
        """What is made of the plan for these options and of its kernels. ``layouts``: of
        all tensors, if they are not row-major.

        Raises ``OptionsError`` for options that cannot be applied, and ``Undecided`` where sizes
        are formulas and there can be no such kernels.
        """

    @abstractmethod
    def source(self, plan: Plan[Any], program: ir.Built) -> str:
        """The source of kernels."""

    @abstractmethod
    def assembly(self, plan: Plan[Any], program: ir.Built) -> str:
        """Kernels as assembly, or what comes closest to it."""

    @abstractmethod
    def check(self, sized: SizedDef) -> None:
        """Raises what ``built`` does where a def can have no kernel, whatever the options."""


class CpuCompiler(Compiler):
    language = "LLVM IR"

    def layouts(self, sized: SizedDef, strides: _Strides = None) -> dict[str, ir.Layout]:
        return cpu_layouts(sized, strides)

    def plan(self, sized: SizedDef, options: MappingOptions, layouts: _Layouts = None) -> Plan[Any]:
        return cpu_schedule.plan(sized, options, self.device, layouts, all_threads=False)

    def built(
        self, sized: SizedDef, options: MappingOptions, make: _Make[_T], layouts: _Layouts = None
    ) -> _T:
        if _varies(sized):
            found = cpu_varying.scheduled_for_all(sized, options, self.device, asked=self.asked)
            return make(*found)
        plan = self.plan(sized, options, layouts)
        return make(plan, plan.scheduled())

    def source(self, plan: Plan[Any], program: ir.Built) -> str:
        return cpu_emit.emit_program(program, plan.target).text

    def assembly(self, plan: Plan[Any], program: ir.Built) -> str:
        return cpu_compile.assembly(self.source(plan, program), plan.target)

    def check(self, sized: SizedDef) -> None:
        self.built(sized, DEFAULT, lambda plan, program: None)


class GpuCompiler(Compiler):
    language = "CUDA C++"

    def layouts(self, sized: SizedDef, strides: _Strides = None) -> dict[str, ir.Layout]:
        return gpu_layouts(sized, strides)

    def plan(self, sized: SizedDef, options: MappingOptions, layouts: _Layouts = None) -> Plan[Any]:
        return gpu_schedule.plan(sized, options, self.device, layouts)

    def built(
        self, sized: SizedDef, options: MappingOptions, make: _Make[_T], layouts: _Layouts = None
    ) -> _T:
        def made(chosen: MappingOptions) -> _T:
            plan = self.plan(sized, chosen, layouts)
            return make(plan, plan.scheduled())

        return cuda_ready.emitted_for_all(options, made) if _varies(sized) else made(options)

    def module(self, plan: Plan[Any], program: ir.Built) -> CudaModule:
        """The source and what launches its kernels."""
        return with_room(lambda: cuda_emit.emit_program(program, self.device))

    def source(self, plan: Plan[Any], program: ir.Built) -> str:
        return self.module(plan, program).source

    def assembly(self, plan: Plan[Any], program: ir.Built) -> str:
        return cuda_compile.ptx(self.source(plan, program), self.device)

    def check(self, sized: SizedDef) -> None:
        self.built(sized, DEFAULT, self.module)  # emission decides about formulas, too


def compiler_for(device: Device, *, asked: bool = True) -> Compiler:
    """What makes kernels for a device."""
    return _COMPILERS[device.backend](device, asked)


_COMPILERS: dict[str, type[Compiler]] = {"cpu": CpuCompiler, "cuda": GpuCompiler}


def _varies(sized: SizedDef) -> bool:
    """Whether sizes are formulas."""
    return bool(symbols_of(n for shape in sized.shapes.values() for n in shape))
