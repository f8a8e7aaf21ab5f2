"""In which steps an expression of several operands is computed."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
from tcl.common.shown import shown
from tcl.einsums.notation import Indexed, Labels, Term

Path: TypeAlias = tuple[tuple[int, ...], ...]
"""Of each step the places of what it takes from a list. What it gives is put at the list's end."""


@dataclass(frozen=True, slots=True)
class ContractionStep:
    """A product that is summed over the indices that it does not keep: one statement."""

    takes: tuple[int, ...]
    """Operands by their number, then results of earlier steps: with two operands, 2 is that of the
    first step."""
    gives: Labels
    """The indices of its result, in the order of its dimensions."""


@dataclass(frozen=True, slots=True)
class _Product:
    """A step with what it takes: operands by their number, and other steps."""

    takes: tuple[int | _Product, ...]
    keeps: frozenset[str]


def steps_of(indexed: Indexed, optimize: Any) -> tuple[ContractionStep, ...]:
    """The steps, the last of which gives the output.

    ``optimize`` is that of ``numpy.einsum``: False: one step; a path that begins with
    ``"einsum_path"``: exactly these; True or the name of a way to find a path: what is estimated to
    be quickest. Raises ``ArgumentError`` for another, and for a path that does not fit.
    """
    count = len(indexed.terms)
    whole = _Product(tuple(range(count)), frozenset(indexed.output))
    given = explicit_path(optimize)
    if given is not None:
        return _in_steps(_tree(given, indexed), indexed)
    if optimize is False or optimize is None or not indexed.sizes:
        return _in_steps(whole, indexed)
    if count > 2:
        whole = _tree(_best_path(indexed, optimize), indexed)
    return _in_steps(_Estimate(indexed).improved(whole), indexed)


def explicit_path(optimize: Any) -> Path | None:
    """The path, if ``optimize`` is one; None if it is another of the values it may have. Raises
    ``ArgumentError`` if it is neither."""
    if optimize is None or isinstance(optimize, bool):
        return None
    if isinstance(optimize, str) and optimize in _FINDERS:
        return None
    if isinstance(optimize, tuple | list) and optimize:
        first, *rest = optimize
        if isinstance(first, str):
            if first == "einsum_path":
                return _checked_path(rest)
            if first in _FINDERS and len(rest) == 1 and isinstance(rest[0], int | float):
                return None
        else:
            return _checked_path(optimize)
    raise ArgumentError(
        "einsum: optimize has to be True, False, 'greedy', 'optimal', a pair such as ('greedy', "
        "1000000) that limits the elements of an intermediate result, or a path such as "
        f"['einsum_path', (0, 1), (0, 1)], not {shown(optimize)}"
    )


_FINDERS = ("greedy", "optimal")


def _checked_path(path: Sequence[Any]) -> Path:
    for step in path:
        if not isinstance(step, tuple | list) or not step or not all(map(_is_whole, step)):
            raise ArgumentError(
                f"einsum: a step of a path is a tuple of operand positions, not {shown(step)}"
            )
    return tuple(tuple(map(int, step)) for step in path)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _tree(path: Path, indexed: Indexed) -> _Product:
    """The steps of a path. Raises ``ArgumentError`` for one that does not fit."""
    pending: list[tuple[int | _Product, frozenset[str]]] = [
        (number, _labels(term)) for number, term in enumerate(indexed.terms)
    ]
    for number, step in enumerate(path):
        places = sorted(set(step), reverse=True)
        if len(places) < len(step) or places[0] >= len(pending) or places[-1] < 0:
            raise indexed.notation.refused(
                f"step {number} of the path takes {shown(step)}, which are not positions of the "
                f"{plural(len(pending), 'operand')} that are left"
            )
        taken = [pending.pop(place) for place in places]
        needed = frozenset(indexed.output).union(*(labels for _, labels in pending))
        keeps = frozenset().union(*(labels for _, labels in taken)) & needed
        pending.append((_Product(tuple(one for one, _ in reversed(taken)), keeps), keeps))
    if len(pending) > 1 or not isinstance(pending[0][0], _Product):
        raise indexed.notation.refused(
            f"the path leaves {plural(len(pending), 'operand')} instead of one result"
        )
    return pending[0][0]


def _labels(term: Iterable[str | None]) -> frozenset[str]:
    return frozenset(label for label in term if label is not None)


