"""What all tests share."""

from __future__ import annotations

import gc
import inspect
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import work_done_once
from golden import Golden
from hypothesis.internal.conjecture import providers

# What takes long on a busy machine is no mistake. The same examples every time: a test that fails
# does so for a change, not by chance. New ones are looked for by --hypothesis-profile=exploring.
for name, same in (("patient", True), ("exploring", False)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        max_examples=50 if same else 100,
        derandomize=same,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("patient")
# Constants of all modules that a process has loaded would be among the examples, so that these
# depended on which tests it ran before. Reading them takes each process seconds.
providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the files that tests compare with anew: read their diff before committing it",
    )


_LONGEST = (
    *("test_thousands_of_texts", "test_wheel", "test_backends.py"),
    *("test_faults", "test_interrupted_grid", "test_dask_cluster", "test_real_kernels"),
)


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One process more than there are cores: some tests wait, for what hangs or for a cluster."""
    return (yield) + 1


def pytest_configure() -> None:
    """Hear Ctrl+C, and let processes that tests start hear it: a script's background jobs are begun
    with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: where several processes share the tests, none is left with one alone.
    Whole files that wait for something are among them: others compute meanwhile. On a real GPU, of
    which there is little time: some of every test first."""
    if "TCL_TESTS_ON_GPU" in os.environ:
        random.Random(1).shuffle(items)
        seen: Counter[str] = Counter()
        turns: dict[pytest.Item, int] = {}
        for item in items:
            test = item.nodeid.partition("[")[0]
            turns[item] = seen[test]
            seen[test] += 1
        items.sort(key=turns.__getitem__)
        return
    items.sort(key=lambda item: not any(name in item.nodeid for name in _LONGEST))


def pytest_runtest_setup() -> None:
    """What there is no time for on a real GPU is left out."""
    if time.time() > float(os.environ.get("TCL_TESTS_ON_GPU_UNTIL", "inf")):
        pytest.skip("the time is up")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no search for garbage goes through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user compiled and tuned on this machine is no part of any test. Processes that share
    the tests share what was compiled."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    work_done_once.FOLDER = folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCL_CACHE_DIR", str(folder / "tcl-cache"))
        # The model that comes with tcl is no part of what other tests are about.
        patch.setenv("TCL_TUNE_MODE", "off")
        yield
    assert not (folder / "tcl-cache/tuning.db").exists(), "a test that tunes needs own_cache"


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    """LLVM compiles a text once for all tests of a process: many begin with an empty cache, and
    with the same defs."""
    from tcl.codegen.cpu.object_code import compile as objects

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "_object", lru_cache(maxsize=2048)(objects._object))
        yield


@pytest.fixture
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM compiles again what it compiled for this test or another."""
    from tcl.codegen.cpu.object_code import compile as objects

    monkeypatch.setattr(objects, "_object", inspect.unwrap(objects._object))


@pytest.fixture(scope="session", autouse=True)
def _brief_times() -> Iterator[None]:
    """Searches time a candidate for a hundredth of a second and hold finals of one session, and
    what is timed to be shown, as by ``tcl run`` or beside a winner, takes a thousandth once, not
    0.2 s five times: no test is about what is found so."""
    from tcl.backends.targets import EmulatedTarget, Target
    from tcl.bench import turns
    from tcl.tuner.measure.paired import RaceRules
    from tcl.tuner.measure.timing import MeasureSettings, measure
    from tcl.tuner.run import search_loop, tuner
    from tcl.tuner.run.finals import Finals
    from tcl.tuner.run.pipeline import CandidatePipeline

    brief = partial(measure, settings=MeasureSettings(sample=1e-5, budget=1e-3))
    with pytest.MonkeyPatch.context() as patch:
        for target in (Target, EmulatedTarget):
            patch.setattr(target, "timing", MeasureSettings(samples=3, budget=0.01))
        rules = RaceRules(least=1, most=1, rounds=5, budget=0.05)
        patch.setattr(search_loop, "Finals", partial(Finals, rules=rules))
        patch.setattr(tuner, "CandidatePipeline", partial(CandidatePipeline, rules=rules))
        patch.setattr("tcl.cli.run.measure", brief)
        patch.setattr(turns, "measure", brief)
        patch.setattr(turns.interleaved, "__defaults__", (1,))
        patch.setattr(turns.compare_in_turns, "__defaults__", (1,))
        yield


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that run beside each other do not make the machine a busy one, on which what a first
    use found is looked for once more."""
    if "tcl.first_use" in sys.modules:
        monkeypatch.setattr("tcl.first_use.share_of_others", lambda outcomes: 0.0)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that finds nothing that others compiled or tuned."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))


@pytest.fixture
def searches_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of this process begin no processes: for what they find, keep and say, where it does
    not matter who measured it."""
    from tuner_fakes import in_threads

    in_threads(monkeypatch)


@pytest.fixture(autouse=True)
def _signals_are_heard_as_before() -> Iterator[None]:
    """A command that a test runs in this process may end with signals ignored, as its own process
    would."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _torch_is_as_before() -> Iterator[None]:
    """Its random numbers do not depend on the tests before, and a benchmark's peer, which has a
    process of its own, switches gradients off for good."""
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(0)
    yield
    if torch := sys.modules.get("torch"):
        torch.set_grad_enabled(True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden(file, text)``: the file holds this text, or holds it from now on where the tests
    run with ``--update-golden``."""

    def same(file: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            file.write_text(text, "utf-8")
        assert text == file.read_text("utf-8")

    return same


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For every call that tried the short way, whether it went it."""
    from tcl.executors.host_repeat import HostRepeat

    went: list[bool] = []
    real = HostRepeat.__call__

    def watched(self: HostRepeat, *arguments: Any) -> Any:
        result = real(self, *arguments)
        went.append(result is not None)
        return result

    monkeypatch.setattr(HostRepeat, "__call__", watched)
    return went
