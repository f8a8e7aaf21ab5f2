"""LLVM IR text → object code: a pure function, fit for a worker process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.features import architecture
from tcl.common.errors import CompileError
from tcl.common.forks import whole

emulating: Callable[[str, str], str] | None = None
"""Puts functions into a module in the place of the instructions of ``CpuProfile.emulated``. Tests
have one."""


def compile_object(text: str, device: CpuProfile) -> bytes:
    """The object file of a module, with functions for what the device emulates. Raises
    ``CompileError`` if LLVM refuses the text."""
    # An interrupted llvmlite may free something twice. Half of the time goes into one call of LLVM,
    # during which nothing could be interrupted anyway.
    with whole():
        return _object(text, device)


def _object(text: str, device: CpuProfile) -> bytes:
    """A function of its own, so that what it made is gone when it returns."""
    module, machine = _optimised(text, device)
    return bytes(machine.emit_object(module))


def assembly(text: str, device: CpuProfile) -> str:
    """The module as assembly, for people."""
    module, machine = _optimised(text, device)
    return str(machine.emit_assembly(module))


def _optimised(text: str, device: CpuProfile) -> tuple[Any, Any]:
    import llvmlite.binding as llvm

    machine = target_machine(device)
    if device.emulated:
        assert emulating is not None
        text = emulating(text, device.emulated)
    try:
        # A context of its own: the global one keeps every type and constant it ever saw.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejected the kernel: {error}") from None
    _optimise(module, machine)
    return module, machine


def _optimise(module: Any, machine: Any) -> None:
    """The passes that kernels gain from: short helpers inlined, variables that become registers,
    simple instructions, and loops that end with their condition. What may be done before a loop is
    written there, see ``Builder.loop``: to look for it takes LLVM three times as long as these.

    The rest of LLVM's pipeline for a module is left off: its search for loads that repeat what an
    earlier iteration stored takes quadratic time in unrolled loops, ten times all other passes.
    """
    import llvmlite.binding as llvm

    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    simplifier = llvm.create_new_function_pass_manager()
    simplifier.add_sroa_pass()
    simplifier.add_instruction_combine_pass()
    simplifier.add_simplify_cfg_pass()
    simplifier.add_loop_rotate_pass()  # else constants are loaded in each iteration of inner loops
    inliner.run(module, passes)
    for function in module.functions:
        if not function.is_declaration:
            simplifier.run(function, passes)
    for manager in (inliner, simplifier):
        _release(manager)


def _release(manager: Any) -> None:
    """Free a pass manager's 50 KB: llvmlite's own ``close`` does not find its way there, as both
    of the class's parents have a ``_dispose`` and the first one's does nothing."""
    from llvmlite.binding import ffi, newpassmanagers

    if type(manager)._dispose is ffi.ObjectRef._dispose:
        newpassmanagers.NewPassManager._dispose(manager)
        manager.detach()


@functools.lru_cache(maxsize=8)
def target_machine(device: CpuProfile) -> Any:
    """LLVM's code generator for a device, made once."""
    return new_machine(device)


def new_machine(device: CpuProfile) -> Any:
    """A code generator that nothing else uses."""
    import llvmlite.binding as llvm

    initialise()
    if device.architecture != _here():
        _initialise_all()
    features = device.features
    if device.vector_bits >= 512:
        features += ",-prefer-256-bit"
    if device.architecture == "x86_64":
        # Else LLVM takes two instructions for one that adds up pairs, to add one after the other.
        features += ",+fast-dpwssd"
    try:
        target = llvm.Target.from_triple(device.triple)
    except RuntimeError as error:
        raise CompileError(f"no code generator for {device.triple}: {error}") from None
    return target.create_target_machine(
        **{"cpu": device.name, "features": features, "opt": 2, "jit": True, "reloc": "pic"},
        codemodel="small" if _near(device) else "jitdefault",
    )


def _near(device: CpuProfile) -> bool:
    """Whether the parts of an object lie within 2 GB, so that constants are operands in memory. By
    the large code model, the default of JITs, each takes an instruction for its address: kernels of
    many constants take .82 to .96 of the time without."""
    return device.architecture == "x86_64"


def new_session(device: CpuProfile) -> Any:
    """What loads object code for this device, which is the machine at hand, into this process. It
    takes over a code generator of its own."""
    import llvmlite.binding as llvm

    # LLVM's older linker places the parts of an object one by one, and does not look where.
    return llvm.create_lljit_compiler(new_machine(device), use_jit_link=_near(device))


@functools.lru_cache(maxsize=1)
def initialise() -> None:
    """Makes LLVM able to compile for this machine; once per process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.lru_cache(maxsize=1)
def _initialise_all() -> None:
    """Makes LLVM able to compile for machines that are not here; once per process."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.lru_cache(maxsize=1)
def _here() -> str:
    """This process's architecture."""
    import llvmlite.binding as llvm

    return architecture(llvm.get_process_triple())
