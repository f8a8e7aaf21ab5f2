"""The GPUs of this machine. What they take is imported when one is asked for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tcl.codegen.devices.cupy_driver import Driver

if TYPE_CHECKING:
    from tcl.codegen.cuda.run.ready import Machine


@functools.cache
def this_machine() -> Machine:
    """The GPUs that are here. Raises ``ArgumentError`` if CuPy is missing, or can use none."""
    from tcl.codegen.cuda.run.ready import Machine

    driver = Driver()
    driver.check()
    return Machine(driver)


def driver() -> Driver:
    """This machine's driver. Raises as ``this_machine``."""
    return this_machine().driver
