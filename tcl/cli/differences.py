"""Whether results are those of the reference, as ``run`` and ``tune`` ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcl.arrays.arguments import Array
from tcl.cli.kernels import Work
from tcl.codegen.common.rounding import UNKNOWN, Rounding
from tcl.codegen.reference import roundings
from tcl.tuner.measure.correctness import accumulation_depths, mismatch


def differences(
    work: Work, actual: Mapping[str, Array], expected: Mapping[str, Array], differing: int = 1
) -> list[str]:
    """Sentences about outputs that are not what is expected, though everything is known of
    rounding. ``differing``: 2 if both are off, 1 if ``expected`` is what the reference computes."""
    depths, found = accumulation_depths(work.sized), list[str]()
    for known in _known(work):
        compared = (
            mismatch(name, values, expected[name], depths[name], known[name].times(differing))
            for name, values in actual.items()
        )
        found = [sentence for sentence in compared if sentence is not None]
        if not found:
            break
    return found


def _known(work: Work) -> Iterator[Mapping[str, Rounding]]:
    """Of each output how far rounding takes it: what is known soonest first."""
    names = [tensor.name for tensor in work.checked.outputs]
    yield dict.fromkeys(names, UNKNOWN)
    for briefly in (True, False):
        found = roundings(work.sized, work.inputs, work.outputs(), briefly=briefly)
        yield dict(zip(names, found, strict=True))
