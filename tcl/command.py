"""The command ``tcl``, from its first moment on."""

from __future__ import annotations

import signal
from importlib import import_module


def main() -> None:
    """Run the command line. Loading it takes a tenth of a second, in which Ctrl+C ends the process
    as it ends programs that are not in Python: without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import_module("tcl.cli").main(prog_name="tcl")
