"""Findings of ``tcl check --strict``: legal, but left to chance."""

from __future__ import annotations

from tcl.grammar import checked as c
from tcl.grammar.errors import Diagnostic
from tcl.grammar.reference import Section
from tcl.grammar.traverse import reads


def strict_findings(checked: c.CheckedDef) -> list[Diagnostic]:
    """Indices that run over dimensions of different size symbols, which need to agree."""
    findings = []
    tensors = checked.tensors
    for statement in checked.statements:
        explicit = {r.index for r in statement.ranges}
        seen: dict[str, tuple[str | int, c.Read]] = {}
        for read in reads(statement):
            dims = tensors[read.tensor].dims or ()
            for subscript, size in zip(read.subscripts, dims, strict=False):
                if not isinstance(subscript, c.Index) or subscript.name in explicit:
                    continue
                first, where = seen.setdefault(subscript.name, (size, read))
                if first != size:
                    findings.append(
                        Diagnostic(
                            f"the index '{subscript.name}' runs over {size} of '{read.tensor}' and "
                            f"over {first} of '{where.tensor}'; give the dimensions one name, or "
                            f"give the index a range",
                            subscript.span,
                            ((where.span, "the other one"),),
                            Section.RANGES,
                        )
                    )
    return findings
