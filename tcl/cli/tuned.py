"""One search of ``tcl tune``: what is shown while it goes on, and after it."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from tcl import __version__
from tcl.arrays.annotations import sizes_of
from tcl.backends.targets import Target, timed_target
from tcl.bench.roofline import (
    Roofline,
    describe_ceilings,
    failed_lately,
    kept_ceilings,
    measure_ceilings,
)
from tcl.bench.turns import interleaved
from tcl.cli.cache_commands.common import how_to_load, writable_cache
from tcl.cli.common import check_varying, choose, report
from tcl.cli.kernels import Work, parse_options
from tcl.cli.output import count_presses, exit_code, handlers, restore_handlers
from tcl.cli.peers import peers, won
from tcl.cli.progress_json import JsonProgress, decided
from tcl.cli.settings import own_names, search_config
from tcl.cli.tables import plain_table
from tcl.cluster import LOCAL, workplace
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.loopir.cost import cost_of
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.knobs import Value
from tcl.codegen.options.options import MappingOptions
from tcl.common.number_format import duration, plural, ratio_text
from tcl.progress.console import Console
from tcl.progress.panel import Progress
from tcl.progress.state import BESIDE, UNTUNED, Event, SearchState, name_of, reading, winner_name
from tcl.report.data import collect
from tcl.report.page import write_page
from tcl.selection.best_options import DEFAULT, Query
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.cores import available_cores
from tcl.tuner.measure.placement import shown
from tcl.tuner.run.checkpoint import SavedSearch
from tcl.tuner.run.events import Candidate, Decision
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.stop_requests import COMMAND, searches_count
from tcl.tuner.run.workplace import Workplace
from tcl.tuning import Tuner

_WINNER = "the winner"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says, of all points of a grid if there is one."""

    file: Path
    """With the def, or of the grid."""
    settings: Mapping[str, Any]
    """By the names of the options; None stands for what was not given."""
    cache: Path | None
    """None: the user's own."""
    page: Path | None
    """A file for a page about the search; of a grid a folder with one for each."""
    executor: str
    """Where the work is done."""
    resume: bool
    as_json: bool


def tune_def(
    wishes: Wishes,
    entry: str | None,
    sizes: str | None,
    varying: tuple[str, ...],
    fixed: Mapping[str, Value],
) -> int:
    """Tune one def, as ``tcl tune`` names it; the exit code."""
    settings, executor, path = wishes.settings, wishes.executor, wishes.cache
    count = thread_count(settings["threads"])
    device = "cpu" if settings["device"] is None else settings["device"]
    chosen = timed_target(device, count, here=executor == LOCAL)
    with own_names(usage=True):
        config = search_config(settings)
    start = parse_options(settings["options"])
    text, checked = choose(wishes.file, entry)
    check_varying(checked, varying)
    values = sizes_of(checked, sizes)
    # Now, rather than after an hour; and not before names are known to be right: it makes a file.
    cache = writable_cache(path).path
    if wishes.resume:
        with own_names(options=True):
            before = Work.from_def(text, checked, values, 0, varying)
            key = chosen.query(before.sized, before.inputs, varying).key
            saved = SavedSearch.last(TuningCache(cache), key)
            config = config if saved is None else config.going_on(saved.settings)
    # One seed for the search and the inputs, so that a resumed search knows both.
    config = config.with_defaults(generations=10, seed=random.SystemRandom().getrandbits(32))
    with own_names(usage=True):
        config.settings.check()  # now, before anything is measured
    work = Work.from_def(text, checked, values, config.settings.seed or 0, varying)
    say = partial(click.echo, err=wishes.as_json)
    with workplace(executor, chosen.cores, say) as place:
        session = TuneSession(
            work, chosen, config, cache, wishes.page, place,
            threads=count, fixed=fixed, resume=wishes.resume, as_json=wishes.as_json,
        )  # fmt: skip
        return session.run(start, default=path is None).exit_code


@dataclass(frozen=True, slots=True)
class Ended:
    result: TuningResult[MappingOptions]
    problems: tuple[str, ...]
    """Sentences, which the user has seen."""
    signalled: int
    """The exit code that tells of a signal; 0 if there was none."""

    @property
    def exit_code(self) -> int:
        if self.signalled:
            return self.signalled
        return 1 if self.problems or self.result.options is None else 0


