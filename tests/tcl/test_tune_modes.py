"""``TCL_TUNE_MODE`` and ``tune_mode=``: which there are, and what is done on first use, once."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcl
from tcl import first_use
from tcl.codegen.options.options import MappingOptions
from tcl.common import warn
from tcl.selection.best_options import DEFAULT, Query
from tcl.selection.tune_modes import VARIABLE, TuneMode, tune_modes
from tcl.tuner.cache import first_uses
from tcl.tuner.cache.first_uses import FirstUse
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.prune import PruneRules, prune
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.measure.reliability import share_of_others
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict
from tcl.tuner.model import lookup

MM = """
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def mm_grad(float(M, K) A, float(K, N) B) -> (D) { D(m, k) = A(m, k) + B(m, k) }
"""
A = np.arange(64, dtype=np.float32).reshape(8, 8)
OTHER = MappingOptions("pointwise").tile(4, 4)
CHOICES = (
    "a mode is one of off, predict, auto, trimmed, all, a preset (naive, pointwise, mlp, conv), "
    "or a list of presets"
)
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(autouse=True)
def _nobody_says_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And there is no model."""
    monkeypatch.delenv("TCL_TUNE_MODE")
    monkeypatch.setattr(lookup, "SHIPPED", tmp_path)


@dataclass
class Searches:
    """In the place of the tuner: what it was asked for, and what it finds."""

    finds: MappingOptions | None = OTHER
    message: str = "no way"
    raises: BaseException | None = None
    """What ends it."""
    others: float = 0.0
    """The share of the cores that other processes use meanwhile."""
    seconds: float = 0.0
    keys: list[Any] = field(default_factory=list)
    starts: list[tuple[MappingOptions, ...]] = field(default_factory=list)

    def __getitem__(self, type_: Any) -> Any:
        return self._make

    def _make(self, backend: Any, space: Any, **settings: Any) -> Any:
        self.keys.append(settings["key"])

        def tune(start: Sequence[MappingOptions]) -> Any:
            self.starts.append(tuple(start))
            time.sleep(self.seconds)
            if self.finds is not None:
                outcome = Outcome(Verdict.CORRECT, (1e-9,))
                settings["cache"].store(settings["key"], self.finds.to_json(), outcome, run="r")
            if self.raises is not None:
                raise self.raises
            meanwhile = Conditions(len(self.keys), 2.0, self.others)
            outcome = Outcome(Verdict.RUNTIME, message=self.message, conditions=meanwhile)
            return SimpleNamespace(options=self.finds, history=[SimpleNamespace(outcome=outcome)])

        return SimpleNamespace(tune=tune)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    found = Searches()
    for search in ("Tuner", "BriefSearch"):
        monkeypatch.setattr(first_use, search, found)
    monkeypatch.setattr(first_use, "share_of_others", share_of_others)  # of what is made up
    return found


def options_of(mode: Any, name: str = "mm") -> MappingOptions:
    """What a call runs with; its result is right."""
    definitions = tcl.define(MM, threads=1, tune_mode=mode)
    expected = A @ A if name == "mm" else A + A
    np.testing.assert_array_equal(definitions[name](A, A), expected)
    return definitions.executor(name, (A, A))[0].options


@pytest.mark.parametrize("mode", ["auto", "trimmed", ["naive", "mlp"]])
@pytest.mark.parametrize("varying", [(), ("M",)])
def test_empty_arrays_are_not_tuned(
    mode: Any, varying: tuple[str, ...], searches: Searches
) -> None:
    # The first batch of a service may well be empty: the first one that is not is tuned for.
    t = tcl.define(MM, threads=1, tune_mode=mode, varying=varying)
    assert np.shape(t.mm(np.zeros((0, 8), np.float32), A)) == (0, 8)
    np.testing.assert_array_equal(t.mm(np.zeros((8, 0), np.float32), A[:0]), np.zeros((8, 8)))
    assert searches.keys == []
    b = np.ones((20, 8), np.float32)
    np.testing.assert_array_equal(t.mm(b, A), b @ A)
    sizes = "16..255" if varying else "20"
    assert [key.sizes for key in searches.keys] == [f"float32[{sizes},8] float32[8,8]"]


