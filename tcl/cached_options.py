"""Options from a cache file that a program names, with the original's names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from tcl.api import Definitions, OptionsFactory
from tcl.arrays.arguments import Argument
from tcl.arrays.user_input import SourceLike, check_flag, check_sequence, file_named
from tcl.backends.targets import target, target_of
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.shown import shown
from tcl.common.warn import warn
from tcl.executors.call_inputs import inputs_of
from tcl.executors.call_kernels import size
from tcl.executors.dispatch import check_varying
from tcl.executors.size_classes import ForAll
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.selection.best_options import named_options, stand_in, suggestions
from tcl.selection.suggested_options import CacheFactory, Choices
from tcl.tuner.cache import ranking
from tcl.tuner.cache.fingerprint import relaxed_fields
from tcl.tuner.cache.nearby import nearby
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache


class MappingOptionsCache:
    """The options in a cache file."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self._path = file_named("filename", filename)

    def load(
        self,
        source: SourceLike,
        entry_point: str,
        inputs: Sequence[Argument] | Sequence[Any],
        count: int = 1,
        *,
        winners: bool = False,
        threads: int | None = None,
        device: str | None = None,
        relax: str | Iterable[str] | None = None,
        varying: Sequence[str] = (),
    ) -> list[MappingOptions]:
        """The best options for a def, best first: at most ``count``, or an empty list.

        - ``inputs``: arrays with the sizes, strides and types in question.
        - ``winners``: if True, only the final results of searches, each once.
        - ``threads``: as for ``define``. ``device``: as for ``Tuner``.
        - ``relax``: if there are no options for this device, use those measured on a device that
          differs only in these fields (see ``define``), with a ``TclWarning``.
        - ``varying``: names of sizes that vary; the options are then for the class of these sizes
          (see ``define``).

        Entries that cannot be read, or are not options, are skipped. Raises ``CacheError``, and
        ``ValueError`` for an unknown field of ``relax``.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ArgumentError(f"count must be a whole number from 1, not {shown(count)}")
        definition = Definitions(source).definition(entry_point)
        names = check_varying(varying, [definition])
        check_sequence(definition, inputs)
        found = inputs_of(definition, inputs)
        cores = thread_count(threads)
        where = target_of(found, None if device is None else target(device, cores), cores)
        check_flag("winners", winners)
        relaxed = relaxed_fields(relax)
        if not os.path.exists(self._path):
            return []
        cache = TuningCache(self._path)
        key = where.query(size(definition, found.arrays), found.arrays, names).key

        def known(key: CacheKey) -> list[MappingOptions]:
            options = suggestions(cache, key, definition.name, sys.maxsize).options()
            if winners:
                ended_with = ranking.winners(cache.deciding(key)[0])
                options = (each for each in options if each.to_json() in ended_with)
            return list(islice(options, count))

        own = known(key)
        if own or not relaxed:
            return own
        for near in nearby(cache, key, each=1, sizes=False, relax=relaxed):
            if options := known(near.key):
                warn(stand_in(definition.name, key, near.key))
                return options
        return []


def make_load_from_cache_options_factory(
    cache_filename: str | os.PathLike[str],
    *,
    threads: int | None = None,
    nearest: bool = False,
    relax: str | Iterable[str] | None = None,
) -> OptionsFactory:
    """A factory that returns the best options from a cache file, for the GPU of the inputs, or for
    ``threads`` threads of a CPU. Default of ``threads``: the number of threads of the requested
    kernel.

    ``nearest``: if the file has no options for these sizes, use the options of the nearest sizes
    that can be applied, with a ``TclWarning``. ``relax`` (see ``define``): if the file has none for
    this device, use options that were measured on a device that differs only in these fields, with
    a ``TclWarning``.

    In ``define`` and ``compile``, options that do not apply to the arrays are skipped for the next
    best ones, then for the default. If the file has no options, or does not exist, the default is
    used. Each case gives one warning. If you call the factory itself, it returns None if there are
    no options.
    """

    path = file_named("cache_filename", cache_filename)
    check_flag("nearest", nearest)
    cores = None if threads is None else thread_count(threads)
    return _FromCache(path, cores, nearest, relaxed_fields(relax))


@dataclass(frozen=True, slots=True)
class _FromCache(CacheFactory):
    path: Path
    threads: int | None
    nearest: bool
    relax: frozenset[str]

    def for_threads(self, threads: int) -> _FromCache:
        return self if self.threads is not None else replace(self, threads=threads)

    def choices(
        self,
        source: str,
        entry_point: str,
        inputs: tuple[Any, ...],
        classes: Mapping[str, SizeClass],
    ) -> Choices:
        definition = Definitions(source).definition(entry_point)
        found = inputs_of(definition, inputs)
        threads = thread_count(self.threads)
        where, sized = target_of(found, None, threads), size(definition, found.arrays)
        if classes:
            query = ForAll.for_sizes(definition, sized.sizes, classes).query(where.device)
        else:
            query = where.query(sized, found.arrays)
        return named_options(TuningCache(self.path), query, nearest=self.nearest, relax=self.relax)
