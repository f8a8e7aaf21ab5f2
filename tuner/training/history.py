"""What was measured, as examples to learn from: the whole history of a tuning cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

import numpy as np

from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.compiler import compiler_for
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.common.errors import OptionsError, TclError
from tcl.grammar.ranges.inference import infer
from tcl.grammar.tree.canonical import canonical_text
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.model.loops import Bools, Floats
from tcl.tuner.model.subject import Subject
from tcl.tuner.model.subjects import Device, subject_type
from tcl.tuner.training.scale import Session, scaled

_FEWEST = 4
"""Candidates that have to be measured of a key for them to be compared."""


@dataclass(frozen=True, slots=True)
class MeasuredProblem:
    """The measured candidates of one key."""

    key: CacheKey
    entry: str
    """The def's name when it was first tuned."""
    subject: Subject[Any, Any]
    options: tuple[MappingOptions, ...]
    rows: Floats
    """N x F: features."""
    expected: Floats
    """N: seconds by the analytic model."""
    seconds: Floats
    """N: measured, on one scale: see ``tcl.tuner.training.scale``."""
    raced: Bools
    """N: whether it was timed in turns with others, rather than once by itself."""
    default: int | None
    """The place of the heuristic default; None if it was not measured."""

    @property
    def gains(self) -> Floats:
        """N: natural logarithm of the time over the default's; over the median one's where the
        default was not measured."""
        of = np.median(self.seconds) if self.default is None else self.seconds[self.default]
        found: Floats = np.log(self.seconds / of)
        return found

    @property
    def best(self) -> float:
        """The least time; of those timed in turns, if any were: the least of many single readings
        is mostly luck."""
        return float((self.seconds[self.raced] if self.raced.any() else self.seconds).min())


@dataclass(frozen=True, slots=True)
class History:
    """What can be learned from, and why the rest cannot."""

    problems: tuple[MeasuredProblem, ...]
    passed_over: Mapping[str, int]
    """Reason → results."""

    @property
    def candidates(self) -> int:
        """How many there are."""
        return sum(len(p.options) for p in self.problems)


def history(
    cache: TuningCache, defs: Iterable[CheckedDef], devices: Mapping[str, Device]
) -> History:
    """Everything correct that a cache has of these defs on these devices (by identity, as keys name
    them, on a CPU with the threads that a kernel may use), which are CPUs or GPUs. Raises
    ``CacheError``."""
    backends = {device.backend for device in devices.values()}
    known = {canonical_text(checked): checked for checked in defs}
    found: list[MeasuredProblem] = []
    reasons = Counter[str]()
    for summary in cache.list():
        key = summary.key
        checked, device = known.get(key.definition), devices.get(key.device)
        if key.backend not in backends:
            reasons["of another backend"] += summary.measured
        elif key.codegen_version != CODEGEN_VERSION:
            reasons["of another version of the compiler"] += summary.measured
        elif device is None:
            reasons["of another device"] += summary.measured
        elif checked is None:
            reasons["of defs whose text was not given"] += summary.measured
        else:
            problem = _problem(cache, key, summary.entry, checked, device, reasons)
            found += [] if problem is None else [problem]
    kept = {reason: count for reason, count in reasons.items() if count}
    return History(tuple(found), kept)


def _problem(
    cache: TuningCache,
    key: CacheKey,
    entry: str,
    checked: CheckedDef,
    device: Device,
    reasons: Counter[str],
) -> MeasuredProblem | None:
    # Of the finals of a search the last verdict counts for each candidate.
    sessions: dict[tuple[str, bool], dict[str, float]] = {}
    for record in sorted(cache.history(key), key=lambda r: r.when):
        if record.time is not None:
            sessions.setdefault((record.run, record.heat is not None), {})[record.options] = (
                _quickest(record)
            )
        else:
            reasons["not correct"] += 1
    timed = set[str]().union(*sessions.values())
    try:
        subject = subject_of(key, checked, device)
    except TclError:
        reasons["of sizes that cannot be"] += len(timed)
        return None
    default = DEFAULT.to_json()
    found = scaled([Session(times, raced) for (_, raced), times in sessions.items()], default)
    reasons["of searches that share nothing with others"] += len(timed) - len(found)
    read = [(_options(text), text) for text in found]
    known = [(options, text) for options, text in read if options is not None]
    described = subject.describable([options for options, _ in known])
    reasons["of options that do not apply"] += len(found) - len(described)
    if len(described) < _FEWEST:
        reasons["of searches that measured too little"] += len(described)
        return None
    choices = [each for _, each in described]
    rows, expected = subject.extract(choices)
    kept = [known[place] for place, _ in described]
    texts = [text for _, text in kept]
    return MeasuredProblem(
        *(key, entry, subject, tuple(options for options, _ in kept), rows, expected),
        np.array([found[text].seconds for text in texts]),
        np.array([found[text].raced for text in texts]),
        texts.index(default) if default in texts else None,
    )


def _quickest(record: Record) -> float:
    """Seconds of the fastest sample, of each placement of the arrays. Whatever else the machine did
    meanwhile made samples longer only: of two races on a machine with other work, the least samples
    differed by 1 % and the medians by 4 %."""
    if not record.placed:
        return min(record.samples)
    return geometric_mean(min(times) for _, times in record.placed)


def _options(text: str) -> MappingOptions | None:
    try:
        return MappingOptions.from_json(text)
    except OptionsError:
        return None


def subject_of(key: CacheKey, checked: CheckedDef, device: Device) -> Subject[Any, Any]:
    """What candidates of a key are described against. Raises ``TclError`` for sizes that the def
    cannot have."""
    pairs = list(zip(checked.inputs, key.inputs, strict=True))
    sized = infer(checked, {t.name: layout.shape for t, layout in pairs})
    strides = {t.name: layout.strides for t, layout in pairs}
    program = lower(sized, compiler_for(device).layouts(sized, strides))
    return subject_type(key.backend).read(program, device)


def reasons(found: History) -> Iterator[str]:
    """Why results were passed over, a line each."""
    for reason, count in sorted(found.passed_over.items()):
        yield f"{count} results {reason}"
