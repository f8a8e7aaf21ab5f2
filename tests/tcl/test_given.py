"""What callers give that is of the wrong kind: one sentence of the right class, never a raw
traceback; and inputs by their names."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.tuning import SETTINGS

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SCALE = "def scale(float(N) X, float a, int32 k) -> (Y) { Y(i) = a * X(i) + k }"
A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)


pytestmark = pytest.mark.usefixtures("own_cache")


# --- inputs by their names ---


def test_inputs_by_their_names() -> None:
    T = tcl.define(MM, "naive")
    executor = tcl.compile(MM, "mm", "naive", B=B, A=A)
    by_name = tcl.compile(MM, "mm", mapping_options="naive", A=A, B=B)
    for _ in range(2):  # the second time by the short way
        for call in (T.mm, T["mm"], executor, by_name):
            np.testing.assert_array_equal(call(A=A, B=B), A @ B)
            np.testing.assert_array_equal(call(B=B, A=A), A @ B)
            np.testing.assert_array_equal(call(A, B=B), A @ B)
            C = np.zeros((3, 5), np.float32)
            assert call(B=B, A=A, outputs=(C,), unchecked=True) is C
            np.testing.assert_array_equal(C, A @ B)
        np.testing.assert_array_equal(T("mm", A, B=B), A @ B)


def test_names_that_python_uses_itself() -> None:
    """An input may have the name of any parameter but those of a call's own options."""
    source = "def f(float(N) self, float(N) entry, float(N) outputs) -> (Y) { Y(i) = self(i) - entry(i) + outputs(i) }"  # noqa: E501
    x, y = A[0], A[1]
    np.testing.assert_array_equal(tcl.define(source)("f", x, y, x), x - y + x)
    with pytest.raises(tcl.ArgumentError, match="outputs is missing"):
        tcl.define(source).f(self=x, entry=y)
    plain = source.replace("outputs", "other")
    np.testing.assert_array_equal(tcl.define(plain).f(self=x, entry=y, other=x), x - y + x)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: f(A, a=B), "mm has no input 'a'; did you mean A=?"),
        (lambda f: f(A=A, Q=B), "mm has no input 'Q'; its inputs are A, B"),
        (lambda f: f(A, B, output=B), "mm has no input 'output'; did you mean outputs=?"),
        (lambda f: f(A, B, C=B), "'C': that is an output; to write into an array, pass outputs="),
        (lambda f: f(A, B, M=3), "'M': that is a size, which follows from the shapes of the inp"),
        (lambda f: f(A, B, A=A), "mm got its input 'A' twice, by position and as A=; leave one"),
        (lambda f: f(B=B), "mm takes 2 inputs (A, B), but A is missing"),
        (lambda f: f(A, outputs=(B,)), "mm takes 2 inputs (A, B), but 1 argument was given"),
    ],
)
def test_names_that_do_not_fit(call: Callable[[Any], object], sentence: str) -> None:
    T = tcl.define(MM, "naive")
    compiled = tcl.compile(MM, "mm", "naive", A, B)
    for function in (T.mm, T["mm"], compiled):
        with pytest.raises(tcl.ArgumentError) as caught:
            call(function)
        assert sentence in str(caught.value)


@pytest.mark.usefixtures("searches_in_threads")
def test_tuning_takes_inputs_by_their_names() -> None:
    config = tcl.TunerConfig(generations=1, population=2, threads=1, seed=0)
    x = A[0]
    add = "def add(float(N) X, float(N) Y) -> (Z) { Z(i) = X(i) + Y(i) }"
    found = tcl.autotune_and_compile(add, "add", Y=x, X=x, tuner_config=config)
    assert found is not None
    np.testing.assert_array_equal(found(x, x), x + x)
    assert "tuner_config" in SETTINGS and "named" not in SETTINGS
    for function in (tcl.autotune, tcl.autotune_and_compile):
        with pytest.raises(tcl.ArgumentError, match=r"no input 'tuner_confg'; did you mean tuner_"):
            function(add, "add", x, x, tuner_confg=config)
    with pytest.raises(tcl.ArgumentError, match=r"no setting 'thread'; did you mean threads\?"):
        tcl.make_autotuned_options_factory(thread=2)


# --- texts and files ---


