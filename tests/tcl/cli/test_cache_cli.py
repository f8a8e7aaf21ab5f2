"""``tcl cache`` as a user runs it: what it says, and what it survives."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import MM, Done, here

from tcl.cli import main
from tcl.cli.cache_commands.common import named_key
from tcl.codegen.cuda.emulator import why_not
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.cache.merge import results
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.schema import VERSION
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict

SIZES = "M=8,K=16,N=32"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run where ``mm.tc`` lies; the user's cache is empty."""
    # Commands find the package wherever these tests did.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(p or os.getcwd() for p in sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("TCL_NUM_THREADS", "1")
    Path("mm.tc").write_text(MM)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tcl", "cache", *arguments]


def tcl(*arguments: str) -> Done:
    """Run a command."""
    return here("cache", *arguments)


_STEPS = """
import json, subprocess, sys
from command_line import here
ends = []
for step in json.loads(sys.argv[1]):
    if isinstance(step, str):
        subprocess.run(step, shell=True, check=True)
    else:
        done = here("cache", *step)
        ends.append((done.returncode, done.stdout, done.stderr))
print(json.dumps(ends))
"""


def tcl_among_mounts(*steps: str | tuple[str, ...]) -> list[Done]:
    """How commands end in a process whose mounts nobody else sees; these are made by shell
    commands between them."""
    script = [sys.executable, "-c", _STEPS, json.dumps(steps)]
    line = ["unshare", "--mount", "--map-root-user", *script]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=True)
    commands = [step for step in steps if not isinstance(step, str)]
    ends = json.loads(done.stdout)
    return [Done([*c], *end) for c, end in zip(commands, ends, strict=True)]


def key(sizes: str = SIZES, threads: int = 1) -> CacheKey:
    return named_key(Path("mm.tc"), None, sizes, threads, (), "cpu")[0]


def options(*tile: int) -> str:
    return MappingOptions("naive").tile(*tile).to_json()


def filled(name: str, count: int = 5, sizes: str = SIZES, run: str = "run-of-mine") -> TuningCache:
    """A cache with results, the best of which has tiles of 1."""
    outcomes = [(i + 1, Outcome(Verdict.CORRECT, (1e-6 * (i + 1),) * 3)) for i in range(count)]
    outcomes.append((99, Outcome(Verdict.TIMEOUT, message="slow")))
    records = [
        Record.from_outcome(options(tile), found, time.time(), run) for tile, found in outcomes
    ]
    cache = TuningCache(name)
    cache.add(key(sizes), records, entry="mm")
    cache.close()
    return cache


def test_show() -> None:
    cache = filled("a.db")
    cache.store(
        key(), options(2), Outcome(Verdict.CORRECT, (2e-6,), heat=0, place=1), run="f", entry="mm"
    )
    cache.store(key(), options(1), Outcome(Verdict.CORRECT, (1.99e-6,), heat=0, place=2), run="f")
    done = tcl("show", "mm.tc", "-s", SIZES, "--top", "2", "--cache", "a.db")
    assert (done.returncode, done.stderr) == (0, "")
    title, device, group, heading, first, one, second, other, counts = done.stdout.splitlines()
    assert title == "mm float32[8,16] float32[16,32]"
    assert device.startswith("cpu: ")
    assert group == "timed in turns in the finals:"
    assert heading.split()[:3] == ["time", "as", "long"]
    assert first.split()[:2] == ["1", "2.00"] and one.strip() == options(2)
    assert second.split()[:2] == ["2", "1.99"] and other.strip() == options(1)
    assert counts.startswith("8 results of 6 candidates: 7 correct, 1 timeout; key ")
    digits = counts.rpartition(" ")[2]
    assert digits in tcl("list", "--cache", "a.db").stdout
    by_key = tcl("show", digits, "--top", "2", "--cache", "a.db")
    assert by_key.stdout == done.stdout
    lines = tcl("show", digits, "--top", "0", "--cache", "a.db").stdout.splitlines()
    middle = lines.index("first readings, each timed once during the search:")
    assert [len(lines[3:middle]), len(lines[middle + 1 : -1])] == [1 + 2 * 2, 1 + 2 * 3]
    third = lines[middle + 2].split()  # its time is compared with its like alone
    assert third[0] == "3" and "1.000" in third


