"""The command line, as a user runs it: in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import MM, here, of_brief_searches, tcl
from known_machine import known_machine
from places import EXAMPLES

from tcl import __version__ as version
from tcl.codegen.options.options import DEFAULT


@pytest.fixture
def mm(tmp_path: Path) -> Path:
    file = tmp_path / "mm.tc"
    file.write_text(MM)
    return file


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results go that no test asks for."""
    folder = known_machine(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("TCL_CACHE_DIR", str(folder))
    return folder


def test_check_accepts(mm: Path) -> None:
    done = here("check", mm)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mm(float32(M, K) A, float32(K, N) B) -> (float32(M, N) C)" in done.stdout


def test_check_reports_every_problem(tmp_path: Path) -> None:
    file = tmp_path / "bad.tc"
    file.write_text(
        "def f(float(N) A) -> (B) { B(i) = A(i, i) }\ndef g(float(N) A) -> (B) { C(i) = A(i) }\n"
    )
    done = here("check", file)
    assert done.returncode == 1
    assert f"{file}:1:35: error:" in done.stderr
    assert f"{file}:2:28: error:" in done.stderr
    assert "^" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_goes_on_after_a_def_that_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.tc"
    file.write_text(
        "def f(float(N) A) -> (B) { B(i) = A(i, i) }\n"
        "def g(float(8) A) -> (B) { B(i) = A(i) where i in 0:9 }\n"
        "def h(float(N) A) -> (B) { B(i) = A(i) }\n"
        "# sizes a: N=8\n"
        "def k(float(N) A) -> (B) { B(i) = A(i) where i in 0:9 }\n"
        "def l(float(N) A) -> (B) { B(i) = A(i / 2) }  # for no sizes\n"
    )
    done = here("check", file, "--json")
    assert done.returncode == 1
    for place in ("1:35", "2:37", "5:37", "6:28"):
        assert done.stderr.count(f"{file}:{place}: error:") == 1
    (found,) = json.loads(done.stdout)
    assert [each["line"] for each in found["findings"]] == [1, 2, 5, 6]
    assert [each["entry"] for each in found["defs"]] == ["h"]
    file.write_text("def f(float(N) A) -> (B) { B(i) = A(i, i) }\ndef g(\n")
    done = here("check", file)
    assert (done.returncode, done.stderr.count("error:")) == (1, 1)


def test_check_refuses_no_def_that_few_sizes_fit(tmp_path: Path) -> None:
    """Of those that are tried, none do; that an index has no range at some is no error."""
    file = tmp_path / "f.tc"
    read = "A((N - 5) * i) + B(M * 1000 + 1)"
    file.write_text(f"def f(float(M) A, float(N) B) -> (O) {{ O(i) = {read} }}")
    assert here("check", file, "-e", "f", "-s", "M=3,N=4000").returncode == 0
    assert here("check", file).returncode == 0
    file.write_text("def f(float(M) A) -> (O, P) { P(i) = 1 O(i) = A(i + 9) where i in 0:M }")
    assert ":1:31: error: the range of 'i'" in here("check", file).stderr


def test_check_accepts_a_def_whose_caller_declares_sizes(tmp_path: Path) -> None:
    file = tmp_path / "f.tc"
    file.write_text(
        "def fill(float(N) X) -> (float(M) O) { O(i) = X(0) }\n"
        "def f(float(N) X, float(M) Y) -> (float(M) O) { O = fill(X) }\n"
    )
    assert here("check", file).returncode == 0
    assert "the range of 'i' cannot be inferred" in here("check", file, "-e", "fill").stderr


def test_check_says_what_a_size_without_a_formula_is(tmp_path: Path) -> None:
    file = tmp_path / "f.tc"
    where = "i in 0:(M < 4 ? min(M, N) : min(M, N + 1) - 2)"
    file.write_text(f"def f(float(M) A, float(N) B) -> (O) {{ O(i) = A(i) + B(i) where {where} }}")
    *_, hint = here("check", file).stdout.splitlines()
    assert hint == (
        "  ...: no formula was found that holds for all sizes; "
        "--entry f --sizes M=...,N=... shows it for some"
    )
    assert "no formula" not in here("check", file, "-e", "f", "-s", "M=5,N=3").stdout
    file.write_text(f"# sizes small: M=5, N=3\n{file.read_text()}")
    assert here("check", file).stdout.splitlines()[1:] == [
        "  ...: for M=5, N=3",
        "  O: float32(2), first index 0",
    ]


def test_a_def_that_does_not_depend_on_a_faulty_one(tmp_path: Path) -> None:
    file = tmp_path / "some.tc"
    file.write_text(
        "def bad(float(N) A) -> (B) { B(i) = A(i, i) }\n"
        "def good(float(N) A) -> (B) { B(i) = A(i) }\n"
    )
    told = f"warning: {file}: 'bad' (line 1) is left out, because it has errors; tcl check {file}"
    for more in (("check",), ("show", "--stage", "ir", "-s", "N=8"), ("run", "-s", "N=8")):
        done = here(more[0], file, *more[1:], "-e", "good")
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith(told)
        done = here(more[0], file, *more[1:], "-e", "bad")
        assert done.returncode == 1
        assert f"{file}:1:37: error: 'A' has 1 dimension" in done.stderr
    assert here("check", file).returncode == 1
    found = json.loads(here("check", file, "-e", "good", "--json").stdout)[0]
    assert found["ok"]
    assert [f["message"] for f in found["findings"]] == [
        f"{file}: 'bad' (line 1) is left out, because it has errors; tcl check {file} shows them"
    ]


@pytest.mark.parametrize("command", ["show", "run", "check"])
def test_warnings_are_those_of_the_def_asked_for(tmp_path: Path, command: str) -> None:
    file = tmp_path / "two.tc"
    file.write_text(
        "def quiet(float(N) A) -> (O) { O(i) = A(i) }\n"
        "def loud(int8(N) A) -> (int32(N) O) { O(i) = A(i) * A(i) }\n"
        "def calls(int8(N) A) -> (int32(N) O) { O = loud(A) }\n"
    )
    for entry, warned in (("quiet", 0), ("loud", 1), ("calls", 1)):
        done = here(command, file, "-e", entry, "--sizes", "N=4")
        assert (done.returncode, done.stderr.count("warning:")) == (0, warned), done.stderr


def test_a_def_as_a_word_of_its_own(mm: Path) -> None:
    for words in ((mm, "mm"), ("mm", mm)):
        done = here("run", *words)
        assert done.returncode == 2
        assert f"({words[1]}): there is one FILE, and --entry chooses a def" in done.stderr


@pytest.mark.parametrize("command", ["devices", "cache list", "bench cpu"])
def test_a_word_for_a_command_that_takes_none(command: str) -> None:
    done = here(*command.split(), "h200")
    assert done.returncode == 2
    assert f" {command} takes options only" in done.stderr


@pytest.mark.parametrize("command", ["show", "run", "check", "tune"])
def test_sizes_that_a_space_parts_are_no_files(mm: Path, command: str) -> None:
    done = here(command, mm, "--sizes", "M=3,", "K=4,", "N=5")
    assert done.returncode == 2
    assert "K=4 is a size, not a file; all sizes are one word, without spaces" in done.stderr


def test_check_strict(tmp_path: Path) -> None:
    file = tmp_path / "loose.tc"
    file.write_text("def f(float(N) A, float(M) B) -> (C) { C(i) = A(i) + B(i) }\n")
    assert here("check", file).returncode == 0
    done = here("check", "--strict", file)
    assert done.returncode == 1
    assert "runs over M of 'B' and over N of 'A'" in done.stderr


def test_check_reads_standard_input() -> None:
    assert here("check", "-", stdin=MM).returncode == 0


def test_check_loads_little() -> None:
    """Most of the 0.2 s that it takes is Python's own start: what else takes long is not loaded."""
    code = (
        "import sys; from tcl.cli import main; sys.argv = ['tcl', 'check', sys.argv[1]]\n"
        "try: main()\n"
        "finally: print([m for m in ('numpy', 'llvmlite', 'numba', 'rich', 'sqlite3', 'cupy') "
        "if m in sys.modules])"
    )
    file = EXAMPLES / "wavenet.tc"
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("ast", "C(m, n) +=! A(m, k) * B(k, n)"),
        ("canonical", "t0(i0, i2)"),
        ("grad", "float(5, 6) d_A"),
        ("ir", "m"),
        ("schedule", "m"),
        ("source", "define"),
        ("asm", "ret"),
        ("reference", "for "),
    ],
)
def test_show(mm: Path, stage: str, expected: str) -> None:
    done = here("show", mm, "--sizes", "M=5,K=6,N=7", "--stage", stage)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@pytest.mark.parametrize("stage", ["ast", "canonical", "grad", "reference"])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--device", "abacus"), "there is no device profile abacus"),
        (("--device", "cuda-emulated"), "is for tcl run"),
        (("-o", "fast"), "unknown preset 'fast'"),
        (("--threads", "0"), "threads"),
    ],
)
def test_show_refuses_what_is_wrong_though_it_makes_no_difference(
    mm: Path, stage: str, given: tuple[str, str], sentence: str
) -> None:
    done = here("show", mm, "--sizes", "M=5,K=6,N=7", "--stage", stage, *given)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert sentence in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("device", ["cpu", "h200"])
