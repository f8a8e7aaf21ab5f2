"""Results that go from file to file: merging, the T4 format, pruning."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tcl.common.errors import CacheError
from tcl.tuner.cache import block_results, first_uses
from tcl.tuner.cache.block_results import BlockKey
from tcl.tuner.cache.first_uses import FirstUse
from tcl.tuner.cache.merge import Added, add, merge, results
from tcl.tuner.cache.prune import Pruned, PruneRules, prune
from tcl.tuner.cache.schema import VERSION
from tcl.tuner.cache.t4_format import from_t4, to_t4
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict

KEY = CacheKey("def f", "cpu", (ArrayLayout((4, 8), (32, 4), "float32"),), "a cpu", "14")
OTHER = replace(KEY, codegen_version="13")


def correct(*times: float, heat: int | None = None, place: int | None = None) -> Outcome:
    return Outcome(Verdict.CORRECT, times, heat=heat, place=place)


@pytest.fixture
def cache(tmp_path: Path) -> TuningCache:
    return TuningCache(tmp_path / "into.db")


@pytest.fixture
def source(tmp_path: Path) -> TuningCache:
    """A cache with something of everything."""
    made = TuningCache(tmp_path / "source.db")
    made.store(KEY, '{"a":1}', correct(3.0, 1.0, 2.0), run="r1", entry="f")
    made.store(KEY, '{"a":2}', Outcome(Verdict.COMPILE, message="no"), run="r1")
    made.store(KEY, '{"a":3}', correct(1.0, heat=0, place=1), run="r1")
    made.store(KEY, '{"a":1}', correct(0.9, heat=0, place=2), run="r1")
    made.store(OTHER, '{"nests":[{"tile":[4,0]},{}],"p":"x"}', correct(1e-6), run="r2", entry="f")
    made.save_run(KEY, "r1", config={"seed": 1}, state={"generation": 3})
    return made


def everything(cache: TuningCache) -> dict[CacheKey, list[tuple[Any, ...]]]:
    """What a cache holds, the times to ten digits."""
    return {
        each.key: sorted(
            (r.options, r.verdict.value, f"{r.time or 0:.9e}", r.message, r.run, r.heat, r.place)
            for r in each.records
        )
        for each in results(cache)
    }


def test_merging_adds_all_once_and_leaves_the_source_alone(
    cache: TuningCache, source: TuningCache
) -> None:
    source.close()
    before = source.path.read_bytes()
    cache.store(KEY, '{"a":9}', correct(9.0), run="r9", entry="mine")
    assert merge(cache, source.path) == Added(5, 0)
    assert merge(cache, source.path) == Added(0, 5)
    assert cache.list()[-1].entry in ("mine", "f")
    assert [r.options for r in cache.top(KEY, 9)] == ['{"a":3}', '{"a":1}', '{"a":9}']
    assert len(cache.history(KEY)) == 5
    assert cache.load_run("r1") == ({"seed": 1}, {"generation": 3})
    assert source.path.read_bytes() == before
    cache.close()
    assert sorted(f.name for f in source.path.parent.iterdir()) == ["into.db", "source.db"]


def test_merging_there_and_back_gives_equal_caches(cache: TuningCache, source: TuningCache) -> None:
    cache.store(OTHER, '{"a":9}', correct(9.0), run="r9")
    merge(cache, source.path)
    assert merge(source, cache.path) == Added(1, 5)
    assert everything(cache) == everything(source)


def test_of_a_search_that_both_know_the_later_state_stays(
    cache: TuningCache, source: TuningCache
) -> None:
    cache.save_run(KEY, "r1", config={"seed": 1}, state={"generation": 4})
    merge(cache, source.path)
    merge(source, cache.path)
    for each in (cache, source):
        assert each.load_run("r1") == ({"seed": 1}, {"generation": 4})


DEVICES = (
    "Xeon @ 2.00GHz; 512-bit vectors; 8 cores; L2 1024 KiB",
    "Xeon @ 2.00GHz; 512-bit vectors; 8 cores; L2 1024 KiB; 8 threads",
    "Xeon @ 2.60GHz; 512-bit vectors; 8 cores; L2 1024 KiB",
    "AMD EPYC; 256-bit vectors; 2 cores; L2 512 KiB",
)


def machine(path: Path, device: str, run: str, time: float) -> TuningCache:
    """A machine's own cache: the same candidates as all others, other times, a search of its own,
    and one that it took part in with all of them."""
    cache, own = TuningCache(path), replace(KEY, device=device)
    for options in ('{"a":1}', '{"a":2}'):
        cache.store(own, options, correct(time), run=run, entry="f")
        time *= 2
    cache.store(own, '{"a":1}', correct(time), run="shared", entry="f")
    cache.save_run(own, run, config={"seed": 1}, state={"device": device})
    cache.close()
    return cache


def test_each_device_keeps_its_own(cache: TuningCache, tmp_path: Path) -> None:
    """Results, winners and searches, in whatever order and however often they are merged."""
    sources = [
        machine(tmp_path / f"{number}.db", device, f"run {number}", 1.0 + number)
        for number, device in enumerate(DEVICES)
    ]
    rng = random.Random(0)
    twice = [*sources, *sources]
    rng.shuffle(twice)
    assert sum(merge(cache, each.path).added for each in twice) == 3 * len(DEVICES)
    assert {summary.key.device for summary in cache.list()} == {*DEVICES}
    for number, device in enumerate(DEVICES):
        own = replace(KEY, device=device)
        assert cache.history(own) == sources[number].history(own)
        assert cache.top(own, 9) == sources[number].top(own, 9)
        assert cache.runs(own) == (f"run {number}",)
        assert cache.load_run(f"run {number}") == ({"seed": 1}, {"device": device})
        assert len(cache.of_run(own, "shared")) == 1
    again = TuningCache(tmp_path / "again.db")
    assert merge(again, cache.path) == Added(3 * len(DEVICES), 0)
    assert everything(again) == everything(cache)


def test_two_processes_merge_at_once(cache: TuningCache, tmp_path: Path) -> None:
    """The same sources into the same file, several times: nothing is lost, and nothing twice."""
    for number, device in enumerate(DEVICES):
        machine(tmp_path / f"{number}.db", device, f"run {number}", 1.0)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tcl.tuner.cache.merge import merge\n"
        "from tcl.tuner.cache.tuning_cache import TuningCache\n"
        "sources = [Path(name) for name in sys.argv[2:]]\n"
        "sys.stdin.readline()\n"
        "print(sum(merge(TuningCache(sys.argv[1]), s).added for s in sources))\n"
    )
    names = [str(tmp_path / f"{number}.db") for number in range(len(DEVICES))]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(cache.path), *order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for order in (names, names[::-1])
    ]
    for process in started:  # both have imported everything, or soon will have
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    added = [int(process.communicate(timeout=600)[0]) for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert sum(added) == 3 * len(DEVICES)
    assert sorted(len(each.records) for each in results(cache)) == [3] * len(DEVICES)


def test_a_damaged_source_costs_nothing_but_itself(cache: TuningCache, tmp_path: Path) -> None:
    good = machine(tmp_path / "good.db", DEVICES[0], "run", 1.0)
    bad = machine(tmp_path / "bad.db", DEVICES[1], "run of another", 1.0)
    content = bad.path.read_bytes()
    bad.path.write_bytes(content[: len(content) // 2])
    merge(cache, good.path)
    before = everything(cache)
    with pytest.raises(CacheError, match=r"bad\.db cannot be used: it is damaged \("):
        merge(cache, bad.path)
    assert everything(cache) == before
    assert bad.path.read_bytes() == content[: len(content) // 2]


def test_a_source_in_use_is_read_with_its_last_result(
    cache: TuningCache, source: TuningCache
) -> None:
    source.store(KEY, '{"a":7}', correct(7.0), run="r1")
    with sqlite3.connect(source.path, isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert merge(cache, source.path).added == 6
        writer.execute("ROLLBACK")
    writer.close()


_SPOILT = {
    "version": (
        f"PRAGMA user_version = {VERSION + 1}",
        f"cannot be used: it has schema version {VERSION + 1}",
    ),
    "verdict": (
        "UPDATE results SET verdict = 'fine' WHERE verdict = 'compile'",
        "a result in it cannot be read: 'fine' is not a valid Verdict",
    ),
    "time": (
        "UPDATE results SET time = 1e-9 WHERE time > 1",
        "a result in it cannot be read: its time is 1e-09",
    ),
    "key": ("UPDATE problems SET inputs = '[1]'", "a key in it cannot be read"),
    "foreign": ("PRAGMA application_id = 7", "is a database of another program"),
}


def damage(path: Path, how: str) -> str:
    """Spoil a cache file; the sentence that says so."""
    if how in _SPOILT:
        statement, sentence = _SPOILT[how]
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(statement)
        return sentence
    content = path.read_bytes()
    match how:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
            return "it is damaged"
        case "text":
            path.write_text("my diary " * 100)
            return "is not a tuning cache"
        case "zeros":
            path.write_bytes(bytes(8192))
            return "it is damaged"
        case _:
            path.unlink()
            return "there is no tuning cache"


@pytest.mark.parametrize(
    "how",
    [*_SPOILT, "truncated", "text", "zeros", "absent"],
)
def test_bad_source_is_one_sentence_and_nothing_is_taken(
    cache: TuningCache, source: TuningCache, how: str
) -> None:
    cache.store(KEY, "mine", correct(1.0), run="r")
    source.close()
    sentence = damage(source.path, how)
    before = source.path.read_bytes() if source.path.exists() else None
    with pytest.raises(CacheError) as caught:
        merge(cache, source.path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(cache.history(KEY)) == 1
    names = sorted(f.name for f in source.path.parent.iterdir() if not f.name.startswith("into"))
    assert names == ([] if before is None else ["source.db"])  # nothing is set aside
    assert before is None or source.path.read_bytes() == before


def test_a_cache_is_not_merged_into_itself(source: TuningCache, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(source.path)
    with pytest.raises(CacheError, match="cannot be merged into itself"):
        merge(source, tmp_path / "link.db")


def test_locked_cache_is_waited_for_as_long_as_allowed(source: TuningCache, tmp_path: Path) -> None:
    into = TuningCache(tmp_path / "locked.db", patience=0.1)
    into.check_writable()
    with sqlite3.connect(into.path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CacheError, match=r"locked it for more than 0.1 s$"):
            merge(into, source.path)
        other.execute("ROLLBACK")
    other.close()
    assert merge(into, source.path).added == 5


def test_full_disk_while_merging_loses_nothing(tmp_path: Path, source: TuningCache) -> None:
    into = TuningCache(tmp_path / "small.db")
    into.store(KEY, "mine", correct(1.0), run="r")
    for i in range(50):
        source.store(KEY, f"{i}" * 5000, correct(1.0), run="big")
    pages = into.read(lambda db: db.execute("PRAGMA page_count").fetchone()[0], 0)
    into.read(lambda db: db.execute(f"PRAGMA max_page_count = {pages + 10}"), None)
    with pytest.raises(CacheError, match=r"the disk is full$"):
        merge(into, source.path)
    assert [r.options for r in into.history(KEY)] == ["mine"]  # all or nothing


def check(key: CacheKey, options: str) -> str:
    return options


def test_t4_there_and_back(cache: TuningCache, source: TuningCache) -> None:
    source.store(KEY, "no object", correct(1.5), run="r1")
    source.store(KEY, '{"a.b":1,"0":{"x":[]}}', correct(1.5, 1.7), run="r1")
    text = to_t4(results(source))
    found = from_t4(text, "x.json", check)
    assert add(cache, found) == Added(7, 0)
    assert add(cache, found) == Added(0, 7)
    assert everything(cache) == everything(source)
    assert [r.options for r in cache.top(KEY, 9)] == [r.options for r in source.top(KEY, 9)]
    assert merge(cache, source.path) == Added(0, 7)  # the same results, by whichever way


def test_t4_of_random_options_comes_back(cache: TuningCache, tmp_path: Path) -> None:
    from tcl.codegen.options.nest_options import NestOptions
    from tcl.codegen.options.options import MappingOptions

    rng = random.Random(0)
    for i in range(200):
        nests = tuple(
            NestOptions(
                tile=rng.choice([None, (), (4, 8, 16)]),
                vectorize=rng.choice([None, (-1, 8)]),
                fuse=rng.choice([None, True, False]),
            )
            for _ in range(rng.randrange(12))
        )
        options = MappingOptions("mlp", NestOptions(order=(1, 0)), nests).to_json()
        cache.store(KEY, options, correct(rng.uniform(1e-7, 1e3)), run=str(i))
    text = to_t4(results(cache))
    other = TuningCache(tmp_path / "other.db")
    add(other, from_t4(text, "x", lambda key, text: MappingOptions.from_json(text).to_json()))
    assert everything(other) == everything(cache)


def test_t4_is_as_its_schema_says(source: TuningCache) -> None:
    """The rules of results-schema.json 1.0.0 of the T4 format."""
    data = json.loads(to_t4(results(source)))
    assert data["schema_version"] == "1.0.0"
    assert len(data["results"]) == 5
    for result in data["results"]:
        assert isinstance(result["timestamp"], str)
        assert isinstance(result["configuration"], dict)
        assert not any(isinstance(v, dict) and v for v in result["configuration"].values())
        assert isinstance(result["objectives"], list)
        assert isinstance(result["times"]["runtimes"], list)
        assert result["invalidity"] in {v.value for v in Verdict}
        assert result["correctness"] in (0, 1)
        for measured in result["measurements"]:
            assert isinstance(measured["name"], str)
            assert isinstance(measured["value"], float)
            assert measured["unit"] == "ms"
    first = data["results"][0]
    assert first["configuration"] == {"a": 1}
    assert first["times"]["runtimes"] == [3000.0, 1000.0, 2000.0]
    assert first["measurements"] == [{"name": "time", "value": 2000.0, "unit": "ms"}]
    last = data["results"][-1]
    assert last["configuration"] == {
        "nests.0.tile.0": 4,
        "nests.0.tile.1": 0,
        "nests.1": {},
        "p": "x",
    }


def edited(source: TuningCache, edit: str) -> str:
    data = json.loads(to_t4(results(source)))
    exec(edit, {"d": data, "r": data["results"][0], "p": data["tcl"]["problems"][0]})
    return json.dumps(data)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("d.clear()", "is not a T4 file: it has no list of results"),
        ("d['schema_version'] = '2.0.0'", "has T4 schema version '2.0.0'; this tcl reads 1.x"),
        ("del d['tcl']", "does not say which def its results belong to"),
        ("del r['tcl']", "result 0: tcl has to be an object"),
        ("r['tcl']['problem'] = 7", "result 0: there is no problem 7"),
        ("r['tcl']['problem'] = True", "problem has to be a whole number"),
        ("r['invalidity'] = 'fine'", "result 0: 'fine' is not a valid Verdict"),
        ("r['times'] = []", "times has to be an object"),
        ("r['times']['runtimes'] = []", "a correct result needs runtimes"),
        ("r['times']['runtimes'] = [-1.0]", "not below 0"),
        ("r['times']['runtimes'] = ['x']", "runtimes have to be numbers"),
        ("r['times']['runtimes'] = [10**400]", "result 0: "),
        ("r['times']['runtimes'] = [float('nan')]", "is not JSON: NaN is not a JSON number"),
        ("r['timestamp'] = 'yesterday'", "yesterday"),
        ("del r['tcl']['options']", "result 0: options has to be a text"),
        ("r['tcl']['place'] = 1", "heat and place must be given together"),
        ("r['tcl'].update(place=10**30, heat=1)", "counted from"),
        ("r['tcl']['run'] = '\\ud800'", "result 0: 'utf-8' codec"),
        ("p['inputs'][0]['shape'] = ['x', 2]", "problem 0: shape has to be a list of whole"),
        ("p['inputs'][0]['strides'] = []", "problem 0: an input needs a stride"),
        ("p['device'] = None", "problem 0: device has to be a text"),
    ],
)
def test_t4_that_cannot_be_used_is_one_sentence(
    source: TuningCache, edit: str, sentence: str
) -> None:
    with pytest.raises(CacheError) as caught:
        from_t4(edited(source, edit), "x.json", check)
    assert str(caught.value).startswith("x.json")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", "[]", '{"results": 1}'])
def test_text_that_is_no_t4(text: str) -> None:
    with pytest.raises(CacheError, match=r"^x.json is not "):
        from_t4(text, "x.json", check)


def aged(cache: TuningCache, key: CacheKey, options: str, days: float, outcome: Outcome) -> None:
    """A result of some days ago."""
    cache.store(key, options, outcome, run=f"run {key.codegen_version}", entry="f")
    cache.transaction(
        lambda db: db.execute(
            "UPDATE results SET created = created - ? WHERE id = (SELECT max(id) FROM results)",
            (days * 86400,),
        )
    )


@pytest.fixture
def old(cache: TuningCache) -> TuningCache:
    """Best first: c, b, a of today's version, then x; z of another version."""
    cache.save_run(KEY, "run 14", config={}, state={})
    cache.save_run(OTHER, "run 13", config={}, state={})
    aged(cache, KEY, "a", 100, correct(3.0))
    aged(cache, KEY, "b", 50, correct(2.0))
    aged(cache, KEY, "c", 10, correct(1.0))
    aged(cache, KEY, "x", 10, Outcome(Verdict.TIMEOUT))
    aged(cache, OTHER, "z", 100, correct(0.5))
    return cache