@pytest.mark.parametrize("width", [40, 80])
def test_show_on_a_terminal_is_as_wide_as_that(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tcl.progress.console import Console

    filled("a.db")
    monkeypatch.setattr(Console, "is_terminal", True)
    done = CliRunner().invoke(
        main,
        ["cache", "show", "mm.tc", "-s", SIZES, "--cache", "a.db"],
        env={"COLUMNS": str(width), "TERM": "xterm"},
    )
    assert done.exit_code == 0, done.exception
    folded = [line for line in done.stdout.splitlines() if line.startswith("    ")]
    assert folded and max(map(len, folded)) <= width
    assert options(1) in "".join(line.strip() for line in folded)


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "")
def test_results_of_another_device() -> None:
    cache = filled("a.db")
    emulated = named_key(Path("mm.tc"), None, SIZES, None, (), "cuda-emulated")[0]
    tiles = options(3, 5)
    cache.store(emulated, tiles, Outcome(Verdict.CORRECT, (7e-6,)), run="r", entry="mm")
    there = ("mm.tc", "-s", SIZES, "--cache", "a.db", "--device", "cuda-emulated")
    best = tcl("best", *there)
    assert (best.returncode, best.stdout) == (0, f"{tiles}\n")
    assert best.stderr.startswith("7.00 µs a call on ")
    assert tcl("show", *there).stdout.splitlines()[1].startswith("cuda-emulated: ")
    assert "was tuned: best 7.00 µs of 1 result, " in tcl("why", *there).stdout
    assert tcl("best", "mm.tc", "-s", SIZES, "--cache", "a.db").stdout == f"{options(1)}\n"


def test_why() -> None:
    assert "nothing has been tuned yet" in tcl("why", "mm.tc", "-s", SIZES).stdout
    cache = filled("a.db")
    arguments = ("why", "--cache", "a.db", "mm.tc")
    done = tcl(*arguments, "-s", SIZES)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"mm .* was tuned: best 1.00 µs of 6 results, last .*, key", done.stdout)
    done = tcl(*arguments, "-s", "M=8,K=16,N=33", "-t", "3")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert "was not tuned: a.db has no results for it" in done.stdout
    assert "the nearest is mm float32[8,16] float32[16,32]: best 1.00 µs" in done.stdout
    assert lines[2:] == [
        ["shapes", "asked", "for", "[8,16]", "[16,33]"],
        ["there", "is", "[8,16]", "[16,32]"],
        ["threads", "asked", "for", "3"],
        ["there", "is", "1"],
    ]
    Path("mm.tc").write_text(MM.replace("* B", "+ B"))
    done = tcl(*arguments, "-s", SIZES)
    assert "  def text  asked for" in done.stdout
    assert len(done.stdout.splitlines()) == 4
    cache.store(key(), "x", Outcome(Verdict.COMPILE, message="no"), run="r")
    assert "1 result, none correct; see tcl cache show" in tcl(*arguments, "-s", SIZES).stdout


def test_merge() -> None:
    filled("a.db", sizes="M=1,K=1,N=1")
    filled("b.db")
    Path("damaged.db").write_bytes(Path("b.db").read_bytes()[:5000])
    sources = ("a.db", "nope.db", "damaged.db", "mm.tc", "b.db", "b.db", "new.db")
    done = tcl("merge", *sources, "--cache", "new.db")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "a.db: 6 results added to new.db",
        "b.db: 6 results added to new.db",
        "b.db: 0 results added (6 were already there) to new.db",
    ]
    errors = done.stderr.splitlines()
    assert len(errors) == 4
    assert errors[0] == "error: there is no tuning cache nope.db"
    assert errors[1].startswith(
        "error: the tuning cache damaged.db cannot be used: it is damaged ("
    )
    assert errors[2] == "error: mm.tc is not a tuning cache; name another file"
    assert errors[3] == "error: new.db cannot be merged into itself"
    assert len(TuningCache("new.db").list()) == 2
    assert Path("mm.tc").read_text() == MM
    assert not list(Path().glob("*.damaged-*"))
    assert (
        tcl("merge", "new.db").stdout
        == f"new.db: 12 results added to {Path('home').resolve()}/tuning.db\n"
    )


