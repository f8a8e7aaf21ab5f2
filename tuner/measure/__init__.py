"""How candidates are compiled, checked and timed, and whether times can be trusted."""
