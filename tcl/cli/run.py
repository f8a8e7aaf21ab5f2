"""``tcl run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli.cache_common import cache_option, needed, relax_option
from tcl.cli.common import (
    entry_option,
    fail,
    file_argument,
    json_option,
    print_json,
    reporting,
    sizes_option,
    threads_option,
    varying_option,
    was_given,
    without_threads,
)
from tcl.cli.signals import dying
from tcl.common.number_format import duration, plural
from tcl.grammar.errors import ArgumentError

if TYPE_CHECKING:
    from tcl.arrays.arguments import Array
    from tcl.backends.targets import Target
    from tcl.cli.kernels import Work
    from tcl.codegen.common.rounding import Rounding
    from tcl.codegen.options.options import MappingOptions
    from tcl.executors.executor import Executor
    from tcl.selection.best_options import Query
    from tcl.selection.suggested_options import Chosen


@click.command("run")
@file_argument
@entry_option
@sizes_option
@click.option(
    "--options",
    "-o",
    help="Mapping options: a preset's name, JSON, the name of a JSON file, or predict, for what a "
    "model chooses. Default: the best that is known.",
)
@cache_option
@relax_option
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the random inputs.",
)
@threads_option
@varying_option
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="Where to run: cpu; cuda:0, a GPU of this machine; or cuda-emulated, a GPU that the CPU "
    "emulates, which checks every access of small kernels.",
)
@click.option("--no-reference", is_flag=True, help="Do not compare with the reference.")
@json_option
@reporting
def command(
    file: Path,
    entry: str | None,
    sizes: str | None,
    options: str | None,
    path: Path | None,
    relax: frozenset[str],
    seed: int,
    threads: int | None,
    varying: tuple[str, ...],
    device: str,
    no_reference: bool,
    as_json: bool,
) -> None:
    """Run a def on random inputs, compare it with the reference, print the time.

    It runs with the best options that the cache has for these sizes on this device, else with what
    a model chooses, else with the default. Nothing is searched, whatever TCL_TUNE_MODE says: that
    is what tcl tune is for. A cache that --cache names has to have some.
    """
    from tcl.cli.kernels import Work
    from tcl.codegen.cpu.thread_count import thread_count

    # Nothing has to be saved here, and the reference may run for minutes without hearing of Ctrl+C.
    dying()
    count = thread_count(threads)
    compare = not no_reference
    if device == "cpu":
        work = Work.load(file, entry, sizes, seed, varying)

        def choose(query: Query) -> Chosen:
            return _chosen(query, options, path, relax, work.title)

        executor = work.executor(choose, count, asked=options is not None)
        _run_on_cpu(Said(work, compare=compare, as_json=as_json), executor)
        return
    from tcl.backends.targets import target

    without_threads(device, threads)
    where = target(device, count)
    work = Work.load(file, entry, sizes, seed, varying)
    query = where.query(work.sized, work.inputs, varying)
    with work.indexing():
        chosen = _chosen(query, options, path, relax, work.title)
        _run_on_gpu(Said(work, compare=compare, as_json=as_json), chosen, where, query)


def _chosen(
    query: Query, options: str | None, path: Path | None, relax: frozenset[str], title: str
) -> Chosen:
    """What to run with: what was given, else what a cache has, else the default."""
    from tcl.cli.kernels import parse_options
    from tcl.executors.settings import PREDICT
    from tcl.selection.best_options import known_options
    from tcl.selection.predicted_options import best_or_predicted
    from tcl.selection.tune_modes import TuneMode, tune_modes

    mode = tune_modes(None, (query.name,)).of(query.name)
    if options is not None and was_given("relax"):
        raise click.UsageError("--relax is for options of a cache, and --options gives some")
    if path is None:
        if options == PREDICT:
            return best_or_predicted(query, TuneMode(PREDICT))
        return parse_options(options) or best_or_predicted(query, mode, relax=relax)
    if options is not None:
        raise click.UsageError("--options and --cache both say which options to use; give one")
    found = known_options(needed(path), query, relax=relax)
    if found is None:
        raise ArgumentError(
            f"{path} has no options for {title} on this device with so many threads; "
            "tcl cache why says what differs from those that it has"
        )
    return found


@dataclass(slots=True)
class Said:
    """What is said of a run: as text, line by line, or in the end as JSON."""

    work: Work
    compare: bool
    as_json: bool
    _data: dict[str, object] = field(init=False)

    def __post_init__(self) -> None:
        name, sizes = self.work.checked.name, dict(self.work.sizes)
        self._data = {"def": name, "sizes": sizes, "outputs": [], "agrees": None}

    def results(self, outputs: Sequence[Array]) -> None:
        """What was computed, and whether it is right; exits if it is not."""
        tensors = self.work.checked.outputs
        self._line(self.work.title)
        for tensor, array in zip(tensors, outputs, strict=True):
            self._line(f"  {tensor.name}: {tensor.type}{array.shape}")
        self._data["outputs"] = [
            {"name": tensor.name, "type": str(tensor.type), "shape": list(array.shape)}
            for tensor, array in zip(tensors, outputs, strict=True)
        ]
        if not self.compare:
            return
        wrong = _differences(self.work, outputs)
        self._data["agrees"] = not wrong
        if wrong:
            self.end()
            fail("\n".join(wrong))
        self._line("  agrees with the reference")

    def time(self, seconds: float | None, where: str, options: MappingOptions) -> None:
        """How long a call takes; None where times mean nothing."""
        if seconds is None:
            self._line(f"  every access was checked on {where}, with options {options}")
        else:
            self._line(f"  {duration(seconds)} a call on {where}, with options {options}")
        self._data |= {"seconds": seconds, "on": where, "options": options.as_dict()}

    def serves(self, sizes: str | None) -> None:
        """Which sizes the kernel is for, where some vary."""
        if sizes is not None:
            self._line(f"  the kernel serves {sizes}")
        elif self.work.varying:
            self._line("  the kernel is for these sizes alone: there can be none for their class")
        self._data["serves"] = sizes

    def end(self) -> None:
        """That is all."""
        if self.as_json:
            print_json(self._data)

    def _line(self, text: str) -> None:
        if not self.as_json:
            click.echo(text)


def _run_on_cpu(said: Said, executor: Executor) -> None:
    """Run once, compare, and say how long a call takes."""
    from tcl.executors.varying import VaryingExecutor
    from tcl.tuner.measure.timing import measure

    work, outputs = said.work, said.work.outputs()
    with work.indexing():
        executor(*work.inputs, outputs=outputs)
    said.results(outputs)
    seconds = measure(lambda: executor(*work.inputs, outputs=outputs)).median
    said.time(seconds, plural(executor.threads, "thread"), executor.options)
    said.serves(str(executor.serves) if isinstance(executor, VaryingExecutor) else None)
    said.end()


def _run_on_gpu(said: Said, wanted: Chosen, target: Target, query: Query) -> None:
    """Likewise, on a GPU or one that is emulated, of which times mean nothing."""
    from tcl.backends.targets import EMULATED, check_emulated
    from tcl.codegen.common.scratch_folder import workspace
    from tcl.selection.suggested_options import applied
    from tcl.tuner.measure.timing import measure

    work, emulated = said.work, target.name == EMULATED
    if emulated:
        check_emulated(work.sized)
    backend = target.backend(work.text, work.checked.name, work.inputs)
    if query.classes:
        backend = backend.for_all(query.classes)
    with workspace() as folder:
        backend = backend.holding(work.inputs, folder)
        problem, (chosen, code) = backend.problem(), applied(wanted, backend.compile)
    bench = problem.bench
    inputs = [bench.guarded(a, bench.placements[0]) for a in problem.inputs]
    outputs = [bench.guarded(o, bench.placements[0]) for o in problem.outputs]
    for held, values in zip((*inputs, *outputs), (*problem.inputs, *work.outputs()), strict=True):
        held.hold(values)
    run = bench.bound(backend.load(code), inputs, outputs)
    run()
    said.results([held.values() for held in outputs])
    if emulated:
        said.time(None, f"an emulated {target.identity.partition(';')[0]}", chosen)
    else:
        with bench.alone():
            seconds = measure(run, settings=target.timing, timer=bench.seconds).median
        said.time(seconds, target.identity, chosen)
    said.serves(str(backend.all_) if query.classes else None)
    said.end()


def _differences(work: Work, outputs: Sequence[Array]) -> list[str]:
    """Sentences about outputs that are not what the reference computes."""
    from tcl.codegen.common.rounding import UNKNOWN
    from tcl.codegen.reference import compile_reference, roundings
    from tcl.tuner.measure.correctness import accumulation_depths, mismatch

    expected = work.outputs()
    compile_reference(work.sized)(work.inputs, expected)
    depths = accumulation_depths(work.sized)

    def differences(known: Sequence[Rounding]) -> list[str]:
        found = (
            mismatch(tensor.name, actual, wanted, depths[tensor.name], rounding)
            for tensor, actual, wanted, rounding in zip(
                work.checked.outputs, outputs, expected, known, strict=True
            )
        )
        return [sentence for sentence in found if sentence is not None]

    if not differences([UNKNOWN] * len(outputs)):
        return []
    return differences(roundings(work.sized, work.inputs, work.outputs()))