def _best_path(indexed: Indexed, optimize: Any) -> Path:
    """Pairs of operands in the order that takes the fewest operations: by opt_einsum where it is
    installed, else by NumPy."""
    finder, limit = (optimize, None) if isinstance(optimize, str | bool) else optimize
    terms = [sorted(_labels(term)) for term in indexed.terms]
    letters = dict(zip(indexed.sizes, _ALPHABET, strict=False))
    shapes = [tuple(indexed.sizes[label] for label in term) for term in terms]
    inputs = ",".join("".join(letters[label] for label in term) for term in terms)
    expression = f"{inputs}->{''.join(letters[label] for label in indexed.output)}"
    try:
        import opt_einsum
    except ImportError:
        if len(letters) > len(string.ascii_letters):
            return (tuple(range(len(terms))),)
        name = "greedy" if finder is True else finder
        arrays = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
        most = math.inf if limit is None else limit
        found = np.einsum_path(expression, *arrays, optimize=(name, min(most, _LARGE)))
        return tuple(found[0][1:])
    return tuple(
        opt_einsum.contract_path(
            expression,
            *shapes,
            shapes=True,
            optimize="auto" if finder is True else finder,
            memory_limit=limit,
        )[0]
    )


_LARGE = 1 << 62
_ALPHABET = string.ascii_letters + "".join(map(chr, range(192, 1000)))
"""A character for every index. NumPy knows the letters alone."""


@dataclass(frozen=True, slots=True)
class _Estimate:
    """What steps take, in the time of one multiplication and addition of a matrix product: some 40
    of these take a nanosecond. Measured on products of three and four operands."""

    indexed: Indexed

    def improved(self, product: _Product) -> _Product:
        """The same product, with steps joined where that is quicker, and with operands summed
        first over indices that nothing else has."""
        takes = tuple(
            self.improved(one) if isinstance(one, _Product) else one for one in product.takes
        )
        found = _Product(takes, product.keeps)
        for one in takes:
            if isinstance(one, _Product):
                at = found.takes.index(one)
                joined = _Product(
                    (*found.takes[:at], *one.takes, *found.takes[at + 1 :]), found.keeps
                )
                if self.seconds(joined) <= self.seconds(found):
                    found = joined
        for one in found.takes:
            rest = [other for other in found.takes if other is not one]
            used = found.keeps.union(*map(self._has, rest))
            if rest and not isinstance(one, _Product) and not self._has(one) <= used:
                first = _Product((one,), self._has(one) & used)
                summed = _Product(
                    tuple(first if other is one else other for other in found.takes), found.keeps
                )
                if self.seconds(summed) < self.seconds(found):
                    found = summed
        return found

    def seconds(self, product: _Product) -> float:
        """Of a step, with those that it takes."""
        labels = product.keeps.union(*map(self._has, product.takes))
        whole = labels in (product.keeps, *map(self._has, product.takes))
        total = _STEP + self._points(labels) * (_ONCE if whole else 1) * max(
            1, len(product.takes) - 1
        )
        for one in product.takes:
            if isinstance(one, _Product):
                total += self.seconds(one) + _STORED * self._points(one.keeps)
        return total

    def _has(self, one: int | _Product) -> frozenset[str]:
        return one.keeps if isinstance(one, _Product) else _labels(self.indexed.terms[one])

    def _points(self, labels: Iterable[str]) -> float:
        return float(math.prod(self.indexed.sizes[label] for label in labels))


_ONCE = 4.0
"""A multiplication and addition where a factor or the result has another element for each."""
_STORED = 8.0
"""Writing an element of an intermediate result, and reading it."""
_STEP = 60_000.0
"""A statement's loops, and the threads that wait for each other after it: about 2 µs."""


def _in_steps(product: _Product, indexed: Indexed) -> tuple[ContractionStep, ...]:
    """The steps of a product, each after those that it takes."""
    found: list[ContractionStep] = []

    def number_of(one: _Product, gives: Labels) -> int:
        beside = [indexed.terms[each] for each in one.takes if isinstance(each, int)]
        takes = tuple(
            number_of(each, _dimensions(each, gives, beside, indexed))
            if isinstance(each, _Product)
            else each
            for each in one.takes
        )
        found.append(ContractionStep(tuple(sorted(takes)), gives))
        return len(indexed.terms) + len(found) - 1

    number_of(product, indexed.output)
    return tuple(found)


def _dimensions(
    product: _Product, used: Labels, beside: Sequence[Term], indexed: Indexed
) -> Labels:
    """The order of an intermediate result's dimensions that suits the step that makes it and the
    one that uses it, whose own result has the indices ``used`` and other operands are ``beside``.

    What that step keeps comes as there, then what it sums as its operands have it. The last index
    is one that vectors can run along: it should be the last of those operands that have it.
    """
    made_of = [indexed.terms[each] for each in product.takes if isinstance(each, int)]

    def suits(label: str) -> int:
        making = sum(2 if term[-1] == label else -1 for term in made_of if label in term)
        using = sum(1 if term[-1] == label else -1 for term in beside if label in term)
        return making + using + (label == used[-1] if used else 0)

    together = dict.fromkeys(label for term in (used, *beside) for label in term)
    ordered = [label for label in together if label is not None and label in product.keeps]
    ordered += sorted(product.keeps.difference(ordered))  # what only other results have as well
    ordered.sort(key=lambda label: label not in used)
    if not ordered:
        return ()
    last = max(reversed(ordered), key=suits)
    return (*(label for label in ordered if label != last), last)
