"""``tcl tune --grid``: one search after the other, until every point is accounted for.

People are told in lines and tables, programs in events, as ``tcl.cli.progress_json`` has them.
"""

from __future__ import annotations

import random
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click

from tcl.cli.cache_commands.common import named_cache, writable_cache
from tcl.cli.common import make_folder, report
from tcl.cli.grid_file import GridPoint
from tcl.cli.grid_plan import PlannedPoint, make_plan
from tcl.cli.kernels import Work
from tcl.cli.output import count_presses, exit_code, handlers_kept
from tcl.cli.progress_json import JsonProgress
from tcl.cli.tables import plain_table, print_table
from tcl.cli.tuned import Ended, TuneSession, Wishes
from tcl.cluster import LOCAL, workplace
from tcl.common.errors import TclError
from tcl.common.number_format import duration, plural, ratio_text
from tcl.grammar.syntax.errors import SourceError
from tcl.progress.state import minutes, verdict
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.run.workplace import Workplace

TUNED, KNOWN, FAILED, LEFT = "tuned", "known", "failed", "left"
"""What became of a point; in the first two cases nothing is left to do for it."""


@dataclass(frozen=True, slots=True)
class PointOutcome:
    point: PlannedPoint
    status: str
    reason: str = ""
    before: float | None = None
    """Seconds per call of what the search began with."""
    after: float | None = None
    """The same of the winner."""

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status

    def as_data(self) -> dict[str, Any]:
        what = {"status": self.status, "reason": self.reason or None}
        return {**_point_identity(self.point), **what, "before": self.before, "after": self.after}


def tune_grid(points: Sequence[GridPoint], wishes: Wishes, *, dry_run: bool) -> int:
    """Tune all points that are not done; the exit code. ``dry_run``: only say what would be."""
    cache = TuningCache(named_cache(wishes.cache))
    here = wishes.executor == LOCAL
    folder = str(wishes.file.parent)
    plan, notes = make_plan(points, wishes.settings, folder, cache, here=here)
    if not dry_run:
        writable_cache(wishes.cache)  # now, rather than after an hour
        if wishes.page is not None:
            make_folder(wishes.page)
    with ExitStack() as stack:
        grid = _Grid(plan, wishes, cache)
        grid.show_plan(notes)
        if dry_run:
            wrong = sum(bool(p.problem) for p in plan)
            if wrong:
                report(f"{wrong} of {len(plan)} points cannot be tuned")
            return 1 if wrong else 0
        say = partial(click.echo, err=wishes.as_json)
        for cores in sorted({p.target.cores for p in plan}):
            place = stack.enter_context(workplace(wishes.executor, cores, say))
            grid.places[cores] = place
        return grid.run()


