"""``tcl devices``."""

from __future__ import annotations

import click

from tcl.cli.common import reporting


@click.command("devices")
@reporting
def command() -> None:
    """What this machine has."""
    from tcl.codegen.cpu.threads import thread_count
    from tcl.codegen.device import host_cpu
    from tcl.known import device_identity

    device = host_cpu()
    click.echo(f"cpu     {device_identity(device)}")
    click.echo(
        f"        LLVM calls it {device.name}; L1 {device.l1_bytes >> 10} KiB, "
        f"L2 {device.l2_bytes >> 10} KiB, L3 {device.l3_bytes >> 10} KiB"
    )
    count = thread_count()
    click.echo(f"        kernels use up to {count} thread{'' if count == 1 else 's'}")
