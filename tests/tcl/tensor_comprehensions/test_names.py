"""The original's names: what its setters and switches come to, what is noted, what is refused."""

from __future__ import annotations

import inspect
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import tcl
import tcl.tensor_comprehensions as tc
import tcl.tensor_comprehensions.tclib as tclib
from tcl.cli.docs import pages, sections
from tcl.tensor_comprehensions import switches
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.events import Candidate, Decision
from tcl.tuner.run.result import TuningResult

ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"
A, B = torch.arange(10.0), torch.ones(10)


@pytest.fixture(autouse=True)
def _as_at_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(switches.state, "noted", set())
    yield
    tc.SILENT = False
    for name in (*switches.STAGES, "logtostderr", "debug_tuner"):
        getattr(tc, name)(False)
    assert switches._shown == {}


# --- options ---

SETTERS: dict[str, tuple[Any, Any]] = {
    "tile": ([8, 4], "8"),
    "scheduleFusionStrategy": ("Max", "Most"),
    "outerScheduleFusionStrategy": ("Min", 3),
    "intraTileScheduleFusionStrategy": ("Preserve3Coincident", "max"),
    "mapToBlocks": ([256, 8], 256),
    "mapToThreads": ((32, 4, 1), [32, -1]),
    "unroll": (128, 1.5),
    "maxSharedMemory": (32768, "32 KiB"),
    "useSharedMemory": (True, "yes"),
    "usePrivateMemory": (False, None),
    "unrollCopyShared": (1, 2),
    "useReadOnlyCache": (True, [True]),
    "fixParametersBeforeScheduling": (False, "no"),
    "matchLibraryCalls": (True, 1.0),
}
"""Setter of ``MappingOptions`` → a value that it takes, and one that it refuses."""

SEARCH: dict[str, tuple[Any, Any]] = {
    "generations": (3, 0),
    "pop_size": (5, "5"),
    "crossover_rate": (70, 101),
    "mutation_rate": (20, -1),
    "number_elites": (4, 1.5),
    "threads": (2, "all"),
    "devices": ("0,1", "first"),
    "tuner_min_launch_total_threads": (64, -1),
    "logtostderr": (True, "yes"),
    "stderrthreshold": (1, 4),
}
"""Of ``TunerConfig``, likewise."""


