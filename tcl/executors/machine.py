"""The GPUs of this machine. What they take is imported when one is asked for."""

from __future__ import annotations

import contextlib
import functools
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tcl.arrays.libraries import HOST
from tcl.codegen.devices.cupy_driver import Driver
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    from tcl.codegen.cuda.run import ready
else:
    ready = Lazy("tcl.codegen.cuda.run.ready")


@functools.cache
def this_machine() -> ready.Machine:
    """The GPUs that are here. Raises ``ArgumentError`` if CuPy is missing, or can use none."""
    driver = Driver()
    driver.check()
    return ready.Machine(driver)


def driver() -> Driver:
    """This machine's driver. Raises as ``this_machine``."""
    return this_machine().driver


def on(device: int) -> AbstractContextManager[object]:
    """With this device as the current one; nothing is done for ``HOST``."""
    return contextlib.nullcontext() if device == HOST else driver().on(device)
