"""Defs as functions of JAX's arrays: results, transformations, and what is refused."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from at_once import at_once
from comparing_gradients import STEPWISE, stepwise, stepwise_inputs
from jax.test_util import check_grads
from places import ROOT

import tcl
import tcl.jax
from tcl.common.errors import ArgumentError

SOURCE = """
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def mm_grad(float(M, K) A, float(K, N) B, float(M, N) d_C) -> (d_A, d_B) {
    d_A(m, k) +=! d_C(m, n) * B(k, n)
    d_B(k, n) +=! A(m, k) * d_C(m, n)
}
def softmax(float(N, D) I) -> (O, m, s) {
    m(n) max=! I(n, d)
    s(n) +=! exp(I(n, d) - m(n))
    O(n, d) = exp(I(n, d) - m(n)) / s(n)
}
def expo(float(N) A) -> (B) { B(n) = exp(A(n)) }
def expo_grad(float(N) A, float(N) B, float(N) d_B) -> (d_A) { d_A(n) = d_B(n) * B(n) }
def pick(float(N) A, int32(N) K) -> (B, L) {
    B(n) = A(n) * float(K(n))
    L(n) = K(n) + 1
}
def pick_grad(float(N) A, int32(N) K, float(N) d_B) -> (d_A) { d_A(n) = d_B(n) * float(K(n)) }
def gather(float(M) T, int32(N) I) -> (O) { O(n) = T(I(n)) }
def scale(float(N) A, float s) -> (B) { B(n) = A(n) * s }
def scale_grad(float(N) A, float s, float(N) d_B) -> (d_A, d_s) {
    d_A(n) = d_B(n) * s
    d_s +=! d_B(n) * A(n)
}
def total(float(N) A) -> (S) { S +=! A(n) }
def wrong(float(N) A, float(N) d_B) -> (d_A) { d_A(n) = d_B(n) where n in 0:1 }
"""
INDEX_ERRORS = (jax.errors.JaxRuntimeError, ValueError)
"""Of a call, or of outputs of a call that has returned."""


def values(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return jnp.asarray(np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype))


mm = tcl.jax.call(SOURCE, "mm", backward="mm_grad")


def product(a: Any, b: Any) -> Any:
    return jnp.einsum("...mk,kn->...mn", a, b)


def test_a_call() -> None:
    a, b = values(3, 4), values(4, 5, seed=1)
    for found in (mm(a, b), mm(B=b, A=a), mm(a, B=b), jax.jit(mm)(a, b)):
        assert isinstance(found, jax.Array)
        np.testing.assert_array_equal(found, product(a, b))


def test_transposed_arrays_are_given_row_by_row() -> None:
    """XLA may choose any layout for what it computes itself."""
    a, b = values(4, 3), values(5, 4, seed=1)
    found = jax.jit(lambda a, b: mm(a.T, b.T).T)(a, b)
    np.testing.assert_array_equal(found, product(a.T, b.T).T)


def test_several_outputs() -> None:
    array = values(6, 40) / 3
    softmax = tcl.jax.call(SOURCE, "softmax")
    found = jax.jit(softmax)(array)
    assert found._fields == ("O", "m", "s") and found.s is found[2]
    out, most, total = found
    np.testing.assert_allclose(out, jax.nn.softmax(array, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(most, array.max(1))
    np.testing.assert_allclose(total, jnp.exp(array - most[:, None]).sum(1), rtol=1e-5)


def test_outputs_that_nobody_wants() -> None:
    array = values(6, 40) / 3
    expected = dict(zip("Oms", tcl.jax.call(SOURCE, "softmax")(array), strict=True))
    for wanted in (("O",), "s", ["m", "O"], ("s", "O", "m")):
        run = tcl.jax.call(SOURCE, "softmax", wanted=wanted)
        for found in (run(array), jax.jit(run)(array), jax.vmap(run)(array[None])):
            parts = found if isinstance(found, tuple) else (found,)
            for name, part in zip(wanted, parts, strict=True):
                np.testing.assert_array_equal(part.reshape(expected[name].shape), expected[name])
    with pytest.raises(ArgumentError, match="softmax has no output 'P' to select with wanted"):
        tcl.jax.call(SOURCE, "softmax", wanted="P")


@pytest.mark.parametrize(
    "type_",
    "float float16 bfloat16 int8 int16 int32 uint8 uint16 uint32 bool".split(),
)
def test_types(type_: str) -> None:
    sign = "||" if type_ == "bool" else "+"
    double = tcl.jax.call(f"def f({type_}(N) A) -> (B) {{ B(n) = A(n) {sign} A(n) }}", "f")
    dtype = {"float": "float32"}.get(type_, type_)
    array = jnp.arange(20).astype(dtype)
    found = jax.jit(double)(array)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array + array)


def test_wide_types_are_refused_until_jax_has_them() -> None:
    text = "def f(double(N) A) -> (B) { B(n) = A(n) + 1 }"
    wide, array = tcl.jax.call(text, "f"), np.arange(3.0)
    with pytest.raises(ArgumentError, match="'A' of f is float64; JAX has such arrays"):
        wide(array)
    with pytest.raises(ArgumentError, match="'A' of f is float64; JAX has such arrays"):
        wide(jnp.asarray(array))
    out = tcl.jax.call("def f(float(N) A) -> (B) { B(n) = double(A(n)) }", "f")
    with pytest.raises(ArgumentError, match="'B' of f is float64"):
        out(array.astype(np.float32))
    with jax.enable_x64(True):
        found = jax.jit(wide)(array)
        assert found.dtype == np.float64 and found.tolist() == [1, 2, 3]
        with pytest.raises(ArgumentError, match="is float64, but an array of float32 was given"):
            wide(jnp.asarray(array, np.float32))


def test_rank_0() -> None:
    array, scale = values(5), tcl.jax.call(SOURCE, "scale")
    for number in (2, 2.0, np.float32(2), jnp.float32(2), np.array(2, np.float32)):
        np.testing.assert_array_equal(scale(array, number), array * 2)
    total = tcl.jax.call(SOURCE, "total")(array)
    assert total.shape == () and float(total) == float(array.sum())


def test_zero_sized_arrays() -> None:
    for m, k, n in ((0, 4, 5), (3, 0, 5), (3, 4, 0), (0, 0, 0)):
        found = jax.jit(mm)(jnp.ones((m, k)), jnp.ones((k, n)))
        np.testing.assert_array_equal(found, np.zeros((m, n)))
    index = jnp.zeros(0, jnp.int32)
    assert tcl.jax.call(SOURCE, "gather")(jnp.ones(0), index).shape == (0,)


def test_numpy_arrays_of_any_alignment_and_strides() -> None:
    """XLA uses memory of NumPy's as it lies where it can, and copies it where it cannot."""
    memory = np.zeros(4 + 4 * 12, np.uint8)
    for start in range(5):
        a = memory[start : start + 48].view(np.float32)
        a[:] = np.arange(12)
        a, b = a.reshape(3, 4), np.asfortranarray(np.ones((4, 5), np.float32))
        np.testing.assert_array_equal(mm(a, b), a @ b)