DAY = 86400.0


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (PruneRules(older_than=60 * DAY), "bcx"),
        (PruneRules(older_than=1 * DAY), ""),
        (PruneRules(keep=1), "cz"),
        (PruneRules(keep=2), "bcz"),
        (PruneRules(keep=0), ""),
        (PruneRules(older_than=20 * DAY, keep=1), "cxz"),
        (PruneRules(except_version="14"), "abcx"),
        (PruneRules(except_version="14", keep=1), "abcxz"),
        (PruneRules(versions=frozenset({"14"})), "z"),
        (PruneRules(versions=frozenset({"14"}), older_than=60 * DAY), "bcxz"),
        (PruneRules(versions=frozenset({"1"})), "abcxz"),
    ],
)
def test_pruning_takes_what_all_rules_name(old: TuningCache, rules: PruneRules, left: str) -> None:
    foreseen = prune(old, rules, dry_run=True)
    assert sum(len(each.records) for each in results(old)) == 5
    assert prune(old, rules) == foreseen
    found = [r.options for each in results(old) for r in each.records]
    assert "".join(sorted(found)) == left
    keys = 2 - len({each.key for each in results(old)})
    assert foreseen == Pruned(5 - len(left), 5, keys, 2)
    assert (old.load_run("run 13") is None) == ("z" not in left)
    assert (old.load_run("run 14") is None) == (not set(left) - {"z"})


