"""What is asked of us on a GPU, and whether it is met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.gpu.report import COMPILED, TORCH, Report, Result, mean_ratio
from benchmarks.gpu.rows import GPU_ROWS, GpuRow

_EITHER = (TORCH, COMPILED)
_LEAST_ROW = 0.9
"""The ratio below which no row of the suite may be."""
OVERHEAD = ("tcl", "CuPy RawKernel")


@dataclass(frozen=True, slots=True)
class Bar:
    """One demand."""

    name: str
    unit: str
    """What the numbers are."""
    least: float
    aim: float
    value: float | None
    """What counts: the worst row, or the mean. None if nothing was measured."""
    rows: dict[str, float | None]
    """Row to its own number."""
    fewer_is_better: bool = False
    complaint: str = ""
    """What else is wrong; then it is not met."""

    @property
    def met(self) -> bool | None:
        """None if it cannot be said: not all that it needs was measured, and what was is well."""
        if self.value is None:
            return None
        if self.complaint or not self._well(self.least):
            return False
        return None if None in self.rows.values() else True

    @property
    def aimed(self) -> bool:
        """Whether the aim is reached too."""
        return self.met is True and self._well(self.aim)

    def _well(self, limit: float) -> bool:
        assert self.value is not None
        return self.value <= limit if self.fewer_is_better else self.value >= limit

    @property
    def verdict(self) -> str:
        """For people."""
        if self.met is None:
            return "not measured" if self.value is None else "not all measured"
        return "met, aim too" if self.aimed else "met" if self.met else "not met"

    def as_json(self) -> dict[str, Any]:
        """With the verdict."""
        return {**asdict(self), "met": self.met, "verdict": self.verdict}


def row_number(result: Result, report: Report) -> tuple[str, float | None] | None:
    """The bar that a row has of its own, and its number; None if it has none."""
    for bar, (belongs, number) in _PER_ROW.items():
        if result.name in _names(belongs):
            return bar, number(result, report)
    return None


def bars(report: Report) -> list[Bar]:
    """All of them."""
    found = [_per_row(name, *limits, report) for name, limits in _LIMITS.items()]
    return [*found, _suite(report), _overhead(report)]


_Belongs = Callable[[GpuRow], bool]
_Number = Callable[[Result, Report], float | None]

_PRODUCT = "float32 matmul 1024 to 8192"
_HALF = "float16/bfloat16 matmul 4096"
_STREAM = "pointwise, softmax, layernorm, moments at 64 MB and more"
_GROUPED = "grouped convolution, forward"


def _bandwidth(result: Result, report: Report) -> float | None:
    copy, ours = report.ceilings.copy, result.ours
    if copy is None or ours is None:
        return None
    return (result.read + result.written) / ours[1] / copy


def _product(row: GpuRow) -> bool:
    return row.entry == "matmul" and row.type == "float32" and min(row.values.values()) >= 1024


def _half(row: GpuRow) -> bool:
    return row.entry == "matmul" and row.type in ("float16", "bfloat16")


_PER_ROW: dict[str, tuple[_Belongs, _Number]] = {
    _PRODUCT: (_product, lambda result, report: result.ratio((TORCH,))),
    _HALF: (_half, lambda result, report: result.ratio((TORCH,))),
    _STREAM: (lambda row: row.streams, _bandwidth),
    _GROUPED: (
        lambda row: row.entry == "group_convolution",
        lambda result, report: result.ratio((TORCH,)),
    ),
}
_LIMITS = {
    _PRODUCT: ("of cuBLAS, tf32 off", 0.80, 1.0),
    _HALF: ("of cuBLAS", 0.60, 0.9),
    _STREAM: ("of the copy bandwidth", 0.90, 0.95),
    _GROUPED: ("times cuDNN", 2.0, 5.0),
}


def _per_row(name: str, unit: str, least: float, aim: float, report: Report) -> Bar:
    """The worst row counts. Rows that a full run has and this one has not are unknown, but for
    those that a quick one leaves out."""
    belongs, number = _PER_ROW[name]
    found = {r.name: number(r, report) for r in report.results if r.name in _names(belongs)}
    rows = {**dict.fromkeys(_names(belongs, _quick(report))), **found}
    value = min((v for v in rows.values() if v is not None), default=None)
    return Bar(name, unit, least, aim, value, rows)


def _suite(report: Report) -> Bar:
    wanted = _names(lambda row: row.suite, _quick(report))
    results = [r for r in report.results if r.suite]
    rows = {**dict.fromkeys(wanted), **{r.name: r.ratio(_EITHER) for r in results}}
    slow = [name for name, ratio in rows.items() if ratio is not None and ratio < _LEAST_ROW]
    complaint = f"below {_LEAST_ROW}: {', '.join(slow)}" if slow else ""
    mean = mean_ratio(results, _EITHER)
    name, unit = "whole suite", "geometric mean, times the best of torch and torch.compile"
    return Bar(name, unit, 1.15, 1.5, mean, rows, complaint=complaint)


def _names(belongs: _Belongs, quick: bool = False) -> list[str]:
    """The rows that there are, with ``quick`` those of a quick run."""
    return [row.name for row in GPU_ROWS if belongs(row) and (row.quick or not quick)]


def _quick(report: Report) -> bool:
    return bool(report.settings.get("quick"))


def _overhead(report: Report) -> Bar:
    ours, peer = (_median(report.latencies.get(name, ())) for name in OVERHEAD)
    value = None if ours is None or peer is None else ours / peer
    unit = "times CuPy's RawKernel call"
    return Bar("launch overhead", unit, 1.5, 1.0, value, {}, fewer_is_better=True)


def _median(samples: Sequence[float]) -> float | None:
    return median(tuple(samples)) if samples else None
