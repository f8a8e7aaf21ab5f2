"""``tcl check``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from tcl.arrays.annotations import parse_sizes, read_annotations
from tcl.cli.common import (
    entry_option,
    json_option,
    pick,
    print_json,
    read,
    report,
    reporting,
    sizes_options,
)
from tcl.grammar.check import check
from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.errors import Diagnostic, SourceError, TclError
from tcl.grammar.findings import findings, size
from tcl.grammar.ranges_text import output_lines
from tcl.grammar.sized import SizedDef
from tcl.grammar.source import Span


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@entry_option
@sizes_options(
    help="Show the outputs' shapes and first indices for these sizes, as M=128,N=64, or for a "
    "label of the def's '# sizes' comments.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Errors instead of warnings, and for dimensions that only sizes make equal.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when all is well.")
@json_option
@reporting
def command(
    files: tuple[Path, ...],
    entry: str | None,
    sizes: str | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Parse and check FILES; errors with their place, and exit code 1. Warnings say what is legal
    and probably not meant."""
    if quiet and as_json:
        raise click.UsageError("--quiet prints nothing, and --json a document; give one of them")
    checks = [_Check(entry, sizes, strict, quiet or as_json) for _ in files]
    results = [check.accepts(file) for check, file in zip(checks, files, strict=True)]
    if as_json:
        named = zip(files, results, checks, strict=True)
        print_json([{"file": str(f), "good": good, **c.data} for f, good, c in named])
    if not all(results):
        sys.exit(1)


@dataclass(slots=True)
class _Check:
    """The check of one file."""

    entry: str | None
    sizes: str | None
    strict: bool
    quiet: bool
    told: set[Span] = field(default_factory=set)
    """Places that were told. What a def shows, it shows in the defs that call it, too."""
    data: dict[str, list[dict[str, object]]] = field(
        default_factory=lambda: {"definitions": [], "findings": []}
    )
    """For programs."""

    def accepts(self, file: Path) -> bool:
        """Print what there is to say of a file; whether all is well."""
        lines = []
        try:
            defs = check(read(file), str(file))
            if self.entry is not None:
                defs = {self.entry: pick(defs, file, self.entry)}
            for definition in defs.values():
                inputs = ", ".join(map(_tensor, definition.inputs))
                outputs = ", ".join(map(_tensor, definition.outputs))
                lines.append(f"{file}: {definition.name}({inputs}) -> ({outputs})")
                sized = None
                if self.sizes is not None:
                    sized = size(definition, parse_sizes(self.sizes, definition))
                    lines += output_lines(sized)
                self.data["definitions"].append(_data(definition, sized))
        except TclError as error:
            if isinstance(error, SourceError):
                self.data["findings"] += [_finding(each, "error") for each in error.diagnostics]
            else:
                self.data["findings"].append({"severity": "error", "message": str(error)})
            report(str(error))
            return False
        for definition in defs.values():
            for finding in findings(definition, self._sizes(definition), strict=self.strict):
                if finding.span not in self.told:
                    self.told.add(finding.span)
                    severity = "error" if self.strict else "warning"
                    self.data["findings"].append(_finding(finding, severity))
                    click.echo(finding.render(definition.source, severity), err=True)
        good = not (self.strict and self.told)
        if good and not self.quiet:
            click.echo("\n".join(lines))
        return good

    def _sizes(self, definition: CheckedDef) -> list[Mapping[str, int]]:
        """The sizes to look at: those given, else those that the def names itself."""
        if self.sizes is not None:
            return [parse_sizes(self.sizes, definition)]
        named = read_annotations(definition).sizes.values()
        return [values for values in named if set(definition.sizes) <= set(values)]


def _finding(found: Diagnostic, severity: str) -> dict[str, object]:
    where = {"line": found.span.line, "column": found.span.column}
    return {"severity": severity, "message": found.message, **where}


def _data(definition: CheckedDef, sized: SizedDef | None) -> dict[str, object]:
    """A def, with shapes and first indices where there are sizes."""
    inputs, outputs = (
        [
            {
                "name": tensor.name,
                "type": str(tensor.type),
                "dims": None if tensor.dims is None else [str(dim) for dim in tensor.dims],
                **({} if sized is None else {"shape": list(sized.shapes[tensor.name])}),
            }
            for tensor in tensors
        ]
        for tensors in (definition.inputs, definition.outputs)
    )
    if sized is not None:
        for each in outputs:
            each["origin"] = list(sized.origins[str(each["name"])])
    return {"name": definition.name, "inputs": inputs, "outputs": outputs}


def _tensor(tensor: Tensor) -> str:
    dims = f"({', '.join(map(str, tensor.dims))})" if tensor.dims else ""
    return f"{tensor.type}{dims} {tensor.name}"