def test_an_input_that_is_given_twice() -> None:
    a = values(4, 4)
    np.testing.assert_array_equal(jax.jit(lambda a: mm(a, a))(a), product(a, a))


def test_donated_buffers() -> None:
    """The output may get the memory of a donated input only when that is no longer read."""
    run = jax.jit(lambda a, b: mm(a, b), donate_argnums=(0,))
    b = values(50, 50, seed=1)
    for seed in range(5):
        a = values(50, 50, seed=seed)
        expected = np.asarray(product(a, b))
        np.testing.assert_array_equal(run(a, b), expected)
    chained = jax.jit(lambda a, b: mm(mm(a, b), b) + mm(a, b), donate_argnums=(0,))
    a = values(50, 50)
    expected = np.asarray(product(product(a, b), b) + product(a, b))
    np.testing.assert_array_equal(chained(a, b), expected)


def test_gradients() -> None:
    a, b, c = values(3, 4), values(4, 5, seed=1), values(3, 5, seed=2)

    def loss(f: Any) -> Any:
        return lambda a, b: (f(a, b) * c).sum()

    expected = jax.grad(loss(product), (0, 1))(a, b)
    found = jax.grad(loss(mm), (0, 1))(a, b)
    compiled = jax.jit(jax.grad(loss(mm), (0, 1)))(a, b)
    for one, other, wanted in zip(found, compiled, expected, strict=True):
        np.testing.assert_array_equal(one, wanted)
        np.testing.assert_array_equal(other, wanted)
    output, pull = jax.vjp(mm, a, b)
    np.testing.assert_array_equal(output, product(a, b))
    np.testing.assert_array_equal(pull(c)[1], expected[1])
    np.testing.assert_array_equal(jax.grad(lambda a: loss(mm)(a, b))(a), expected[0])


