"""What comes from a cache never fails a call: what does not apply is passed over, and said once."""

from __future__ import annotations

import pathlib
import pickle
import shlex
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner
from cpu_kernels import cache_key

import tcl
from tcl import tuning
from tcl.cli import main
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import PRESETS
from tcl.common import warn
from tcl.executors.call_kernels import size
from tcl.selection import suggested_options as choices
from tcl.selection.best_options import DEFAULT
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict

Array = npt.NDArray[Any]
COPY = "def f(float(M, N) A) -> (B) { B(m, n) = 2 * A(m, n) }"
STREAM = tcl.MappingOptions("naive").vectorize(16).nest(0).stream()
"""For outputs whose rows lie one after the other, each at a multiple of a cache line."""
TILED = tcl.MappingOptions("naive").tile(8, 8)
NONE_OF_OURS = tcl.MappingOptions("naive").nest(1).tile(4)
"""For a nest that the def has not."""
EIGHT = '{"nests":[{"tile":[1,2,3,4,5,6,7,8]}]}'
A = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningCache:
    """The user's."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warn, "_told", set())
    return TuningCache(default_path())


def key_of(array: Array = A) -> CacheKey:
    return cache_key(size(tcl.define(COPY).definition("f"), (array,)), (array,))


def tuned(cache: TuningCache, *options: tcl.MappingOptions | str, array: Array = A) -> None:
    """As if the def had been tuned, and these were the best, in this order."""
    for rank, each in enumerate(options):
        text = each if isinstance(each, str) else each.to_json()
        found = Outcome(Verdict.CORRECT, (1e-6 * (rank + 1),))
        cache.store(key_of(array), text, found, run="r", entry="f")


def padded(array: Array) -> Array:
    """An output with room between its rows."""
    return np.zeros((array.shape[0], array.shape[1] + 3), array.dtype)[:, :-3]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "padded": padded,
    "Fortran": lambda a: np.zeros_like(a, order="F"),
    "reversed": lambda a: np.zeros_like(a)[:, ::-1],
    "every other": lambda a: np.zeros((64, 128), np.float32)[::2, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_that_the_best_options_are_not_for(cache: TuningCache, layout: str) -> None:
    tuned(cache, STREAM)
    T = tcl.define(COPY, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(T.f(A), 2 * A)
    out = LAYOUTS[layout](A)
    with pytest.raises(tcl.OptionsError, match="stream"):  # what a user gives is refused
        tcl.define(COPY, STREAM, threads=1).f(A, outputs=(out,))
    with pytest.warns(tcl.TclWarning) as caught:
        T.f(A, outputs=(out,))
    np.testing.assert_array_equal(out, 2 * A)
    (found,) = caught
    digits = key_of().digest[:10]
    assert str(found.message).startswith(
        f"cached options do not apply: rank 1 for f on float32[32,64] (key {digits} in "
        f"{cache.path}): stream: "
    )
    assert str(found.message).endswith("; the default is used")
    assert found.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        T.f(A, outputs=(out,))
        tcl.define(COPY, threads=1).f(A, outputs=(LAYOUTS[layout](A),))
        assert T.executor("f", (A,))[0].options == DEFAULT
        T.f(A)
        copy = pickle.loads(pickle.dumps(T.executor("f", (A,))[0]))
        np.testing.assert_array_equal(copy(A, outputs=(out,)), 2 * A)


def test_the_next_best_is_used(cache: TuningCache) -> None:
    tuned(cache, NONE_OF_OURS, EIGHT, TILED, "naive")
    T = tcl.define(COPY, threads=1)
    with pytest.warns(tcl.TclWarning, match=r"rank 1 for f .*\(and 1 more\); rank 3 is used$"):
        np.testing.assert_array_equal(T.f(A), 2 * A)
    assert T.executor("f", (A,))[0].options == TILED
    compiled: Any = tcl.compile(COPY, "f", None, A, threads=1)
    assert compiled.options == TILED
    assert tcl.MappingOptionsCache(cache.path).load(COPY, "f", (A,), 9, threads=1) == [
        NONE_OF_OURS,
        tcl.MappingOptions.from_json(EIGHT),
        TILED,
    ]


@pytest.mark.parametrize("place", ["{}", '{{"default":{{"tile":{}}}}}', '{{"preset":{}}}'])
@pytest.mark.parametrize(
    "value",
    [
        *("null", "NaN", "-Infinity", "1e999", "[null]", "[NaN]", "[1e300]", "9" * 5000, "{"),
        *("[" + "9" * 30 + "]", "[" * 100_000, '"\\ud800"', "true", '{"tile":[2]}', "", "[0.5]"),
    ],
    ids=lambda text: text[:12],
)
def test_options_that_are_none(cache: TuningCache, place: str, value: str) -> None:
    tuned(cache, place.format(value), TILED)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        executor, _ = tcl.define(COPY, threads=1).executor("f", (A,))
        np.testing.assert_array_equal(executor(A), 2 * A)
    (found,) = caught
    assert "do not apply: rank 1 for f" in str(found.message)
    assert executor.options == TILED


def test_options_of_a_newer_version(cache: TuningCache) -> None:
    tuned(cache, '{"preset":"mlp","warp_specialise":true}')
    with pytest.warns(tcl.TclWarning, match="warp_specialise.*; the default is used"):
        np.testing.assert_array_equal(tcl.define(COPY, threads=1).f(A), 2 * A)


def test_a_damaged_row_costs_no_other(cache: TuningCache) -> None:
    tuned(cache, STREAM, TILED)
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE results SET samples = 'no' WHERE options LIKE '%stream%'")
    db.close()
    with pytest.warns(tcl.TclWarning, match=r"f on float32\[32,64\] .*skipped") as caught:
        T = tcl.define(COPY, threads=1)
        np.testing.assert_array_equal(T.f(A), 2 * A)
        tcl.define(COPY, threads=1).f(A)
    assert len(caught) == 1
    assert T.executor("f", (A,))[0].options == TILED
    assert tcl.MappingOptionsCache(cache.path).load(COPY, "f", (A,), threads=1) == [TILED]


ENDLESS = "1" + "0" * 400
"""No float holds it."""


@pytest.mark.parametrize("samples", [f"[{ENDLESS}]", "[1e999]", "[null]", ENDLESS, b"\xff"])
def test_times_that_are_none_cost_no_other(cache: TuningCache, samples: str | bytes) -> None:
    tuned(cache, STREAM, TILED)
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE results SET samples = ? WHERE options LIKE '%stream%'", (samples,))
    db.close()
    with pytest.warns(tcl.TclWarning, match="is skipped"):
        np.testing.assert_array_equal(tcl.define(COPY, threads=1).f(A), 2 * A)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("inputs", '[[[1e999],[4],"f"]]'), ("inputs", "[1]"), ("entry", b"f")),
        *((column, b"x") for column in ("definition", "backend", "device", "codegen_version")),
    ],
)
def test_keys_that_are_none(cache: TuningCache, column: str, value: str | bytes) -> None:
    """They fail no call, and every command says so in a sentence."""
    tuned(cache, TILED)
    with sqlite3.connect(cache.path) as db:
        db.execute(f"UPDATE problems SET {column} = ?", (value,))
    db.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = tcl.define(COPY, threads=1, nearest=True).f(A[:8])
    np.testing.assert_array_equal(other, 2 * A[:8])
    done = CliRunner().invoke(main, ["cache", "list"])
    assert done.exit_code == 1 and "a key in it cannot be read" in done.output


def test_a_warning_that_is_an_error_is_one_at_each_call(cache: TuningCache) -> None:
    """What was refused is not done in silence the second time."""
    tuned(cache, EIGHT)
    T = tcl.define(
        "def f(float(N) X, float(K) W) -> (Y) { Y(n) +=! X(n + k - 1) * W(k) where n in 0:N }"
    )
    copy = tcl.define(COPY, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(tcl.TclWarning, match="terms are lost"):
                T.f(A[0], A[0, :3])
            with pytest.raises(tcl.TclWarning, match="do not apply"):
                copy.f(A)
    with pytest.warns(tcl.TclWarning, match="do not apply"):
        np.testing.assert_array_equal(copy.f(A), 2 * A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was said
        np.testing.assert_array_equal(copy.f(A), 2 * A)


def test_a_factory_knows_more_than_one_way(cache: TuningCache) -> None:
    tuned(cache, STREAM, TILED)
    factory = tcl.make_load_from_cache_options_factory(cache.path, threads=1)
    assert factory(COPY, "f", A) == STREAM
    out = padded(A)
    with pytest.warns(tcl.TclWarning, match="rank 1 for f .*; rank 2 is used"):
        tcl.define(COPY, factory, threads=1).f(A, outputs=(out,))
    np.testing.assert_array_equal(out, 2 * A)


def missing(factory: tcl.OptionsFactory, array: Array) -> list[str]:
    """What is said of calls by a factory whose cache has nothing for them; the results are right,
    and the options the default."""
    with pytest.warns(tcl.TclWarning) as caught:
        for _ in range(2):
            T = tcl.define(COPY, factory, threads=1)
            np.testing.assert_array_equal(T.f(array), 2 * array)
            T.f(array, outputs=(padded(array),))
            assert T.executor("f", (array,))[0].options == DEFAULT
    return [str(w.message) for w in caught]


def test_a_factory_without_a_file(cache: TuningCache, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    (said,) = missing(tcl.make_load_from_cache_options_factory(path), A)
    assert said == f"there is no file {path}, so the default is used for f; tune into it"
    assert not path.exists()


def test_a_factory_with_nothing_for_these_sizes(cache: TuningCache) -> None:
    tuned(cache, TILED)
    factory = tcl.make_load_from_cache_options_factory(cache.path, threads=1)
    assert factory(COPY, "f", A[:3]) is None
    (said,) = missing(factory, A[:3])
    assert f"{cache.path} has no options for f on float32[3,64], so the default is used" in said
    assert "the nearest is for f on float32[32,64])" in said
    assert f"make_load_from_cache_options_factory({str(cache.path)!r}, nearest=True)" in said
    (other,) = missing(factory, A[:5])  # of other sizes it is said, too
    assert "float32[5,64]" in other


def test_results_for_other_threads_alone_are_told_of_once(
    cache: TuningCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[CacheKey] = []
    devices = TuningCache.devices

    def asked(self: TuningCache, like: CacheKey) -> tuple[str, ...]:
        looked.append(like)
        return devices(self, like)

    monkeypatch.setattr(TuningCache, "devices", asked)
    for sizes in (A, A[:16], A[:8]):
        tuned(cache, TILED, array=sizes)
    failed = Outcome(Verdict.CORRECTNESS, message="no")
    cache.store(key_of(A[:4]), TILED.to_json(), failed, run="r", entry="f")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(tcl.define(COPY, threads=1).f(A), 2 * A)
        assert not looked  # nothing is missing
        for rows in (3, 4):  # nobody tuned these, for any number of threads
            tcl.define(COPY, threads=2).f(A[:rows])
    T = tcl.define(COPY, threads=2)
    with pytest.warns(tcl.TclWarning) as caught:
        for rows in (32, 16, 8):
            np.testing.assert_array_equal(T.f(A[:rows]), 2 * A[:rows])
        tcl.define(COPY, threads=2).f(A)
    (said,) = caught
    assert str(said.message) == (
        "f on float32[32,64] was tuned for 1 thread but not for the 2 that it may use here, so "
        "that result is not used; set threads=1 (or TCL_NUM_THREADS) to use it, or tune it for "
        "2"
    )
    assert said.filename == __file__
    assert len(looked) == 3
    monkeypatch.setattr(warn, "_told", set())
    with pytest.warns(tcl.TclWarning, match="threads 1 instead of 2"):  # which says it all
        tcl.define(COPY, threads=2, relax="threads").f(A)


def test_factories_are_for_the_threads_of_their_kernels(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCL_NUM_THREADS", "2")
    tuned(cache, TILED)
    factory = tcl.make_load_from_cache_options_factory(cache.path)
    assert factory(COPY, "f", A) is None
    assert tcl.define(COPY, factory, threads=1).executor("f", (A,))[0].options == TILED
    made: Any = tcl.compile(COPY, "f", factory, A, threads=1)
    assert made.options == TILED
    asked: list[int | None] = []

    def autotune(*given: Any, threads: int | None = None) -> tcl.MappingOptions:
        asked.append(threads)
        return TILED

    monkeypatch.setattr(tuning, "autotune", autotune)
    for settings in ({}, {"threads": 3}):
        searching = tcl.make_autotuned_options_factory(**settings)
        tcl.define(COPY, searching, threads=1).executor("f", (A,))
        searching(COPY, "f", A)
    assert asked == [1, None, 3, 3]


def test_a_factory_whose_nearest_is_for_other_threads(cache: TuningCache) -> None:
    tuned(cache, TILED)
    (said,) = missing(tcl.make_load_from_cache_options_factory(cache.path, threads=2), A)
    assert "what differs: threads" in said and "nearest=True" not in said


def test_a_factory_whose_cache_is_none(cache: TuningCache, tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    path.write_text("no database")
    (said,) = missing(tcl.make_load_from_cache_options_factory(path), A)
    assert "not a tuning cache" in said and "the default is used" in said
    assert path.read_text() == "no database"


def test_nearest_beside_a_factory_names_the_factorys(cache: TuningCache) -> None:
    factory = tcl.make_load_from_cache_options_factory(cache.path)
    with pytest.raises(tcl.ArgumentError, match=r'options_factory\("my.db", nearest=True\)'):
        tcl.define(COPY, factory, nearest=True)


def test_near_sizes_come_before_the_default(cache: TuningCache) -> None:
    tuned(cache, NONE_OF_OURS)
    tuned(cache, TILED, array=A[:16])
    T = tcl.define(COPY, threads=1, nearest=True)
    with pytest.warns(tcl.TclWarning, match=r"; rank 1 for float32\[16,64\] is used$"):
        np.testing.assert_array_equal(T.f(A), 2 * A)
    assert T.executor("f", (A,))[0].options == TILED


def test_near_options_that_outputs_do_not_allow(cache: TuningCache) -> None:
    tuned(cache, STREAM, TILED, array=A[:16])
    T, out = tcl.define(COPY, threads=1, nearest=True), padded(A)
    with pytest.warns(tcl.TclWarning) as caught:
        T.f(A, outputs=(out,))
    assert [str(w.message).partition(" ")[0] for w in caught] == ["f", "cached"]
    np.testing.assert_array_equal(out, 2 * A)
    assert T.executor("f", (A,))[0].options == TILED


def test_object_code_that_is_gone(cache: TuningCache) -> None:
    tuned(cache, TILED)
    for remove in ("objects", "grammar"):
        np.testing.assert_array_equal(tcl.define(COPY, threads=1).f(A), 2 * A)
        for path in cache.path.parent.glob(f"{remove}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    np.testing.assert_array_equal(tcl.define(COPY, threads=1).f(A), 2 * A)


def test_the_way_of_repeated_calls_asks_nobody(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(cache, NONE_OF_OURS)
    T, out = tcl.define(COPY, threads=1), padded(A)
    with pytest.warns(tcl.TclWarning):
        T.f(A, outputs=(out,))
    monkeypatch.setattr(choices.Choices, "applied", None)
    monkeypatch.setattr(TuningCache, "deciding", None)
    for _ in range(3):
        T.f(A, outputs=(padded(A),))


def written(folder: Path) -> Path:
    file = folder / "copy.tc"
    file.write_text(COPY)
    return file


def test_run_with_a_cache(cache: TuningCache, tmp_path: Path) -> None:
    named = TuningCache(tmp_path / "named.db")
    tuned(named, NONE_OF_OURS, TILED)
    line = ["run", str(written(tmp_path)), "--sizes", "M=32,N=64", "--threads", "1"]
    before = CliRunner().invoke(main, line)
    assert before.exit_code == 0 and "with the default options" in before.output
    done = CliRunner().invoke(main, [*line, "--cache", str(named.path)])
    assert done.exit_code == 0, done.output
    assert "do not apply: rank 1 for f" in done.output and "; rank 2 is used" in done.output
    assert f"with options {TILED}" in done.output and "agrees with the reference" in done.output
    other = [*line[:3], "M=8,N=64", *line[4:], "--cache", str(named.path)]
    for wrong, code, sentence in (
        (other, 1, "has no options for f M=8 N=64"),
        ([*line, "--cache", str(tmp_path / "none.db")], 1, "does not exist"),
        ([*line, "--cache", str(named.path), "--options", PRESETS[0]], 2, "give one"),
    ):
        refused = CliRunner().invoke(main, wrong)
        assert refused.exit_code == code and sentence in refused.output, refused.output


@pytest.mark.usefixtures("searches_in_threads")
@pytest.mark.parametrize("own", [True, False])
def test_what_is_said_after_tuning_can_be_typed(
    cache: TuningCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    """The two lines are run as they are."""
    file, mine = written(tmp_path), cache.path if own else tmp_path / "it's mine.db"
    where = [] if own else ["--cache", str(mine)]
    quick = ["--generations", "1", "--population", "3", "--seed", "1", "--threads", "1", "-j", "1"]
    monkeypatch.setenv("TCL_NUM_THREADS", "2")
    fixed = ["--fix", "s0.lanes=4"]  # so that the default is not the winner
    done = CliRunner().invoke(
        main, ["tune", str(file), "--sizes", "M=8,N=16", *where, *quick, *fixed]
    )
    assert done.exit_code == 0, done.output
    assert f"saved in {mine}; {'programs now use it' if own else 'to use it'}" in done.output
    shown = {
        name: next(x for x in done.output.splitlines() if name in x).partition(":")[2].strip()
        for name in ("  for:", "in Python:", "on the command line:")
    }
    device = device_identity(host_cpu())
    assert shown["  for:"] == f"float32[8,16] (row-major), 1 thread, on {device}"
    options = tcl.MappingOptionsCache(mine).load(COPY, "f", (A[:8, :16].copy(),), threads=1)
    program, *arguments = shlex.split(shown["on the command line:"])
    typed = CliRunner().invoke(main, arguments)
    assert program == "tcl" and typed.exit_code == 0, typed.output
    assert f"with options {options[0]}" in typed.output
    made = eval(shown["in Python:"], {"tcl": tcl, "pathlib": pathlib})
    assert (
        options[0] != DEFAULT and made.executor("f", (A[:8, :16].copy(),))[0].options == options[0]
    )


def test_what_cannot_be_compiled_is_passed_over_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is everybody's: what is wrong with that is raised."""
    monkeypatch.setattr(warn, "_told", set())
    entry = choices.Suggested(TILED.to_json(), "0123456789", "float32[4]", 1)
    found = choices.Choices("f", "x.db", (entry,))

    def make(options: tcl.MappingOptions) -> str:
        if options == TILED:
            raise tcl.CompileError("LLVM refuses it")
        return options.preset

    with pytest.warns(tcl.TclWarning, match=r"\(key 0123456789 in x\.db\): LLVM refuses it; the d"):
        assert found.applied(make) == (DEFAULT, "mlp")
    with pytest.raises(tcl.CompileError):
        choices.applied(TILED, make)

    def never(options: tcl.MappingOptions) -> str:
        raise tcl.OptionsError(f"not {options.preset}")

    with pytest.raises(tcl.OptionsError, match="not mlp"):
        found.applied(never)


def test_the_default_is_used_without_entries() -> None:
    found = choices.Choices("f", "nowhere", ())
    assert found.preferred is None
    assert found.applied(lambda options: options.preset)[1] == "mlp"
