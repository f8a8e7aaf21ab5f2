"""``BlockTuner``: the fastest launch shape of a kernel that the user wrote."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tcl.arrays.user_input import check_flag, file_named
from tcl.block_tuning.arguments import Arguments, positions
from tcl.block_tuning.candidates import (
    Block,
    LaunchShape,
    blocks_of,
    choices_of,
    sizes_of,
)
from tcl.block_tuning.result import BlockTuningResult
from tcl.block_tuning.sweep import Sweep
from tcl.block_tuning.target import LaunchTarget
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.knobs import Value
from tcl.common.errors import ArgumentError, CacheError
from tcl.common.shown import kind_of, shown
from tcl.common.warn import warn
from tcl.tuner.cache import block_results
from tcl.tuner.cache.block_results import BlockKey
from tcl.tuner.cache.tuning_cache import TuningCache

_EVALUATIONS = 100


class BlockTuner:
    """Finds the fastest launch shape for a kernel that you wrote, on your arrays.

    - ``kernel``: a CuPy ``RawKernel``, or a ``RawModule`` with the ``name`` of one of its kernels.
      On the CPU, a C function ``void f(int64_t begin, int64_t end, ...)`` from ctypes or Numba's
      ``cfunc``; two calls of it, on parts of the range, may run at the same time.
    - ``global_size``: the number of threads of the problem along x, y and z, one to three numbers;
      on the CPU, the length of the range. The tuner chooses the block, or on the CPU the chunk of
      the range that a thread takes at a time.
    - ``guarded``: True if the kernel does nothing in threads beyond ``global_size``, so that the
      grid may be rounded up. With False, a block that does not divide ``global_size`` is refused.
    - ``defines``: macros of the source and the values to try, ``{"TILE": [1, 2, 4]}``. The values
      ``"block.x"``, ``"block.y"`` and ``"block.z"`` stand for the sizes of the block.
    - ``grid``, ``shared_bytes``: functions of the block and the macros' values. They return the
      number of blocks and the bytes of dynamic shared memory. Defaults: ``ceil(global_size /
      block)`` and 0.
    - ``outputs``: positions, from 0, of the arguments that the kernel writes. Default: the
      arguments that its first run changes.
    - ``tolerance``: the largest relative difference of a result from the first run. Default: a
      difference that rounding explains.
    - ``threads``: as for ``define``, for C functions.
    - ``source``: a text that identifies the function, if neither its file nor a Numba function
      does.
    - ``cache_filename``: the file for results. Default: the user's tuning cache.

    Raises ``ArgumentError``.
    """

    def __init__(
        self,
        kernel: Any,
        global_size: int | Sequence[int],
        *,
        name: str | None = None,
        guarded: bool = True,
        defines: Mapping[str, Sequence[Value]] | None = None,
        grid: Any = None,
        shared_bytes: Any = 0,
        outputs: int | Sequence[int] | None = None,
        tolerance: float | None = None,
        threads: int | None = None,
        source: str | None = None,
        cache_filename: str | os.PathLike[str] | None = None,
    ) -> None:
        self._sizes = sizes_of("global_size", global_size)
        check_flag("guarded", guarded)
        self._defines = choices_of(defines or {})
        self._outputs, self._tolerance = outputs, _tolerance(tolerance)
        path = None if cache_filename is None else file_named("cache_filename", cache_filename)
        self._path = path
        self._result: BlockTuningResult | None = None
        self._target: LaunchTarget
        if _is_raw(kernel):
            from tcl.block_tuning.raw_kernels import RawKernels

            _refuse("a raw kernel", threads=threads, source=source)
            _check_shape(grid, shared_bytes)
            self._target = RawKernels(
                kernel, name, self._sizes, guarded=guarded, grid=grid, shared=shared_bytes
            )
            return
        from tcl.block_tuning.c_functions import CFunction, Function

        if not isinstance(kernel, Function) and not hasattr(kernel, "inspect_llvm"):
            raise ArgumentError(
                "a kernel is a CuPy RawKernel or RawModule, a function of ctypes, or a cfunc of "
                f"Numba, not {kind_of(kernel)}"
            )
        if not isinstance(kernel, Function) and not hasattr(kernel, "native_name"):
            raise ArgumentError(
                "a function of numba.jit has no address that C can call; compile it with "
                "numba.cfunc and its signature"
            )
        _refuse(
            "a C function",
            name=name,
            defines=defines,
            grid=grid,
            shared_bytes=shared_bytes or None,
            guarded=None if guarded else guarded,
        )
        if source is not None and not isinstance(source, str):
            raise ArgumentError(f"source has to be a text, not {shown(source)}")
        self._target = CFunction(kernel, self._sizes, thread_count(threads), source)

    def tune(
        self,
        *arguments: Any,
        candidates: Sequence[int | Sequence[int]] | None = None,
        evaluations: int = _EVALUATIONS,
        seed: int = 0,
        again: bool = False,
    ) -> BlockTuningResult:
        """The fastest way to launch the kernel on these arguments. Afterwards the arguments hold
        the results of one run.

        - ``candidates``: blocks, or sizes of chunks. Default: powers of two up to the limit of the
          device. The others are compared with the first candidate; it is the result unless another
          is clearly faster.
        - ``evaluations``: the largest number of candidates to try, macros included. If there are
          more, a genetic search with ``seed`` chooses among them.
        - ``again``: if True, tune even if there is a result. Otherwise a kernel is tuned once for
          its source, global size, candidates and device, and for the types and shapes of its
          arguments; later calls return the earlier result.

        A candidate of a C function first runs in a copy of this process. It is excluded if it
        crashes the copy or does not end. Kernels of GPUs run only in this process; so do C
        functions if no candidate ends in a copy, with a warning. There, a kernel that never ends
        cannot be stopped.

        Raises ``ArgumentError`` for arguments that the kernel does not accept, during the capture
        of a CUDA graph, or if no argument shows the kernel's results; ``OptionsError`` if no
        candidate can be launched; ``TclError`` if a kernel made the device unusable. After an
        error, the arguments hold their earlier values.
        """
        check_flag("again", again)
        for what, number in (("evaluations", evaluations), ("seed", seed)):
            if isinstance(number, bool) or not isinstance(number, int) or number < (what[0] == "e"):
                raise ArgumentError(f"{what} has to be a whole number, not {shown(number)}")
        target = self._target
        target.check(arguments)
        outputs = positions(self._outputs, len(arguments))
        blocks = target.blocks()
        if candidates is not None:
            blocks = blocks_of(candidates, len(self._sizes))
        key = self._block_key(arguments, blocks, outputs, evaluations)
        with target.alone():  # who waited here finds what the other one found
            self._result = None if again or key is None else self._known(key)
            if self._result is not None:
                target.launch(self._result.candidate, arguments)
                target.synchronise()
                return self._result
            target.synchronise()
            held = Arguments(arguments, target.arrays, outputs, self._tolerance)
            sweep = Sweep(target, arguments, held, self._defines)
            try:
                result = sweep.run(blocks, evaluations, seed)
            except BaseException:
                if not target.lost():
                    held.restore()
                raise
            self._store(key, result)
        for note in result.notes:
            warn(f"{target.name}: {note}")
        self._result = result
        return result

    def run(self, *arguments: Any) -> None:
        """Launch the kernel with the result of the last tuning; on a GPU, on the current stream.
        Raises ``ArgumentError`` if nothing was tuned."""
        if self._result is None:
            raise ArgumentError(f"{self._target.name} was not tuned; call tune(...) first")
        self._target.launch(self._result.candidate, arguments)

    def _block_key(
        self,
        arguments: Sequence[Any],
        blocks: tuple[Block, ...],
        outputs: tuple[int, ...] | None,
        evaluations: int,
    ) -> BlockKey | None:
        """What the answer depends on; None if the kernel cannot be told from others."""
        target = self._target
        source = target.source
        if source is None:
            return None
        first = LaunchShape(blocks[0], tuple((name, v[0]) for name, v in self._defines.items()))
        search = (blocks, self._defines, target.launched(first), outputs, self._tolerance)
        return BlockKey(
            target.name,
            source,
            self._sizes,
            tuple(map(_described, arguments)),
            repr((*search, evaluations)),
            target.device,
        )

    def _cache(self) -> TuningCache:
        return TuningCache(self._path)

    def _known(self, key: BlockKey) -> BlockTuningResult | None:
        try:
            text = block_results.load(self._cache(), key)
            return None if text is None else BlockTuningResult.from_json(text)
        except (CacheError, ValueError) as error:
            warn(f"the saved launch shape for {key.kernel} is not used: {error}")
            return None

    def _store(self, key: BlockKey | None, result: BlockTuningResult) -> None:
        if key is None:
            warn(
                f"the result for {self._target.name} is not saved, because its code cannot be "
                "identified; pass source=, a text that changes when the function changes"
            )
            return
        try:
            block_results.store(self._cache(), key, result.to_json())
        except CacheError as error:
            warn(f"the result for {key.kernel} is not saved: {error}")


def _is_raw(kernel: object) -> bool:
    """Whether it is a raw kernel of CuPy, which is loaded if there is one."""
    package = sys.modules.get("cupy")
    return package is not None and isinstance(kernel, package.RawKernel | package.RawModule)


def _refuse(kind: str, **given: object) -> None:
    """Raise ``ArgumentError`` for settings that a kind of kernels has no use for."""
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"{name}= has no meaning for {kind}; leave it out")


def _check_shape(grid: object, shared: object) -> None:
    if grid is not None and not callable(grid):
        raise ArgumentError(
            "grid must be a function of the block and the macros' values that returns the "
            f"blocks along x, y and z, not {shown(grid)}"
        )
    whole = isinstance(shared, int) and not isinstance(shared, bool) and shared >= 0
    if not whole and not callable(shared):
        raise ArgumentError(
            "shared_bytes must be a whole number, or a function of the block and the macros' "
            f"values that returns one, not {shown(shared)}"
        )


def _tolerance(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ArgumentError(
            f"tolerance has to be a relative difference from 0 to 1, not {shown(value)}"
        )
    return float(value)


def _described(argument: Any) -> str:
    """Type and shape of an argument: what it holds is no part of what a tuning is for."""
    shape = getattr(argument, "shape", None)
    if isinstance(shape, tuple):
        return f"{argument.dtype}{list(shape)} {getattr(argument, 'strides', None) or ''}".strip()
    return type(argument).__name__
