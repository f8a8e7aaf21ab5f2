"""Temporary folders of processes that were killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tcl.common.scratch_folder import workspace

CHILD = """
import sys
from tcl.common.scratch_folder import workspace
with workspace() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_leaves_nothing_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with workspace() as own:
            assert left.is_dir()  # its process lives
            assert Path(own).is_dir()
        process.kill()
        process.wait()
    assert left.is_dir()
    with workspace():
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []
