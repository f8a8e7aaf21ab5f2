"""What is legal and probably not meant: the findings of a def.

They are warnings; ``strict`` makes errors of them, and finds more. Some need no sizes
(``text_findings``), others are about ranges (``size_findings``, ``trial_findings``).
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, count

from tcl.common.errors import TclError
from tcl.grammar.ranges.cut import range_warnings
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.grammar.sizes.varying import Size, Undecided, calculator, formula
from tcl.grammar.syntax.errors import Diagnostic, NoRangeError, SourceError
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Span
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import evaluated, reads, walk


def size_finding(checked: c.CheckedDef, sizes: Mapping[str, int]) -> SizedDef:
    """The definition with these values for its size symbols. Raises as ``infer`` does."""
    shapes = {
        t.name: tuple(sizes[d] if isinstance(d, str) else d for d in t.dims or ())
        for t in checked.inputs
    }
    return infer(checked, shapes)


def text_findings(checked: c.CheckedDef, *, strict: bool = False) -> list[Diagnostic]:
    """What the text alone shows. ``strict``: also what is checked when the sizes are known."""
    return [*checked.warnings, *_unused(checked), *(_two_symbols(checked) if strict else ())]


def size_findings(sized: SizedDef) -> list[Diagnostic]:
    """What the ranges for some sizes show, with these sizes."""
    sizes = {name: value for name, value in sized.sizes.items() if "#" not in name}
    seen = ", ".join(f"{name}={value}" for name, value in sizes.items())
    if len(sizes) > 2 and len(set(sizes.values())) == 1:
        seen = f"all sizes {next(iter(sizes.values()))}"
    seen = f" (seen with {seen})" if sizes else ""
    return [replace(d, message=d.message + seen) for d in range_warnings(sized)]


def findings(
    checked: c.CheckedDef, sizes: Sequence[Mapping[str, int]] = (), *, strict: bool = False
) -> list[Diagnostic]:
    """All that is found about a def, by place.

    ``sizes``: sets of values for its size symbols, each of which shows what holds for it. Raises as
    ``infer`` does if the def refuses one. With none, sizes are tried, and what holds for all that
    the def accepts is taken to hold for any.
    """
    found = text_findings(checked, strict=strict)
    if sizes:
        places: dict[Span, Diagnostic] = {}
        for values in sizes:
            for diagnostic in size_findings(size_finding(checked, values)):
                places.setdefault(diagnostic.span, diagnostic)
        found += places.values()
    else:
        found += _with_any_sizes(checked)
    return sorted(found, key=lambda d: d.span)


def refuse_impossible(checked: c.CheckedDef) -> None:
    """Raise the error that comes at all sizes that are tried, unless they fail before its place: of
    an index without a range, or one of the same words but for where a dimension ends, which then is
    not about these sizes."""
    errors: list[SourceError] = []
    # Few, and so many that quotients of quotients have elements.
    alike_sizes = (dict.fromkeys(checked.sizes, n) for n in (*range(1, 6), *_LARGE))
    for sizes in (*_trials(checked.sizes, _largest_number(checked)), *alike_sizes):
        try:
            size_finding(checked, sizes)
        except SourceError as error:
            errors.append(error)
        except TclError:
            continue
        else:
            return
    last = max((error.span for error in errors), default=None)
    found = [error for error in errors if error.span == last]
    if len({error.message for error in found}) > 1:
        found = [_without_end(error) for error in found]
    alike = len(found) >= _FITTING and len({error.message for error in found}) == 1
    if alike or (found and all(isinstance(error, NoRangeError) for error in found)):
        raise found[0]


def _without_end(error: SourceError) -> SourceError:
    """The error without the last index of a dimension that is read out of range."""
    told = (
        replace(d, message=re.sub(r"(but has indices) (-?\d+) to \d+", r"\1 from \2", d.message))
        for d in error.diagnostics
    )
    return type(error)(error.source, told)


_LARGE = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
_TRIALS = 24
_ENOUGH = 6
"""Sets of sizes that are tried, and accepted ones that are taken for all."""


def _with_any_sizes(checked: c.CheckedDef) -> list[Diagnostic]:
    """What is found for all sizes that are tried and accepted."""
    common: dict[Span, Diagnostic] | None = None
    accepted = 0
    for sizes in _trials(checked.sizes, _largest_number(checked)):
        try:
            sized = size_finding(checked, sizes)
        except TclError:
            continue
        if any(first == stop for s in sized.statements for first, stop in s.ranges.values()):
            continue  # where nothing is computed, nothing is lost
        places = {d.span: d for d in size_findings(sized)}
        common = {s: d for s, d in (common or places).items() if s in places}
        accepted += 1
        if not common or accepted == _ENOUGH:
            break
    return list((common or {}).values())


def output_dims(checked: c.CheckedDef) -> dict[str, tuple[int | str, ...]]:
    """The dimensions of each output in the sizes of the inputs, such as ``N - 2``, and ``...`` for
    those of which no formula holds for all sizes that are tried."""
    number = _largest_number(checked)
    orders = ({s: (1 + number) * (77 << k) for k, s in enumerate(o)} for o in _orders(checked))
    fitting: list[tuple[dict[str, int], Mapping[str, tuple[int, ...]]]] = []
    for sizes in (*_trials(checked.sizes, number), *orders):
        with contextlib.suppress(TclError):
            fitting.append((sizes, size_finding(checked, sizes).shapes))

    def excess(axis: tuple[str, int], dims: Collection[int]) -> list[int]:
        """By how much the least of some formulas is more than a dimension, for the sizes tried."""
        values, (name, k) = calculator(tuple(map(formula, dims))), axis
        return [min(values(sizes)) - shapes[name][k] for sizes, shapes in fitting]

    known: dict[tuple[str, int], int | str] = {}
    unknown = {(t.name, k): dict[str, int]() for t in checked.outputs for k in range(t.rank)}
    large = partial(_shapes_of_symbols, scale=1 + number)
    apart = partial(_shapes_of_symbols, apart=4)
    makes = (_shapes_of_symbols, large, apart, _shapes_by_differences)
    firsts = (next(make(checked), {}) for make in makes)
    for shapes in chain(firsts, *(make(checked) for make in makes)):
        for axis in [*unknown] if shapes else ():
            dim = shapes[axis[0]][axis[1]]
            if not any(more := excess(axis, [dim])):
                known[axis] = str(dim) if isinstance(dim, Size) else dim
                del unknown[axis]
            elif min(more) >= 0:
                unknown[axis].setdefault(str(dim), dim)
        if not unknown:
            break
    for (name, k), dims in unknown.items():
        tensor = checked.tensors[name]
        text = tensor.dims[k] if tensor.dims else _extent_in_where(checked, tensor, k)
        if text == "..." and dims and not any(excess((name, k), dims.values())):
            for one in [*dims]:
                if not any(excess((name, k), [d for t, d in dims.items() if t != one])):
                    del dims[one]
            text = reduce("min({}, {})".format, dims)
        known[name, k] = text
    return {t.name: tuple(known[t.name, k] for k in range(t.rank)) for t in checked.outputs}


def _extent_in_where(checked: c.CheckedDef, tensor: c.Tensor, axis: int) -> str:
    """A dimension as the clause that gives its index a range from 0 has it, if that is short;
    ``...`` if there is none, or not in this def but in one that it calls."""
    first = next(s for s in checked.statements if s.target == tensor.name)
    between = checked.source.text[tensor.span.start : first.span.start]
    for clause in first.ranges if between and not re.search(r"\bdef\b", between) else ():
        text = checked.source.one_line(clause.stop.span)
        from_0 = isinstance(clause.start, c.Const) and clause.start.value == 0
        plain = from_0 and not any(isinstance(n, c.LetRef) for n in walk(clause.stop))
        if clause.index == first.axes[axis] and plain and len(text) <= _SHORT:
            return text
    return "..."


def _shapes_of_symbols(
    checked: c.CheckedDef, scale: int = 1, apart: int = 1
) -> Iterator[Mapping[str, tuple[int, ...]]]:
    """For sizes of which it is known which is larger: in each order in which that says all."""
    for order in _orders(checked):
        symbols = {
            s: SizeClass(1, scale * (64 << k), scale * (96 << k)).symbol(s)
            for k, s in zip(count(0, apart), order)
        }
        with contextlib.suppress(TclError, Undecided):
            yield size_finding(checked, symbols).shapes


def _orders(checked: c.CheckedDef) -> Iterator[tuple[str, ...]]:
    """The sizes from the smallest to the largest, as they may be."""
    found = (random.Random(n).sample(checked.sizes, len(checked.sizes)) for n in range(_TRIALS))
    yield from dict.fromkeys(map(tuple, found))


def _shapes_by_differences(checked: c.CheckedDef) -> Iterator[Mapping[str, tuple[int, ...]]]:
    """As ``_shapes_of_symbols``, if each dimension is a sum of multiples of sizes: by how much it
    grows with each of them. Nothing where too few sizes fit the def to see that."""
    fitting = []
    for sizes in _trials(checked.sizes, _largest_number(checked)):
        with contextlib.suppress(TclError):
            larger = ({**sizes, s: n + 1} for s, n in sizes.items())
            shapes = [size_finding(checked, each).shapes for each in (sizes, *larger)]
            fitting.append((sizes, shapes))
        if len(fitting) == _FITTING:
            break
    else:
        return
    sizes, (base, *grown) = fitting[0]
    symbols = [SizeClass(1, 64, 96).symbol(s) for s in sizes]

    def dimension(name: str, k: int) -> int:
        n = base[name][k]
        return n + sum(
            (shapes[name][k] - n) * (symbol - size)
            for shapes, symbol, size in zip(grown, symbols, sizes.values(), strict=True)
        )

    yield {
        t.name: tuple(dimension(t.name, k) for k in range(len(base[t.name])))
        for t in checked.outputs
    }


def _trials(symbols: Sequence[str], number: int) -> Iterator[dict[str, int]]:
    """Sizes to try: all alike, which fits defs that need some to agree, then small among large.
    Every other time some are beyond the largest number of the def."""
    for trial in range(_TRIALS if symbols else 1):
        rng = random.Random(trial)
        more = number if trial % 2 else 0
        if trial % 3 == 0:
            yield dict.fromkeys(symbols, 12 + trial + more)
        else:
            large = 16 + more, 64 + more
            yield {s: rng.choice((rng.randint(2, 5), rng.randint(*large))) for s in symbols}


def _largest_number(checked: c.CheckedDef) -> int:
    """The largest whole number that a def names as an extent or in an expression."""
    extents = (d for t in checked.tensors.values() for d in t.dims or ())
    exprs: list[c.Expr] = []
    for statement in checked.statements:
        exprs += evaluated(statement)
        exprs += (e for r in statement.ranges for e in (r.start, r.stop))
    named = (n for e in exprs for n in walk(e))
    numbers = [*extents, *(n.value for n in named if isinstance(n, c.Const))]
    return max((n for n in numbers if type(n) is int and 0 <= n < _MOST), default=0)


_FITTING = 4
"""Choices of sizes that a def has to accept for a formula that only these show."""
_SHORT = 24
"""Characters of a formula in a shape, at most."""
_MOST = 100_000
"""What is no number of elements any more."""


def _unused(checked: c.CheckedDef) -> Iterator[Diagnostic]:
    """Scalar inputs and names of a where that nothing uses; a tensor may be there for its sizes."""
    read: set[str] = set()
    for statement in checked.statements:
        bounds = (e for clause in statement.ranges for e in (clause.start, clause.stop))
        nodes = [n for e in (*evaluated(statement), *statement.exists, *bounds) for n in walk(e)]
        read |= {n.tensor for n in nodes if isinstance(n, c.Read)}
        names = {n.name for n in nodes if isinstance(n, c.LetRef)}
        for let in statement.lets:
            if let.name not in names:
                message = f"nothing uses '{let.name}'; remove it, or bound indices with exists"
                yield Diagnostic(message, let.value.span, section=Section.WHERE)
    for tensor in checked.inputs:
        if not tensor.rank and tensor.name not in read:
            message = f"nothing reads the input '{tensor.name}'; use it or remove it"
            yield Diagnostic(message, tensor.span, section=Section.DEFS)


def _two_symbols(checked: c.CheckedDef) -> Iterator[Diagnostic]:
    """Indices that run over dimensions of different size symbols, which need to agree."""
    known: dict[str, tuple[str | int | None, ...]] = {
        t.name: t.dims or () for t in checked.tensors.values()
    }
    for statement in checked.statements:
        explicit = {r.index for r in statement.ranges}
        seen: dict[str, tuple[str | int, c.Read]] = {}
        for read in reads(statement):
            for subscript, size in zip(read.subscripts, known[read.tensor], strict=False):
                if not isinstance(subscript, c.Index) or subscript.name in explicit or size is None:
                    continue
                first, where = seen.setdefault(subscript.name, (size, read))
                if first != size:
                    yield Diagnostic(
                        f"the index '{subscript.name}' runs over {size} of '{read.tensor}' and "
                        f"over {first} of '{where.tensor}'; give the dimensions one name, or "
                        f"give the index a range",
                        subscript.span,
                        ((where.span, "the other one"),),
                        Section.RANGES,
                    )
        if not known[statement.target]:
            known[statement.target] = tuple(
                None if i is None else _written_size(i, statement, seen) for i in statement.axes
            )


def _written_size(
    index: str, statement: c.Statement, seen: Mapping[str, tuple[str | int, c.Read]]
) -> str | int | None:
    """The size that an output has where it is written at this index, if it is plain to see."""
    for clause in statement.ranges:
        if clause.index == index:
            plain = isinstance(clause.start, c.Const) and clause.start.value == 0
            return clause.stop.name if plain and isinstance(clause.stop, c.Size) else None
    for read in reads(statement):
        for subscript in read.subscripts:
            below = (n for n in walk(subscript) if isinstance(n, c.Index | c.LetRef))
            if not isinstance(subscript, c.Index) and any(
                isinstance(n, c.LetRef) or n.name == index for n in below
            ):
                return None
    return seen[index][0] if index in seen else None
