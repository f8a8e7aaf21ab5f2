"""What was measured, as examples to learn from: the whole history of a tuning cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.canonical import canonical_text
from tcl.grammar.checked import CheckedDef
from tcl.grammar.errors import TclError
from tcl.grammar.ranges import infer
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.model.features import extract
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.subject import Subject

_FEWEST = 4
"""Candidates that a search has to have measured for them to be compared."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The candidates of one key that one search measured, each with its last time: what was
    measured on another day, on a machine that was otherwise busy, is not compared with it."""

    key: CacheKey
    entry: str
    """The def's name when it was first tuned."""
    subject: Subject
    options: tuple[MappingOptions, ...]
    rows: Floats
    """N x F: features."""
    expected: Floats
    """N: seconds by the analytic model."""
    seconds: Floats
    """N: measured."""

    @property
    def residuals(self) -> Floats:
        """N: log of measured over expected."""
        found: Floats = np.log(self.seconds / self.expected)
        return found


@dataclass(frozen=True, slots=True)
class History:
    """What can be learned from, and why the rest cannot."""

    problems: tuple[Problem, ...]
    passed_over: Mapping[str, int]
    """Reason → results."""

    @property
    def candidates(self) -> int:
        """How many there are."""
        return sum(len(p.options) for p in self.problems)


def history(
    cache: TuningCache, defs: Iterable[CheckedDef], devices: Mapping[str, CpuProfile]
) -> History:
    """Everything correct that a cache has of these defs on these devices (by identity, as keys name
    them, with the threads that a kernel may use). Raises ``CacheError``."""
    known = {canonical_text(checked): checked for checked in defs}
    found: list[Problem] = []
    reasons = Counter[str]()
    for summary in cache.list():
        key = summary.key
        checked, device = known.get(key.definition), devices.get(key.device)
        if key.backend != "cpu":
            reasons["of another backend"] += summary.measured
        elif key.codegen_version != CODEGEN_VERSION:
            reasons["of another version of the compiler"] += summary.measured
        elif device is None:
            reasons["of another device"] += summary.measured
        elif checked is None:
            reasons["of defs whose text was not given"] += summary.measured
        else:
            found += _problems(cache, key, summary.entry, checked, device, reasons)
    kept = {reason: count for reason, count in reasons.items() if count}
    return History(tuple(found), kept)


def _problems(
    cache: TuningCache,
    key: CacheKey,
    entry: str,
    checked: CheckedDef,
    device: CpuProfile,
    reasons: Counter[str],
) -> Iterator[Problem]:
    runs: dict[str, dict[str, float]] = {}
    for record in sorted(cache.history(key), key=lambda r: r.when):
        last = runs.setdefault(record.run, {})
        last.pop(record.options, None)
        if record.time is not None:
            last[record.options] = record.time
        else:
            reasons["not correct"] += 1
    try:
        subject = subject_of(key, checked, device)
    except TclError:
        reasons["of sizes that cannot be"] += sum(map(len, runs.values()))
        return
    for last in runs.values():
        read = [(_options(text), time) for text, time in last.items()]
        timed = [(options, time) for options, time in read if options is not None]
        described = subject.describable([options for options, _ in timed])
        reasons["of options that do not apply"] += len(last) - len(described)
        if len(described) < _FEWEST:
            reasons["of searches that measured too little"] += len(described)
            continue
        rows, expected = extract(subject, [choices for _, choices in described])
        kept = [timed[place] for place, _ in described]
        options, seconds = tuple(o for o, _ in kept), np.array([t for _, t in kept])
        yield Problem(key, entry, subject, options, rows, expected, seconds)


def _options(text: str) -> MappingOptions | None:
    try:
        return MappingOptions.from_json(text)
    except OptionsError:
        return None


def subject_of(key: CacheKey, checked: CheckedDef, device: CpuProfile) -> Subject:
    """What candidates of a key are described against. Raises ``TclError`` for sizes that the def
    cannot have."""
    pairs = list(zip(checked.inputs, key.inputs, strict=True))
    sized = infer(checked, {t.name: layout.shape for t, layout in pairs})
    strides = {t.name: layout.strides for t, layout in pairs}
    return Subject.of(lower(sized, cpu_layouts(sized, strides)), device)


def reasons(found: History) -> Iterator[str]:
    """Why results were passed over, a line each."""
    for reason, count in sorted(found.passed_over.items()):
        yield f"{count} results {reason}"
