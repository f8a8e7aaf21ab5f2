"""What a page shows, collected from a search and what it searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.arrays.arguments import Array
from tcl.backends.targets import Target
from tcl.bench.roofline import Roofline
from tcl.executors.call_kernels import size
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import to_text
from tcl.grammar.tree.checked import CheckedDef
from tcl.progress.state import SearchState
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.model.knob_importance import Importance, importance
from tcl.tuner.space.search_space import Config, SearchSpace


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that is on it."""

    title: str
    definition: str
    """The def, as text."""
    facts: Sequence[tuple[str, str]]
    """Names and values: device, sizes, settings."""
    log: SearchState
    yardstick: Roofline | None
    beside: Mapping[str, float]
    """How many times as long as the winner others take, measured in turns with it after the search;
    empty if there was no time for that."""
    space: SearchSpace
    importance: Importance
    sources: Sequence[tuple[str, str]]
    """Title and text of what the winner became."""
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
    log: SearchState,
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
    backend = target.backend(source, checked.name, inputs).for_all(query.classes)
    space, winner = target.space(backend).space, log.decision.winner
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
        sources=[] if winner is None else list(backend.explained(winner.options).items()),
        entry=checked.name,
        key=query.key,
        run=run,
    )
