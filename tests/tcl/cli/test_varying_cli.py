"""``--varying`` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tcl.cli import main
from tcl.codegen.cuda.emulator import why_not

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SIZES = "--sizes=M=20,K=8,N=24"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm.tc"
    path.write_text(MM)
    return str(path)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def test_the_size_that_was_meant_is_named(file: str) -> None:
    found = run("show", file, SIZES, "--varying", "m")
    assert found.output == (
        "error: --varying names m, which is not a size of mm; did you mean M?\n"
    )


def test_a_run_says_what_the_kernel_serves(file: str) -> None:
    found = run("run", file, SIZES, "--varying", "M", "-t1", "--options", "naive")
    assert found.exit_code == 0, found.output
    assert found.output.startswith("mm M=20 K=8 N=24 varying M\n")
    assert found.output.endswith("\n  the kernel serves M=16..255\n")
    found = run("run", file, "--sizes=M=0,K=8,N=24", "--varying", "M", "-t1", "--options", "naive")
    assert found.output.endswith(
        "\n  the kernel is for these sizes only; no kernel of mm can be for a class of M=0: "
        "classes hold sizes from 1 to 2147483647\n"
    )


def test_commands_say_why_there_is_no_kernel_for_a_class(tmp_path: Path) -> None:
    path = tmp_path / "f.tc"
    path.write_text(
        "def f(float(N) X) -> (Y, Z) {\n  Y(n) = X(n)\n  Z(n) = X(n % 3) where n in 0:N }"
    )
    why = (
        "no kernel of f can be for a class of N=20: N - 1 is known only when the kernel runs "
        "(line 3)"
    )
    words = (str(path), "--sizes=N=20", "--varying", "N", "-t1", "--options", "naive")
    found = run("run", *words)
    assert found.output.endswith(f"\n  the kernel is for these sizes only; {why}\n")
    found = run("show", *words)
    assert found.output == (
        f"error: {why}; leave out --varying to see the kernel for these sizes\n"
    )


def test_stages_have_sizes_by_their_names(file: str) -> None:
    found = run("show", file, SIZES, "--varying", "M", "--varying", "N", "--stage", "ranges")
    assert found.output.startswith("for all of M=16..255, N=16..255\nmm M=M K=8 N=N\n")
    assert "  m  0:M  M values" in found.output
    found = run("show", file, SIZES, "--varying", "M", "-t1", "--options", "naive")
    assert "input A: float32(M, 8) strides (32, 4)" in found.output


def test_stages_of_a_gpu(file: str) -> None:
    words = ("show", file, SIZES, "--varying", "M", "--device", "h200")
    assert "input A: float32(M, 8) strides (32, 4)" in run(*words).output
    assert "size_M" in run(*words, "--stage", "source").output
    assert "preset mlp" in run(*words, "--stage", "plan").output


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_run_on_a_gpu_says_what_the_kernel_serves(file: str) -> None:
    words = ("run", file, "--varying", "M", "--device", "cuda-emulated")
    found = run(*words, SIZES)
    assert found.exit_code == 0, found.output
    assert "agrees with the reference" in found.output
    assert found.output.endswith("\n  the kernel serves M=16..255\n")
    found = run(*words, "--sizes=M=0,K=8,N=24")
    assert found.output.endswith("classes hold sizes from 1 to 2147483647\n")


@pytest.mark.parametrize("command", ["run", "show", "tune"])
def test_unknown_names_are_refused(
    own_cache: None, tmp_path: Path, file: str, command: str
) -> None:
    found = run(command, file, SIZES, "--varying", "M,Q")
    assert found.exit_code == 1
    assert found.output == (
        "error: --varying names Q, which is not a size of mm; its sizes are M, K, N\n"
    )
    assert not (tmp_path / "tuning.db").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--varying", ","), "--varying needs names of sizes, as in --varying M,N"),
        (
            ("show", SIZES, "--varying", "M", "--stage", "resources"),
            "--stage resources is about the resources of GPU kernels; name a GPU, such "
            "as --device h200",
        ),
        (
            ("show", SIZES, "--varying", "M", "--stage", "canonical"),
            "--varying does not change --stage canonical; leave it out",
        ),
        (
            ("cache", "show", "abcdef", "--varying", "M"),
            "the key abcdef already contains --varying; leave it out",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(file: str, words: tuple[str, ...], message: str) -> None:
    found = run(*words, *([file] if words[0] != "cache" else []))
    assert found.exit_code == 2
    assert found.output.endswith(f"error: {message}\n")


def test_sizes_without_a_class_are_not_shown(file: str) -> None:
    found = run("show", file, "--sizes=M=0,K=8,N=24", "--varying", "M")
    assert found.output == (
        "error: no kernel of mm can be for a class of M=0: classes hold sizes from 1 to "
        "2147483647; leave out --varying to see the kernel for these sizes\n"
    )
