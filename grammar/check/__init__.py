"""The checks that need no sizes: the tree as written → the checked definition."""
