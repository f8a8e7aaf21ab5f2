"""``tcl check``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import click

from tcl.arrays.annotations import (
    comments_apart,
    named_sizes,
    parse_sizes,
    read_annotations,
)
from tcl.cli.common import (
    concerning,
    entry_option,
    json_option,
    pick,
    print_json,
    read,
    report,
    sizes_given,
    what_is_left_out,
)
from tcl.cli.meant import sizes_apart
from tcl.common.errors import TclError
from tcl.grammar.check.one_def import check_for
from tcl.grammar.ranges.findings import findings, output_dims, refuse_impossible, size_finding
from tcl.grammar.ranges.ranges_text import output_lines
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import Diagnostic, SourceError, TclSemanticError
from tcl.grammar.syntax.source import Span
from tcl.grammar.tree.checked import CheckedDef, Tensor


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@entry_option
@sizes_given(
    "Show the shapes and first indices of the outputs for these sizes, such as M=128,N=64, or "
    "for a label of the def's '# sizes' comments."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Turn warnings into errors, and refuse dimensions that are equal only for some sizes.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing if there is no problem.")
@json_option
def command(
    files: tuple[Path, ...],
    entry: str | None,
    sizes: str | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Parse and check FILES.

    Errors show their place; the exit code is then 1. A warning shows code that is legal but
    probably a mistake.
    """
    if quiet and as_json:
        raise click.UsageError("--quiet prints nothing, and --json a document; give one of them")
    if apart := sizes_apart(str(file) for file in files if not file.exists()):
        raise click.UsageError(apart)
    found = [_checked(file, entry, sizes, strict, silent=quiet or as_json) for file in files]
    if as_json:
        print_json(found)
    if not all(each["ok"] for each in found):
        sys.exit(1)


def _checked(
    file: Path, entry: str | None, sizes: str | None, strict: bool, *, silent: bool
) -> dict[str, object]:
    """Print what there is to say of a file; the same as JSON has it."""
    lines: list[str] = []
    listed: list[dict[str, object]] = []
    told: dict[
        Span, dict[str, object]
    ] = {}  # what a def shows, it shows in those that call it, too
    apart: list[dict[str, object]] = []
    wrong: list[dict[str, object]] = []
    try:
        defs, left_out = _sound(file, entry, wrong)
        if left_out:
            message = what_is_left_out(file, left_out)
            report(message, "warning")
            apart.append(_finding("warning", None, message))
        concerned = concerning(defs, entry)
        if entry is not None:
            defs = {entry: pick(defs, file, entry)}
    except TclError as error:
        _refused(error, wrong)
        return {"file": str(file), "ok": False, "defs": listed, "findings": wrong}
    said = [read_annotations(each) for each in defs.values()]
    faults = (fault for each in said for fault in (*each.faults, *each.incomplete.values()))
    apart_from = (fault for each in defs.values() for fault in comments_apart(each))
    for message in (*faults, *apart_from):
        report(message, "warning")
        apart.append(_finding("warning", None, message))
    called = {d.name for name in defs for d in concerning(defs, name) if d.name != name}
    for name, definition in list(defs.items()):
        try:
            sized = _sized(definition, sizes, called=name in called)
        except TclError as error:
            _refused(error, wrong)
            concerned.remove(defs.pop(name))
            continue
        dims = output_dims(definition)
        lines.append(f"{file}: {_header(definition, dims)}")
        lines += _shapes(definition, sized, lines[-1])
        listed.append(_data(definition, sized, dims))
    severity = "error" if strict else "warning"
    for definition in concerned:
        found: Iterable[Diagnostic] = definition.warnings  # of a def that the one asked for calls
        if definition.name in defs:
            looked_at = named_sizes(definition)
            if sizes is not None:
                looked_at = [parse_sizes(sizes, definition)]
            found = findings(definition, looked_at, strict=strict)
        for finding in found:
            if finding.span not in told:
                told[finding.span] = _finding(severity, finding)
                click.echo(finding.render(definition.source, severity), err=True)
    good = not (wrong or (strict and told))
    if good and not silent:
        click.echo("\n".join(lines))
    all_found = [*wrong, *apart, *told.values()]
    return {"file": str(file), "ok": good, "defs": listed, "findings": all_found}


