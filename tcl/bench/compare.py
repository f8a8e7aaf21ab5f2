"""Whether our kernels became slower between two reports, or the machine and chance say so.

The statistics are those of a search's finals (``tcl.tuner.measure.paired``): a run, which is new
processes, is one observation, the median of its samples' logarithms; between runs a row moves by
more than its samples tell, and how much is a prior that few runs change little. Peers tell what the
machine did: their code is the same, so that the median of their ratios is taken off ours, and the
spread of their ratios is what a row moves by on its own. With so many rows some differ by chance,
which Holm's correction allows for (Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from tcl.bench.report import Report
from tcl.bench.summary import geometric_mean
from tcl.bench.task import OURS
from tcl.common.number_format import plural
from tcl.tuner.measure import paired

TOLERANCE = 0.03
"""How much longer a row may take."""
_LEVEL = 0.05
"""Probability that anything is called faster or slower where nothing changed."""
_FEW = 4
"""Controls below which they tell nothing."""
_NORMAL = NormalDist()

Place = tuple[str, int, str, str]
"""A row, its number of threads, where arrays began, and whose kernel."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of our kernel of a row."""

    place: Place
    old: float
    """Median seconds over the runs."""
    new: float
    ratio: float
    """New over old, without what the machine did."""
    low: float
    high: float
    """Its confidence interval, at 95 %, of this row alone."""
    verdict: str
    """``slower``, ``faster``; ``same``: the interval is within the tolerance; ``unknown``: it is
    not, and more runs would tell."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of two reports."""

    changes: tuple[Change, ...]
    machine: float
    """Time that the peers took in the new report over the old, as the median of their rows; 1 if
    they are too few to tell."""
    controls: int
    """Rows of peers that this is of."""
    failed: tuple[Place, ...]
    """Our kernels that have times in the old report, and in the new one a row without."""
    differences: tuple[str, ...]
    """What differs between the reports besides the times: sentences."""

    @property
    def mean(self) -> float | None:
        """The geometric mean of the ratios."""
        return geometric_mean(change.ratio for change in self.changes)

    def slower(self, tolerance: float) -> list[Change]:
        """Those that surely take longer, by more than the tolerance."""
        return [c for c in self.changes if c.verdict == "slower" and c.ratio > 1 + tolerance]


def compare(old: Report, new: Report, tolerance: float = TOLERANCE) -> Comparison:
    """Pairs the rows of two reports by name, threads and placement."""
    before, after = _runs(old), _runs(new)
    names = sorted({place[3] for place in before} - {*OURS})
    changed = [name for name in names if _version(old, name) != _version(new, name)]
    both = [place for place in before if place in after]
    peers = [p for p in both if p[3] not in OURS and p[3] not in changed]
    logs = [_estimate(after[p], 0.0).mean - _estimate(before[p], 0.0).mean for p in peers]
    controls = len(logs) if len(logs) >= _FEW else 0
    machine = median(logs) if controls else 0.0
    spread = paired.spread_of(logs) if controls else 0.0
    found = []
    for place in (p for p in both if p[3] in OURS):
        counts = [len(runs[place]) for runs in (before, after)]
        # What a row moves by between runs: a prior, and what the peers' rows do.
        own = spread / math.sqrt(sum(1 / n for n in counts))
        weight = paired.WEIGHT
        variance = (weight * paired.PRIOR**2 + controls * own**2) / (weight + controls)
        one, other = (_estimate(runs[place], math.sqrt(variance)) for runs in (before, after))
        difference = paired.PairedComparison(
            other.mean - one.mean - machine, math.hypot(one.error, other.error)
        )
        found.append((place, one.ratio, other.ratio, difference))
    surely = _holm([2 * _NORMAL.cdf(-abs(d.mean) / d.error) for *_, d in found])
    changes = tuple(
        _change(place, times, difference, sure, tolerance)
        for (place, *times, difference), sure in zip(found, surely, strict=True)
    )
    others = [
        f"{name} has another version, so it cannot show what the machine did" for name in changed
    ]
    differences = (*_about(old, new), *others, *_missing(before, after))
    tried = {
        (result.name, result.threads, result.placement, name)
        for result in new.results
        for name in result.entries
    }
    failed = tuple(p for p in before if p in tried and p not in after and p[3] in OURS)
    return Comparison(changes, math.exp(machine), controls, failed, differences)


def _change(
    place: Place, times: Sequence[float], d: paired.PairedComparison, sure: bool, tolerance: float
) -> Change:
    far = _NORMAL.inv_cdf(1 - _LEVEL / 2) * d.error
    low, high = math.exp(d.mean - far), math.exp(d.mean + far)
    if sure:
        verdict = "slower" if d.mean > 0 else "faster"
    else:
        within = 1 / (1 + tolerance) <= low and high <= 1 + tolerance
        verdict = "same" if within else "unknown"
    return Change(place, times[0], times[1], d.ratio, low, high, verdict)


def _runs(report: Report) -> dict[Place, list[tuple[float, ...]]]:
    """The samples of each run, by row and contender."""
    found: dict[Place, list[tuple[float, ...]]] = {}
    for result in report.results:
        for name, entry in result.entries.items():
            if entry.samples:
                place = result.name, result.threads, result.placement, name
                found.setdefault(place, []).append(entry.samples)
    return found


def _estimate(runs: Sequence[Sequence[float]], prior: float) -> paired.PairedComparison:
    """The logarithm of the seconds, over runs."""
    found = [paired.middle([math.log(t) for t in samples]) for samples in runs]
    within = sum(error**2 for _, error in found) / len(found)
    return paired.over_sessions([mean for mean, _ in found], within, prior)


def _holm(probabilities: Sequence[float]) -> list[bool]:
    """Which null hypotheses are rejected, so that with ``_LEVEL`` at most any of them is true."""
    order = sorted(range(len(probabilities)), key=lambda k: probabilities[k])
    found = [False] * len(order)
    for rank, k in enumerate(order):
        if probabilities[k] > _LEVEL / (len(order) - rank):
            break
        found[k] = True
    return found


_PACKAGE = {"NumPy": "numpy", "torch.compile": "torch"}


def _version(report: Report, peer: str) -> str | None:
    return report.versions.get(_PACKAGE.get(peer, peer.lower()))


def _about(old: Report, new: Report) -> Iterator[str]:
    """What differs in machine, versions and settings."""
    places: tuple[tuple[str, Mapping[str, object], Mapping[str, object]], ...] = (
        ("machine", old.machine, new.machine),
        ("version", old.versions, new.versions),
        ("setting", old.settings, new.settings),
    )
    for kind, one, other in places:
        for name in sorted({*one} | {*other}):
            before, after = one.get(name), other.get(name)
            if before != after:
                yield f"{kind} {name}: {_short(before)}, then {_short(after)}"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _missing(before: Mapping[Place, object], after: Mapping[Place, object]) -> Iterator[str]:
    for mine, other, which in ((before, after, "old"), (after, before, "new")):
        alone = [title(place) for place in mine if place not in other and place[3] in OURS]
        if alone:
            yield f"only the {which} report has {'; '.join(alone)}"


def title(place: Place) -> str:
    """A row for people."""
    name, threads, placement, contender = place
    options = contender.removeprefix("tcl ")
    return f"{name}, {plural(threads, 'thread')}, {placement} arrays, {options} options"
