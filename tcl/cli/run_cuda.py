"""``tcl run`` on a GPU, or on one that is emulated."""

from __future__ import annotations

import click

from tcl.backends.targets import EMULATED, Target, check_emulated
from tcl.cli.kernels import Work
from tcl.cli.run import show_results
from tcl.common.number_format import duration
from tcl.common.scratch_folder import workspace
from tcl.selection.suggested_options import Chosen, applied
from tcl.tuner.measure.timing import measure


def run_cuda(work: Work, wanted: Chosen, target: Target, *, compare: bool) -> None:
    """Run once, compare, and say how long a call takes, if that means anything."""
    emulated = target.name == EMULATED
    if emulated:
        check_emulated(work.sized)
    backend = target.backend(work.text, work.checked.name, work.inputs)
    with workspace() as folder:
        backend = backend.holding(work.inputs, folder)
        problem, (chosen, code) = backend.problem(), applied(wanted, backend.compile)
    bench = problem.bench
    inputs = [bench.guarded(a) for a in problem.inputs]
    outputs = [bench.guarded(o) for o in problem.outputs]
    for held, values in zip((*inputs, *outputs), (*problem.inputs, *work.outputs()), strict=True):
        held.hold(values)
    run = bench.bound(backend.load(code), inputs, outputs)
    run()
    show_results(work, [held.values() for held in outputs], compare=compare)
    if emulated:
        gpu = target.identity.partition(";")[0]
        click.echo(f"  every access was checked on an emulated {gpu}, with options {chosen}")
        return
    with bench.alone():
        seconds = measure(run, settings=target.timing, timer=bench.seconds).median
    click.echo(f"  {duration(seconds)} a call on {target.identity}, with options {chosen}")
