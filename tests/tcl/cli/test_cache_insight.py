"""``tcl cache inspect`` and ``tcl cache analyze`` as a user runs them, on made-up results."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from command_line import MM, here

from tcl.block_tuning.result import BlockTiming, BlockTuningResult
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.grammar.sizes.size_classes import SizeClass
from tcl.grammar.tree.canonical import canonical_text
from tcl.report.cache_analysis import BOUND, FORMULA, draw
from tcl.tuner.cache import block_results
from tcl.tuner.cache.analysis import analyse
from tcl.tuner.cache.block_results import BlockKey
from tcl.tuner.cache.insight import Filter, insights
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict

DEFAULT = MappingOptions("mlp").to_json()
TILED = MappingOptions("naive").tile(8).to_json()
DAY = datetime(2026, 3, 1, 12).timestamp()
EPYC = "AMD EPYC; 256-bit vectors; 2 cores; L2 512 KiB"
XEON = "Xeon @ 2.00GHz; 512-bit vectors; 8 cores; L2 1024 KiB; 8 threads"


def key(size: int, device: str = EPYC, entry: str = "mm") -> CacheKey:
    return CacheKey(f"def {entry}", "cpu", (ArrayLayout((size,), (4,), "float32"),), device, "18")


def record(options: str, time: float | None, when: float = DAY, run: str = "run-1234567") -> Record:
    samples = () if time is None else (time,)
    verdict = Verdict.CORRECT if samples else Verdict.TIMEOUT
    return Record(options, verdict, time, samples, "", when, run)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "home"))
    cache = TuningCache("a.db")
    first = [record(DEFAULT, 4e-3), record(TILED, 2e-3), record("[bold]\x1b", 3e-3)]
    cache.add(key(64), [*first, record("slow", None), record("slow", None, DAY + 1)], entry="mm")
    cache.add(key(32, XEON), [record(DEFAULT, 1e-3), record(TILED, 2e-3)], entry="mm")
    cache.add(key(8, entry="add"), [record(TILED, 1e-6)], entry="add")
    cache.close()


def inspect(*arguments: str) -> str:
    done = here("cache", "inspect", "--cache", "a.db", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_inspect() -> None:
    lines = [line.rstrip() for line in inspect("--entry", "mm").splitlines()]
    assert lines == [
        f"mm float32[64]; key {key(64).digest[:10]}",
        f"cpu: {EPYC}; code generator 18",
        "5 results: 3 correct, 2 timeout",
        "the winner's margin: +50.0 % over the second, +100.0 % over the untuned default",
        "      time    longer  timed          first found       by",
        "1  2.00 ms    +0.0 %  first reading  2026-03-01 12:00  run-1234",
        f"    {TILED}",
        "2  3.00 ms   +50.0 %  first reading  2026-03-01 12:00  run-1234",
        "    [bold]?",
        "3  4.00 ms  +100.0 %  first reading  2026-03-01 12:00  run-1234",
        f"    {DEFAULT}",
        "",
        f"mm float32[32]; key {key(32, XEON).digest[:10]}",
        f"cpu: {XEON}; code generator 18",
        "2 results: 2 correct",
        "the winner's margin: +100.0 % over the second, it is the untuned default",
        "      time    longer  timed          first found       by",
        "1  1.00 ms    +0.0 %  first reading  2026-03-01 12:00  run-1234",
        f"    {DEFAULT}",
        "2  2.00 ms  +100.0 %  first reading  2026-03-01 12:00  run-1234",
        f"    {TILED}",
        "",
        "2 keys, 7 results in a.db",
    ]


def test_inspect_less() -> None:
    best = inspect("--best-only")
    assert best.count("first reading") == 3
    assert "the winner's margin: no second, the untuned default was not measured" in best
    assert inspect("--top-k", "1") == best
    assert inspect("--device", "xeon", "--top-k", "2").count("first reading") == 2
    for arguments in (("--sizes", "[8]"), ("-e", "add"), ("--namespace", "cpu", "-e", "add")):
        assert inspect(*arguments).endswith("\n1 key, 1 result in a.db\n")


def test_sizes_that_are_given_several_times_count_together() -> None:
    assert "mm float32[64]" in inspect("--sizes", "[64]", "-s", "float32")
    done = here("cache", "inspect", "--cache", "a.db", "-s", "[64]", "-s", "[32]")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_file_names_a_def_and_its_sizes() -> None:
    Path("one.tc").write_text(f"# sizes small: M=8, N=2, K=4\n{MM}")
    Path("other.tc").write_text(MM.replace("mm(", "product(").replace("M", "P"))
    Path("two.tc").write_text(MM.replace("+=!", "max=!"))
    text, teens = canonical_text(check(MM)["mm"]), SizeClass(1, 8, 15)
    cache = TuningCache("b.db")
    for m, device, classes in (
        *((8, EPYC, ()), (8, XEON, ()), (9, EPYC, ())),
        (15, EPYC, (teens, None)),
    ):
        a = ArrayLayout((m, 4), (16, 4), "float32", classes)
        b = ArrayLayout((4, 2), (8, 4), "float32")
        same = CacheKey(text, "cpu", (a, b), device, "18")
        cache.add(same, [record(DEFAULT, 1e-3)], entry="mm")
    cache.add(key(8), [record(DEFAULT, 1e-3)], entry="mm")
    cache.close()

    def counted(*arguments: str) -> str:
        done = here("cache", "inspect", "--cache", "b.db", "--best-only", *arguments)
        return done.stdout.splitlines()[-1] if done.returncode == 0 else done.stderr

    assert counted("-e", "mm").startswith("5 keys")
    assert counted("one.tc").startswith("4 keys")
    assert counted("other.tc", "-s", "P=9", "-s", "K=4,N=2").startswith("2 keys")
    assert counted("one.tc", "-s", "small", "--device", "Xeon").startswith("1 key")
    assert counted("one.tc", "-s", "M=16,K=4,N=2").startswith("error: no key of b.db has sizes")
    assert counted("one.tc", "-s", "M=8") == (
        "error: mm needs a value for K, N; write --sizes M=...,K=...,N=...\n"
    )
    assert counted("two.tc") == (
        "error: no key of b.db has the def 'mm' in the version of its file; there are: mm\n"
    )


def test_inspect_as_json() -> None:
    first, second, third = json.loads(inspect("--json", "--top-k", "2"))
    assert [each["entry"] for each in (first, second, third)] == ["add", "mm", "mm"]
    assert [each["device"] for each in (first, second, third)] == [EPYC, EPYC, XEON]
    assert second | {"best": []} == {
        "key": key(64).digest,
        "entry": "mm",
        "namespace": "cpu",
        "device": EPYC,
        "inputs": [{"shape": [64], "strides": [4], "dtype": "float32"}],
        "codegen_version": "18",
        "results": 5,
        "verdicts": {"correct": 3, "timeout": 2},
        "candidates": 3,
        "margin_over_second": pytest.approx(0.5),
        "default_seconds": 4e-3,
        "margin_over_default": pytest.approx(1.0),
        "best": [],
    }
    assert second["best"][1] == {
        "rank": 2,
        "seconds": 3e-3,
        "longer": pytest.approx(0.5),
        "finals": False,
        "samples": 1,
        "when": DAY,
        "run": "run-1234567",
        "first_found": DAY,
        "first_run": "run-1234567",
        "options": "[bold]\x1b",
    }
    assert third["margin_over_default"] == 0.0 and first["margin_over_second"] is None


def test_inspect_launch_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: DAY)
    timings = (
        BlockTiming((256,), {"TILE": 2}, Verdict.CORRECT, (2e-6,)),
        BlockTiming((128,), {"TILE": 2}, Verdict.CORRECT, (3e-6,)),
        BlockTiming((64,), {"TILE": 2}, Verdict.TIMEOUT, (), "it did not end within 10.0 s"),
    )
    result = BlockTuningResult((256,), {"TILE": 2}, (4, 2), 2.0, timings, notes=("busy",))
    one = BlockKey("scale", "source", (64, 32), ("float32[64]",), "", XEON)
    cache = TuningCache("a.db")
    block_results.store(cache, one, result.to_json())
    block_results.store(cache, replace(one, kernel="wave", device=EPYC), "{}")
    cache.close()
    lines = [line.rstrip() for line in inspect("--entry", "scale").splitlines()]
    assert lines.pop(0).startswith("launch shape of scale on 64 x 32; 2026-03-01 ")
    assert lines == [
        XEON,
        "3 candidates: 2 correct, 1 timeout",
        "busy",
        "      time   longer  block",
        "1  2.00 µs   +0.0 %  256 TILE=2",
        "2  3.00 µs  +50.0 %  128 TILE=2",
        "",
        "0 keys, 0 results and 1 launch shape in a.db",
    ]
    everything = inspect("--best-only")
    assert "128 TILE=2" not in everything and "wave on 64 x 32" in everything
    assert "it cannot be read, and will be measured again when it is needed" in everything
    assert everything.endswith("\n3 keys, 8 results and 2 launch shapes in a.db\n")
    assert "launch shape" not in inspect("--namespace", "cpu")
    assert "scale" not in inspect("--device", "epyc") and "mm" not in inspect("-s", "64 x 32")
    (found,) = json.loads(inspect("--json", "--entry", "scale"))
    assert found["kernel"] == "scale" and found["global_size"] == [64, 32]
    assert found["block"] == [256] and found["defines"] == {"TILE": 2} and found["grid"] == [4, 2]
    assert found["candidates"][2] == {
        "block": [64],
        "defines": {"TILE": 2},
        "verdict": "timeout",
        "seconds": None,
        "message": "it did not end within 10.0 s",
    }


def test_analyze() -> None:
    done = here("cache", "analyze", "--cache", "a.db")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[:4] == [
        "Tuning cache a.db",
        "3 keys, 8 results",
        "1 key left out: fewer than two correct candidates",
        FORMULA,
    ]
    rows = [line.split() for line in lines]
    # Of 2 ms and 1 ms: the default loses a half of the first, and wins the second.
    margins = next(row for row in rows if row[:4] == ["all", "all", "2", "5"])
    assert " ".join(margins[4:]) == (
        "3.00 ms 75.0 % 75.0 / 66.7 % 50.0 % 50.0 / 66.7 % 50.0 / 33.3 %"
    )
    presets = [" ".join(row[2:]) for row in rows if row[:2] == ["all", "all"] and "+" in row]
    assert presets == ["naive + 2 1 50.0 / 66.7 % 25.0 / 16.7 %"]
    pools = [" ".join(row) for row in rows if row[:4] == ["all", "all", "2", "3"]]
    assert pools == ["all all 2 3 25.0 / 33.3 % 1 / 1 1 / 1"]
    assert any(line.startswith("mm   cpu 1   default.tile.0 ") for line in lines)
    assert "more row" not in done.stdout


def test_analyze_into_files() -> None:
    done = here("cache", "analyze", "--cache", "a.db", "--out", "a.md")
    assert done.stdout.endswith("\nwritten: a.md\n")
    page = Path("a.md").read_text("utf-8")
    assert page.startswith(
        "# Tuning cache a.db\n\n- 3 keys, 8 results\n- 1 key left out: fewer than two correct "
        "candidates\n- made on "
    )
    assert FORMULA in page and BOUND in page
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles == [
        *("## Devices", "## Margins", "## Presets", "## A smaller pool of candidates"),
        *("## Knobs", "## Values"),
    ]
    assert "| mm | cpu 1 | default.tile.0 | 8 | 1 | 1 | 100.0 / 100.0 % | 0.0 / 0.0 % |" in page
    for table in page.split("\n\n"):
        lines = table.splitlines()
        if lines[0].startswith("|"):
            assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    done = here("cache", "analyze", "--cache", "a.db", "--out", "-", "-e", "mm")
    assert done.stdout.startswith("# Tuning cache a.db\n\n- 2 keys, 7 results\n")
    assert done.stderr == "written: -\n"


def test_analyze_escapes_what_others_may_have_named() -> None:
    evil = key(4, device="<script>|x|\x1b", entry="e")
    TuningCache("a.db").add(evil, [record("a", 1.0), record("b", 2.0)], entry="e|*[x](y)")
    here("cache", "analyze", "--cache", "a.db", "--out", "a.md")
    page = Path("a.md").read_text("utf-8")
    assert "| cpu 1 | \\<script\\>\\|x\\|? |" in page or "\\<script\\>\\|x\\|? |" in page
    assert "e\\|\\*\\[x\\](y)" in page and "<script>" not in page and "\x1b" not in page


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_a_picture(name: str) -> None:
    pytest.importorskip("matplotlib", reason="draws with matplotlib")
    done = here("cache", "analyze", "--cache", "a.db", "--picture", name)
    assert done.returncode == 0 and done.stdout.endswith(f"\nwritten: {name}\n")
    start = {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}[name]
    assert Path(name).read_bytes().startswith(start)


@pytest.mark.parametrize(("keys", "panels"), [(1, 2), (2, 3)])
def test_a_picture_has_no_empty_panel(
    keys: int, panels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one key the winner's values are those that win most, and nothing is lost by them."""
    cache = TuningCache("b.db")
    wide = DEFAULT.replace("mlp", "naive")
    for number, (tiled, other) in enumerate([(1e-3, 2e-3), (2e-3, 1e-3)][:keys]):
        cache.add(key(64 << number), [record(TILED, tiled), record(wide, other)], entry="mm")
    found = analyse(insights(cache, DEFAULT, Filter()))
    assert found is not None
    pyplot = MagicMock()
    drawn = [MagicMock() for _ in range(panels)]
    pyplot.subplots.return_value = MagicMock(), drawn
    monkeypatch.setitem(sys.modules, "matplotlib", MagicMock())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    draw(found, "b.db", Path("b.png"))
    assert pyplot.subplots.call_args.args == (1, panels)
    lost = [call.args[1] for axes in drawn for call in axes.barh.call_args_list]
    assert all(lost) and bool(lost) == (panels == 3)


