"""``tcl tune --grid``: one search after the other, until every point is accounted for."""

from __future__ import annotations

import random
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from tcl.cli.cache_commands.common import named_cache, writable_cache
from tcl.cli.common import make_folder, report
from tcl.cli.grid_file import GridPoint
from tcl.cli.grid_plan import PlannedPoint, make_plan
from tcl.cli.grid_show import GridShow, PointOutcome, Status
from tcl.cli.kernels import Work
from tcl.cli.signals import count_presses, exit_code, handlers_kept
from tcl.cli.tuned import Ended, TuneSession
from tcl.cluster import LOCAL, workplace
from tcl.common.errors import TclError
from tcl.common.number_format import duration
from tcl.grammar.syntax.errors import SourceError
from tcl.progress.words import verdict
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.run.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says of all points."""

    file: Path
    settings: Mapping[str, Any]
    """By the names of the options; None stands for what was not given."""
    cache: Path | None
    """None: the user's own."""
    pages: Path | None
    """A folder for a page about each search."""
    executor: str
    """Where the work is done."""
    resume: bool
    as_json: bool


def tune_grid(points: Sequence[GridPoint], wishes: Wishes, *, dry_run: bool) -> int:
    """Tune all points that are not done; the exit code. ``dry_run``: only say what would be."""
    cache = TuningCache(named_cache(wishes.cache))
    here = wishes.executor == LOCAL
    plan = make_plan(points, wishes.settings, str(wishes.file.parent), cache, here=here)
    show = GridShow(resume=wishes.resume, as_json=wishes.as_json)
    if not dry_run:
        writable_cache(wishes.cache)  # now, rather than after an hour
        if wishes.pages is not None:
            make_folder(wishes.pages)
    show.plan(plan)
    if dry_run:
        wrong = sum(bool(p.problem) for p in plan.points)
        if wrong:
            report(f"{wrong} of {len(plan.points)} points cannot be tuned")
        return 1 if wrong else 0
    with ExitStack() as stack:
        counts = {p.choice.target.cores for p in plan.points}
        say = partial(click.echo, err=wishes.as_json)
        places = {
            n: stack.enter_context(workplace(wishes.executor, n, say)) for n in sorted(counts)
        }
        return _Grid(plan.points, wishes, cache, show, places).run()


@dataclass(frozen=True, slots=True)
class _Grid:
    """The searches of a plan."""

    points: Sequence[PlannedPoint]
    wishes: Wishes
    cache: TuningCache
    show: GridShow
    places: Mapping[int, Workplace | None]
    """Where to work, by the number of cores to measure on."""

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
                stopped, outcome = exit_code(error), PointOutcome(point, Status.LEFT, "interrupted")
            outcomes.append(outcome)
            seconds = time.monotonic() - began
            if outcome.status is Status.TUNED:
                took += seconds
                expected += point.ahead(resume=resume)[1]
            if stopped:
                break
            # What is left takes as long, beside its estimate, as what was before it.
            rest = [p for p in self.points[len(outcomes) :] if not p.problem]
            pace = took / expected if expected else 1.0
            left = pace * sum(p.ahead(resume=resume)[1] for p in rest)
            self.show.done(outcome, len(self.points), seconds, left)
        count_presses([])  # what is left takes a moment
        outcomes += [PointOutcome(p, Status.LEFT) for p in self.points[len(outcomes) :]]
        self.show.ends(outcomes)
        return _exit_code(outcomes, stopped)

    def _point(self, point: PlannedPoint) -> tuple[int, PointOutcome]:
        """The exit code if the user wants to stop, else 0, and what became of the point."""
        standing, resume = point.standing, self.wishes.resume
        if resume and standing.done and point.key is not None:
            best = self.cache.best(point.key)
            time_ = duration(best.time) if best is not None and best.time else "nothing correct"
            return 0, PointOutcome(point, Status.KNOWN, f"{time_} in the tuning cache")
        if point.problem:
            return 0, PointOutcome(point, Status.FAILED, point.problem)
        if resume and standing.busy:
            return 0, PointOutcome(point, Status.FAILED, standing.busy)
        self.show.begins(point, len(self.points))
        try:
            with handlers_kept():
                ended = self._search(point)
        except (TclError, IndexError, MemoryError, OSError) as error:
            reason = error.message if isinstance(error, SourceError) else str(error)
            return 0, PointOutcome(point, Status.FAILED, reason or type(error).__name__)
        return ended.signalled, _outcome(point, ended)

    def _search(self, point: PlannedPoint) -> Ended:
        about, choice, wishes = point.about, point.choice, self.wishes
        last = point.standing.last if wishes.resume else None
        config = choice.config
        if last is not None:
            config = config.going_on(last.settings)
        config = config.with_defaults(seed=random.SystemRandom().getrandbits(32))
        seed = config.settings.seed or 0
        work = Work.from_def(about.text, about.checked, about.sizes, seed, about.varying)
        name = re.sub(r"[^\w=]+", "-", f"{point.number:03} {point.title}").strip("-")
        page = None if wishes.pages is None else wishes.pages / f"{name}.html"
        session = TuneSession(
            *(work, choice.target, config, self.cache.path, page),
            self.places[choice.target.cores],
            threads=choice.threads,
            fixed={},
            resume=last is not None,
            as_json=wishes.as_json,
            about={"point": point.number},
        )
        return session.run(choice.start, default=wishes.cache is None)


def _exit_code(outcomes: Sequence[PointOutcome], stopped: int) -> int:
    """Say what is left to do; the exit code."""
    missing = [each for each in outcomes if not each.accounted]
    if missing:
        left = any(each.status is Status.LEFT for each in missing)
        words = ["tcl", *sys.argv[1:]]
        command = shlex.join(words if "--resume" in words else [*words, "--resume"])
        report(
            f"{len(missing)} of {len(outcomes)} points are not accounted for; "
            f"{'go on' if left else 'when that is remedied, go on'} with: {command}"
        )
    return stopped or (1 if missing else 0)


def _outcome(point: PlannedPoint, ended: Ended) -> PointOutcome:
    """What became of a point whose search has ended."""
    result, decision = ended.result, ended.result.decision
    after = result.time
    if ended.signalled and result.interrupted:
        return PointOutcome(
            point, Status.LEFT, "interrupted; the best so far is saved", after=after
        )
    if ended.problems:
        return PointOutcome(point, Status.FAILED, "; ".join(ended.problems), after=after)
    before = None if decision.start is None else decision.start.time
    reason = verdict(decision) if decision.kept else ""
    return PointOutcome(point, Status.TUNED, reason, before=before, after=after)