def test_a_gradient_of_the_output() -> None:
    expo, array = tcl.jax.call(SOURCE, "expo", backward="expo_grad"), values(5) / 4
    found = jax.grad(lambda a: expo(a).sum())(array)
    np.testing.assert_allclose(found, np.exp(array), rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
def test_gradients_at_a_number_of_pythons(wide: bool) -> None:
    scale, array = tcl.jax.call(SOURCE, "scale", backward="scale_grad"), values(5)
    with jax.enable_x64(wide):  # then such a number is of another type than the def's
        for number in (2.0, jnp.float32(2), np.float32(2)):
            found, pull = jax.vjp(lambda s: scale(array, s).sum(), number)
            assert found == 2 * array.sum() and pull(found) == (found * array.sum(),)
            assert jax.grad(lambda s: scale(array, s).sum())(number) == array.sum()
        assert jax.jit(lambda s: scale(array, s).sum())(2) == 2 * array.sum()
        whole = tcl.jax.call("def f(int32 n) -> (O) { O = n + 1 }", "f")
        with pytest.raises(ArgumentError, match="'n' of f is int32, but an array of float"):
            jax.jit(whole)(2.5)


def test_integers_have_no_gradients() -> None:
    pick = tcl.jax.call(SOURCE, "pick", backward="pick_grad")
    a, k = values(5), values(5, seed=1, dtype=np.int32)
    assert pick(a, k)[1].dtype == np.int32
    found = jax.grad(lambda a: pick(a, k)[0].sum())(a)
    np.testing.assert_array_equal(found, k.astype(np.float32))
    found = jax.grad(lambda a: pick(a, jnp.argsort(a))[0].sum())(a)
    np.testing.assert_array_equal(found, jnp.argsort(a).astype(np.float32))
    both = jax.grad(lambda a, k: pick(a, k)[0].sum(), (0, 1), allow_int=True)(a, k)
    assert both[1].dtype == jax.dtypes.float0


def test_what_cannot_be_differentiated() -> None:
    a, b = values(3, 3), values(3, 3, seed=1)
    gamma = tcl.jax.call("def gamma(float(N, M) X) -> (O) { O(n, m) = lgamma(X(n, m)) }", "gamma")
    with pytest.raises(ArgumentError, match=r"gamma has no gradient .*: lgamma .*backward=NAME"):
        jax.grad(lambda a: gamma(a).sum())(a)
    with pytest.raises(ArgumentError, match=r"gamma has no gradient"):
        jax.jvp(gamma, (a,), (a,))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(mm, (a, b), (a, b))
    jax.grad(lambda a: (gamma(jax.lax.stop_gradient(a)) * a).sum())(a)
    text = "def rough(float(N, M) X, float(N, M) Y) -> (O) { O(i, j) = floor(X(i, j)) * Y(i, j) }"
    rough = tcl.jax.call(text, "rough")
    jax.grad(lambda b: rough(a, b).sum())(b)
    with pytest.raises(ArgumentError, match=r"smoothly on 'X' .*jax.lax.stop_gradient\(X\)"):
        jax.grad(lambda a: rough(a, b).sum())(a)
    with pytest.raises(ArgumentError, match="there is no def 'mm_gard'; did you mean 'mm_grad'"):
        tcl.jax.call(SOURCE, "mm", backward="mm_gard")
    with pytest.raises(ArgumentError, match="total has to take d_C, else the gradient"):
        tcl.jax.call(SOURCE, "mm", backward="total")
    short = tcl.jax.call(SOURCE, "expo", backward="wrong")
    with pytest.raises(ArgumentError, match=r"gradient of shape \(1,\) for 'A' of expo"):
        jax.grad(lambda a: short(a).sum())(values(5))


@pytest.mark.parametrize("name", STEPWISE)
def test_inputs_that_a_gradient_only_compares(name: str) -> None:
    run = tcl.jax.call(stepwise(name), "f")
    with jax.enable_x64(True):
        inputs = [jnp.asarray(a) for a in stepwise_inputs(name)]
        floats = [a for a in inputs if a.dtype == jnp.float64]
        rest = inputs[len(floats) :]
        check_grads(lambda *given: run(*given, *rest), floats, order=2, modes=["rev"])
        first = jax.grad(lambda x: (run(x, *inputs[1:]) ** 3).sum())
        assert jnp.abs(jax.grad(lambda x: (first(x) ** 2).sum())(inputs[0])).sum() > 0


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (2, 1), (-1, None)])
def test_vmap(axes: tuple[int | None, int | None]) -> None:
    a, b = values(3, 4), values(4, 5, seed=1)
    batches = []
    for one, axis, seed in ((a, axes[0], 3), (b, axes[1], 4)):
        batch = values(6, *one.shape, seed=seed)
        batches.append(one if axis is None else jnp.moveaxis(batch, 0, axis))
    expected = jax.vmap(jnp.matmul, axes)(*batches)
    np.testing.assert_array_equal(jax.vmap(mm, axes)(*batches), expected)
    np.testing.assert_array_equal(jax.jit(jax.vmap(mm, axes))(*batches), expected)