@dataclass(slots=True)
class _Grid:
    points: Sequence[PlannedPoint]
    wishes: Wishes
    cache: TuningCache
    places: dict[int, Workplace | None] = field(default_factory=dict)
    """Where to work, by the number of cores to measure on."""
    events: JsonProgress | None = field(init=False)

    def __post_init__(self) -> None:
        self.events = JsonProgress({}, sys.stdout) if self.wishes.as_json else None

    def run(self) -> int:
        """The exit code."""
        outcomes: list[PointOutcome] = []
        took = expected = 0.0  # seconds of the searches that are over, and what was estimated
        stopped, resume = 0, self.wishes.resume
        for point in self.points:
            began = time.monotonic()
            try:
                stopped, outcome = self._point(point)
            except KeyboardInterrupt as error:
                stopped, outcome = exit_code(error), PointOutcome(point, LEFT, "interrupted")
            outcomes.append(outcome)
            seconds = time.monotonic() - began
            if outcome.status == TUNED:
                took += seconds
                expected += point.ahead(resume=resume)[1]
            if stopped:
                break
            # What is left takes as long, beside its estimate, as what was before it.
            rest = [p for p in self.points[len(outcomes) :] if not p.problem]
            pace = took / expected if expected else 1.0
            self._show_done(outcome, seconds, pace * sum(p.ahead(resume=resume)[1] for p in rest))
        count_presses([])  # what is left takes a moment
        outcomes += [PointOutcome(p, LEFT) for p in self.points[len(outcomes) :]]
        self._show_end(outcomes)
        missing = [each.status for each in outcomes if each.status in (FAILED, LEFT)]
        if missing:
            words = ["tcl", *sys.argv[1:]]
            command = shlex.join(words if "--resume" in words else [*words, "--resume"])
            report(
                f"{len(missing)} of {len(outcomes)} points have no result; "
                f"{'continue' if LEFT in missing else 'correct the problem, then continue'} "
                f"with: {command}"
            )
        return stopped or (1 if missing else 0)

    def _point(self, point: PlannedPoint) -> tuple[int, PointOutcome]:
        """The exit code if the user wants to stop, else 0, and what became of the point."""
        resume, outcome = self.wishes.resume, partial(PointOutcome, point)
        if resume and point.done and point.key is not None:
            best = self.cache.best(point.key)
            time_ = duration(best.time) if best is not None and best.time else "nothing correct"
            return 0, outcome(KNOWN, f"{time_} in the tuning cache")
        if problem := point.problem or (point.busy if resume else ""):
            return 0, outcome(FAILED, problem)
        self._tell(
            "point",
            {**_point_identity(point), "of": len(self.points)},
            f"\npoint {point.number} of {len(self.points)}: {point.title}",
        )
        try:
            with handlers_kept():
                ended = self._search(point)
        except (TclError, IndexError, MemoryError, OSError) as error:
            reason = error.message if isinstance(error, SourceError) else str(error)
            return 0, outcome(FAILED, reason or type(error).__name__)
        result, decision = ended.result, ended.result.decision
        if ended.signalled and result.interrupted:
            left = outcome(LEFT, "interrupted; the best so far is saved", after=result.time)
            return ended.signalled, left
        if ended.problems:
            return ended.signalled, outcome(FAILED, "; ".join(ended.problems), after=result.time)
        before = None if decision.start is None else decision.start.time
        reason = verdict(decision) if decision.kept else ""
        return ended.signalled, outcome(TUNED, reason, before, result.time)

    def _search(self, point: PlannedPoint) -> Ended:
        about, wishes = point.about, self.wishes
        last = point.last if wishes.resume else None
        config = point.config if last is None else point.config.going_on(last.settings)
        config = config.with_defaults(seed=random.SystemRandom().getrandbits(32))
        seed = config.settings.seed or 0
        work = Work.from_def(about.text, about.checked, about.sizes, seed, about.varying)
        name = re.sub(r"[^\w=]+", "-", f"{point.number:03} {point.title}").strip("-")
        page = None if wishes.page is None else wishes.page / f"{name}.html"
        session = TuneSession(
            *(work, point.target, config, self.cache.path, page),
            self.places[point.target.cores],
            threads=point.threads,
            fixed={},
            resume=last is not None,
            as_json=wishes.as_json,
            about={"point": point.number},
        )
        return session.run(point.start, default=wishes.cache is None)

    def _tell(self, event: str, data: Mapping[str, Any], *lines: str) -> None:
        """Tell programs of an event, or people in lines."""
        if self.events is not None:
            self.events.write(event, data)
        else:
            for line in lines:
                click.echo(line)

    def show_plan(self, notes: Sequence[str]) -> None:
        """Say what there is to do, before anything is tuned."""
        resume, points = self.wishes.resume, self.points
        costs = [p.ahead(resume=resume) for p in points]
        if self.events is not None:
            planned = [
                {
                    **_point_identity(p),
                    "candidates": count,
                    "estimate": seconds,
                    "done": p.done,
                    "resumed": resume and p.last is not None,
                    "problem": p.problem or p.busy or None,
                }
                for p, (count, seconds) in zip(points, costs, strict=True)
            ]
            totals = {"candidates": sum(c for c, _ in costs), "estimate": sum(s for _, s in costs)}
            self.events.write("grid", {"points": planned, **totals, "notes": list(notes)})
            return
        for note in notes:
            click.echo(note)
        table = plain_table(*("", "point", ">candidates", ">time", "in the cache"), overflow="fold")
        for point, (count, seconds) in zip(points, costs, strict=True):
            table.add_row(
                *(str(point.number), point.title, str(count) if count else "-"),
                *(f"about {minutes(seconds)}" if seconds else "-", _in_the_cache(point)),
            )
        print_table(table)
        source = (
            "estimated from earlier searches on this machine"
            if any(p.by_experience for p in points)
            else "a rough estimate, because little has been tuned on this machine"
        )
        total = _sum(points, resume=resume)
        click.echo(f"{plural(len(points), 'point')}: {total}, {source}")
        if not resume and any(p.done or p.last for p in points):
            left = _sum(points, resume=True)
            click.echo(f"with --resume, which leaves out finished points: {left}")

    def _show_done(self, outcome: PointOutcome, seconds: float, left: float) -> None:
        """Say what became of a point that took so long, and how long the others will take."""
        of, took = len(self.points), f" in {minutes(seconds)}" * (outcome.status == TUNED)
        reason = f": {outcome.reason}" if outcome.reason else ""
        rest = f"; about {minutes(left)} left" if left else ""
        self._tell(
            "point done",
            {**outcome.as_data(), "of": of, "estimate_left": left},
            f"point {outcome.point.number} of {of}: {outcome.status}{took}{reason}{rest}",
        )

    def _show_end(self, outcomes: Sequence[PointOutcome]) -> None:
        """Say what became of all points."""
        counts = Counter(each.status for each in outcomes)
        told = ", ".join(f"{counts[s]} {s}" for s in (TUNED, KNOWN, FAILED, LEFT) if counts[s])
        sentence = f"{plural(len(outcomes), 'point')}: {told}"
        results = [each.as_data() for each in outcomes]
        if self.events is None:
            headings = ("", "point", ">start", ">winner", ">speed-up", "status")
            table = plain_table(*headings, overflow="fold")
            for each in outcomes:
                before, after = each.before, each.after
                table.add_row(
                    *(str(each.point.number), each.point.title),
                    *("-" if t is None else duration(t) for t in (before, after)),
                    *(ratio_text(before / after) if before and after else "-", str(each)),
                )
            click.echo()
            print_table(table)
        self._tell("grid done", {"points": results, "message": sentence}, sentence)


def _point_identity(point: PlannedPoint) -> dict[str, Any]:
    about = point.about
    who = {"point": point.number, "entry": about.checked.name, "sizes": dict(about.sizes)}
    return {**who, "threads": point.threads, "device": point.target.name}


def _in_the_cache(point: PlannedPoint) -> str:
    if point.problem:
        return f"cannot be tuned: {point.problem}"
    if point.done:
        return "done"
    if point.last is not None:
        return f"unfinished: {plural(max(0, point.last.generation - 1), 'generation')} done"
    return point.busy


def _sum(points: Sequence[PlannedPoint], *, resume: bool) -> str:
    costs = [p.ahead(resume=resume) for p in points]
    candidates = plural(sum(c for c, _ in costs), "candidate")
    return f"{candidates}, about {minutes(sum(s for _, s in costs))}"
