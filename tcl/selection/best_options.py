"""The best way that is known to map a def: from the tuning cache, else a heuristic default."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.arrays.arguments import Array
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.compiler import Device, compiler_for
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError, OptionsError
from tcl.common.folder import cache_folder
from tcl.common.lazy import Lazy
from tcl.common.warn import warn, warn_once, warn_user, was_told
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.grammar.tree.canonical import canonical_text
from tcl.selection.suggested_options import DEFAULT as DEFAULT
from tcl.selection.suggested_options import Choices, Chosen, Suggested
from tcl.tuner.cache import fingerprint
from tcl.tuner.cache.file import FILE_NAME
from tcl.tuner.cache.key import differences
from tcl.tuner.cache.ranking import ranked
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, TuningCache

if TYPE_CHECKING:
    from tcl.codegen.loopir import ir
    from tcl.tuner.cache import nearby
    from tcl.tuner.cache.nearby import Near
else:
    nearby = Lazy("tcl.tuner.cache.nearby")

_TRIES = 10
"""Cached options that are tried before the default is taken: some may not apply."""
_DIGITS = 10
"""By which people name a key."""


def layout_key(sized: SizedDef, inputs: tuple[ArrayLayout, ...], device: Device) -> CacheKey:
    """What measured times of this def on inputs of these layouts depend on."""
    return CacheKey(
        definition=canonical_text(sized.checked),
        backend=device.backend,
        inputs=inputs,
        device=fingerprint.device_identity(device),
        codegen_version=CODEGEN_VERSION,
    )


def array_layouts(arrays: Sequence[Array | ArrayLayout]) -> tuple[ArrayLayout, ...]:
    """What a kernel is compiled for, of these arrays."""
    return tuple(
        a if isinstance(a, ArrayLayout) else ArrayLayout(a.shape, a.strides, a.dtype.name)
        for a in arrays
    )


@dataclass(frozen=True, slots=True)
class Query:
    """What options are looked up for: a def for its sizes on a device."""

    sized: SizedDef
    key: CacheKey
    device: Device
    classes: Mapping[str, SizeClass] = field(default_factory=dict)
    """Of the sizes that vary, by their names; ``sized`` has the representative ones."""

    @classmethod
    def on_inputs(
        cls, sized: SizedDef, arrays: Sequence[Array | ArrayLayout], device: Device
    ) -> Query:
        return cls(sized, layout_key(sized, array_layouts(arrays), device), device)

    @property
    def name(self) -> str:
        """The def's."""
        return self.sized.checked.name

    def layouts(self) -> dict[str, ir.Layout]:
        """How all tensors lie in memory."""
        pairs = zip(self.sized.checked.inputs, self.key.inputs, strict=True)
        strides = {tensor.name: layout.strides for tensor, layout in pairs}
        return compiler_for(self.device).layouts(self.sized, strides)

    def refusal(self, options: MappingOptions) -> str | None:
        """Why options cannot be applied to these sizes, in a sentence; None if they can."""
        compiler = compiler_for(self.device)
        try:
            compiler.built(self.sized, options, lambda plan, program: None, self.layouts())
        except OptionsError as error:
            return str(error)
        return None


def best_known(query: Query, *, nearest: bool = False, relax: Collection[str] = ()) -> Chosen:
    """The best options that the user's cache has for this, else the heuristic default, with one
    warning for a def where it has options for other numbers of threads.

    ``nearest``: before the default, those for the nearest sizes that apply, with a warning.
    ``relax``: likewise those of devices that are others in these fields.
    """
    folder = cache_folder()
    if folder is None:
        return DEFAULT
    try:
        cache = TuningCache(folder / FILE_NAME)
        found = known_options(cache, query, nearest=nearest, relax=relax)
        if found is None:
            _tell_of_other_threads(cache, query)
    except CacheError as error:
        warn(f"cached options are not used: {error}")
        found = None
    return found or DEFAULT