def test_vmap_of_more() -> None:
    a, b = values(2, 3, 4, 4), values(4, 4, seed=1)
    twice = jax.vmap(jax.vmap(mm, (0, None)), (0, None))
    np.testing.assert_array_equal(twice(a, b), product(a, b))
    gradients = jax.vmap(jax.grad(lambda a: (mm(a, b) ** 2).sum()))(a[0])
    expected = jax.vmap(jax.grad(lambda a: (product(a, b) ** 2).sum()))(a[0])
    np.testing.assert_array_equal(gradients, expected)
    assert jax.vmap(mm, (0, None))(jnp.ones((0, 3, 4)), b).shape == (0, 3, 4)
    out, most, _ = jax.vmap(tcl.jax.call(SOURCE, "softmax"))(a[0] / 4)
    assert out.shape == (3, 4, 4) and most.shape == (3, 4)


def test_control_flow() -> None:
    a, b = values(4, 4) / 9, values(4, 4, seed=1) / 9
    found, _ = jax.lax.scan(lambda x, _: (mm(x, b), None), a, length=5)
    expected = a
    for _ in range(5):
        expected = product(expected, b)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    choose = jax.jit(lambda p, a: jax.lax.cond(p, lambda a: mm(a, b), lambda a: a, a))
    np.testing.assert_array_equal(choose(False, a), a)
    np.testing.assert_array_equal(choose(True, a), mm(a, b))
    loop = jax.lax.fori_loop(0, 3, lambda _, x: mm(x, b), a)
    np.testing.assert_array_equal(loop, mm(mm(mm(a, b), b), b))
    again = jax.grad(lambda a: jax.checkpoint(lambda a: mm(a, b))(a).sum())(a)
    np.testing.assert_array_equal(again, jax.grad(lambda a: mm(a, b).sum())(a))


def test_shapes_are_known_without_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcl.executors.executor import Executor

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a kernel was asked for")

    monkeypatch.setattr(Executor, "kernel", refuse)
    shape = jax.ShapeDtypeStruct
    found = jax.eval_shape(mm, shape((30, 40), "float32"), shape((40, 50), "float32"))
    assert found.shape == (30, 50) and found.dtype == np.float32
    jaxpr = jax.make_jaxpr(tcl.jax.call(SOURCE, "expo"))(jnp.ones(77))
    assert "tcl[operation=expo]" in str(jaxpr)


def test_without_jit() -> None:
    a, b = values(3, 4), values(4, 5, seed=1)
    with jax.disable_jit():
        np.testing.assert_array_equal(mm(a, b), product(a, b))
        found = jax.grad(lambda a: mm(a, b).sum())(a)
    np.testing.assert_array_equal(found, jax.grad(lambda a: product(a, b).sum())(a))


@pytest.mark.parametrize("run", [lambda f, *x: f(*x), lambda f, *x: jax.jit(lambda *y: f(*y))(*x)])
def test_inputs_that_do_not_fit(run: Any) -> None:
    a, b = values(3, 4), values(4, 5)
    cases: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        ((a,), ArgumentError, "mm takes 2 inputs .* B is missing"),
        ((a, b, b), ArgumentError, "3 arguments were given"),
        ((a, b[0]), ArgumentError, r"'B' of mm has 2 dimensions \(K, N\), but an array of shape"),
        ((a, b.astype(jnp.bfloat16)), ArgumentError, "float32, but an array of bfloat16 was given"),
        ((a, a), ArgumentError, "dimension 0 of 'B' is 3, but K is 4"),
    ]
    for inputs, error, words in cases:
        with pytest.raises(error, match=words):
            run(mm, *inputs)