def test_pruning_keeps_the_order_of_those_that_stay(cache: TuningCache) -> None:
    cache.store(KEY, "i", correct(10.0, heat=0, place=1), run="r")
    cache.store(KEY, "n", correct(9.0, heat=0, place=2), run="r")
    cache.store(KEY, "s", correct(20.0, heat=0, place=3), run="r")
    cache.store(KEY, "i", correct(9.5), run="later")
    prune(cache, PruneRules(keep=2))
    assert [r.options for r in cache.top(KEY, 9)] == ["i", "n"]
    assert len(cache.history(KEY)) == 3


def test_pruning_leaves_searches_that_have_just_begun(cache: TuningCache) -> None:
    cache.save_run(KEY, "new", config={}, state={})
    cache.store(KEY, "a", correct(1.0), run="old")
    prune(cache, PruneRules(keep=0))
    assert cache.load_run("new") is not None
    cache.store(KEY, "b", correct(1.0), run="new")
    assert len(cache.history(KEY)) == 1


def test_pruning_gives_space_back(cache: TuningCache) -> None:
    for i in range(100):
        cache.store(KEY, f"{i}" * 3000, correct(1.0 + i), run="r")
    cache.close()
    before = cache.path.stat().st_size
    prune(cache, PruneRules(keep=1))
    cache.close()
    assert cache.path.stat().st_size < before / 3


