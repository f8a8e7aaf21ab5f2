"""``tcl tune --report`` and ``--json``: what they write, and when."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import MM, here, of_brief_searches, tcl

from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import measure_ceilings
from tcl.codegen.devices.measured_memory import MeasuredMemory
from tcl.codegen.options.options import MappingOptions
from tcl.selection.best_options import DEFAULT

LEAST = ("--generations", "1", "--population", "2", "--jobs", "1")
QUICK = (*LEAST, "--seed", "1", "--threads", "1")

pytestmark = pytest.mark.usefixtures("searches_in_threads")


@pytest.fixture
def mm(tmp_path: Path) -> Path:
    file = tmp_path / "mm.tc"
    file.write_text(MM)
    return file


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder that knows what the machine can do: more than any kernel here."""
    folder = tmp_path / "cache"
    measure_ceilings(1, folder, lambda threads: [Ceilings(1e12, 1e12, 1e14)] * 3)
    return folder


def test_report(mm: Path, cache: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = here("tune", mm, "-s", "M=32,N=32,K=32", *QUICK, "--report", page, cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"report in {page}" in done.stdout
    assert "measuring the speed of this machine" not in done.stdout
    assert "% of the roofline" in done.stdout
    text = page.read_text("utf-8")
    assert "mm M=32 N=32 K=32" in text
    assert "NumPy" in text
    assert "LLVM IR of the winner" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "mm.tc", "page.html"]


def test_machine_is_measured_once(
    mm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def rates(threads: int) -> list[Ceilings]:
        measured.append(threads)
        return [Ceilings(1e10, 2e10, 3e12)] * 3

    monkeypatch.setattr("tcl.bench.roofline._sampled_apart", rates)

    def told() -> str:
        done = here("tune", mm, "-s", "M=8,N=8,K=8", *QUICK, cache=tmp_path / "new")
        assert (done.returncode, done.stderr) == (0, "")
        assert "this machine, 1 thread: 3 TFLOP/s; memory: 10 GB/s read" in done.stdout
        return done.stdout

    assert "measuring the speed of this machine" in told()
    assert "measuring the speed of this machine" not in told()
    assert measured == [1]


def test_what_is_given_is_checked_before_anything_is_measured(mm: Path, tmp_path: Path) -> None:
    size = ("-s", "M=8,N=8,K=8", "--fix", "nonsense=1")
    done = here("tune", mm, *size, *QUICK, cache=tmp_path / "new")
    assert done.returncode == 1
    assert "nonsense" in done.stderr
    assert done.stdout == ""


def test_what_cannot_be_measured_is_not_tried_again_at_once(mm: Path, tmp_path: Path) -> None:
    folder = tmp_path / "busy"
    measure_ceilings(1, folder, lambda threads: [])
    done = here("tune", mm, "-s", "M=8,N=8,K=8", *QUICK, cache=folder)
    assert done.returncode == 0
    assert "could not be measured" not in done.stdout  # as was said when it failed
    assert "measuring the speed of this machine" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_report_on_a_full_disk_costs_the_report_alone(mm: Path, cache: Path) -> None:
    size = ("-s", "M=8,N=8,K=8")
    done = here("tune", mm, *size, *QUICK, "--report", "/dev/full", cache=cache)
    assert done.returncode == 1
    assert done.stderr == "error: the report /dev/full cannot be written: No space left on device\n"
    assert "saved in" in done.stdout


def started(mm: Path, cache: Path, *more: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tcl", "tune", str(mm), "-s", "M=200,K=200,N=200", "-t", "1"]
    return subprocess.Popen(
        [*command, "--generations", "1000", "--jobs", "1", *map(str, more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=of_brief_searches(TCL_CACHE_DIR=str(cache), PYTHONUNBUFFERED="1"),
        # A test run in the background of a shell has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def events_of(text: Iterator[str]) -> Iterator[dict[str, object]]:
    return (json.loads(line) for line in text)


@pytest.mark.parametrize("presses", [1, 2])
def test_interrupted_search_has_its_report(
    mm: Path, cache: Path, tmp_path: Path, presses: int
) -> None:
    page = tmp_path / "page.html"
    process = started(mm, cache, "--report", page, "--json")
    assert process.stdout is not None
    for event in events_of(process.stdout):
        if event["event"] == "candidate" and event["generation"] == 1:
            break
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "ended early by SIGINT" in page.read_text("utf-8")
    *_, last = events_of(iter(out.splitlines()))
    assert last["event"] == "result"


def test_json(mm: Path, cache: Path) -> None:
    done = here("tune", mm, "-s", "M=32,N=32,K=32", *QUICK, "--json", cache=cache)
    assert (done.returncode) == 0, done.stderr
    found = list(events_of(iter(done.stdout.splitlines())))
    assert [found[0]["event"], found[-2]["event"], found[-1]["event"]] == [
        "started",
        "finished",
        "result",
    ]
    first, last = found[0], found[-1]
    assert first["sizes"] == {"M": 32, "K": 32, "N": 32}
    assert first["cost"] == {"operations": 2 * 32**3, "read": 8192, "written": 4096}
    rates = {"read": 1e12, "copy": 1e12, "flops": 1e14, "products": {}}
    assert first["ceilings"] == {**rates, "core_to_core": 0.0}
    assert {"compiled", "candidate", "best", "raced"} <= {e["event"] for e in found}
    MappingOptions.from_json(json.dumps(last["options"]))
    decided = ("best", "start", "speedup", "verdict")
    assert [last[name] for name in decided] == [found[-2][name] for name in decided]
    peers = last["beside"]
    assert isinstance(peers, list)
    beside = {each["name"]: each["ratio"] for each in peers}
    assert beside.keys() >= {"naive options"} and any("NumPy" in name for name in beside)
    assert "saved in" in done.stderr
    best = last["best"]
    assert isinstance(best, dict)
    assert best["placements"].keys() == {"at_64_bytes", "as_numpy"}


def test_a_time_limit_that_passes_at_once_costs_no_result(tmp_path: Path, cache: Path) -> None:
    """What everybody has without a search is timed and saved; nothing else is tried."""
    file, page = tmp_path / "mm.tc", tmp_path / "page.html"
    file.write_text(MM)
    size = ("-s", "M=32,N=32,K=32")
    done = here(
        "tune", file, *size, *QUICK, "--time-limit", "0.001", "--json", "--report", page,
        cache=cache,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(e["event"] == "candidate" for e in events) == 1
    last = events[-1]
    assert (last["event"], last["options"]) == ("result", json.loads(DEFAULT.to_json()))
    assert last["unsaved"] == 0
    assert "time limit" in page.read_text("utf-8")


def test_devices_tells_what_it_measured_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = [Ceilings(1e10, 2e10, 3e12)] * 3
    monkeypatch.setattr("tcl.bench.roofline._sampled_apart", lambda threads: rates)
    memory = MeasuredMemory(8 << 20, 1.0, 24 << 20, 9.5)
    monkeypatch.setattr("tcl.cli.devices.measure_memory", lambda: memory)
    (tmp_path / "file").touch()
    done = here("devices", "--measure", "-t", "1", cache=tmp_path / "file" / "cache")
    assert done.returncode == 0, done.stderr
    assert "with 1 thread: 3 TFLOP/s" in done.stdout
    assert "at least 16 MB; one core reads 24 MB again" in done.stdout


def test_devices_tells_what_was_measured(cache: Path, tmp_path: Path) -> None:
    assert "100 TFLOP/s" in here("devices", "-t", "1", cache=cache).stdout
    assert "use --measure" in here("devices", "-t", "1", cache=tmp_path / "none").stdout
    done = tcl("devices", "--measure", "-t", "1000", cache=tmp_path / "none")
    assert done.returncode == 1
    assert "need as many cores" in done.stderr
