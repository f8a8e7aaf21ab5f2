"""Alike mistakes end alike, in every command: 2 where the command line itself is wrong, 1 where
what it names is; one sentence, and never a traceback."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import click
import pytest
from click.testing import CliRunner, Result

from tcl.cli import main
from tcl.cli.meant import OTHER_NAMES

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"
SIZES = ("--sizes", "M=5,K=6,N=7")

COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("check",): ("mm.tc",),
    ("show",): ("mm.tc", *SIZES),
    ("run",): ("mm.tc", *SIZES),
    ("tune",): ("mm.tc", *SIZES),
    ("cache", "list"): (),
    ("cache", "show"): ("mm.tc", *SIZES),
    ("cache", "why"): ("mm.tc", *SIZES),
    ("cache", "best"): ("mm.tc", *SIZES),
    ("cache", "merge"): ("empty.db",),
    ("cache", "inspect"): (),
    ("cache", "analyze"): (),
    ("cache", "prune"): ("--keep", "1"),
    ("cache", "export"): ("out.json",),
    ("cache", "import"): ("in.json",),
    ("model", "train"): (),
    ("model", "evaluate"): (),
    ("model", "predict"): ("mm.tc", *SIZES),
    ("bench", "cpu"): (),
    ("bench", "compare"): ("old.json", "new.json"),
    ("devices",): (),
    ("docs",): (),
}
"""Every command, and arguments that it takes."""

USAGE, INPUT = 2, 1
Mistakes: TypeAlias = list[tuple[tuple[str, ...], str]]


def _leaves(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(group, click.Group):
        yield path
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        assert child is not None
        yield from _leaves(child, (*path, name))


def _command(path: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def _options(path: tuple[str, ...]) -> dict[str, click.Option]:
    return {p.opts[0]: p for p in _command(path).params if isinstance(p, click.Option)}


ENTRY: Mistakes = [(("--entry", "none"), "did you mean|it has mm|has no def none")]
SIZE: Mistakes = [
    (("--sizes", "m=5,K=6,N=7"), r"mm has no size m; did you mean M\?"),
    (("--sizes", "M=5"), "mm needs a value for K, N; write --sizes M="),
    (("--sizes", "M=x,K=6,N=7"), "the size M needs a whole number, not 'x'; write --sizes M="),
    (
        ("--sizes", "M=\u0663,K=6,N=7"),
        "the size M needs a whole number, not '\u0663'; write --sizes",
    ),
    (("--sizes", "M,K=6,N=7"), "the size M needs a value; write --sizes M=...,K=...,N=..."),
    (("--sizes", "M=5,K=6,N="), "the size N needs a value; write --sizes M="),
    (("--sizes", "M=5,K=6,N=7,Q=1"), "mm has no size Q; its sizes are M, K, N"),
    (("--sizes", "M:8,N:9"), "'M:8' gives no size; write M=8"),
    (("--sizes", "tiny"), "mm has no comment '# sizes tiny'; write --sizes M=...,K=...,N=..."),
    (("--sizes", "M=5,M=5,K=6,N=7"), "the size M is given twice"),
]
VARYING: Mistakes = [
    (("--varying", "Q"), "--varying names Q, which is not a size of mm; its sizes are M, K, N"),
]
OPTIONS: Mistakes = [
    (("--options", "fast"), "unknown preset 'fast'"),
    (("--options", '{"tile": 3}'), "unknown key 'tile'"),
    (("--options", "{"), "not valid JSON"),
]
CACHE: Mistakes = [
    (("--cache", "mm.tc"), "mm.tc is not a tuning cache"),
    (("--cache", "folder"), "the tuning cache folder cannot be used: it is a folder; name a file"),
]
OF_INPUT: dict[str, Mistakes] = {
    "--entry": ENTRY,
    "--sizes": SIZE,
    "--varying": VARYING,
    "--options": OPTIONS,
    "--cache": CACHE,
    "--device": [
        (("--device", "abacus"), "there is no .*abacus"),
        (("--device", ""), "there is no"),
    ],
    "--grid": [
        (("--grid", "none.toml"), "none.toml cannot be read: No such file"),
        (("--grid", "folder"), "folder cannot be read: Is a directory"),
        (("--grid", "mm.tc"), "mm.tc: error: this is not TOML"),
    ],
    "--fix": [(("--fix", "nob=3"), "nob")],
    "--key": [(("--key", "zz", "--cache", "empty.db"), "no key that begins with zz")],
    "--report": [
        (("--report", "folder"), "is a folder"),
        (("--report", "no/x"), "no/x cannot be written: there is no folder no"),
        (("--report", "mm.tc/x"), "mm.tc/x cannot be written: there is no folder mm.tc"),
        (("--report", "a" * 250 + ".html"), "cannot be written: File name too long"),
    ],
    "--out": [(("--out", "mm.tc"), "mm.tc cannot be used")],
}
"""What an option of this name may be told that is not there, or not right, with the sentence."""

FILES = [
    ("none.tc", "none.tc cannot be read: No such file or directory"),
    ("folder", "folder cannot be read: Is a directory"),
    ("binary.tc", r"binary.tc is not UTF-8 text \(byte \d+\); save it as such"),
    ("empty.tc", "empty.tc:1:1: error: the text holds no def"),
    ("wrong.tc", "wrong.tc:1:19: error:"),
]
TAKES_A_DEF = [
    *(("check",), ("show",), ("run",), ("tune",)),
    *(("cache", name) for name in ("best", "show", "why")),
]

TOGETHER = [
    (("show", "mm.tc", *SIZES, "--threads", "2", "--device", "h200"), "--threads is for a"),
    (
        ("run", "mm.tc", *SIZES, "--threads", "2", "--device", "cuda-emulated"),
        "--threads is for a CPU; leave it out with --device cuda-emulated",
    ),
    (
        ("run", "mm.tc", *SIZES, "--options", "naive", "--relax", "clock"),
        "--relax is for cached options; leave it out with --options",
    ),
    (("show", "mm.tc", *SIZES, "--stage", "resources"), "name a GPU, such as --device h200"),
    (("show", "mm.tc", *SIZES, "--stage", "counters"), "name a GPU, such as --device h200"),
    (("run", "mm.tc", *SIZES, "--counters"), "--counters is for --device cuda-emulated"),
    (
        *(("run", "mm.tc", *SIZES, "--device", "cuda-emulated", "--counters", "--varying", "M"),),
        "--counters needs known sizes; leave out --varying",
    ),
    (("tune", "mm.tc", *SIZES, "--dry-run"), "--dry-run is for --grid"),
    (("tune",), "Missing argument 'FILE'"),
    *(
        (("tune", "--grid", "g.toml", *given), f"{name} belongs in the tables of the grid")
        for name, given in {
            "--sizes": SIZES,
            "FILE": ("mm.tc",),
            "--entry": ("-e", "mm"),
            "--varying": ("--varying", "M"),
        }.items()
    ),
    (("tune", "--grid", "g.toml", "--fix", "tile=3"), "--fix names a knob of one def"),
    (("tune", "mm.tc", *SIZES, "--population", "4", "--elites", "9"), "--elites must be at most"),
    (("tune", "mm.tc", *SIZES, "--fix", "tile"), "--fix needs KNOB=VALUE, not 'tile'"),
    (("tune", "mm.tc", *SIZES, "--fix", "a=1", "--fix", "a=2"), "the knob a twice"),
    (("cache", "prune"), "choose what to remove"),
    (("cache", "show", "abcdef12", *SIZES), "the key abcdef12 already contains --sizes"),
    (
        ("cache", "show", "abcdef12", "--device", "cpu"),
        "the key abcdef12 already contains --device",
    ),
    (("cache", "why", "mm.tc", "--device", "cuda-emulated", "-t", "2"), "--threads is for a"),
    (("nothing",), "there is no command 'nothing'; there are: check, show"),
    (("chek", "mm.tc"), r"there is no command 'chek'; did you mean check\?"),
    (("cache", "nothing"), "there is no command 'nothing'; there are: "),
    (("bench", "cpus"), r"there is no command 'cpus'; did you mean cpu\?"),
]
"""Command lines that contradict themselves."""

BEYOND = {
    "--generations": ("0", "--generations must be a whole number from 1"),
    "--population": ("1", "--population must be a whole number from 2"),
    "--elites": ("-1", "--elites must be a whole number from 0"),
    "--crossover": ("101", "--crossover must be a whole number from 0 to 100"),
    "--mutation": ("101", "--mutation must be a whole number from 0 to 100"),
    "--strategy": ("luck", "--strategy must be one of"),
    "--time-limit": ("0", "--time-limit must be a number of seconds above 0"),
    "--executor": ("abacus", "there is no executor 'abacus'"),
    "--jobs": ("5000", "--jobs must be a whole number from 0 to 4096"),
    "--threads": ("0", "--threads"),
    "--tolerance": ("-1", "-1.0 is not in the range"),
    "--peers": ("abacus", "there is no peer 'abacus'"),
    "--rows": ("abacus", "no row matches 'abacus'"),
    "--rounds": ("0", "0 is not in the range"),
    "--runs": ("0", "0 is not in the range"),
    "--placement": ("anywhere", "'anywhere' is not one of"),
    "--tune": ("0", "0.0 is not in the range"),
    "--seed": ("-1", "-1 is not in the range"),
    "--top": ("-1", "-1 is not in the range"),
    "--top-k": ("0", "0 is not in the range"),
    "--relax": ("colour", "--relax: a device has no field 'colour'"),
    "--for": ("abacus", "'abacus' is not one of"),
    "--trees": ("0", "0 is not in the range"),
    "--candidates": ("1", "1 is not in the range"),
    "--keep": ("-1", "-1 is not in the range"),
    "--older-than": ("-1", "-1.0 is not in the range"),
    "--stage": ("none", "'none' is not one of"),
    "--format": ("t5", "'t5' is not 't4'"),
    "--varying": (",", "--varying needs names of sizes, as in --varying M,N"),
}
"""Values that their option never has."""
FREE = {"--entry", "--sizes", "--options", "--cache", "--device", "--grid", "--fix", "--key"}
FREE |= {"--report", "--out", "--codegen", "--namespace", "--picture"}
FREE |= {"--model", "--warm-start"}
"""Options of which only what they name can be wrong; any text may be a version's name."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "cache"))
    Path("folder").mkdir()
    Path("mm.tc").write_text(MM)
    Path("empty.tc").touch()
    Path("binary.tc").write_bytes(b"\xff\xfe")
    Path("wrong.tc").write_text("def f(float(N) A) => (B) { B(i) = A(i) }\n")
    from tcl.tuner.cache.tuning_cache import TuningCache

    TuningCache(Path("empty.db")).check_writable()
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    with warnings.catch_warnings():  # a command sets how they are shown, for good
        yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _check(done: Result, code: int, sentence: str) -> None:
    assert done.exit_code == code, (done.output, done.exception)
    assert re.search(sentence, done.stderr), done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    if code == USAGE:
        assert done.stderr.startswith("Usage: ")
    else:
        assert len([line for line in done.stderr.splitlines() if "error:" in line]) == 1