def test_a_picture_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = here("cache", "analyze", "--cache", "a.db", "--picture", "a.png")
    assert done.returncode == 1 and not Path("a.png").exists()
    assert done.stderr == (
        "error: no picture: matplotlib is not installed; pip install '.[plot]' in a checkout of "
        "tensorcomp\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ("inspect -e nm", 1, "error: no key of a.db has def 'nm'; there are: add; mm"),
        ("inspect -e ad", 1, "error: no key of a.db has def 'ad'; did you mean add?"),
        ("analyze --namespace gpu", 1, "no key of a.db has namespace 'gpu'; there are: cpu"),
        ("inspect --device zen", 1, f"no key of a.db has device 'zen'; there are: {EPYC}; {XEON}"),
        ("analyze -e add --device xeon", 1, "no key of a.db has all of these at once"),
        (
            "inspect --sizes N=64",
            1,
            "error: --sizes N=64: a cache has the shapes of inputs, but no names of sizes; "
            "also name the FILE of the def, or give a part of the shapes that tcl cache list "
            "shows, '[64,64]'",
        ),
        ("inspect --best-only --top-k 2", 2, "--best-only means --top-k 1; give one of them"),
        ("inspect --codegen 17", 1, "no key of a.db has version '17'; there are: 18"),
        (
            "analyze -e add",
            1,
            "error: a.db has nothing to compare: no selected key has two correct candidates; "
            "tune something first",
        ),
        ("analyze --out no/a.md", 1, "error: no/a.md cannot be written: there is no folder no"),
        ("analyze --out home", 1, "error: home is a folder; name a file in it"),
        (
            "analyze --picture a.gif",
            1,
            "error: --picture a.gif: the name of a picture must end in .png, .svg, .pdf",
        ),
        (
            "analyze --picture no/a.png",
            1,
            "error: no/a.png cannot be written: there is no folder no",
        ),
    ],
)
def test_mistakes(arguments: str, code: int, sentence: str) -> None:
    Path("home").mkdir()
    done = here("cache", *arguments.split(), "--cache", "a.db")
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert code == 2 or len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["list", "inspect", "analyze"])
def test_an_empty_file_is_left_as_it_is(name: str) -> None:
    """What only looks made a database of it."""
    Path("zero.db").touch()
    done = here("cache", name, "--cache", "zero.db")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "zero.db is empty: nothing has been tuned yet\n"
    assert not Path("zero.db").stat().st_size


@pytest.mark.parametrize("name", ["inspect", "analyze"])
def test_where_nothing_was_tuned(name: str) -> None:
    done = here("cache", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("home/tuning.db does not exist: nothing has been tuned yet\n")
    TuningCache("empty.db").check_writable()
    done = here("cache", name, "--cache", "empty.db")
    assert done.stderr == "error: empty.db has no results: nothing has been tuned yet\n"
    done = here("cache", name, "--cache", "none.db")
    assert done.stderr == "error: none.db does not exist: nothing has been tuned yet\n"
    assert done.returncode == 1