@pytest.mark.parametrize("stage", ["plan", "schedule"])
def test_show_has_no_plan_for_options_that_are_refused(mm: Path, stage: str, device: str) -> None:
    options = ("-o", '{"nests":[{"order":[1,0]}]}', "--device", device)
    done = here("show", mm, "--sizes", "M=5,K=6,N=7", "--stage", stage, *options)
    assert done.returncode == 1 and done.stdout == ""
    assert "the order (1, 0) does not name each of them once" in done.stderr


def test_run(mm: Path, tmp_path: Path) -> None:
    done = tcl("run", mm, "-s", "M=5,K=6,N=7", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "agrees with the reference" in done.stdout and "NaN" not in done.stdout


def test_run_tells_of_nan(mm: Path, tmp_path: Path) -> None:
    mm.write_text(
        "def f(float(N) X, int32(N) I) -> (O, P) { O(i) = sqrt(-1 - exp(X(i))) P(i) = I(i) }"
    )
    done = tcl("run", mm, "-s", "N=7", cache=tmp_path)
    assert "agrees with the reference\n  7 of the 7 elements of O are NaN in both\n" in done.stdout


@pytest.mark.parametrize("command", ["run", "check", "show", "tune", "cache show", "cache best",
    "cache why", "model predict"])  # fmt: skip
def test_sizes_that_are_given_several_times_count_together(
    command: str, mm: Path, tmp_path: Path
) -> None:
    mm.write_text(f"# sizes small: M=8,K=9,N=7\n# sizes large: M=64,K=9,N=7\n{MM}")
    alone = "is a label, which gives all sizes of mm: use it alone"
    for given, sentence in (
        (("M=5,K=5", "N=5,M=6"), "the size M is given twice, as 5 and 6"),
        (("M=5", "K=6"), "mm needs a value for N;"),
        (("large", "small"), f"'large' {alone}"),
        (("M=5", "small"), f"'small' {alone}"),
    ):
        options = [word for each in given for word in ("-s", each)]
        done = here(*command.split(), mm, *options, cache=tmp_path)
        assert (done.returncode, done.stderr.startswith(f"error: {sentence}")) == (1, True)
    if command == "run":
        done = here("run", mm, "-s", "M=5", "-s", "N=5, K=3", cache=tmp_path)
        assert done.stdout.startswith("mm M=5 N=5 K=3\n  C: float32(5, 5)\n")


@pytest.mark.parametrize("command", ["run", "check", "show", "tune"])
def test_a_comment_that_leaves_out_a_size_is_told(command: str, mm: Path, tmp_path: Path) -> None:
    mm.write_text(f"# a product\n# sizes small: M=8,K=9\n{MM}")
    sentence = f"{mm}:2: the comment '# sizes small' of mm has no value for N; add N=... to it\n"
    done = here(command, mm, cache=tmp_path)
    code, severity = (0, "warning") if command == "check" else (1, "error")
    assert (done.returncode, done.stderr) == (code, f"{severity}: {sentence}")


def test_sizes_of_a_comment_that_the_def_refuses_are_told(mm: Path, tmp_path: Path) -> None:
    mm.write_text(
        """# sizes a: N=10
        def f(float(N, 16) P, float(32) X) -> (O) { O(n) +=! P(n, k) * X(k) }"""
    )
    done = here("check", mm, cache=tmp_path)
    assert done.returncode == 1
    assert "error: the index 'k' runs over dimension 1 of 'P'" in done.stderr
    assert done.stderr == here("check", mm, "-s", "a", cache=tmp_path).stderr


def test_a_def_without_size_symbols_is_checked_for_its_only_sizes(mm: Path, tmp_path: Path) -> None:
    mm.write_text("def f(float(16) A, float(32) B) -> (C) { C(i) = A(i) + B(i) }")
    done = here("check", mm, cache=tmp_path)
    assert done.returncode == 1
    assert "error: the index 'i' runs over dimension 0 of 'A'" in done.stderr


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("comment", "sentence"),
    [
        ("# values a: 0..9", "the comment '# values a' of mm names none of its inputs; did you "),
        ("# values A: 0..2, B: 0..2", "the comment '# values A: 0..2, B: 0..2' of mm is not of "),
        ("# sizes small: M=8 K=9 N=1", "the comment '# sizes small: M=8 K=9 N=1' of mm is not of "),
        (
            "# sizes a: M=8, K=\u0669, N=1",
            "the comment '# sizes a: M=8, K=\u0669, N=1' of mm is not ",
        ),
        ("# sizes: M=8, K=9, N=1", "the comment '# sizes: M=8, K=9, N=1' of mm is not of the "),
        ("# Sizes a: M=8, K=9, N=1", "the comment '# Sizes a: M=8, K=9, N=1' of mm is not of "),
        ("# sizes a M=8, K=9, N=1", "the comment '# sizes a M=8, K=9, N=1' of mm is not of the "),
        ("#size a: M=8, K=9, N=1", "the comment '#size a: M=8, K=9, N=1' of mm is not of the "),
        ("# sizes a-b: M=8, K=9, N=1", "the comment '# sizes a-b: M=8, K=9, N=1' of mm is not of "),
        ("# sizes tiny: M=8, K=9, N=1", "mm has two comments '# sizes tiny'; remove one of them"),
        ("# sizes a: M=8, K=9, N=1, M=2", "the comment '# sizes a' of mm gives the size M twice"),
        ("# sizes a: M=8, K=9, N=1, m=2", "the comment '# sizes a' of mm: mm has no size m; did "),
        (
            f"# sizes a: M={10**18}, K=9, N=1",
            "the comment '# sizes a' of mm: the size M is too lar",
        ),
        (
            "# values A 0..2",
            "the comment '# values A 0..2' of mm is not of the form '# values INPUT",
        ),
        (
            "# values A: 2..0",
            "the comment '# values A' of mm leaves no value from 2 up to, and not ",
        ),
        ("# values A: 0..2\n# values A: 0..3", "mm has two comments '# values A'; remove one of"),
    ],
)
def test_a_comment_that_cannot_be_read_is_told(
    command: str, comment: str, sentence: str, mm: Path, tmp_path: Path
) -> None:
    mm.write_text(f"# sizes tiny: M=2, K=2, N=2\n{comment}\n{MM}")
    done = here(command, mm, cache=tmp_path)
    code, severity = (0, "warning") if command == "check" else (1, "error")
    assert done.returncode == code
    place = f"{mm}:{2 + comment.count(chr(10))}: "
    assert done.stderr.startswith(f"{severity}: {place}{sentence}"), done.stderr


