"""Files that commands are given are read up to a limit, and only where they are plain files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import MM, here
from places import ROOT, SUPPORT

SIZES = ("-s", "M=4,N=4,K=4")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mm.tc").write_text(MM)


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    """In a process of its own: it would not end, or take all memory."""
    code = "import os; os.mkfifo('pipe'); os.symlink('/dev/zero', 'zero.tc'); "
    code += "open('long.tc', 'w').write('#' * (1 << 21))"
    subprocess.run([sys.executable, "-c", code], check=True)
    zero = "cannot be read: it is a device, not a regular file"
    pipe = "cannot be read: it is a pipe, not a regular file"
    lines: list[tuple[tuple[str, ...], str]] = [
        (("check", "/dev/zero", "zero.tc", "pipe", "long.tc"), f"zero.tc {zero}"),
        (("run", "mm.tc", *SIZES, "--options", "pipe"), pipe),
        (("tune", "--grid", "pipe"), pipe),
        (("tune", "--grid", "zero.toml"), zero),
        (("model", "predict", "mm.tc", *SIZES, "--model", "/dev/zero"), zero),
        (("cache", "import", "pipe"), pipe),
    ]
    Path("zero.toml").write_text('[[tune]]\nfile = "/dev/zero"\n')
    program = (
        "import resource, sys, json\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "from command_line import here\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    print(json.dumps(here(*line).stderr))\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{SUPPORT}"}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps([line for line, _ in lines])],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    for (line, sentence), text in zip(lines, said, strict=True):
        assert sentence in text, line
    assert f"/dev/zero {zero}" in said[0] and f"pipe {pipe}" in said[0]
    assert "long.tc cannot be read: it has more than 1 MiB" in said[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{'.'.join(['a'] * 50_000)} = 1", "line 1 has more than 200 dots"),
        (f"[{'.'.join(['a'] * 50_000)}]", "line 1 has more than 200 dots"),
        (f"a = {'9' * 5000}", "this is not TOML: Exceeds the limit"),
        (f"a = {'[' * 50_000}", "this is not TOML: "),
        ("#" * (2 << 20), "it has more than 1 MiB"),
    ],
    ids=["key", "table", "number", "list", "long"],
)
def test_a_grid_that_would_take_for_ever(text: str, sentence: str) -> None:
    Path("grid.toml").write_text(text)
    done = here("tune", "--grid", "grid.toml")
    assert done.returncode == 1
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_standard_input_has_a_limit() -> None:
    done = here("check", "-", stdin="#" * (2 << 20))
    assert (done.returncode, done.stderr) == (
        1,
        "error: standard input cannot be read: it has more than 1 MiB\n",
    )