def test_pruning_nothing(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "none.db")
    assert prune(cache, PruneRules(keep=0)) == prune(cache, PruneRules(keep=0), dry_run=True)
    assert not cache.path.exists()


SHAPE = BlockKey("scale", "text", (64,), ("float32[64]",), "blocks", "a cpu")


def test_what_was_done_on_first_use_is_merged(cache: TuningCache, source: TuningCache) -> None:
    nothing = FirstUse("auto", None, "no way")
    first_uses.store(cache, KEY, FirstUse("auto", "{}", "before"))
    first_uses.store(source, KEY, nothing)
    first_uses.store(source, OTHER, FirstUse("mlp", "{}"))
    for _ in range(2):
        merge(cache, source.path)
        assert first_uses.load(cache, KEY) == (nothing,)  # the later one
    assert first_uses.load(cache, OTHER) == (FirstUse("mlp", "{}"),)
    # What does not work on one device may work on others.
    assert first_uses.load(cache, replace(KEY, device="another cpu")) == ()
    first_uses.store(cache, KEY, FirstUse("auto", "{}", "again"))
    merge(cache, source.path)
    assert first_uses.load(cache, KEY)[0].message == "again"


@pytest.mark.parametrize(
    ("rules", "goes"),
    [
        (PruneRules(older_than=0.0), True),
        (PruneRules(older_than=0.0, keep=0), True),
        (PruneRules(older_than=3600.0), False),
        (PruneRules(older_than=0.0, keep=1), False),
        (PruneRules(older_than=0.0, versions=frozenset({"14"})), False),
        (PruneRules(except_version="15"), False),
    ],
)
def test_launch_shapes_go_by_age_alone(rules: PruneRules, goes: bool, cache: TuningCache) -> None:
    block_results.store(cache, SHAPE, "{}")
    assert prune(cache, rules, dry_run=True).shapes == goes
    assert block_results.load(cache, SHAPE) == "{}"
    assert prune(cache, rules).shapes == goes
    assert (block_results.load(cache, SHAPE) is None) == goes