@dataclass(slots=True)
class TuneSession:
    """A search from its first line to its last."""

    work: Work
    target: Target
    config: TunerConfig
    cache: Path
    page: Path | None
    workplace: Workplace | None = None
    _: KW_ONLY
    threads: int
    fixed: Mapping[str, Value]
    resume: bool
    as_json: bool
    about: Mapping[str, Any] | None = None
    """What each event in JSON says, too."""
    presses: list[int] = field(default_factory=list)

    def run(self, start: MappingOptions | None, *, default: bool) -> Ended:
        """Search, show, save. ``default``: whether the cache is the user's own.

        Afterwards Ctrl+C and SIGTERM do nothing; who has more to do sets the handlers back.
        """
        tuner = Tuner(
            self.work.text,
            self.cache,
            threads=self.threads,
            workplace=self.workplace,
            device=self.target.name,
            varying=self.work.varying,
        )
        # All that is given is checked before anything is measured.
        tuner.check(self.work.checked.name, self.work.inputs, start, fixed=self.fixed)
        yardstick = self._yardstick()
        progress, log = self._progress(yardstick), SearchState()

        def told(event: Event) -> None:
            log.take(event)
            progress.report(event)

        # During the search the tuner counts the signals. One that comes just before or after, or a
        # second press of Ctrl+C, must neither be lost nor cost the user the table.
        before = handlers()
        count_presses(self.presses)
        name, inputs = self.work.checked.name, self.work.inputs
        counted = searches_count(*COMMAND, before=self.presses)
        with self.work.indexing(), progress, counted:
            result = tuner.tune(
                *(name, inputs, start, self.config),
                fixed=self.fixed,
                resume=self.resume,
                report=told,
            )
        signalled = self._signalled(log.signalled)
        if not signalled:
            restore_handlers(before)
        beside: dict[str, float] = {}
        if result.options is not None and self.target.name == "cpu" and not signalled:
            try:
                beside = self._beside(result.decision)
                if yardstick.beaten(result.time or math.inf) and not failed_lately(self.threads):
                    yardstick = self._measured(yardstick)
            except KeyboardInterrupt as stopped:
                signalled = exit_code(stopped)
        count_presses(self.presses)  # what is left takes a moment
        self._print_result(result, beside, yardstick, progress)
        problems = self._write_page(log, result.run, yardstick, beside)
        problems += self._saved(result, default=default)
        for problem in problems:
            report(problem)
        return Ended(result, tuple(problems), signalled or self._signalled())

    def _signalled(self, noticed: str = "") -> int:
        """The exit code that tells of a signal; 0 if there was none. ``noticed``: by the search."""
        if noticed:
            return exit_code(noticed)
        return exit_code(self.presses[0]) if self.presses else 0

    # Before.

    def _yardstick(self) -> Roofline:
        """What the def has to do and the machine can, measured if it never was."""
        cost = cost_of(lower(self.work.sized))
        if self.target.name != "cpu":  # nothing of it is known but its data sheet
            return Roofline.for_cost(cost, None, 1)
        yardstick = Roofline.for_cost(cost, kept_ceilings(self.threads), self.threads)
        known = yardstick.ceilings is not None or failed_lately(self.threads)
        if not known and self.threads <= len(available_cores()):
            self._say("measuring the speed of this machine (once; the result is saved)")
            yardstick = self._measured(yardstick)
        if yardstick.ceilings is not None:
            count = plural(self.threads, "thread")
            self._say(f"this machine, {count}: {describe_ceilings(yardstick.ceilings)}")
        return yardstick

    def _measured(self, yardstick: Roofline) -> Roofline:
        """The same with the machine measured, or measured again: it was busy, and looked slow."""
        known = measure_ceilings(self.threads)
        if known is None:
            self._say(
                "the speed of this machine could not be measured now: shares are left out for "
                "an hour (tcl devices --measure tries again)"
            )
        return Roofline.for_cost(yardstick.cost, known, self.threads)

    def _progress(self, yardstick: Roofline) -> Progress | JsonProgress:
        work, settings = self.work, self.config.settings
        if not self.as_json:
            return Progress(work.heading, yardstick, settings.time_limit)
        ceilings = yardstick.ceilings
        about = {
            "tcl": __version__,
            "entry": work.checked.name,
            "sizes": dict(work.sizes),
            "varying": list(work.varying),
            "device": self.target.identity,
            "threads": self.threads,
            "settings": settings.as_dict(),
            "cost": {
                "operations": yardstick.cost.operations,
                "read": yardstick.cost.read,
                "written": yardstick.cost.written,
            },
            "ceilings": None if ceilings is None else asdict(ceilings),
        }
        return JsonProgress(about, sys.stdout, self.about)

    def _say(self, line: str) -> None:
        click.echo(line, err=self.as_json)

    # After.

    def _beside(self, decision: Decision[MappingOptions]) -> dict[str, float]:
        """How many times as long as the winner others take, who were not in the search: measured
        in turns with it, now that it is over."""
        assert decision.winner is not None
        work, best = self.work, decision.winner.options
        outputs = work.outputs()
        others = {"naive options": MappingOptions("naive"), UNTUNED: DEFAULT}
        known = {best} if decision.start is None else {best, decision.start.options}
        contenders: dict[str, Callable[[], object]] = {}
        for name, options in ((_WINNER, best), *others.items()):
            if name == _WINNER or options not in known:
                executor = work.executor(partial(_always, options), self.threads, asked=False)
                contenders[name] = partial(executor, *work.inputs, outputs=outputs)
        contenders[_WINNER]()  # on zeros
        expected = {t.name: a.copy() for t, a in zip(work.checked.outputs, outputs, strict=True)}
        contenders |= peers(work, expected, self.threads, self._say)
        if len(contenders) < 2:
            return {}
        times = interleaved(contenders)
        own = times.pop(_WINNER)
        return {name: seconds / own for name, seconds in times.items()}

    def _print_result(
        self,
        result: TuningResult[MappingOptions],
        beside: dict[str, float],
        yardstick: Roofline,
        progress: Progress | JsonProgress,
    ) -> None:
        if isinstance(progress, JsonProgress):
            options = None if result.options is None else json.loads(result.options.to_json())
            peers = [{"name": name, "ratio": ratio} for name, ratio in beside.items()]
            said = {"options": options, **decided(result.decision), "beside": peers}
            said |= {"cache": str(self.cache), "unsaved": result.unsaved}
            progress.write("result", said)
        elif result.options is not None:
            Console().print(_decision_table(self.work.heading, result.decision))
            if beside:
                others = plain_table(BESIDE, ">as long")
                for name, ratio in beside.items():
                    others.add_row(name, ratio_text(ratio))
                Console().print(others)
            gain = won(yardstick, result.time or math.inf, beside)
            if gain is not None:
                click.echo(gain)
            click.echo(f"options: {result.options}")

    def _write_page(
        self, log: SearchState, run: str, yardstick: Roofline, beside: dict[str, float]
    ) -> list[str]:
        """Write the page, if one is wanted; what went wrong."""
        if self.page is None:
            return []

        work = self.work
        settings = {k: v for k, v in self.config.settings.as_dict().items() if v is not None}
        settings["compile processes"] = settings.pop("threads") or "one for each core"
        facts = [
            ("device", self.target.identity),
            ("threads", str(self.threads)),
            ("inputs", ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in work.inputs)),
            ("settings", ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in settings.items())),
            ("tuning cache", str(self.cache)),
        ]
        page = collect(
            work.text, work.checked, work.inputs, self.target, log,
            varying=work.varying,
            title=work.heading, facts=facts, yardstick=yardstick, beside=beside, run=run,
        )  # fmt: skip
        try:
            write_page(page, self.page)
        except OSError as error:
            return [f"the report {self.page} cannot be written: {error.strerror}"]
        self._say(f"report in {self.page}")
        return []

    def _saved(self, result: TuningResult[MappingOptions], *, default: bool) -> list[str]:
        """Say where the results are; what went wrong."""
        if result.options is None and result.interrupted and self.resume:
            return ["the search ended before it continued; earlier results are kept"]
        if not result.history and result.options is None:
            return ["the search ended before a candidate was measured; it has no result"]
        if result.options is None:
            examples = "; ".join(list(dict.fromkeys(c.outcome.message for c in result.history))[:3])
            return [f"no candidate worked ({len(result.history)} tried): {examples}"]
        if result.unsaved:
            count = plural(result.unsaved, "result")
            return [f"{count} could not be saved in {self.cache}; the best is shown above"]
        used = "programs now use it" if default else "to use it"
        self._say(f"saved in {self.cache}; {used}")
        query = self.target.query(self.work.sized, self.work.inputs, self.work.varying)
        cache = None if default else self.cache
        for line in how_to_load(self.work, query, cache, self.target.name):
            self._say(line)
        return []


def _always(options: MappingOptions, query: Query) -> MappingOptions:
    return options


def _decision_table(title: str, decision: Decision[MappingOptions]) -> Table:
    """Winner and start, with the times that decided, and what they are on each placement."""
    winner, start = decision.winner, decision.start
    assert winner is not None and winner.time is not None
    places = list(winner.outcome.placements) if len(winner.outcome.placements) > 1 else []
    headings = (f">{shown(name)}" for name in places)
    table = plain_table(title, ">time a call", *headings, ">speed-up")

    def add(name: str, candidate: Candidate[MappingOptions], ratio: str, style: str = "") -> None:
        on = candidate.outcome.placements
        times = [duration(on[place]) if place in on else "-" for place in places]
        table.add_row(name, duration(candidate.time or 0.0), *times, ratio, style=style)

    if start is not None and start.time is not None and not decision.kept:
        add(name_of(start.options), start, ratio_text(1.0))
    ratio = "-" if decision.speedup is None else ratio_text(decision.speedup)
    add(winner_name(decision), winner, ratio, style="bold green")
    table.caption, table.caption_justify = f"({reading(decision)})", "left"
    return table
