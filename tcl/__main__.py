"""``python -m tcl``."""

from tcl.command import main

main()
