"""The best way that is known to map a def: from the tuning cache, else a heuristic default."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.arrays.arguments import Array
from tcl.codegen.common.errors import OptionsError
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.canonical import canonical_text
from tcl.grammar.folder import cache_folder
from tcl.grammar.sized import SizedDef
from tcl.grammar.warn import warn, warn_once
from tcl.selection.suggested_options import DEFAULT as DEFAULT
from tcl.selection.suggested_options import Choices, Chosen, Suggested
from tcl.tuner.cache.file import FILE_NAME
from tcl.tuner.cache.key import differences, with_threads
from tcl.tuner.cache.nearby import Near, explain, nearby
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, TuningCache
from tcl.tuner.errors import CacheError

if TYPE_CHECKING:
    from tcl.codegen.devices.gpu import GpuProfile

_TRIES = 10
"""Cached options that are tried before the default is taken: some may not apply."""
_DIGITS = 10
"""By which people name a key."""


def cache_key(sized: SizedDef, arrays: Sequence[Array], threads: int = 1) -> CacheKey:
    """What measured times of this def on these inputs, with so many threads, depend on."""
    return layout_key(sized, array_layouts(arrays), threads)


def layout_key(sized: SizedDef, inputs: tuple[ArrayLayout, ...], threads: int = 1) -> CacheKey:
    """What measured times of this def on inputs of these layouts depend on."""
    return CacheKey(
        definition=canonical_text(sized.checked),
        backend="cpu",
        inputs=inputs,
        device=device_identity(replace(host_cpu(), threads=threads)),
        codegen_version=CODEGEN_VERSION,
    )


def cuda_key(sized: SizedDef, inputs: tuple[ArrayLayout, ...], profile: GpuProfile) -> CacheKey:
    """What measured times of this def on inputs of these layouts depend on, on a GPU."""
    return replace(layout_key(sized, inputs), backend="cuda", device=gpu_identity(profile))


def array_layouts(arrays: Sequence[Array]) -> tuple[ArrayLayout, ...]:
    """What a kernel is compiled for, of these arrays."""
    return tuple(ArrayLayout(a.shape, a.strides, a.dtype.name) for a in arrays)


def gpu_identity(profile: GpuProfile) -> str:
    """What measured times depend on: model, architecture, multiprocessors."""
    return f"{profile.name}; {profile.architecture}; {profile.multiprocessors} multiprocessors"


def best_known(
    sized: SizedDef,
    arrays: Sequence[Array],
    threads: int = 1,
    *,
    nearest: bool = False,
    gpu: GpuProfile | None = None,
    key: CacheKey | None = None,
) -> Chosen:
    """The best options that the user's cache has for this, else the heuristic default.

    ``nearest``: before the default, those for the nearest sizes that apply, with a warning.
    ``gpu`` and ``key`` are as in ``known_options``.
    """
    folder = cache_folder()
    if folder is None:
        return DEFAULT
    try:
        found = known_options(
            TuningCache(folder / FILE_NAME),
            sized,
            arrays,
            threads,
            nearest=nearest,
            gpu=gpu,
            key=key,
        )
    except CacheError as error:
        warn(f"cached options are not used: {error}")
        found = None
    return found or DEFAULT


def known_options(
    cache: TuningCache,
    sized: SizedDef,
    arrays: Sequence[Array],
    threads: int = 1,
    *,
    nearest: bool = False,
    gpu: GpuProfile | None = None,
    key: CacheKey | None = None,
) -> Choices | None:
    """What a cache suggests for this CPU with so many threads, or for ``gpu``, best first; None if
    that is nothing. ``key``: what to look for, if it is not what these say.

    ``nearest``: what it has for the nearest sizes comes after that; where it is the first, a
    ``TclWarning`` says for which. Rows that cannot be read are passed over, with a warning. Raises
    ``CacheError`` for a file that cannot be used.
    """
    if not os.path.exists(cache.path):
        return None
    key = key or _key(sized, arrays, threads, gpu)
    found = suggestions(cache, key, sized.checked.name)
    if nearest:
        first = found.preferred is None
        try:
            near = _near(cache, key, sized, threads, gpu, first=first)
        except CacheError as error:
            warn_once(
                (found.cache, str(error)), f"cached options for near sizes are not used: {error}"
            )
        else:
            found = replace(found, entries=(*found.entries, *near))
    return found if found.entries else None


def named_options(
    cache: TuningCache,
    sized: SizedDef,
    arrays: Sequence[Array],
    threads: int = 1,
    *,
    nearest: bool = False,
    gpu: GpuProfile | None = None,
) -> Choices:
    """``known_options`` of a cache that somebody asks for, with a sentence about what is missing
    if that is nothing. A file that cannot be used has nothing, either."""
    name, file = sized.checked.name, str(cache.path)
    try:
        found = known_options(cache, sized, arrays, threads, nearest=nearest, gpu=gpu)
        if found is not None:
            return found
        missing = _missing(cache, _key(sized, arrays, threads, gpu), name, nearest=nearest)
    except CacheError as error:
        missing = f"cached options are not used: {error}; the default is used"
    return Choices(name, file, (), missing)


def _missing(cache: TuningCache, key: CacheKey, name: str, *, nearest: bool) -> str:
    """What a cache has instead of what is looked for, and what to do. ``nearest``: near sizes
    would have done."""
    if not os.path.exists(cache.path):
        return f"there is no file {cache.path}, so the default is used for {name}; tune into it"
    near = explain(cache, key, name).nearest
    what, remedy = "nothing else either", "tune it into this file"
    if near is not None:
        apart = [d.ingredient for d in differences(key, near.key)]
        what = f"the nearest is for {near.entry} on {near.key.sizes}"
        if apart != ["shapes"]:
            what += f" (what differs: {', '.join(apart)})"
        if not nearest and not {*apart} - {"shapes", "strides"}:
            call = f"make_load_from_cache_options_factory({str(cache.path)!r}, nearest=True)"
            remedy = f"for that one's options: {call}, or tune these sizes into this file"
    return (
        f"{cache.path} has no options for {name} on {key.sizes}, so the default is used "
        f"({what}); {remedy}"
    )


def _key(
    sized: SizedDef, arrays: Sequence[Array], threads: int, gpu: GpuProfile | None
) -> CacheKey:
    if gpu is None:
        return cache_key(sized, arrays, threads)
    return cuda_key(sized, array_layouts(arrays), gpu)


def suggestions(cache: TuningCache, key: CacheKey, name: str, count: int = _TRIES) -> Choices:
    """The best ``count`` results that a cache has of this very key, for the def of this name. Rows
    that cannot be read are passed over, with a warning. Raises ``CacheError``."""
    records, damage = cache.readable(key, count)
    digits, file = key.digest[:_DIGITS], str(cache.path)
    if damage is not None:
        about = f"for {name} on {key.sizes} (key {digits} in {file})"
        warn_once((file, digits, damage), f"a cached result {about} is passed over: {damage}")
    entries = (_suggested(key, r.options, rank) for rank, r in enumerate(records, 1))
    return Choices(name, file, tuple(entries))


def _suggested(key: CacheKey, options: str, rank: int) -> Suggested:
    return Suggested(options, key.digest[:_DIGITS], key.sizes, rank)


def _near(
    cache: TuningCache,
    key: CacheKey,
    sized: SizedDef,
    threads: int,
    gpu: GpuProfile | None,
    *,
    first: bool,
) -> list[Suggested]:
    """Entries for the nearest sizes. ``first``: nothing is tried before them, so that the first one
    has to apply to these sizes, and it is said that it is used."""
    found = nearby(cache, key)
    if first:
        applicable = _applicable(found, key, sized, threads, gpu)
        if applicable is None:
            return []
        used = applicable.key
        strides = used.sizes == key.sizes
        warn(
            f"{sized.checked.name} was not tuned for {key.sizes}"
            f"{' with these strides' * strides}; the options for "
            f"{'others' if strides else used.sizes} are used, which are the nearest that were"
        )
        found = chain([applicable], found)
    return [_suggested(n.key, n.record.options, n.rank) for n in islice(found, _TRIES)]


def _applicable(
    found: Iterator[Near],
    key: CacheKey,
    sized: SizedDef,
    threads: int,
    gpu: GpuProfile | None,
) -> Near | None:
    """The first whose options can be applied to these sizes; None if there is none."""
    inputs = zip(sized.checked.inputs, key.inputs, strict=True)
    strides = {tensor.name: i.strides for tensor, i in inputs}
    apply = _on_gpu(sized, strides, gpu) if gpu else _on_cpu(sized, strides, threads)
    for near in found:
        try:
            apply(MappingOptions.from_json(near.record.options))
        except OptionsError:  # it does not fit these sizes
            continue
        return near
    return None


def _on_cpu(
    sized: SizedDef, strides: Mapping[str, tuple[int, ...]], threads: int
) -> Callable[[MappingOptions], object]:
    """What raises ``OptionsError`` for options that cannot be applied."""
    from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
    from tcl.codegen.loopir.layouts import cpu_layouts
    from tcl.codegen.loopir.lower import lower
    from tcl.codegen.schedule.cpu import schedule

    places = cpu_layouts(sized, strides)
    device = replace(host_cpu(), threads=threads)
    if threads > 1:
        device = with_threads_worth(lower(sized, places), device)
    return lambda options: schedule(sized, options, device, places)


def _on_gpu(
    sized: SizedDef, strides: Mapping[str, tuple[int, ...]], gpu: GpuProfile
) -> Callable[[MappingOptions], object]:
    """Likewise."""
    from tcl.codegen.loopir.layouts import gpu_layouts
    from tcl.codegen.schedule.gpu import schedule

    places = gpu_layouts(sized, strides)
    return lambda options: schedule(sized, options, gpu, places)


def device_identity(device: CpuProfile) -> str:
    """What measured times depend on: model, vector width, cores, caches, and threads if there are
    several."""
    return with_threads(
        f"{_model()}; {device.vector_bits}-bit vectors; {os.cpu_count()} cores; "
        f"L2 {device.l2_bytes >> 10} KiB",
        device.threads,
    )


@functools.cache
def _model() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
