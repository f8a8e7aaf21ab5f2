"""``tcl check``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tcl.cli.common import read, report, reporting
from tcl.grammar.check import check
from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.errors import TclError
from tcl.grammar.strict import strict_findings


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--strict", is_flag=True, help="Also reject what is legal but left to chance.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when all is well.")
@reporting
def command(files: tuple[Path, ...], strict: bool, quiet: bool) -> None:
    """Parse and check FILES; errors with their place, and exit code 1."""
    results = [_accepted(file, strict=strict, quiet=quiet) for file in files]
    if not all(results):
        sys.exit(1)


def _accepted(file: Path, *, strict: bool, quiet: bool) -> bool:
    """Check one file and print what there is to say."""
    try:
        defs = check(read(file), str(file))
    except TclError as error:
        report(str(error))
        return False
    findings = 0
    for definition in defs.values():
        for warning in definition.warnings:
            click.echo(warning.render(definition.source, "warning"), err=True)
        for finding in strict_findings(definition) if strict else ():
            click.echo(finding.render(definition.source), err=True)
            findings += 1
    if not quiet and not findings:
        for definition in defs.values():
            click.echo(f"{file}: {_signature(definition)}")
    return findings == 0


def _signature(definition: CheckedDef) -> str:
    inputs = ", ".join(map(_tensor, definition.inputs))
    outputs = ", ".join(map(_tensor, definition.outputs))
    return f"{definition.name}({inputs}) -> ({outputs})"


def _tensor(tensor: Tensor) -> str:
    dims = f"({', '.join(map(str, tensor.dims))})" if tensor.dims else ""
    return f"{tensor.type}{dims} {tensor.name}"
