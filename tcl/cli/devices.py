"""``tcl devices``."""

from __future__ import annotations

import datetime

import click

from tcl.cli.common import reporting, threads_option
from tcl.common.number_format import plural


@click.command("devices")
@click.option("--measure", is_flag=True, help="Measure what the machine can do, for `tcl tune`.")
@threads_option
@reporting
def command(measure: bool, threads: int | None) -> None:
    """What this machine has, and what it can do."""
    from tcl.bench.roofline import describe_ceilings, kept_ceilings, measure_ceilings
    from tcl.codegen.cpu.thread_count import thread_count
    from tcl.codegen.devices.cpu import host_cpu
    from tcl.grammar.errors import ArgumentError
    from tcl.tuner.cache.fingerprint import device_identity
    from tcl.tuner.measure.cores import available_cores

    device = host_cpu()
    click.echo(f"cpu     {device_identity(device)}")
    click.echo(
        f"        LLVM calls it {device.name}; L1 {device.l1_bytes >> 10} KiB, "
        f"L2 {device.l2_bytes >> 10} KiB, L3 {device.l3_bytes >> 10} KiB"
    )
    count = thread_count(threads)
    threads_text = plural(count, "thread")
    click.echo(f"        kernels use up to {threads_text}")
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
    else:
        when = datetime.datetime.fromtimestamp(known.when).strftime("%Y-%m-%d %H:%M")
        found = describe_ceilings(known.ceilings)
        click.echo(f"        with {threads_text}: {found} (measured {when})")
    _gpus()
    _known()


def _gpus() -> None:
    """The GPUs that are here."""
    from tcl.codegen.devices.gpu import device_count, of_device
    from tcl.grammar.errors import TclError

    count = device_count()
    for number in range(count):
        name = f"cuda:{number}"
        try:
            gpu = of_device(number)
        except TclError as error:
            click.echo(f"{name:<7} cannot be used: {error}")
            continue
        click.echo(
            f"{name:<7} {gpu.name} ({gpu.architecture}); {gpu.multiprocessors} multiprocessors; "
            f"L2 {gpu.l2_bytes >> 20} MiB; up to {gpu.memory_bytes_per_second / 1e9:,.0f} GB/s, "
            f"{gpu.float32_flops / 1e12:.1f} TFLOP/s"
        )
    if count == 0:
        click.echo("cuda    no device, or none that CuPy finds")


def _known() -> None:
    """The devices that kernels can be shown for anywhere."""
    from tcl.codegen.devices import gpu, known_cpus

    cpus = ", ".join(p.title for p in known_cpus.PROFILES)
    gpus = ", ".join(f"{p.name} ({p.architecture})" for p in gpu.PROFILES)
    click.echo("known   tcl show --device shows kernels for")
    click.echo(f"        CPUs: {cpus}")
    click.echo(f"        GPUs: {gpus}")
