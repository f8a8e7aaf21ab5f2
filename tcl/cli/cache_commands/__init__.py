"""The subcommands of ``tcl cache``, and what they share."""
