"""A search as people see it go on: the panel, its lines, and the words for what was decided."""
