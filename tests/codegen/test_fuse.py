"""Nests that share chunks: when they may, and that results stay what they were."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import check_cpu, expected_of
from compiled_kernels import compile_cpu
from nests import sized as sized_of

import examples
from examples import definitions
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.choose.cpu.chunk_groups import groups, possible_groups
from tcl.codegen.choose.cpu.register_tiles import fastest
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.executors.call_kernels import size
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.space.cpu.mapping import MappingSpace

# Caches so small that it pays to join all nests that can be.
SMALL = replace(host_cpu(), l1_bytes=64, l2_bytes=4096)
(ZEN4,) = (p for p in known_cpus.PROFILES if p.title == "Zen 4")
DEFS = {
    "softmax": 4, "softmax_twice": 3, "layernorm": 5, "moments": 4, "attention_scores": 6,
    "group_normalization_single": 5, "mlp1": 3, "mlp3": 6, "convolution": 2,
    "group_convolution": 2,
}  # fmt: skip
"""Def → how many of its nests can share chunks."""


def example(name: str) -> tuple[SizedDef, list[Any]]:
    checked = next(definitions(f)[n] for f, n in examples.DEFS if n == name)
    arrays = random_inputs(checked, parse_sizes("test", checked), 0)
    return size(checked, arrays), list(arrays)


@pytest.mark.parametrize("name", DEFS)
def test_joined_nests_compute_what_they_did_alone(name: str) -> None:
    sized, arrays = example(name)
    program = lower(sized)
    small = replace(ZEN4, l1_bytes=SMALL.l1_bytes, l2_bytes=SMALL.l2_bytes)
    assert max(len(g.nests) for g in groups(program, small)) == DEFS[name]
    expected = expected_of(sized, arrays)
    rng = random.Random(name)
    for threads in (1, 3):
        device = replace(SMALL, threads=threads)
        space = MappingSpace(program, device)
        joined = {k.name: 1 for k in space.space.knobs if k.name.endswith(".fuse")}
        config = space.space.fix(joined).sample(rng)
        assert config is not None
        drawn = space.to_options(config)
        backwards = drawn.nest(0).chunk_order(*reversed(range(len(program.nests[0].dims))))
        for options in (drawn, backwards, MappingOptions("mlp")):
            kernel = check_cpu(sized, arrays, options, device, expected)
            if options.preset != "mlp":
                shared = [len(k.points) for k in kernel.program.kernels if k.grid]
                assert sum(shared) - len(shared) >= DEFS[name] - 1


def test_nests_are_left_alone_where_the_least_chunk_is_more_than_a_cache_holds() -> None:
    """All of ``A`` would be read for every ``r``, and be gone when it is read again."""
    product = """def f(float(J, R) B, float(K, R) C, float(I, J, K) A) -> (P, O) {
        P(j, k, r) = B(j, r) * C(k, r)
        O(i, r) +=! A(i, j, k) * P(j, k, r)
    }"""
    for extent, together in ((128, 1), (16, 2)):
        inputs = {"B": (extent, 16), "C": (extent, 16), "A": (extent,) * 3}
        device = replace(host_cpu(), l1_bytes=1024, l2_bytes=512 << 10)
        found = groups(lower(sized_of(product, **inputs)), device)
        assert max(len(group.nests) for group in found) == together


def test_chunks_have_the_rows_of_a_register_tile() -> None:
    """As far as a part of the cache holds what so many points touch."""
    text = """def f(uint8(B, L) S, float(M, K, 4) P) -> (Score, Most) {
        Score(b, m, l) +=! P(m, k, S(b, l + k))
        Most(b, m) max=! Score(b, m, l)
    }"""
    device = known_cpus.find("zen 4")
    assert device is not None
    device = replace(device, threads=1)
    chunks = []
    for length in (1501, 15001):
        program = lower(sized_of(text, S=(6, length), P=(10, 13, 4)))
        (group,) = groups(program, device)
        chunks.append(group.chunk(program, device)[1])
        assert fastest(program, program.nests[0], device).unit("s0.m") == 10
    assert chunks == [10, 2]


ROWS = "def f(float(M, N) A) -> (S, O) { S(m) +=! A(m, n)\n O(m, n) = A(m, n) / S(%s) }"


@pytest.mark.parametrize(
    ("text", "chunks", "reason"),
    [
        (ROWS % "m", [(2,), (2,)], None),
        (ROWS % "m", [(2,), (3,)], "its chunks differ from those of s0"),
        (ROWS % "m", [(2,), ()], "it has no chunks"),
        (ROWS % "m", [(2,), (0, 2)], "accesses S in other chunks of s0"),
        (ROWS % "n", [(2,), (2,)], "accesses S in other chunks of s0"),
        (
            "def f(float(M) A) -> (S, O) { S(m) = A(m)\n O(m) = S(m + 1) where m in 0:4 }",
            [(2,), (2,)],
            "differ from those",
        ),
        (
            "def f(float(M, M) A) -> (S, O) { S(i, j) = A(i, j)\n O(i, j) = S(j, i) }",
            [(2,), (2,)],
            "accesses S in other chunks",
        ),
        (
            "def f(float(M) A) -> (S, O) { S(m) = A(m)\n O(m) = S(0) + A(m) }",
            [(2,), (2,)],
            "accesses S in other chunks",
        ),
        (
            # The first nest reads what the second one overwrites, elsewhere.
            "def f(float(M) A) -> (S, O) { S(m) = A(m)\n O(m) = S(4 - m)\n S(m) = A(m) + 1 }",
            [(2,), (2,), (2,)],
            "accesses S in other chunks",
        ),
    ],
)
def test_nests_are_joined_only_where_chunks_need_nothing_of_others(
    text: str, chunks: list[tuple[int, ...]], reason: str | None
) -> None:
    sized = sized_of(text, A=(5, 5) if "A(i" in text or "A(m, n" in text else (5,))
    options = MappingOptions("naive")
    for position, chunk in enumerate(chunks):
        options = options.nest(position).chunk(*chunk)
        if position:
            options = options.nest(position).fuse()
    if reason is None:
        assert len(schedule(sized, options, host_cpu()).kernels) == 1
        return
    with pytest.raises(OptionsError, match=reason):
        schedule(sized, options, host_cpu())


def chunks_of(options: MappingOptions) -> list[list[str]]:
    text = "def f(float(M, N) A) -> (S, O) { S(m, n) = A(m, n)\n O(m, n) = S(m, n) + 1.0 }"
    kernels = schedule(sized_of(text, A=(6, 8)), options, host_cpu()).kernels
    return [[folds[0].dim[-1] for folds in kernel.grid] for kernel in kernels]


def test_chunks_are_ordered_for_all_nests_that_share_them() -> None:
    apart = MappingOptions("naive").chunk(2, 4)
    joined = apart.fuse()
    assert chunks_of(joined) == [["m", "n"]]
    assert chunks_of(apart.nest(0).chunk_order(1, 0)) == [["n", "m"], ["m", "n"]]
    for options in (
        joined.chunk_order(1, 0),
        joined.nest(0).chunk_order(1, 0),
        joined.nest(1).chunk_order(1, 0),
    ):
        assert chunks_of(options) == [["n", "m"]]
    with pytest.raises(OptionsError, match=r"chunk_order: nest s1: .* in another order$"):
        chunks_of(joined.nest(0).chunk_order(1, 0).nest(1).chunk_order(0, 1))
    with pytest.raises(OptionsError, match="chunk_order: nest s0: it has 2 dimensions"):
        chunks_of(joined.nest(0).chunk_order(1, 0, 2))
    with pytest.raises(OptionsError, match=r"chunk_order: nest s0: it has 2 dim.*; no other"):
        chunks_of(joined.chunk_order(1, 0, 2))


def test_a_nest_that_goes_along_leaves_the_order_of_chunks_to_its_leader() -> None:
    sized, _ = example("mlp1")
    ordered = MappingOptions("mlp").chunk(4, 4).fuse().nest(0).chunk_order(1, 0, 2)
    kernel = schedule(sized, ordered, SMALL).kernels[0]
    assert len(kernel.points) > len(kernel.spaces) == 1
    assert [folds[0].dim[3:] for folds in kernel.grid] == ["n", "b"]


def test_the_first_nest_has_none_to_join() -> None:
    sized = sized_of(ROWS % "m", A=(4, 4))
    with pytest.raises(OptionsError, match="no nest before it"):
        schedule(sized, MappingOptions("naive").nest(0).chunk(2).nest(0).fuse(), host_cpu())


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [((2, 2, 2), "is reduced"), ((0, 0, 0, 1), "3 dimensions, but 4 sizes"), ((-1,), "from 0")],
)
def test_chunks_that_cannot_be(chunk: tuple[int, ...], reason: str) -> None:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    sized = sized_of(text, A=(4, 5), B=(5, 6))
    with pytest.raises(OptionsError, match=reason):
        schedule(sized, MappingOptions("naive").nest(0).chunk(*chunk), host_cpu())


def test_what_was_chosen_for_all_nests_is_left_off_where_it_cannot_be() -> None:
    sized = sized_of(ROWS % "n", A=(4, 4))
    program = schedule(sized, MappingOptions("naive").chunk(2, 2), host_cpu())
    assert [len(k.grid) for k in program.kernels] == [1, 2]
    with pytest.raises(OptionsError, match=r"fuse: nest s1: its chunks differ"):
        schedule(sized, MappingOptions("naive").chunk(2, 2).fuse(), host_cpu())
    text = "def f(float(M, N) A) -> (S, E, O) { S(m) +=! A(m, n)\n %s }"
    two = "E(m, n) = exp(A(m, n))\n O(m, n) = E(m, n) * S(m)"
    program = schedule(
        sized_of(text % two, A=(4, 4)), MappingOptions("naive").chunk(2, 2).fuse(), host_cpu()
    )
    assert [len(k.grid) for k in program.kernels] == [1, 2]


def test_a_joined_nest_cannot_copy_what_is_not_made_yet() -> None:
    text = """def f(float(M, K) A, float(K, N) B) -> (T, C) {
        T(m, k) = A(m, k) + 1
        C(m, n) +=! T(m, k) * B(k, n)
    }"""
    sized = sized_of(text, A=(8, 8), B=(8, 8))
    options = MappingOptions("naive").chunk(4).nest(1).fuse()
    inside = schedule(sized, options.nest(1).stage(1, 0), host_cpu())
    assert [t.private for t in inside.tensors if t.role is ir.Role.SCRATCH] == [True, False]
    with pytest.raises(OptionsError, match="a nest that shares its chunks writes it"):
        schedule(sized, options.nest(1).stage(0), host_cpu())


TWICE = "def f(float(M, N) A) -> (%s) { %s }"


@pytest.mark.parametrize(
    ("outputs_", "lines", "calls", "kept"),
    [
        # Kept for the chunk, in memory of its own.
        ("S, O", "S(m) +=! exp(A(m, n))\n O(m, n) = exp(A(m, n)) / S(m)", 1, 1),
        ("S, O", "S(m) +=! exp(A(m, n))\n O(n, m) = exp(A(m, n)) / S(m)", 1, 1),
        ("E, S", "E(m) = exp(A(m, 0))\n E(m) = E(m) + 1\n S(m) +=! exp(A(m, 0)) * n", 1, 1),
        # Stored anyway.
        ("E, S", "E(m, n) = exp(A(m, n))\n S(m) +=! exp(A(m, n))", 1, 0),
        # Stored, and overwritten elsewhere while it is still wanted.
        (
            "E",
            "E(m, n, k) = exp(A(m, n) * k) where k in 0:5\n"
            "E(m, k, n) max=! exp(A(m, n) * k) + i where k in 0:5, i in 0:2",
            1,
            1,
        ),
        # Stored along a dimension that the other nest lacks.
        ("E, S", "E(m, n) = exp(A(m, 0)) where n in 0:4\n S(m) = exp(A(m, 0))", 2, 0),
        # Not at every point, not the same, or no longer the same.
        ("S, O", "S(m) +=! n > 2 ? exp(A(m, n)) : 0\n O(m, n) = exp(A(m, n)) / S(m)", 2, 0),
        ("S, O", "S(m) +=! exp(A(m, n))\n O(m, n) = exp(A(m, 4 - n)) / S(m)", 2, 0),
        ("S, O", "S(m) +=! exp(A(m, 0))\n O(m, n) = exp(A(m, n)) / S(m)", 2, 0),
        (
            "S, O",
            "S(m) +=! exp(1.0 / (A(m, n) * 0.0))\n O(m, n) = exp(1.0 / (A(m, n) * -0.0)) + S(m)",
            2,
            0,
        ),
        (
            "B, S, O",
            "B(m, n) = A(m, n)\n S(m) +=! exp(B(m, n))\n B(m, n) = B(m, n) * 2\n"
            "O(m, n) = exp(B(m, n)) / S(m)",
            2,
            0,
        ),
    ],
)
def test_what_joined_nests_have_in_common_is_computed_once(
    outputs_: str, lines: str, calls: int, kept: int
) -> None:
    sized = sized_of(TWICE % (outputs_, lines.replace("* n", "* A(m, n)")), A=(5, 5))
    options = MappingOptions("pointwise").chunk(2).fuse()
    if "O(n, m)" in lines:
        options = options.nest(1).chunk(0, 2)
    program = schedule(sized, options, host_cpu())
    assert show(program).count("exp(") == calls
    assert sum(t.role is ir.Role.SCRATCH for t in program.tensors) == kept
    a = np.random.default_rng(0).random((5, 5)).astype(np.float32)
    check_cpu(sized, [a], options, replace(host_cpu(), threads=2))


def test_nests_share_no_chunks_that_the_second_cache_does_not_hold() -> None:
    """These could share chunks of z alone: pieces of rows, of all planes."""
    text = """float(X, Y, Z) A, float(X, Y, Z) B, float(X, Y, Z) C) -> (P, Q) {
        P(x, y, z) = A(x, y, z + 1) + B(x, y + 1, z) - C(x, y, z)
        Q(x, y, z) = A(x, y, z + 1) - B(x + 1, y, z) * C(x, y, z) }"""
    found = known_cpus.find("zen 4")
    assert found is not None
    zen = replace(found, threads=1)
    for planes, joined in ((40, False), (4, True)):
        program = lower(sized_of(text, *[(planes, 50, 67)] * 3))
        assert any(len(g.nests) > 1 for g in groups(program, zen)) == joined


@pytest.mark.parametrize(("days", "joined"), [(14, False), (2, True)])
def test_nests_share_no_chunks_of_many_short_pieces(days: int, joined: bool) -> None:
    """A row of each day is a piece on a page of its own, as of a stack of images; of two days, the
    processor follows all of them."""
    text = """float(T, 2, H, W) Band, float(T, H, W) Cloud) -> (Green, Best, Day) {
        Green(t, h, w) = Cloud(t, h, w) < 40 ? Band(t, 0, h, w) - Band(t, 1, h, w) : -2.0
        Best(h, w) max=! Green(t, h, w)
        Day(h, w) min=! (Green(t, h, w) == Best(h, w)) ? t : T }"""
    rows = 4200 // days
    program = lower(sized_of(text, (days, 2, rows, 310), (days, rows, 310)))
    found = groups(program, replace(ZEN4, threads=1))
    assert (max(len(group.nests) for group in found) == 3) == joined


@pytest.mark.parametrize("checked", [False, True])
def test_sums_of_what_data_select_are_one_loop(checked: bool) -> None:
    """Both find a row in a table, and fail beyond it."""
    text = """def f(int32(G, K) M, float(N, F) X) -> (float(G, F) S, float(G, F) Q) {
        S(g, f) +=! X(M(g, k), f)
        Q(g, f) +=! X(M(g, k), f) * X(M(g, k), f) }"""
    rng = np.random.default_rng(0)
    inputs = [rng.integers(0, 50, (9, 5)).astype(np.int32), rng.random((50, 20)).astype(np.float32)]
    sized = sized_of(text, M=(9, 5), X=(50, 20))
    program = schedule(sized, MappingOptions("mlp"), ZEN4)
    assert [len(k.spaces) for k in program.kernels] == [1]
    if checked:
        inputs[0][3, 2] = 50
        with pytest.raises(IndexError, match="index 50 is out of range"):
            compile_cpu(sized, MappingOptions("mlp"))(
                inputs, [np.zeros((9, 20), np.float32) for _ in "SQ"]
            )
    else:
        check_cpu(sized, inputs, MappingOptions("mlp"), host_cpu())


def test_chunks_do_not_part_what_is_fused() -> None:
    """The second speed reads the next row of levels, the first one rows of its own."""
    text = """float(Y, X) L, float(Y, X) U, float(Y, X) V) -> (N, A, B) {
        N(y, x) = L(y, x) - 0.01 * (U(y, x) - V(y, x)) where y in 0:Y, x in 0:X
        A(y, x) = (U(y, x) - N(y, (x + 1) % X)) / (1 + hypot(U(y, x), V(y, x)))
            where y in 0:Y, x in 0:X
        B(y, x) = (V(y, x) - N((y + 1) % Y, x) - A(y, x)) / (1 + hypot(U(y, x), V(y, x)))
            where y in 0:Y, x in 0:X }"""
    program = lower(sized_of(text, *[(301, 402)] * 3))
    assert [len(g.nests) for g in possible_groups(program)] == [1, 2]
