"""``--json``: one document on standard output, with the keys that ``docs/json.md`` explains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import MM, Done, here

from tcl.block_tuning.result import BlockTiming, BlockTuningResult
from tcl.cli.docs import pages, sections
from tcl.tuner.cache import block_results
from tcl.tuner.cache.block_results import BlockKey
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict

KEY = CacheKey("def mm", "cpu", (ArrayLayout((8, 9), (36, 4), "float32"),), "Xeon; 2 threads", "18")
FREE = ("sizes", "options", "verdicts", "products", "defines")
"""Keys whose values have names that the user, a machine or a search gave them."""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "home"))
    Path("mm.tc").write_text(MM)
    Path("warns.tc").write_text("def f(float(N) X) -> (Y) { Y(i) += X(i) }\n")
    Path("bad.tc").write_text("def f(float(N) X) -> (Y) { Y(i) = X(i)\n  + Q(i) }\n")
    cache = TuningCache("a.db")
    timed = Record("{}", Verdict.CORRECT, 2e-3, (2e-3,), "", 1e9, "run-1")
    slow = Record("slow", Verdict.TIMEOUT, None, (), "", 2e9, "run-1")
    cache.add(KEY, [timed, slow], entry="mm")
    block = BlockTiming((32, 1, 1), {"N": 4}, Verdict.CORRECT, (1e-6,))
    result = BlockTuningResult(block.block, block.defines, (2, 1, 1), 1.0, (block,))
    key = BlockKey("scale", "text", (64,), (), "", "H200")
    block_results.store(cache, key, result.to_json())
    cache.close()


def document(done: Done) -> Any:
    """What was printed; NaN is no JSON."""
    return json.loads(done.stdout, parse_constant=lambda text: pytest.fail(f"{text} in JSON"))


def keys(data: Any) -> Iterator[str]:
    """All that a document names, but what others named."""
    if isinstance(data, list):
        for each in data:
            yield from keys(each)
    elif isinstance(data, dict):
        for name, value in data.items():
            yield name
            yield from () if name in FREE else keys(value)


@pytest.mark.parametrize(
    "command",
    [
        "check mm.tc warns.tc bad.tc none.tc",
        "check mm.tc --sizes M=5,K=6,N=7",
        "run mm.tc --sizes M=5,K=6,N=7 --varying M",
        "run mm.tc --sizes M=5,K=6,N=7 --no-reference --device cuda-emulated",
        "cache list --cache a.db",
        "cache inspect --cache a.db",
        "devices",
    ],
)
def test_every_key_is_explained(command: str) -> None:
    found = set(keys(document(here(*command.split(), "--json"))))
    name = re.split(r" \S+\.tc| --", command)[0]
    explained = re.findall(r"`(\w+)`", sections(pages()["json"])[f"{name} --json"])
    if name == "cache inspect":
        explained += re.findall(r"`(\w+)`", sections(pages()["json"])["cache list --json"])
    assert found and found <= set(explained)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", each) for each in found)


def test_check() -> None:
    done = here("check", "--json", "-s", "M=5,K=6,N=7", "mm.tc")
    (file,) = document(done)
    (mm,) = file.pop("defs")
    assert (done.returncode, file) == (0, {"file": "mm.tc", "ok": True, "findings": []})
    assert mm["inputs"][1] == {"name": "B", "type": "float32", "dims": ["K", "N"]}
    output = {"name": "C", "type": "float32", "dims": ["M", "N"]}
    assert mm["outputs"] == [output | {"shape": [5, 7], "first_index": [0, 0]}]
    done = here("check", "--json", "mm.tc", "bad.tc", "none.tc")
    assert (done.returncode, "bad.tc:2:5: error: " in done.stderr) == (1, True)
    good, bad, none = document(done)
    assert (good["ok"], bad["ok"], none["ok"]) == (True, False, False)
    (error,) = bad["findings"]
    assert (error["severity"], error["line"], error["column"]) == ("error", 2, 5)
    assert none["findings"][0]["line"] is None
    for strict, severity in (((), "warning"), (("--strict",), "error")):
        (file,) = document(here("check", "--json", *strict, "warns.tc"))
        assert (file["ok"], [f["severity"] for f in file["findings"]]) == (not strict, [severity])


def test_run() -> None:
    done = here("run", "mm.tc", "--json", "-s", "M=5,K=6,N=7", "-o", "naive", "-t", "1")
    found = document(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert found.pop("seconds") > 0
    assert found == {
        "entry": "mm",
        "sizes": {"M": 5, "K": 6, "N": 7},
        "varying": [],
        "outputs": [{"name": "C", "type": "float32", "shape": [5, 7]}],
        "compared": True,
        "device": "cpu",
        "threads": 1,
        "options": {"preset": "naive"},
        "serves": None,
    }


def test_cache_list() -> None:
    key, shape = document(here("cache", "list", "--json", "--cache", "a.db"))
    assert (key["key"], key["entry"], key["device"]) == (KEY.digest, "mm", "Xeon; 2 threads")
    assert key["inputs"] == [{"shape": [8, 9], "strides": [36, 4], "dtype": "float32"}]
    assert (key["seconds"], key["results"], key["last"]) == (2e-3, 2, 2e9)
    assert (shape["kernel"], shape["block"]) == ("scale", [32, 1, 1])


def test_what_no_json_can_say_is_null() -> None:
    cache = TuningCache("odd.db")
    times = {"fast": 5e-324, "slow": 1e300}
    cache.add(KEY, [Record(o, Verdict.CORRECT, t, (t,), "", 1e9, "run") for o, t in times.items()])
    cache.close()
    (key,) = document(here("cache", "inspect", "--json", "--cache", "odd.db"))
    assert key["margin_over_second"] is None


@pytest.mark.parametrize("command", ["list", "inspect"])
def test_a_cache_that_is_not_there_yet(command: str) -> None:
    done = here("cache", command, "--json")
    assert (done.returncode, document(done)) == (0, [])
    assert done.stderr.endswith("does not exist: nothing has been tuned yet\n")


@pytest.mark.parametrize(
    "command", ["run mm.tc", "run none.tc", "cache list --cache none.db", "devices -t 0"]
)
def test_errors_stay_errors(command: str) -> None:
    done = here(*command.split(), "--json")
    assert (done.returncode in (1, 2), done.stdout) == (True, "")
    assert "error: " in done.stderr