def test_export_and_import() -> None:
    filled("a.db")
    filled("a.db", sizes="M=1,K=1,N=1")
    done = tcl("export", "out.json", "--format", "t4", "--cache", "a.db")
    assert (done.returncode, done.stdout) == (0, "12 results of 2 keys written to out.json\n")
    done = tcl("import", "out.json", "--cache", "b.db")
    assert done.stdout == "out.json: 12 results added to b.db\n"
    done = tcl("import", "out.json", "--cache", "b.db")
    assert done.stdout == "out.json: 0 results added (12 were already there) to b.db\n"
    digest = key().digest[:10]
    done = tcl("export", "-", "--key", digest, "--cache", "b.db")
    assert len(json.loads(done.stdout)["results"]) == 6
    assert done.stderr == "6 results of 1 key written to -\n"
    shown = [tcl("show", digest, "--cache", name).stdout for name in ("a.db", "b.db")]
    assert shown[0] == shown[1]


def test_an_export_replaces_only_exports() -> None:
    filled("a.db")
    assert tcl("export", "out.json", "--cache", "a.db").returncode == 0
    Path("empty").touch()
    Path("link").symlink_to("out.json")
    for name in ("out.json", "empty", "link"):
        assert tcl("export", name, "--cache", "a.db").returncode == 0
    Path("other.json").write_text('{"schema_version": "1.0.0", "results": []}')
    Path("to_def").symlink_to("mm.tc")
    for name in ("mm.tc", "a.db", "other.json", "to_def"):
        before = Path(name).read_bytes()
        done = tcl("export", name, "--cache", "a.db")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"error: {name} exists and is not an output of tcl cache export; move it away, or "
            "name another file\n"
        )
        assert Path(name).read_bytes() == before


def test_prune() -> None:
    assert "nothing has been tuned yet" in tcl("prune", "--keep", "1").stdout
    filled("a.db")
    done = tcl("prune", "--keep", "2", "--dry-run", "--cache", "a.db")
    said = "4 of 6 results {}, and with them 0 of 1 key, from a.db\n"
    assert (done.returncode, done.stdout) == (0, said.format("would be removed"))
    for rules in (("--outdated",), ("--older-than", "1"), ("--codegen", "1", "--keep", "1")):
        assert tcl("prune", *rules, "--cache", "a.db").stdout.startswith("0 of 6 results removed")
    done = tcl("prune", "--keep", "2", "--cache", "a.db")
    assert (done.returncode, done.stdout) == (0, said.format("removed"))
    assert len(TuningCache("a.db").history(key())) == 2
    done = tcl("prune", "--older-than", "0", "--cache", "a.db")
    assert "2 of 2 results removed, and with them 1 of 1 key" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("show", "abcd", "--cache", "a.db"), 1, "a.db has no key that begins with abcd"),
        (("show", "mm.tc", "-s", "M=1,K=2,N=3", "--cache", "a.db"), 1, "see tcl cache why"),
        (("best", "mm.tc", "-s", "M=1,K=2,N=3", "--cache", "a.db"), 1, "see tcl cache why"),
        (("best", "mm.tc", "-s", SIZES, "--relax", "clok"), 2, "no field 'clok'; did you mean"),
        (("merge", "a.db", "--cache", "mm.tc"), 1, "mm.tc is not a tuning cache; choose another"),
        (("merge", "a.db", "--cache", "mm.tc/x.db"), 1, "cannot be created: Not a directory"),
        (("export", "no/x.json", "--cache", "a.db"), 1, "no/x.json cannot be written: No such"),
        (("import", "a.db", "--cache", "a.db"), 1, "is not UTF-8 text"),
        (("prune", "--keep", "1", "--cache", "mm.tc"), 1, "is not a tuning cache"),
    ],
)
def test_mistakes_end_in_a_sentence(arguments: tuple[str, ...], code: int, sentence: str) -> None:
    before = filled("a.db").path.read_bytes()
    done = tcl(*arguments)
    assert done.returncode == code
    said = done.stdout if "nothing was tuned" in done.stdout else done.stderr
    assert sentence in said
    if code == 1:
        assert len(said.splitlines()) == 1
    assert Path("a.db").read_bytes() == before
    assert Path("mm.tc").read_text() == MM


