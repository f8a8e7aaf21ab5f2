"""``tcl devices``."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from tcl.cli.common import json_option, print_json, reporting, threads_option
from tcl.common.number_format import plural

if TYPE_CHECKING:
    from tcl.bench.roofline import Known
    from tcl.codegen.devices.gpu import GpuProfile


@click.command("devices")
@click.option("--measure", is_flag=True, help="Measure what the machine can do, for `tcl tune`.")
@threads_option
@json_option
@reporting
def command(measure: bool, threads: int | None, as_json: bool) -> None:
    """What this machine has, and what it can do."""
    from tcl.bench.roofline import kept_ceilings, measure_ceilings
    from tcl.codegen.cpu.thread_count import thread_count
    from tcl.grammar.errors import ArgumentError
    from tcl.tuner.measure.cores import available_cores

    count = thread_count(threads)
    if measure:
        cores = len(available_cores())
        if count > cores:
            raise ArgumentError(f"{count} threads are measured on as many cores; there are {cores}")
        if measure_ceilings(count) is None:
            raise ArgumentError(
                "what the machine can do could not be measured: it is too busy, or short of memory"
            )
    (_print_data if as_json else _print)(count, kept_ceilings(count), _gpus())


def _gpus() -> dict[str, GpuProfile | str]:
    """The GPUs that are here, by name; or why one cannot be used."""
    from tcl.codegen.devices.gpu import device_count, of_device
    from tcl.grammar.errors import TclError

    found: dict[str, GpuProfile | str] = {}
    for number in range(device_count()):
        try:
            found[f"cuda:{number}"] = of_device(number)
        except TclError as error:
            found[f"cuda:{number}"] = str(error)
    return found


def _print(threads: int, known: Known | None, gpus: dict[str, GpuProfile | str]) -> None:
    from tcl.bench.roofline import describe_ceilings
    from tcl.codegen.devices import gpu as gpus_known
    from tcl.codegen.devices import known_cpus
    from tcl.codegen.devices.cpu import host_cpu
    from tcl.tuner.cache.fingerprint import device_identity

    device = host_cpu()
    click.echo(f"cpu     {device_identity(device)}")
    click.echo(
        f"        LLVM calls it {device.name}; L1 {device.l1_bytes >> 10} KiB, "
        f"L2 {device.l2_bytes >> 10} KiB, L3 {device.l3_bytes >> 10} KiB"
    )
    click.echo(f"        kernels use up to {plural(threads, 'thread')}")
    if known is None:
        click.echo("        what it can do was not measured yet: --measure does it")
    else:
        when = datetime.datetime.fromtimestamp(known.when).strftime("%Y-%m-%d %H:%M")
        found = describe_ceilings(known.ceilings)
        click.echo(f"        with {plural(threads, 'thread')}: {found} (measured {when})")
    for name, gpu in gpus.items():
        if isinstance(gpu, str):
            click.echo(f"{name:<7} cannot be used: {gpu}")
            continue
        click.echo(
            f"{name:<7} {gpu.name} ({gpu.architecture}); {gpu.multiprocessors} multiprocessors; "
            f"L2 {gpu.l2_bytes >> 20} MiB; up to {gpu.memory_bytes_per_second / 1e9:,.0f} GB/s, "
            f"{gpu.float32_flops / 1e12:.1f} TFLOP/s"
        )
    if not gpus:
        click.echo("cuda    no device, or none that CuPy finds")
    click.echo("known   tcl show --device shows kernels for")
    click.echo(f"        CPUs: {', '.join(p.title for p in known_cpus.PROFILES)}")
    named = ", ".join(f"{p.name} ({p.architecture})" for p in gpus_known.PROFILES)
    click.echo(f"        GPUs: {named}")


def _print_data(threads: int, known: Known | None, gpus: dict[str, GpuProfile | str]) -> None:
    """``when`` is in seconds since the epoch; flops are per second."""
    from tcl.codegen.devices import gpu as gpus_known
    from tcl.codegen.devices import known_cpus
    from tcl.codegen.devices.cpu import host_cpu
    from tcl.tuner.cache.fingerprint import device_identity

    device = host_cpu()
    sizes = {f"{name}_bytes": getattr(device, f"{name}_bytes") for name in ("l1", "l2", "l3")}
    measured: dict[str, object] | None = None
    if known is not None:
        rates = known.ceilings
        measured = {
            "when": known.when,
            "float32_flops": rates.flops,
            "operations_by_type": dict(rates.products),
            "read_bytes_per_second": rates.read,
            "copied_bytes_per_second": rates.copy,
        }
    cpu: dict[str, object] = {"identity": device_identity(device), "name": device.name}
    shown = {
        "cpus": [p.title for p in known_cpus.PROFILES],
        "gpus": [p.name for p in gpus_known.PROFILES],
    }
    cpu |= {**sizes, "threads": threads, "measured": measured}
    print_json(
        {
            "cpu": cpu,
            "gpus": [_gpu_data(name, gpu) for name, gpu in gpus.items()],
            "known": shown,
        }
    )


def _gpu_data(name: str, gpu: GpuProfile | str) -> dict[str, Any]:
    if isinstance(gpu, str):
        return {"device": name, "error": gpu}
    return {
        "device": name,
        "name": gpu.name,
        "architecture": gpu.architecture,
        "multiprocessors": gpu.multiprocessors,
        "l2_bytes": gpu.l2_bytes,
        "memory_bytes_per_second": gpu.memory_bytes_per_second,
        "float32_flops": gpu.float32_flops,
    }
