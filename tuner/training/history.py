"""What was measured, as examples to learn from: the whole history of a tuning cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tcl.tuner.model.subject import Device, Subject, subject_type

_READ = 0.02
"""What a single reading counts, if a time that was taken in turns counts 1."""


@dataclass(frozen=True, slots=True)
class Session:
    """What was measured one after the other, under the same conditions."""

    times: Mapping[str, float]
    """Candidate → seconds, above 0."""
    raced: bool
    """Whether they were timed in turns with each other."""


@dataclass(frozen=True, slots=True)
class Scaled:
    seconds: float
    """At the pace of the sessions that it is compared in."""
    raced: bool
    """Whether it was timed in turns with others in any of them."""


def on_one_scale(sessions: Sequence[Session], common: str) -> dict[str, Scaled]:
    """Candidate → its time, on one scale.

    What was measured on another day, on a machine that was otherwise busy, or in a process whose
    memory lies otherwise, is longer or shorter as a whole. So every session has a pace, and every
    candidate a time; their logarithms add up, and are found by least squares from what candidates
    took in the sessions that they share. Sessions that share no candidate with those that have
    ``common``, not even by way of others, are left out; where none has it, with the largest one."""
    joined = _comparable(sessions, common)
    names = list(dict.fromkeys(name for s in joined for name in s.times))
    if not names:
        return {}
    places = {name: k for k, name in enumerate(names)}
    count = len(names)
    normal = np.zeros((count + len(joined),) * 2)
    right = np.zeros(count + len(joined))
    for place, session in enumerate(joined, start=count):
        weight = 1.0 if session.raced else _READ
        for name, seconds in session.times.items():
            at = np.array([places[name], place])
            normal[np.ix_(at, at)] += weight
            right[at] += weight * np.log(seconds)
    # A pace may be moved to all times: that the paces' mean is 1 settles it.
    normal[count:, count:] += 1.0
    logs = np.linalg.solve(normal, right)[:count]
    raced = {name for s in joined if s.raced for name in s.times}
    return {
        name: Scaled(float(np.exp(log)), name in raced)
        for name, log in zip(names, logs, strict=True)
    }


def _comparable(sessions: Sequence[Session], common: str) -> list[Session]:
    left = [s for s in sessions if s.times]
    known = {common}
    if left and not any(common in s.times for s in left):
        known = set(max(left, key=lambda s: len(s.times)).times)
    found: list[Session] = []
    while more := [s for s in left if known & s.times.keys()]:
        found += more
        known.update(*(s.times for s in more))
        left = [s for s in left if s not in more]
    return found


_FEWEST = 4
"""Candidates that have to be measured of a key for them to be compared."""


@dataclass(frozen=True, slots=True)
class MeasuredProblem:
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
    """N: measured, on one scale: see ``on_one_scale``."""
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
        reasons["of impossible sizes"] += len(timed)
        return None
    default = DEFAULT.to_json()
    found = on_one_scale([Session(times, raced) for (_, raced), times in sessions.items()], default)
    reasons["of searches that share no candidate with others"] += len(timed) - len(found)
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