def test_what_is_no_array() -> None:
    a, b = values(3, 4), values(4, 5)
    with pytest.raises(ArgumentError, match="'B' of mm has to be an array of JAX or NumPy, not"):
        mm(a, [[1.0]])
    with pytest.raises(ArgumentError, match="float32, but an array of float64 was given"):
        mm(a, np.ones((4, 5)))
    with pytest.raises(ArgumentError, match="mm has no input 'outputs'"):
        mm(a, b, outputs=a)
    with pytest.raises(ArgumentError, match=r"'A' of expo is float32, but an array of key"):
        tcl.jax.call(SOURCE, "expo")(jax.random.split(jax.random.key(0)))


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_a_function_of_define_refuses_what_has_no_values(mode: str) -> None:
    """Before anything is tuned, and after a call that went well."""
    plain: Any = tcl.define(SOURCE, tune_mode=mode).expo
    array = values(4)
    transforms: list[Callable[[], Any]] = [
        lambda: jax.jit(plain)(array),
        lambda: jax.grad(lambda a: plain(a).sum())(array),
        lambda: jax.vmap(plain)(array[None]),
        lambda: jax.make_jaxpr(plain)(array),
        lambda: jax.jit(lambda a: tcl.einsum("i,i->i", a, a))(array),
    ]
    for _ in range(2):
        for transform in transforms:
            with pytest.raises(ArgumentError, match=r"has no values yet; use tcl\.jax\.call there"):
                transform()
        if mode == "off":
            np.testing.assert_allclose(plain(array), np.exp(array), rtol=1e-6)


def test_what_is_refused_at_once() -> None:
    with (
        pytest.warns(tcl.TclWarning, match="but never initialised"),
        pytest.raises(ArgumentError, match="add adds to 'S', but a function of JAX"),
    ):
        tcl.jax.call("def add(float(N) A) -> (S) { S += A(n) }", "add")
    with pytest.raises(tcl.OptionsError, match="may tune or read values, which"):
        tcl.jax.call(SOURCE, "mm", lambda *_: tcl.MappingOptions())
    with pytest.raises(ArgumentError, match="unchecked has to be True or False"):
        tcl.jax.call(SOURCE, "mm", unchecked=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="there is no def 'nn'"):
        tcl.jax.call(SOURCE, "nn")


def test_other_devices_are_refused_when_a_program_is_lowered() -> None:
    traced = jax.jit(mm).trace(values(3, 4), values(4, 5))
    with pytest.raises(ArgumentError, match=r"mm of tcl.jax.call runs only on a CPU, .* cuda"):
        traced.lower(lowering_platforms=("cuda",))


def test_sizes_that_are_no_numbers_are_refused() -> None:
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(ArgumentError, match=r"'A' of expo has the shape \(n\)"):
        jax.eval_shape(tcl.jax.call(SOURCE, "expo"), jax.ShapeDtypeStruct((n,), "float32"))


def test_options() -> None:
    a, b = values(30, 40), values(40, 50)
    for options in ("naive", tcl.MappingOptions("mlp"), None):
        found = tcl.jax.call(SOURCE, "mm", options)(a, b)
        np.testing.assert_array_equal(found, product(a, b))
    with pytest.raises(tcl.OptionsError):
        tcl.jax.call(SOURCE, "mm", tcl.MappingOptions().vectorize(3))(a, b)


def test_an_index_out_of_range() -> None:
    gather, table = tcl.jax.call(SOURCE, "gather"), jnp.arange(5.0)
    good, bad = jnp.array([0, 4]), jnp.array([1, -4])
    message = "index -4 is out of range for dimension 0 of tensor T, which has indices 0 to 4"
    for run in (gather, jax.jit(gather), jax.jit(lambda t, i: gather(t, i) * 2)):
        assert run(table, good).shape == (2,)
        with pytest.raises(INDEX_ERRORS, match=message):
            jax.block_until_ready(run(table, bad))
        assert run(table, good).shape == (2,)
    with pytest.raises(INDEX_ERRORS, match="index 7 is"):
        jax.block_until_ready(jax.vmap(gather, (None, 0))(table, jnp.array([[1], [7]])))