@pytest.mark.usefixtures("searches_in_threads")
def test_a_path_is_read_and_named_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "mm.tc"
    file.write_text(MM)
    np.testing.assert_array_equal(tcl.define(file, "naive").mm(A, B), A @ B)
    np.testing.assert_array_equal(tcl.compile(file, "mm", "naive", A, B)(A, B), A @ B)
    config = tcl.TunerConfig(generations=1, population=2, threads=1, seed=0)
    assert tcl.autotune(file, "mm", A, B, tuner_config=config) is not None
    file.write_text(MM.replace("A(m, k)", "D(m, k)"))
    with pytest.raises(tcl.TclSemanticError, match=rf"^{file}:1:59: error: undefined"):
        tcl.define(file)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("matmul.tc", "pass pathlib.Path('matmul.tc')"),
        ("there", "pass pathlib.Path('there')"),
        (pathlib.Path("none.tc"), "none.tc cannot be read: No such file or directory"),
        (pathlib.Path("."), ". cannot be read: Is a directory"),
        (pathlib.Path("no\0name"), "cannot be read: embedded null byte"),
        (b"def", "a TC is a string with its text, or a pathlib.Path of its file, not bytes"),
        (None, "not None"),
    ],
)
def test_no_text(
    source: Any, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    for call in (tcl.define, tcl.Tuner, lambda s: tcl.compile(s, "mm", "naive", A, B)):
        with pytest.raises(tcl.ArgumentError) as caught:
            call(source)
        assert sentence in str(caught.value)


# --- everything else ---


class _Odd:
    def __bool__(self) -> bool:
        raise ZeroDivisionError


ODD: dict[str, Any] = {
    **{"none": None, "an int": 3, "negative": -1, "a bool": True, "a float": 1.5, "nan": np.nan},
    **{"complex": 1j, "text": "x", "empty text": "", "bytes": b"x", "a list": [1, 2]},
    **{"nested": [[1.0, 2.0], [3.0]], "a tuple": (), "a dict": {"a": 1}, "a set": {1}},
    **{"a generator": (i for i in range(3)), "a range": range(4), "a class": int, "odd": _Odd()},
    "objects": np.array([[object()] * 4] * 3),
    "structured": np.zeros((3, 4), [("a", "f4")]),
    "rank 0": np.array(1, np.float32),
    "nothing in it": np.zeros((3, 0), np.float32),
    "other type": np.ones((3, 4)),
    "texts": np.array([["a"] * 4] * 3),
    "times": np.zeros((3, 4), "M8[s]"),
    "a NumPy number": np.float32(1),
    "huge": 10**5000,
    "a path": pathlib.Path("none.tc"),
    "a module": np,
    "masked": np.ma.ones((3, 4)),
}
_T = tcl.define(MM, "naive")
_S = tcl.define(SCALE, "naive")
_OPTIONS = tcl.MappingOptions()
_LISTS = (
    *("chunk", "fuse", "tile", "order", "inner_order", "vectorize", "register", "stage", "stream"),
    *("prefetch", "threads", "split", "buffers", "mma"),
)
_SETTINGS = (
    *("generations", "population", "elites", "crossover_rate", "mutation_rate", "selection"),
    *("parents", "threads", "seed", "time_limit", "strategy", "compile_timeout", "run_timeout"),
    *("cached_seeds", "model"),
)


def _config(name: str, value: Any) -> tcl.TunerConfig:
    made: Any = tcl.TunerConfig
    config: tcl.TunerConfig = made(**{name: value})
    return config


CALLS: dict[str, Callable[[Any], object]] = {
    "define": tcl.define,
    "define, options": lambda x: tcl.define(MM, x),
    "define, threads": lambda x: tcl.define(MM, threads=x),
    "define, nearest": lambda x: tcl.define(MM, nearest=x),
    "call, first": lambda x: _T.mm(x, B),
    "call, second": lambda x: _T.mm(A, x),
    "call, by name": lambda x: _T.mm(A, B=x),
    "call, too many": lambda x: _T.mm(A, B, x),
    "call, too few": lambda x: _T.mm(x),
    "call, outputs": lambda x: _T.mm(A, B, outputs=x),
    "call, an output": lambda x: _T.mm(A, B, outputs=(x,)),
    "call, unchecked": lambda x: _T.mm(A, B, unchecked=x),
    "call, float": lambda x: _S.scale(A[0], x, 1),
    "call, int": lambda x: _S.scale(A[0], 1, x),
    "call, name of the def": lambda x: _T(x, A, B),
    "item": lambda x: _T[x],
    "executor": lambda x: _T.executor("mm", x),
    "compile": lambda x: tcl.compile(x, "mm", "naive", A, B),
    "compile, name of the def": lambda x: tcl.compile(MM, x, "naive", A, B),
    "compile, options": lambda x: tcl.compile(MM, "mm", x, A),
    "compile, first": lambda x: tcl.compile(MM, "mm", "naive", x, B),
    "compile, threads": lambda x: tcl.compile(MM, "mm", "naive", A, B, threads=x),
    "options": tcl.MappingOptions,
    "options, default": lambda x: tcl.MappingOptions("naive", x),
    "options, nests": lambda x: tcl.MappingOptions("naive", nests=x),
    "options, merge": lambda x: tcl.MappingOptions("naive", merge=x),
    "options, JSON": tcl.MappingOptions.from_json,
    "options, dict": tcl.MappingOptions.from_dict,
    "options, own": _OPTIONS.own,
    "options, with_nest": lambda x: _OPTIONS.with_nest(0, x),
    **{f"options, {name}": getattr(_OPTIONS, name) for name in (*_LISTS, "nest")},
    **{f"options of a nest, {name}": getattr(_OPTIONS.nest(0), name) for name in _LISTS},
    **{f"config, {name}": partial(_config, name) for name in _SETTINGS},
    "config, one that there is not": partial(_config, "generation"),
    "tuner": tcl.Tuner,
    "tuner, cache": lambda x: tcl.Tuner(MM, x),
    "tuner, threads": lambda x: tcl.Tuner(MM, threads=x),
    "tuner, device": lambda x: tcl.Tuner(MM, device=x),
    "tuner, workplace": lambda x: tcl.Tuner(MM, workplace=x),
    "tune": lambda x: tcl.Tuner(MM).tune(x, (A, B)),
    "tune, inputs": lambda x: tcl.Tuner(MM).tune("mm", x),
    "tune, start": lambda x: tcl.Tuner(MM).tune("mm", (A,), x),
    "tune, config": lambda x: tcl.Tuner(MM).tune("mm", (A,), None, x),
    "tune, fixed": lambda x: tcl.Tuner(MM).tune("mm", (A,), fixed=x),
    "tune, resume": lambda x: tcl.Tuner(MM).tune("mm", (A,), resume=x),
    "tune, report": lambda x: tcl.Tuner(MM).tune("mm", (A,), report=x),
    "autotune": lambda x: tcl.autotune(x, "mm", A, B[:, :0]),
    "autotune, first": lambda x: tcl.autotune(MM, "mm", x),
    "autotune, device": lambda x: tcl.autotune(MM, "mm", A, device=x),
    "autotune, config": lambda x: tcl.autotune(MM, "mm", A, tuner_config=x),
    "autotune, cache": lambda x: tcl.autotune(MM, "mm", A, cache_filename=x, store_to_cache=True),
    "autotune, load": lambda x: tcl.autotune(MM, "mm", A, load_from_cache=x),
    "autotune, store": lambda x: tcl.autotune(MM, "mm", A, store_to_cache=x),
    "cache": tcl.MappingOptionsCache,
    "cache, load": lambda x: tcl.MappingOptionsCache("none.db").load(MM, "mm", x),
    "cache, count": lambda x: tcl.MappingOptionsCache("none.db").load(MM, "mm", (A, B), x),
    "cache, device": lambda x: tcl.MappingOptionsCache("none.db").load(MM, "mm", (A, B), device=x),
    "factory of a cache": tcl.make_load_from_cache_options_factory,
    "factory of a cache, nearest": lambda x: tcl.make_load_from_cache_options_factory(
        "none.db", nearest=x
    ),
    "factory of a search": lambda x: tcl.make_autotuned_options_factory(generations=x),
    "almost equal": lambda x: tcl.assert_almost_equal(x, A, A),
    "almost equal, inputs": lambda x: tcl.assert_almost_equal(A, A, x),
    "almost equal, operations": lambda x: tcl.assert_almost_equal(A, A, A, operations=x),
}


@pytest.mark.parametrize("name", CALLS)
def test_odd_things_end_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, value in ODD.items():
        try:
            CALLS[name](value)
        except tcl.TclError as error:
            # a place in a text has lines of its own
            sentence = getattr(error, "message", str(error))
            assert "\n" not in sentence and len(sentence) < 400, kind
            assert " at 0x" not in sentence, kind
        except AssertionError:
            assert name.startswith("almost equal"), kind


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: tcl.autotune(MM, "mm", A, B, tuner_config={"generations": 2}),  # type: ignore[arg-type]
            "ArgumentError",
            "tuner_config has to be a tcl.TunerConfig, not dict; write tcl.TunerConfig(generations",
        ),
        (
            lambda: tcl.define(MM, {"preset": "mlp"}),  # type: ignore[arg-type]
            "OptionsError",
            "not dict; make them with tcl.MappingOptions.from_dict(...)",
        ),
        (
            lambda: tcl.define(MM, tcl.MappingOptions),  # type: ignore[arg-type]
            "OptionsError",
            "not the class MappingOptions",
        ),
        (
            lambda: _T.mm([[1.0]], B),
            "ArgumentError",
            "not list; use numpy.asarray(..., 'float32')",
        ),
        (
            lambda: _T.mm(A.astype(object), B),
            "ArgumentError",
            "input 'A' of mm: arrays of object are not supported",
        ),
        (
            lambda: tcl.Tuner(MM).tune("mm", A),  # type: ignore[arg-type]
            "ArgumentError",
            "the inputs of mm have to be a tuple of arrays, here (A, B), not ndarray",
        ),
        (
            lambda: _T.mm(A, B, unchecked="no"),  # type: ignore[arg-type]
            "ArgumentError",
            "unchecked has to be True or False, not 'no'",
        ),
    ],
)
def test_what_is_said(call: Callable[[], object], error: str, sentence: str) -> None:
    with pytest.raises(getattr(tcl, error)) as caught:
        call()
    assert sentence in str(caught.value)


def test_an_output_that_no_memory_holds() -> None:
    """Refused before the system promises it: whoever writes into it would be killed."""
    source = "def outer(float(N) X) -> (Y) { Y(i, j) = X(i) * X(j) }"
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.define(source).outer(np.zeros(10_000_000, np.float32))
    assert str(caught.value).startswith(
        "output 'Y' of outer needs 400 TB of memory: it is float32 of shape (10000000, 10000000), "
        "with N=10000000"
    )
