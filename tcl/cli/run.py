"""``tcl run``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcl.arrays.arguments import Array
from tcl.backends.targets import EMULATED, Target, check_emulated, target
from tcl.cli import common
from tcl.cli.cache_commands.common import needed, relax_option
from tcl.cli.differences import differences
from tcl.cli.kernels import Work, parse_options
from tcl.cli.output import dying
from tcl.codegen.compiler import Device
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.common.errors import ArgumentError
from tcl.common.lazy import Lazy
from tcl.common.number_format import duration, plural
from tcl.common.scratch_folder import workspace
from tcl.executors.dispatch import PREDICT
from tcl.executors.executor import Executor
from tcl.executors.size_classes import for_all
from tcl.executors.varying import VaryingExecutor
from tcl.selection.best_options import Query, known_options
from tcl.selection.predicted_options import best_or_predicted
from tcl.selection.suggested_options import Chosen, applied
from tcl.selection.tune_modes import TuneMode, tune_modes
from tcl.tuner.measure.timing import measure

if TYPE_CHECKING:
    from tcl.backends import gpu_stages
else:
    gpu_stages = Lazy("tcl.backends.gpu_stages")


@click.command("run")
@common.file_argument
@common.entry_option
@common.sizes_option
@click.option(
    "--options",
    "-o",
    help="Mapping options: the name of a preset, JSON, the name of a JSON file, or predict for "
    "a model's choice. Default: the best known options.",
)
@common.cache_option
@relax_option
@common.seed_option
@common.threads_option
@common.varying_option
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="Where to run: cpu; cuda:0, a GPU of this machine; or cuda-emulated, an emulated GPU "
    "that checks every access (for small kernels).",
)
@click.option(
    "--counters",
    is_flag=True,
    help="With --device cuda-emulated: the memory requests of all warps, beside the counts of "
    "tcl show --stage counters.",
)
@click.option("--no-reference", is_flag=True, help="Do not compare with the reference.")
@common.json_option
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
    counters: bool,
    no_reference: bool,
    as_json: bool,
) -> None:
    """Run a def on random inputs, compare it with the reference, print the time.

    It uses the best cached options for these sizes on this device, else a model's choice, else the
    default. It never searches, even if TCL_TUNE_MODE is set; use tcl tune to search. If
    you name a file with --cache, it must have options for these sizes.
    """
    # Nothing has to be saved here, and the reference may run for minutes without hearing of Ctrl+C.
    dying()
    count = thread_count(threads)
    said, compare = common.Said(as_json), not no_reference
    if counters and device != EMULATED:
        raise click.UsageError(
            f"--counters is for --device {EMULATED}, which sees every access; "
            "tcl show --stage counters --device h200 counts without running"
        )
    if counters and varying:
        raise click.UsageError("--counters needs known sizes; leave out --varying")
    if device == "cpu":
        work = Work.load(file, entry, sizes, seed, varying)

        def choose(query: Query) -> Chosen:
            return _chosen(query, options, path, relax, work.heading)

        executor = work.executor(choose, count, asked=options is not None)
        _run_on_cpu(said, work, executor, compare=compare)
        said.end()
        return
    common.without_threads(device, threads)
    where = target(device, count)
    work = Work.load(file, entry, sizes, seed, varying)
    query = where.query(work.sized, work.inputs, varying)
    with work.indexing():
        chosen = _chosen(query, options, path, relax, work.heading)
        _run_on_gpu(said, work, chosen, where, query, compare=compare, counters=counters)
    said.end()


def _chosen(
    query: Query, options: str | None, path: Path | None, relax: frozenset[str], title: str
) -> Chosen:
    """What to run with: what was given, else what a cache has, else the default."""
    mode = tune_modes(None, (query.name,)).mode_of(query.name)
    if options is not None and common.was_given("relax"):
        raise click.UsageError("--relax is for cached options; leave it out with --options")
    if path is None:
        if options == PREDICT:
            return best_or_predicted(query, TuneMode(PREDICT))
        return parse_options(options) or best_or_predicted(query, mode, relax=relax)
    if options is not None:
        raise click.UsageError("--options and --cache both give options; give one of them")
    found = known_options(needed(path), query, relax=relax)
    if found is None:
        raise ArgumentError(
            f"{path} has no options for {title} on this device with so many threads; tcl cache "
            "why shows the differences"
        )
    return found


def _run_on_cpu(said: common.Said, work: Work, executor: Executor, *, compare: bool) -> None:
    """Run once, compare, and say how long a call takes."""
    outputs = work.outputs()
    with work.indexing():
        executor(*work.inputs, outputs=outputs)
    _show_results(said, work, outputs, compare=compare)
    seconds = measure(lambda: executor(*work.inputs, outputs=outputs)).median
    used = plural(executor.threads, "thread")
    said.say(
        f"  {duration(seconds)} per call on {used}, with {_named(executor.options)}",
        **{"device": "cpu", "threads": executor.threads, "seconds": seconds},
        options=executor.options.as_dict(),
    )
    serves = str(executor.serves) if isinstance(executor, VaryingExecutor) else None
    _show_class(said, work, serves, host_cpu())


def _named(options: MappingOptions) -> str:
    return "the default options" if options == DEFAULT else f"options {options}"


def _show_class(said: common.Said, work: Work, serves: str | None, device: Device) -> None:
    """Say which sizes the kernel is for, where some vary."""
    said.say(varying=work.varying, serves=serves)
    if serves is not None:
        said.say(f"  the kernel serves {serves}")
    elif work.varying:
        found = for_all(work.checked, work.sized.sizes, work.varying, device)
        why = found if isinstance(found, str) else f"with these options, none can be for {found}"
        said.say(f"  the kernel is for these sizes only; {why}")


def _run_on_gpu(
    said: common.Said,
    work: Work,
    wanted: Chosen,
    target: Target,
    query: Query,
    *,
    compare: bool,
    counters: bool,
) -> None:
    """Likewise, on a GPU or one that is emulated, of which times mean nothing."""
    emulated = target.name == EMULATED
    if emulated:
        check_emulated(work.sized)
    backend = target.backend(work.text, work.checked.name, work.inputs).for_all(query.classes)
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
    _show_results(said, work, [held.values() for held in outputs], compare=compare)
    seconds = None
    if emulated:
        gpu = target.identity.partition(";")[0]
        said.say(f"  every access was checked on an emulated {gpu}, with {_named(chosen)}")
        if counters:
            _show_counters(said, backend, chosen, (*work.inputs, *work.outputs()))
    else:
        with bench.alone():
            seconds = measure(run, settings=target.timing, timer=bench.seconds).median
        said.say(f"  {duration(seconds)} per call on {target.identity}, with {_named(chosen)}")
    said.say(device=target.name, threads=None, seconds=seconds, options=chosen.as_dict())
    _show_class(said, work, str(backend.all_) if query.classes else None, query.device)


def _show_counters(
    said: common.Said, backend: Any, chosen: MappingOptions, arrays: Sequence[Array]
) -> None:
    """Say what warps asked of memory, beside what was counted."""
    program, asked = backend.traced(chosen, arrays)
    seen = [{kind: (a.requests, a.units) for kind, a in own.items()} for own in asked]
    counted = gpu_stages.counted(program, backend.profile)
    said.say(
        *(f"  {line}" for line in gpu_stages.compared(counted, seen)),
        counters=[
            {kind: {"counted": own[kind], "emulated": other[kind]} for kind in own}
            for own, other in zip(counted, seen, strict=True)
        ],
    )


def _show_results(
    said: common.Said, work: Work, outputs: Sequence[Array], *, compare: bool
) -> None:
    """Say what was computed, and whether it is right; exit if it is not."""
    named = list(zip(work.checked.outputs, outputs, strict=True))
    said.say(
        work.heading,
        *(f"  {tensor.name}: {tensor.type}{array.shape}" for tensor, array in named),
        entry=work.checked.name,
        sizes=work.sizes,
        outputs=[{"name": t.name, "type": str(t.type), "shape": a.shape} for t, a in named],
    )
    if compare:
        expected = work.outputs()
        compile_reference(work.sized)(work.inputs, expected)
        names = [tensor.name for tensor in work.checked.outputs]
        made, meant = (dict(zip(names, each, strict=True)) for each in (outputs, expected))
        wrong = differences(work, made, meant)
        if wrong:
            common.fail("\n".join(wrong))
        nans = ((t.name, int((array != array).sum()), array.size) for t, array in named)
        said.say(
            "  agrees with the reference",
            *(f"  {n} of the {of} elements of {name} are NaN in both" for name, n, of in nans if n),
        )
    said.say(compared=compare)
