"""The original's lower layer, ``tensor_comprehensions.tclib``: its functions take inputs as one
tuple, ``tclib.compile(text, "mm", (A, B), options).run((A, B))``."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tcl
from tcl.arrays.given import new_array
from tcl.arrays.libraries import HOST
from tcl.backends.stages import stage_text
from tcl.codegen.compiler import Device
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of
from tcl.executors.call_inputs import inputs_of
from tcl.executors.call_kernels import size
from tcl.executors.calls import Calls
from tcl.executors.cuda_executor import CudaExecutor
from tcl.executors.machine import driver, this_machine
from tcl.grammar.ranges.ranges_text import ranges_text
from tcl.tensor_comprehensions.options import (
    MappingOptions,
    OptionsLike,
    TunerConfig,
    own_options,
    where_possible,
)
from tcl.tensor_comprehensions.switches import *  # noqa: F403 - they are exported below
from tcl.tensor_comprehensions.switches import (
    LOG,
    STAGES,
    SwitchedModule,
    logged_from,
    state,
)
from tcl.tensor_comprehensions.switches import __all__ as _switches

__all__ = [
    "CompilationCache",
    "MappingOptions",
    "MappingOptionsCache",
    "TcExecutor",
    "Tuner",
    "TunerConfig",
    "compile",
    "parse_defs",
    "shared_memory_size",
]
__all__ += _switches


def parse_defs(tc: str) -> list[str]:
    """The names of the defs of a text. Raises ``TclSyntaxError``, ``TclSemanticError``."""
    return list(tcl.define(tc))


def shared_memory_size() -> int:
    """Bytes of shared memory that a block of the first GPU can have; 0 without a GPU."""
    try:
        return this_machine().profile(0).shared_per_block
    except ArgumentError:
        return 0


class TcExecutor:
    """A def compiled for the sizes of some inputs."""

    def __init__(self, calls: Calls[Any]) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return repr(self._calls)

    def run(
        self, inputs: Sequence[Any], outputs: Sequence[Any] = (), *, unchecked: bool = False
    ) -> Any:
        """Run on inputs of these sizes, into ``outputs`` if there are any. Returns the output, or a
        tuple of several. Raises ``ArgumentError``, ``IndexError``."""
        arrays, into = detached("inputs", inputs), detached("outputs", outputs)
        results = self._calls(*arrays, outputs=into or None, unchecked=unchecked)
        if not into:
            return results
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def unchecked_run(self, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> Any:
        """``run`` without the run-time checks of data-dependent subscripts."""
        return self.run(inputs, outputs, unchecked=True)

    def profile_kernel(self, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> int:
        """Whole microseconds that a second run takes, after one that is not counted."""
        if isinstance(self._calls, CudaExecutor):
            raise ArgumentError(
                "a call on a GPU returns before it ends; time it with torch.cuda.Event"
            )
        results = self.run(inputs, outputs)
        into = results if isinstance(results, tuple) else (results,)
        began = time.perf_counter_ns()
        self.run(inputs, into)
        return (time.perf_counter_ns() - began) // 1000


def compile(tc: str, entry_point: str, inputs: Sequence[Any], options: OptionsLike) -> TcExecutor:
    """A kernel for one def on inputs of these sizes and strides. Raises what ``tcl.compile``
    raises."""
    arrays = detached("inputs", inputs)

    def compile_with(chosen: tcl.MappingOptions) -> Calls[Any]:
        kernel: Calls[Any] = tcl.compile(tc, entry_point, chosen, *arrays)
        return kernel

    kernel = where_possible(options, compile_with)
    _show(kernel)
    return TcExecutor(kernel)


class CompilationCache:
    """Kernels of one text, by def and by types, shapes and strides of the inputs. Calls from
    several threads are safe."""

    def __init__(self, tc: str) -> None:
        self._definitions = tcl.define(tc)
        self._tc = tc
        self._compiled: dict[tuple[Any, ...], TcExecutor] = {}

    def is_compiled(self, entry_point: str, inputs: Sequence[Any]) -> bool:
        """Whether there is a kernel for such inputs."""
        return self.executor(entry_point, inputs) is not None

    def executor(self, entry_point: str, inputs: Sequence[Any]) -> TcExecutor | None:
        """What was compiled for such inputs."""
        return self._compiled.get((entry_point, *map(_layout, inputs)))

    def compile(self, entry_point: str, inputs: Sequence[Any], options: OptionsLike) -> None:
        """Compile for such inputs, and replace an earlier kernel for them."""
        made = compile(self._tc, entry_point, inputs, options)
        self._compiled[(entry_point, *map(_layout, inputs))] = made

    def alloc_outputs(self, entry_point: str, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """New outputs for such inputs, always as a tuple. Their values are undefined."""
        checked = self._definitions.definition(entry_point)
        given = inputs_of(checked, detached("inputs", inputs)).given
        sized = size(checked, given.views)

        def made() -> tuple[Any, ...]:
            return tuple(new_array(sized, tensor, given.kind) for tensor in checked.outputs)

        if given.device == HOST:
            return made()
        with driver().on(given.device):
            return made()

    def run(self, entryPoint: str, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> Any:
        """Run what was compiled for such inputs; see ``TcExecutor.run``."""
        return self._found(entryPoint, inputs).run(inputs, outputs)

    def unchecked_run(
        self, entryPoint: str, inputs: Sequence[Any], outputs: Sequence[Any] = ()
    ) -> Any:
        """Run what was compiled for such inputs; see ``TcExecutor.unchecked_run``."""
        return self._found(entryPoint, inputs).unchecked_run(inputs, outputs)

    def _found(self, entry_point: str, inputs: Sequence[Any]) -> TcExecutor:
        found = self.executor(entry_point, inputs)
        if found is None:
            self._definitions.definition(entry_point)
            shapes = ", ".join(str(tuple(getattr(i, "shape", ()))) for i in inputs)
            raise ArgumentError(
                f"{entry_point} is not compiled for inputs of shapes {shapes}; call compile first"
            )
        return found


class Tuner:
    """Searches for fast options of the defs of one text. With the name of a cache file, the results
    are saved there."""

    def __init__(self, tc: str, cache_filename: str | os.PathLike[str] = "") -> None:
        self._tc = tc
        self._cache = cache_filename

    def tune(
        self, entry_point: str, inputs: Sequence[Any], options: OptionsLike, config: TunerConfig
    ) -> MappingOptions:
        """The best options that a search from ``options`` finds for these inputs, or ``options`` if
        no candidate works. Raises the errors of ``tcl.autotune``."""
        if not isinstance(config, TunerConfig):
            raise ArgumentError(f"the fourth argument is a TunerConfig, not {kind_of(config)}")
        start = own_options(options)
        arrays = detached("inputs", inputs)
        seen = state.on & {"logtostderr", "debug_tuner"}
        logged = bool(seen) or (config.level or logging.ERROR) <= logging.INFO
        with logged_from(config.level):
            best = tcl.autotune(
                self._tc,
                entry_point,
                *arrays,
                starting_options=start,
                tuner_config=config.config,
                cache_filename=self._cache or None,
                store_to_cache=bool(self._cache),
                progress=False if state.silent or logged else None,
            )
        if best is None:
            LOG.warning("no candidate works for %s; the starting options are returned", entry_point)
        return MappingOptions(best or start)


class MappingOptionsCache:
    """The options in a cache file. An empty file name gives a cache without options."""

    def __init__(self, cache_filename: str | os.PathLike[str]) -> None:
        self._cache = tcl.MappingOptionsCache(cache_filename) if cache_filename != "" else None

    def load(
        self, tc: str, entry_point: str, inputs: Sequence[Any], num_candidates: int
    ) -> list[MappingOptions]:
        """The results of all searches in the file for such inputs, best first. Returns at most
        ``num_candidates`` options. Raises ``CacheError``."""
        arrays = detached("inputs", inputs)
        if self._cache is None:
            return []
        found = self._cache.load(tc, entry_point, arrays, num_candidates, winners=True)
        return [MappingOptions(each) for each in found]


def detached(name: str, arrays: object) -> tuple[Any, ...]:
    """What callers give as one tuple: tensors that record what is done with them without that, as
    kernels are not recorded. Raises ``ArgumentError`` for what is no tuple."""
    if not isinstance(arrays, tuple | list):
        raise ArgumentError(f"{name} have to be a tuple of tensors, not {kind_of(arrays)}")
    return tuple([a.detach() if getattr(a, "requires_grad", False) else a for a in arrays])


def _layout(array: Any) -> tuple[Any, ...]:
    """What a kernel is compiled for, of this array."""
    strides = getattr(array, "strides", None) or getattr(array, "stride", None)
    return (
        *(type(array), getattr(array, "dtype", None), getattr(array, "device", None)),
        *(getattr(array, "shape", None), strides() if callable(strides) else strides),
    )


def _show(calls: Calls[Any]) -> None:
    """Tell what was switched on of a kernel that was compiled."""
    sized = calls.sized
    for switch in sorted(state.on & STAGES.keys()):
        sizes = ", ".join(f"{name}={value}" for name, value in sized.sizes.items())
        title = f"{sized.checked.name}, {sizes}" if sizes else sized.checked.name
        LOG.info("%s: %s\n%s", title, STAGES[switch], _stage(STAGES[switch], calls))


def _stage(stage: str, calls: Calls[Any]) -> str:
    if stage == "ranges":
        return ranges_text(calls.sized)
    if isinstance(calls, CudaExecutor):
        device: Device = this_machine().profile(calls.device)
    else:
        device = replace(host_cpu(), threads=thread_count())
    return stage_text(stage, calls.sized, calls.options, device)


sys.modules[__name__].__class__ = SwitchedModule
