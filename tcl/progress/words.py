"""What a search decided, in words: the panel, the closing lines, the JSON and the page say it with
these."""

from __future__ import annotations

from tcl.codegen.options.options import MappingOptions
from tcl.common.number_format import duration, ratio_text
from tcl.selection.best_options import DEFAULT
from tcl.tuner.run.events import Decision

UNTUNED = "the untuned default"
FINALS = "timed in turns in the finals"
FIRST = "first reading"
"""Of a candidate: its time from when it came up in the search, with nothing beside it."""

BESIDE = "beside the winner, timed in turns after the search"
"""Others, as NumPy. These times do not decide, so only what they are of the winner's is told."""


def name_of(options: MappingOptions) -> str:
    """What a search began with, or ended with, by its name."""
    return UNTUNED if options == DEFAULT else "the start"


def winner_name(decision: Decision[MappingOptions]) -> str:
    """The winner, with its name where it was not found by the search."""
    name = UNTUNED if decision.winner is None else name_of(decision.winner.options)
    return f"the winner: {name}" if decision.kept or name == UNTUNED else "the winner"


def reading(decision: Decision[MappingOptions]) -> str:
    """Which measurement the times of winner and start are from."""
    return FINALS if decision.in_finals else f"{FIRST}s"


def figures(decision: Decision[MappingOptions]) -> str:
    """The winner's time and how it compares: ``242 µs, 1.10 × as fast as the untuned default``."""
    winner, start = decision.winner, decision.start
    if winner is None or winner.time is None:
        return "-"
    if decision.kept:
        return f"{duration(winner.time)}, {name_of(winner.options)}"
    faster = decision.speedup
    if faster is None or start is None:
        return duration(winner.time)
    return f"{duration(winner.time)}, {ratio_text(faster)} as fast as {name_of(start.options)}"


def verdict(decision: Decision[MappingOptions]) -> str:
    """Who wins, and by which measurement; a sentence without its full stop."""
    winner, start = decision.winner, decision.start
    if winner is None:
        return "nothing was found"
    if decision.kept and decision.in_finals:
        return f"{name_of(winner.options)} wins: nothing was clearly faster, {FINALS}"
    if decision.kept:
        return f"{name_of(winner.options)} wins: nothing was faster, by {FIRST}s without finals"
    who = UNTUNED if winner.options == DEFAULT else "the winner"
    by = FINALS if decision.in_finals else f"by {FIRST}s without finals"
    if start is None or decision.speedup is None:
        return f"{who} is the fastest that works, {by}"
    ratio = ratio_text(decision.speedup)
    return f"{who} is {ratio} as fast as {name_of(start.options)}, {by}"
