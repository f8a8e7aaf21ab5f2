"""``tcl tune --grid``: its file, its plan, and its searches as a user runs them."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import MM, here, of_brief_searches

from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import measure_ceilings
from tcl.cli.grid_file import GridError, read_grid
from tcl.cli.grid_plan import PlannedPoint, make_plan
from tcl.tuner.cache.insight import pace
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuning import Tuner

DEFS = f"""# sizes small: M=8, N=8, K=8
# sizes large: M=64, N=8, K=8
{MM}
def scaled(float(N) A) -> (B) {{ B(n) = 2 * A(n) }}

def conv(float(N) A, float(K) W) -> (B) {{ B(n) +=! A(n + k) * W(k) }}
"""
QUICK = "generations = 1\npopulation = 4\nthreads = 1\njobs = 1\n"
SCALED = '[[tune]]\nfile = "defs.tc"\nentry = "scaled"\n'
CONV = '[[tune]]\nfile = "defs.tc"\nentry = "conv"\n'
TWO = f"{QUICK}{SCALED}sizes = {{ N = [100, 200] }}\n"

Make = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("searches_in_threads")


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a grid's file beside one with defs."""
    (tmp_path / "defs.tc").write_text(DEFS)

    def write(text: str) -> Path:
        path = tmp_path / "grid.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder that knows what the machine can do, so that nobody measures it."""
    folder = tmp_path / "cache"
    measure_ceilings(1, folder, lambda threads: [Ceilings(1e12, 1e12, 1e14)] * 3)
    return folder


def sizes(path: Path) -> list[tuple[str, dict[str, int]]]:
    return [(p.checked.name, dict(p.sizes)) for p in read_grid(path)]


# The file.


def test_lists_stand_for_every_combination(make: Make) -> None:
    table = '[[tune]]\nfile = "defs.tc"\nentry = "mm"\n'
    found = sizes(make(f"{table}sizes = {{ M = [1, 2], N = 3, K = [4, 5] }}"))
    assert [tuple(s.values()) for _, s in found] == [(1, 4, 3), (1, 5, 3), (2, 4, 3), (2, 5, 3)]
    assert found[0] == ("mm", {"M": 1, "K": 4, "N": 3})
    found = sizes(make(f'{table}sizes = ["large", {{ M = 1, N = 1, K = [1, 2] }}]'))
    assert [s["M"] for _, s in found] == [64, 1, 1]
    assert sizes(make(table)) == [("mm", {"M": 8, "N": 8, "K": 8})]  # the first comment's


def test_a_table_has_settings_of_its_own(make: Make) -> None:
    text = f"{QUICK}seed = 7\n{SCALED}sizes = {{ N = 1 }}\npopulation = 6\ntime_limit = 1.5\n"
    first, second = read_grid(make(f"{text}{SCALED}sizes = {{ N = 2 }}\n"))
    assert first.settings["population"] == 6
    assert first.settings["time_limit"] == 1.5
    quick = {"generations": 1, "population": 4, "threads": 1, "jobs": 1}
    assert second.settings == {**quick, "seed": 7}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tune = [", "grid.toml: error: this is not TOML: "),
        ("", "there is nothing to tune; add a table [[tune]] with a file"),
        ("[tune]", "tables of a grid need two brackets: [[tune]]"),
        ("tune = 3", "tables of a grid need two brackets: [[tune]]"),
        ("generation = 3", "there is no key 'generation'; did you mean generations?"),
        ("generations = 'ten'", "generations must be a whole number, not 'ten'"),
        ("generations = true", "generations must be a whole number, not True"),
        ("seed = -1", "seed must be 0 or more, not -1"),
        ("time_limit = inf", "time_limit must be a number of seconds, not inf"),
        ("time_limit = '1'", "time_limit must be a number of seconds, not '1'"),
        ("[[tune]]", "[[tune]] 1: error: it needs a file, as file = "),
        ("[[tune]]\nfile = 'none.tc'", "none.tc cannot be read: No such file"),
        (
            "[[tune]]\nfile = 'defs.tc'",
            'has 3 defs; choose one with entry = "mm" or "scaled" or "conv"',
        ),
        ("[[tune]]\nfile = 'defs.tc'\nentry = 'scale'", "did you mean scaled?"),
        ("[[tune]]\nfile = 'defs.tc'\nentry = 3", "entry must be a text in quotes, not 3"),
        ("[[tune]]\nfile = 'bad.tc'", "bad.tc:1:"),
        (SCALED, "scaled needs a value for N; write sizes = { N = ... }"),
        (f"{SCALED}sizes = {{}}", "scaled needs a value for N; write sizes = { N = ... }"),
        (f"{SCALED}sizes = []", "sizes is an empty list"),
        (f"{SCALED}sizes = 3", "sizes must look like { N = ... }, or be a label, not 3"),
        (f"{SCALED}sizes = {{ N = 1, M = 1 }}", "scaled has no size M; its size"),
        (f"{SCALED}sizes = {{ N = 1.5 }}", "the size N must be a whole number, not 1.5"),
        (f"{SCALED}sizes = {{ N = [1, -2] }}", "the size N must be a whole number, not -2"),
        (f"{SCALED}sizes = {{ N = [] }}", "the size N has no value; its list is empty"),
        (f"{SCALED}sizes = 'small'", "there is no label of sizes of scaled 'small'"),
        (f"{SCALED}varying = 3", 'varying has to be names of sizes, as varying = ["N"], not 3'),
        (
            f"{SCALED}varying = 'M'",
            "varying names M, which is not a size of scaled; its sizes are N",
        ),
        (f"{SCALED}size = 3", "there is no key 'size'; did you mean sizes?"),
        (f"{CONV}sizes = {{ N = {list(range(200))}, K = {list(range(200))} }}", "40000 combin"),
    ],
)
def test_mistakes_have_a_place_and_a_remedy(
    make: Make, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "bad.tc").write_text("def f(float(N) A) -> (B) { B(n) = C(n) }")
    with pytest.raises(GridError) as error:
        read_grid(make(text))
    assert sentence in str(error.value)
    assert "error: " in str(error.value)