def _tell_of_other_threads(cache: TuningCache, query: Query) -> None:
    """Warn where a cache that has nothing for this has it for other numbers of threads: once for a
    def in a process, after one look at the file at most for each of its sizes."""
    key, about = query.key, ("threads", str(cache.path), query.key.definition)
    if query.device.threads is None or was_told(about):
        return
    device, own = fingerprint.split_threads(key.device)
    found = map(fingerprint.split_threads, cache.devices(key))
    others = sorted(threads for other, threads in found if other == device and threads != own)
    if others:
        counts = " and ".join(map(str, others))
        warn_user(
            f"{query.name} on {key.sizes} was tuned for {counts} thread{'s' * (others != [1])} "
            f"but not for the {own} that it may use here, so that result is not used; set "
            f"threads={others[-1]} (or TCL_NUM_THREADS) to use it, or tune it for {own}",
            about,
        )


def known_options(
    cache: TuningCache, query: Query, *, nearest: bool = False, relax: Collection[str] = ()
) -> Choices | None:
    """What a cache suggests, best first; None if that is nothing.

    For a class of sizes, what it has for single ones of these comes after what it has for all.
    ``nearest``: what it has for the nearest sizes comes after that, ``relax``: and what it has of
    devices that differ in no more than these fields (``fingerprint.FIELDS``); where that is the
    first, a ``TclWarning`` says what it was measured for. Rows that cannot be read are passed over,
    with a warning. Raises ``CacheError`` for a file that cannot be used.
    """
    if not os.path.exists(cache.path):
        return None
    found = suggestions(cache, query.key, query.name)
    if query.classes:
        single = (near for near in nearby.nearby(cache, query.key) if query.key.has(near.key))
        found = replace(found, entries=(*found.entries, *_entries(single, query.key.device)))
    if nearest or relax:
        alike = nearby.nearby(cache, query.key, sizes=nearest, relax=relax)
        try:
            near = _nearest_entries(alike, query, first=found.preferred is None)
        except CacheError as error:
            what = "near sizes" if nearest else "other devices"
            warn_once((found.cache, str(error)), f"cached options for {what} are not used: {error}")
        else:
            found = replace(found, entries=(*found.entries, *near))
    return found if found.entries else None


def named_options(
    cache: TuningCache, query: Query, *, nearest: bool = False, relax: Collection[str] = ()
) -> Choices:
    """``known_options`` of a cache that somebody asks for, with a sentence about what is missing
    if that is nothing. A file that cannot be used has nothing, either."""
    try:
        found = known_options(cache, query, nearest=nearest, relax=relax)
        if found is not None:
            return found
        missing = _missing(cache, query, nearest=nearest)
    except CacheError as error:
        missing = f"cached options are not used: {error}; the default is used"
    return Choices(query.name, str(cache.path), (), missing)


def _missing(cache: TuningCache, query: Query, *, nearest: bool) -> str:
    """What a cache has instead of what is looked for, and what to do. ``nearest``: near sizes
    would have done."""
    key, name = query.key, query.name
    if not os.path.exists(cache.path):
        return f"there is no file {cache.path}, so the default is used for {name}; tune into it"
    near = nearby.explain(cache, key, name).nearest
    varying = f" with --varying {','.join(query.classes)}" if query.classes else ""
    what, remedy = "nothing else either", f"tune it into this file{varying}"
    if near is not None:
        apart = [d.ingredient for d in differences(key, near.key)]
        what = f"the nearest is for {near.entry} on {near.key.sizes}"
        if apart != ["shapes"]:
            what += f" (what differs: {', '.join(apart)})"
        argument = _allowing(apart, nearest=nearest)
        if argument is not None:
            call = f"make_load_from_cache_options_factory({str(cache.path)!r}, {argument})"
            remedy = f"to use its options: {call}; or tune these sizes into this file{varying}"
    return (
        f"{cache.path} has no options for {name} on {key.sizes}, so the default is used "
        f"({what}); {remedy}"
    )