def test_an_index_out_of_range_names_its_subscript() -> None:
    """Unless the message has no room for that."""
    for name in ("T", "T" * 1930):
        text = f"def f(float(M) {name}, int32(N) J) -> (P) {{ P(n) = {name}(J(n) % 9) }}"
        with pytest.raises(INDEX_ERRORS, match="index 6 is") as found:
            jax.block_until_ready(tcl.jax.call(text, "f")(jnp.ones(3), jnp.array([15])))
        assert ("note: it is this subscript of f\n" in str(found.value)) == (name == "T")
        assert ("T(J(n) % 9)" in str(found.value)) == (name == "T")


def test_the_tensor_in_a_message_is_the_one_of_this_def() -> None:
    """Kernels of defs that differ in names alone are the same."""
    other = tcl.jax.call("def gather(float(M) U, int32(N) J) -> (P) { P(n) = U(J(n)) }", "gather")
    for f, name in ((tcl.jax.call(SOURCE, "gather"), "T"), (other, "U")):
        with pytest.raises(INDEX_ERRORS, match=f"dimension 0 of tensor {name},"):
            jax.block_until_ready(f(jnp.ones(3), jnp.array([3])))


def test_two_versions_of_one_def_in_one_process() -> None:
    for number in (1, 2, 3):
        text = f"def same(float(N) A) -> (B) {{ B(n) = A(n) + {number} }}"
        f = tcl.jax.call(text, "same")
        assert jax.jit(lambda a, f=f: f(a))(jnp.zeros(2)).tolist() == [number] * 2


def test_eight_threads() -> None:
    b = values(64, 64, seed=9)
    run = jax.jit(lambda a: mm(a, b) + 1)
    wrong: list[int] = []

    def work(seed: int) -> None:
        own = values(60 + seed, 64, seed=seed)  # compiled in this thread
        expected = np.asarray(product(own, b) + 1)
        for _ in range(30):
            if not np.array_equal(run(own), expected) or not np.array_equal(
                mm(own, b) + 1, expected
            ):
                wrong.append(seed)

    at_once(work, range(8))
    assert not wrong


def test_inputs_may_go_while_a_program_runs() -> None:
    b = jnp.ones((200, 200))
    found = []
    for k in range(20):
        found.append(mm(jnp.full((200, 200), float(k)), b))
    gc.collect()
    assert [float(f[0, 0]) for f in found] == [200.0 * k for k in range(20)]


def test_copies() -> None:
    a, b = values(3, 4), values(4, 5)
    for other in (pickle.loads(pickle.dumps(mm)), copy.deepcopy(mm)):
        np.testing.assert_array_equal(other(a, b), product(a, b))
        np.testing.assert_array_equal(
            jax.grad(lambda a, f=other: f(a, b).sum())(a),
            jax.grad(lambda a: product(a, b).sum())(a),
        )
    assert repr(mm) == "<tcl function of JAX's arrays: mm(A, B) -> (C)>"


def test_an_exported_program() -> None:
    """It names the kernel, so that JAX has to be told that this is meant."""
    a, b = values(3, 4), values(4, 5)
    named = jax.jit(mm).lower(a, b).as_text()
    name = next(w for w in named.split('"') + named.split("@") if w.startswith("tcl_mm_"))
    name = name.split("(")[0]
    check = jax.export.DisabledSafetyCheck.custom_call(name)
    exported = jax.export.export(jax.jit(mm), disabled_checks=[check])(a, b)
    np.testing.assert_array_equal(exported.call(a, b), product(a, b))


def test_a_cache_of_compiled_programs(tmp_path: Path) -> None:
    """It never takes one version of a def for another, and finds the kernel in a new process."""
    code = """
    import sys, jax, jax.numpy as jnp, tcl
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    for number in (1, 2):
        f = tcl.jax.call(f"def f(float(N) A) -> (B) {{ B(n) = A(n) + {number} }}", "f")
        print(jax.jit(f)(jnp.zeros(3)).tolist())
    """
    written = []
    for _ in range(2):
        command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.stdout.split("\n") == ["[1.0, 1.0, 1.0]", "[2.0, 2.0, 2.0]", ""], done.stderr
        written.append({p.name for p in tmp_path.glob("jit_f-*-cache")})
    assert len(written[0]) == 2 and written[1] == written[0]


def test_jax_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, tcl; assert 'jax' not in sys.modules; assert 'jax' in dir(tcl)\n"
        "tcl.jax.call; assert 'jax' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_the_page() -> None:
    page = (ROOT / "docs" / "jax.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert float(names["C"][0, 0]) == 200 and float(names["d_A"][0, 0]) == 300
