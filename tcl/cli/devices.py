"""``tcl devices``."""

from __future__ import annotations

import datetime
from dataclasses import asdict

import click

from tcl.bench.ceilings import measure_memory
from tcl.bench.roofline import describe_ceilings, kept_ceilings, measure_ceilings
from tcl.cli.common import Said, json_option, threads_option
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices import gpu, known_cpus
from tcl.codegen.devices.cpu import forget_host, host_cpu
from tcl.codegen.devices.gpu import device_count, of_device
from tcl.codegen.devices.measured_memory import NEVER, MeasuredMemory, keep_memory
from tcl.common.errors import ArgumentError, TclError
from tcl.common.number_format import plural
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.measure.cores import available_cores


@click.command("devices")
@click.option("--measure", is_flag=True, help="Measure the speed of this machine, for `tcl tune`.")
@threads_option
@json_option
def command(measure: bool, threads: int | None, as_json: bool) -> None:
    """Show the devices of this machine and their speed."""
    said = Said(as_json)
    _cpu(said, threads, measure=measure)
    _gpus(said)
    _known_devices(said)
    said.end()


def _cpu(said: Said, threads: int | None, *, measure: bool) -> None:
    """The processor, and what it can do if that was measured."""
    device, count = host_cpu(), thread_count(threads)
    identity, threads_text = device_identity(device), plural(count, "thread")
    said.say(
        f"cpu     {identity}",
        f"        LLVM calls it {device.name}; L1 {device.l1_bytes >> 10} KiB, "
        f"L2 {device.l2_bytes >> 10} KiB, L3 {device.l3_bytes >> 10} KiB",
        f"        kernels use up to {threads_text}",
    )
    known, memory = kept_ceilings(count), device.memory
    if measure:
        cores = len(available_cores())
        if count > cores:
            raise ArgumentError(
                f"{count} threads need as many cores for the measurement; there are {cores}"
            )
        known = measure_ceilings(count)
        if known is None:
            raise ArgumentError(
                "the speed of the machine could not be measured: it is too busy, or has too "
                "little free memory"
            )
        memory = measure_memory()
        keep_memory(device, memory)
        forget_host()
    if known is None:
        said.say("        its speed has not been measured yet; use --measure")
    else:
        when = datetime.datetime.fromtimestamp(known.when).strftime("%Y-%m-%d %H:%M")
        found = describe_ceilings(known.ceilings)
        said.say(f"        with {threads_text}: {found} (measured {when})")
    if memory is not None:
        said.say(
            f"        stores bypass the caches {_streamed(memory)}; one core reads "
            f"{memory.cached_bytes / (1 << 20):.3g} MB again from them, and "
            f"{memory.bytes_per_cycle:.3g} bytes a cycle from memory (measured)"
        )
    said.say(
        cpu={
            "device": identity,
            "llvm_name": device.name,
            "l1_bytes": device.l1_bytes,
            "l2_bytes": device.l2_bytes,
            "l3_bytes": device.l3_bytes,
            "threads": count,
            "ceilings": None if known is None else asdict(known.ceilings),
            "measured": None if known is None else known.when,
            "stores": None if memory is None else asdict(memory),
        }
    )


def _streamed(memory: MeasuredMemory) -> str:
    """From which size on."""
    if memory.streamed_from == NEVER:
        return "at no size"
    return f"where a loop nest touches at least {2 * memory.streamed_from >> 20} MB"


def _gpus(said: Said) -> None:
    found: list[dict[str, object]] = []
    for number in range(device_count()):
        name = f"cuda:{number}"
        try:
            gpu = of_device(number)
        except TclError as error:
            said.say(f"{name:<7} cannot be used: {error}")
            found.append({"device": name, "error": str(error)})
            continue
        said.say(
            f"{name:<7} {gpu.name} ({gpu.architecture}); {gpu.multiprocessors} multiprocessors; "
            f"L2 {gpu.l2_bytes >> 20} MiB; up to {gpu.memory_bytes_per_second / 1e9:,.0f} GB/s, "
            f"{gpu.float32_flops / 1e12:.1f} TFLOP/s"
        )
        values = ("name", "architecture", "multiprocessors", "l2_bytes", "memory_bytes_per_second")
        numbers = {each: getattr(gpu, each) for each in (*values, "float32_flops")}
        found.append({"device": name, "error": None, **numbers})
    if not found:
        said.say("cuda    no device, or none that CuPy finds")
    said.say(cuda=found)


def _known_devices(said: Said) -> None:
    """The devices that kernels can be shown for anywhere."""
    cpus = [p.title for p in known_cpus.PROFILES]
    gpus = [(p.name, p.architecture) for p in gpu.PROFILES]
    said.say(
        "known   tcl show --device shows kernels for",
        f"        CPUs: {', '.join(cpus)}",
        f"        GPUs: {', '.join(f'{name} ({kind})' for name, kind in gpus)}",
        known={"cpus": cpus, "gpus": [{"name": n, "architecture": kind} for n, kind in gpus]},
    )
