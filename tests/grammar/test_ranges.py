"""Range inference: what it infers, what it refuses, and that what it leaves unchecked is safe."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from bounds_oracle import OutOfBoundsError, run_everywhere
from hypothesis import HealthCheck, given, settings
from programs import unmark
from sampling import swept
from strategies import Program, programs, random_program

from tcl.common.errors import ArgumentError, TclError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import RangeInferenceError, SourceError, TclSemanticError

_HEADER = (
    "def f(float(M, N) A, float(N) b, float(P) d, int32(N) idx, uint8(N) u, float(256) table, "
    "float(Z) none) -> ({}) {{\n    {}\n}}"
)
_SHAPES = {
    "A": (5, 6), "b": (6,), "d": (4,), "idx": (6,), "u": (6,), "table": (256,), "none": (0,)
}  # fmt: skip


def _text(body: str) -> str:
    outputs, separator, rest = body.partition(" | ")
    return _HEADER.format(outputs, rest) if separator else _HEADER.format("O", body)


def _infer(body: str) -> SizedDef:
    return infer(check(_text(body))["f"], _SHAPES)


_RANGES: tuple[tuple[str, dict[str, tuple[int, int]]], ...] = (
    ("O(i) = b(i)", {"i": (0, 6)}),
    ("O(m, n) = A(m, n)", {"m": (0, 5), "n": (0, 6)}),
    ("O(n) +=! A(m, n)", {"n": (0, 6), "m": (0, 5)}),
    ("O = 1", {}),
    # offsets, strides, negative coefficients
    ("O(i) = b(i + 2)", {"i": (-2, 4)}),
    ("O(i) = b(i - 2)", {"i": (2, 8)}),
    ("O(i) = b(2 * i)", {"i": (0, 3)}),
    ("O(i) = b(2 * i + 1)", {"i": (0, 3)}),
    ("O(i) = b(i * 2 - 1)", {"i": (1, 4)}),
    ("O(i) = b(4 * i + 3)", {"i": (0, 1)}),
    ("O(i) = b(5 - i)", {"i": (0, 6)}),
    ("O(i) = b(int64(i) + 1)", {"i": (-1, 5)}),
    ("O(i) = b(uint64(i)) where i in 0:6", {"i": (0, 6)}),
    ("O(i) = b(-i)", {"i": (-5, 1)}),
    ("O(i) = b(-2 * i + 4)", {"i": (0, 3)}),
    ("O(i) = b(N - 1 - i)", {"i": (0, 6)}),
    ("O(i) = b(b.0 - i - 1)", {"i": (0, 6)}),
    ("O(i) = b(2 * (i + 1) - (i - 1) - 3)", {"i": (0, 6)}),
    # stencils and intersections
    ("O(i) = b(i) - b(i + 1)", {"i": (0, 5)}),
    ("O(i) = b(i - 1) + b(i) + b(i + 1)", {"i": (1, 5)}),
    ("O(i) = b(i + 1) + d(i - 1)", {"i": (1, 5)}),
    ("O(i) +=! b(i + k) * d(k)", {"i": (0, 3), "k": (0, 4)}),
    ("O(i) +=! b(2 * i + k) * d(k)", {"i": (0, 2), "k": (0, 4)}),
    ("O(i) +=! b(i - k) * d(k)", {"i": (3, 6), "k": (0, 4)}),
    ("O(i) +=! b(i + 2 * k) where k in 0:3", {"i": (0, 2), "k": (0, 3)}),
    ("O(i) +=! b(i + k) where k in -1:2", {"i": (1, 5), "k": (-1, 2)}),
    ("O(m) = A(m, m + 1)", {"m": (0, 5)}),
    # where, exists, declared outputs
    ("O(i) = b(i) where i in 2:4", {"i": (2, 4)}),
    ("O(i) = b(i) + d(i) where i in 0:P", {"i": (0, 4)}),
    ("O(i) = 1 where i in 3 - N:N / 2", {"i": (-3, 3)}),
    ("O(i) = 1 where i in min(N, P):max(N, P) % 4 * 4", {"i": (4, 8)}),
    # sizes by every operator; N=6, P=4
    ("O(i) = 1 where i in 0:(0 - N) % 4 + 5", {"i": (0, 3)}),
    ("O(i) = 1 where i in -7 / 2:(0 - N) / 4 + 5", {"i": (-3, 4)}),
    ("O(i) = 1 where i in 0:(N > 3 ? 3 : N)", {"i": (0, 3)}),
    ("O(i) = 1 where i in N > 9 ? 9 : 2:N > 9 ? N : 5", {"i": (2, 5)}),
    ("O(i) = 1 where i in 0:int32(N > 3) + 1", {"i": (0, 2)}),
    ("O(i) = 1 where i in 0:(N > P && !(N == 5) || P / (N - N) > 1 ? N + P : 1)", {"i": (0, 10)}),
    ("O(i) = 1 where i in 0:(N == 6 ? N : N / (P - P))", {"i": (0, 6)}),
    ("O(i) = 1 where i in 0:uint8(N * 50)", {"i": (0, 44)}),
    ("O(i) = 1 where i in int8(N + 122):uint8(N) - uint8(N + 1)", {"i": (-128, 255)}),
    ("O(i) = 1 where i in 0:N * 1000000000 / 500000000", {"i": (0, 12)}),
    ("O(i) = 1 where i in 0:int32(bool(N) == true_)".replace("true_", "(P > 3)"), {"i": (0, 1)}),
    ("O(i) = 1 where h = N / 2, i in 0:h", {"i": (0, 3)}),
    ("O(i) = 1 where i in 0:(w ? h : 9), h = b.0 / 2, w = h < 5", {"i": (0, 3)}),
    ("O(i) = b(i + (0 - P) % 3) where h = N / (P - P)", {"i": (1, 7)}),
    ("O(i) = b(i + (N > P ? 1 : 2))", {"i": (-1, 5)}),
    ("O(i) = 1 where exists d(i)", {"i": (0, 4)}),
    ("O(i) = 1 where exists d(i + 1) + b(i)", {"i": (0, 3)}),
    ("float(7) O | O(i) = 1", {"i": (0, 7)}),
    ("float(N) O | O(i) = 1", {"i": (0, 6)}),
    ("float(Q) O | O(i) = b(i + 1) where i in 0:5", {"i": (0, 5)}),
    ("float(N) O | O(i) = i >= 1 ? b(i - 1) : 0", {"i": (0, 6)}),
    # lets inside subscripts
    ("O(i) = b(x) where x = 2 * i + 1", {"i": (0, 3)}),
    ("O(i) = b(y) where x = i + 1, y = x * 2 - x", {"i": (-1, 5)}),
    # empty ranges and dimensions
    ("O(i) = b(i) where i in 2:2", {"i": (2, 2)}),
    ("O(i) = b(i + 6) - b(i)", {"i": (0, 0)}),
    ("O(i) = b(i) + d(i - 6)", {"i": (6, 6)}),
    ("O(i) +=! b(3 * i + k) where k in 0:8", {"i": (0, 0), "k": (0, 8)}),
    ("O(i) = none(i)", {"i": (0, 0)}),
    ("O(i) = none(i + 1)", {"i": (-1, -1)}),
    ("O +=! none(i)", {"i": (0, 0)}),
    ("O(i) +=! b(i + k) where k in 0:0", {"i": (0, 6), "k": (0, 0)}),
    ("O(i) +=! b(i + k) * none(k)", {"i": (0, 6), "k": (0, 0)}),
    ("O(i, j) = none(i) * A(j, 100)", {"i": (0, 0), "j": (0, 5)}),
    # conditions take the place of the bounds they state
    ("O(i) = i > 1 ? b(i) : 0", {"i": (0, 6)}),
    ("O(i) = i >= 1 ? b(i) - b(i - 1) : b(i)", {"i": (0, 6)}),
    ("O(i) = i < N ? b(i) : d(i - N)", {"i": (0, 10)}),
    ("O(i) = i >= N ? d(i - N) : b(i)", {"i": (0, 10)}),
    ("O(i) = i > 0 ? b(2 * i - 1) : d(i)", {"i": (0, 4)}),
    ("O(i) = i - 1 >= 0 && i - 1 < P ? d(i - 1) : b(i)", {"i": (0, 6)}),
    ("O(i) = (0 <= i - 1 && P > i - 1) ? d(i - 1) : b(i)", {"i": (0, 6)}),
    ("O(i) = i < 1 || i > P ? 0 : d(i - 1) where exists b(i)", {"i": (0, 6)}),
    ("O(i) = i < 1 ? 0 : i <= P ? d(i - 1) : 0 where exists b(i)", {"i": (0, 6)}),
    ("O(i) = !(i < 1) && !(i >= P + 1) ? d(i - 1) : 0 where exists b(i)", {"i": (0, 6)}),
    ("O(i) = ok ? d(i - 1) : 0 where ok = i >= 1 && i <= P, exists b(i)", {"i": (0, 6)}),
    ("O(i) = ok ? d(h) : 0 where h = i - 1, ok = h >= 0 && h < P, exists b(i)", {"i": (0, 6)}),
    ("O(i) = a && z ? d(i - 1) : 0 where a = i > 0, z = i <= P, exists b(i)", {"i": (0, 6)}),
    ("O(i) = i > 0 && d(i - 1) > 0 ? 1 : 0 where i in 0:5", {"i": (0, 5)}),
    ("O(i) = i <= 0 || d(i - 1) > 0 ? 1 : 0 where i in 0:5", {"i": (0, 5)}),
    ("O(i) = i != 0 ? d(i - 1) : 0 where i in 0:5", {"i": (0, 5)}),
    ("O(i) = i == 2 ? d(i + 1) : 0 where i in 0:50", {"i": (0, 50)}),
    ("O(i) = 2 * i - 1 >= 1 && 2 * i - 1 < P ? d(2 * i - 1) : 0 where i in 0:6", {"i": (0, 6)}),
    ("O(i) +=! h >= 0 && h < N ? b(h) : 0 where h = i + k - 1, exists b(i), k in 0:3",
     {"i": (0, 6), "k": (0, 3)}),
    ("O(i) = N > 100 ? b(50) : b(i)", {"i": (0, 6)}),
    ("O(i) = i > 100 ? d(77) : b(i)", {"i": (0, 6)}),
    # subscripts that are not affine do not bound, but are bounded
    ("O(i) = d(i / 2) where i in 0:8", {"i": (0, 8)}),
    ("O(i) = d(i / -2 + 3) where i in 0:8", {"i": (0, 8)}),
    ("O(i) = d(i % P) where exists b(i)", {"i": (0, 6)}),
    ("O(i) = d(min(max(i - 1, 0), P - 1)) where exists b(i)", {"i": (0, 6)}),
    ("O(i) = d(max(0, min(i, 3))) * b(i)", {"i": (0, 6)}),
    ("O(i) = d(i * i) where i in 0:2", {"i": (0, 2)}),
    ("O(i) = d(i < 2 ? i : 3) where i in 0:6", {"i": (0, 6)}),
    ("O(i) = d(7 / 2)* b(i)", {"i": (0, 6)}),
    ("O(i) = table(u(i))", {"i": (0, 6)}),
    ("O(i) = table(255 - u(i))", {"i": (0, 6)}),
    ("O(i) = d(u(i) % 4)", {"i": (0, 6)}),
    ("O(i) = idx(i) >= 0 && idx(i) < P ? d(idx(i)) : 0", {"i": (0, 6)}),
)  # fmt: skip


@pytest.mark.parametrize(("body", "ranges"), _RANGES)
def test_ranges(body: str, ranges: dict[str, tuple[int, int]]) -> None:
    sized = _infer(body)
    (statement,) = sized.statements
    assert dict(statement.ranges) == ranges
    assert list(statement.ranges) == list(statement.statement.all_indices)
    assert not statement.checks
    box = [ranges[i] for i in statement.statement.indices]
    assert sized.shapes["O"] == tuple(stop - first for first, stop in box)
    assert sized.origins["O"] == tuple(first for first, _ in box)


_CHECKED = (
    ("O(i) = b(idx(i))", 1),
    ("O(i) = b(idx(idx(i)))", 2),
    ("O(i) = b(idx(i) + 1) + b(i)", 1),
    ("O(i) = d(u(i))", 1),
    ("O(i) = table(u(i) + 1)", 1),  # 256 in a subscript, though uint8 arithmetic wraps
    ("O(i) = table(uint8(u(i) + 1))", 1),  # this cast changes no value
    ("O(i) = table(v) where v = u(i) + 1", 1),
    ("O(i) = table(-u(i))", 1),
    ("O(i) = table(int32(-u(i)))", 1),
    ("O(i) = table(uint32(u(i) + 1))", 0),  # an uint32 has the value that it has elsewhere
    ("O(i) = table(int32(u(i)) + 1)", 1),
    ("O(i) = d(max(u(i) % 4 - 1, 0))", 0),  # -1 in a subscript, not 255
    ("O(i) = d((uint32(i) - 1) / 2) where i in 0:6", 1),  # wraps at 0
    ("O(i) = int32(int64(i) * 2000000000) < 0 ? b(i + 5) : b(i) where i in 0:N", 1),  # wraps at 2
    ("O(i) = int32(uint32(i) * 2000000000) < 0 ? b(i + 5) : b(i) where i in 0:N", 1),
    ("O(i) = d(i / 2) where i in 0:9", 1),
    ("O(i) = d(i % 5) where i in 0:9", 1),
    ("O(i) = d(i % 4) where i in -1:9", 1),
    ("O(i) = d(i * i) where i in 0:3", 1),
    ("O(i) = d(idx(i) % 4)", 1),
    ("O(i) = idx(i) >= 0 ? d(idx(i)) : 0", 1),
    ("O(i) = idx(i) > 0 || idx(i) < P ? d(idx(i)) : 0", 1),
    ("O(i) = min(i, 3) < 3 ? d(i) : 0 where i in 0:9", 1),
    ("O(i) = b(i) > 0 && i < 9 ? d(i) : 0 where i in 0:6", 1),
    ("O(i) = ok ? d(i) : 0 where ok = i * i < 16, i in 0:6", 1),
    ("O(i) = b(i) where exists d(idx(i))", 0),
    ("O(m, n) = A(m, n) * b(m + n / 5)", 0),
    ("O(m, n) = A(m, n) * b(m + n / 2)", 1),
    ("O(m, n) = A(m, n) * b(5 - m - n / 5)", 0),
    ("O(m, n) = A(m, n) * b(4 - m - n / 5)", 1),
)


@pytest.mark.parametrize(("body", "checks"), _CHECKED)
def test_what_only_data_decides_is_checked_at_run_time(body: str, checks: int) -> None:
    (statement,) = _infer(body).statements
    assert len(statement.checks) == checks


_ERRORS = (
    ("O(i) = b(«i + 1») where i in 0:6", "read at indices 1 to 6 of dimension 0"),
    ("O(i) = b(«i») where i in -1:3", "indices -1 to 2 of dimension 0, but has indices 0 to 5"),
    ("O(m) = A(m, «6»)", "index 6 of dimension 1, but has indices 0 to 5"),
    ("O(m) = A(m, «m - 1») where m in 0:5", "indices -1 to 3"),
    ("O(i) = none(«0») + b(i)", "has no elements"),
    ("O(i) = i >= 0 && i <= N ? b(«i») : 0 where i in 0:9", "indices 0 to 6"),
    ("O(i) = i >= 1 ? b(«i - 2») : 0 where exists b(i)", "indices -1 to 3"),
    ("O(i) = i < 1 ? b(«i - 1») : 0 where i in 0:6", "index -1"),
    ("O(i) = !(i > 0) ? 0 : b(«i») where i in 0:9", "indices 1 to 8"),
    ("O(i) = b(i) where exists d(«i»), i in 0:6", "indices 0 to 5"),
    ("O(i) = b(«i - 3») + b(«i») where i in 2:7", "indices -1 to 3", "indices 2 to 6"),
    ("«O(i) +=! b(i + j)»",
        "the ranges of 'i', 'j' cannot be inferred from the accesses; add: where j in 0:..."),
    ("«O(i) +=! b(i + j + k) where k in 0:2»", "accesses; add to its where clause: j in 0:..."),
    ("«O(i) = d(i / 2)»", "the range of 'i'"),
    ("«O(i) = i >= 1 ? b(i - 1) : 0»", "the range of 'i'"),
    ("O(i) = b(i) + «d(i)»", "N = 6 of 'b' and over P = 4 of 'd'"),
    ("O(i) = «b(i + 7)» - b(i)",
        "b(i) needs it to be at least 0, and b(i + 7) at most -2, because N = 6 of 'b' is too "
        "small"),
    ("O +=! «b(i + 6)» - b(i)", "and b(i + 6) at most -1, because N = 6 of 'b' is too small"),
    ("O +=! «b(j - i)» where j in 0:9",
        "b(j - i) needs it to be at least 3 and at most 0, because N = 6 of 'b' is too small"),
    ("O(i) = «b(i)» + d(i - 7)",
        "d(i - 7) needs it to be at least 7, and b(i) at most 5, because N = 6 of 'b'"),
    ("O(i) = 1 where «i» in 3:1",
        "the range 3:1 of 'i' ends before it starts; to make it empty in this case, end it at "
        "max(3, 1)"),
    ("O(i) = 1 where h = N - P, «i» in 3:h",
        "the range 3:h of 'i' is 3:2 for N = 6, P = 4, which ends before it starts; to make it "
        "empty in this case, end it at max(3, h)"),
    ("O(i) = 1 where i in 0:«N / (b.0 - 6)»",
        "the range of 'i' divides by b.0 - 6, which is 0 for N = 6, b.0 = 6; handle this case "
        "with ? :"),
    ("O(i) = 1 where h = 1, i in 0:h + «N * 9223372036854775807»",
     "does not fit in 64 bits for N = 6"),
    ("float(«7») O | O(i) = b(i)", "declared 7 but is 6; declare it with a new name in place of 7"),
    ("float(«5») O | O(i) = b(i)", "with a new name in place of 5, or write where i in 0:5"),
    ("float(«2») O | O(i) = b(i + 1)", "in place of 2, or write where i in -1:1"),
    ("float(«M») O | O(i) = b(i)", "with a new name in place of M, or write where i in 0:M"),
    ("float(«P») O | O(i) = b(i)", "dimension 0 of 'O' is 6, but P is 4"),
    ("float(Q, «Q») O | O(m, n) = A(m, n)", "dimension 1 of 'O' is 6, but Q is 5"),
    ("O(i) = i > 0 ? m : 0 where i in 0:N, m = b(«i - 1»)",
     "guard the read inside of 'm = ...', which is computed at all points, with ? :"),
    ("O(i) = b(«i - 1») where i in 0:N, m = i > 0 ? b(i - 1) : 0", "guard the read with ? :"),
    ("O | O(i) = b(i) «O(i) = 1 where i in 0:7»", "written at 'i' from 0 to 6"),
    ("O | O(i) = b(i) «O(i) = 1 where i in -1:2»", "its first assignment gave it indices 0 to 5"),
    ("float(N) O | O(i) = b(i) «O(i) = 1 where i in 0:7»", "0 to 5; narrow 'i' with where"),
)  # fmt: skip


@pytest.mark.parametrize("case", _ERRORS, ids=lambda case: str(case[0]))
def test_errors(case: tuple[str, ...]) -> None:
    marked = unmark(_text(case[0]))
    with pytest.raises(RangeInferenceError) as caught:
        infer(check(marked.text)["f"], _SHAPES)
    found = [
        (d.span.line, d.span.column, marked.text[d.span.start : d.span.end])
        for d in caught.value.diagnostics
    ]
    assert found == list(marked.places)
    for diagnostic, fragment in zip(caught.value.diagnostics, case[1:], strict=True):
        assert fragment in diagnostic.message


@pytest.mark.parametrize(
    ("statements", "first"),
    [
        (
            "O(m, i) +=! A(m, n) * n where i in 0:1  O(m, i) +=! A(m, n) * m where i in 1:2",
            "O(m, i) = 0.0 where m in 0:M, i in 0:2",
        ),
        (
            "O(i) = int8(1) where i in 0:N  O(i) = int8(2) where i in N:N + P",
            "O(i) = int8(0) where i in 0:N + P",
        ),
        (
            "O(i) = 1 where i in 1:N  O(i) = 2 where h = N + P, i in 0:h",
            "O(i) = 0 where i in 0:10",
        ),
    ],
)
def test_what_to_assign_first_is_enough(statements: str, first: str) -> None:
    with pytest.raises(RangeInferenceError) as caught:
        infer(check(_text(statements))["f"], _SHAPES)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message.endswith(f"or assign all of it first: {first}")
    infer(check(_text(f"{first}  {statements}"))["f"], _SHAPES)


@pytest.mark.parametrize(
    ("statement", "declared"),
    [
        ("O(i) +=! b(i + j + k)", False),
        ("O(m) +=! A(m + j, n + l) + d(j + h)", False),
        ("O(i) +=! b(i + j + k) + d(k + l) where l in 0:2", False),
        ("O(i) = i < 3 ? b(2 * i) : 0", True),  # a guarded read does not give the end
        ("O(i) +=! j < 3 ? b(i + j) : 0", False),
        ("O(i, m) = i", True),
        ("O(i, m) +=! b(j) * i", True),
    ],
)
def test_what_an_error_asks_for_is_enough(statement: str, declared: bool) -> None:
    with pytest.raises(SourceError, match="cannot be inferred") as caught:
        infer(check(_text(statement))["f"], _SHAPES)
    (diagnostic,) = caught.value.diagnostics
    _, _, asked = diagnostic.message.partition("; add")
    asked, _, declaration = asked.partition(", or declare the sizes of the output: -> ")
    clause = asked.removeprefix(": ").replace(" to its where clause: ", ", ").replace("...", "1")
    assert infer(check(_text(f"{statement} {clause}".replace(" , ", ", ")))["f"], _SHAPES)
    assert bool(declaration) == declared
    if declaration:
        outputs = declaration.replace("...", "1").strip("()")
        assert infer(check(_text(f"{outputs} | {statement}"))["f"], _SHAPES)


@pytest.mark.parametrize(
    ("statements", "asked"),
    [
        (
            "float(Q) O | O(i) = 1",
            ": where i in 0:..., or declare a number or a size of an input for Q",
        ),
        (
            "float(Q) O, float(Q) R | O(i) = 1 R(i) = b(i)",  # too late
            ": where i in 0:..., or declare a number or a size of an input for Q",
        ),
        (
            "O(i) = h * d(0) where k = i, h = k + 1",
            " to its where clause: i in 0:..., or declare the sizes of the output: "
            "-> (float32(...) O)",
        ),
    ],
)
def test_an_index_without_a_range_for_any_sizes_is_refused_in_the_text(
    statements: str, asked: str
) -> None:
    with pytest.raises(TclSemanticError) as caught:
        check(_text(statements))
    (problem,) = caught.value.diagnostics
    assert problem.message == f"the range of 'i' cannot be inferred from the accesses; add{asked}"


@pytest.mark.parametrize(
    "statements",
    [
        "float(Q) R, float(Q) O | R(i) = b(i) O(i) = 1",
        "O(i) = d(h) where k = i, h = k + 1",
        "O(i) = 1 where k = i, exists d(k)",
    ],
)
def test_a_range_may_come_from_another_output_or_through_names(statements: str) -> None:
    assert infer(check(_text(statements))["f"], _SHAPES)


def test_a_caller_may_declare_the_sizes_of_an_output() -> None:
    fill = "def fill(float s) -> (P) { P(i) = s } "
    call = "def f(float(N) X, float s) -> (float(N) O) { O = fill(s) }"
    assert infer(check(fill + call)["f"], {"X": (3,), "s": ()}).shapes["O"] == (3,)
    with pytest.raises(TclSemanticError, match="the range of 'i' cannot be inferred"):
        check(fill + call.replace("fill(s)", "X"))


_TWO_SIZES = (
    ("O(i) = b(i) + «d(i)»", "over N = 6 of 'b' and over P = 4 of 'd'", "0:P"),
    ("T, O | T(i) = d(i) O(i) = T(i) + «b(i)»", "over P = 4 of 'T' and over N = 6", "0:P"),
    ("T, O | T(i) = d(i) O +=! b(i) * «T(i)»", "N = 6 of 'b' and over P = 4 of 'T'", "0:P"),
    ("T, O | T(i) = b(i - 1) O(i) = b(i) + «T(i)»", "of 'T' (indices 1 to 6)", "1:N"),
    (
        "T, O | T(i) = b(i) - b(i + 1) O(i) = T(i) + «d(i)»",
        "N - 1 = 5 of 'T' and over P = 4",
        "0:P",
    ),
    ("T, O | T(i) = b(2 * i) O(i) = T(i) + «d(i)»", "of 'T' (indices 0 to 2)", "0:3"),
    ("T, O | T(i) = 1 where i in 0:N / 2 O(i) = T(i) + «d(i)»", "N / 2 = 3 of 'T'", "0:N / 2"),
    ("O | O(i) = b(i) «O(i) += d(i)»", "over N = 6 of 'O'", "0:P"),
    ("T, O | T(i) = d(i) O(i) = 1 where exists T(i) + «b(i)»", "over N = 6 of 'b'", "0:P"),
)


@pytest.mark.parametrize(("body", "fragment", "allowed"), _TWO_SIZES)
def test_one_index_has_one_size(body: str, fragment: str, allowed: str) -> None:
    """Whole dimensions that are unlike are refused, however they came by their sizes."""
    marked = unmark(_text(body))
    with pytest.raises(RangeInferenceError) as caught:
        infer(check(marked.text)["f"], _SHAPES)
    (problem,) = caught.value.diagnostics
    assert (problem.span.line, problem.span.column) == marked.places[0][:2]
    assert fragment in problem.message
    remedy = f"where i in {allowed}"
    assert problem.message.endswith(remedy)
    clauses, exists = f"{remedy}, exists", " where exists"
    joined = body.replace(exists, f" {clauses}") if exists in body else f"{body} {remedy}"
    sizes = {"P": _SHAPES["d"][0], "N": _SHAPES["b"][0]}
    low, high = (eval(e.replace("/", "//"), sizes) for e in allowed.split(":"))
    marks = str.maketrans("", "", "«»")
    assert _infer(joined.translate(marks)).statements[-1].ranges["i"] == (low, high)


@pytest.mark.parametrize(
    ("shapes", "fragment"),
    [
        ({"A": (3, 4)}, "the shape of input 'b' is missing"),
        ({"A": (3,), "b": (4,)}, "'A' has 2 dimensions, but an array of shape (3,)"),
        ({"A": (3, 4), "b": (5,)}, "dimension 0 of 'b' is 5, but N is 4 from dimension 1 of 'A'"),
        (
            {"A": (3, 4), "b": (4,), "c": (3,)},
            "dimension 0 of 'c' is 3, but f needs 2 (line 1); pass an array that has 2, or declare "
            "a name in place of 2",
        ),
    ],
)
def test_contradicting_shapes(shapes: dict[str, tuple[int, ...]], fragment: str) -> None:
    (definition,) = check(
        "def f(float(M, N) A, float(N) b, float(2) c) -> (O) { O(i) = b(i) }"
    ).values()
    with pytest.raises(ArgumentError) as caught:
        infer(definition, shapes)
    assert fragment in str(caught.value)


def test_later_statements_run_over_what_the_first_one_wrote() -> None:
    body = "O, Q | O(i) = b(i + 1)  O(i) = O(i) * 2  Q(i) = O(i - 1)  O(i) = 0 where i in 1:3"
    sized = _infer(body)
    assert [dict(s.ranges) for s in sized.statements] == [
        {"i": (-1, 5)},
        {"i": (-1, 5)},
        {"i": (0, 6)},
        {"i": (1, 3)},
    ]
    assert (sized.origins["O"], sized.shapes["O"]) == ((-1,), (6,))
    assert (sized.origins["Q"], sized.shapes["Q"]) == ((0,), (6,))


_CALLEE = "def g(float(K) X) -> (Y) { Y(i) = X(i + 1) - X(i) where i in 0:K - 1 }\n"


def test_calls_bind_the_callees_sizes() -> None:
    text = _CALLEE + "def f(float(N) A) -> (O, P) { O = g(A) P = g(O) }"
    sized = infer(check(text)["f"], {"A": (5,)})
    assert (sized.shapes["O"], sized.shapes["P"]) == ((4,), (3,))


def test_only_tensors_that_start_at_zero_go_through_calls() -> None:
    marked = unmark(_CALLEE + "def f(float(N) A) -> (T, O) { T(i) = A(i + 1)\n O = «g(T)» }")
    with pytest.raises(RangeInferenceError, match="'T' starts at index -1") as caught:
        infer(check(marked.text)["f"], {"A": (5,)})
    assert (caught.value.line, caught.value.column) == marked.places[0][:2]


# --- generated programs, whose ranges are known ---


def _verify(program: Program) -> None:
    definition = check(program.source)[program.entry]
    sized = infer(definition, program.shapes)
    tensors = definition.tensors
    for name, output in program.outputs.items():
        assert (sized.shapes[name], sized.origins[name]) == (output.shape, output.origin)
        assert str(tensors[name].type) == output.type
    if None not in program.ranges:
        assert [dict(s.ranges) for s in sized.statements] == list(program.ranges)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_generated_programs_have_the_ranges_they_were_made_for(program: Program) -> None:
    _verify(program)


def test_generated_programs_are_varied() -> None:
    found = [random_program(seed) for seed in range(400)]
    for program in found:
        _verify(program)
        arrays = program.inputs(1)
        assert {n: a.shape for n, a in arrays.items()} == program.shapes
    for part in ("?", "where", "exists", "+=!", "*=!", "min=!", "max=!", "x0 =", "inside0 =",
                 "+= ", "%", "/", "bool", "float16", "bfloat16", "float64", "uint8", "int64",
                 "sqrt(", "== 0"):  # fmt: skip
        assert sum(part in p.source for p in found) >= 4, part
    assert len({len(p.ranges) for p in found}) >= 4
    assert sum(any(any(o.origin) for o in p.outputs.values()) for p in found) > 50
    assert sum(any(0 in s for s in p.shapes.values()) for p in found) > 10
    assert sum(all(o.exact for o in p.outputs.values()) for p in found) > 50


# --- ranges are maximal, and what is not checked stays inside ---


def test_one_index_takes_every_value_that_all_accesses_allow() -> None:
    rng = random.Random(5)
    outcomes = {"range": 0, "error": 0}
    for _ in range(400):
        accesses = [
            (rng.choice((1, 1, 2, 3, -1, -2)), rng.randint(-4, 9), rng.randint(1, 9))
            for _ in range(rng.randint(1, 3))
        ]
        params = ", ".join(f"float({e}) A{n}" for n, (_, _, e) in enumerate(accesses))
        rhs = " + ".join(f"A{n}({k} * i + {c} + 100)" for n, (k, c, _) in enumerate(accesses))
        rhs = rhs.replace("+ 100", "+ 100 - 100")  # never the plain index
        definition = check(f"def f({params}) -> (O) {{ O(i) = {rhs} }}")["f"]
        shapes = {f"A{n}": (e,) for n, (_, _, e) in enumerate(accesses)}
        legal = [i for i in range(-30, 30) if all(0 <= k * i + c < e for k, c, e in accesses)]
        try:
            first, stop = infer(definition, shapes).statements[0].ranges["i"]
        except RangeInferenceError:
            plain = {e for k, c, e in accesses if (k, c) == (1, 0)}
            assert not legal or len(plain) > 1
            outcomes["error"] += 1
            continue
        assert list(range(first, stop)) == legal
        outcomes["range"] += 1
    assert min(outcomes.values()) > 30


def test_a_second_round_uses_the_ranges_of_the_first() -> None:
    for k, d, c, extent in itertools.product((1, 2, -1), (1, -1, 2), (-2, 0, 3), (4, 9)):
        subscript = f"{k} * i + {d} * j + {c}"
        signature = f"def f(float(3) W, float({extent}) A) -> (O)"
        text = f"{signature} {{ O(i) +=! A({subscript}) * W(j) }}"
        legal = [
            i for i in range(-40, 40) if all(0 <= k * i + d * j + c < extent for j in range(3))
        ]
        definition = check(text)["f"]
        try:
            ranges = infer(definition, {"W": (3,), "A": (extent,)}).statements[0].ranges
        except RangeInferenceError:
            assert not legal
        else:
            assert list(range(*ranges["i"])) == legal


def _integer(rng: random.Random, depth: int) -> str:
    """A random subscript, with no regard to what it may touch."""
    how = rng.randint(0, 14) if depth else rng.randint(0, 7)

    def inner() -> str:
        return _integer(rng, depth - 1)

    if how <= 5:
        return rng.choice("iijk") + rng.choice(("", "", " + 1", " - 1", " - 2", " + N - 3"))
    spellings: dict[int, Callable[[], str]] = {
        6: lambda: str(rng.randint(0, 5)),
        7: lambda: rng.choice(("2 * i - 1", "3 - j", "i + k - 1", "N - 1 - i", "x", "x + 1")),
        8: lambda: f"({inner()}) / {rng.choice((2, 3, -2, 'N'))}",
        9: lambda: f"({inner()}) % {rng.choice((2, 4, -3, 'N', 'P'))}",
        10: lambda: f"min(max({inner()}, 0), {rng.choice(('P - 1', 'N - 1', inner()))})",
        11: lambda: f"{rng.choice(('idx', 'idx', 'u'))}({inner()})",
        12: lambda: f"({_condition(rng, 1)} ? {inner()} : {inner()})",
        13: lambda: f"({inner()}) {rng.choice('+-*')} ({inner()})",
        14: lambda: f"max(u({inner()}) % {rng.choice((2, 4))} - {rng.choice((0, 1, 1))}, 0)",
    }
    return spellings[how]()


def _condition(rng: random.Random, depth: int) -> str:
    how = rng.randint(0, 9) if depth else 0
    if how <= 5:
        op = rng.choice(("<", "<=", ">", ">=", "<", ">=", "==", "!="))
        other = rng.choice(("0", "0", "N", "P", "1", "P - 1", "3", "idx(0)"))
        return f"{_integer(rng, depth - 1 if depth else 0)} {op} {other}"
    a, b = _condition(rng, depth - 1), _condition(rng, depth - 1)
    return {6: f"({a}) && {b}", 7: f"({a} || {b})", 8: f"!({a})", 9: "inside"}[how]


def _value(rng: random.Random, depth: int) -> str:
    how = rng.randint(0, 9) if depth else 0
    if how <= 3:
        name = rng.choice(("b", "d", "d", "A"))
        subscripts = [_integer(rng, 2) for _ in range(2 if name == "A" else 1)]
        return f"{name}({', '.join(subscripts)})"
    if how <= 7:
        return f"({_condition(rng, 2)} ? {_value(rng, depth - 1)} : {_value(rng, depth - 1)})"
    return f"{_value(rng, depth - 1)} + {_value(rng, depth - 1)}"


def _unplanned(rng: random.Random) -> str:
    """A random statement over indices i, j, k, most of it guarded."""
    value = f"({_condition(rng, 2)} ? {_value(rng, 2)} : {_value(rng, 1)})"
    clauses = [f"x = {_integer(rng, 1).replace('x', 'i')}"]
    clauses.append(f"inside = {_condition(rng, 1).replace('inside', 'i >= 1')}")
    for name in "ijk":
        if rng.random() < 0.6:
            first = rng.randint(-1, 1)
            clauses.append(f"{name} in {first}:{first + rng.randint(0, 5)}")
        elif rng.random() < 0.8:
            clauses.append(f"exists b({name})")
    return f"O +=! {value} + 0 * (i + j + k) where {', '.join(clauses)}"


def _sweep(seeds: range) -> tuple[int, int, int]:
    """Run random statements at every point: (accepted, unchecked reads, checked reads)."""
    accepted = unchecked = checked = 0
    for seed in seeds:
        rng = random.Random(seed)
        body = _unplanned(rng)
        try:
            sized = _infer(body)
        except TclError:
            continue
        accepted += 1
        try:
            safe, doubtful = run_everywhere(sized, rng)
        except OutOfBoundsError as e:
            pytest.fail(f"seed {seed}: {e}\n{body}")
        unchecked += safe
        checked += doubtful
    return accepted, unchecked, checked


@pytest.mark.parametrize("seeds", swept([range(500)], [range(500, 40_000)]), ids=str)
def test_no_unchecked_access_leaves_its_tensor(seeds: range) -> None:
    accepted, unchecked, checked = _sweep(seeds)
    assert accepted > len(seeds) / 10
    assert unchecked > 2 * len(seeds)
    assert checked > len(seeds) / 4


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(max_statements=2))
def test_generated_programs_stay_inside(program: Program) -> None:
    sized = infer(check(program.source)[program.entry], program.shapes)
    run_everywhere(sized, random.Random(0), values=program.values)