def _allowing(apart: Sequence[str], *, nearest: bool) -> str | None:
    """The argument that lets options be used that were measured for something else; None if one
    alone does not, or did not. ``apart``: what differs."""
    if not {*apart} - {"shapes", "strides"}:
        return None if nearest else "nearest=True"
    if not {*apart} - {*fingerprint.FIELDS}:
        return f"relax={','.join(apart)!r}"
    return None


def suggestions(cache: TuningCache, key: CacheKey, name: str, count: int = _TRIES) -> Choices:
    """The best ``count`` results that a cache has of this very key, for the def of this name. Rows
    that cannot be read are passed over, with a warning. Raises ``CacheError``."""
    records, damage = cache.deciding(key, best=count)
    digits, file = key.digest[:_DIGITS], str(cache.path)
    if damage is not None:
        about = f"for {name} on {key.sizes} (key {digits} in {file})"
        warn_once((file, digits, damage), f"a cached result {about} is skipped: {damage}")
    best = enumerate(ranked(records)[:count], 1)
    entries = (Suggested(record.options, digits, key.sizes, rank) for rank, record in best)
    return Choices(name, file, tuple(entries))


def _nearest_entries(found: Iterator[Near], query: Query, *, first: bool) -> list[Suggested]:
    """Entries for the nearest sizes and devices. ``first``: nothing is tried before them, so that
    the first one has to apply to these sizes, and it is said that it is used."""
    if first:
        applicable = _applicable(found, query)
        if applicable is None:
            return []
        warn(stand_in(query.name, query.key, applicable.key))
        found = chain([applicable], found)
    return _entries(found, query.key.device)


def _entries(found: Iterator[Near], device: str) -> list[Suggested]:
    """Options that were measured for other keys, as suggestions for this device."""
    return [
        Suggested(
            n.record.options,
            n.key.digest[:_DIGITS],
            n.key.sizes,
            n.rank,
            _values_apart(device, n.key.device),
        )
        for n in islice(found, _TRIES)
    ]


def defined(source: str, cache: Path, query: Query, varying: Sequence[str]) -> str:
    """The call of ``tcl.define`` whose kernels use what a cache has for this. ``source``: its first
    argument; ``varying``: its sizes that vary."""
    folder = cache_folder()
    given = [source]
    if folder is None or cache != folder / FILE_NAME:
        given.append(f"tcl.make_load_from_cache_options_factory({str(cache)!r})")
    if query.device.threads not in (None, thread_count(None)):
        given.append(f"threads={query.device.threads}")
    if varying:
        given.append(f"varying={tuple(varying)}")
    return f"tcl.define({', '.join(given)})"


def stand_in(name: str, key: CacheKey, used: CacheKey) -> str:
    """A sentence about options that were measured for another key of the same def, and are used:
    what is different there."""
    sizes, strides = used.sizes != key.sizes, used.inputs != key.inputs
    values = _values_apart(key.device, used.device)
    if not values:
        return (
            f"{name} was not tuned for {key.sizes}{' with these strides' * (not sizes)}; the "
            f"options for {used.sizes if sizes else 'others'} are used, the nearest tuned ones"
        )
    besides = f", for {used.sizes}" if sizes else ", for other strides" if strides else ""
    return (
        f"{name} was not tuned on this device for {key.sizes}; options that were measured on "
        f"another device ({values}){besides} are used, because relax allows it"
    )


def _values_apart(device: str, other: str) -> str:
    """The fields in which another device differs, with its values and this one's."""
    here, there = fingerprint.fields(device), fingerprint.fields(other)
    return ", ".join(
        f"{field} {there[field]} instead of {here[field]}"
        for field in fingerprint.differing(device, other)
    )


def _applicable(found: Iterator[Near], query: Query) -> Near | None:
    """The first whose options can be applied to these sizes; None if there is none."""
    for near in found:
        with suppress(OptionsError):
            if query.refusal(MappingOptions.from_json(near.record.options)) is None:
                return near
    return None