def _sound(
    file: Path, entry: str | None, wrong: list[dict[str, object]]
) -> tuple[dict[str, CheckedDef], dict[str, int]]:
    """The defs to look at: without ``entry``, all that have no errors, which are told here; and
    those that are left out because ``entry`` does without them."""
    text = read(file)
    try:
        return check_for(text, str(file), entry)[1:]
    except TclSemanticError as error:
        if entry is not None:
            raise
        _refused(error, wrong)
    try:
        return check_for(text, str(file), "")[1], {}
    except SourceError:  # it has no others
        return {}, {}


def _sized(definition: CheckedDef, sizes: str | None, *, called: bool) -> SizedDef | None:
    """A def with these sizes, if some are given. Raises where it cannot have them; nor those of its
    comments, which are meant to be possible; nor any, without these, unless it is called by a def,
    which may declare the sizes of its outputs."""
    if sizes is not None:
        return size_finding(definition, parse_sizes(sizes, definition))
    named = named_sizes(definition)
    for values in named:
        size_finding(definition, values)
    if not named and not called:
        refuse_impossible(definition)
    return None


def _refused(error: TclError, wrong: list[dict[str, object]]) -> None:
    """Print an error, once, and note it."""
    each = error.diagnostics if isinstance(error, SourceError) else [None]
    found = [_finding("error", place, str(error)) for place in each]
    if any(f not in wrong for f in found):
        report(str(error))
        wrong += found


_Dims: TypeAlias = Mapping[str, tuple[int | str, ...]]


def _header(definition: CheckedDef, inferred: _Dims) -> str:
    """A def without its statements."""
    inputs, outputs = (
        ", ".join(_tensor(t, inferred) for t in each)
        for each in (definition.inputs, definition.outputs)
    )
    return f"{definition.name}({inputs}) -> ({outputs})"


def _tensor(tensor: Tensor, inferred: _Dims) -> str:
    """As a header declares it, but with ``...`` for each dimension of which no formula is known."""
    dims = inferred.get(tensor.name, tensor.dims) or ()
    shape = f"({', '.join(map(str, dims))})" if tensor.rank else ""
    return f"{tensor.type}{shape} {tensor.name}"


def _shapes(definition: CheckedDef, sized: SizedDef | None, header: str) -> list[str]:
    """The outputs for the sizes that are given; else, if the header does not say all dimensions,
    for those of a comment."""
    if sized is not None:
        return output_lines(sized)
    if "..." not in header:
        return []
    if named := named_sizes(definition):
        values = ", ".join(f"{size}={value}" for size, value in named[0].items())
        return [f"  ...: for {values}", *output_lines(size_finding(definition, named[0]))]
    given = f"--entry {definition.name} --sizes {','.join(f'{s}=...' for s in definition.sizes)}"
    return [f"  ...: no formula was found that holds for all sizes; {given} shows it for some"]


def _data(definition: CheckedDef, sized: SizedDef | None, inferred: _Dims) -> dict[str, object]:
    outputs = [_tensor_data(t, inferred) for t in definition.outputs]
    if sized is not None:
        for data, tensor in zip(outputs, definition.outputs, strict=True):
            data["shape"] = sized.shapes[tensor.name]
            data["first_index"] = sized.origins[tensor.name]
    return {
        "entry": definition.name,
        "sizes": definition.sizes,
        "inputs": [_tensor_data(t, inferred) for t in definition.inputs],
        "outputs": outputs,
    }


def _tensor_data(tensor: Tensor, inferred: _Dims) -> dict[str, object]:
    dims = inferred.get(tensor.name, tensor.dims)
    return {"name": tensor.name, "type": str(tensor.type), "dims": dims}


def _finding(severity: str, found: Diagnostic | None, message: str = "") -> dict[str, object]:
    """What was found, and where; ``message``, where it is in no place of a text."""
    if found is not None:
        place = {"line": found.span.line, "column": found.span.column}
        return {"severity": severity, "message": found.message, **place}
    return {"severity": severity, "message": message, "line": None, "column": None}