def test_every_command_is_here() -> None:
    assert set(_leaves(main)) == set(COMMANDS)


@pytest.mark.parametrize(
    ("path", "typed", "meant"),
    [
        (("tune",), "--seconds", "--time-limit"),
        (("tune",), "--Max_Time", "--time-limit"),
        (("tune",), "--secnds", "--time-limit"),
        (("tune",), "--workers", "--jobs or --threads"),
        (("run",), "--workers", "--threads"),
        (("show",), "--emit", "--stage"),
        (("check",), "--entri", "--entry"),
    ],
)
def test_an_option_under_another_name_is_known(
    path: tuple[str, ...], typed: str, meant: str
) -> None:
    done = _run(*path, *COMMANDS[path], typed, "8")
    _check(done, USAGE, f"No such option '?{typed}.*Did you mean {meant}")


def test_words_for_options_are_none_themselves() -> None:
    """And every option of the table is one of some command."""
    options = {name: set(_options(path)) for path in COMMANDS for name in (" ".join(path),)}
    assert set(OTHER_NAMES) <= set().union(*options.values())
    for found in options.values():
        for name in found & set(OTHER_NAMES):
            assert not found & {f"--{word}" for word in OTHER_NAMES[name].split()}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_command_line_itself(path: tuple[str, ...]) -> None:
    """An option that there is not, a value that is none of its kind or beyond its range, and an
    argument that is missing."""
    right = COMMANDS[path]
    _check(_run(*path, *right, "--nothing"), USAGE, "No such option '?--nothing")
    if any(p.required for p in _command(path).params):
        _check(_run(*path), USAGE, "Missing argument")
    for name, option in _options(path).items():
        if option.is_flag or name == "--help":
            continue
        assert (name in BEYOND) != (name in FREE), f"say what is wrong for {name}"
        if name in BEYOND:
            value, sentence = BEYOND[name]
            _check(_run(*path, *right, name, value), USAGE, sentence)
        if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType):
            threads = name == "--threads"
            sentence = (
                "from 1 to 1024, not 'many'; leave it"
                if threads
                else "'many' is not a (whole )?number"
            )
            _check(_run(*path, *right, name, "many"), USAGE, sentence)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_what_the_options_name(path: tuple[str, ...]) -> None:
    for name in _options(path):
        for given, sentence in OF_INPUT.get(name, []):
            right = () if name == "--grid" else COMMANDS[path]
            if name == "--sizes":
                right = right[:1]
            if name == "--cache" and path == ("cache", "import"):
                continue  # what is imported is read first
            if name != "--cache" and path in (("cache", "inspect"), ("cache", "analyze")):
                continue  # which results are looked at: test_cache_insight.py
            if name == "--out" and path == ("model", "train"):
                continue  # what there is to learn from is read first
            _check(_run(*path, *right, *given), INPUT, sentence)