def test_all_mistakes_are_told_at_once(make: Make, cache: Path) -> None:
    text = f"jobbs = 1\n{SCALED}sizes = 'x'\n{SCALED}sizes = {{ N = 1 }}\nthreads = '2'\n"
    done = here("tune", "--grid", make(text), cache=cache)
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.split(": error:")[0].partition("grid.toml")[2] for line in lines] == [
        "",
        ": [[tune]] 1",
        ": [[tune]] 2",
    ]


# The plan.


def planned(path: Path, cache: Path, **given: Any) -> tuple[list[PlannedPoint], list[str]]:
    return make_plan(read_grid(path), given, str(path.parent), TuningCache(cache))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("population = 1", "population must be a whole number from 2"),
        ("elites = 19", "elites must be at most half of the population of 4, not 19"),
        ("strategy = 'sorcery'", "strategy must be one of"),
        ("threads = 0", "threads must be a whole number from 1"),
        ("threads = 500", "kernels with 500 threads need as many cores"),
        ("options = 'none.json'", "unknown preset"),
        ("device = 'abacus'", "there is no device abacus here"),
        ("device = 'cuda-emulated'", "times of emulated kernels have no"),
        ("time_limit = 0", "time_limit must be a number of seconds above 0"),
    ],
)
def test_settings_that_make_no_sense(
    make: Make, tmp_path: Path, setting: str, sentence: str
) -> None:
    table = f"{SCALED}sizes = {{ N = [1, 2] }}\n"
    path = make(f"population = 4\n{table}{table}{setting}\n")
    with pytest.raises(GridError) as error:
        planned(path, tmp_path / "t.db")
    assert str(error.value).startswith(f"{path}: [[tune]] 2: error: ")
    assert sentence in str(error.value)
    assert str(error.value).count(sentence) == 1


def test_plan(make: Make, tmp_path: Path) -> None:
    (tmp_path / "start.json").write_text('{"preset": "naive"}')
    table = f"{SCALED}sizes = {{ N = [100, 200, 100] }}\noptions = 'start.json'\n"
    impossible = f"{CONV}sizes = {{ N = 3, K = 5 }}\n{SCALED}sizes = {{ N = 2000000000000 }}\n"
    points, notes = planned(make(f"{QUICK}{table}{impossible}"), tmp_path / "t.db", generations=3)
    assert [p.about.sizes["N"] for p in points] == [100, 200, 3, 2000000000000]
    assert notes == [
        f"{tmp_path}/grid.toml: [[tune]] 1: scaled N=100 is the same as point 1; it is tuned once"
    ]
    first = points[0]
    count, seconds = first.ahead(resume=False)
    assert count == 3 + 4 + 2 + 2  # starts, a population, children of two generations
    assert seconds > 0
    assert not first.by_experience
    assert "has no value for these sizes" in points[2].problem
    assert "B of memory; the machine has" in points[3].problem
    assert not (tmp_path / "t.db").exists()


