"""How nests are divided among threads, and what is copied for whom, where nobody said."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from nests import MATMUL, TRANSPOSED, WIDE, sized

from tcl.codegen.choose.cpu.access_costs import LARGEST, PanelCost, access_of
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu, schedule

Shapes = tuple[tuple[int, int], tuple[int, int]]


def chosen(threads: int, text: str, shapes: Shapes) -> NestOptions:
    """The choices for so many threads, which have to be possible."""
    device, each = replace(WIDE, threads=threads), sized(text, *shapes)
    schedule(each, MappingOptions("mlp"), device)
    return plan_cpu(lower(each), MappingOptions("mlp"), device).options["s0"]


@pytest.mark.parametrize("size", [512, 1024, 2048])
def test_threads_copy_columns_of_their_own(size: int) -> None:
    found = chosen(2, MATMUL, ((size, size), (size, size)))
    rows, columns, _ = found.chunk or (0, 0, 0)
    assert rows == 0 and columns <= size // 4, "a thread that is held up has less to do"
    # Inside of the loop over tiles; before it where the second cache does not hold a chunk's.
    assert found.stage is not None and found.stage[1] == (2 if size < 2048 else 1)


@pytest.mark.parametrize("threads", [2, 4, 8, 16, 24])
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (MATMUL, ((512, 512), (512, 512))),
        (MATMUL, ((128, 2000), (2000, 128))),
        (MATMUL, ((8192, 512), (512, 64))),
        (TRANSPOSED, ((128, 1024), (1000, 1024))),
    ],
)
def test_all_threads_are_busy(threads: int, text: str, shapes: Shapes) -> None:
    chunk = chosen(threads, text, shapes).chunk or (0, 0, 0)
    extents = (shapes[0][0], shapes[1][1] if text is MATMUL else shapes[1][0])
    sizes = [size or extent for size, extent in zip(chunk, extents, strict=False)]
    count = math.prod(-(-e // s) for e, s in zip(extents, sizes, strict=True))
    longest = -(-count // threads) * math.prod(sizes) / math.prod(extents)
    assert longest * threads < 1.2


def test_short_pieces_of_rows_are_not_cut_again() -> None:
    columns = "float(M, N) A) -> (S) { S(n) +=! A(m, n) }"
    for size, pieces in ((4096, 2), (16384, 4)):
        device, each = replace(WIDE, threads=2), sized(columns, (2048, size))
        chunk = plan_cpu(lower(each), MappingOptions("mlp"), device).options["s0"].chunk
        assert chunk == (size // pieces, 0)


def test_rows_of_sums_are_shared_in_several_chunks_per_thread() -> None:
    rows = "float(M, N) A) -> (S) { S(m) +=! A(m, n) }"
    device, each = replace(WIDE, threads=2), sized(rows, (4096, 4096))
    assert plan_cpu(lower(each), MappingOptions("mlp"), device).options["s0"].chunk == (512, 0)


@pytest.mark.parametrize("columns", [500, 512])
def test_rows_of_short_sums_are_not_cut(columns: int) -> None:
    """Two threads would write parts of one line, 700 times, or read ahead into each other's: of 512
    columns that takes 123 instead of 15 µs on Zen 4."""
    each = sized(TRANSPOSED, (700, 3), (columns, 3))
    chunk = plan_cpu(lower(each), MappingOptions("mlp"), replace(WIDE, threads=2)).options["s0"]
    assert chunk.chunk is not None and [k for k, n in enumerate(chunk.chunk) if n] == [0]


SUM = "float(N, N) X) -> (Y, S) { Y(i, j) = exp(X(i, j)) S +=! Y(i, j) }"


def test_sums_of_what_all_threads_made_are_shared() -> None:
    """They are awake, and each has its part in its caches."""
    alone = "float(N, N) X) -> (S) { S +=! X(i, j) }"
    for text, shared in ((SUM, True), (alone, False)):
        each, device = sized(text, (350, 350)), replace(WIDE, threads=2)
        options = plan_cpu(lower(each), MappingOptions("mlp"), device).options
        assert any(name.endswith(".whole") for name in options) is shared


def test_chunks_are_no_longer_than_options_take() -> None:
    text = "int8(M, N) A) -> (O) { O(m, n) = A(m, n) }"
    each, device = sized(text, (100_000, 100_000)), replace(WIDE, threads=2)
    (kernel,) = schedule(each, MappingOptions("mlp"), device).kernels
    ((chunk,),) = kernel.grid
    assert [d.extent for d in kernel.spaces[0].dims] == [1, 10**10]
    assert 1 << 20 < chunk.step < 1 << 31


def test_one_column_of_a_chunk_is_copied_too() -> None:
    found = chosen(16, MATMUL, ((2048, 2048), (2048, 2048)))
    assert found.chunk is not None and found.chunk[1] == 64
    assert found.stage is not None and found.stage[1] == 1, "its rows are far apart"
    dense = chosen(2, MATMUL, ((8192, 512), (512, 64)))
    assert dense.stage == (-1, 1), "nothing lies between its rows, but vectors lie in two lines"
    near = chosen(2, MATMUL, ((8192, 128), (128, 64)))
    assert not near.stage, "the first cache holds it"


def cost(rows: int, columns: int, threads: int = 2) -> PanelCost:
    """Of the second operand of a product with 64 rows."""
    program = lower(sized(MATMUL, (64, rows), (rows, columns)))
    (nest,) = program.nests
    assert isinstance(nest, ir.Nest)
    access = access_of(program, nest, operands(nest.point)[1])
    return PanelCost(access, "s0.n", replace(WIDE, threads=threads))


def test_what_is_small_and_shared_by_many_is_copied_once() -> None:
    small, large = cost(256, 256), cost(2048, 2048)
    assert small.cycles_inside(2) < small.before(2), "threads would wait for each other"
    assert small.before(64) < small.cycles_inside(64)
    assert large.cycles_inside(2) < large.before(2)
    assert large.more(1) == 0 and large.more(2) == large.cycles_inside(1)
    assert small.more(64) == small.before(64) - small.cycles_inside(1)
    assert cost(256, 256, threads=1).before(2) < small.before(2), "nobody to wait for"


def test_what_is_too_large_is_not_copied_at_once() -> None:
    assert cost(1 << 12, 1 << 12).before(100) < math.inf
    huge = cost(1 << 13, 1 << 12)
    assert huge.access.elements > LARGEST
    assert huge.before(100) == math.inf


def test_what_no_point_takes_part_in_costs_nothing() -> None:
    """A condition that never holds for these sizes leaves no cycles to compare copies with."""
    text = """def f(float(N, M) A, float(V, D) T, int32(M) I) -> (O) {
        O(n, d) +=! (m >= n + 3) ? A(n, m) * T(I(m), d) : 0
    }"""
    device, each = replace(WIDE, threads=2), sized(text, (200, 3), (1, 256), (3,))
    assert schedule(each, MappingOptions("mlp"), device).kernels
