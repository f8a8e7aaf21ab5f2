"""Dimensions that lie together in memory, run as one: which those are, and that nothing changes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from comparing import check_cpu, check_interpreted
from compiled_kernels import compile_cpu
from interpreted_stages import stages
from nests import sized
from sampling import swept

from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.syntax.types import FLOAT32
from tcl.tuner.space.cpu.mapping import MappingSpace

NAIVE, MLP = MappingOptions("naive"), MappingOptions("mlp")


def extents(program: ir.Program | ir.Built) -> list[list[int]]:
    return [[d.extent for d in space.dims] for space in program.spaces]


IMAGE, ROW = (2, 3, 4, 5), (5,)


@pytest.mark.parametrize(
    ("body", "other", "expected"),
    [
        ("O(b, c, h, w) = A(b, c, h, w) * 2.0", ROW, [[1, 1, 1, 120]]),
        ("O(b, c, h, w) = A(b, c, h, w) * B(w)", ROW, [[1, 1, 24, 5]]),
        ("O(b, c, h, w) = A(b, c, h, w) * B(b)", (2,), [[2, 1, 1, 60]]),
        ("O(b, c, h, w) = A(b, c, h, w) * B(c)", (3,), [[2, 3, 1, 20]]),
        ("O(b, c, h, w) = A(b, c, h, w) * B(h, w)", (4, 5), [[1, 6, 1, 20]]),
        ("O(b, c, h, w) = A(b, c, h, w) * B(w, h)", (5, 4), [[1, 6, 4, 5]]),
        ("O(c, b, h, w) = A(b, c, h, w)", ROW, [[3, 2, 1, 20]]),
        ("O(b, c) +=! A(b, c, h, w)", ROW, [[1, 6, 1, 20]]),
        ("O(b, w) +=! A(b, c, h, w)", ROW, [[2, 5, 1, 12]]),
        ("O(b, c, h, w) = A(b, c, h, w) + w", ROW, [[1, 1, 24, 5]]),
        ("O(b, c, h, w) = h < 2 ? A(b, c, h, w) : 0.0", ROW, [[1, 6, 4, 5]]),
        ("O(b, c, h, w) = A(b, c, h, w) where h in 1:3", ROW, [[1, 6, 1, 10]]),
        ("O(b, c, h, w) = A(b, c, h, w) where w in 1:3", ROW, [[1, 1, 24, 2]]),
        ("O(b, c, h, w) = A(b, c, h, w) where w in 0:3", ROW, [[1, 1, 24, 3]]),
        ("O(b, c, h, w) = A(b, c, h + 1, w) where h in 0:3", ROW, [[1, 6, 1, 15]]),
        ("O(h, w) +=! A(b, c, 1, w) * A(0, 0, h, 2)", ROW, [[4, 5, 2, 3]]),
        ("O(b, c, h, w) = B(int32(A(b, c, h, w)))", ROW, [[2, 3, 4, 5]]),
        ("O(b, c, h, w) +=! A(b, c, h, w + k) where k in 0:1", ROW, [[1, 1, 1, 120, 1]]),
        ("O(b, c, h, w) +=! A(b, c, h, w + k) where w in 0:4, k in 0:2", ROW, [[1, 1, 24, 4, 2]]),
        # Whole rows that a window moves over.
        ("O(b, c, h) +=! A(b, c, h + k, w) where h in 0:2, k in 0:3", ROW, [[1, 6, 2, 1, 15]]),
        ("O(b, h, f) +=! A(b, 0, h + k, w) where h in 0:2, k in 0:3, f in 0:2", ROW,
         [[2, 2, 2, 3, 5]]),
        ("O(h) +=! B(h + k, w) where h in 0:2, k in 0:3", (4, 16), [[2, 3, 16]]),
        ("O(b, c, h, w) +=! A(b, c, h + k, w) where h in 0:3, k in 0:2", ROW, [[1, 6, 1, 15, 2]]),
        ("O(b, h) +=! A(b, 2 * h + c, k, w) where h in 0:1, c in 0:2", ROW, [[2, 1, 1, 1, 40]]),
        ("O(b, h) +=! A(b, c, h + k, w) * B(w) where h in 0:2, k in 0:3", ROW,
         [[2, 2, 3, 3, 5]]),
        ("O(k, c) = B(k + c, c) where k in 0:2, c in 0:3", (4, 3), [[2, 3]]),
        ("O(c, h, w) +=! A(0, c + k, h, w) where c in 0:2, k in 0:2", ROW, [[2, 1, 20, 2]]),
        # Rows that stay within the tensor: short ones.
        ("O(b, c, h, w) = A(b, c, max(h - 1, 0), w) where h in 0:4", ROW, [[1, 6, 1, 20]]),
        ("O(b, c, h, w) = A(b, c, max(min(h + 1, 3) - 1, 0), w) where h in 0:4", ROW,
         [[1, 6, 4, 5]]),
        ("O(b, c, h, w) = A(b, max(c - 1, 0), h, w) where c in 0:3", ROW, [[2, 3, 1, 20]]),
        ("O(b, c, h, w) = A(b, c, max(h - 1, 0), w) + h where h in 0:4", ROW, [[1, 6, 4, 5]]),
        ("O(b, c, h, w) = A(b, c, min(2 * h, 3), w) where h in 0:4", ROW, [[1, 6, 4, 5]]),
        ("O(b, c, h, w) +=! A(b, c, min(max(h + k - 1, 0), 3), w) where k in 0:3, h in 0:4", ROW,
         [[1, 6, 1, 20, 3]]),
        # What one statement keeps apart is apart in all that have to do with it.
        ("T(b, c, h, w) = A(b, c, h, w)  O(b, c, h, w) = T(b, c, h, w) * B(c)", (3,),
         [[2, 3, 1, 20]] * 2),
        ("O(b, c, h, w) = A(b, c, h, w)  T(w) max=! B(w)", ROW, [[1, 1, 1, 120], [5]]),
    ],
)  # fmt: skip
def test_which_dimensions_are_merged(
    body: str, other: tuple[int, ...], expected: list[list[int]]
) -> None:
    rank = {2: "B0", 3: "C", 5: "W"}[other[0]] if len(other) == 1 else "R, S"
    outputs = "T, O" if "T(" in body else "O"
    text = f"def f(float(B0, C, H, W) A, float({rank}) B) -> ({outputs}) {{ {body} }}"
    program = merged(lower(sized(text, IMAGE, other)))
    verify(program)
    assert extents(program) == expected


def test_layouts_decide() -> None:
    """Rows that are not next to each other, or from right to left."""
    text = "def f(float(H, W) A) -> (O) { O(h, w) = A(h, w) }"
    one, plain = sized(text, (4, 6)), ir.contiguous(FLOAT32, (4, 6), (0, 0))
    for strides in [(24, 4), (-24, -4), (0, 0)]:
        assert extents(merged(lower(one, {"A": replace(plain, strides=strides)}))) == [[1, 24]]
    for strides in [(32, 4), (4, 16), (24, -4), (0, 4)]:
        assert extents(merged(lower(one, {"A": replace(plain, strides=strides)}))) == [[4, 6]]


def test_chunks_of_a_part_of_a_tensor() -> None:
    """What is written of it begins elsewhere than the tensor does."""
    one = sized(
        "def f(float(M, N) A) -> (O, P) {"
        "  O(m, n) = 0.0 where m in 0:M + 2, n in 0:N"
        "  O(m, n) = A(m - 1, n) where m in 1:M + 1"
        "  P(m, n) = O(m, n) * 2 where m in 1:M + 1, n in 0:N }",
        (6, 4),
    )
    assert extents(merged(lower(one))) == [[1, 32], [1, 24], [1, 24]]
    inputs = [np.arange(24, dtype=np.float32).reshape(6, 4)]
    chunked = NAIVE.merged().nest(1).chunk(0, 5).nest(2).chunk(0, 5)
    for options in (MLP, NAIVE.merged(), chunked, chunked.nest(2).fuse()):
        check_cpu(one, inputs, options)
    kernels = schedule(one, chunked.nest(2).fuse(), host_cpu()).kernels
    assert [len(k.points) for k in kernels] == [1, 2]


def random_images(rng: Random) -> tuple[str, list[tuple[int, ...]]]:
    """A def of statements in which most tensors have all of some dimensions or none, in order."""
    shapes: list[tuple[int, ...]] = []
    known: dict[str, tuple[str, ...]] = {}
    lines = []
    ranges = {i: (int(rng.random() < 0.1), rng.choice((1, 2, 3, 4))) for i in "abcd"}

    groups = rng.choice((("a", "bc", "d"), ("ab", "cd"), ("abc", "d"), ("a", "bcd"), ("ab", "c")))

    def read(used: str) -> str:
        if known and rng.random() < 0.3:
            name = rng.choice(list(known))
            if set(known[name]) <= set(used):
                firsts = {i: ranges[i][0] for i in known[name]}
                return f"{name}({', '.join(known[name])})" if not any(firsts.values()) else "1.5"
        runs = [r for r in groups if r in used] if rng.random() < 0.9 else list(used)
        first = rng.randrange(len(runs))
        axes = list("".join(runs[first : rng.randrange(first, len(runs)) + 1]))
        if rng.random() < 0.1:
            rng.shuffle(axes)
        shift = {i: int(rng.random() < 0.07) for i in axes}
        more = {i: int(rng.random() < 0.07) for i in axes}
        by = {i: rng.choice(used) if rng.random() < 0.1 else "" for i in axes}  # as in a window
        more |= {i: more[i] + sum(ranges[j]) - 1 for i, j in by.items() if j}
        shapes.append(tuple(sum(ranges[i]) + shift[i] + more[i] for i in axes))
        terms = {i: [i, *([str(shift[i])] if shift[i] else []), *by[i]] for i in axes}
        places = [" + ".join(terms[i]) for i in axes]
        for k, place in enumerate(places):
            if rng.random() < 0.1:
                places[k] = f"min(max({place} - 1, 0), {rng.choice((shapes[-1][k] - 1, 0))})"
        subscripts = ", ".join(places)
        return f"A{len(shapes) - 1}({subscripts})"

    for k in range(rng.choice((1, 2, 3))):
        used = "".join(groups[: rng.choice((1, 2, 3))])
        results = tuple(i for run in groups if run in used and rng.random() < 0.8 for i in run)
        reads = [read(used) for _ in range(rng.choice((1, 2, 3)))]
        if rng.random() < 0.1:
            reads.append(rng.choice(used))
        op = "+=!" if len(results) < len(used) else "="
        where = ", ".join(f"{i} in {f}:{f + n}" for i in used for f, n in (ranges[i],))
        left = f"T{k}({', '.join(results)})" if results else f"T{k}"
        lines.append(f"    {left} {op} {' * '.join(reads)} where {where}")
        if results:
            known[f"T{k}"] = results
    inputs = ", ".join(
        f"float({', '.join(map(str, shape))}) A{k}" for k, shape in enumerate(shapes)
    )
    outputs = ", ".join(f"T{k}" for k in range(len(lines)))
    return f"def f({inputs}) -> ({outputs}) {{\n" + "\n".join(lines) + "\n}", shapes


@pytest.mark.parametrize("first", swept(range(0, 16, 8), range(16, 32, 8)))
def test_what_is_computed_is_the_same(first: int) -> None:
    """With chunks, tiles and lanes of merged dimensions, and at every stage."""
    device = replace(host_cpu(), threads=2)
    changed = 0
    for seed in range(first, first + 8):
        rng = Random(seed)
        text, shapes = random_images(rng)
        one, values = sized(text, *shapes), np.random.default_rng(seed)
        inputs = [values.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
        program = lower(one)
        space = MappingSpace(program, device)
        configs = [space.space.sample(rng) for _ in range(2)]
        chosen = [MLP, NAIVE.merged()]
        if any(s.indices for s in one.checked.statements):
            chosen.append(MappingOptions("pointwise").merged().tile(2, 3).chunk(1, 2))
        chosen += [space.to_options(c) for c in configs if c is not None]
        for options in chosen:
            check_cpu(one, inputs, options, device)
        for stage, each in stages(one, NAIVE.merged(), device):
            check_interpreted(one, inputs, each, stage)
        changed += extents(merged(program)) != extents(program)
    assert changed >= 1


def test_merging_is_an_option() -> None:
    text = "def f(float(H, W) A) -> (O) { O(h, w) = A(h, w) * 2.0 }"
    one, device = sized(text, (4, 6)), host_cpu()
    for options, expected in [(NAIVE, [4, 6]), (NAIVE.merged(), [1, 24]), (MLP, [1, 24]),
                              (MLP.merged(False), [4, 6]), (MLP.stream(False), [1, 24]),
                              (MLP.tile(2), [4, 6]), (MLP.nest(0).register(0, 2), [4, 6]),
                              (MLP.merged().tile(0, 8), [1, 24])]:  # fmt: skip
        assert extents(schedule(one, options, device)) == [expected], options
        assert MappingOptions.from_json(options.to_json()) == options
    for text in ('{"merge": 1}', '{"merge": "yes"}', '{"merge": [true]}'):
        with pytest.raises(OptionsError, match="merge: must be true or false"):
            MappingOptions.from_json(text)


def test_arrays_keep_their_shapes() -> None:
    one = sized("def f(float(H, W) A) -> (O) { O(h, w) = A(h, w) * 2.0 }", (4, 6))
    a, out = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((4, 6), np.float32)
    kernel = compile_cpu(one, MLP)
    kernel([a], [out])
    np.testing.assert_array_equal(out, a * 2)


def test_tuned_options_are_of_merged_dimensions() -> None:
    one = sized("def f(float(H, W) A) -> (O) { O(h, w) = A(h, w) * 2.0 }", (4, 6))
    space = MappingSpace(lower(one), host_cpu())
    config = space.from_options(MLP)
    assert config is not None and space.to_options(config).merge is True
    assert space.from_options(MLP.tile(2, 2)) is None
    apart = sized("def f(float(H, W) A, float(W) B) -> (O) { O(h, w) = A(h, w) * B(w) }",
                  (4, 6), (6,))  # fmt: skip
    space = MappingSpace(lower(apart), host_cpu())
    config = space.from_options(MLP)
    assert config is not None and space.to_options(config).merge is None
