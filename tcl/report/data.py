"""What a page shows, collected from a search and what it searched for."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tcl import __version__
from tcl.arrays.arguments import Array
from tcl.backends.targets import Target
from tcl.bench.roofline import Roofline
from tcl.codegen.options.options import MappingOptions
from tcl.executors.call_kernels import size
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import to_text
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.model.knob_importance import Importance, importance
from tcl.tuner.run import events
from tcl.tuner.space.search_space import Config, SearchSpace

Candidate: TypeAlias = events.Candidate[MappingOptions]


@dataclass(frozen=True, slots=True)
class Try:
    """A candidate with its verdict."""

    seconds: float
    """Since the search began."""
    candidate: Candidate

    @property
    def best_time(self) -> float | None:
        """Seconds per call; None unless correct."""
        return self.candidate.time


@dataclass(slots=True)
class SearchLog:
    """Events as they come; ``take`` is the tuner's ``report``."""

    tries: list[Try] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raced: tuple[Candidate, ...] = ()
    """With their times in the finals."""
    decision: events.Decision[MappingOptions] = field(
        default_factory=lambda: events.Decision(None, None)
    )
    compiled: int = 0
    ended_by: str = ""
    """What ended the search early; empty if nothing did."""
    seconds: float = 0.0
    """How long it took."""
    clock: Callable[[], float] = time.monotonic
    _started: float | None = None

    def take(self, event: events.Event[MappingOptions]) -> None:
        """Note one event."""
        if self._started is None:
            self._started = self.clock()
        match event:
            case events.CandidateCompiled():
                self.compiled += 1
            case events.CandidateDone(candidate=candidate, decision=decision):
                self.decision = decision
                self.tries.append(Try(self.clock() - self._started, candidate))
            case events.Raced(candidates=candidates, decision=decision):
                self.raced, self.decision = candidates, decision
            case events.Note(message=message):
                self.notes.append(message)
            case events.Interrupted(reason=reason):
                self.ended_by = reason
            case events.Finished(decision=decision, seconds=seconds):
                self.decision, self.seconds = decision, seconds

    @property
    def best(self) -> Candidate | None:
        """The winner."""
        return self.decision.winner

    @property
    def start(self) -> Candidate | None:
        """What the search began with, with times of the same measurement."""
        return self.decision.start


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that is on it."""

    title: str
    definition: str
    """The def, as text."""
    facts: Sequence[tuple[str, str]]
    """Names and values: device, sizes, settings."""
    log: SearchLog
    yardstick: Roofline | None
    beside: Mapping[str, float]
    """How many times as long as the winner others take, measured in turns with it after the search;
    empty if there was no time for that."""
    space: SearchSpace
    importance: Importance
    sources: Sequence[tuple[str, str]]
    """Title and text of what the winner became."""
    date: str
    version: str
    entry: str
    key: CacheKey
    """Of the results in the tuning cache."""
    run: str
    """The search's name there; empty if it has none."""


def collect(
    source: str,
    checked: CheckedDef,
    inputs: Sequence[Array],
    target: Target,
    log: SearchLog,
    *,
    varying: Sequence[str] = (),
    title: str,
    facts: Sequence[tuple[str, str]] = (),
    yardstick: Roofline | None = None,
    beside: Mapping[str, float] | None = None,
    run: str = "",
) -> Page:
    """What there is to show of a search for the def ``checked`` of the text ``source``, of whose
    sizes ``varying`` are names."""
    # Nothing is run, so there is no need for a folder with the inputs.
    query = target.query(size(checked, inputs), inputs, varying)
    backend = target.backend(source, checked.name, inputs)
    if query.classes:
        backend = backend.for_all(query.classes)
    space = target.space(backend).space
    measured: dict[Config, float] = {}
    for each in log.tries:
        if each.candidate.config is not None and each.best_time is not None:
            measured[each.candidate.config] = each.best_time
    return Page(
        title=title,
        definition=next(to_text(d) for d in parse(source).defs if d.name == checked.name),
        facts=facts,
        log=log,
        yardstick=yardstick,
        beside=beside or {},
        space=space,
        importance=importance(space.knobs, list(measured), list(measured.values())),
        sources=[] if log.best is None else list(backend.explained(log.best.options).items()),
        date=datetime.datetime.now().astimezone().isoformat(" ", "seconds"),
        version=__version__,
        entry=checked.name,
        key=query.key,
        run=run,
    )
