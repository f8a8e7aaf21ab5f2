"""Tuning when it is first needed: what the modes of ``tcl.selection.tune_modes`` do.

A call that needs a kernel for a def, sizes and device that nobody has tuned waits until a search is
done. Whoever needs the same meanwhile, in whatever process, waits too, and has what was found. What
was done is kept, so that it is done once, also where nothing worked.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tcl.arrays.tracing import opaque, recorder
from tcl.backends.targets import CpuTarget, CudaTarget, Target
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, CacheError, CompileError, ExecutorLostError
from tcl.common.interrupts import of_system
from tcl.common.log import logger
from tcl.common.scratch_folder import workspace
from tcl.common.warn import warn_once
from tcl.executors.call_kernels import FirstCall
from tcl.selection.best_options import DEFAULT, Query
from tcl.selection.near_sizes import adopted
from tcl.selection.remembered import BEGUN, BUSY_THEN, default_as_nothing_works, known_by
from tcl.selection.suggested_options import Chosen
from tcl.selection.tune_modes import TuneMode
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.first_uses import FirstUse
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.machine_lock import locked
from tcl.tuner.measure.reliability import BUSY, share_of_others
from tcl.tuner.run.brief import BriefSearch
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.stop_requests import searches_count
from tcl.tuner.run.tuner import Tuner

_log = logger("tuning")

CONFIGS: Mapping[str, TunerConfig] = MappingProxyType(
    {
        "trimmed": TunerConfig(generations=10, time_limit=30.0),
        "all": TunerConfig(),
    }
)
"""The searches of the modes that take longer than ``auto``. Of each, starting processes, the
reference and confirming the winner take three to four seconds."""
STARTS = (DEFAULT, MappingOptions("pointwise"))
"""What these measure first."""


@opaque
def tuned(call: FirstCall, mode: TuneMode) -> Chosen:
    """The options for a call, after tuning if the mode says so and that was not done before; for
    empty arrays nothing is tuned.

    Raises ``ArgumentError`` while a framework records what calls do, where nothing can be measured;
    what a search raises for inputs that are wrong. A search that finds nothing, or a cache that
    cannot be used, is a warning, and the default is used.
    """
    query = call.query
    try:
        cache = TuningCache(default_path())
        known = known_by(cache, query, mode)
        if known is not None:
            return known
        if (what := recording()) is not None:
            raise ArgumentError(
                f"{query.name} on {query.key.sizes} would be tuned now (mode {mode}), but "
                f"nothing can be measured while {what}; call it once before, tune it with "
                "tcl.autotune, or use tune_mode='off'"
            )
        # Who comes second waits, and has what the first one found.
        with locked(f"tcl-first-use-{query.key.digest[:32]}"):
            known = known_by(cache, query, mode)
            return _done(cache, call, mode) if known is None else known
    except CacheError as error:
        warn_once(
            ("first use", str(error)),
            f"{query.name} is not tuned, and the default is used: {error}",
        )
        return DEFAULT


def _done(cache: TuningCache, call: FirstCall, mode: TuneMode) -> Chosen:
    """Do the work, and keep that it was done."""
    query, key = call.query, call.query.key
    _log.info("%s on %s: tuning on first use (mode %s)", query.name, key.sizes, mode)
    if not mode.searches:
        refused = {preset: query.refusal(MappingOptions(preset)) for preset in mode.presets}
        left = [MappingOptions(preset) for preset, reason in refused.items() if reason is None]
        if len(left) <= 1:
            reasons = "; ".join(f"{preset}: {reason}" for preset, reason in refused.items())
            entry = FirstUse(str(mode), left[0].to_json() if left else None, reasons * (not left))
            first_uses.store(cache, key, entry)
            return left[0] if left else default_as_nothing_works(query, mode, reasons)
    before = {entry.mode for entry in first_uses.load(cache, key)}
    # Where a signal ends the process, or its handler the search, the next process begins again.
    # And nothing is searched for that could not be kept: each process would do so.
    begun = f"{BEGUN} {mode}"
    first_uses.store(cache, key, FirstUse(begun, None))
    try:
        result = _searched(cache, call, mode, _starts(cache, query) if mode.searches else left)
    # Too few cores; the reference does not compile; no process can be started; no more files.
    except (ArgumentError, CompileError, ExecutorLostError, OSError) as error:
        if isinstance(error, OSError) and not of_system(error):
            raise
        warn_once(
            ("first use", key.digest, str(error)),
            f"{query.name} on {key.sizes} cannot be tuned, so the default is used: {error}",
        )
        return DEFAULT
    winner, message = result.options, _why(result)
    _log.info("%s on %s: %s", query.name, key.sizes, winner or f"nothing works: {message}")
    text = winner.to_json() if winner is not None else None
    busy = share_of_others([c.outcome for c in result.history])
    if busy > BUSY and f"{BUSY_THEN} {mode}" not in before:
        _log.warning(
            "%s on %s was tuned while other processes used %.0f %% of the cores that measure: the "
            "next process tunes it once more", query.name, key.sizes, 100 * busy,
        )  # fmt: skip
        entry = FirstUse(f"{BUSY_THEN} {mode}", text, message)
    else:
        entry = FirstUse(str(mode), text, message)
    try:
        first_uses.store(cache, key, entry, instead_of=begun)
    except CacheError as error:  # which could be written when the search began
        warn_once(
            ("first use", str(error)),
            f"the result for {query.name} cannot be saved, so the next process searches again: "
            f"{error}",
        )
    return winner if winner is not None else default_as_nothing_works(query, mode, message)


def _searched(
    cache: TuningCache,
    call: FirstCall,
    mode: TuneMode,
    start: Sequence[MappingOptions],
) -> TuningResult[MappingOptions]:
    """What a search finds. It counts no signals: those are the program's."""
    target, name, arrays = _target(call), call.query.name, call.values()
    with workspace() as folder, searches_count():
        backend = target.backend(call.source, name, arrays).for_all(call.query.classes)
        backend = backend.holding(arrays, folder)
        space, key, cores = target.space(backend), call.query.key, target.cores
        config = CONFIGS.get(mode.name)
        if config is None:
            brief = BriefSearch[MappingOptions](
                backend,
                space,
                cache=cache,
                key=key,
                entry=name,
                measure_cores=cores,
                neighbours=mode.searches,
            )
            return brief.tune(start)
        tuner = Tuner[MappingOptions](
            backend,
            space,
            config=config,
            cache=cache,
            key=key,
            entry=name,
            timing=target.timing,
            measure_cores=cores,
        )
        return tuner.tune(STARTS)


