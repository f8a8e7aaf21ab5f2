"""What ``tcl tune --grid`` shows besides its searches: for people, or as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import click

from tcl.cli.grid_plan import GridPlan, PlannedPoint
from tcl.cli.progress_json import JsonProgress
from tcl.cli.tables import plain_table, print_table
from tcl.common.number_format import duration, plural, ratio_text
from tcl.progress.state import minutes


class Status(Enum):
    """What became of a point."""

    TUNED = "tuned"
    KNOWN = "known"
    FAILED = "failed"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class PointOutcome:
    """A point and what became of it."""

    point: PlannedPoint
    status: Status
    reason: str = ""
    before: float | None = None
    """Seconds per call of what the search began with."""
    after: float | None = None
    """The same of the winner."""

    @property
    def accounted(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.status in (Status.TUNED, Status.KNOWN)


class GridShow:
    """Tells how the grid goes: people in lines and tables, programs in events, as
    ``tcl.cli.progress_json`` has them. Points are counted from 1."""

    def __init__(self, *, resume: bool, as_json: bool) -> None:
        self._resume = resume
        self._events = JsonProgress({}, sys.stdout) if as_json else None

    def plan(self, plan: GridPlan) -> None:
        """Before anything is tuned."""
        costs = [p.ahead(resume=self._resume) for p in plan.points]
        if self._events is not None:
            points = [
                {**_point_identity(p), "candidates": c, "estimate": s, "done": p.standing.done}
                | {
                    "resumed": self._resume and p.standing.last is not None,
                    "problem": p.problem or p.standing.busy or None,
                }
                for p, (c, s) in zip(plan.points, costs, strict=True)
            ]
            totals = {"candidates": sum(c for c, _ in costs), "estimate": sum(s for _, s in costs)}
            self._events.write("grid", {"points": points, **totals, "notes": list(plan.notes)})
            return
        for note in plan.notes:
            click.echo(note)
        table = plain_table(*("", "point", ">candidates", ">time", "in the cache"), overflow="fold")
        for point, (count, seconds) in zip(plan.points, costs, strict=True):
            table.add_row(
                *(str(point.number), point.title, str(count) if count else "-"),
                *(f"about {minutes(seconds)}" if seconds else "-", _standing(point)),
            )
        print_table(table)
        source = (
            "as earlier searches went here"
            if any(p.cost.by_experience for p in plan.points)
            else "by rule of thumb, as too little was tuned here before"
        )
        total = _sum(plan, resume=self._resume)
        click.echo(f"{plural(len(plan.points), 'point')}: {total}, {source}")
        if not self._resume and any(p.standing.done or p.standing.last for p in plan.points):
            click.echo(f"with --resume, which leaves out what is done: {_sum(plan, resume=True)}")

    def begins(self, point: PlannedPoint, of: int) -> None:
        """A search for a point is about to begin."""
        if self._events is not None:
            self._events.write("point", {**_point_identity(point), "of": of})
        else:
            click.echo(f"\npoint {point.number} of {of}: {point.title}")

    def done(self, outcome: PointOutcome, of: int, seconds: float, left: float) -> None:
        """What became of a point that took so long; about how long the others will take."""
        if self._events is not None:
            data = {**_outcome_as_json(outcome), "of": of, "estimate_left": left}
            self._events.write("point done", data)
            return
        took = f" in {minutes(seconds)}" if outcome.status is Status.TUNED else ""
        rest = f"; about {minutes(left)} left" if left else ""
        reason = f": {outcome.reason}" if outcome.reason else ""
        number, status = outcome.point.number, outcome.status.value
        click.echo(f"point {number} of {of}: {status}{took}{reason}{rest}")

    def ends(self, outcomes: Sequence[PointOutcome]) -> None:
        """All is done that will be."""
        counts = Counter(each.status for each in outcomes)
        told = ", ".join(f"{counts[s]} {s.value}" for s in Status if counts[s])
        sentence = f"{plural(len(outcomes), 'point')}: {told}"
        if self._events is not None:
            results = [_outcome_as_json(each) for each in outcomes]
            self._events.write("grid done", {"points": results, "message": sentence})
            return
        headings = ("", "point", ">start", ">winner", ">speed-up", "status")
        table = plain_table(*headings, overflow="fold")
        for each in outcomes:
            before, after = each.before, each.after
            table.add_row(
                *(str(each.point.number), each.point.title),
                *("-" if t is None else duration(t) for t in (before, after)),
                ratio_text(before / after) if before and after else "-",
                f"{each.status.value}: {each.reason}" if each.reason else each.status.value,
            )
        click.echo()
        print_table(table)
        click.echo(sentence)


def _standing(point: PlannedPoint) -> str:
    standing = point.standing
    if point.problem:
        return f"cannot be tuned: {point.problem}"
    if standing.done:
        return "done"
    if standing.last is not None:
        return f"begun: {plural(max(0, standing.last.generation - 1), 'generation')} done"
    return standing.busy


def _sum(plan: GridPlan, *, resume: bool) -> str:
    costs = [p.ahead(resume=resume) for p in plan.points]
    candidates = plural(sum(c for c, _ in costs), "candidate")
    return f"{candidates}, about {minutes(sum(s for _, s in costs))}"


def _point_identity(point: PlannedPoint) -> dict[str, Any]:
    about = point.about
    who = {"point": point.number, "entry": about.checked.name, "sizes": dict(about.sizes)}
    return {**who, "threads": point.choice.threads, "device": point.choice.target.name}


def _outcome_as_json(outcome: PointOutcome) -> dict[str, Any]:
    what = {"status": outcome.status.value, "reason": outcome.reason or None}
    return {
        **_point_identity(outcome.point),
        **what,
        "before": outcome.before,
        "after": outcome.after,
    }