def test_import_refuses_options_that_are_none() -> None:
    filled("a.db")
    tcl("export", "x.json", "--cache", "a.db")
    data = json.loads(Path("x.json").read_text())
    data["results"][3]["tcl"]["options"] = '{"nests":[{"tiles":3}]}'
    Path("x.json").write_text(json.dumps(data))
    done = tcl("import", "x.json", "--cache", "b.db")
    assert done.returncode == 1
    assert done.stderr.startswith("error: x.json: result 3: ")
    assert not Path("b.db").exists()


def test_names_of_others_do_not_reach_the_terminal_as_they_are() -> None:
    cache = filled("a.db")
    cache.store(key(), options(1), Outcome(Verdict.CORRECT, (1e-9,)), run="[red]\x1b[31m")
    evil = CacheKey("x", "\x1b[2Jcpu", (), "[bold]", "\n")
    cache.store(
        evil, options(1), Outcome(Verdict.CORRECT, (1e-9,)), run="r", entry="\x1b]0;x\x07[b]"
    )
    done = tcl("list", "--cache", "a.db")
    assert "?]0;x?[b]" in done.stdout and "[bold]" in done.stdout
    shown = (
        tcl("show", evil.digest, "--cache", "a.db").stdout
        + tcl("show", "mm.tc", "-s", SIZES, "--cache", "a.db").stdout
    )
    assert "\x1b" not in done.stdout + shown


def spoilt(how: str) -> bytes:
    """A cache ``a.db`` that is damaged, or of another version; what is in the file."""
    filled("a.db")
    if how == "damaged":
        with open("a.db", "r+b") as file:
            file.write(random.Random(1).randbytes(1000))
            file.seek(0)
            file.write(b"SQLite format 3\0")  # so that it may be one of ours
    else:
        cache = TuningCache("a.db")
        cache.transaction(lambda db: db.execute(f"PRAGMA user_version = {VERSION + 1}"))
        cache.close()
    return Path("a.db").read_bytes()


@pytest.mark.parametrize("how", ["damaged", "of another version"])
def test_a_bad_file_that_is_only_read_stays_where_it_is(how: str) -> None:
    content = spoilt(how)
    why = (
        f"it has schema version {VERSION + 1}; this tcl needs version {VERSION}; move it away"
        if how == "of another version"
        else "it is damaged ("
    )
    sized = ("mm.tc", "-s", SIZES)
    commands = (
        *(("cache", name) for name in ("list", "inspect", "analyze")),
        *(("cache", name, *sized) for name in ("show", "why", "best")),
        ("cache", "prune", "--keep", "1"),
        ("cache", "export", "out.json"),
        ("run", *sized),
    )
    for arguments in commands:
        done = here(*arguments, "--cache", "a.db")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: the tuning cache a.db cannot be used: {why}")
        assert len(done.stderr.splitlines()) == 1
        assert Path("a.db").read_bytes() == content
    assert [p.name for p in Path().glob("a.db*")] == ["a.db"]


