"""``tcl check``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from tcl.arrays.annotations import parse_sizes, read_annotations
from tcl.cli.common import entry_option, pick, read, report, reporting, sizes_given
from tcl.grammar.check import check
from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.errors import TclError
from tcl.grammar.findings import findings, size
from tcl.grammar.ranges_text import output_lines
from tcl.grammar.source import Span


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@entry_option
@sizes_given(
    "Show the outputs' shapes and first indices for these sizes, as M=128,N=64, or for a label of "
    "the def's '# sizes' comments."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Errors instead of warnings, and for dimensions that only sizes make equal.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when all is well.")
@reporting
def command(
    files: tuple[Path, ...], entry: str | None, sizes: str | None, strict: bool, quiet: bool
) -> None:
    """Parse and check FILES; errors with their place, and exit code 1. Warnings say what is legal
    and probably not meant."""
    results = [_Check(entry, sizes, strict, quiet).accepts(file) for file in files]
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
                if self.sizes is not None:
                    sized = size(definition, parse_sizes(self.sizes, definition))
                    lines += output_lines(sized)
        except TclError as error:
            report(str(error))
            return False
        for definition in defs.values():
            for finding in findings(definition, self._sizes(definition), strict=self.strict):
                if finding.span not in self.told:
                    self.told.add(finding.span)
                    severity = "error" if self.strict else "warning"
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


def _tensor(tensor: Tensor) -> str:
    dims = f"({', '.join(map(str, tensor.dims))})" if tensor.dims else ""
    return f"{tensor.type}{dims} {tensor.name}"
