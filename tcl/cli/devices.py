"""``tcl devices``."""

from __future__ import annotations

import datetime

import click

from tcl.cli.common import reporting, threads_option


@click.command("devices")
@click.option("--measure", is_flag=True, help="Measure what the machine can do, for `tcl tune`.")
@threads_option
@reporting
def command(measure: bool, threads: int | None) -> None:
    """What this machine has, and what it can do."""
    from tcl.bench.roofline import describe_ceilings, kept_ceilings, measure_ceilings
    from tcl.codegen.cpu.threads import thread_count
    from tcl.codegen.device import host_cpu
    from tcl.grammar.errors import ArgumentError
    from tcl.known import device_identity
    from tcl.tuner.config import available_cores

    device = host_cpu()
    click.echo(f"cpu     {device_identity(device)}")
    click.echo(
        f"        LLVM calls it {device.name}; L1 {device.l1_bytes >> 10} KiB, "
        f"L2 {device.l2_bytes >> 10} KiB, L3 {device.l3_bytes >> 10} KiB"
    )
    count = thread_count(threads)
    plural = "" if count == 1 else "s"
    click.echo(f"        kernels use up to {count} thread{plural}")
    if measure:
        cores = len(available_cores())
        if count > cores:
            raise ArgumentError(f"{count} threads are measured on as many cores; there are {cores}")
        if measure_ceilings(count) is None:
            raise ArgumentError(
                "what the machine can do could not be measured: it is too busy, or short of memory"
            )
    known = kept_ceilings(count)
    if known is None:
        click.echo("        what it can do was not measured yet: --measure does it")
        return
    when = datetime.datetime.fromtimestamp(known.when).strftime("%Y-%m-%d %H:%M")
    found = describe_ceilings(known.ceilings)
    click.echo(f"        with {count} thread{plural}: {found} (measured {when})")
