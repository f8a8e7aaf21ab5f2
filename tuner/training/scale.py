"""Times of several searches, brought to one scale.

What was measured on another day, on a machine that was otherwise busy, or in a process whose memory
lies otherwise, is longer or shorter as a whole. So every session of measurements has a pace, and
every candidate a time; their logarithms add up, and are found by least squares from what candidates
took in the sessions that they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

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
    """A candidate."""

    seconds: float
    """At the pace of the sessions that it is compared in."""
    raced: bool
    """Whether it was timed in turns with others in any of them."""


def scaled(sessions: Sequence[Session], common: str) -> dict[str, Scaled]:
    """Candidate → its time. Sessions that share no candidate with those that have ``common``, not
    even by way of others, are left out; where none has it, with the largest one."""
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
    """Those that are compared with each other."""
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