def test_classes_of_sizes(make: Make, tmp_path: Path) -> None:
    table = f"{SCALED}sizes = {{ N = [100, 200, 300] }}\nvarying = ['N']\n"
    points, notes = planned(make(f"{QUICK}{table}"), tmp_path / "t.db")
    assert [p.key.sizes for p in points if p.key] == ["float32[16..255]", "float32[256..4095]"]
    assert points[0].title == "scaled N=100 varying N (1 thread)"
    again = "scaled N=200 varying N is the same as point 1; it is tuned once"
    assert notes == [f"{tmp_path}/grid.toml: [[tune]] 1: {again}"]


def test_time_is_estimated_from_what_was_measured(make: Make, tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    path = make(f"{QUICK}{SCALED}sizes = {{ N = [100, 200] }}\n")
    key = planned(path, cache.path)[0][0].key
    assert key is not None

    def add(first: float, count: int, step: float) -> None:
        outcome = Outcome(Verdict.CORRECT, (1e-6,))
        cache.add(
            key, [Record.from_outcome("{}", outcome, first + step * i, "r") for i in range(count)]
        )

    add(1000.0, 4, 3.0)
    assert pace(cache, key) is None  # too few
    add(5000.0, 7, 3.0)  # after a break, which does not count
    assert pace(cache, key) == pytest.approx(3.0)
    first, second = planned(path, cache.path)[0]
    assert first.by_experience and second.by_experience
    rule = planned(path, tmp_path / "none.db")[0][0]
    limited = planned(path, cache.path, time_limit=2.0)[0][0]
    one, two, ruled, least = (p.ahead(resume=False)[1] for p in (first, second, rule, limited))
    assert one - ruled == pytest.approx(6 * (3.0 - 0.3), abs=0.1)
    assert two == pytest.approx(one, abs=0.1)
    assert one - least == pytest.approx(6 * 3.0 - 2.0)


def test_dry_run_writes_nothing(make: Make, cache: Path) -> None:
    done = here("tune", "--grid", make(TWO), "--dry-run", "--generations", "2", cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert "scaled N=100 (1 thread)" in done.stdout
    assert "2 points: 16 candidates, about " in done.stdout
    assert "a rough estimate" in done.stdout
    assert not any("tuning" in p.name for p in cache.iterdir())
    bad = here(
        "tune", "--grid", make(f"{CONV}sizes = {{ N = 3, K = 5 }}"), "--dry-run", cache=cache
    )
    assert bad.returncode == 1
    assert "cannot be tuned: " in bad.stdout
    assert "1 of 1 points cannot be tuned" in bad.stderr


# The searches.


def runs(cache: Path) -> int:
    with sqlite3.connect(cache / "tuning.db") as db:
        ((count,),) = db.execute("SELECT count(*) FROM notes WHERE kind = 'search'").fetchall()
    db.close()
    return int(count)


def test_two_points_then_nothing_is_left(make: Make, cache: Path, tmp_path: Path) -> None:
    path, pages = make(TWO), tmp_path / "pages"
    done = here("tune", "--grid", path, "--report", pages, cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    for sentence in (
        "point 1 of 2: scaled N=100 (1 thread)",
        "point 1 of 2: tuned in ",
        "point 2 of 2: tuned in ",
        "2 points: 2 tuned",
    ):
        assert sentence in done.stdout
    assert "s left\n" in done.stdout
    names = sorted(p.name for p in pages.iterdir())
    assert names == ["001-scaled-N=100-1-thread.html", "002-scaled-N=200-1-thread.html"]
    assert runs(cache) == 2
    again = here("tune", "--grid", path, "--resume", cache=cache)
    assert (again.returncode, again.stderr) == (0, "")
    assert "2 points: 2 known" in again.stdout
    assert runs(cache) == 2
    dry = here("tune", "--grid", path, "--dry-run", cache=cache)
    assert "with --resume, which leaves out finished points: 0 candidates, about 0 s" in dry.stdout
    more = here("tune", "--grid", path, "--resume", "--generations", "2", "--dry-run", cache=cache)
    assert "unfinished: 1 generation done" in more.stdout
    assert "2 points: 4 candidates" in more.stdout
    other = here("tune", "--grid", path, "--resume", "--population", "6", "--dry-run", cache=cache)
    assert "2 points: 16 candidates" in other.stdout  # another search: nothing to go on with


def test_a_class_of_sizes_is_tuned_once(make: Make, cache: Path) -> None:
    table = f"{SCALED}sizes = {{ N = [100, 200] }}\nvarying = ['N']\n"
    path = make(f"{QUICK}{table}")
    done = here("tune", "--grid", path, cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert "point 1 of 1: scaled N=100 varying N (1 thread)" in done.stdout
    again = here("tune", "--grid", path, "--resume", cache=cache)
    assert "1 point: 1 known" in again.stdout
    assert runs(cache) == 1


def test_a_point_that_fails_does_not_end_the_grid(
    make: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tcl", "tune"])  # what the command to go on with repeats
    (cache.parent / "lut.tc").write_text(
        "# values I: 100..101\n"
        "def lut(float(N) T, int32(M) I) -> (B) { B(m) = T(I(m)) where m in 0:M }\n"
    )
    text = f"{QUICK}[[tune]]\nfile = 'lut.tc'\nsizes = {{ N = 4, M = 8 }}\n"
    done = here(
        "tune", "--grid", make(f"{text}{SCALED}sizes = {{ N = 9 }}\n"), "--json", cache=cache
    )
    assert done.returncode == 1, done.stderr
    assert "1 of 2 points have no result; correct the problem, then continue with: tcl tune" in (
        done.stderr
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["event"] == "grid"
    assert [p["entry"] for p in events[0]["points"]] == ["lut", "scaled"]
    assert events[0]["candidates"] == 12
    ends = [e for e in events if e["event"] == "point done"]
    assert [(e["point"], e["status"]) for e in ends] == [(1, "failed"), (2, "tuned")]
    assert "out of range" in ends[0]["reason"]
    assert ends[1]["before"] > 0 and ends[1]["after"] > 0
    assert {e["point"] for e in events if e["event"] == "candidate"} == {2}
    assert events[-1]["event"] == "grid done"
    assert events[-1]["points"][1]["status"] == "tuned"


def test_another_search_does_not_count(make: Make, tmp_path: Path) -> None:
    """One with other settings, or with fixed knobs."""
    path = make(f"{QUICK}{SCALED}sizes = {{ N = 100 }}\n")
    cache = tmp_path / "t.db"
    tuner = Tuner(DEFS, cache, threads=1)
    A = np.zeros(100, np.float32)
    config = TunerConfig(generations=1, population=4, threads=1, seed=1)

    def standing(**given: Any) -> tuple[bool, bool]:
        found = planned(path, cache, **given)[0][0]
        return found.done, found.last is not None

    tuner.tune("scaled", [A], None, config, fixed={"s0.lanes": 4})
    assert standing() == (False, False)
    tuner.tune("scaled", [A], None, config)
    assert standing() == (True, False)
    assert standing(generations=2) == (False, True)
    assert standing(seed=2) == (False, False)
    assert standing(options="naive") == (False, False)
    assert standing(time_limit=1e-3, generations=2) == (True, False)


def test_an_executor_that_is_not_there_is_refused_first(make: Make, cache: Path) -> None:
    done = here("tune", "--grid", make(TWO), "--executor", "sorcery", cache=cache)
    assert done.returncode == 2
    assert "there is no executor 'sorcery'" in done.stderr
    assert "\npoint 1" not in done.stdout


def test_interrupted_grid_goes_on(make: Make, cache: Path, tmp_path: Path) -> None:
    path, faults = make(TWO), tmp_path / "faults"
    faults.mkdir()
    (faults / "plan.json").write_text('{"4": "waits"}')  # so that generation 1 does not end before
    process = subprocess.Popen(
        [sys.executable, "-m", "tcl", "tune", "--grid", str(path), "--json", "--generations", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=of_brief_searches(
            TCL_CACHE_DIR=str(cache), PYTHONUNBUFFERED="1", TCL_TEST_FAULTS=str(faults)
        ),
        # A test run in the background of a shell has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "candidate" and event["generation"] == 1:
            break
    process.send_signal(signal.SIGINT)
    (faults / "go on").touch()
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "2 of 2 points have no result; continue with: tcl tune --grid " in err
    assert "--generations 60 --resume\n" in err
    *_, last = (json.loads(line) for line in out.splitlines())
    assert [p["status"] for p in last["points"]] == ["left", "left"]
    done = here("tune", "--grid", path, "--resume", cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert "continuing in generation 1, with " in done.stdout
    assert "2 points: 2 tuned" in done.stdout
    assert runs(cache) == 2
