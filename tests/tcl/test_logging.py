"""The loggers: silent until somebody listens."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcl
from tcl.common.log import listen

TEXT = "def double_(float(N) X) -> (Y) { Y(i) = 2 * X(i) }"


def test_what_is_compiled_with_which_options_can_be_listened_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "tcl"):
        function = tcl.define(TEXT, tcl.MappingOptions("pointwise")).double_
        for _ in range(2):
            function(np.ones(3, np.float32))
    (record,) = (r for r in caplog.records if r.name == "tcl.executors")
    assert record.levelname == "DEBUG"
    assert record.getMessage() == 'double_ on [(3,)]: options {"preset":"pointwise"}'


def test_nothing_is_configured_and_nothing_is_printed() -> None:
    code = f"""
import logging, tcl, numpy as np
tcl.define({TEXT!r}).double_(np.ones(3, np.float32))
ours = logging.getLogger("tcl")
assert [type(h) for h in ours.handlers] == [logging.NullHandler], ours.handlers
assert ours.level == logging.NOTSET and ours.propagate and not logging.root.handlers
assert not ours.getChild("executors").isEnabledFor(logging.INFO)
"""
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


TUNED = f"""
import logging, sys, tcl, numpy as np
if sys.argv[1:]:
    logging.basicConfig(format="own: %(message)s")
tcl.define({TEXT!r}, "naive").double_(np.ones(3, np.float32))
"""
SAID = 'double_ on [(3,)]: options {"preset":"naive"}\n'


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("", [], ""),
        ("debug", [], f"tcl.executors: {SAID}"),
        (" Executors = DEBUG ", [], f"tcl.executors: {SAID}"),
        ("debug, executors=info", [], ""),
        ("off", [], ""),
        ("tuning=debug", [], ""),
        ("debug", ["configured"], f"own: {SAID}"),
    ],
)
def test_the_variable_has_logs_written(text: str, arguments: list[str], said: str) -> None:
    run = [sys.executable, "-c", TUNED, *arguments]
    environment = {**os.environ, "TCL_LOG": text}
    done = subprocess.run(run, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)


LEVELS = "there are debug, info, warning, error, off"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("verbose", f"TCL_LOG names the unknown log level 'verbose'; {LEVELS}"),
        ("inof", f"TCL_LOG names the unknown log level 'inof'; did you mean info? {LEVELS}"),
        ("info,", f"TCL_LOG names the unknown log level ''; {LEVELS}"),
        ("tuning=1", f"TCL_LOG names the unknown log level '1' for tuning; {LEVELS}"),
        (
            "tunning=info",
            "TCL_LOG names the unknown logger 'tunning'; did you mean tuning? there are "
            "executors, tensor_comprehensions, tuning",
        ),
        ("info,debug", "TCL_LOG gives two levels for all loggers: 'info,debug'"),
        ("tuning=info,tuning=off", "TCL_LOG gives two levels for tuning: 'tuning=info,tuning=off'"),
    ],
)
def test_an_unknown_level_is_a_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared as a whole
        listen(text)
    assert str(error.value) == message
    assert isinstance(error.value, tcl.ArgumentError)


def test_the_command_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.tc").write_text(TEXT)
    run = [sys.executable, "-m", "tcl", "run", str(tmp_path / "t.tc"), "--sizes", "N=3"]
    done = subprocess.run(
        run, capture_output=True, text=True, env={**os.environ, "TCL_LOG": "loud"}
    )
    assert done.returncode == 1
    assert done.stderr == f"error: TCL_LOG names the unknown log level 'loud'; {LEVELS}\n"
