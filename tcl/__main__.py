"""``python -m tcl``."""

from tcl.cli import main

main(prog_name="tcl")