@pytest.mark.parametrize("value", ["nan", "soon"])
@pytest.mark.parametrize(
    "words",
    [
        ("bench", "compare", "a.json", "b.json", "--tolerance"),
        ("bench", "cpu", "--tune"),
        ("cache", "prune", "--older-than"),
    ],
)
def test_what_is_not_a_number_is_no_amount(
    words: tuple[str, ...], value: str, tmp_path: Path
) -> None:
    done = here(*words, value, cache=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f"Invalid value for '{words[-1]}': '{value}' is not a number.\n")


def test_tune_saves_and_a_second_process_loads(mm: Path, cache: Path) -> None:
    sizes = "M=64,K=64,N=64"
    search = ("--generations", "1", "--population", "3", "--seed", "1", "--jobs", "1")
    done = tcl("tune", mm, "-s", sizes, *search, cache=cache)
    assert done.returncode == 0, done.stderr
    for row in ("the untuned default", "the winner", "naive options", "NumPy"):
        assert row in done.stdout
    assert str(cache / "tuning.db") in done.stdout
    options = next(
        line.partition(": ")[2] for line in done.stdout.splitlines() if line.startswith("options")
    )
    used = "the default options" if options == DEFAULT.to_json() else f"options {options}"
    assert f", with {used}\n" in tcl("run", mm, "-s", sizes, cache=cache).stdout
    listed = here("cache", "list", cache=cache).stdout
    assert "mm" in listed
    assert "float32[64,64]" in listed


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_saves_the_best(mm: Path, cache: Path, number: signal.Signals, code: int) -> None:
    """One signal: what is in flight finishes, the best is saved."""
    command = [sys.executable, "-m", "tcl", "tune", str(mm), "-s", "M=200,K=200,N=200"]
    process = subprocess.Popen(
        [*command, "--generations", "1000", "--population", "4", "--jobs", "1", "-t", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=of_brief_searches(TCL_CACHE_DIR=str(cache)),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("generation 1/"):
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=600)
    assert process.returncode == code, err
    assert "saved in" in out
    assert "options: {" in out
    assert "Traceback" not in err
    assert "mm" in here("cache", "list", cache=cache).stdout


def test_devices() -> None:
    done = here("devices")
    assert done.returncode == 0
    assert done.stdout.startswith("cpu")


def test_devices_lists_gpus() -> None:
    """Those of this machine, if any, and those that kernels can be compiled for."""
    done = here("devices").stdout
    assert "cuda" in done
    for name in ("T4 (sm_75)", "H200 (sm_90)", "RTX 5090 (sm_120)"):
        assert name in done


@pytest.mark.parametrize("command", ["run", "tune"])
def test_a_gpu_that_is_not_here(mm: Path, tmp_path: Path, command: str) -> None:
    """One sentence, with CuPy installed or not; cuda:99 stands for it, as this may have GPUs."""
    done = here(command, mm, "-s", "M=5,K=5,N=5", "--device", "cuda:99", cache=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no device cuda:99 here")
    assert done.stderr.count("\n") == 1 and not done.stdout
    nameless = here(command, mm, "-s", "M=5,K=5,N=5", "--device", "", cache=tmp_path)
    assert nameless.returncode == 1 and "there is no device '' here" in nameless.stderr


def test_version() -> None:
    for option in ("--version", "-V"):
        done = tcl(option)
        assert (done.returncode, done.stdout) == (0, f"tcl, version {version}\n")
    assert "-V, --version" in here("--help").stdout


def test_check_takes_a_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    file = tmp_path / "windows.tc"
    file.write_bytes(b"\xef\xbb\xbf" + MM.replace("{", "{\r\n").encode())
    assert here("check", file).returncode == 0


def test_check_goes_on_after_a_bad_file(mm: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tc"
    bad.write_text("def f(")
    done = here("check", bad, tmp_path / "none.tc", mm)
    assert done.returncode == 1
    assert "bad.tc:1:" in done.stderr
    assert "none.tc cannot be read" in done.stderr
    assert "mm.tc: mm(" in done.stdout


def test_a_damaged_cache_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tuning.db").write_bytes(b"garbage" * 100)
    done = here("cache", "list", cache=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: the tuning cache {tmp_path / 'tuning.db'} cannot be used: it is damaged (file is "
        "not a database); move it away, or name another file\n"
    )


ENDLESS_TABLE = """
import os, time
from pathlib import Path
from tcl.cli import main, tuned

def interleaved(contenders):
    (Path(os.environ["TCL_TEST_FAULTS"]) / "began table").touch()
    time.sleep(1000)

tuned.interleaved = interleaved
main(prog_name="tcl")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("when", ["reference", "table"])
def test_ctrl_c_before_and_after_the_search(
    mm: Path, cache: Path, tmp_path: Path, when: str
) -> None:
    """While the reference is computed, and while the final table is measured, which both take for
    ever here: something is saved, what the search begins with at least."""
    (tmp_path / "plan.json").write_text("{}")
    reference = {"TCL_TEST_REFERENCE": "1000"} if when == "reference" else {}
    settings = ["-s", "M=64,N=64,K=64", "--generations", "1", "--population", "2", "-j", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS_TABLE, "tune", str(mm), *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=of_brief_searches(TCL_CACHE_DIR=str(cache), TCL_TEST_FAULTS=str(tmp_path), **reference),
        # A test run in the background of a shell has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not (tmp_path / f"began {when}").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=600)
    assert "saved in" in rest
    assert process.returncode == 130


EARLY_CTRL_C = """
import os, signal
from tcl import tuning
from tcl.cli import main

tuning._import_once = lambda: os.kill(os.getpid(), signal.SIGINT)
main(prog_name="tcl")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_just_before_the_search_ends_it(mm: Path, cache: Path) -> None:
    settings = ["-s", "M=64,N=64,K=64", "--generations", "1", "--population", "2", "-j", "1"]
    done = subprocess.run(
        [sys.executable, "-c", EARLY_CTRL_C, "tune", str(mm), *settings],
        capture_output=True,
        text=True,
        env=of_brief_searches(TCL_CACHE_DIR=str(cache)),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        check=False,
    )
    assert done.returncode == 130
    assert "generation 1/" not in done.stdout
    assert "saved in" in done.stdout
