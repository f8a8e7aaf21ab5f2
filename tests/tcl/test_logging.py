"""The loggers: silent until somebody listens."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tcl

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
