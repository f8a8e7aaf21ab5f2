"""What ``tune`` compares its winner with: the same def by NumPy and, where it is, by torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from tcl.arrays.arguments import Array
from tcl.bench.contender import PEERS, Spec
from tcl.bench.roofline import Roofline, quantity
from tcl.bench.rows import ROWS
from tcl.bench.task import PeerForm, Task
from tcl.cli.common import numpy_threads
from tcl.cli.differences import differences
from tcl.cli.kernels import Work
from tcl.codegen.reference.whole_array import NoFormulationError, whole_array
from tcl.common.number_format import ratio_text
from tcl.grammar.tree.canonical import canonical_hash
from tcl.tuner.measure.timing import measure

_NUMPY, _TORCH = (next(spec for spec in PEERS if spec.name == n) for n in ("NumPy", "torch"))


def peers(
    work: Work, expected: Mapping[str, Array], threads: int, say: Callable[[str], object]
) -> dict[str, Callable[[], object]]:
    """Ways to compute a def, by name, each into arrays that are there before; threads are told.

    A def of the benchmark suite has the suite's formulations, of which the fastest counts; another
    one has NumPy's functions on whole arrays. One whose results are not those ``expected`` (output
    → what a call on zeros makes) is left out, with a sentence.
    """
    found: dict[str, Callable[[], object]] = {}
    for spec in (_NUMPY, _TORCH):
        if spec.needs and find_spec(spec.needs) is None:
            continue
        right: list[Callable[[], object]] = []
        problems: list[str] = []
        try:
            results, makers = _forms(spec, work, threads)
        except Exception as error:  # torch that cannot be imported
            results, makers = (), []
            problems.append(_told(error))
        for make in makers:
            try:
                form = make()
                wrong = _wrong(work, expected, results, form.results())
            except Exception as error:  # of somebody else's library
                wrong = _told(error)
            if wrong is None:
                right.append(form.run)
            else:
                problems.append(wrong)
        if right:
            times = [measure(run).median if len(right) > 1 else 0.0 for run in right]
            found[f"{spec.name} ({numpy_threads()})"] = right[times.index(min(times))]
        elif problems:
            say(f"no comparison with {spec.name}: {problems[0]}")
    return found


def _told(error: Exception) -> str:
    name = "" if isinstance(error, NoFormulationError) else f"{type(error).__name__}: "
    return f"{name}{str(error)[:200]}"


def _forms(
    spec: Spec, work: Work, threads: int
) -> tuple[Sequence[str], list[Callable[[], PeerForm]]]:
    """The outputs that a peer computes, and makers of its ways to do it; none if it has none."""
    checked, same = work.checked, canonical_hash(work.checked)
    names = tuple(tensor.name for tensor in checked.inputs)
    rows = (row for row in ROWS if row.entry == checked.name)
    row = next((row for row in rows if canonical_hash(row.checked) == same), None)
    if row is not None:
        task = Task(work.text, row.entry, dict(work.sizes), names, row.results)
        inputs = dict(zip(names, work.inputs, strict=True))
        makers = [m for _, m in import_module(spec.module).make(threads).forms(task, inputs)]
        if makers:
            return row.results, makers
    if spec is _NUMPY:
        return [t.name for t in checked.outputs], [partial(_by_reference, work)]
    return (), []


def _by_reference(work: Work) -> PeerForm:
    compute = whole_array(work.sized)

    def results() -> Sequence[Array]:
        outputs = work.outputs()
        compute(work.inputs, outputs)
        return outputs

    return PeerForm(partial(compute, work.inputs, work.outputs()), results, 1)


def _wrong(
    work: Work, expected: Mapping[str, Array], names: Sequence[str], results: Sequence[Array]
) -> str | None:
    found = dict(zip(names, results, strict=True))
    for name, actual in found.items():
        type_ = expected[name].dtype
        if actual.dtype != type_ and type_.kind in "iu":
            found[name] = actual.astype(type_)  # peers count in other integers
    return next(iter(differences(work, found, expected, differing=2)), None)


def won(yardstick: Roofline, seconds: float, beside: Mapping[str, float]) -> str | None:
    """What a winner of so many seconds has won over its peers, and why; None beside no peer.

    ``beside``: name → how many times as long as the winner it takes. The why is in terms of what
    limits the def: bytes that have to be moved, in passes over them at the speed of memory where
    that is known; else what is done per second.
    """
    ratios = {
        spec.name: ratio
        for spec in (_NUMPY, _TORCH)
        for name, ratio in beside.items()
        if name.startswith(f"{spec.name} (")
    }
    if not ratios:
        return None
    gain = ", ".join(f"{ratio_text(ratio)} as fast as {name}" for name, ratio in ratios.items())
    ratios["the winner"] = 1.0
    share, by_memory = yardstick.share(seconds), yardstick.limited_by_memory
    if share is not None and by_memory:
        passes = [f"{name} {ratio / share:.1f}" for name, ratio in ratios.items()]
        moved = quantity(yardstick.cost.bytes_moved, "B")
        why = f"counted in passes over the {moved} that must be moved: {', '.join(passes)}"
    else:
        rates = [f"{name} {yardstick.rate(ratio * seconds)}" for name, ratio in ratios.items()]
        why = (
            f"of the necessary {'memory traffic' if by_memory else 'operations'}: "
            f"{', '.join(rates)}"
        )
    return f"{gain}; {why}"