@pytest.mark.parametrize("name", ["import", "merge"])
@pytest.mark.parametrize("how", ["damaged", "of another version"])
def test_a_bad_file_that_is_written_is_set_aside_with_one_line(name: str, how: str) -> None:
    filled("good.db")
    tcl("export", "good.json", "--cache", "good.db")
    content = spoilt(how)
    done = tcl(name, "good.json" if name == "import" else "good.db", "--cache", "a.db")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: the tuning cache a.db cannot be used (")
    (aside,) = Path().glob("a.db.*")
    assert aside.read_bytes() == content
    assert len(TuningCache("a.db").history(key())) == 6


def test_every_command_takes_the_same_option() -> None:
    """One name, one help text, and the environment variable in it."""
    names = ("list", "best", "show", "why", "inspect", "analyze", "merge", "export", "import")
    said = set()
    for name in ("tune", "run", "bench cpu", *(f"cache {n}" for n in (*names, "prune"))):
        text = " ".join(here(*name.split(), "--help").stdout.split())
        said.add(re.search(r"--cache FILE (.*?your cache folder\.)", text)[1])  # type: ignore[index]
    assert said == {
        "The tuning cache. Default: tuning.db in TCL_CACHE_DIR, else in your cache folder."
    }


def of_device(fields: dict[str, str]) -> CacheKey:
    """The key of ``SIZES`` on a device that is this one but for some words of its identity."""
    device = key().device
    for words, others in fields.items():
        assert words in device
        device = device.replace(words, others)
    return replace(key(), device=device)


CORES = f"{host_cpu().cores} cores"


def test_best_and_run_with_fields_relaxed() -> None:
    other = of_device({CORES: "4096 cores"})
    TuningCache("a.db").store(
        other, options(4), Outcome(Verdict.CORRECT, (2e-6,)), run="other-machine", entry="mm"
    )
    sized = ("mm.tc", "-s", SIZES, "--cache", "a.db")
    assert tcl("best", *sized).stderr == (
        "error: a.db has no options for mm on float32[8,16] float32[16,32]; see tcl cache why\n"
    )
    assert tcl("best", *sized, "--relax", "l2,clock").stderr == (
        "error: a.db has no options for mm on float32[8,16] float32[16,32], nor of devices that "
        "differ only in clock, l2; see tcl cache why\n"
    )
    warning = (
        "warning: mm was not tuned on this device for float32[8,16] float32[16,32]; options "
        f"that were measured on another device (cores 4096 instead of {host_cpu().cores}) are "
        "used, because relax allows it"
    )
    done = tcl("best", *sized, "--relax", "clock, cores")
    assert (done.returncode, done.stdout) == (0, f"{options(4)}\n")
    first, second = done.stderr.splitlines()
    assert first == warning
    assert second.startswith(f"2.00 µs a call on {other.device}, found by other-ma on ")
    done = here("run", *sized, "--relax", "cores")
    assert (done.returncode, done.stderr) == (0, f"{warning}\n")
    assert f"with options {options(4)}" in done.stdout
    done = here("run", *sized)
    assert "a.db has no options for mm M=8 K=16 N=32 on this device" in done.stderr
    done = tcl("why", *sized)
    assert done.stdout.splitlines()[2:] == [
        f"  cores  asked for {host_cpu().cores}",
        "         there is  4096",
        "to use it, ignore the difference: --relax cores",
    ]
    TuningCache("a.db").store(key(), options(2), Outcome(Verdict.CORRECT, (3e-6,)), run="own")
    done = tcl("best", *sized, "--relax", "cores")
    assert done.stdout == f"{options(2)}\n" and "warning" not in done.stderr


def test_an_unknown_field_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    filled("a.db")
    monkeypatch.setenv("TCL_RELAX", "cores,colour")
    done = tcl("best", "mm.tc", "-s", SIZES, "--cache", "a.db")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: TCL_RELAX: a device has no field 'colour'; there are: model, architecture, "
        "vectors, matrix-unit, narrowing, multiprocessors, cores, l2, clock, threads\n"
    )


