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
    sizes_given,
)
from tcl.common.errors import TclError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.findings import findings, size_finding
from tcl.grammar.ranges.ranges_text import output_lines
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import Diagnostic, SourceError
from tcl.grammar.syntax.source import Span
from tcl.grammar.tree.checked import CheckedDef, Tensor


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
    checks = [_Check(file, entry, sizes, strict, quiet or as_json) for file in files]
    results = [each.accepts() for each in checks]
    if as_json:
        print_json([each.data() for each in checks])
    if not all(results):
        sys.exit(1)


@dataclass(slots=True)
class _Check:
    """The check of one file."""

    file: Path
    entry: str | None
    sizes: str | None
    strict: bool
    quiet: bool
    told: dict[Span, dict[str, object]] = field(default_factory=dict)
    """Findings that were told, by their place, as JSON has them. What a def shows, it shows in the
    defs that call it, too."""
    errors: list[dict[str, object]] = field(default_factory=list)
    """What is no finding but an error, likewise."""
    defs: list[dict[str, object]] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether all is well."""
        return not self.errors and not (self.strict and self.told)

    def accepts(self) -> bool:
        """Print what there is to say of the file; whether all is well."""
        lines = []
        try:
            defs = check(read(self.file), str(self.file))
            if self.entry is not None:
                defs = {self.entry: pick(defs, self.file, self.entry)}
            for definition in defs.values():
                inputs = ", ".join(map(_tensor, definition.inputs))
                outputs = ", ".join(map(_tensor, definition.outputs))
                lines.append(f"{self.file}: {definition.name}({inputs}) -> ({outputs})")
                sized = None
                if self.sizes is not None:
                    sized = size_finding(definition, parse_sizes(self.sizes, definition))
                    lines += output_lines(sized)
                self.defs.append(_data(definition, sized))
        except TclError as error:
            report(str(error))
            each = error.diagnostics if isinstance(error, SourceError) else [None]
            self.errors += [_finding("error", found, str(error)) for found in each]
            return False
        severity = "error" if self.strict else "warning"
        for definition in defs.values():
            for finding in findings(definition, self._sizes(definition), strict=self.strict):
                if finding.span not in self.told:
                    self.told[finding.span] = _finding(severity, finding)
                    click.echo(finding.render(definition.source, severity), err=True)
        if self.good and not self.quiet:
            click.echo("\n".join(lines))
        return self.good

    def data(self) -> dict[str, object]:
        """All that was found, as JSON has it."""
        found = [*self.errors, *self.told.values()]
        return {"file": str(self.file), "ok": self.good, "defs": self.defs, "findings": found}

    def _sizes(self, definition: CheckedDef) -> list[Mapping[str, int]]:
        """The sizes to look at: those given, else those that the def names itself."""
        if self.sizes is not None:
            return [parse_sizes(self.sizes, definition)]
        named = read_annotations(definition).sizes.values()
        return [values for values in named if set(definition.sizes) <= set(values)]


def _tensor(tensor: Tensor) -> str:
    dims = f"({', '.join(map(str, tensor.dims))})" if tensor.dims else ""
    return f"{tensor.type}{dims} {tensor.name}"


def _data(definition: CheckedDef, sized: SizedDef | None) -> dict[str, object]:
    outputs = [_tensor_data(t) for t in definition.outputs]
    if sized is not None:
        for data, tensor in zip(outputs, definition.outputs, strict=True):
            data["shape"] = sized.shapes[tensor.name]
            data["first_index"] = sized.origins[tensor.name]
    return {
        "entry": definition.name,
        "sizes": definition.sizes,
        "inputs": [_tensor_data(t) for t in definition.inputs],
        "outputs": outputs,
    }


def _tensor_data(tensor: Tensor) -> dict[str, object]:
    return {"name": tensor.name, "type": str(tensor.type), "dims": tensor.dims}


def _finding(severity: str, found: Diagnostic | None, message: str = "") -> dict[str, object]:
    """What was found, and where; ``message``, where it is in no place of a text."""
    if found is not None:
        place = {"line": found.span.line, "column": found.span.column}
        return {"severity": severity, "message": found.message, **place}
    return {"severity": severity, "message": message, "line": None, "column": None}
