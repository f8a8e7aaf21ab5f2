"""``--json``, and options that are given twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import here

import tcl
from tcl.tuner.cache.tuning_cache import TuningCache

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
KEY = re.compile("[a-z0-9]+(_[a-z0-9]+)*")
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mm.tc").write_text(MM)


def document(*arguments: str, code: int = 0) -> Any:
    """All of standard output."""
    done = here(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def keys(data: Any) -> Iterator[str]:
    """The names of all values, but those that names of users and machines stand for."""
    if isinstance(data, list):
        for each in data:
            yield from keys(each)
    elif isinstance(data, dict):
        for name, each in data.items():
            yield name
            if name not in ("sizes", "operations_by_type"):
                yield from keys(each)


def test_check() -> None:
    Path("bad.tc").write_text("def f(float(N) A) -> (O) { O(i) = B(i) }")
    good, bad = document("check", "mm.tc", "bad.tc", code=1)
    assert good["good"] and good["findings"] == []
    (definition,) = good["definitions"]
    assert definition["name"] == "mm"
    assert definition["inputs"][0] == {"name": "A", "type": "float32", "dims": ["M", "K"]}
    assert not bad["good"] and bad["definitions"] == []
    (finding,) = bad["findings"]
    assert (finding["severity"], finding["line"], finding["column"]) == ("error", 1, 35)
    assert "B" in finding["message"] and set(map(KEY.fullmatch, keys([good, bad]))).isdisjoint(
        {None}
    )


def test_check_with_sizes_and_warnings() -> None:
    Path("w.tc").write_text("def f(float(N) A) -> (O) { O(i) += A(i) }")
    (found,) = document("check", "w.tc", "-s", "N=5")
    assert found["good"] and found["findings"][0]["severity"] == "warning"
    (output,) = found["definitions"][0]["outputs"]
    assert output["shape"] == [5] and output["origin"] == [0]
    assert document("check", "w.tc", "--strict", code=1)[0]["findings"][0]["severity"] == "error"
    done = here("check", "w.tc", "--quiet", "--json")
    assert done.returncode == 2 and "give one of them" in done.stderr


def test_check_of_what_is_not_there() -> None:
    (found,) = document("check", "no.tc", code=1)
    assert found["findings"][0]["message"].startswith("no.tc cannot be read")


def test_devices() -> None:
    found = document("devices", "--threads", "1")
    assert found["cpu"]["threads"] == 1 and found["cpu"]["l1_bytes"] > 0
    assert "H200" in found["known"]["gpus"] and isinstance(found["gpus"], list)
    assert all(map(KEY.fullmatch, keys(found)))


def test_run() -> None:
    found = document("run", "mm.tc", "-s", "M=5,N=6,K=7", "--threads", "1")
    assert found["def"] == "mm" and found["sizes"] == {"M": 5, "N": 6, "K": 7}
    assert found["outputs"] == [{"name": "C", "type": "float32", "shape": [5, 6]}]
    assert found["agrees"] is True and found["seconds"] > 0 and found["on"] == "1 thread"
    assert found["options"]["preset"] == "mlp" and all(map(KEY.fullmatch, keys(found)))
    found = document("run", "mm.tc", "-s", "M=5,N=6,K=7", "--no-reference", "-o", "naive")
    assert found["agrees"] is None and found["options"] == {"preset": "naive"}


def test_run_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.cli.run._differences", lambda *_: ["C is wrong"])
    done = here("run", "mm.tc", "-s", "M=5,N=6,K=7", "--json")
    assert done.returncode == 1 and done.stderr == "error: C is wrong\n"
    assert json.loads(done.stdout)["agrees"] is False


def test_cache_list(tmp_path: Path) -> None:
    assert document("cache", "list") == {"keys": [], "launch_shapes": []}
    assert document("cache", "inspect") == []


def test_placements_have_words_for_names(tmp_path: Path) -> None:
    done = here(
        *("tune", "mm.tc", "-s", "M=64", "-s", "K=64,N=64", "--threads", "1", "--json"),
        *("--generations", "1", "--population", "2", "--time-limit", "20", "--no-model"),
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(map(KEY.fullmatch, keys([e for e in events if e["event"] != "started"])))
    placed = [e["placements"] for e in events if e.get("placements")]
    assert placed and all(set(each) <= {"aligned", "numpy"} for each in placed)
    (listed,) = document("cache", "list")["keys"]
    assert listed["entry"] == "mm" and listed["best_seconds"] > 0 and listed["threads"] == 1
    assert all(map(KEY.fullmatch, keys(listed)))
    # What is exported has the same words, and is read with them.
    assert here("cache", "export", "a.json").returncode == 0
    text = Path("a.json").read_text()
    assert '"aligned"' in text and "NumPy" not in text
    assert here("cache", "import", "a.json", "--cache", "b.db").returncode == 0
    assert TuningCache(Path("b.db")).list()[0].best == pytest.approx(listed["best_seconds"])


def test_sizes_are_given_in_pieces() -> None:
    one, several = (
        here("check", "mm.tc", *sizes).stdout
        for sizes in (("-s", "M=4,N=5,K=6"), ("-s", "M=4", "--sizes", "N=5", "-s", "K=6"))
    )
    assert one == several and "(4, 5)" in one
    done = here("check", "mm.tc", "-s", "M=4,N=5", "-s", "M=5,K=6")
    assert done.returncode == 1 and done.stderr == "error: the size M is given twice\n"


def test_version() -> None:
    assert here("-V").stdout == here("--version").stdout == f"tcl, version {tcl.__version__}\n"
