"""Rows that data select, asked for ahead of their use."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import fenced_copy, reference, run, sized_of
from nests import X86, sized

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu, schedule
from tcl.common.errors import OptionsError
from tcl.tuner.space.cpu.mapping import MappingSpace

DEVICE = CpuProfile(
    "skylake-avx512", "+avx2,+fma,+avx512f", X86, 512, 2, 32 << 10, 1 << 20, 32 << 20, threads=1
)
MLP = MappingOptions("mlp")
BAG = "def f(float(E, D) T, int32(B, L) I) -> (O) { O(b, d) +=! T(I(b, l), d) }"
ROWS = MappingOptions().vectorize(8).nest(0)


def prefetched(text: str, *arrays: np.ndarray, ahead: int = 12) -> str:
    """What is asked for, as the schedule shows it."""
    shown = show(schedule(sized_of(text, *arrays), ROWS.prefetch(ahead), DEVICE))
    (line,) = (x.strip() for x in shown.splitlines() if "prefetch" in x)
    return line.removeprefix("prefetch ")


def test_the_row_that_a_later_subscript_selects_is_asked_for() -> None:
    t, i = np.zeros((100, 16), np.float32), np.zeros((5, 7), np.int32)
    # Three subscripts later, those of the next row after the last of a row; at the end the last.
    assert prefetched(BAG, t, i) == "T(int64(I(0, min(7*s0.b + s0.l + 3, 34))), s0.d)"
    wide = BAG.replace("int32", "int64")
    assert prefetched(wide, t, i.astype(np.int64), ahead=8) == (
        "T(I(0, min(7*s0.b + s0.l + 1, 34)), s0.d)"
    )


def test_subscripts_before_the_first_are_not_read() -> None:
    text = """
    def f(float(E, D) T, int32(L) I) -> (O) {
        O(l, d) = l >= 4 ? T(I(l - 4), d) : 0 where l in 0:L, d in 0:D
    }
    """
    t, i = np.zeros((100, 16), np.float32), np.zeros(7, np.int32)
    assert prefetched(text, t, i, ahead=8) == "T(int64(I(max(min(s0.l - 2, 6), 0))), s0.d)"
    assert prefetched(text, t, i, ahead=16) == "T(int64(I(min(s0.l, 6))), s0.d)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Each lane would ask for a row.
        ("def f(float(E) T, int32(B, L) I) -> (O) { O(b, l) = T(I(b, l)) }", "each lane has"),
        # What is not written yet cannot be read.
        (
            """
            def f(float(E, D) T, int32(B, L) I) -> (J, O) {
                J(b, l) = I(b, l) + 1
                O(b, d) +=! T(J(b, l), d)
            }
            """,
            "not inputs in order",
        ),
        ("def f(float(E, D) T, int32(B, L) I) -> (O) { O(b, d) +=! T(I(b, I(b, l)), d) }", "order"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(text: str, words: str) -> None:
    t = np.zeros((100, 16)[: 1 + ("D" in text)], np.float32)
    each = sized_of(text, t, np.zeros((5, 16), np.int32))
    nest = 1 if "J(b" in text else 0
    options = MappingOptions().nest(nest).vectorize(8).nest(nest).prefetch(64)
    with pytest.raises(OptionsError, match=f"prefetch: nest s{nest}: .*{words}"):
        schedule(each, options, DEVICE)


def test_subscripts_that_do_not_lie_in_row_major_order_are_left_alone() -> None:
    t, i = np.zeros((100, 16), np.float32), np.zeros((7, 5), np.int32).T
    assert "prefetch" in compile_cpu(sized_of(BAG, t, i), ROWS.prefetch(64)).llvm
    with pytest.raises(OptionsError, match="not inputs in order"):
        compile_cpu(sized_of(BAG, t, i), ROWS.prefetch(64), strides={"I": i.strides})


@pytest.mark.parametrize("seed", range(12))
def test_results_are_those_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    rows, width, batch, length = (rng.randint(1, n) for n in (300, 40, 9, 13))
    kind = rng.choice(("int32", "int64", "uint8", "int16"))
    shift = rng.choice((0, 0, 2))
    subscript = rng.choice(("I(b, l)", "I(b, l) / 2", "I(b, l - 1 + 1)"))
    read = f"T({subscript}, d)"
    value = rng.choice((read, f"W(b, l) * {read}", f"(l >= {shift} ? T(I(b, l - {shift}), d) : 1)"))
    factors = ", float(B, L) W" if "W" in value else ""
    text = f"def f(float(E, D) T, {kind}(B, L) I{factors}) -> (O) {{ O(b, d) +=! {value} }}"
    if "?" in value:
        text = text.replace(" }", " where l in 0:L }")
    t = numbers.random((rows, width), np.float32)
    selected = numbers.integers(0, min(rows, 100), (batch, length)).astype(kind)
    # Reading beside it would fail.
    arrays = [t, fenced_copy(selected, after=bool(seed % 2))]
    if factors:
        arrays.append(numbers.random((batch, length), np.float32))
    position = 1 if factors else 0
    options = MappingOptions().vectorize(rng.choice((4, 8))).register(0, rng.randint(1, 4))
    asked = options.nest(0).prefetch(*[0] * position, rng.choice((4, 64, 1 << 20)))
    assert "prefetch " in show(schedule(sized_of(text, *arrays), asked, DEVICE))
    found, right = run(text, *arrays, options=asked)[0], reference(text, *arrays)[0]
    np.testing.assert_allclose(found, right, rtol=1e-5)


def distance(text: str, device: CpuProfile = DEVICE, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """What the default asks for."""
    (chosen,) = plan_cpu(lower(sized(text, **shapes)), MLP, device).options.values()
    return chosen.prefetch or ()


def test_the_default_asks_for_rows_that_the_last_cache_does_not_keep() -> None:
    # Of four lines each; of one; of 64, of which a register tile reads some.
    assert distance(BAG, T=(100_000, 64), I=(128, 50)) == (16 * 4,)
    assert distance(BAG, T=(1_000_000, 16), I=(128, 50)) == (32 * 4,)
    (long,) = distance(BAG, T=(100_000, 1024), I=(128, 50))
    assert long in (4 * 4, 8 * 4, 16 * 4)
    # The table is small; there is no later row.
    assert distance(BAG, T=(8_000, 64), I=(128, 50)) == ()
    assert distance(BAG, T=(100_000, 64), I=(2, 5)) == ()
    # Subscripts are read across rows.
    across = BAG.replace("I(b, l)", "I(l, b)")
    assert distance(across, T=(100_000, 64), I=(50, 128)) == ()


def test_the_default_asks_the_last_cache_for_rows_of_some_lines() -> None:
    """Not for short ones, nor where it reads ahead itself."""
    amd = replace(DEVICE, name="znver4", features=f"{DEVICE.features},+sse4a")
    assert amd.reads_ahead and not DEVICE.reads_ahead
    assert distance(BAG, T=(20_000, 64), I=(128, 50)) == (16 * 4,)
    assert distance(BAG, amd, T=(20_000, 64), I=(128, 50)) == ()
    assert distance(BAG, T=(80_000, 16), I=(128, 50)) == ()
    assert distance(BAG, T=(2_000, 640), I=(128, 50)) == ()


def test_the_tuner_tries_distances_of_subscripts() -> None:
    space = MappingSpace(lower(sized(BAG, T=(100_000, 64), I=(128, 50))), DEVICE)
    default = space.from_options(MLP)
    assert default is not None
    (knob,) = (k for k in space.space.knobs if k.name == "s0.prefetch0")
    assert knob.choices == (0, 16, 32, 64, 128)
    assert space.space.values(default)[knob.name] == 64
