"""What users call from Python."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.schedule.cpu import schedule
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.tuner.cache.tuning_cache import TuningCache

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SOFTMAX = """
def softmax(float(N, D) I) -> (O, expsum, maxVal) {
    maxVal(n) max=! I(n, d)
    expsum(n) +=! exp(I(n, d) - maxVal(n))
    O(n, d) = exp(I(n, d) - maxVal(n)) / expsum(n)
}
"""
ADD = "def accumulate(float(N) X) -> (S) { S(n) += X(n) }"


pytestmark = pytest.mark.usefixtures("own_cache")


def rand(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape, np.float32)


def test_define_and_call() -> None:
    T = tcl.define(MM)
    A, B = rand(17, 31), rand(31, 13)
    np.testing.assert_allclose(T.mm(A, B), A @ B, rtol=1e-5)
    np.testing.assert_allclose(T["mm"](A, B), A @ B, rtol=1e-5)
    np.testing.assert_allclose(T("mm", A, B), A @ B, rtol=1e-5)
    assert list(T) == ["mm"]
    assert "mm" in dir(T)
    assert T.mm.__doc__ == "mm(A, B) -> (C)"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_a_comment_ends_where_its_line_ends(tmp_path: Path, end: str) -> None:
    """So that the statement behind it counts."""
    text = end.join(("def f(float(N) X) -> (Y) {", "Y(n) = X(n) # copy", "Y(n) = Y(n) + 1", "}"))
    file = tmp_path / "f.tc"
    file.write_bytes(text.encode())
    for source in (text, file):
        assert tcl.define(source).f(np.ones(2, np.float32)).tolist() == [2, 2]
    with pytest.raises(tcl.TclSemanticError, match=r"^<string>:3:8: error: .*'Z'"):
        tcl.define(text.replace("Y(n) + 1", "Z(n) + 1"))


def test_scalars() -> None:
    T = tcl.define("def scale(float(N) X, float a, int32 k) -> (Y) { Y(i) = a * X(i) + k }")
    np.testing.assert_allclose(T.scale(rand(4), 2.5, 3), 2.5 * rand(4) + 3, rtol=1e-6)
    np.testing.assert_allclose(T.scale(rand(4), np.float32(2.5), np.int32(3)), 2.5 * rand(4) + 3)
    with pytest.raises(tcl.ArgumentError, match=r"'k' of scale is int32, which 1\.5 is not"):
        T.scale(rand(4), 1.0, 1.5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((rand(2, 3),), "mm takes 2 inputs (A, B), but 1 argument was given"),
        ((rand(2, 3), rand(4, 5)), "dimension 0 of 'B' is 4, but K is 3"),
        ((rand(2, 3), rand(3)), "'B' of mm has 2 dimensions (K, N), but an array of shape (3,)"),
        ((rand(2, 3), rand(3, 4).astype("d")), "convert it with .astype('float32')"),
        ((rand(2, 3), [[1.0]]), "has to be a NumPy array, not list"),
        ((rand(2, 3), rand(3, 4).astype(">f4")), "foreign byte order"),
        ((rand(2, 3), rand(3, 4).astype("F")), "arrays of complex64 are not supported"),
    ],
)
def test_wrong_inputs(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.define(MM).mm(*arguments)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (np.empty((4, 5), np.float32), "has shape (5, 7), but an array of (4, 5) was given"),
        (np.empty((5, 7)), "is float32, but an array of float64 was given"),
        (np.broadcast_to(np.float32(0), (5, 7)), "is read-only"),
        (
            np.lib.stride_tricks.as_strided(np.zeros(20, np.float32), (5, 7), (4, 4)),
            "overlaps itself in memory",
        ),
        ([1.0], "has to be a NumPy array, not list"),
    ],
)
def test_wrong_outputs(output: Any, sentence: str) -> None:
    with pytest.raises(tcl.ArgumentError) as caught:
        tcl.define(MM).mm(rand(5, 6), rand(6, 7), outputs=(output,))
    assert sentence in str(caught.value)


def test_unknown_def() -> None:
    T = tcl.define(MM)
    with pytest.raises(AttributeError, match="no def 'mmm'; did you mean 'mm'"):
        T.mmm  # noqa: B018
    with pytest.raises(tcl.ArgumentError, match="there are: mm"):
        T("something_else")


def test_bad_options() -> None:
    for kind in (tcl.OptionsError, ValueError):
        with pytest.raises(kind, match=r"^unknown preset 'fast': use one of naive, pointwise, mlp"):
            tcl.define(MM, "fast")
    with pytest.raises(tcl.OptionsError, match=r"or MappingOptions\.from_json for JSON$"):
        tcl.MappingOptions('{"preset": "naive"}')
    with pytest.raises(tcl.OptionsError, match="not int"):
        tcl.define(MM, 3)  # type: ignore[arg-type]
    nothing = tcl.define(MM, lambda *args: None)
    with pytest.raises(tcl.OptionsError, match="factory has no options for mm"):
        nothing.mm(rand(2, 3), rand(3, 4))
    with pytest.raises(tcl.ArgumentError, match="a TC is a string"):
        tcl.define(b"x")  # type: ignore[arg-type]


def test_compile_gives_an_executor() -> None:
    A, B = rand(8, 9), rand(9, 10)
    mm = tcl.compile(MM, "mm", "naive", A, B)
    np.testing.assert_allclose(mm(A, B), A @ B, rtol=1e-5)
    with pytest.raises(tcl.ArgumentError, match="in this executor"):
        mm(rand(3, 9), B)


def test_factories_see_the_inputs() -> None:
    seen: list[Any] = []

    def factory(source: str, entry_point: str, /, *inputs: Any) -> tcl.MappingOptions:
        seen.append((source, entry_point, [i.shape for i in inputs]))
        return tcl.MappingOptions("pointwise")

    T = tcl.define(MM, factory)
    T.mm(rand(2, 3), rand(3, 4))
    T.mm(rand(2, 3), rand(3, 4))
    assert seen == [(MM, "mm", [(2, 3), (3, 4)])]
    assert tcl.make_naive_options_factory()(MM, "mm") == tcl.MappingOptions("naive")


@pytest.mark.usefixtures("searches_in_threads")
def test_a_search_from_other_options_measures_the_default_too(tmp_path: Path) -> None:
    A, B = rand(64, 64), rand(64, 64)
    config = tcl.TunerConfig().generations(1).pop_size(2).threads(1).seed(0)
    path = tmp_path / "tuned.db"
    tcl.autotune(
        MM, "mm", A, B,
        starting_options="naive", tuner_config=config, cache_filename=path, store_to_cache=True,
    )  # fmt: skip
    cache = TuningCache(path)
    (summary,) = cache.list()
    measured = {record.options for record in cache.history(summary.key)}
    assert {tcl.MappingOptions("naive").to_json(), tcl.MappingOptions("mlp").to_json()} <= measured


@pytest.mark.usefixtures("searches_in_threads")
def test_autotune_and_the_cache(tmp_path: Path) -> None:
    A, B = rand(64, 64), rand(64, 64)
    config = tcl.TunerConfig().generations(1).pop_size(3).threads(1).seed(0)
    path = tmp_path / "tuned.db"
    best = tcl.autotune(
        MM, "mm", A, B, tuner_config=config, cache_filename=path, store_to_cache=True
    )
    assert best is not None
    np.testing.assert_allclose(tcl.compile(MM, "mm", best, A, B)(A, B), A @ B, rtol=1e-5)
    # names and layout do not matter
    renamed = "def f(float(P,Q) X, float(Q,R) Y) -> (Z) {\n Z(i, j) +=! X(i, r) * Y(r, j) }"
    assert tcl.MappingOptionsCache(path).load(renamed, "f", (A, B)) == [best]
    assert tcl.make_load_from_cache_options_factory(path)(renamed, "f", A, B) == best
    assert tcl.MappingOptionsCache(path).load(MM, "mm", (A[:32], B)) == []
    again = tcl.autotune(
        MM, "mm", A, B, tuner_config=config, cache_filename=path, load_from_cache=True
    )
    assert again is not None


@pytest.mark.usefixtures("searches_in_threads")
def test_define_uses_what_was_tuned() -> None:
    A, B = rand(48, 48), rand(48, 48)
    config = tcl.TunerConfig(generations=1, population=3, threads=1, seed=0)
    best = tcl.autotune(MM, "mm", A, B, tuner_config=config, store_to_cache=True)
    executor, _ = tcl.define(MM).executor("mm", (A, B))
    assert executor.options == best


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"starting_options": "naive", "load_from_cache": True}, "ArgumentError", "not both"),
        ({"cache_filename": "x.db"}, "ArgumentError", "needs load_from_cache"),
        ({"load_from_cache": True}, "CacheError", "tune it first"),
        ({"starting_options": "nave"}, "OptionsError", "unknown preset"),
    ],
)
def test_autotune_arguments(arguments: dict[str, Any], error: str, sentence: str) -> None:
    with pytest.raises(getattr(tcl, error), match=sentence):
        tcl.autotune(MM, "mm", rand(4, 4), rand(4, 4), **arguments)


def test_assert_almost_equal() -> None:
    x = rand(10)
    tcl.assert_almost_equal(x, x + np.float32(1e-7), x, operations=10)
    with pytest.raises(AssertionError, match="largest difference"):
        tcl.assert_almost_equal(x, x + 1, x)
    with pytest.raises(AssertionError):
        tcl.assert_almost_equal(x * np.nan, x, x)


def test_no_warning_in_ordinary_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tcl.define(SOFTMAX).softmax(rand(4, 5))


@pytest.mark.parametrize("outputs", [iter([rand(5, 7)]), {"C": rand(5, 7)}, {1}, "C", 3])
def test_outputs_has_to_be_a_tuple(outputs: Any) -> None:
    with pytest.raises(tcl.ArgumentError, match=r"has to be a tuple of arrays, here \(C,\), not"):
        tcl.define(MM).mm(rand(5, 6), rand(6, 7), outputs=outputs)


@pytest.mark.parametrize("value", [10**400, 2**200, -1e300])
def test_numbers_too_large_for_their_type(value: float) -> None:
    T = tcl.define("def f(float a) -> (O) { O = 2 * a }")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tcl.ArgumentError, match="'a' of f is float32, which cannot hold"):
            T.f(value)
        assert T.f(-np.inf) == -np.inf
        assert np.isnan(T.f(np.nan))


@pytest.mark.parametrize("name", [0, None, ["mm"], ("mm",)])
def test_names_that_are_no_strings(name: Any) -> None:
    with pytest.raises(tcl.ArgumentError, match=r"selected by its name, a string, not .*: mm"):
        tcl.define(MM)[name]


def test_copies_and_pickles() -> None:
    T = tcl.define(MM, "mlp")
    A, B = rand(5, 6), rand(6, 7)
    C = T.mm(A, B)
    executor = tcl.compile(MM, "mm", "naive", A, B)
    twins: list[Any] = [copy.copy(T).mm, copy.deepcopy(T).mm, pickle.loads(pickle.dumps(T)).mm]
    twins += [pickle.loads(pickle.dumps(x)) for x in (T.mm, executor)]
    for twin in twins:
        np.testing.assert_allclose(twin(A, B), C, rtol=1e-5)
    assert repr(T.mm) == "<tcl mm(A, B) -> (C)>"


def test_a_factory_may_call_the_def_itself() -> None:
    """Of another size, that is; a lock that it takes twice would hang it for ever."""
    seen = []

    def factory(source: str, entry_point: str, /, *inputs: Any) -> tcl.MappingOptions:
        seen.append(inputs[0].shape)
        if len(inputs[0]) > 2:
            T.mm(inputs[0][:2], inputs[1])
        return tcl.MappingOptions()

    T = tcl.define(MM, factory)
    caller = threading.Thread(target=lambda: T.mm(rand(5, 6), rand(6, 7)), daemon=True)
    caller.start()
    caller.join(600)
    assert not caller.is_alive()
    assert seen == [(5, 6), (2, 6)]


def test_a_name_that_is_taken_is_reached_as_an_item() -> None:
    source = "def executor(float(N) X) -> (Y) { Y(i) = X(i) }"
    with pytest.warns(tcl.TclWarning, match=r"'executor' is taken; call this def as \['executor'"):
        T = tcl.define(source)
    np.testing.assert_array_equal(T["executor"](rand(3)), rand(3))


def test_warnings_point_at_the_user() -> None:
    calls: list[Callable[[], object]] = [
        lambda: tcl.define(ADD),
        lambda: tcl.compile(ADD, "accumulate", "naive", rand(3)),
        lambda: tcl.Tuner(ADD),
    ]
    for call in calls:
        with pytest.warns(tcl.TclWarning) as caught:
            call()
        assert [w.filename for w in caught] == [__file__]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_compiling_gives_its_memory_back() -> None:
    """llvmlite does not free its pass managers by itself: 50 KB each."""
    device = host_cpu()
    sized = infer(check(MM)["mm"], {"A": (4, 4), "B": (4, 4)})
    text = emit_program(schedule(sized, tcl.MappingOptions(), device), device).text

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(20):
        compile_object(text, device)
    before = resident()
    for _ in range(200):
        compile_object(text, device)
    assert resident() - before < 4 * 2**20


def test_an_index_out_of_range_names_its_subscripts() -> None:
    text = (
        "def f(float(N) X, int32(K) I) -> (O, int32(N) Seen) {\n"
        "    O(k) = X(0) * X(I(k))\n"
        "    Seen(I(k) + 1) +=! 1\n}"
    )
    both = text.replace("X(0)", "X(I(k) + 2)")
    x, good = rand(4), np.array([0, 1], np.int32)
    of_x = (
        "it is this subscript of f\n    2 |     O(k) = X(0) * X(I(k))\n      |" + 21 * " " + "^^^^"
    )
    of_seen = (
        f"it is this subscript of f\n    3 |     Seen(I(k) + 1) +=! 1\n      |{10 * ' '}^^^^^^^^"
    )
    for source, index, where, told in (
        (text, 9, "2:21", of_x),
        (text, 3, "3:10", of_seen),
        (both, 9, "2:14", "<string>:2:28: note: or this one"),
    ):
        bad = np.array([0, index], np.int32)
        for varying in ((), ("K",)):
            T = tcl.define(source, varying=varying)
            for _ in range(2):  # as no call before it, and as the one before
                with pytest.raises(IndexError) as found:
                    T.f(x, bad)
                (note,) = found.value.__notes__
                assert note.startswith(f"<string>:{where}: note: ") and told in note
                T.f(x, good)
        f = tcl.compile(source, "f", "naive", x, good)
        for call in (f, f.numba(), partial(tcl.reference, source, "f")):
            with pytest.raises(IndexError) as found:
                call(x, bad)
            assert found.value.__notes__ == [note]