def _starts(cache: TuningCache, query: Query) -> list[MappingOptions]:
    """What a brief search begins with: the default, and what would be used without a search."""
    near = adopted(cache, query)
    return [DEFAULT] if near is None else [DEFAULT, near.options]


def _why(result: TuningResult[MappingOptions]) -> str:
    """Why the first candidate does not work; empty if something does."""
    if result.options is not None:
        return ""
    failed = next((c.outcome for c in result.history), None)
    return "nothing was measured" if failed is None else failed.message


def _target(call: FirstCall) -> Target:
    device = call.query.device
    if isinstance(device, CpuProfile):
        return CpuTarget(device.threads)
    return CudaTarget(call.number, device)


def recording() -> str | None:
    """What records calls now instead of running them, as the end of a sentence; None if nothing
    does. Only frameworks that are loaded are asked."""
    torch, jax, cupy = (sys.modules.get(name) for name in ("torch", "jax", "cupy"))
    if torch is not None:
        if torch.compiler.is_compiling():
            return "torch.compile traces it"
        if (found := recorder()) is not None:
            return found
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return "a CUDA graph is captured"
    # Where JAX's transformations are at work, no value is an array yet.
    if jax is not None and isinstance(jax.numpy.zeros(()), jax.core.Tracer):
        return "JAX traces it"
    if cupy is not None:
        try:
            if cupy.cuda.get_current_stream().is_capturing():
                return "a CUDA graph is captured"
        except RuntimeError:  # there is no GPU
            pass
    return None