@pytest.mark.parametrize(
    ("given", "modes"),
    [
        (None, {"mm": "predict"}),
        ("all", {"mm": "all"}),
        (" conv ", {"mm": "conv"}),
        ("[mlp, conv,mlp]", {"mm": "mlp,conv"}),
        ("mlp,conv", {"mm": "mlp,conv"}),
        (["mlp"], {"mm": "mlp"}),
        (("mlp", "naive"), {"mm": "mlp,naive"}),
        ({"mm": "off"}, {"mm": "off", "mm_grad": "predict"}),
        ({"mm": ["naive"], "mm_grad": "auto"}, {"mm": "naive", "mm_grad": "auto"}),
    ],
)
def test_modes(given: Any, modes: dict[str, str]) -> None:
    found = tune_modes(given, ("mm", "mm_grad"))
    assert {name: str(found.mode_of(name)) for name in modes} == modes


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("", {"mm": "predict"}),
        (" auto ", {"mm": "auto"}),
        ("mm=all; mm_grad = [mlp,conv] ; off", {"mm": "all", "mm_grad": "mlp,conv", "f": "off"}),
        ("other=all", {"mm": "predict"}),
    ],
)
def test_modes_of_the_environment(
    text: str, modes: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCL_TUNE_MODE", text)
    found = tune_modes(None, ("mm", "mm_grad"))
    assert {name: str(found.mode_of(name)) for name in modes} == modes
    assert str(tune_modes("trimmed", ("mm",)).mode_of("mm")) == "trimmed"  # the argument says more


_UNKNOWN = "names the unknown tune mode"


class Env(str):
    """A mode that the environment gives."""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("atuo", f"tune_mode {_UNKNOWN} 'atuo'; did you mean auto? {CHOICES}"),
        ("", f"tune_mode {_UNKNOWN} ''; {CHOICES}"),
        (3, f"tune_mode {_UNKNOWN} 3; {CHOICES}"),
        ([], f"tune_mode gives an empty list; {CHOICES}"),
        (["mlp", "cnov"], f"tune_mode {_UNKNOWN} 'cnov'; did you mean conv? {CHOICES}"),
        ("mlp,auto", f"'auto' in the list that tune_mode gives is not a preset; {CHOICES}"),
        ({"mm": "of"}, f"tune_mode {_UNKNOWN} 'of' for mm; did you mean off? {CHOICES}"),
        ({"mm": ()}, f"tune_mode gives an empty list for mm; {CHOICES}"),
        (Env("autoo"), f"{VARIABLE} {_UNKNOWN} 'autoo'; did you mean auto? {CHOICES}"),
        (Env("mm=fast"), f"{VARIABLE} {_UNKNOWN} 'fast' for mm; {CHOICES}"),
        (Env("off;all"), f"{VARIABLE} gives two modes for all defs: 'off;all'"),
        (Env("mm=off;mm=all"), f"{VARIABLE} gives two modes for mm: 'mm=off;mm=all'"),
        (
            Env("m m=off"),
            f"{VARIABLE}: 'm m' is not the name of a def; write MODE, or DEF=MODE, "
            "separated by semicolons",
        ),
        (Env("off;"), f"{VARIABLE} {_UNKNOWN} ''; {CHOICES}"),
    ],
)
def test_an_unknown_mode_is_a_value_error(
    given: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(given, Env):
        monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared as a whole
        tcl.define(MM, tune_mode=None if isinstance(given, Env) else given)
    assert str(error.value) == message
    assert isinstance(error.value, tcl.ArgumentError)


def test_a_def_that_is_mistyped_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_TUNE_MODE", "mmm=all;softmax=off")  # the other one is of another text
    monkeypatch.setattr("tcl.common.warn._told", set())
    with pytest.warns(tcl.TclWarning) as caught:
        tune_modes(None, ("mm", "mm_grad"))
        tune_modes(None, ("mm", "mm_grad"))
    assert [str(w.message) for w in caught] == [
        "TCL_TUNE_MODE names mmm, but this text has no such def; did you mean 'mm'?"
    ]


def test_what_contradicts_itself() -> None:
    with pytest.raises(tcl.ArgumentError) as error:
        tcl.define(MM, tune_mode={"mm_grd": "off"})
    assert str(error.value) == ("tune_mode names the unknown def 'mm_grd'; did you mean 'mm_grad'?")
    for other, said in (({"options": "naive"}, "options"), ({"nearest": True}, "nearest")):
        with pytest.raises(tcl.ArgumentError) as error:
            tcl.define(MM, tune_mode="auto", **other)
        assert str(error.value) == (
            "tune_mode applies only if no options are given or known; leave out tune_mode or "
            f"{said}"
        )


@pytest.mark.parametrize("mode", [None, "off", "predict"])
def test_nothing_is_measured(mode: str | None, searches: Searches) -> None:
    assert options_of(mode) == DEFAULT
    assert not searches.keys
    assert not default_path().exists()


@pytest.mark.parametrize("mode", ["auto", "trimmed", "all"])
def test_a_search_on_first_use_is_made_once(mode: str, searches: Searches) -> None:
    assert options_of(mode) == OTHER
    assert options_of(mode) == OTHER
    assert len(searches.keys) == 1
    assert options_of("off") == OTHER  # what is known is used
    assert options_of(mode, "mm_grad") == OTHER
    assert len(searches.keys) == 2 and searches.keys[0] != searches.keys[1]
    assert searches.starts[0][0] == DEFAULT
    tcl.define(MM, threads=1, tune_mode=mode).mm(A[:4], A)
    assert len(searches.keys) == 3


def test_a_better_search_is_made_after_a_lesser_one(searches: Searches) -> None:
    for mode, count in (("auto", 1), ("trimmed", 2), ("auto", 2), ("all", 3), ("trimmed", 3)):
        options_of(mode)
        assert len(searches.keys) == count


def test_what_was_tuned_by_hand_is_used(searches: Searches) -> None:
    options_of("auto")
    key = searches.keys[0]
    best = MappingOptions("naive")
    default_path().unlink()
    TuningCache(default_path()).store(
        key, best.to_json(), Outcome(Verdict.CORRECT, (1.0,)), run="h"
    )
    assert options_of("all") == best
    assert len(searches.keys) == 1


def test_the_environment(searches: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_TUNE_MODE", "mm=auto;off")
    assert options_of(None, "mm_grad") == DEFAULT and not searches.keys
    assert options_of(None) == OTHER and len(searches.keys) == 1
    monkeypatch.setenv("TCL_TUNE_MODE", "auto")
    executor = tcl.compile(MM, "mm_grad", None, A, A, threads=1)
    assert executor.options == OTHER
    assert tcl.compile(MM, "mm_grad", "naive", A, A, threads=1).options == MappingOptions("naive")


def test_forward_and_backward_never_share_winners(searches: Searches) -> None:
    options_of("auto")
    searches.finds = MappingOptions("naive")
    assert options_of("auto", "mm_grad") == MappingOptions("naive")
    assert options_of("auto") == OTHER


def test_nothing_that_works_is_remembered(searches: Searches) -> None:
    searches.finds = None
    with pytest.warns(tcl.TclWarning) as caught:
        assert options_of("auto") == DEFAULT
        assert options_of("auto") == DEFAULT
    assert [str(w.message) for w in caught] == [
        "no candidate of mode auto works for mm on float32[8,8] float32[8,8], so the default is "
        "used: no way"
    ]
    assert len(searches.keys) == 1


@pytest.mark.parametrize("mode", ["auto", "trimmed"])
def test_a_process_that_cannot_start_says_nothing_of_a_def(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/nowhere/python")
        with pytest.warns(tcl.TclWarning, match="^mm on .* cannot be tuned, so the default is"):
            assert options_of(mode) == DEFAULT
    assert TuningCache(default_path()).list() == ()


def test_what_is_tuned_by_hand_after_nothing_worked(searches: Searches) -> None:
    searches.finds = None
    with pytest.warns(tcl.TclWarning, match="^no candidate of mode auto works for mm_grad on "):
        options_of("auto", "mm_grad")
    cache, key = TuningCache(default_path()), searches.keys[0]
    cache.store(key, OTHER.to_json(), Outcome(Verdict.CORRECT, (1.0,)), run="by hand")
    assert options_of("auto", "mm_grad") == OTHER and len(searches.keys) == 1


def test_what_is_pruned_is_searched_again(searches: Searches) -> None:
    options_of("auto")
    prune(TuningCache(default_path()), PruneRules())
    assert options_of("auto") == OTHER and len(searches.keys) == 2


def test_a_pinned_choice_that_does_not_apply_is_remembered(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refusal(query: Any, options: MappingOptions) -> str:
        asked.append(options)
        return f"{options.preset} is not for this"

    monkeypatch.setattr(Query, "refusal", refusal)
    for mode, said in (
        (["conv", "naive"], "conv,naive works for mm on float32[8,8] float32[8,8], so the default "
         "is used: conv: conv is not for this; naive: naive is not for this"),
        ("conv", "conv works for mm on float32[8,8] float32[8,8], so the default is used: conv: "
         "conv is not for this"),
    ):  # fmt: skip
        asked.clear()
        with pytest.warns(tcl.TclWarning) as caught:
            assert options_of(mode) == DEFAULT
            assert options_of(mode) == DEFAULT
        assert [str(w.message) for w in caught] == [f"no candidate of mode {said}"]
        assert len(asked) == (2 if isinstance(mode, list) else 1)
    assert not searches.keys


def test_a_single_preset_is_not_measured(searches: Searches) -> None:
    assert options_of("naive") == MappingOptions("naive")
    assert options_of(["pointwise"]) == MappingOptions("pointwise")
    assert not searches.keys
    assert options_of("off") == DEFAULT  # it is no result


def test_a_list_is_measured_once_and_holds_whatever_else_is_known(searches: Searches) -> None:
    options_of("auto")
    searches.finds = MappingOptions("naive")
    assert options_of(["mlp", "naive"]) == MappingOptions("naive")
    assert options_of("mlp,naive") == MappingOptions("naive")
    assert len(searches.keys) == 2
    assert searches.starts[1] == (MappingOptions("mlp"), MappingOptions("naive"))


@pytest.mark.parametrize("raised", [KeyboardInterrupt, TimeoutError])
def test_what_a_signals_handler_raises_ends_a_search_that_is_made_again(
    raised: type[BaseException], searches: Searches
) -> None:
    searches.raises = raised()
    with pytest.raises(raised):
        options_of("auto")
    searches.raises = None
    assert options_of("auto") == OTHER  # by other definitions, as in another process
    assert options_of("auto") == OTHER
    assert len(searches.keys) == 2


def test_what_was_found_beside_other_processes_is_found_once_more(searches: Searches) -> None:
    searches.others = 0.5
    assert [options_of("auto") for _ in range(3)] == [OTHER] * 3
    assert len(searches.keys) == 2


@pytest.mark.parametrize("what", ["torch.compile traces it", "a CUDA graph is captured"])
def test_never_while_calls_are_recorded(
    what: str, searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "recording", lambda: what)
    with pytest.raises(tcl.ArgumentError) as error:
        options_of("auto")
    assert str(error.value) == (
        "mm on float32[8,8] float32[8,8] would be tuned now (mode auto), but nothing can be "
        f"measured while {what}; call it once before, tune it with tcl.autotune, or use "
        "tune_mode='off'"
    )
    assert not searches.keys
    monkeypatch.undo()


def test_what_is_known_may_be_used_while_calls_are_recorded(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    options_of("auto")
    monkeypatch.setattr(first_use, "recording", lambda: "JAX traces it")
    assert options_of("auto") == OTHER


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of its own tracer
def test_recordings_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.fx.experimental.proxy_tensor")
    assert first_use.recording() is None
    # No longer than that: torch's tracers note, once, which functions they know.
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        assert first_use.recording() == "torch.compile traces it"
    seen = []

    def traced(x: Any) -> Any:
        seen.append(first_use.recording())
        return x + 1

    torch.fx.experimental.proxy_tensor.make_fx(traced)(torch.ones(2))
    torch.jit.trace(traced, (torch.ones(2),), check_trace=False)
    assert seen == ["make_fx records calls", "torch.jit.trace records calls"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert first_use.recording() == "a CUDA graph is captured"


def test_recordings_of_jax() -> None:
    jax = pytest.importorskip("jax")
    seen = []

    def traced(x: Any) -> Any:
        seen.append(first_use.recording())
        return x

    jax.jit(traced)(1.0)
    assert (seen, first_use.recording()) == (["JAX traces it"], None)


def test_nothing_is_searched_for_that_cannot_be_kept(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warn, "_told", set())
    monkeypatch.setattr(first_use, "TuningCache", partial(TuningCache, patience=0.1))
    TuningCache(default_path()).check_writable()
    with closing(sqlite3.connect(default_path(), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.warns(tcl.TclWarning, match="is not tuned, and the default is used") as caught:
            assert options_of("auto") == DEFAULT
        assert options_of("auto") == DEFAULT
    assert len(caught) == 1 and not searches.keys
    assert options_of("auto") == OTHER


def test_what_is_found_is_used_also_where_it_cannot_be_kept(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store(cache: TuningCache, key: CacheKey, entry: FirstUse, instead_of: str = "") -> None:
        if instead_of:  # the search has ended
            raise tcl.CacheError("the disk is full")

    monkeypatch.setattr(warn, "_told", set())
    monkeypatch.setattr(first_uses, "store", store)
    with pytest.warns(tcl.TclWarning) as caught:
        assert options_of("auto") == OTHER
    assert [str(w.message) for w in caught] == [
        "the result for mm cannot be saved, so the next process searches again: the disk is full"
    ]


def test_threads_of_one_process_wait_for_each_other(searches: Searches) -> None:
    searches.seconds = 0.3
    found: list[MappingOptions] = []
    threads = [threading.Thread(target=lambda: found.append(options_of("auto"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [OTHER] * 3 and len(searches.keys) == 1


PROCESS = """
import sys, time
import test_tune_modes as t
from tcl import first_use
found = t.Searches(seconds=1.0)
first_use.Tuner = first_use.BriefSearch = found
t.options_of("auto")
print(len(found.keys))
"""


def test_two_processes_tune_once(tmp_path: Any) -> None:
    from places import ROOT

    folders = [str(ROOT / "tests" / "tcl"), str(ROOT / "tests" / "support")]
    code = f"import sys; sys.path[:0] = {folders}\n{PROCESS}"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(each.communicate()[0].strip() for each in running)
    assert said == ["0", "1"]


def test_more_threads_than_cores_is_a_warning(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise tcl.ArgumentError("there are too few cores")

    monkeypatch.setattr(searches, "_make", refused)
    with pytest.warns(tcl.TclWarning) as caught:
        assert options_of("auto") == DEFAULT
    assert [str(w.message) for w in caught] == [
        "mm on float32[8,8] float32[8,8] cannot be tuned, so the default is used: there are too "
        "few cores"
    ]


def test_a_copy_has_the_mode() -> None:
    definitions = tcl.define(MM, tune_mode={"mm": ["naive"]})
    for each in (definitions, definitions.mm):
        copied = pickle.loads(pickle.dumps(each))
        assert copied._kernels.modes.mode_of("mm") == TuneMode("", ("naive",))


def test_a_real_list() -> None:
    found = options_of(["naive", "pointwise"])
    assert found in (MappingOptions("naive"), MappingOptions("pointwise"))
    (summary,) = TuningCache(default_path()).list()
    assert summary.entry == "mm" and 2 <= summary.measured <= 6  # some twice: in the finals
    entries = first_uses.load(TuningCache(default_path()), summary.key)
    assert [(e.mode, e.winner) for e in entries] == [("naive,pointwise", found.to_json())]


@pytest.mark.slow
def test_a_real_search() -> None:
    found = options_of("auto")
    (summary,) = TuningCache(default_path()).list()
    assert summary.entry == "mm" and summary.measured > 2
    assert options_of("auto") == found


FEW_FILES = """
import resource
import warnings
import numpy as np
import tcl
T = tcl.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }")
resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert (T.mm(np.ones((8, 8), "f"), np.ones((8, 8), "f")) == 8).all()
print(*(w.message for w in caught))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of files are POSIX")
def test_too_few_files_may_be_open_for_a_search(tmp_path: Any) -> None:
    environment = {**os.environ, "TCL_TUNE_MODE": "auto", "TCL_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", FEW_FILES]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mm ") and "the default is used: " in done.stdout
    assert "Too many open files" in done.stdout
