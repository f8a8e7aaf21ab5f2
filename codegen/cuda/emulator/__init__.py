"""Runs the very source that NVRTC gets on the CPU, and says what is wrong with it.

Each thread of a block is a fiber; barriers, warps' exchanges and asynchronous copies are those of
CUDA's programming model, and every access is checked against it: bounds, alignment, races. What
it cannot show: speed, and how real hardware rounds and orders beyond that model.
"""

from tcl.codegen.cuda.emulator.compiler import EmulationError, why_not
from tcl.codegen.cuda.emulator.emulated import ORDERS, Emulated, Order, Requests, compile_modules

__all__ = [
    "ORDERS",
    "Emulated",
    "EmulationError",
    "Order",
    "Requests",
    "compile_modules",
    "why_not",
]