@functools.cache
def can_mount() -> bool:
    """Whether this user may have mounts of his own."""
    if shutil.which("unshare") is None:
        return False
    line = ["unshare", "--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


mounting = pytest.mark.skipif(not can_mount(), reason="needs mounts of one's own")


@mounting
def test_read_only_cache_can_be_read() -> None:
    Path("ro").mkdir()
    filled("ro/a.db")
    tcl("export", "x.json", "--cache", "ro/a.db")
    names = sorted(os.listdir("ro"))
    where = ("--cache", "ro/a.db")
    listed, shown, why, exported, merged, pruned, *refused, unwritten = tcl_among_mounts(
        "mount --bind ro ro && mount -o remount,bind,ro ro",
        ("list", *where),
        ("show", "mm.tc", "-s", SIZES, *where),
        ("why", "mm.tc", "-s", SIZES, *where),
        ("export", "y.json", *where),
        ("merge", "ro/a.db", "--cache", "new.db"),
        ("prune", "--keep", "2", "--dry-run", *where),
        ("prune", "--keep", "2", *where),
        ("import", "x.json", *where),
        ("merge", "new.db", *where),
        ("export", "ro/x.json", *where),
    )
    assert "1 key in ro/a.db" in listed.stdout
    assert "6 results" in shown.stdout
    assert "was tuned" in why.stdout
    assert exported.returncode == 0
    assert Path("y.json").read_text() == Path("x.json").read_text()
    assert merged.stdout == "ro/a.db: 6 results added to new.db\n"
    assert "4 of 6 results would be" in pruned.stdout
    for done in refused:
        assert done.returncode == 1
        assert done.stderr == "error: the tuning cache ro/a.db cannot be used: it is read-only\n"
    assert unwritten.stderr == "error: ro/x.json cannot be written: Read-only file system\n"
    assert sorted(os.listdir("ro")) == names
    assert len(TuningCache("ro/a.db").history(key())) == 6


@mounting
def test_full_disk_is_said_and_loses_nothing() -> None:
    """File systems of 200 KiB, each with a cache on it that fills half of it; ``after`` is what is
    left on it."""
    Path("small").mkdir()
    filled("small.db", 20)
    filled("large.db", 1500, "M=1,K=1,N=1", "other")
    tcl("export", "large.json", "--cache", "large.db")
    old = '{"schema_version": "1.0.0", "results": [], "tcl": {"problems": []}}'
    Path("old.json").write_text(old)
    fill = "dd if=/dev/zero of=small/fill bs=1k 2>/dev/null || true"  # not a byte is left
    commands = (
        (("merge", "large.db", "--cache", "small/a.db"), "true"),
        (("import", "large.json", "--cache", "small/a.db"), "true"),
        (("export", "small/x.json", "--cache", "large.db"), "true"),
        (("prune", "--keep", "1", "--cache", "small/a.db"), fill),
    )
    mount = "mount -t tmpfs -o size=200k none small"
    steps: list[str | tuple[str, ...]] = []
    for number, (arguments, before) in enumerate(commands):
        put = "cp small.db small/a.db && cp old.json small/x.json"
        keep = f"mkdir after{number} && cp small/* after{number}"
        steps += [f"{mount} && {put} && {before}", arguments, f"{keep} && umount --lazy small"]
    merged, imported, exported, pruned = tcl_among_mounts(*steps)
    full = "error: the tuning cache small/a.db cannot be used: the disk is full\n"
    assert (merged.returncode, merged.stderr) == (1, full)
    assert (imported.returncode, imported.stderr) == (1, full)
    assert exported.returncode == 1
    assert exported.stderr == "error: small/x.json cannot be written: No space left on device\n"
    assert pruned.returncode == 1
    assert pruned.stderr.startswith("error: the tuning cache small/a.db cannot be used: ")
    assert len(pruned.stderr.splitlines()) == 1
    for number in range(len(commands)):
        after = Path(f"after{number}")
        assert (after / "x.json").read_text() == old
        assert len(TuningCache(after / "a.db").history(key())) == 21
        assert not list(after.glob("*.damaged*"))


@pytest.fixture
def writers() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that store results, a few hundred a second, until told to stop."""
    script = (
        "import sys, itertools, time\n"
        "from tcl.tuner.cache.tuning_cache import *\n"
        "from tcl.tuner.measure.verdict import *\n"
        "cache, who = TuningCache('busy.db'), sys.argv[1]\n"
        "key = CacheKey('def busy', 'fake', (), 'd', '1')\n"
        "for i in itertools.count():\n"
        "    cache.store(key, f'{who}-{i}', Outcome(Verdict.CORRECT, (1.0 + i,)), run=who)\n"
        "    print(i, flush=True)\n"
        "    time.sleep(0.002)\n"
    )
    outdated = replace(key(), codegen_version="0")
    cache = filled("busy.db")
    right = Outcome(Verdict.CORRECT, (1.0,))
    cache.add(
        outdated, [Record.from_outcome(options(i + 1), right, 0.0, "old") for i in range(200)]
    )
    cache.close()
    started = []
    for who in "ab":
        with open(f"{who}.log", "w") as log:
            line = [sys.executable, "-c", script, who]
            started.append(subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT, text=True))
    yield started
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_cache_that_others_write(writers: list[subprocess.Popen[str]]) -> None:
    """Commands on a cache in use work, and no result of anybody is lost."""
    filled("other.db", sizes="M=1,K=1,N=1")
    logs = [Path(f"{who}.log") for who in "ab"]
    while not all(log.stat().st_size for log in logs):
        time.sleep(0.05)
    commands = (
        ("list", "--cache", "busy.db"),
        ("merge", "other.db", "--cache", "busy.db"),
        ("export", "busy.json", "--cache", "busy.db"),
        ("why", "mm.tc", "-s", SIZES, "--cache", "busy.db"),
        ("merge", "busy.db", "--cache", "copy.db"),
        ("import", "busy.json", "--cache", "busy.db"),
        ("prune", "--codegen", "0", "--cache", "busy.db"),
        ("show", "mm.tc", "-s", SIZES, "--cache", "busy.db"),
    )
    tcl("export", "busy.json", "--cache", "busy.db")
    running = [
        subprocess.Popen(command(*c), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for c in commands[:3]
    ]
    for arguments in commands[3:]:
        done = tcl(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
    for reader in running:
        assert reader.wait(600) == 0
    for process in writers:
        assert process.poll() is None  # still at it
        process.send_signal(signal.SIGKILL)
        process.wait()
    counts = [log.read_text().count("\n") for log in logs]
    busy = CacheKey("def busy", "fake", (), "d", "1")
    stored = [r.run for r in TuningCache("busy.db").history(busy)]
    for who, count in zip("ab", counts, strict=True):
        assert count <= stored.count(who) <= count + 1  # killed between storing and saying so
    assert len(TuningCache("busy.db").history(key())) == 6
    assert len(TuningCache("busy.db").history(key("M=1,K=1,N=1"))) == 6
    assert len(TuningCache("busy.db").history(replace(key(), codegen_version="0"))) == 0
    assert not list(Path().glob("busy.db.*"))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_merge_that_is_killed_adds_all_or_nothing() -> None:
    filled("large.db", 3000, "M=1,K=1,N=1")
    filled("into.db")
    rng = random.Random(0)
    for _ in range(4):
        shutil.copy("into.db", "try.db")
        process = subprocess.Popen(
            command("merge", "large.db", "--cache", "try.db"), stdout=subprocess.PIPE
        )
        time.sleep(rng.uniform(0.2, 1.5))
        process.kill()
        process.communicate()
        counts = [len(each.records) for each in results(TuningCache("try.db"))]
        assert counts in ([6], [6, 3001])
        for end in ("", "-wal", "-shm"):
            Path(f"try.db{end}").unlink(missing_ok=True)
    assert not list(Path().glob("try.db.*"))
