"""Products and windows of few blocks, by default options: warps share long sums, threads have all
rows of a short window, loops count the buffers of panels that are filled ahead."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from cuda_checks import Case, Work, case_of, check_cases, why_not, work_of_text

from tcl.codegen.choose.gpu.predicted import counts_of
from tcl.codegen.counters.counts import count_program
from tcl.codegen.counters.requests import Memory
from tcl.codegen.devices.gpu import A100, H200, T4
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.gpu.steps import alone
from tcl.codegen.schedule.gpu import plan

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

LAYOUTS = {
    **{"NN": ("m, k", "k, n"), "NT": ("m, k", "n, k")},
    **{"TN": ("k, m", "k, n"), "TT": ("k, m", "n, k")},
}


def multiplied(layout: str, **sizes: int) -> Work:
    """A product of matrices, of which those with T lie transposed in memory."""
    draw = np.random.default_rng(sum(sizes.values()))
    axes = LAYOUTS[layout]
    named = ", ".join(f"float({a.upper()}) {name}" for name, a in zip("AB", axes, strict=True))
    text = f"def f({named}) -> (C) {{ C(m, n) +=! A({axes[0]}) * B({axes[1]}) }}"
    shapes = [[sizes[k] for k in a.split(", ")] for a in axes]
    return work_of_text(text, *(draw.standard_normal(s).astype(np.float32) for s in shapes))


def window(n: int, g: int, c: int, f: int, h: int, w: int, s: int) -> Work:
    """A grouped convolution with ``h`` x ``w`` results."""
    draw = np.random.default_rng(n + c + f + h)
    text = (
        "def f(float(N, G, C, H, W) I, float(G, F, C, R, S) V) -> (O) "
        "{ O(n, g, f, h, w) +=! I(n, g, c, h + r, w + s) * V(g, f, c, r, s) }"
    )
    shapes = (n, g, c, h + s - 1, w + s - 1), (g, f, c, s, s)
    return work_of_text(text, *(draw.standard_normal(x).astype(np.float32) for x in shapes))


def shared_sums(work: Work) -> int:
    """Threads of a block that share a sum, by default options."""
    made = plan(work.sized, DEFAULT, H200)
    nest = made.program.nests[0]
    threads = zip(nest.dims, made.options[nest.name].threads or (), strict=False)
    return max((n for d, n in threads if d.reduction), default=1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_warps_share_long_sums(layout: str) -> None:
    works = [
        multiplied(layout, m=33, n=70, k=515),
        multiplied(layout, m=64, n=48, k=256),
        multiplied(layout, m=96, n=33, k=300),
    ]
    assert all(shared_sums(work) > 1 for work in works[:2])
    check_cases(case_of(w, DEFAULT, d) for w, d in product(works, (H200, T4, A100))).none()


_MANY, _FEW = (4, 8, 2), (2, 2, 64)
"""Threads: whole warps share sums, or lanes and warps do."""
_HANDED_OVER = [
    *((_MANY, register, (-1, 1), 3, 1) for register in ((2, 4), (4, 8), (4, 2), (3, 3))),
    *((_MANY, (2, 1), (1, 4), buffers, 1) for buffers in (1, 2)),
    *((_FEW, register, (-1, 1), 2, 1) for register in ((1, 1), (1, 2), (2, 3))),
    *((_MANY, (2, 4), (-1, 1), buffers, 2) for buffers in (1, 2)),
]


@pytest.mark.parametrize(
    ("threads", "register", "vectorize", "buffers", "turns"), _HANDED_OVER, ids=str
)
def test_sums_are_handed_over_in_vectors_where_panels_were(
    threads: tuple[int, int, int],
    register: tuple[int, int],
    vectorize: tuple[int, int],
    buffers: int,
    turns: int,
) -> None:
    """Not where a block goes through several tiles of results: it fills the panels for the next."""
    held = [n * (vectorize[1] if k == vectorize[0] else 1) for k, n in enumerate(register)]
    own = NestOptions(
        chunk=(turns * threads[0] * held[0], threads[1] * held[1]),
        threads=threads,
        register=register,
        vectorize=vectorize,
        tile=(0, 0, 64 if threads == _FEW else 8),
        stage=(2, 2),
        buffers=buffers,
    )

    k = 129 if turns == 1 else 61

    def cases() -> Iterator[Case]:
        for type_, kind in (("float", "float32"), ("double", "float64"), ("int64", "int64")):
            text = (
                f"def f({type_}(M, K) A, {type_}(K, N) B) -> (C) "
                "{ C(m, n) +=! A(m, k) * B(k, n) }"
            )
            draw = np.random.default_rng(7)
            shapes = (37, k), (k, 45)
            work = work_of_text(text, *(draw.integers(-4, 5, s).astype(kind) for s in shapes))
            for device in (H200, T4):
                case = case_of(work, MappingOptions().with_nest(0, own), device)
                assert ("exchange = shared + 0;" in case.module.source) == (turns == 1)
                yield case

    check_cases(cases()).none()


def test_blocks_of_four_warps_share_sums_where_two_are_resident() -> None:
    """Rather than parts that a second kernel adds up. What threads have of a sum takes no other
    registers than the sum."""
    large = multiplied("NN", m=1024, n=1024, k=1024)
    made = plan(large.sized, DEFAULT, H200)
    (options,) = made.options.values()
    assert options.threads is not None and math.prod(options.threads) == 128
    assert options.threads[2] == 4
    (counts,) = count_program(made.scheduled(), H200)
    assert counts.occupancy.blocks >= 2 and not counts.instructions.get("local")
    works = [multiplied(x, m=100, n=72, k=300) for x in ("NN", "TN")]
    works.append(multiplied("NN", m=64, n=128, k=259))
    chosen = MappingOptions("mlp").with_nest(0, options)
    check_cases(case_of(w, chosen) for w in works).none()


def test_who_shares_a_sum_of_narrow_results_is_a_warp() -> None:
    """Lanes that read other points of the operands would ask for more wavefronts."""
    text = (
        "def f(float(B, I, J) S, float(B, I) M, float(B, J, E) V) -> (O) "
        "{ O(b, i, e) +=! exp(S(b, i, j) - M(b, i)) * V(b, j, e) }"
    )

    def work(b: int, i: int, j: int, e: int) -> Work:
        draw = np.random.default_rng(b + i)
        shapes = (b, i, j), (b, i), (b, j, e)
        return work_of_text(text, *(draw.random(s, np.float32) for s in shapes))

    made = plan(work(16, 1024, 1024, 64).sized, DEFAULT, H200)
    (options,) = made.options.values()
    assert options.threads is not None and options.threads[3] == 4
    (counts,) = count_program(made.scheduled(), H200)
    # Sums that are handed over in vectors take four.
    assert counts.traffic[Memory.SHARED_READ].each <= 2.1
    chosen = MappingOptions("mlp").with_nest(0, options)
    check_cases(case_of(work(*n), chosen) for n in ((2, 70, 133, 40), (1, 64, 256, 64))).none()


def test_who_shares_a_sum_reads_vectors() -> None:
    """Of the operand that lies in order along the sum, too."""
    work = multiplied("NN", m=512, n=512, k=512)
    made = plan(work.sized, DEFAULT, H200)
    (nest,) = made.program.nests
    built = alone(made.program, nest, made.options[nest.name], H200)
    assert built is not None
    counts = counts_of(built, H200)
    assert counts is not None
    reads = counts.traffic[Memory.SHARED_READ].requests
    assert reads < 0.12 * counts.instructions["fma"]


@pytest.mark.parametrize(
    "sizes", [(3, 2, 4, 5, 5, 5, 3), (2, 1, 8, 16, 6, 7, 2), (1, 2, 16, 8, 12, 12, 3)], ids=str
)
def test_threads_have_rows_of_windows(sizes: tuple[int, ...]) -> None:
    def cases() -> list[Case]:
        work = window(*sizes)
        presets = MappingOptions("mlp"), MappingOptions("conv")
        return [case_of(work, o, d) for o, d in product(presets, (H200, T4))]

    check_cases(cases()).none()


def test_loops_count_three_buffers() -> None:
    """A remainder takes more; not where a loop over a tile needs the registers."""
    counting = case_of(multiplied("NT", m=128, n=1024, k=1024), DEFAULT).module.source
    assert "reading == 2 ? 0 : reading + 1" in counting and "% 3)" not in counting
    looping = case_of(multiplied("NN", m=2048, n=2048, k=2048), DEFAULT).module.source
    assert "% 3)" in looping and "reading ==" not in looping


def test_what_no_reduction_moves_is_read_before_its_loops() -> None:
    """Barriers keep compilers from doing so; only a few threads compute the same factor."""
    text = (
        "def f(float(I, J) S, float(I) M, float(J, E) V) -> (O) "
        "{ O(i, e) +=! exp(S(i, j) - M(i)) * V(j, e) }"
    )
    draw = np.random.default_rng(5)

    def work(i: int, j: int, e: int) -> Work:
        return work_of_text(text, *(draw.random(s, np.float32) for s in ((i, j), (i,), (j, e))))

    case = case_of(work(4096, 256, 64), DEFAULT)
    source = case.module.source
    assert source.index("kept0") < source.index("for (int j_tile")
    assert "&M[" not in source[source.index("for (int j_tile") :]
    check_cases(
        case_of(work(*n), DEFAULT, d) for n in ((70, 41, 33), (64, 64, 64)) for d in (H200, T4)
    ).none()


def test_what_results_are_combined_with_is_read_before_the_loops() -> None:
    """Else threads wait for it in the end, when there is nothing else to do."""
    text = (
        "def f(float(M, K) A, float(K, N) B, float(N) C, float(M, N) D) -> (O) "
        "{ O(m, n) +=! A(m, k) * B(k, n)  O(m, n) = max(O(m, n) + C(n), 0) + D(m, n) }"
    )

    def work(m: int, n: int, k: int) -> Work:
        draw = np.random.default_rng(m)
        shapes = (m, k), (k, n), (n,), (m, n)
        return work_of_text(text, *(draw.standard_normal(s).astype(np.float32) for s in shapes))

    large = work(2048, 2048, 512)
    source = case_of(large, DEFAULT).module.source
    body = source[source.index("__global__") :]
    loop = body.index("for (int k_tile")
    assert 0 < body.index("&C[") < loop and "&C[" not in body[loop:]
    assert "&D[" in body[loop:]  # would take as many registers as the sums
    counts, *_ = count_program(plan(large.sized, DEFAULT, H200).scheduled(), H200)
    assert sum(x.waited for x in counts.loads if x.first == 4 * 2048) == 0
    sizes = (70, 41, 33), (64, 64, 64), (33, 130, 257)
    check_cases(case_of(work(*n), DEFAULT, d) for n in sizes for d in (H200, A100, T4)).none()


def test_a_call_of_constants_does_not_keep_results_from_being_used_in_registers() -> None:
    text = (
        "def f(float(M, K) A, float(N, K) B) -> (O) "
        "{ O(m, n) +=! A(m, k) * B(n, k)  O(m, n) = O(m, n) * rsqrt(float(K)) }"
    )
    draw = np.random.default_rng(1)

    def work(m: int, n: int, k: int) -> Work:
        return work_of_text(text, *(draw.random(s, np.float32) for s in ((m, k), (n, k))))

    counts, *_ = count_program(plan(work(2048, 2048, 64).sized, DEFAULT, H200).scheduled(), H200)
    assert counts.traffic[Memory.GLOBAL_WRITE].requests == 2048 * 2048 // 128
    check_cases(case_of(work(*n), DEFAULT) for n in ((70, 41, 33), (64, 128, 64))).none()


def test_lanes_where_most_is_read_beside_vectors() -> None:
    """Each lane would ask for what its neighbours ask for: a thread has results apart instead."""
    text = (
        "def f(float(H, W) I) -> (O) { O(h, w) = I(h + 1, w) + I(h, w + 1) + I(h + 1, w + 1) "
        "+ I(h + 1, w + 2) + I(h + 2, w + 1) }"
    )

    def lanes(h: int, w: int) -> tuple[int, int]:
        work = work_of_text(text, np.ones((h, w), np.float32))
        made = plan(work.sized, DEFAULT, H200)
        (own,) = made.options.values()
        check_cases([case_of(work, DEFAULT)] if h < 99 else []).none()
        return (own.vectorize or (0, 1))[1], (own.register or (0, 1))[1]

    assert lanes(4098, 4098) == (1, 4)
    assert lanes(11, 70) == (1, 1)  # few results are for as many threads