@pytest.mark.parametrize("path", TAKES_A_DEF, ids=" ".join)
def test_files(path: tuple[str, ...]) -> None:
    cache = ("--cache", "empty.db") if "--cache" in _options(path) else ()
    for file, sentence in FILES:
        _check(_run(*path, file, *cache), INPUT, sentence)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cache import none.json", "none.json cannot be read: No such file"),
        ("cache import folder", "folder cannot be read: Is a directory"),
        ("cache import mm.tc", "mm.tc is not JSON"),
        ("cache export out.json", "does not exist: nothing has been tuned yet"),
        ("cache export --cache empty.db folder", "folder cannot be written: Is a directory"),
        ("cache show mm.tc --sizes M=5,K=6,N=7", "does not exist: nothing has been tuned yet"),
        *(
            (f"{line} --cache none.db", "none.db does not exist: nothing has been tuned yet$")
            for line in (
                *("cache list", "cache export out.json", "cache prune --keep 1"),
                *("cache inspect", "cache analyze", "bench cpu --rows MLP3"),
                *(
                    f"{c} mm.tc --sizes M=5,K=6,N=7"
                    for c in ("cache show", "cache why", "cache best", "run")
                ),
            )
        ),
        *(
            (
                line,
                r"error: the tuning cache no/x.db cannot be created: the folder no does not exist; "
                "make it, or name another file$",
            )
            for line in (
                "tune mm.tc --sizes M=5,K=6,N=7 --cache no/x.db",
                "cache merge empty.db --cache no/x.db",
            )
        ),
        (
            "tune mm.tc --sizes M=5,K=6,N=7 --cache mm.tc",
            "error: mm.tc is not a tuning cache; choose another file, or move it away$",
        ),
        ("cache merge none.db --cache into.db", "there is no tuning cache none.db"),
        (
            "cache merge folder --cache into.db",
            "folder cannot be used: it is a folder; name a file",
        ),
        ("cache show 349", "349 is neither a file nor a key: that is 4 to 64 digits of a key"),
        ("cache merge empty.db --cache mm.tc", "mm.tc is not a tuning cache"),
        ("cache merge empty.db --cache folder", "folder cannot be used: it is a folder"),
        ("cache list --cache /dev/null", "/dev/null cannot be used: it is not a regular file"),
        ("devices --measure --threads 1000", "1000 threads need as many cores"),
        ("run mm.tc", "mm has the sizes M, K, N; give their values: --sizes M=...,K=...,N=..."),
        ("run mm.tc -s M=99999999,K=99999999,N=5", "input 'A' of mm needs 40 PB of memory"),
        ("run mm.tc -s M=10000000,N=10000000,K=1", "output 'C' of mm needs 400 TB"),
        ("run mm.tc -s M=5,K=5,N=5 -o none.json", "none.json cannot be read: No such"),
        ("run mm.tc -s M=5,K=5,N=5 -o binary.tc", "is not UTF-8 text"),
        ("tune mm.tc -s M=5,K=5,N=5 --cache mm.tc/x.db", "cannot be created"),
    ],
)
def test_other_things_that_are_named(line: str, sentence: str) -> None:
    done = _run(*line.split())
    assert done.exit_code == INPUT, done.output
    assert re.search(sentence, done.stderr.rstrip()) and "Traceback" not in done.stderr
    assert not Path("no").exists() and not Path("none.db").exists()


@pytest.mark.parametrize(("arguments", "sentence"), TOGETHER, ids=lambda x: str(x)[:40])
def test_command_lines_that_contradict_themselves(
    arguments: tuple[str, ...], sentence: str
) -> None:
    _check(_run(*arguments), USAGE, sentence)


def test_a_grid_names_settings_as_its_file_does() -> None:
    Path("g.toml").write_text('crossover = 101\n[[tune]]\nfile = "mm.tc"\n'
                              'sizes = { M = 5, K = 6, N = 7 }\n')  # fmt: skip
    done = _run("tune", "--grid", "g.toml")
    assert done.exit_code == INPUT
    assert "error: crossover must be a whole number from 0 to 100, not 101" in done.stderr


def test_a_variable_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_NUM_THREADS", "many")
    for path in (("run",), ("tune",), ("cache", "why")):
        _check(_run(*path, *COMMANDS[path]), INPUT, "TCL_NUM_THREADS must be a whole number")
    monkeypatch.delenv("TCL_NUM_THREADS")
    monkeypatch.setenv("TCL_TUNE_MODE", "atuo")
    _check(
        _run("run", *COMMANDS["run",]), INPUT, "TCL_TUNE_MODE names the unknown tune mode 'atuo'"
    )