def setters(kind: type) -> set[str]:
    members = inspect.getmembers(kind, inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")} - {"serialize"}


def test_every_setter_is_tried() -> None:
    assert set(SETTERS) == setters(tc.MappingOptions)
    assert set(SEARCH) == setters(tc.TunerConfig)


EACH: list[tuple[type, str, Any, Any]] = [
    *((tc.MappingOptions, name, *values) for name, values in SETTERS.items()),
    *((tc.TunerConfig, name, *values) for name, values in SEARCH.items()),
]
each = pytest.mark.parametrize(
    ("kind", "name", "good", "bad"), EACH, ids=lambda v: v if isinstance(v, str) else ""
)


def _row(kind: str, name: str) -> str:
    """What the page says of a setter."""
    lines = sections(pages()["original"])[kind].splitlines()
    (row,) = (x for x in lines if f"`{name}`" in x.split(" | ")[0] and x.startswith("| "))
    return row.split(" | ", 1)[1]


@each
def test_setters_change_the_object_and_note_what_the_page_says(
    kind: Callable[[], Any], name: str, good: Any, bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    before, made = _value(kind()), kind()
    for _ in range(2):
        assert getattr(made, name)(good) is made
    title = type(made).__name__
    notes = [r.getMessage() for r in caplog.records if f"{title}.{name} " in r.getMessage()]
    if _row(title, name).startswith("ignored with a note"):
        assert len(notes) == 1 and "changes nothing here" in notes[0]
        assert _value(made) == before
    else:
        assert notes == []
        assert _value(made) != before


def _value(made: Any) -> Any:
    return str(made) if isinstance(made, tc.MappingOptions) else (made.config, made.level)


@each
def test_setters_refuse_other_values_in_a_sentence(
    kind: Callable[[], Any], name: str, good: Any, bad: Any
) -> None:
    with pytest.raises(tcl.TclError, match=name):
        getattr(kind(), name)(bad)


def test_what_options_come_to() -> None:
    made = tc.MappingOptions("naive").tile([2, 8]).scheduleFusionStrategy("Max")
    assert made.options == tcl.MappingOptions("naive").tile(2, 8).fuse(True)
    made.outerScheduleFusionStrategy("Min")
    assert made.options == tcl.MappingOptions("naive").tile(2, 8).fuse(False)
    made.outerScheduleFusionStrategy("Preserve3Coincident")
    assert made.options == tcl.MappingOptions("naive").tile(2, 8)
    assert tcl.MappingOptions.from_json(made.serialize().decode()) == made.options
    assert str(tc.MappingOptions()) == str(tc.MappingOptions("naive"))
    with pytest.raises(RuntimeError, match="unknown preset 'fast'"):
        tc.MappingOptions("fast")
    with pytest.raises(RuntimeError, match="options have to be MappingOptions or 'naive'"):
        tc.compile(ADD, "add", None, A, B)  # type: ignore[arg-type]


def test_what_a_search_is_told() -> None:
    made = tc.TunerConfig().pop_size(6).generations(2).threads(3)
    made.number_elites(6)
    made.crossover_rate(50)
    expected = tcl.TunerConfig(population=6, generations=2, threads=3, crossover_rate=50, elites=3)
    assert made.config == expected
    assert tc.TunerConfig(pop_size=6, number_elites=2).config.settings.elites == 2
    assert tc.TunerConfig().config == tcl.TunerConfig()
    assert (made.level, made.stderrthreshold(2).level) == (None, logging.ERROR)
    with pytest.raises(RuntimeError, match="there is no setting 'population'"):
        tc.TunerConfig(population=6)


# --- switches ---


def test_a_dump_is_printed_when_a_kernel_is_compiled(capfd: pytest.CaptureFixture[str]) -> None:
    tc.dump_cuda(True)
    tc.compile(ADD, "add", "naive", A, B)
    assert "define i32 @tcl_kernel" in capfd.readouterr().err
    tc.dump_cuda(False)
    tc.compile(ADD, "add", "naive", A, B)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("switch", "part"),
    [
        ("debug_lang", "i  0:10  10 values"),
        ("debug_halide", "C(s0.i) = (A(s0.i) + B(s0.i))"),
        ("debug_tc_mapper", "naive"),
        ("dump_cuda", "define i32 @tcl_kernel"),
        ("dump_ptx", "tcl_kernel:"),
    ],
)
def test_assigning_is_switching(switch: str, part: str, capfd: pytest.CaptureFixture[str]) -> None:
    for module in (tc, tclib):
        setattr(module, switch, True)
        tc.define(ADD, tc.make_naive_options_factory()).add(A, B)
        printed = capfd.readouterr().err
        assert f"add, N=10: {switches.STAGES[switch]}\n" in printed
        assert part in printed
        setattr(module, switch, False)
        assert callable(getattr(module, switch))
    tc.compile(ADD, "add", "naive", A, B)
    assert capfd.readouterr().err == ""


def test_implicit_compilation_is_logged_unless_silent(capfd: pytest.CaptureFixture[str]) -> None:
    tc.logtostderr(True)
    tc.define(ADD, tc.make_naive_options_factory()).add(A, B)
    said = capfd.readouterr().err
    assert re.search(r"add is compiled for .*\(10,\), \(10,\)\nadd was compiled in \d+ ms\n", said)
    tc.SILENT = True
    assert tc.SILENT is True
    tc.define(ADD, tc.make_naive_options_factory()).add(A, B)
    assert capfd.readouterr().err == ""


def test_compilers_and_their_flags_are_noted(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        tc.cuda_compiler("llvm")
        tc.llvm_flags("-O3")
        tc.nvcc_flags("--use_fast_math")
    found = [r.getMessage().split()[0] for r in caplog.records]
    assert found == ["cuda_compiler", "llvm_flags", "nvcc_flags"]


def test_a_search_is_shown_where_that_is_asked_for(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    def autotune(*given: Any, progress: bool | None, **settings: Any) -> None:
        told.append(progress)
        logging.getLogger("tcl.tuning").info("generation 1")

    monkeypatch.setattr(tcl, "autotune", autotune)
    tuner, config = tc.Tuner(ADD), tc.TunerConfig()

    def shown() -> str:
        assert str(tuner.tune("add", (A, B), "naive", config)) == str(tc.MappingOptions("naive"))
        return capfd.readouterr().err

    assert shown() == ""
    tc.debug_tuner(True)
    assert shown() == "generation 1\n"
    tc.logtostderr(True)
    assert shown().startswith("generation 1\nno candidate works for add")
    tc.debug_tuner(False)
    tc.logtostderr(False)
    config.logtostderr(True)
    assert shown().startswith("generation 1\n")
    config.stderrthreshold(3)
    tc.SILENT = True
    assert shown() == ""
    assert told == [None, False, False, False, False]


def test_a_note_is_seen_where_nothing_is_configured() -> None:
    program = """
import sys
import tcl.tensor_comprehensions as tc
for _ in range(2):
    tc.MappingOptions("naive").mapToBlocks([1]).mapToThreads([1])
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"  # it is imported with the first tensor
    notes = done.stderr.splitlines()
    assert [n.partition(" changes nothing here: ")[0] for n in notes] == [
        "MappingOptions.mapToBlocks",
        "MappingOptions.mapToThreads",
    ]


@pytest.mark.parametrize("name", [*switches.SWITCHES, "SILENT"])
def test_switches_refuse_what_is_none_of_their_values(name: str) -> None:
    with pytest.raises(RuntimeError, match=name):
        setattr(tc, name, 7)


def test_every_name_is_on_the_page() -> None:
    page = pages()["original"]
    for name in {*tc.__all__, *tclib.__all__, "SILENT"}:
        assert re.search(rf"`(tclib\.)?{name}`|## {name}\n", page), name
        assert hasattr(tc, name) or hasattr(tclib, name)


def test_the_programs_on_the_page_run() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for program in re.findall(r"```python\n(.*?)```", pages()["original"], re.DOTALL):
        exec(program, names)  # defines what the next one uses


# --- errors ---


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "give either starting_options= or load_from_cache=True"),
        (
            {"starting_options": "naive", "load_from_cache": True, "cache_filename": "x"},
            "give either",
        ),
        (
            {"starting_options": "naive", "cache_filename": "x"},
            "cache_filename needs load_from_cache=True or store_to_cache=True",
        ),
        ({"starting_options": "naive", "store_to_cache": True}, "need cache_filename="),
        ({"load_from_cache": True, "cache_filename": "x"}, "x has no options for add on inputs"),
    ],
)
def test_contradictions_are_assertions(settings: dict[str, Any], sentence: str) -> None:
    for caught in (AssertionError, RuntimeError, tcl.ArgumentError):
        with pytest.raises(caught, match=sentence):
            tc.autotune(ADD, "add", A, B, **settings)


def test_a_factory_without_options_is_an_assertion() -> None:
    T = tc.define(ADD, lambda *given: None)
    with pytest.raises(AssertionError, match=r"has no options for add on inputs of .*\(10,\)"):
        T.add(A, B)


def test_a_cache_without_a_name_is_empty() -> None:
    assert tc.MappingOptionsCache("").load(ADD, "add", (A, B), 1) == []


def test_other_mistakes_are_errors_of_the_run_time() -> None:
    with pytest.raises(RuntimeError, match="type"):
        tc.define("def f(int(N) X) -> (Y) { Y(i) = X(i) }", tc.make_naive_options_factory())
    with pytest.raises(RuntimeError, match="has shape"):
        tc.compile(ADD, "add", "naive", A, B)(A[:5], B[:5])
    with pytest.raises(RuntimeError, match="inputs have to be a tuple of tensors, not"):
        tclib.compile(ADD, "add", A, "naive")
    with pytest.raises(RuntimeError, match="mapping_options_factory is called with"):
        tc.define(ADD, "naive")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="the fourth argument is a TunerConfig"):
        tc.Tuner(ADD).tune("add", (A, B), "naive", {"threads": 2})  # type: ignore[arg-type]
    T = tc.define(ADD, tc.make_naive_options_factory())
    with pytest.raises(AttributeError, match="there is no def 'ad'; did you mean 'add'"):
        T.ad(A, B)
    with pytest.raises(tcl.ArgumentError, match="there is no def 'ad'"):
        T("ad", A, B)


def test_a_def_whose_name_is_taken_is_called_by_name() -> None:
    with pytest.warns(tcl.TclWarning, match=r"the name 'tc' is taken; call this def as T\('tc'"):
        T = tc.define(ADD.replace("add", "tc"), tc.make_naive_options_factory())
    assert torch.equal(T("tc", A, B), A + B)


# --- what tcl itself takes ---


def test_arrays_of_all_kinds_are_compared() -> None:
    x = torch.randn(5, 6, requires_grad=True)
    tcl.assert_almost_equal(x, x.detach().numpy(), x)
    tcl.assert_almost_equal(x.bfloat16(), x.bfloat16().detach().float(), x)
    tcl.assert_almost_equal(x.t(), x.detach().numpy().T, torch.ones(1, dtype=torch.uint8))
    with pytest.raises(AssertionError, match="the largest difference is 1, more than"):
        tcl.assert_almost_equal(x, x + 1, x, precision=1e-6)
    with pytest.raises(tcl.ArgumentError, match="expected has to be an array of numbers"):
        tcl.assert_almost_equal(x, torch.randn(5, 6, dtype=torch.complex64), x)


def test_what_a_search_returned_is_taken_as_options() -> None:
    options = tcl.MappingOptions("naive").tile(4)
    winner = Candidate(options, None, 1, Outcome(Verdict.CORRECT, (1.0,)))
    found = TuningResult(Decision(winner, winner), (winner,), False, 1.0, "run", 0)
    assert tcl.compile(ADD, "add", found, A, B).options == options
    assert torch.equal(tcl.define(ADD, found).add(A, B), A + B)
    assert torch.equal(tc.compile(ADD, "add", found, A, B)(A, B), A + B)
    nothing: TuningResult[tcl.MappingOptions]
    nothing = TuningResult(Decision(None, None), (), True, 1.0, "run", 0)
    with pytest.raises(tcl.OptionsError, match="that search found no working candidate"):
        tcl.compile(ADD, "add", nothing, A, B)
