"""Runs README's commands in a fresh clone, and compares the first kernel with torch.

    python -m benchmarks.first_minutes

It makes a clone of the committed state and an empty environment (PATH, an empty home, pip's
settings). It runs the command of README that installs and tunes, and README's first program. Then
it installs torch, and times torch in turns with the kernel of that program. Only pip's cache comes
from an earlier run. The transcript is written to ``docs/first-minutes.md``; a test compares its
commands with README's.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "first-minutes.md"

INSTALL_TORCH = ".venv/bin/pip install -q torch==2.13.0"

NOT_RUN = "<!-- not run: a transcript -->\n"
"""What test_page_programs.py is told: the programs are README's, where it runs them."""

AGAINST_TORCH = """
import torch
from tcl.bench.turns import compare_in_turns

X = torch.from_numpy(I)
assert torch.allclose(torch.from_numpy(O), torch.softmax(X, 1), atol=1e-6)
compare_in_turns(
    {
        "tcl": lambda: T.softmax(I, wanted=("O",)),
        "torch": lambda: torch.softmax(X, 1),
    }
)
"""


def readme_command(readme: str) -> str:
    """The command of README that installs and tunes."""
    (command,) = re.findall(
        r"^```sh\n(python3 -m venv [^\n]*/tcl tune [^\n]*)\n```$", readme, re.MULTILINE
    )
    return str(command)


def readme_program(readme: str) -> str:
    """The first program of README."""
    program, *_ = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return str(program)


@dataclass(frozen=True, slots=True)
class Step:
    """A command that was run."""

    title: str
    command: str
    seconds: float
    printed: str

    @property
    def text(self) -> str:
        """Its part of the page."""
        shown = f"\n```text\n{self.printed}\n```\n" if self.printed else ""
        return f"## {self.title}: {self.seconds:.0f} s\n\n{self.command}\n{shown}"


class NewUser:
    """Runs commands as somebody would whose account is new."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "tcl"
        home = folder / "home"
        home.mkdir()
        pip = {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), **pip}
        self._hidden = {str(home): "~", str(folder): "~"}

    def run(self, command: list[str], cwd: Path | None = None) -> tuple[float, str]:
        """The seconds that it took, and what it printed; raises for what fails."""
        start = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=cwd or self.clone,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(f"{command} failed:\n{done.stdout}{done.stderr}")
        printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        for path, name in self._hidden.items():
            printed = printed.replace(path, name)
        return seconds, printed


def transcript(folder: Path) -> str:
    """The page."""
    user = NewUser(folder)
    shell = ["bash", "-euo", "pipefail", "-c"]
    readme = (ROOT / "README.md").read_text("utf-8")
    command, program = readme_command(readme), readme_program(readme)
    python = str(user.clone / ".venv/bin/python")

    cloning, _ = user.run(["git", "clone", "-q", str(ROOT), str(user.clone)], cwd=folder)
    if (user.clone / "README.md").read_text("utf-8") != readme:
        raise SystemExit("README.md has changes that are not committed; the clone has not got them")
    tuning, tuned = user.run([*shell, command])
    installing, _ = user.run([*shell, INSTALL_TORCH])
    comparing, compared = user.run([python, "-c", f"{program}{AGAINST_TORCH}"])
    _, device = user.run([python, "-m", "tcl", "devices"])
    _, torch = user.run([python, "-c", "import torch; print(torch.__version__)"])
    _, commit = user.run(["git", "rev-parse", "--short", "HEAD"])

    steps = (
        Step("Clone", "```sh\ngit clone URL tcl && cd tcl\n```", cloning, ""),
        Step(
            "Install and tune, the command of README",
            f"{NOT_RUN}```sh\n{command}\n```",
            tuning,
            tuned,
        ),
        Step("Install torch, to compare with", f"```sh\n{INSTALL_TORCH}\n```", installing, ""),
        Step(
            "Run README's first program, and time it",
            f"{NOT_RUN}```python\n{program}{AGAINST_TORCH}```",
            comparing,
            compared,
        ),
    )
    total = sum(step.seconds for step in steps)
    machine = re.sub(r"^cpu +", "", device.splitlines()[0])
    return f"""# The first minutes

This page shows the steps of a new user who has read only [README](../README.md), in a fresh clone
and an empty environment. Each heading has the time of its step;
all steps took **{total:.0f} seconds**. The last table compares a call of the untuned kernel
with a call of torch. The two take turns, and each uses its default number of threads.

{machine}; {platform.system()}, Python {platform.python_version()}, torch {torch};
{datetime.now(UTC):%Y-%m-%d}, commit {commit}.
Load of the machine: {os.getloadavg()[0]:.1f}; nice {os.nice(0)}.
The packages came from the index in pip's settings. PyPI's torch contains libraries for GPUs, so its
installation takes longer. `python -m benchmarks.first_minutes` writes this page.

{chr(10).join(step.text for step in steps)}"""


def main() -> None:
    """Writes the page, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=PAGE, help="where the page is written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = transcript(Path(folder))
    given.out.write_text(f"{page.rstrip()}\n", "utf-8")
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
